"""SmartRAG's warm-up (§3.2): what the policy is shown before it learns by itself.

There are three kinds of rows: a question with its answer; a question with a query; a question and what the
query found with its answer. A question's label says whether an answer or a query comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ragtrials.data import Example
from ragtrials.methods._closed_book import closed_book_answers, mostly_right
from ragtrials.methods._prompts import clean_answer
from ragtrials.methods._rewrite_labels import heuristic_rewrites
from ragtrials.methods._smart_actions import ANSWER, SEARCH, given_tag
from ragtrials.methods._smart_config import SmartConfig
from ragtrials.methods._smart_observations import hit
from ragtrials.program import Evidence, Generate, user
from ragtrials.seeding import derive_seed
from ragtrials.training.programs import Answer
from ragtrials.training.rows import Demonstration
from ragtrials.training.stages import sft

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun

_MOST_CLAUSES = 4


@dataclass(frozen=True, slots=True)
class Labels:
    """The ids of the questions that are shown with an answer first, and of those with a query first."""

    answered: Collection[str]
    searched: Collection[str]


class WarmUpData:
    """Makes the rows.

    Args:
        run: The training.
        role: The policy's role.
        config: The settings.
        shown: Few-shot examples for asking the untrained model what it knows.
    """

    def __init__(self, run: TrainRun, role: str, config: SmartConfig, shown: Sequence[Example]) -> None:
        self._run, self._role, self._config, self._shown = run, role, config, shown
        self._settings = config.warm_up
        self._examples = run.examples[: self._settings.examples]

    def train(self, episode: Answer) -> None:
        """Fine-tune the policy on all kinds of rows at once.

        Args:
            episode: The policy's program, in which it writes its tags itself.
        """
        run = self._run
        labels = self.labels()
        direct = self.direct_answers(episode, labels)
        lookups = self.lookups(episode, labels)
        searches = sum(str(row.completion).startswith(SEARCH) for row in lookups)
        run.statistics["warm_up"] = {
            "examples": len(self._examples),
            "answers": len(direct),
            "searches": searches,
            "answers_from_observations": len(lookups) - searches,
        } | run.statistics.get("warm_up", {})
        sft(run, "sft", self._role, direct + lookups, self._config.sft)

    # What comes first -----------------------------------------------------------------------------------

    def labels(self) -> Labels:
        """Which questions are shown with an answer first, and which with a query."""
        mode, seed = self._settings.label_mode, self._run.seed
        ids = [example.id for example in self._examples]
        if mode == "all":
            return Labels(ids, ids)
        if mode == "skr":
            answered = self.known()
            self._run.statistics["warm_up"] = {"known": len(answered) / max(1, len(ids))}
        else:
            answered = {i for i in ids if derive_seed(seed, "label", i) % 2}
        labels = Labels([i for i in ids if i in answered], [i for i in ids if i not in answered])
        return balanced(labels, seed) if self._settings.balance else labels

    def known(self) -> set[str]:
        """The ids of the questions that the untrained model answers without retrieval (as in SKR)."""
        settings, run = self._settings, self._run

        answers = closed_book_answers(
            run,
            self._role,
            self._examples,
            self._shown,
            self._config.action_tokens,
            settings.samples,
            settings.temperature,
        )
        right = partial(mostly_right, run, score=settings.known_by)
        return {e.id for e in self._examples if right(answers[e.id], e)}

    # The rows -------------------------------------------------------------------------------------------

    def direct_answers(self, episode: Answer, labels: Labels) -> list[Demonstration]:
        """Questions with their answers."""
        answered = frozenset(labels.answered)
        examples = [example for example in self._examples if example.id in answered]
        return self._run.demonstrate(episode, examples, _answer)

    def lookups(self, episode: Answer, labels: Labels) -> list[Demonstration]:
        """Questions with queries, of those with that label, and with answers from what the queries found.

        If the quota allows it, another query follows where an observation lacks the answer.
        """
        if not self._config.quota:
            return []
        queries = self.queries()
        searched = frozenset(labels.searched)
        searches: Counter[str] = Counter()
        shown: list[bool] = []  # whether what the teacher said is a row, in the order in which it was said

        def teacher(request: Generate, example: Example) -> str:
            done = searches[example.id]
            found = hit(example.aliases, _observation(request))
            if given_tag(request) == ANSWER or (done and (found or done == len(queries[example.id]))):
                shown.append(found or self._settings.observations == "all")
                return _answer(request, example)
            shown.append(done > 0 or example.id in searched)
            searches[example.id] += 1
            return f"{SEARCH} {queries[example.id][done]}"

        rows = self._run.demonstrate(episode, self._examples, teacher)
        return [row for row, kept in zip(rows, shown, strict=True) if kept]

    def queries(self) -> Mapping[str, Sequence[str]]:
        """What is searched for each question, one query after the other, by id."""
        mode = self._settings.queries
        if mode == "question":
            return {example.id: (example.question,) for example in self._examples}
        if mode == "rules":
            most = max(1, self._config.quota)
            return {e.id: joined(heuristic_rewrites(e.question, _MOST_CLAUSES), most) for e in self._examples}
        asked = [(example.id, self._querying(example.question), 0) for example in self._examples]
        drafts = self._run.ask("queries", asked)
        written = {
            example.id: clean_answer(draft.text)
            for example, draft in zip(self._examples, drafts, strict=True)
        }
        self._run.statistics.setdefault("warm_up", {})["empty_queries"] = sum(
            not query for query in written.values()
        )
        return {e.id: (written[e.id] or e.question,) for e in self._examples}

    def _querying(self, question: str) -> Generate:
        prompt = user(f"Write a web search, a few words in one line, that finds the answer.\n\n{question}")
        return Generate((prompt,), self._role, self._config.action_tokens, stop=("\n",))


def balanced(labels: Labels, seed: int) -> Labels:
    """As many answers as searches: the larger part keeps a drawn part of it; if one is empty all stay.

    Args:
        labels: Which questions are which.
        seed: Decides which stay.
    """
    size = min(len(labels.answered), len(labels.searched)) or None

    def drawn(ids: Collection[str]) -> list[str]:
        return sorted(ids, key=lambda i: derive_seed(seed, "balance", i))[:size]

    return replace(labels, answered=drawn(labels.answered), searched=drawn(labels.searched))


def joined(queries: Sequence[str], most: int) -> tuple[str, ...]:
    """At most so many queries: of those beyond, the words that the last one lacks are put behind it."""
    *first, last = queries[:most]
    words = last.split()
    for query in queries[most:]:
        words += [word for word in query.split() if word not in words]
    return (*first, " ".join(words))


def _answer(request: Generate, example: Example) -> str:
    """The right answer, with its tag unless the prompt has it. The blank is the one behind the tag."""
    return f" {example.target}" if given_tag(request) == ANSWER else f"{ANSWER} {example.target}"


def _observation(request: Generate) -> str:
    """All that a prompt shows of passages."""
    parts = [part for message in request.messages for part in message.content]
    return " ".join(part.text for part in parts if isinstance(part, Evidence))
