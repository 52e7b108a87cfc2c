"""A query rewriter, a passage selector and a generator that learn together from the final answer.

What `mmoa_rag` and its single-agent relatives `rewrite_retrieve_read` and `bgm` share; they differ in their
settings. The section numbers are those of MMOA-RAG's paper (Chen et al. 2025, arXiv:2501.15228).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ragtrials.data import Example, Passage
from ragtrials.method import Method
from ragtrials.methods._agents_config import AGENTS, AgentsConfig
from ragtrials.methods._prompts import clean_answer, closed_book_prompt, first_words, reading_prompt
from ragtrials.methods._rewrite_labels import heuristic_rewrites
from ragtrials.methods._rewrites import Rewrites, parse_rewrites, quotas
from ragtrials.methods._selection import (
    document,
    parse_selection,
    selection_strings,
    selection_text,
)
from ragtrials.methods._selector_labels import selector_label
from ragtrials.program import Completion, Evidence, Generate, Program, Retrieve, Trace, generate, user
from ragtrials.seeding import derive_seed
from ragtrials.training.episodes import Judgement
from ragtrials.training.ppo_stage import ppo
from ragtrials.training.stages import sft

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun

Arrange: TypeAlias = Callable[[str, list[Passage]], list[Passage]]
"""Puts a question's candidates into the order in which they are shown."""


class CooperatingAgents(Method):
    """Rewrite the question into queries, select among what they find, answer from the selection."""

    roles: ClassVar[tuple[str, ...]] = AGENTS
    trains = True
    Config = AgentsConfig
    config: AgentsConfig

    # The pipeline (§3.1) --------------------------------------------------------------------------------

    def answer(self, question: str) -> Program:
        return self._answer(question, lambda _, found: found)

    def _answer(self, question: str, arrange: Arrange) -> Program:
        queries = yield from self._rewrite(question)
        candidates = arrange(question, (yield from self._search(queries)))
        chosen = yield from self._select(question, candidates)
        return (yield from self._read(question, chosen))

    def _rewrite(self, question: str) -> Generator[Generate, Any, tuple[str, ...]]:
        """The queries that are searched; without a rewriter the question itself."""
        if "rewriter" not in self.config.agents:
            return (question,)
        reply = yield self._rewriting(question)
        return self._rewrites(reply.text, question).queries

    def _rewriting(self, question: str) -> Generate:
        prompt = user(
            "Which searches find the facts that answer this question? Write one search a line, each "
            f"understandable by itself, {self.config.most_queries} at most, and nothing else.\n\n"
            f"Question: {question}"
        )
        return Generate((prompt,), role="rewriter", max_new_tokens=self.config.rewrite_tokens)

    def _rewrites(self, text: str, question: str) -> Rewrites:
        config = self.config
        return parse_rewrites(text, question, config.blank_lines, config.most_queries, config.give_up)

    def _search(self, queries: Sequence[str]) -> Generator[Sequence[Retrieve], Any, list[Passage]]:
        """The candidates: each query contributes its share of k, one query after the other."""
        shares = quotas(len(queries), self.config.k)
        found = yield [Retrieve(q, share) for q, share in zip(queries, shares, strict=True) if share]
        candidates = [hit.passage for hits in found for hit in hits]
        return list(dict.fromkeys(candidates)) if self.config.distinct else candidates

    def _select(self, question: str, candidates: list[Passage]) -> Generator[Generate, Any, list[Passage]]:
        """The candidates that the selector names, in its order; without a selector all of them."""
        if "selector" not in self.config.agents or not candidates:
            return candidates
        reply = yield self._selecting(question, candidates)
        return [candidates[i] for i in parse_selection(reply.text, len(candidates)).ids]

    def _selecting(self, question: str, candidates: Sequence[Passage]) -> Generate:
        words = self.config.selector_words or self.config.passage_words
        listed: list[str | Evidence] = []
        for number, passage in enumerate(candidates):
            text = first_words(passage.text, words)
            listed += [f"{document(number)}: {passage.title}\n", Evidence(text), "\n"]
        prompt = user(
            "Which of these documents help to answer the question? Write their names, such as "
            f"{selection_text((0, 2))}, or nothing if none helps.\n\n",
            *listed,
            f"\nQuestion: {question}",
        )
        return Generate(
            (prompt,),
            role="selector",
            max_new_tokens=self.config.selection_tokens,
            allowed=selection_strings(len(candidates)),
        )

    def _read(self, question: str, chosen: Sequence[Passage]) -> Program:
        """The answer from the selection; if nothing is selected, from what the model knows."""
        if chosen:
            prompt = reading_prompt(question, chosen, (), self.config.passage_words)
        else:
            prompt = closed_book_prompt(question, ())
        reply = yield from generate(prompt, max_new_tokens=self.config.max_new_tokens, stop=("\n",))
        return clean_answer(reply.text)

    # Training: a warm start by demonstrations, then multi-agent PPO (§3.3, §3.4) ------------------------

    @classmethod
    def trained_roles(cls, config: AgentsConfig) -> tuple[str, ...]:
        return config.agents  # the warm start is for all, PPO for `train_agents`

    def train(self, run: TrainRun) -> None:
        self._warm_start(run)
        learners = self.config.learners
        if self.config.sharing == "shared":
            policies: dict[str, tuple[str, ...]] = {"shared": self.config.agents}
        else:
            policies = {agent: (agent,) for agent in learners}
        ppo(run, "ppo", policies, self.answer, self._judge(run), self.config.ppo, learners)

    def _judge(self, run: TrainRun) -> Callable[[Trace, Example], Judgement]:
        """One reward that all agents share, and one penalty for each (§3.2)."""

        def judge(trace: Trace, example: Example) -> Judgement:
            shared = run.reward(trace.answer, example)
            scalars: dict[str, float] = {}
            rewards = []
            for step in trace.generations:
                assert isinstance(step.request, Generate)
                assert isinstance(step.result, Completion)
                penalty, seen = self._conduct(step.request, step.result.text, example)
                rewards.append(shared + penalty)
                role = step.request.role
                scalars |= {f"{role}/{name}": value for name, value in seen.items()}
                scalars |= {f"{role}/penalty": penalty, f"{role}/penalised": float(penalty < 0)}
            return Judgement(shared, tuple(rewards), scalars)

        return judge

    def _conduct(self, request: Generate, text: str, example: Example) -> tuple[float, dict[str, float]]:
        """An agent's penalty for an output, and what the log tells of it."""
        penalties = self.config.penalties
        if request.role == "rewriter":
            rewrites = self._rewrites(text, example.question)
            return penalties.of_rewriter(rewrites), {"queries": float(len(rewrites.queries))}
        if request.role == "selector":
            selection = parse_selection(text, _shown(request))
            count = len(selection.ids)
            return penalties.of_selector(selection), {"selected": float(count), "empty": float(not count)}
        return penalties.of_generator(text), {}

    def _warm_start(self, run: TrainRun) -> None:
        """Supervised fine-tuning on rewrites, selections by the words of the answer, and answers (B)."""
        examples = run.examples[: self.config.warm_start.examples]
        shown: dict[str, list[Passage]] = {}
        rewrites = self._rewrite_targets(run, examples)

        def arrange(question: str, found: list[Passage]) -> list[Passage]:
            if self.config.warm_start.shuffle:
                found = sorted(found, key=lambda p: derive_seed(run.seed, "order", question, p.id))
            shown[question] = found
            return found

        def target(request: Generate, example: Example) -> str:
            if request.role == "rewriter":
                return "\n".join(rewrites[example.id])
            if request.role == "selector":
                texts = [f"{p.title}\n{p.text}" for p in shown[example.question]]
                gold = [group[0] for group in example.answers]
                match = self.config.warm_start.match
                return selection_text(selector_label(example.question, gold, texts, match))
            return example.target

        def lesson(question: str) -> Program:
            return self._answer(question, arrange)

        shown_to = self.config.warm_start.agents or self.config.agents
        rows = [row for row in run.demonstrate(lesson, examples, target) if row.role in shown_to]
        selections = [parse_selection(str(r.completion), self.config.k) for r in rows if r.role == "selector"]
        chosen = [len(selection.ids) for selection in selections]
        run.statistics["warm_start"] = {
            "examples": len(examples),
            "queries": sum(map(len, rewrites.values())) / max(1, len(rewrites)),
            "selected": sum(chosen) / max(1, len(chosen)),
            "empty": chosen.count(0) / max(1, len(chosen)),
        }
        if self.config.sharing == "shared":
            sft(run, "sft", self.config.agents, rows, self.config.sft)
        else:
            for agent in self.config.agents:
                if own := [row for row in rows if row.role == agent]:
                    sft(run, f"sft-{agent}", agent, own, self.config.sft)

    def _rewrite_targets(self, run: TrainRun, examples: Sequence[Example]) -> dict[str, tuple[str, ...]]:
        """The rewriter's targets by the example's id; none without a rewriter."""
        if "rewriter" not in self.config.agents:
            return {}
        if self.config.warm_start.rewrites == "rules":
            most = self.config.most_queries
            return {e.id: heuristic_rewrites(e.question, most) for e in examples}
        drafts = run.ask("rewrites", [(e.id, self._rewriting(e.question), 0) for e in examples])
        return {
            example.id: self._rewrites(draft.text, example.question).queries
            for example, draft in zip(examples, drafts, strict=True)
        }


def _shown(request: Generate) -> int:
    """How many passages a prompt shows."""
    return sum(isinstance(part, Evidence) for message in request.messages for part in message.content)
