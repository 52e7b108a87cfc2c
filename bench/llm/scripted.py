"""An engine that answers from a function or a list: for tests, examples and benchmarks of all the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ragtrials.errors import RunFailure
from ragtrials.program import Completion, Generate, Message, Score


class ScriptedEngine:
    """Answers at once with what it is told; tokens are whitespace-separated words.

    Args:
        respond: The reply to a request: a function of the request, a mapping from role to reply (roles
            that it lacks are an error), or replies to be given in turn (an error when they run out).
        log_probability: The log-probability that every token gets, generated, watched or scored.
        name: What the signature calls the script; give different scripts different names.
    """

    def __init__(
        self,
        respond: Callable[[Generate], str] | Mapping[str, str] | Sequence[str],
        *,
        log_probability: float = -1.0,
        name: str = "scripted",
    ) -> None:
        self._respond = respond if callable(respond) else _lookup(respond)
        self._log_probability = log_probability
        self._name = name

    @property
    def signature(self) -> Mapping[str, Any]:
        """The script's name; its replies cannot be told apart further."""
        return {"engine": "scripted", "model": self._name, "log_probability": self._log_probability}

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        """The scripted replies, in order; cut before stop strings and after `max_new_tokens` words."""
        return [self._complete(request) for request, _ in zip(requests, seeds, strict=True)]

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        """The same log-probability for each word of each continuation."""
        return [self._scored(request) for request in requests]

    def _complete(self, request: Generate) -> Completion:
        text = self._respond(request)
        for stop in request.stop:
            text = text.partition(stop)[0]
        words = len(text.split())
        finish: Literal["stop", "length"] = "stop"
        if words > request.max_new_tokens:
            words, finish = request.max_new_tokens, "length"
            text = " ".join(text.split()[:words])
        if request.watch:
            words = max(1, words)  # a model says one token at least: the end of its turn
        logprobs = (self._log_probability,) * words if request.logprobs else None
        watched = ((self._log_probability,) * len(request.watch),) * words if request.watch else ()
        prompt = _word_ids(request.messages)
        return Completion(text, tuple(range(words)), prompt, logprobs, finish, watched=watched)

    def _scored(self, request: Score) -> Completion:
        words = len(request.continuation.split())
        logprobs = (self._log_probability,) * words
        return Completion(
            request.continuation, tuple(range(words)), _word_ids(request.messages), logprobs, "scored"
        )


def _word_ids(messages: Sequence[Message]) -> tuple[int, ...]:
    """One id per word of a chat; which id is of no account to anyone, how many is."""
    return tuple(range(sum(len(message.text.split()) for message in messages)))


def _lookup(replies: Mapping[str, str] | Sequence[str]) -> Callable[[Generate], str]:
    if isinstance(replies, Mapping):
        by_role = replies

        def of_role(request: Generate) -> str:
            if request.role not in by_role:
                raise RunFailure(
                    f"the script has no reply for the role {request.role!r}: it has {sorted(by_role)}"
                )
            return by_role[request.role]

        return of_role
    in_turn = iter(replies)

    def next_reply(request: Generate) -> str:
        try:
            return next(in_turn)
        except StopIteration:
            raise RunFailure(f"the script has {len(replies)} replies, and one more was asked for") from None

    return next_reply
