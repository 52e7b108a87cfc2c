"""What vLLM is asked for a request, and what its answer says. Imports no vLLM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ragtrials.errors import UserError
from ragtrials.llm.batches import Job
from ragtrials.llm.decoding import Decoding

LEAST_TEMPERATURE = 0.01
"""vLLM raises a lower temperature above 0 to this one."""


class TokenLogprob(Protocol):
    """vLLM's `Logprob`."""

    @property
    def logprob(self) -> float:
        """A natural log-probability."""
        ...


Position: TypeAlias = Mapping[int, TokenLogprob]
"""The log-probabilities at one token, by id."""


class Output(Protocol):
    """vLLM's `CompletionOutput`."""

    @property
    def token_ids(self) -> Sequence[int]:
        """The new ids, the one that ended generation included."""
        ...

    @property
    def logprobs(self) -> Sequence[Position] | None:
        """For each of them the asked log-probabilities."""
        ...

    @property
    def finish_reason(self) -> str | None:
        """Why it ended: "stop" or "length"."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """What vLLM wrote, in the words of `Transcriber.generated`.

    Attributes:
        tokens: The new ids.
        stopped_at: How many there were when a stop string or an end came; None if neither did.
        logprobs: The log-probability of each, if wanted.
        seen: For each the log-probabilities of the watched tokens.
    """

    tokens: tuple[int, ...]
    stopped_at: int | None
    logprobs: tuple[float, ...] | None
    seen: tuple[tuple[float, ...], ...]


def check_possible(decoding: Decoding) -> None:
    """Hold that vLLM can do what is asked.

    It computes log-probabilities of the plain logits, which are those under the sampling temperature, over
    the whole vocabulary, for greedy decoding and at temperature 1 alone.

    Raises:
        UserError: It cannot.
    """
    temperature = decoding.temperature
    if (decoding.logprobs or decoding.watch) and temperature not in (0, 1):
        raise UserError(
            f"--engine vllm has log-probabilities at temperature 0 and 1 alone, not at {temperature}: "
            "use --engine hf"
        )
    if 0 < temperature < LEAST_TEMPERATURE:
        raise UserError(
            f"--engine vllm samples at temperature {LEAST_TEMPERATURE} or more, not at {temperature}: "
            "use --engine hf, or 0"
        )


def generating(job: Job, decoding: Decoding, ends: Sequence[int], watched: Sequence[int]) -> dict[str, Any]:
    """The `SamplingParams` of a request.

    Args:
        job: What is read.
        decoding: How it is answered; possible by `check_possible`.
        ends: The ids after which generation ends.
        watched: The ids whose log-probabilities are wanted.
    """
    return {
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "seed": job.seed % 2**63 if decoding.temperature else None,
        "max_tokens": decoding.max_new_tokens,
        "stop": list(decoding.stop),
        "detokenize": bool(decoding.stop),  # text is made here, from the ids
        "stop_token_ids": list(ends),
        "ignore_eos": True,  # `ends` has every end
        "allowed_token_ids": list(job.allowed) or None,
        # With ids that are watched the chosen token's comes by itself.
        "logprobs": 0 if decoding.logprobs and not watched else None,
        "logprob_token_ids": list(watched) or None,
    }


def answered(output: Output, decoding: Decoding, watched: Sequence[int]) -> Answered:
    """What vLLM wrote for a request of `generating`."""
    tokens, positions = tuple(output.token_ids), output.logprobs or ()
    return Answered(
        tokens,
        len(tokens) if output.finish_reason == "stop" else None,
        _of(tokens, positions) if decoding.logprobs else None,
        tuple(tuple(position[token].logprob for token in watched) for position in positions)
        if watched
        else (),
    )


def scoring(job: Job) -> dict[str, Any]:
    """The `SamplingParams` that score a continuation of one token or more.

    vLLM always writes a token. So all but the last are read, and the last is looked for in its place: the
    sequence is never longer than prompt and continuation are.
    """
    return {
        "temperature": 0.0,
        "max_tokens": 1,
        "ignore_eos": True,
        "detokenize": False,
        "prompt_logprobs": 0 if len(job.continuation) > 1 else None,  # 0: of the prompt's own tokens alone
        "logprob_token_ids": [job.continuation[-1]],
    }


def scores(job: Job, read: Sequence[Position | None] | None, output: Output) -> tuple[float, ...]:
    """The log-probability of each token of a continuation.

    Args:
        job: The prompt and the continuation.
        read: vLLM's `prompt_logprobs`.
        output: What it wrote in the place of the last token.
    """
    *earlier, last = job.continuation
    behind = [position for position in (read or ())[len(job.prompt.ids) :] if position is not None]
    return (*_of(earlier, behind), *_of([last], output.logprobs or ()))


def _of(tokens: Sequence[int], positions: Sequence[Position]) -> tuple[float, ...]:
    """The log-probability of each token at its place."""
    return tuple(position[token].logprob for token, position in zip(tokens, positions, strict=True))
