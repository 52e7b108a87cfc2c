"""Differentiable Data Rewards: the two agents, their rollouts and their preference pairs.

What `rag_ddr`, its ablations `ddr_gen` and `ddr_kr` and its control `rejection_sft` share; they differ in
their settings. The section numbers are those of the paper (Li et al. 2024, arXiv:2410.13509).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from ragtrials.branching import Branch, alternatives
from ragtrials.config import plain
from ragtrials.data import Example, Passage
from ragtrials.errors import UserError
from ragtrials.method import Method
from ragtrials.methods import _ddr_rewards
from ragtrials.methods._ddr_config import DdrConfig
from ragtrials.methods._ddr_documents import (
    Fill,
    all_or_kept,
    batches,
    enough,
    judged_relevant,
    select_documents,
)
from ragtrials.methods._ddr_pairs import Candidate, generator_pair, refiner_pairs
from ragtrials.methods._ddr_statistics import DocumentStatistics, PairStatistics
from ragtrials.methods._prompts import answer_from, closed_book_prompt, first_words
from ragtrials.program import (
    Completion,
    Evidence,
    Generate,
    Program,
    Request,
    Result,
    Trace,
    retrieve,
    user,
)
from ragtrials.seeding import derive_seed
from ragtrials.training.programs import Answer, sampled
from ragtrials.training.rows import Demonstration, Preference
from ragtrials.training.settings import Optimisation
from ragtrials.training.stages import dpo, sft

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun

KEEP, DROP = "YES", "NO"
"""What the refiner is trained to say of a document, and nothing else (§3.2)."""


class DataRewards(Method):
    """Refine the retrieved passages one by one, read what is kept, answer; both agents learn from rewards."""

    roles = ("refiner", "generator")
    trains = True
    evaluation_settings: ClassVar[tuple[str, ...]] = ("fill",)
    Config = DdrConfig
    config: DdrConfig

    # The system: retrieve, refine, generate (§3.1) ------------------------------------------------------

    def answer(self, question: str) -> Program:
        return self._answer(question, self.config.fill)

    def _answer(self, question: str, fill: Fill) -> Program:
        config = self.config
        retrieved = yield from retrieve(question, k=config.candidates)
        kept = yield from self._refine(question, retrieved)
        documents = select_documents(all_or_kept(kept, retrieved), retrieved, config.k, fill)
        return (
            yield from answer_from(
                question, documents, self.shown, config.passage_words, config.max_new_tokens
            )
        )

    def _refine(
        self, question: str, retrieved: Sequence[Passage]
    ) -> Generator[Sequence[Generate], Sequence[Completion], list[Passage]]:
        """The passages that the refiner keeps, in order of retrieval, until there are enough."""
        kept: list[Passage] = []
        for batch in batches(retrieved, self.config.need):
            verdicts = yield [self._judge(question, passage) for passage in batch]
            kept += [p for p, verdict in zip(batch, verdicts, strict=True) if judged_relevant(verdict.text)]
            if enough(len(kept), self.config.need):
                break
        return kept

    def _judge(self, question: str, passage: Passage) -> Generate:
        prompt = user(
            f"Does the passage help to answer the question? Reply {KEEP} or {DROP}.\n\n"
            f"Question: {question}\nPassage: {passage.title}: ",
            Evidence(first_words(passage.text, self.config.passage_words)),
            "\nVerdict:",
        )
        return Generate((prompt,), role="refiner", max_new_tokens=self.config.verdict_tokens)

    # Training: the generator first, then the refiner (§3.3) ---------------------------------------------

    @classmethod
    def trained_roles(cls, config: DdrConfig) -> tuple[str, ...]:
        return config.train_agents

    def train(self, run: TrainRun) -> None:
        for number in range(1, self.config.rounds + 1):
            if "generator" in self.config.train_agents:
                self._train(run, "generator", number, self._generator_pairs, self.config.generator)
            if "refiner" in self.config.train_agents:
                self._train(run, "refiner", number, self._refiner_pairs, self.config.refiner)

    def _train(
        self,
        run: TrainRun,
        agent: str,
        number: int,
        pairs: Callable[[TrainRun, str, Sequence[Example]], list[Preference]],
        settings: Optimisation,
    ) -> None:
        """One agent, once: pairs from rollouts with the present agents, then DPO, or SFT on the better."""
        stage = f"round{number}-{agent}"
        rows = pairs(run, stage, run.examples)
        if not rows:
            raise UserError(
                f"{run.label}: all {len(run.examples)} questions of stage {stage} are tied (every "
                "alternative got the same reward), so there is nothing to prefer: raise examples or "
                "rollout.draws"
            )
        held_out = pairs(run, f"{stage}-development", run.development) if run.development else []
        if self.config.objective == "sft":
            chosen = [Demonstration(row.messages, row.chosen) for row in rows]
            held = [Demonstration(row.messages, row.chosen) for row in held_out]
            sft(run, stage, agent, chosen, settings, held)
        else:
            dpo(run, stage, agent, rows, settings, self.config.beta, held_out)

    def _training_answer(self, question: str) -> Program:
        return self._answer(question, self.config.training_fill)

    def _generator_pairs(self, run: TrainRun, name: str, examples: Sequence[Example]) -> list[Preference]:
        """Perturb the generator by sampling, with and without documents; prefer by reward (§3.2)."""
        answers = run.rollout(f"{name}-answers", self._training_answer, examples)
        asked = [
            (trace.example_id, request, number)
            for trace, example in zip(answers, examples, strict=True)
            for number, request in enumerate(self._perturbed(trace, example.question))
        ]
        drawn = run.ask(f"{name}-draws", asked)
        size = len(asked) // len(examples)
        grouped = [drawn[start : start + size] for start in range(0, len(drawn), size)]
        branches = [
            branch
            for trace, example, draws in zip(answers, examples, grouped, strict=True)
            for branch in alternatives(trace, example.question, len(trace.steps) - 1, draws)
        ]
        ends = iter(run.branch(f"{name}-outcomes", self._training_answer, branches))
        rows, groups = [], []
        for trace, example, draws in zip(answers, examples, grouped, strict=True):
            candidates = [
                # Documents are there in the first half of the draws, see `_perturbed`.
                Candidate(i, draw.text, self._reward(run, next(ends).answer, example), raw=i >= size // 2)
                for i, draw in enumerate(draws)
            ]
            pair = generator_pair(candidates, derive_seed(run.seed, name, example.id))
            groups.append((candidates, pair))
            if pair is not None:
                better, worse = pair
                rows.append(Preference(_last(trace).messages, draws[better], draws[worse]))
        greedy = [self._reward(run, t.answer, e) for t, e in zip(answers, examples, strict=True)]
        run.statistics[name] = {
            **plain(PairStatistics.of(groups)),
            "mean_greedy": sum(greedy) / len(greedy),
            "all_dropped": sum(not _any_kept(trace) for trace in answers) / len(answers),
        }
        return rows

    def _perturbed(self, trace: Trace, question: str) -> list[Generate]:
        """The draws of one question: all with its documents, then as many without any."""
        rollout, read = self.config.rollout, _last(trace)
        alone = replace(read, messages=closed_book_prompt(question, self.shown))
        return [
            replace(
                request,
                temperature=temperature,
                top_p=rollout.top_p,
                max_new_tokens=rollout.max_new_tokens,
            )
            for request in (read, alone)
            for temperature in rollout.temperatures
            for _ in range(rollout.draws)
        ]

    def _refiner_pairs(self, run: TrainRun, name: str, examples: Sequence[Example]) -> list[Preference]:
        """Force each document in alone; prefer YES for the best one and NO for the worst (§3.2)."""
        found = run.rollout(f"{name}-retrieved", self._retrieved, examples)
        documents = [trace.retrieved for trace in found]
        branches = [
            Branch(example.id, example.question, trace.steps, self._verdicts(example.question, seen, i), i)
            for trace, example, seen in zip(found, examples, documents, strict=True)
            for i in range(len(seen))
        ]
        ends = iter(run.branch(f"{name}-outcomes", self._drawn_answer(), branches))
        rows, rewards = [], []
        for example, seen in zip(examples, documents, strict=True):
            scores = [self._reward(run, next(ends).answer, example) for _ in seen]
            rewards.append(scores)
            pair = refiner_pairs(scores, derive_seed(run.seed, name, example.id))
            if pair is not None:
                best, worst = (self._judge(example.question, seen[i]).messages for i in pair)
                rows += [Preference(best, KEEP, DROP), Preference(worst, DROP, KEEP)]
        run.statistics[name] = plain(DocumentStatistics.of(rewards))
        return rows

    def _retrieved(self, question: str) -> Program:
        """The system's first step alone."""
        yield from retrieve(question, k=self.config.candidates)
        return ""

    def _drawn_answer(self) -> Answer:
        """The system in which the refiner's effect is measured: what is kept is read, nothing filled in."""

        def alone(question: str) -> Program:
            return self._answer(question, "none")

        rollout = self.config.rollout
        if not rollout.refiner_temperature:
            return alone
        return sampled(alone, "generator", rollout.refiner_temperature, rollout.top_p)

    def _verdicts(self, question: str, documents: Sequence[Passage], kept: int) -> dict[Request, Result]:
        """YES for one document and NO for all others; another one that reads the same is kept with it."""
        dropped: dict[Request, Result] = {self._judge(question, d): Completion(DROP) for d in documents}
        return dropped | {self._judge(question, documents[kept]): Completion(KEEP)}

    def _reward(self, run: TrainRun, answer: str, example: Example) -> float:
        if self.config.reward == "official":
            return _ddr_rewards.reward_on(run.task, answer, example.aliases)
        return run.reward(answer, example)


def _last(trace: Trace) -> Generate:
    """The generator's request, which is the last one of the system."""
    request = trace.steps[-1].request
    assert isinstance(request, Generate)
    return request


def _any_kept(trace: Trace) -> bool:
    """Whether the refiner kept a passage."""
    return any(
        isinstance(step.request, Generate)
        and step.request.role == "refiner"
        and judged_relevant(step.result.text)  # type: ignore[union-attr]
        for step in trace.steps
    )
