"""The vLLM engine: the same token ids as the transformers engine, with vLLM's batching and kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.batches import Job
from ragtrials.llm.decoding import Decoding
from ragtrials.llm.loading import context_of, load_configs, load_tokenizer
from ragtrials.llm.models import ResolvedModel
from ragtrials.llm.prompts import PromptBuilder
from ragtrials.llm.special import SpecialIds
from ragtrials.llm.transcript import Transcriber
from ragtrials.llm.vllm_outputs import answered, check_possible, generating, scores, scoring
from ragtrials.llm.vllm_settings import VLLMSettings
from ragtrials.llm.vllm_start import lora_requests, started
from ragtrials.program import Completion, Generate, Score


class VLLMEngine:
    """Runs a causal language model in vLLM; fulfils `ragtrials.program.Engine`.

    It reads the very ids that `HFEngine` reads, and ends, cuts and counts as that does. Greedy answers agree
    with `HFEngine`'s up to rounding; samples are others, as vLLM draws with generators of its own.

    vLLM works in a process of its own, which ends with the engine.

    Args:
        model: What `resolve_model` found: its tokenizer, its ends and its name are used.
        settings: How it is run.
        weights: The folder that vLLM loads: the model's own, or one with its added tokens in it.
        adapters: LoRA adapter folders by role, checked by `ragtrials.llm.policy.check_policy` and `served` by
            vLLM. Requests of other roles are answered by the model as it is. The signature names none.

    Raises:
        UserError: The folder is none of a chat model that vLLM knows, or a setting is wrong.
        RunFailure: vLLM did not start; its own messages say why.
    """

    def __init__(
        self,
        model: ResolvedModel,
        settings: VLLMSettings,
        weights: Path,
        adapters: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        tokenizer = load_tokenizer(model)
        prompts = PromptBuilder(tokenizer, model.name)  # refuses a tokenizer before weights are loaded
        config, generation = load_configs(model)
        self.name = model.name
        self._signature = settings.signature(model)
        self._words = Transcriber(
            prompts,
            tokenizer,
            SpecialIds.of(generation, tokenizer),
            context_of(config),
            settings.common.max_prompt_tokens,
        )
        self._llm = started(model.name, weights, settings, adapters)
        self._adapters = lora_requests(adapters)
        self._longest = int(self._llm.llm_engine.model_config.max_model_len)

    @property
    def signature(self) -> Mapping[str, Any]:
        """JSON values that name everything which can change a result."""
        return dict(self._signature)

    def generate(self, requests: Sequence[Generate], seeds: Sequence[int]) -> list[Completion]:
        """One completion per request, in order; `seeds[i]` alone decides the sampling of request i.

        Raises:
            RunFailure: A prompt does not fit even without evidence, or vLLM died.
            UserError: A setting of a request is out of range, or one that vLLM does not have.
        """
        asked: list[tuple[Job, Decoding, str]] = []
        for index, (request, seed) in enumerate(zip(requests, seeds, strict=True)):
            decoding = Decoding.of(request)
            check_possible(decoding)
            job = self._words.to_generate(index, request, seed)
            self._hold_fits(len(job.prompt.ids) + decoding.max_new_tokens)
            asked.append((job, decoding, request.role))
        asked.sort(key=lambda one: one[0].order)  # the order of the requests shall not change a bit
        outputs = self._run(
            [job.prompt.ids for job, _, _ in asked],
            [generating(job, d, self._words.ends(d), self._words.watched(d)) for job, d, _ in asked],
            [role for _, _, role in asked],
        )
        results: dict[int, Completion] = {}
        for (job, decoding, _), output in zip(asked, outputs, strict=True):
            found = answered(output.outputs[0], decoding, self._words.watched(decoding))
            results[job.index] = self._words.generated(
                job, decoding, found.tokens, found.stopped_at, found.logprobs, found.seen
            )
        return [results[index] for index in range(len(requests))]

    def score(self, requests: Sequence[Score]) -> list[Completion]:
        """For each request the log-probabilities of its continuation's tokens, at temperature 1.

        Raises:
            RunFailure: A prompt does not fit even without evidence, or vLLM died.
        """
        jobs = [self._words.to_score(index, request) for index, request in enumerate(requests)]
        results = {job.index: self._words.scored(job, ()) for job in jobs}
        asked = sorted((job for job in jobs if job.continuation), key=lambda job: job.order)
        for job in asked:
            self._hold_fits(len(job.prompt.ids) + len(job.continuation))
        outputs = self._run(
            [job.prompt.ids + job.continuation[:-1] for job in asked],
            [scoring(job) for job in asked],
            [requests[job.index].role for job in asked],
        )
        for job, output in zip(asked, outputs, strict=True):
            found = scores(job, output.prompt_logprobs, output.outputs[0])
            results[job.index] = self._words.scored(job, found)
        return [results[index] for index in range(len(requests))]

    def _hold_fits(self, tokens: int) -> None:
        """vLLM bounds sequences by the memory that it found, too."""
        if tokens > self._longest:
            raise RunFailure(
                f"a prompt and its answer may take {tokens} tokens, but vLLM has room for {self._longest} of "
                f"model {self.name} here: lower --max-prompt-tokens"
            )

    def _run(
        self, prompts: Sequence[tuple[int, ...]], params: Sequence[dict[str, Any]], roles: Sequence[str]
    ) -> list[Any]:
        """vLLM's `RequestOutput` for each prompt, in order.

        One adapter is asked at a time, as in `HFEngine`. vLLM's CPU build (0.32) gives a request without an
        adapter one of its neighbours': the index -1, which shall say "none", picks the last.
        """
        groups: dict[str | None, list[int]] = {}
        for place, role in enumerate(roles):
            adapter = self._adapters.get(role)
            groups.setdefault(adapter.lora_name if adapter else None, []).append(place)
        results: dict[int, Any] = {}
        for places in groups.values():
            outputs = self._ask(
                [prompts[place] for place in places],
                [params[place] for place in places],
                self._adapters.get(roles[places[0]]),
            )
            results.update(zip(places, outputs, strict=True))
        return [results[place] for place in range(len(prompts))]

    def _ask(
        self, prompts: Sequence[tuple[int, ...]], params: Sequence[dict[str, Any]], adapter: Any
    ) -> list[Any]:
        from vllm import SamplingParams
        from vllm.exceptions import VLLMValidationError
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            outputs = self._llm.generate(
                [{"prompt_token_ids": list(ids)} for ids in prompts],
                [SamplingParams(**one) for one in params],
                lora_request=adapter,
                use_tqdm=False,
            )
        except VLLMValidationError as error:
            reason = " ".join(str(error).split())
            raise UserError(f"--engine vllm refuses a request ({reason}): use --engine hf") from error
        except EngineDeadError as error:
            raise RunFailure(
                f"vLLM died with model {self.name}; its own messages above say why. If memory ran out: "
                "lower --batch-size or --max-prompt-tokens"
            ) from error
        return list(outputs)
