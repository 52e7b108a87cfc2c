"""The heavy things that runs share: tasks, the loaded model, and retrievers. Each is made once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragtrials.corpora import open_corpus
from ragtrials.data import Corpus, Example
from ragtrials.errors import UserError
from ragtrials.program import Engine, Retriever
from ragtrials.registry import TASKS
from ragtrials.seeding import derive_seed
from ragtrials.suite import Conditions
from ragtrials.task import Task, data_folder


class Resources:
    """What is loaded in this process. One engine at a time, so that two models never share the memory.

    Args:
        data_dir: Where tasks look for their files.
    """

    def __init__(self, data_dir: Path | None = None) -> None:
        self.data_dir = data_dir
        self._tasks: dict[str, Task] = {}
        self._examples: dict[tuple[Task, str], Sequence[Example]] = {}
        self._few_shot: dict[tuple[Task, int, int], list[Example]] = {}
        self._own_corpora: dict[tuple[Task, bool], Corpus] = {}
        self._given_corpora: dict[str, Corpus] = {}
        self._engines: dict[tuple[Any, ...], Engine] = {}
        self._descriptions: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self._retrievers: dict[tuple[Any, ...], Retriever] = {}

    def task(self, name: str) -> Task:
        """The task of that name or alias, or of a user's file ("jsonl:FILE").

        Raises:
            UserError: There is none, or the task needs a file and none is named.
        """
        kind = TASKS.load(name)
        if kind.reads_file and kind.file is None:
            kind = kind.of_file("")  # says how to name one
        # Two files of one name in two folders are two tasks.
        key = kind.name if kind.file is None else f"{kind.name}:{kind.file}"
        if key not in self._tasks:
            self._tasks[key] = kind(self.data_dir)
        return self._tasks[key]

    def examples(self, task: Task, split: str) -> Sequence[Example]:
        """All examples of an evaluated split, read once.

        Raises:
            UserError: There are none, or they cannot be read.
        """
        key = (task, split)
        if key not in self._examples:
            found = task.examples(split)
            if not found:
                raise UserError(f"task {task.name}: split {split!r} has no examples")
            self._examples[key] = found
        return self._examples[key]

    def few_shot(self, task: Task, count: int, seed: int) -> list[Example]:
        """`count` training examples, drawn by seed. They come from the train split alone.

        Only the drawn ones are kept in memory.

        Raises:
            UserError: There are fewer, or none can be read.
        """
        key = (task, count, seed)
        if count and "train" not in task.card.splits:
            raise UserError(f"task {task.name} has no training part to draw examples from: set -o shots=0")
        if count and key not in self._few_shot:
            train = task.examples("train")
            if len(train) < count:
                raise UserError(
                    f"task {task.name} has {len(train)} training examples: -o shots={count} asks for more"
                )
            drawn = sorted(train, key=lambda example: derive_seed(seed, "shots", example.id))
            self._few_shot[key] = drawn[:count]
        return self._few_shot.get(key, [])

    def corpus(self, task: Task, given: str | None = None, training: bool = False) -> Corpus:
        """What is searched for a task's questions: the given corpus, else the task's own.

        Args:
            task: Whose questions.
            given: What --corpus names.
            training: Whether it is searched while training; a task that pools the paragraphs of its
                questions then pools those of the training questions.

        Raises:
            UserError: There is none.
        """
        if given is not None:
            return self.given_corpus(given)
        if not task.has_corpus:
            raise UserError(
                f"task {task.name} has no corpus of its own: name one with --corpus, "
                "or use a method that does not retrieve"
            )
        key = (task, training)
        if key not in self._own_corpora:
            corpus = task.training_corpus() if training else task.corpus()
            # Tasks that share a corpus share its digest too.
            same = [known for known in self._own_corpora.values() if known.name == corpus.name]
            self._own_corpora[key] = same[0] if same else corpus
        return self._own_corpora[key]

    def given_corpus(self, given: str) -> Corpus:
        """What --corpus names.

        Raises:
            UserError: There is none.
        """
        if given not in self._given_corpora:
            self._given_corpora[given] = open_corpus(given, data_folder(self.data_dir))
        return self._given_corpora[given]

    def describe_engine(self, conditions: Conditions, tokens: tuple[str, ...] = ()) -> Mapping[str, Any]:
        """The engine's signature, without loading weights.

        Args:
            conditions: Which model, and how it is run.
            tokens: The control tokens that the method needs.
        """
        from ragtrials.llm.build import describe_model

        key = (*_engine_key(conditions), tokens)
        if key not in self._descriptions:
            options = _engine_options(conditions)
            self._descriptions[key] = describe_model(conditions.model, **options, tokens=tokens)
        return self._descriptions[key]

    def engine(
        self,
        conditions: Conditions,
        policies: Mapping[str, Path] | None = None,
        tokens: tuple[str, ...] = (),
    ) -> Engine:
        """The loaded engine, with trained weights by role if there are any.

        Args:
            conditions: Which model, and how it is run.
            policies: Trained weights.
            tokens: The control tokens that the method needs.
        """
        from ragtrials.llm.build import load_engine

        policies = policies or {}
        key = (*_engine_key(conditions), tokens, *sorted((role, str(f)) for role, f in policies.items()))
        if key not in self._engines:
            self.free_engine()
            self._engines[key] = load_engine(
                conditions.model, **_engine_options(conditions), policies=policies, tokens=tokens
            )
        return self._engines[key]

    def free_engine(self) -> None:
        """Unload the engine, so that its memory is there for another or for training."""
        self._engines.clear()

    def describe_retriever(
        self, conditions: Conditions, task: Task, training: bool = False
    ) -> Mapping[str, Any]:
        """The retriever's signature, without building an index."""
        from ragtrials.retrieval.build import describe_retriever

        _check_gold(conditions, task)
        corpus = self.corpus(task, conditions.corpus, training)
        return describe_retriever(conditions.retriever, corpus, seed=conditions.seed)

    def retriever(
        self, conditions: Conditions, task: Task, asked: Sequence[Example] | None = None
    ) -> Retriever:
        """The loaded retriever; its index is built if it is not in the cache.

        Args:
            conditions: Which one.
            task: Whose corpus.
            asked: The training examples that it will be asked for, over the training corpus; None for the
                evaluated split over the evaluated corpus.
        """
        from ragtrials.retrieval.build import load_retriever

        _check_gold(conditions, task)
        training = asked is not None
        corpus = self.corpus(task, conditions.corpus, training)
        split = conditions.split or task.card.reported_split
        # Only the diagnostics know the questions, so only they differ from task to task.
        asker = None if conditions.retriever == "bm25" else (task, split, conditions.seed, training)
        key = (conditions.retriever, corpus.name, corpus.digest, asker)
        if key not in self._retrievers:
            self._retrievers[key] = load_retriever(
                conditions.retriever,
                corpus,
                examples=self.examples(task, split) if asked is None else asked,
                seed=conditions.seed,
            )
        return self._retrievers[key]


def knows_gold(task: Task, corpus: str | None) -> bool:
    """Whether the gold passages of a task are passages of what is searched.

    Those of a task with a corpus are passages of that one; a task without can only mean the given one.
    """
    return corpus is None or not task.has_corpus


def as_asked(examples: Sequence[Example], task: Task, corpus: str | None) -> Sequence[Example]:
    """The examples with the gold passages that what is searched can have: without any in another corpus."""
    return examples if knows_gold(task, corpus) else [replace(e, supporting=()) for e in examples]


def _check_gold(conditions: Conditions, task: Task) -> None:
    if conditions.retriever == "oracle" and not knows_gold(task, conditions.corpus):
        raise UserError(
            f"the oracle retriever knows the gold passages of task {task.name} in its own corpus alone: "
            "use another retriever, or leave --corpus out"
        )


def _engine_options(conditions: Conditions) -> dict[str, Any]:
    return {
        "engine": conditions.engine,
        "dtype": conditions.dtype,
        "device": conditions.device,
        "batch_size": conditions.batch_size,
        "max_prompt_tokens": conditions.max_prompt_tokens,
    }


def _engine_key(conditions: Conditions) -> tuple[Any, ...]:
    return (conditions.model, *_engine_options(conditions).values())
