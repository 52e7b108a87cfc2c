"""Run records: written once per run, read strictly, never mixed with what papers report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragtrials.chunks import write_atomically
from ragtrials.config import parse, plain
from ragtrials.errors import UserError
from ragtrials.parquet import encoded, read_columns
from ragtrials.signature import digest
from ragtrials.stats import Estimate

SCHEMA = 1
RECORD_FILE = "run.json"
PREDICTIONS_FILE = "predictions.parquet"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What run.json holds. No host name, user name or absolute path stands in it.

    Attributes:
        schema: Version of this layout.
        id: Digest of `signature`.
        suite, method, profile, task, split, seed: What was run.
        sample: "all N", or "N of M" questions.
        n: Number of evaluated questions.
        model, model_digest: The language model and the digest of its files.
        retriever: Name of the retriever, "none" for a method that never retrieves.
        corpus: Name of the corpus, "none" for a method that never retrieves.
        metrics: Names of the metrics, versions included.
        main_metric: The score that ranks.
        scores: Mean and 95 % bootstrap interval of every score, fractions of 1.
        retrieval: Mean gold and answer recall of the retrieved passages; empty if nothing retrieves.
        cost: Per question: retrieval calls, passages, model calls, prompt and completion tokens.
        flags: How many questions have each flag.
        config: The method's settings.
        signature: The `RunSpec`.
        environment: Versions of Python and libraries, kind of machine. Not part of the id.
        command: The command that makes this record again.
        training: How the evaluated weights came about: `train_id`, where they were trained, the digest of
            each role's weights, and the training's report; none for a method that is not trained.
        times: Everything that differs between two otherwise equal runs: start, seconds.
    """

    schema: int
    id: str
    suite: str
    method: str
    profile: str
    task: str
    split: str
    seed: int
    sample: str
    n: int
    model: str
    model_digest: str
    retriever: str
    corpus: str
    metrics: tuple[str, ...]
    main_metric: str
    scores: Mapping[str, Estimate]
    retrieval: Mapping[str, float]
    cost: Mapping[str, float]
    flags: Mapping[str, int]
    config: Mapping[str, Any]
    signature: Mapping[str, Any]
    environment: Mapping[str, str]
    command: str
    times: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] | None = None


def write_record(folder: Path, record: RunRecord, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write predictions.parquet, then run.json: a folder with run.json is complete."""
    write_atomically(folder / PREDICTIONS_FILE, encoded(rows))
    text = json.dumps(plain(record), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(folder / RECORD_FILE, text.encode("utf-8", "surrogatepass"))


def read_record(path: Path) -> RunRecord:
    """One run.json.

    Raises:
        UserError: It is unreadable, of another schema, or its signature does not give its id.
    """
    try:
        raw = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such record") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged record ({error}); restore it or delete its folder") from error
    if isinstance(raw, dict) and raw.get("schema") != SCHEMA:
        raise UserError(f"{path}: record of schema {raw.get('schema')!r}; this version reads schema {SCHEMA}")
    record = parse(RunRecord, raw, str(path))
    if digest(record.signature) != record.id:
        raise UserError(f"{path}: id {record.id} is not the digest of its signature; the record was edited")
    if record.main_metric not in record.scores:
        raise UserError(f"{path}: scores lack the main metric {record.main_metric!r}")
    return record


@dataclass(frozen=True, slots=True)
class Stored:
    """A record and the folder it was read from."""

    folder: Path
    record: RunRecord

    def values(self, metric: str) -> dict[str, float]:
        """One score of every question, by example id.

        Raises:
            UserError: predictions.parquet is missing or damaged, or does not agree with the record.
        """
        path = self.folder / PREDICTIONS_FILE
        frame = read_columns(path, ["id", metric], "run again with --overwrite")
        values = dict(zip(frame["id"].to_list(), frame[metric].to_list(), strict=True))
        expected = self.record.scores[metric].mean
        if len(values) != self.record.n or abs(sum(values.values()) / len(values) - expected) > 1e-9:
            raise UserError(f"{path}: its {metric} does not give the mean in {RECORD_FILE}; one was edited")
        return values


def read_all(results: Path) -> tuple[list[Stored], list[str]]:
    """All records below a folder, sorted by path, and one line for each that cannot be read."""
    stored: list[Stored] = []
    problems: list[str] = []
    for path in sorted(results.glob(f"*/*/*/{RECORD_FILE}")):
        try:
            stored.append(Stored(path.parent, read_record(path)))
        except UserError as error:
            problems.append(str(error))
    return stored, problems
