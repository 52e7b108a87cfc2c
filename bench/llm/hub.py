"""Models of the Hugging Face hub: a pinned snapshot in the hub's own cache."""

from __future__ import annotations

import re
from pathlib import Path

from ragtrials.errors import UserError

_WANTED = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")
_UNWANTED = ("*/*", "consolidated*")  # second copies of the weights in other formats
_COMMIT = re.compile(r"[0-9a-f]{40}")


def hub_snapshot(model: str, revision: str | None) -> tuple[Path, str]:
    """Download a model of the hub (or find it in the hub's cache) and return its folder and commit hash.

    Without a network, or with HF_HUB_OFFLINE=1, a copy in the cache is used.

    Raises:
        UserError: The model or revision is unknown, gated or out of reach, or huggingface_hub is missing.
    """
    try:
        from huggingface_hub import errors, snapshot_download
    except ModuleNotFoundError:
        raise UserError(
            f"model {model!r} is no folder, and the hub needs huggingface_hub: "
            "install with `pip install 'ragtrials[quickstart]'`"
        ) from None
    hint = "pass the path of a local model folder instead"
    try:
        folder = snapshot_download(
            model, revision=revision, allow_patterns=list(_WANTED), ignore_patterns=list(_UNWANTED)
        )
    except errors.HFValidationError:
        raise UserError(f"model {model!r} is neither a folder nor the id of a hub model; {hint}") from None
    except errors.GatedRepoError:
        raise UserError(
            f"model {model!r} is gated: ask for access on its hub page and log in with `hf auth login`"
        ) from None
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"model {model!r} is neither a folder nor a public model of the hub; {hint}"
        ) from None
    except errors.RevisionNotFoundError:
        raise UserError(
            f"model {model!r} has no revision {revision!r}: use one that its hub page lists"
        ) from None
    # HTTPError is the base of all that the client library under huggingface_hub raises, whichever it is.
    except (errors.HTTPError, OSError) as error:  # type: ignore[attr-defined]
        reason = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise UserError(
            f"model {model!r} is no folder, and could not be had from the hub ({reason}); {hint}"
        ) from error
    path = Path(folder)
    if not _COMMIT.fullmatch(path.name):
        raise UserError(f"model {model!r}: the hub's cache names no commit for it; {hint}")
    return path, path.name
