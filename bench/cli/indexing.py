"""`index build` and `index search`."""

from __future__ import annotations

from pathlib import Path

import click

from ragtrials.cli.options import data_dir

_task = click.option("--task", "-t", required=True, help="The task whose corpus is indexed.")


@click.group()
def index() -> None:
    """Build and try the search index of a task's corpus."""


@index.command()
@_task
@data_dir
def build(task: str, data_dir: Path | None) -> None:
    """Build the BM25 index of a task's corpus, or say where the built one lies."""
    from ragtrials.resources import Resources
    from ragtrials.retrieval.build import index_info

    resources = Resources(data_dir)
    corpus = resources.corpus(resources.task(task))
    info = index_info(corpus)
    click.echo(
        f"{corpus.name}: {info.passages:,} passages, {info.bytes / 1e6:.1f} MB, "
        f"{'built' if info.built else 'was there already, opened'} in {info.seconds:.1f} s: {info.folder}"
    )


@index.command()
@click.argument("query")
@_task
@click.option("-k", type=int, default=5, show_default=True, help="How many passages.")
@data_dir
def search(query: str, task: str, k: int, data_dir: Path | None) -> None:
    """Show the K best passages for QUERY."""
    from ragtrials.resources import Resources
    from ragtrials.retrieval.build import load_retriever

    resources = Resources(data_dir)
    hits = load_retriever("bm25", resources.corpus(resources.task(task))).search([query], k)[0]
    for rank, hit in enumerate(hits, 1):
        click.echo(
            f"{rank:3d}  {hit.score:7.3f}  {hit.passage.title}: {hit.passage.text}  ({hit.passage.id})"
        )
    if not hits:
        click.echo("(nothing found)")


COMMANDS = (index,)
