"""Corpora: the file `corpus.jsonl[.gz]` in a task's folder, or the paragraphs of the task's own records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ragtrials.corpora import file_corpus
from ragtrials.data import Corpus, Passage
from ragtrials.errors import UserError
from ragtrials.files import find_data_file, read_table


def has_corpus_file(data_dir: Path | None, task: str) -> bool:
    """Whether the folder of a task holds a corpus."""
    names = ("corpus.jsonl", "corpus.jsonl.gz")
    return data_dir is not None and any((data_dir / task / name).is_file() for name in names)


def corpus_file(data_dir: Path | None, task: str) -> Corpus:
    """The corpus in the folder of a task, JSON lines as `ragtrials.corpora` reads them, streamed.

    Its name says that it is a local file and nothing about where its passages come from; its digest tells
    two of them apart.

    Raises:
        UserError: There is none.
    """
    try:
        path = find_data_file(data_dir, task, "corpus", ["jsonl"])
    except UserError as error:
        raise UserError(f"{error} (or search another corpus with --corpus)") from error
    return file_corpus(path, f"{task}-local-pool")


def file_or_pool(
    data_dir: Path | None, task: str, published: str, paragraphs: Callable[[str], Iterable[Passage]]
) -> Corpus:
    """The corpus in the folder of a task, whatever is asked, else the paragraphs of a published split."""
    if has_corpus_file(data_dir, task):
        return corpus_file(data_dir, task)
    return pooled(task, published, paragraphs)


def gold_in_file(data_dir: Path | None, task: str) -> Mapping[str, tuple[str, ...]] | None:
    """The gold passages that are known of the corpus in the folder of a task; None if it has no corpus.

    Its passages have ids of their own, so those made from a question's paragraphs are of no use there.
    """
    return gold_passages(data_dir, task) or {} if has_corpus_file(data_dir, task) else None


def pooled(task: str, published: str, paragraphs: Callable[[str], Iterable[Passage]]) -> Corpus:
    """The corpus of all paragraphs of a published split, each once, in order of first appearance.

    Args:
        task: The task's name.
        published: The split, "train" or "dev".
        paragraphs: Gives the paragraphs of a published split. Their ids must be made from their content
            (`ragtrials.data.passage_id`): titles repeat with other texts.
    """
    return Corpus(f"{task}-{published}-pool", lambda: _each_once(paragraphs(published)))


def gold_passages(data_dir: Path | None, task: str) -> dict[str, tuple[str, ...]] | None:
    """The gold passages of each question, by id, of `qrels.tsv` (columns `qid`, `docid`) in a task's folder.

    None if there is no such file.
    """
    path = data_dir / task / "qrels.tsv" if data_dir is not None else None
    if path is None or not path.is_file():
        return None
    found: dict[str, list[str]] = {}
    for record in read_table(path, "\t"):
        found.setdefault(record.text("qid"), []).append(record.text("docid"))
    return {question: tuple(dict.fromkeys(passages)) for question, passages in found.items()}


def _each_once(paragraphs: Iterable[Passage]) -> Iterator[Passage]:
    seen: set[str] = set()
    for passage in paragraphs:
        if passage.id not in seen:
            seen.add(passage.id)
            yield passage
