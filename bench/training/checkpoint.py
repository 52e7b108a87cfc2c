"""Checkpoints: a folder with the weights of each trained role, and a manifest that says whose they are.

checkpoint.json         the manifest, written last: a folder with it is complete
stages/NAME/weights/    a peft adapter folder, or a Hugging Face model folder
log.jsonl, events/      the course of the training
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragtrials.chunks import write_atomically
from ragtrials.config import parse, plain
from ragtrials.errors import UserError
from ragtrials.training.report import TrainingReport

FORMAT = 1
MANIFEST = "checkpoint.json"


@dataclass(frozen=True, slots=True)
class RoleWeights:
    """The weights of one role: their folder in the checkpoint, and the SHA-256 of their files."""

    folder: str
    digest: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What checkpoint.json holds.

    Attributes:
        format: Version of this layout.
        train_id: Digest of `signature`.
        method, task, seed, profile: What was trained.
        config: The method's settings, with which the checkpoint is evaluated unless -o says otherwise.
        model, model_digest: The model that training started from; adapters need that very one.
        roles: The trained roles. Others are played by the untrained model.
        report: What training did and cost.
        signature: The `TrainSpec`.
        environment: Versions and kind of machine.
    """

    format: int
    train_id: str
    method: str
    task: str
    seed: int
    profile: str
    config: Mapping[str, Any]
    model: str
    model_digest: str
    roles: Mapping[str, RoleWeights]
    report: TrainingReport
    signature: Mapping[str, Any]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint on disk."""

    folder: Path
    manifest: Manifest

    @property
    def policies(self) -> dict[str, Path]:
        """The folder of each trained role's weights."""
        return {role: self.folder / weights.folder for role, weights in self.manifest.roles.items()}


def weights_digest(folder: Path) -> str:
    """The SHA-256 of a weights folder's files (64 hex digits); noted, so that it is read once.

    Raises:
        UserError: The folder cannot be read.
    """
    from ragtrials.llm.folders import files_digest

    return files_digest(folder)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make a checkpoint complete."""
    text = json.dumps(plain(manifest), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(folder / MANIFEST, text.encode("utf-8", "surrogatepass"))


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a complete checkpoint of a method (and not, say, a model folder)."""
    return (folder / MANIFEST).is_file()


def read_checkpoint(folder: Path) -> Checkpoint:
    """A checkpoint whose files are all there and are those that training wrote.

    Raises:
        UserError: It is incomplete, damaged or of another format; the file is named.
    """
    path = folder / MANIFEST
    try:
        raw = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(
            f"checkpoint {folder}: {MANIFEST} is missing; the training has not finished "
            "(`ragtrials train` goes on with it)"
        ) from None
    except (OSError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged manifest ({error}); train again") from error
    if isinstance(raw, dict) and raw.get("format") != FORMAT:
        raise UserError(f"{path}: checkpoint of format {raw.get('format')!r}; this version reads {FORMAT}")
    manifest = parse(Manifest, raw, str(path))
    for role, weights in manifest.roles.items():
        if not (folder / weights.folder).is_dir():
            raise UserError(f"checkpoint {folder}: the weights of {role}, {weights.folder}, are missing")
        if weights_digest(folder / weights.folder) != weights.digest:
            raise UserError(
                f"checkpoint {folder}: the weights in {weights.folder} are not those that training wrote; "
                "copy the folder again, or train again"
            )
    return Checkpoint(folder, manifest)


def check_fits(
    checkpoint: Checkpoint, method: str, roles: Sequence[str], model: str, model_digest: str
) -> None:
    """Hold that a checkpoint belongs to a method and a model.

    Raises:
        UserError: It was trained for another method, has a role that the method lacks, or starts from
            another model.
    """
    manifest = checkpoint.manifest
    where = f"checkpoint {checkpoint.folder}"
    if manifest.method != method:
        raise UserError(f"{where}: was trained for method {manifest.method}, not {method}")
    if unknown := [role for role in manifest.roles if role not in roles]:
        raise UserError(f"{where}: method {method} has no role {unknown[0]!r}")
    if manifest.model_digest != model_digest:
        raise UserError(
            f"{where}: was trained from model {manifest.model} (digest {manifest.model_digest[:12]}), "
            f"not from {model} ({model_digest[:12]}): name that model with --model"
        )
