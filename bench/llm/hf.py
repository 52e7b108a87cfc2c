"""The transformers engine: left-padded batches, sorted by length, of exact token ids."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import GenerationConfig, PreTrainedModel

from ragtrials.errors import RunFailure
from ragtrials.llm.batches import Job, batches, left_padded
from ragtrials.llm.decoding import Decoding, StopStrings, TokenChooser
from ragtrials.llm.devices import out_of_memory
from ragtrials.llm.live import lent
from ragtrials.llm.loading import context_of, load_model, load_tokenizer
from ragtrials.llm.models import ResolvedModel
from ragtrials.llm.prefill import SharedPrefill
from ragtrials.llm.prompts import PromptBuilder
from ragtrials.llm.signature import DEFAULT_BATCH_SIZE, DEFAULT_MAX_PROMPT_TOKENS, EngineSettings
from ragtrials.llm.special import SpecialIds
from ragtrials.llm.transcript import Transcriber
from ragtrials.program import Completion, Generate, Score

if TYPE_CHECKING:
    from ragtrials.llm.adapters import Adapters
    from ragtrials.llm.tap import StateTap


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
        settings = EngineSettings.resolve(dtype, device, batch_size, max_prompt_tokens)
        tokenizer = load_tokenizer(model)
        prompts = PromptBuilder(tokenizer, model.name)  # refuses a tokenizer before weights are loaded
        weights = load_model(model, settings.dtype, settings.device)
        held: Adapters | None = None
        if adapters:
            from ragtrials.llm.adapters import Adapters  # imports peft, which nothing else here needs

            held = Adapters.load(weights, adapters, model.name)
        self._take(weights, model, tokenizer, prompts, settings, held)
        # What a model's folder recommends (sampling, a repetition penalty) would leak into greedy decoding:
        # `generate` fills whatever its own configuration leaves open from here.
        weights.generation_config = GenerationConfig()

    @classmethod
    def over(
        cls,
        model: PreTrainedModel,
        resolved: ResolvedModel,
        tokenizer: Any,
        adapters: Adapters | None = None,
        *,
        dtype: str,
        device: str,
        batch_size: int = DEFAULT_BATCH_SIZE,
        max_prompt_tokens: int = DEFAULT_MAX_PROMPT_TOKENS,
    ) -> HFEngine:
        """An engine on a model in memory that goes on being trained: it answers with the present weights.

        Nothing is copied. Between calls the model is the trainer's: training mode, gradient flags, adapter in
        force and generation settings are after each call what they were before it.

        Args:
            model: A plain causal language model of transformers, whose layers may hold LoRA layers (of a
                peft model, what `get_base_model()` gives).
            resolved: What it was loaded from.
            tokenizer: The model's.
            adapters: From `Adapters.live`, to answer roles with; without, whatever is in force answers all.
            dtype: What the model was loaded with. The signature names it, `device` and `resolved`; weights
                that change it cannot name.
            device: Where the model is.
            batch_size: Rows at once.
            max_prompt_tokens: Longer prompts have their evidence shortened.

        Raises:
            ValueError: The model is wrapped.
            UserError: A setting is wrong, or the tokenizer is none of a chat model.
        """
        if not isinstance(model, PreTrainedModel):
            raise ValueError(f"{type(model).__name__} wraps the model: pass the model inside")
        engine = cls.__new__(cls)
        settings = EngineSettings.resolve(dtype, device, batch_size, max_prompt_tokens)
        prompts = PromptBuilder(tokenizer, resolved.name)
        engine._take(model, resolved, tokenizer, prompts, settings, adapters, live=True)
        return engine

    def _take(
        self,
        model: Any,
        resolved: ResolvedModel,
        tokenizer: Any,
        prompts: PromptBuilder,
        settings: EngineSettings,
        adapters: Adapters | None,
        live: bool = False,
    ) -> None:
        """Begin to run a model in memory."""
        self.name = resolved.name
        self.model, self.tokenizer, self.settings = model, tokenizer, settings
        self._signature = settings.signature(resolved)
        self._ids = SpecialIds.of(model.generation_config, tokenizer)
        self._words = Transcriber(
            prompts, tokenizer, self._ids, context_of(model.config), settings.max_prompt_tokens
        )
        self._adapters = adapters
        self._prefill = SharedPrefill(model)
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._live = live
        self.tap: StateTap | None = None

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
        groups: dict[tuple[str | None, Decoding], list[Job]] = {}
        for index, (request, seed) in enumerate(zip(requests, seeds, strict=True)):
            decoding = Decoding.of(request)
            job = self._words.to_generate(index, request, seed)
            groups.setdefault((self._adapter(request.role), decoding), []).append(job)
        results: dict[int, Completion] = {}
        with self._borrowed():
            for (adapter, decoding), jobs in groups.items():
                self._activate(adapter)
                for batch in batches(jobs, self.settings.batch_size):
                    results.update(self._generate_batch(batch, decoding))
        return [results[index] for index in range(len(requests))]

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        """For each request the log-probabilities of its continuation's tokens, at temperature 1.

        Raises:
            RunFailure: A prompt does not fit even without evidence, or memory ran out.
        """
        groups: dict[str | None, list[Job]] = {}
        for index, request in enumerate(requests):
            job = self._words.to_score(index, request)
            groups.setdefault(self._adapter(request.role), []).append(job)
        results: dict[int, Completion] = {}
        with self._borrowed():
            for adapter, jobs in groups.items():
                self._activate(adapter)
                for batch in batches(jobs, self.settings.batch_size):
                    results.update(self._score_batch(batch))
        return [results[index] for index in range(len(requests))]

    def allowed_ids(self, allowed: Sequence[str]) -> tuple[int, ...]:
        """The ids that a request's `allowed` limits it to, sorted; () if nothing is limited.

        They are those of the strings' tokens and of the ends of a turn.
        """
        return self._words.allowed_ids(allowed)

    def _borrowed(self) -> AbstractContextManager[None]:
        """The time in which the model is the engine's: always, or with a live one a call."""
        return lent(self.model, self._adapters) if self._live else nullcontext()

    @contextmanager
    def _listening(self) -> Iterator[list[torch.Tensor]]:
        """What the tap, if there is one, hears meanwhile."""
        if self.tap is None:
            yield []
            return
        with self.tap.listening() as heard:
            yield heard

    def _adapter(self, role: str) -> str | None:
        """What answers a role: the name of an adapter, or None for the model as it is."""
        return self._adapters.name(role) if self._adapters else None

    def _activate(self, adapter: str | None) -> None:
        if self._adapters:
            self._adapters.activate(adapter)

    def _generate_batch(self, batch: Sequence[Job], decoding: Decoding) -> list[tuple[int, Completion]]:
        prompts = [job.prompt.ids for job in batch]
        input_ids, mask = left_padded(prompts, self._ids.pad, self.model.device)
        watched, ends = self._words.watched(decoding), self._words.ends(decoding)
        chooser = TokenChooser(
            decoding,
            [job.seed for job in batch],
            [job.allowed for job in batch] if decoding.restricted else None,
            watched,
        )
        stops = (
            StopStrings(decoding.stop, self._words.text, self._ids.special, len(batch))
            if decoding.stop
            else None
        )
        with self._computing(), self._listening() as heard:
            shared = decoding.temperature and not self.tap  # a tap wants to hear every row from its start
            read = self._prefill.read(prompts, input_ids, mask) if shared else {}
            output = self.model.generate(
                input_ids,
                attention_mask=mask,
                generation_config=GenerationConfig(
                    do_sample=False,
                    max_new_tokens=decoding.max_new_tokens,
                    eos_token_id=ends or None,
                    pad_token_id=self._ids.pad,
                ),
                logits_processor=[] if decoding.plain else [chooser],
                stopping_criteria=[stops] if stops else [],
                **read,
            )
        rows = output[:, input_ids.shape[1] :].tolist()
        lengths = stops.lengths if stops else [None] * len(batch)
        logprobs = torch.stack(chooser.logprobs, dim=1).tolist() if decoding.logprobs else [None] * len(batch)
        seen = torch.stack(chooser.seen, dim=1).tolist() if watched else [[]] * len(batch)
        completions = [
            self._words.generated(job, decoding, *row)
            for job, *row in zip(batch, rows, lengths, logprobs, seen, strict=True)
        ]
        if self.tap:
            self.tap.keep(heard, prompts, [completion.token_ids for completion in completions])
        return [(job.index, completion) for job, completion in zip(batch, completions, strict=True)]

    def _score_batch(self, batch: Sequence[Job]) -> list[tuple[int, Completion]]:
        rows = [job.prompt.ids + job.continuation for job in batch]
        input_ids, mask = left_padded(rows, self._ids.pad, self.model.device)
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
            (job.index, self._words.scored(job, row[len(row) - len(job.continuation) :]))
            for job, row in zip(batch, chosen, strict=True)
        ]

    @contextmanager
    def _computing(self) -> Iterator[None]:
        """Without gradients, and with a plain word when memory runs out."""
        try:
            with nullcontext() if self._live else torch.inference_mode():  # `lent` has its own reason
                yield
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            raise RunFailure(
                f"model {self.name} ran out of memory with {self.settings.batch_size} prompts at once: "
                "lower --batch-size or --max-prompt-tokens"
            ) from error
