from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys

import pytest
from tiny import build_tiny_model

from ragtrials.errors import UserError
from ragtrials.llm.build import describe_model, load_engine
from ragtrials.program import Generate, user

SMALL = {"device": "cpu", "batch_size": 3, "max_prompt_tokens": 77}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGTRIALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.mark.parametrize("options", [{}, SMALL | {"dtype": "bfloat16"}, SMALL | {"dtype": "float32"}])
def test_the_signature_is_known_before_loading(folder, options):
    described = describe_model(str(folder), **options)
    engine = load_engine(str(folder), **options)
    assert engine.signature == described
    assert described["dtype"] == str(engine.model.dtype).removeprefix("torch.")
    assert described["device"] == engine.model.device.type


def test_the_signature_names_what_can_change_a_result(folder):
    signature = describe_model(str(folder), dtype="float32", **SMALL)
    assert len(signature.pop("digest")) == 64
    assert signature == {
        "engine": "hf",
        "model": "tiny",
        "revision": None,
        "dtype": "float32",
        "device": "cpu",
        "batch_size": 3,
        "max_prompt_tokens": 77,
        "torch": importlib.metadata.version("torch"),
        "transformers": importlib.metadata.version("transformers"),
    }


def test_no_signature_holds_a_path(folder):
    assert str(folder.parent) not in json.dumps(describe_model(str(folder), device="cpu"))


def test_describing_imports_neither_torch_nor_transformers(folder):
    code = (
        "import sys; from ragtrials.llm.build import describe_model; "
        f"describe_model({str(folder)!r}, device='cpu'); "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("call", [describe_model, load_engine])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "--batch-size is 0: give 1 or more"),
        ({"max_prompt_tokens": 0}, "--max-prompt-tokens is 0: give 1 or more"),
        ({"dtype": "int8"}, "--dtype 'int8' is unknown"),
        ({"device": "tpu"}, "--device 'tpu' is unknown"),
    ],
)
def test_wrong_settings_are_told_before_anything_is_loaded(call, options, message):
    with pytest.raises(UserError, match=message):
        call("./no-such-folder", **options)


def test_wrong_policies_are_told_before_anything_is_loaded(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ragtrials.llm.hf", None)  # importing it fails
    with pytest.raises(UserError, match=r"trained weights of role 'reader': .* is no folder"):
        load_engine(str(folder), device="cpu", policies={"reader": tmp_path / "no-such-folder"})


def test_trained_weights_leave_the_signature_alone(folder, tmp_path):
    trained = build_tiny_model(tmp_path / "trained", seed=1)
    options = {"device": "cpu", "dtype": "float32"}
    engine = load_engine(str(folder), policies={"reader": trained}, **options)
    assert engine.signature == describe_model(str(folder), **options)
    (own,) = engine.generate([Generate((user("Where?"),), role="reader")], [0])
    (base,) = engine.generate([Generate((user("Where?"),), role="writer")], [0])
    assert own.prompt_ids == base.prompt_ids
    assert own.token_ids != base.token_ids


def test_engines_without_adapters_do_without_peft(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)  # importing it fails
    monkeypatch.delitem(sys.modules, "ragtrials.llm.adapters", raising=False)
    trained = build_tiny_model(tmp_path / "trained", seed=1)
    assert load_engine(str(folder), device="cpu").score([]) == []
    assert load_engine(str(folder), device="cpu", policies={"reader": trained}).score([]) == []


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_a_missing_library_is_one_line(folder, monkeypatch, missing):
    version = importlib.metadata.version

    def pretend(name):
        if name == missing:
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(importlib.metadata, "version", pretend)
    with pytest.raises(
        UserError, match=rf"need {missing}: install with `pip install 'ragtrials\[quickstart\]'`"
    ):
        describe_model(str(folder))
