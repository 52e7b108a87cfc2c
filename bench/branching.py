"""Other ways that a question could go on: a trace is branched at a step into alternatives.

A Python generator cannot be copied. So a branch starts the program anew and hands it the recorded
results of the first steps, without calling any model or retriever; from there on it is served live.
This is how the effect of one agent's output on the final answer is measured (RAG-DDR §3.2: perturb an
agent's output, then roll out the rest of the system).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragtrials.errors import RunFailure
from ragtrials.program import Completion, Request, Result, Retrieve, Step, Trace


@dataclass(frozen=True, slots=True)
class Branch:
    """One other way that a question could go on.

    Attributes:
        example_id: The example that the question belongs to.
        question: What the program is asked.
        replayed: Recorded steps, from the first. The program must ask for exactly these again, in
            this order, and gets the recorded results. They may end in the middle of a parallel round.
        forced: What these requests return wherever they come after the replayed steps.
        sample: Which draw this is. Seeds depend on it: two branches of one example and sample draw
            the same, two samples draw differently.

    Raises:
        RunFailure: A result is not of its request's kind, such as a text for a retrieval.
    """

    example_id: str
    question: str
    replayed: tuple[Step, ...] = ()
    forced: Mapping[Request, Result] = field(default_factory=dict)
    sample: int = 0

    def __post_init__(self) -> None:
        for step in self.replayed:
            self._check(step.request, step.result)
        for request, result in self.forced.items():
            self._check(request, result)

    def _check(self, request: Request, result: Result) -> None:
        if isinstance(request, Retrieve) == isinstance(result, Completion):
            kind = type(result).__name__
            raise RunFailure(f"example {self.example_id}: a {kind} cannot be the result of a {request.kind}")


def alternatives(trace: Trace, question: str, step: int, results: Sequence[Result]) -> list[Branch]:
    """Branch a trace at one step: one branch per result that this step could have had instead.

    Steps before it are replayed. So are the other steps of its parallel round: they were asked for
    before anything could depend on it. Later rounds are live.

    Args:
        trace: What was recorded.
        question: The question that the trace answers.
        step: Which of `trace.steps`, counted from 0.
        results: The alternatives; they become samples 0, 1, ….

    Raises:
        RunFailure: The trace has no such step, or a result is not of the step's kind.
    """
    name, count = trace.example_id, len(trace.steps)
    if not 0 <= step < count:
        raise RunFailure(f"example {name}: no step {step} to branch at, the trace has {count} steps")
    branched = trace.steps[step]
    before = trace.steps[:step]
    beside = tuple(later for later in trace.steps[step + 1 :] if later.round == branched.round)
    return [
        Branch(name, question, (*before, replace(branched, result=result), *beside), sample=number)
        for number, result in enumerate(results)
    ]
