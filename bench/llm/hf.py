"""The transformers engine: left-padded batches, sorted by length, of exact token ids."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from transformers import GenerationConfig

from ragtrials.errors import RunFailure
from ragtrials.llm.decoding import Decoding, StopStrings, TokenChooser, cut_before
from ragtrials.llm.devices import out_of_memory
from ragtrials.llm.loading import load_model, load_tokenizer
from ragtrials.llm.models import ResolvedModel
from ragtrials.llm.prefill import SharedPrefill
from ragtrials.llm.prompts import Prompt, PromptBuilder, special_tokens
from ragtrials.llm.signature import DEFAULT_BATCH_SIZE, DEFAULT_MAX_PROMPT_TOKENS, EngineSettings
from ragtrials.program import Completion, Generate, Score

if TYPE_CHECKING:
    from ragtrials.llm.adapters import Adapters


@dataclass(frozen=True, slots=True)
class _Job:
    """One request on its way: where its result belongs and what the model reads."""

    index: int
    prompt: Prompt
    seed: int = 0
    allowed: tuple[int, ...] = ()
    continuation: tuple[int, ...] = ()
    text: str = ""

    @property
    def order(self) -> tuple[Any, ...]:
        """Longest first, so that the batch that needs most memory comes first. The rest of the key makes
        the batches, and with them every last bit of the results, independent of the requests' order, and
        equal prompts neighbours, so that samples of one prompt share its reading."""
        ids = self.prompt.ids + self.continuation
        return (-len(ids), ids, self.seed, self.allowed)


class HFEngine:
    """Runs a causal language model of transformers on one device; fulfils `ragtrials.program.Engine`.

    In float32, results depend neither on the batch size nor on what else is asked; in bfloat16, rounding
    can differ with the batch, so the batch size is part of the signature.

    Where a batch samples one prompt several times, the prompt is read once; a batch size that is a multiple
    of the number of samples reads every prompt once.

    Args:
        model: What `resolve_model` found.
        dtype: "auto" (bfloat16 where the device computes in it, else float32), "bfloat16", "float16"
            or "float32".
        device: "auto" (CUDA where there is one, else the CPU), "cpu", "cuda", "cuda:N" or "mps".
        batch_size: Rows at once; several samples of one prompt are as many rows.
        max_prompt_tokens: Longer prompts have their evidence shortened; the model's context, less the
            new tokens, is a second bound.
        adapters: LoRA adapter folders by role, checked by `ragtrials.llm.policy.check_policy`. Requests of
            other roles are answered by the model as it is. The signature does not name them.

    Raises:
        UserError: The folder cannot be loaded as a chat model, a setting is wrong, or an adapter is not
            one of this model.
    """

    def __init__(
        self,
        model: ResolvedModel,
        *,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int = DEFAULT_BATCH_SIZE,
        max_prompt_tokens: int = DEFAULT_MAX_PROMPT_TOKENS,
        adapters: Mapping[str, Path] | None = None,
    ) -> None:
        self.name = model.name
        self.settings = settings = EngineSettings.resolve(dtype, device, batch_size, max_prompt_tokens)
        self.tokenizer = load_tokenizer(model)
        self._prompts = PromptBuilder(self.tokenizer, model.name)
        self.model = load_model(model, settings.dtype, settings.device)
        self._signature = settings.signature(model)
        self._ends = _end_ids(self.model.generation_config.eos_token_id, self.tokenizer.eos_token_id)
        self._special = frozenset(special_tokens(self.tokenizer)).union(self._ends)
        pad = self.tokenizer.pad_token_id
        self._pad: int = pad if pad is not None else min(self._ends, default=0)
        self._context: int | None = getattr(
            self.model.config.get_text_config(), "max_position_embeddings", None
        )
        # What a model's folder recommends (sampling, a repetition penalty) would leak into greedy decoding:
        # `generate` fills whatever its own configuration leaves open from here.
        self.model.generation_config = GenerationConfig()
        self._adapters: Adapters | None = None
        if adapters:
            from ragtrials.llm.adapters import Adapters  # imports peft, which nothing else here needs

            self._adapters = Adapters(self.model, adapters, model.name)
        self._prefill = SharedPrefill(self.model)
        self._keeps_logits = "logits_to_keep" in inspect.signature(self.model.forward).parameters

    @property
    def signature(self) -> Mapping[str, Any]:
        """JSON values that name everything which can change a result."""
        return dict(self._signature)

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        """One completion per request, in order; `seeds[i]` alone decides the sampling of request i.

        Raises:
            RunFailure: A prompt does not fit even without evidence, or memory ran out.
            UserError: A setting of a request is out of range.
        """
        groups: dict[tuple[str | None, Decoding], list[_Job]] = {}
        for index, (request, seed) in enumerate(zip(requests, seeds, strict=True)):
            decoding = Decoding.of(request)
            prompt = self._prompts.build(request.messages, self._budget(request.max_new_tokens))
            job = _Job(index, prompt, seed if request.temperature else 0, self._allowed_ids(request.allowed))
            groups.setdefault((self._adapter(request.role), decoding), []).append(job)
        results: dict[int, Completion] = {}
        for (adapter, decoding), jobs in groups.items():
            self._activate(adapter)
            for batch in self._batches(jobs):
                results.update(self._generate_batch(batch, decoding))
        return [results[index] for index in range(len(requests))]

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        """For each request the log-probabilities of its continuation's tokens, at temperature 1.

        Raises:
            RunFailure: A prompt does not fit even without evidence, or memory ran out.
        """
        groups: dict[str | None, list[_Job]] = {}
        for index, request in enumerate(requests):
            continuation = self._prompts.encode_text(request.continuation)
            prompt = self._prompts.build(request.messages, self._budget(len(continuation)))
            job = _Job(index, prompt, continuation=continuation, text=request.continuation)
            groups.setdefault(self._adapter(request.role), []).append(job)
        results: dict[int, Completion] = {}
        for adapter, jobs in groups.items():
            self._activate(adapter)
            for batch in self._batches(jobs):
                results.update(self._score_batch(batch))
        return [results[index] for index in range(len(requests))]

    def _adapter(self, role: str) -> str | None:
        """What answers a role: the name of an adapter, or None for the model as it is."""
        return self._adapters.name(role) if self._adapters else None

    def _activate(self, adapter: str | None) -> None:
        if self._adapters:
            self._adapters.activate(adapter)

    def _batches(self, jobs: Sequence[_Job]) -> Iterator[list[_Job]]:
        ordered = sorted(jobs, key=lambda job: job.order)
        size = self.settings.batch_size
        return (ordered[start : start + size] for start in range(0, len(ordered), size))

    def _budget(self, new_tokens: int) -> int:
        """How long a prompt may be so that `new_tokens` more fit into the model's context."""
        budget = self.settings.max_prompt_tokens
        return budget if self._context is None else min(budget, self._context - new_tokens)

    def _allowed_ids(self, allowed: Sequence[str]) -> tuple[int, ...]:
        """The ids of the allowed strings' tokens and of the ends of a turn; () if nothing is limited."""
        if not allowed:
            return ()
        ids = {token for text in allowed for token in self._prompts.encode_text(text)}
        return tuple(sorted(ids.union(self._ends)))

    def _generate_batch(self, batch: Sequence[_Job], decoding: Decoding) -> list[tuple[int, Completion]]:
        prompts = [job.prompt.ids for job in batch]
        input_ids, mask = self._left_padded(prompts)
        chooser = TokenChooser(
            decoding,
            [job.seed for job in batch],
            [job.allowed for job in batch] if decoding.restricted else None,
        )
        stops = StopStrings(decoding.stop, self._decode, self._special, len(batch)) if decoding.stop else None
        with self._computing():
            read = self._prefill.read(prompts, input_ids, mask) if decoding.temperature else {}
            output = self.model.generate(
                input_ids,
                attention_mask=mask,
                generation_config=GenerationConfig(
                    do_sample=False,
                    max_new_tokens=decoding.max_new_tokens,
                    eos_token_id=list(self._ends) or None,
                    pad_token_id=self._pad,
                ),
                logits_processor=[] if decoding.plain else [chooser],
                stopping_criteria=[stops] if stops else [],
                **read,
            )
        rows = output[:, input_ids.shape[1] :].tolist()
        lengths = stops.lengths if stops else [None] * len(batch)
        logprobs = torch.stack(chooser.logprobs, dim=1).tolist() if decoding.logprobs else [None] * len(batch)
        return [
            (job.index, self._completion(job, decoding, *row))
            for job, *row in zip(batch, rows, lengths, logprobs, strict=True)
        ]

    def _completion(
        self,
        job: _Job,
        decoding: Decoding,
        tokens: list[int],
        stopped_at: int | None,
        logprobs: list[float] | None,
    ) -> Completion:
        """The result of one row: its tokens up to its own end, without what `generate` appended to it."""
        finish: Literal["stop", "length"] = "length"
        if stopped_at is not None:
            tokens, finish = tokens[:stopped_at], "stop"
        end = next((at for at, token in enumerate(tokens) if token in self._ends), None)
        if end is not None:
            tokens, finish = tokens[: end + 1], "stop"
        return Completion(
            text=cut_before(self._decode(tokens), decoding.stop),
            token_ids=tuple(tokens),
            prompt_ids=job.prompt.ids,
            logprobs=None if logprobs is None else tuple(logprobs[: len(tokens)]),
            finish=finish,
            dropped_tokens=job.prompt.dropped_tokens,
        )

    def _score_batch(self, batch: Sequence[_Job]) -> list[tuple[int, Completion]]:
        input_ids, mask = self._left_padded([job.prompt.ids + job.continuation for job in batch])
        # The continuations stand at the end of all rows, so logits are needed for a few last positions only.
        kept = max(len(job.continuation) for job in batch) + 1
        options = {"logits_to_keep": kept} if self._keeps_logits else {}
        with self._computing():
            logits = self.model(
                input_ids=input_ids,
                attention_mask=mask,
                position_ids=(mask.cumsum(dim=-1) - 1).clamp(min=0),
                use_cache=False,
                **options,
            ).logits[:, -kept:-1]  # the last position predicts nothing that is asked
            logprobs = logits.float().log_softmax(dim=-1)  # (batch, kept - 1, vocabulary)
            targets = input_ids[:, input_ids.shape[1] - kept + 1 :]
            chosen = logprobs.gather(-1, targets.unsqueeze(-1)).squeeze(-1).tolist()
        return [
            (
                job.index,
                Completion(
                    text=job.text,
                    token_ids=job.continuation,
                    prompt_ids=job.prompt.ids,
                    logprobs=tuple(row[len(row) - len(job.continuation) :]),
                    finish="scored",
                    dropped_tokens=job.prompt.dropped_tokens,
                ),
            )
            for job, row in zip(batch, chosen, strict=True)
        ]

    def _left_padded(self, rows: Sequence[tuple[int, ...]]) -> tuple[torch.Tensor, torch.Tensor]:
        """(batch, longest) ids with padding in front, and the mask that is 0 there."""
        longest = max(map(len, rows))
        ids = [[self._pad] * (longest - len(row)) + list(row) for row in rows]
        mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
        return torch.tensor(ids, device=self.model.device), torch.tensor(mask, device=self.model.device)

    def _decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; special ones are dropped by their id, never by how they are spelled."""
        text = self.tokenizer.decode(
            [token for token in tokens if token not in self._special], clean_up_tokenization_spaces=False
        )
        return str(text)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Without gradients, and with a plain word when memory runs out."""
        try:
            with torch.inference_mode():
                yield
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            raise RunFailure(
                f"model {self.name} ran out of memory with {self.settings.batch_size} prompts at once: "
                "lower --batch-size or --max-prompt-tokens"
            ) from error


def _end_ids(*sources: int | Sequence[int] | None) -> tuple[int, ...]:
    """All ids that end a turn, sorted: a model's folder may name several, its tokenizer one more."""
    ends: set[int] = set()
    for source in sources:
        ends.update([source] if isinstance(source, int) else source or ())
    return tuple(sorted(ends))
