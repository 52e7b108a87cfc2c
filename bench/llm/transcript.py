"""Requests written down as token ids, and token ids read back as completions: the same for every engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ragtrials.llm.batches import Job
from ragtrials.llm.decoding import Decoding, cut_before
from ragtrials.llm.prompts import PromptBuilder
from ragtrials.llm.special import SpecialIds
from ragtrials.program import Completion, Generate, Mark, Score


class Transcriber:
    """What an engine reads for a request, and what it has said by the ids that it wrote.

    Args:
        prompts: Turns chats into ids.
        tokenizer: The model's.
        ids: The model's ids with a meaning of their own.
        context: The longest sequence that the model takes; None where nothing bounds it.
        max_prompt_tokens: Longer prompts have their evidence shortened; the context, less the new tokens, is
            a second bound.
    """

    def __init__(
        self,
        prompts: PromptBuilder,
        tokenizer: Any,
        ids: SpecialIds,
        context: int | None,
        max_prompt_tokens: int,
    ) -> None:
        self._prompts = prompts
        self._tokenizer = tokenizer
        self._ids = ids
        self._context = context
        self._max_prompt_tokens = max_prompt_tokens

    def to_generate(self, index: int, request: Generate, seed: int) -> Job:
        """What is read for a request at place `index`.

        Raises:
            RunFailure: The prompt does not fit even without evidence.
        """
        prompt = self._prompts.build(request.messages, self._budget(request.max_new_tokens))
        return Job(index, prompt, seed if request.temperature else 0, self.allowed_ids(request.allowed))

    def to_score(self, index: int, request: Score) -> Job:
        """What is read for a continuation at place `index`.

        Raises:
            RunFailure: The prompt does not fit even without evidence.
        """
        continuation = self._prompts.encode_text(request.continuation)
        prompt = self._prompts.build(request.messages, self._budget(len(continuation)))
        return Job(index, prompt, continuation=continuation, text=request.continuation)

    def allowed_ids(self, allowed: Sequence[str]) -> tuple[int, ...]:
        """The ids that a request's `allowed` limits it to, sorted; () if nothing is limited.

        They are those of the strings' tokens and of the ends of a turn.
        """
        if not allowed:
            return ()
        ids = {token for text in allowed for token in self._prompts.encode_text(text)}
        return tuple(sorted(ids.union(self._ids.ends)))

    def ends(self, decoding: Decoding) -> list[int]:
        """The ids after which generation ends: those of a turn, then those that the request names."""
        return [*self._ids.ends, *map(self._prompts.token_id, decoding.ends)]

    def watched(self, decoding: Decoding) -> list[int]:
        """The ids of the tokens that a request watches, in its order."""
        return list(map(self._prompts.token_id, decoding.watch))

    def generated(
        self,
        job: Job,
        decoding: Decoding,
        tokens: Sequence[int],
        stopped_at: int | None,
        logprobs: Sequence[float] | None,
        seen: Sequence[Sequence[float]],
    ) -> Completion:
        """The completion that a row of new tokens is, without what stands behind the row's own end.

        Args:
            job: What was read.
            decoding: How it was answered.
            tokens: The new ids, and perhaps padding.
            stopped_at: How many of them there were when a stop string was complete; None if none was.
            logprobs: The log-probability of each, if wanted.
            seen: For each the log-probabilities of the watched tokens.
        """
        finish: Literal["stop", "length"] = "length"
        if stopped_at is not None:
            tokens, finish = tokens[:stopped_at], "stop"
        ends = frozenset(self.ends(decoding))
        end = next((at for at, token in enumerate(tokens) if token in ends), None)
        if end is not None:
            tokens, finish = tokens[: end + 1], "stop"
        names: Mapping[int, str] = dict(zip(self.watched(decoding), decoding.watch, strict=True))
        return Completion(
            text=cut_before(self.text(tokens), decoding.stop),
            token_ids=tuple(tokens),
            prompt_ids=job.prompt.ids,
            logprobs=None if logprobs is None else tuple(logprobs[: len(tokens)]),
            finish=finish,
            dropped_tokens=job.prompt.dropped_tokens,
            watched=tuple(map(tuple, seen[: len(tokens)])),
            marks=tuple(Mark(at, names[token]) for at, token in enumerate(tokens) if token in names),
        )

    def scored(self, job: Job, logprobs: Sequence[float]) -> Completion:
        """The completion that a scored continuation is, with the log-probability of each of its tokens."""
        return Completion(
            text=job.text,
            token_ids=job.continuation,
            prompt_ids=job.prompt.ids,
            logprobs=tuple(logprobs),
            finish="scored",
            dropped_tokens=job.prompt.dropped_tokens,
        )

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens; special ones are dropped by their id, never by how they are spelled."""
        text = self._tokenizer.decode(
            [token for token in tokens if token not in self._ids.special], clean_up_tokenization_spaces=False
        )
        return str(text)

    def _budget(self, new_tokens: int) -> int:
        """How long a prompt may be so that `new_tokens` more fit into the model's context."""
        budget = self._max_prompt_tokens
        return budget if self._context is None else min(budget, self._context - new_tokens)
