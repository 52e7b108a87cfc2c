"""The heavy things that runs share: tasks, the loaded model, and retrievers. Each is made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragtrials.data import Corpus, Example
from ragtrials.errors import UserError
from ragtrials.program import Engine, Retriever
from ragtrials.registry import TASKS
from ragtrials.seeding import derive_seed
from ragtrials.suite import Conditions
from ragtrials.task import Task


class Resources:
    """What is loaded in this process. One engine at a time, so that two models never share the memory.

    Args:
        data_dir: Where tasks look for their files.
    """

    def __init__(self, data_dir: Path | None = None) -> None:
        self.data_dir = data_dir
        self._tasks: dict[str, Task] = {}
        self._examples: dict[tuple[str, str], Sequence[Example]] = {}
        self._few_shot: dict[tuple[str, int, int], list[Example]] = {}
        self._corpora: dict[str, Corpus] = {}
        self._engines: dict[tuple[Any, ...], Engine] = {}
        self._descriptions: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self._retrievers: dict[tuple[Any, ...], Retriever] = {}

    def task(self, name: str) -> Task:
        """The task of that name or alias."""
        kind = TASKS.load(name)
        if kind.name not in self._tasks:
            self._tasks[kind.name] = kind(self.data_dir)
        return self._tasks[kind.name]

    def examples(self, task: Task, split: str) -> Sequence[Example]:
        """All examples of an evaluated split, read once.

        Raises:
            UserError: There are none, or they cannot be read.
        """
        key = (task.name, split)
        if key not in self._examples:
            found = task.examples(split)
            if not found:
                raise UserError(f"task {task.name}: split {split!r} has no examples")
            self._examples[key] = found
        return self._examples[key]

    def few_shot(self, task: Task, count: int, seed: int) -> list[Example]:
        """`count` training examples, drawn by seed. They come from the train split alone.

        Only the drawn ones are kept in memory.
        """
        key = (task.name, count, seed)
        if count and key not in self._few_shot:
            train = task.examples("train")
            if len(train) < count:
                raise UserError(
                    f"task {task.name} has {len(train)} training examples: -o shots={count} asks for more"
                )
            drawn = sorted(train, key=lambda example: derive_seed(seed, "shots", example.id))
            self._few_shot[key] = drawn[:count]
        return self._few_shot.get(key, [])

    def corpus(self, task: Task) -> Corpus:
        """The task's corpus; tasks that share one share its digest too."""
        if task.name not in self._corpora:
            corpus = task.corpus()
            same = [known for known in self._corpora.values() if known.name == corpus.name]
            self._corpora[task.name] = same[0] if same else corpus
        return self._corpora[task.name]

    def describe_engine(self, conditions: Conditions) -> Mapping[str, Any]:
        """The engine's signature, without loading weights."""
        from ragtrials.llm.build import describe_model

        key = _engine_key(conditions)
        if key not in self._descriptions:
            self._descriptions[key] = describe_model(conditions.model, **_engine_options(conditions))
        return self._descriptions[key]

    def engine(self, conditions: Conditions) -> Engine:
        """The loaded engine."""
        from ragtrials.llm.build import load_engine

        key = _engine_key(conditions)
        if key not in self._engines:
            self._engines.clear()
            self._engines[key] = load_engine(conditions.model, **_engine_options(conditions))
        return self._engines[key]

    def describe_retriever(self, conditions: Conditions, task: Task) -> Mapping[str, Any]:
        """The retriever's signature, without building an index."""
        from ragtrials.retrieval.build import describe_retriever

        return describe_retriever(conditions.retriever, self.corpus(task), seed=conditions.seed)

    def retriever(self, conditions: Conditions, task: Task) -> Retriever:
        """The loaded retriever; its index is built if it is not in the cache."""
        from ragtrials.retrieval.build import load_retriever

        corpus = self.corpus(task)
        split = conditions.split or task.card.reported_split
        # Only the diagnostics know the questions, so only they differ from task to task.
        asker = "" if conditions.retriever == "bm25" else f"{task.name}/{split}/{conditions.seed}"
        key = (conditions.retriever, corpus.digest, asker)
        if key not in self._retrievers:
            self._retrievers[key] = load_retriever(
                conditions.retriever, corpus, examples=self.examples(task, split), seed=conditions.seed
            )
        return self._retrievers[key]


def _engine_options(conditions: Conditions) -> dict[str, Any]:
    return {
        "dtype": conditions.dtype,
        "device": conditions.device,
        "batch_size": conditions.batch_size,
        "max_prompt_tokens": conditions.max_prompt_tokens,
    }


def _engine_key(conditions: Conditions) -> tuple[Any, ...]:
    return (conditions.model, *_engine_options(conditions).values())
