"""A method as a program that yields requests, and the record of what they returned.

A program works on one question, top to bottom. It yields a request (or a list of requests that may
run side by side) and receives the result (or the list of results). The driver advances many
programs in lock-step and pools their requests into batches.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from ragtrials.data import Passage


@dataclass(frozen=True, slots=True)
class Evidence:
    """The part of a message that may be shortened when a prompt is too long: passage text."""

    text: str


@dataclass(frozen=True, slots=True)
class Token:
    """A control token by its name, such as "[Retrieval]": one id, which no text spells.

    Only the open turn of the assistant, and what training shows it to say, may hold one.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the model said earlier in the open turn, by the very ids that it chose, and as text."""

    ids: tuple[int, ...]
    text: str


Part: TypeAlias = str | Evidence | Token | Sampled


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat. Plain strings of `content` are never shortened, `Evidence` may be.

    A turn of the role "plain" is no turn: its text is read as it is, without the model's chat template. It
    stands alone, or before an open turn of the assistant.
    """

    role: Literal["system", "user", "assistant", "plain"]
    content: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The whole turn as one string."""
        return "".join(map(_spelled, self.content))


def _spelled(part: Part) -> str:
    if isinstance(part, str):
        return part
    return part.name if isinstance(part, Token) else part.text


def system(*content: str | Evidence) -> Message:
    """A system turn."""
    return Message("system", content)


def user(*content: str | Evidence) -> Message:
    """A user turn."""
    return Message("user", content)


def assistant(*content: Part) -> Message:
    """An assistant turn, as in few-shot examples."""
    return Message("assistant", content)


def plain_text(*content: str | Evidence) -> Message:
    """Text that is read without a chat template."""
    return Message("plain", content)


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Ask the retriever for the `k` best passages for `query`; the result is a tuple of `Hit`."""

    query: str
    k: int
    kind: Literal["retrieve"] = "retrieve"


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask the language model to continue a chat; the result is a `Completion`.

    Attributes:
        messages: The chat. Its last turn is normally the user's; one of the assistant is the beginning of
            the reply, which the model continues (`Completion.text` is what it adds).
        role: Which agent of the method speaks; a trained method may have a policy per role.
        max_new_tokens: Upper bound of generated tokens.
        temperature: 0 is greedy. Above 0, sampling is seeded per example and step.
        top_p: Nucleus mass that sampling is restricted to.
        stop: Generation ends before the first of these strings.
        allowed: If not empty, only tokens of these strings (and the end of the turn) may be chosen.
        logprobs: Whether `Completion.logprobs` is wanted.
        watch: Control tokens whose probabilities are wanted at every generated token (`Completion.watched`).
        ends: Control tokens after which generation ends, as at the end of the turn.
    """

    messages: tuple[Message, ...]
    role: str = "generator"
    max_new_tokens: int = 32
    temperature: float = 0.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    logprobs: bool = False
    watch: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    kind: Literal["generate"] = "generate"


@dataclass(frozen=True, slots=True)
class Score:
    """Ask how likely `continuation` is after a chat; the result is a `Completion` with logprobs."""

    messages: tuple[Message, ...]
    continuation: str
    role: str = "generator"
    kind: Literal["score"] = "score"


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage with the retriever's score (higher is better)."""

    passage: Passage
    score: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A watched token that was generated, and its place among `Completion.token_ids`, from 0."""

    place: int
    name: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model returned.

    Attributes:
        text: The decoded continuation without special tokens, cut before a stop string.
        token_ids: The ids as sampled (or scored), the end-of-turn token included if it was produced.
        prompt_ids: The ids the model was given.
        logprobs: Natural log-probability of each of `token_ids` under the sampling temperature;
            None when not asked for.
        finish: "stop" (end of turn or stop string), "length" (max_new_tokens) or "scored".
        dropped_tokens: How many tokens of evidence were cut so that the prompt fits.
        watched: For each of `token_ids` the natural log-probability of each token that the request watches,
            in its order, under the sampling temperature; () if it watches none.
        marks: The watched tokens among `token_ids`, in order.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    prompt_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] | None = None
    finish: Literal["stop", "length", "scored"] = "stop"
    dropped_tokens: int = 0
    watched: tuple[tuple[float, ...], ...] = ()
    marks: tuple[Mark, ...] = ()


Request: TypeAlias = Retrieve | Generate | Score
Result: TypeAlias = tuple[Hit, ...] | Completion
Program: TypeAlias = Generator[Request | Sequence[Request], Any, str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What an answer cost. Counted per request, so a cache never makes a method look cheaper."""

    retrieval_calls: int = 0
    passages: int = 0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.retrieval_calls + other.retrieval_calls,
            self.passages + other.passages,
            self.llm_calls + other.llm_calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One request of one question and its result.

    Attributes:
        round: Steps of one parallel yield share a round.
        seconds: This request's equal share of the time of the batch that served it.
    """

    round: int
    request: Request
    result: Result
    seconds: float = 0.0

    @property
    def cost(self) -> Cost:
        """The cost of this step alone. A scored continuation counts as prompt: it is read, not written."""
        if isinstance(self.result, Completion):
            read, written = len(self.result.prompt_ids), len(self.result.token_ids)
            if self.result.finish == "scored":
                read, written = read + written, 0
            return Cost(llm_calls=1, prompt_tokens=read, completion_tokens=written, seconds=self.seconds)
        return Cost(retrieval_calls=1, passages=len(self.result), seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class Trace:
    """All that happened for one question, in order, and the answer that came of it."""

    example_id: str
    answer: str
    steps: tuple[Step, ...] = field(default=())

    @property
    def cost(self) -> Cost:
        """The sum over all steps."""
        return sum((step.cost for step in self.steps), Cost())

    @property
    def generations(self) -> tuple[Step, ...]:
        """The steps in which the language model wrote, in order."""
        return tuple(step for step in self.steps if isinstance(step.request, Generate))

    @property
    def retrieved(self) -> tuple[Passage, ...]:
        """All retrieved passages in order of retrieval, each once."""
        seen: dict[str, Passage] = {}
        for step in self.steps:
            if not isinstance(step.result, Completion):
                for hit in step.result:
                    seen.setdefault(hit.passage.id, hit.passage)
        return tuple(seen.values())


def retrieve(query: str, k: int) -> Generator[Retrieve, tuple[Hit, ...], tuple[Passage, ...]]:
    """Retrieve inside a program: `passages = yield from retrieve(question, k=5)`."""
    hits = yield Retrieve(query, k)
    return tuple(hit.passage for hit in hits)


def generate(
    messages: Sequence[Message], role: str = "generator", **options: Any
) -> Generator[Generate, Completion, Completion]:
    """Generate inside a program: `reply = yield from generate(messages, max_new_tokens=32)`."""
    reply = yield Generate(tuple(messages), role=role, **options)
    return reply


class Retriever(Protocol):
    """Anything that finds passages; batch first."""

    @property
    def signature(self) -> Mapping[str, Any]:
        """JSON values that name everything which can change a result (index, settings, versions)."""
        ...

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        """At most `k` hits for each query, best first; never a hit that matches nothing.

        `example_ids` (one per query) says which question asks. Only the diagnostics look at it.
        """
        ...


class Engine(Protocol):
    """Anything that runs a language model; batch first, results in the order of the requests."""

    @property
    def signature(self) -> Mapping[str, Any]:
        """JSON values that name everything which can change a result (weights, dtype, batch, versions)."""
        ...

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        """One completion per request; `seeds[i]` alone decides the sampling of request i."""
        ...

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        """One scored continuation per request, with `logprobs`."""
        ...
