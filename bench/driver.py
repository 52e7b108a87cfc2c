"""Advances many programs in lock-step and pools their requests into batches.

In each round every live program has yielded one request or a list of them. Requests of one kind (and,
for generation, one role) go to the retriever or engine in one call, in example order. Each request
and its result become a `Step` of the question's trace, so a method cannot spend anything unrecorded.

A `Branch` starts a program with results that are known already. Branches stay in lock-step while they
replay, so that requests of the same round, which are mostly of one kind, are still served together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ragtrials.branching import Branch
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
    """What was really served: replayed and forced results count nothing.

    Attributes:
        retriever: Seconds spent waiting for the retriever.
        engine: Seconds spent waiting for the engine.
        retrieval_calls: Queries that the retriever answered.
        llm_calls: Generations and scores that the engine answered.
        prompt_tokens: Tokens that the engine read, scored continuations included (as in `Step.cost`).
        completion_tokens: Tokens that the engine wrote.
    """

    retriever: float = 0.0
    engine: float = 0.0
    retrieval_calls: int = 0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def count(self, served: Step) -> None:
        """Add the calls and tokens of one served request."""
        if isinstance(served.request, Retrieve):
            self.retrieval_calls += 1
            return
        cost = served.cost
        self.llm_calls += 1
        self.prompt_tokens += cost.prompt_tokens
        self.completion_tokens += cost.completion_tokens


@dataclass(slots=True)
class _Run:
    """One program on its way: what it waits for, and what has happened so far."""

    branch: Branch
    program: Program
    round: int = -1
    requests: Sequence[Request] = ()
    parallel: bool = False
    current: list[Step | None] = field(default_factory=list)  # of this round; None waits to be served
    steps: list[Step] = field(default_factory=list)
    answer: str | None = None

    def advance(self, value: Any) -> None:
        """Resume the program with `value` until its next yield or its end."""
        with _Naming(self.branch.example_id):
            try:
                yielded: Any = self.program.send(value)
            except StopIteration as end:
                self.end(end.value)
                return
            self.parallel = isinstance(yielded, list | tuple)
            self.requests = tuple(yielded) if isinstance(yielded, list | tuple) else (yielded,)
            for request in self.requests:
                if not isinstance(request, Retrieve | Generate | Score):
                    raise RunFailure(f"yielded {request!r}, which is no request")
            self.round += 1
            if self.branch.replayed or self.branch.forced:
                self.current = [self.known(n, r) for n, r in enumerate(self.requests, len(self.steps))]
            else:
                self.current = [None] * len(self.requests)

    def known(self, number: int, request: Request) -> Step | None:
        """Step `number` of the program if its result is known without serving `request`."""
        if number < len(self.branch.replayed):
            recorded = self.branch.replayed[number]
            if request != recorded.request:
                raise RunFailure(f"asked something else than what was recorded at step {number}")
            return Step(self.round, request, recorded.result)
        if request in self.branch.forced:
            return Step(self.round, request, self.branch.forced[request])
        return None

    def end(self, answer: Any) -> None:
        """Take the program's answer."""
        if not isinstance(answer, str):
            raise RunFailure(f"answered {answer!r}, which is no text") from None
        if len(self.steps) < len(self.branch.replayed):
            recorded = len(self.branch.replayed)
            raise RunFailure(f"ended after {len(self.steps)} of the {recorded} recorded steps") from None
        self.answer, self.requests = answer, ()

    def resume(self) -> None:
        """Record the round's steps, then give the program its results."""
        results = []
        for step in self.current:
            assert step is not None
            self.steps.append(step)
            results.append(step.result)
        self.advance(results if self.parallel else results[0])


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
        seed: With the example's id, the step's number and the sample it decides every sampled token.
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
        return self.branch(answer, [Branch(example_id, question) for example_id, question in questions])

    def branch(self, answer: Callable[[str], Program], branches: Sequence[Branch]) -> list[Trace]:
        """Answer the branches' questions together; traces come in the same order.

        Replayed and forced steps are in the traces too, with 0 seconds.

        Raises:
            RunFailure: As for `run`; or a program asked for something else than its branch recorded, or
                ended before it had asked for all of it. Steps count from 0 in the message.
        """
        runs = []
        for branch in branches:
            with _Naming(branch.example_id):
                program = answer(branch.question)
            runs.append(_Run(branch, program))
        self._finish(runs)
        return [Trace(run.branch.example_id, run.answer or "", tuple(run.steps)) for run in runs]

    def ask(self, requests: Sequence[tuple[str, Request, int]]) -> list[Result]:
        """Serve single requests outside of any method's program; results come in the same order.

        Args:
            requests: Example id, request and sample of each. Seeds are those of a program's first step,
                so requests of one example that are to draw independently need different samples.

        Raises:
            RunFailure: Something is no request, or there is no retriever to ask.
        """
        runs = [
            _Run(Branch(example_id, "", sample=sample), _asking(request))
            for example_id, request, sample in requests
        ]
        self._finish(runs)
        return [run.steps[0].result for run in runs]

    def _finish(self, runs: Sequence[_Run]) -> None:
        """Advance all programs to their ends."""
        for run in runs:
            run.advance(None)
        while live := [run for run in runs if run.answer is None]:
            self._serve(live)
            for run in live:
                run.resume()

    def _serve(self, live: Sequence[_Run]) -> None:
        """Fill in the steps of all requests that wait."""
        pools: dict[tuple[Any, ...], list[tuple[_Run, int]]] = {}
        for run in live:
            for slot, request in enumerate(run.requests):
                if run.current[slot] is None:
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
                step = Step(run.round, run.requests[slot], result, share)
                run.current[slot] = step
                self.timing.count(step)

    def _call(self, key: tuple[Any, ...], waiting: Sequence[tuple[_Run, int]]) -> Sequence[Result]:
        requests: list[Any] = [run.requests[slot] for run, slot in waiting]
        if key[0] == "retrieve":
            if self.retriever is None:
                first = waiting[0][0].branch.example_id
                raise RunFailure(f"example {first}: a method with `retrieves = False` asked to retrieve")
            found = self.retriever.search(
                [request.query for request in requests],
                key[1],
                example_ids=[run.branch.example_id for run, _ in waiting],
            )
            return [tuple(hits) for hits in found]
        if key[0] == "generate":
            seeds = [
                self._seed(run.branch, len(run.steps) + slot) if request.temperature > 0 else 0
                for (run, slot), request in zip(waiting, requests, strict=True)
            ]
            completions: list[Completion] = self.engine.generate(requests, seeds)
            return completions
        return self.engine.score(requests)

    def _seed(self, branch: Branch, number: int) -> int:
        """The seed of step `number`. Sample 0 is a plain run's."""
        sample = (branch.sample,) if branch.sample else ()
        return derive_seed(self.seed, branch.example_id, number, *sample)


def _pool(request: Request) -> tuple[Any, ...]:
    """What is served in one call: retrievals of one k; generations, or scores, of one role."""
    return (request.kind, request.k if isinstance(request, Retrieve) else request.role)


def _asking(request: Request) -> Program:
    """A program of one request."""
    yield request
    return ""
