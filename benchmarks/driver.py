"""Driver overhead: 10,000 questions of 3 requests with an engine of no latency.

    python benchmarks/driver.py [--check]

--check exits with 1 if the overhead is above the limit of 60 microseconds per request.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from ragtrials.driver import Driver
from ragtrials.program import Completion, Generate, Hit, Program, Retrieve, Score, generate, retrieve, user

QUESTIONS = 10_000
LIMIT_MICROSECONDS = 60.0
COMPLETION = Completion("text", (1, 2, 3), (1, 2, 3, 4))


class Instant:
    """A retriever and engine that answer at once."""

    signature: dict[str, str] = {}  # noqa: RUF012

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        return [[] for _ in queries]

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        return [COMPLETION] * len(requests)

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        return [COMPLETION] * len(requests)


def three_requests(question: str) -> Program:
    yield from retrieve(question, k=5)
    yield Retrieve(question, 5)
    reply = yield from generate([user(question)], temperature=1.0)  # sampled: the seed is derived too
    return reply.text


def microseconds_per_request(questions: int = QUESTIONS) -> float:
    instant = Instant()
    pairs = [(f"q{i}", f"question {i}") for i in range(questions)]
    started = time.perf_counter()
    traces = Driver(instant, instant).run(three_requests, pairs)
    elapsed = time.perf_counter() - started
    requests = sum(len(trace.steps) for trace in traces)
    assert requests == 3 * questions
    return elapsed / requests * 1e6


def main() -> int:
    best = min(microseconds_per_request() for _ in range(3))
    print(f"{QUESTIONS:,} questions x 3 requests: {best:.1f} us per request (limit {LIMIT_MICROSECONDS:.0f})")
    return int("--check" in sys.argv and best > LIMIT_MICROSECONDS)


if __name__ == "__main__":
    sys.exit(main())
