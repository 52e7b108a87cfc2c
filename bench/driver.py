"""Advances many programs in lock-step and pools their requests into batches.

In each round every live program has yielded one request or a list of them. Requests of one kind (and,
for generation, one role) go to the retriever or engine in one call, in example order. Each request
and its result become a `Step` of the question's trace, so a method cannot spend anything unrecorded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ragtrials.errors import RunFailure, UserError
from ragtrials.program import (
    Completion,
    Engine,
    Generate,
    Program,
    Request,
    Result,
    Retrieve,
    Retriever,
    Score,
    Step,
    Trace,
)
from ragtrials.seeding import derive_seed


@dataclass
class Timing:
    """Seconds spent waiting for the retriever and for the engine."""

    retriever: float = 0.0
    engine: float = 0.0


@dataclass(slots=True)
class _Run:
    """One program on its way: what it waits for, and what has happened so far."""

    example_id: str
    program: Program
    round: int = -1
    requests: Sequence[Request] = ()
    parallel: bool = False
    results: list[Result | None] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    answer: str | None = None

    def advance(self, value: Any) -> None:
        """Resume the program with `value` until its next yield or its end."""
        with _Naming(self.example_id):
            try:
                yielded: Any = self.program.send(value)
            except StopIteration as end:
                if not isinstance(end.value, str):
                    raise RunFailure(f"answered {end.value!r}, which is no text") from None
                self.answer, self.requests = end.value, ()
                return
            self.parallel = isinstance(yielded, list | tuple)
            self.requests = tuple(yielded) if isinstance(yielded, list | tuple) else (yielded,)
            for request in self.requests:
                if not isinstance(request, Retrieve | Generate | Score):
                    raise RunFailure(f"yielded {request!r}, which is no request")
        self.round += 1
        self.results = [None] * len(self.requests)
        self.seconds = [0.0] * len(self.requests)

    def resume(self) -> None:
        """Record the round's steps, then give the program its results."""
        for request, result, seconds in zip(self.requests, self.results, self.seconds, strict=True):
            assert result is not None
            self.steps.append(Step(self.round, request, result, seconds))
        self.advance(list(self.results) if self.parallel else self.results[0])


class _Naming:
    """Turns whatever a program raises into a `RunFailure` that names the example."""

    def __init__(self, example_id: str) -> None:
        self.example_id = example_id

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, UserError):
            return
        if isinstance(error, RunFailure):
            raise RunFailure(f"example {self.example_id}: the program {error}") from error
        if isinstance(error, Exception):
            raise RunFailure(f"example {self.example_id}: {type(error).__name__}: {error}") from error


class Driver:
    """Runs programs against one retriever and one engine.

    Args:
        retriever: Serves `Retrieve`; None if the method may not retrieve.
        engine: Serves `Generate` and `Score`.
        seed: With the example's id and the step's number it decides every sampled token.
    """

    def __init__(self, retriever: Retriever | None, engine: Engine, seed: int = 0) -> None:
        self.retriever = retriever
        self.engine = engine
        self.seed = seed
        self.timing = Timing()

    def run(self, answer: Callable[[str], Program], questions: Iterable[tuple[str, str]]) -> list[Trace]:
        """Answer (example id, question) pairs together; traces come in the same order.

        Raises:
            RunFailure: A program, named by its example, raised or yielded something else than a request.
        """
        runs = []
        for example_id, question in questions:
            with _Naming(example_id):
                run = _Run(example_id, answer(question))
            run.advance(None)
            runs.append(run)
        while live := [run for run in runs if run.answer is None]:
            self._serve(live)
            for run in live:
                run.resume()
        return [Trace(run.example_id, run.answer or "", tuple(run.steps)) for run in runs]

    def _serve(self, live: Sequence[_Run]) -> None:
        """Fill in the results of all pending requests."""
        pools: dict[tuple[Any, ...], list[tuple[_Run, int]]] = {}
        for run in live:
            for slot, request in enumerate(run.requests):
                pools.setdefault(_pool(request), []).append((run, slot))
        for key in sorted(pools):
            waiting = pools[key]
            started = time.perf_counter()
            results = self._call(key, waiting)
            elapsed = time.perf_counter() - started
            if key[0] == "retrieve":
                self.timing.retriever += elapsed
            else:
                self.timing.engine += elapsed
            share = elapsed / len(waiting)
            for (run, slot), result in zip(waiting, results, strict=True):
                run.results[slot] = result
                run.seconds[slot] = share

    def _call(self, key: tuple[Any, ...], waiting: Sequence[tuple[_Run, int]]) -> Sequence[Result]:
        requests: list[Any] = [run.requests[slot] for run, slot in waiting]
        if key[0] == "retrieve":
            if self.retriever is None:
                raise RunFailure(
                    f"example {waiting[0][0].example_id}: a method with `retrieves = False` asked to retrieve"
                )
            found = self.retriever.search(
                [request.query for request in requests],
                key[1],
                example_ids=[run.example_id for run, _ in waiting],
            )
            return [tuple(hits) for hits in found]
        if key[0] == "generate":
            seeds = [
                derive_seed(self.seed, run.example_id, len(run.steps) + slot)
                if request.temperature > 0
                else 0
                for (run, slot), request in zip(waiting, requests, strict=True)
            ]
            completions: list[Completion] = self.engine.generate(requests, seeds)
            return completions
        return self.engine.score(requests)


def _pool(request: Request) -> tuple[Any, ...]:
    """What is served in one call: retrievals of one k; generations, or scores, of one role."""
    return (request.kind, request.k if isinstance(request, Retrieve) else request.role)
