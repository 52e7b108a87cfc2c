"""`index build` and `index search`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtrials.cli.options import corpus, data_dir

if TYPE_CHECKING:
    from ragtrials.data import Corpus

_task = click.option("--task", "-t", help="The task whose corpus is searched; not needed with --corpus.")


@click.group()
def index() -> None:
    """Build and try the search index of a task's corpus, or of another one."""


def _chosen(task: str | None, corpus: str | None, data_dir: Path | None) -> Corpus:
    from ragtrials.errors import UserError
    from ragtrials.resources import Resources

    resources = Resources(data_dir)
    if corpus is not None:
        return resources.given_corpus(corpus)
    if task is None:
        raise UserError("say what to search: --task for a task's own corpus, or --corpus")
    return resources.corpus(resources.task(task))


@index.command()
@_task
@corpus
@data_dir
def build(task: str | None, corpus: str | None, data_dir: Path | None) -> None:
    """Build the BM25 index of a corpus, or say where the built one lies."""
    from ragtrials.retrieval.build import index_info

    chosen = _chosen(task, corpus, data_dir)
    info = index_info(chosen)
    click.echo(
        f"{chosen.name}: {info.passages:,} passages, {info.bytes / 1e6:.1f} MB, "
        f"{'built' if info.built else 'was there already, opened'} in {info.seconds:.1f} s: {info.folder}"
    )


@index.command()
@click.argument("query")
@_task
@corpus
@click.option("-k", type=int, default=5, show_default=True, help="How many passages.")
@data_dir
def search(query: str, task: str | None, corpus: str | None, k: int, data_dir: Path | None) -> None:
    """Show the K best passages for QUERY."""
    from ragtrials.retrieval.build import load_retriever

    hits = load_retriever("bm25", _chosen(task, corpus, data_dir)).search([query], k)[0]
    for rank, hit in enumerate(hits, 1):
        click.echo(
            f"{rank:3d}  {hit.score:7.3f}  {hit.passage.title}: {hit.passage.text}  ({hit.passage.id})"
        )
    if not hits:
        click.echo("(nothing found)")


COMMANDS = (index,)
