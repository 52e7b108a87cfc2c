"""Self-RAG's training data: inquiries for the critic, and the generator's rows with their tokens (§3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ragtrials.data import Example, Passage
from ragtrials.methods._self_config import Labels, Mix
from ragtrials.methods._self_labels import KINDS, Inquiry, Labeller
from ragtrials.methods._self_prompts import generator_prompt, passage_part
from ragtrials.methods._self_tokens import (
    FULL,
    IRRELEVANT,
    NO_RETRIEVAL,
    NONE,
    PARTIAL,
    RELEVANT,
    RETRIEVAL,
)
from ragtrials.program import Part, Token
from ragtrials.seeding import derive_seed
from ragtrials.training.rows import Demonstration

Found = Mapping[str, Sequence[Passage]]
"""What was retrieved for each example, by its id."""


def critic_inquiries(
    examples: Sequence[Example],
    found: Found,
    own_answers: Mapping[str, Sequence[str]],
    counts: Labels,
    seed: int,
) -> list[Inquiry]:
    """Inquiries of all kinds about training questions, their passages, their answers and a model's own.

    Args:
        examples: The questions.
        found: Their passages.
        own_answers: What the untrained model answers by itself, so that not all answers are useful.
        counts: How many inquiries there are of each kind.
        seed: Decides which.
    """
    inquiries = []
    for example in examples:
        inquiries.append(Inquiry("retrieve", example))
        for passage in found[example.id]:
            inquiries.append(Inquiry("relevance", example, passage=passage))
            inquiries.append(Inquiry("support", example, example.target, passage))
        answers = dict.fromkeys([example.target, *own_answers.get(example.id, ())])
        inquiries += [Inquiry("utility", example, answer) for answer in answers if answer]

    def draw(place: int) -> int:
        return derive_seed(seed, "labelled", *inquiries[place].key)

    drawn: list[int] = []
    for kind in KINDS:
        places = [place for place, inquiry in enumerate(inquiries) if inquiry.kind == kind]
        drawn += sorted(places, key=draw)[: getattr(counts, kind)]
    return [inquiries[place] for place in sorted(drawn)]


@dataclass(frozen=True, slots=True)
class Judged:
    """A passage with its labels; only a relevant one has one of its support."""

    passage: Passage
    relevance: str
    support: str | None


class GeneratorData:
    """Makes the generator's rows.

    Args:
        label: Who labels.
        mix: Which rows there are.
        form: The form of the generator's prompt.
        words: How many words of a passage are shown; all if None.
        seed: Decides every draw.
    """

    def __init__(
        self,
        label: Labeller,
        mix: Mix,
        form: Literal["chat", "released"],
        words: int | None,
        seed: int,
    ) -> None:
        self._label, self._mix, self._form, self._words, self._seed = label, mix, form, words, seed
        self.statistics: dict[str, int] = dict.fromkeys(
            (
                "unretrieved",
                "unretrieved_left_out",
                "fully",
                "partially",
                "unsupported",
                "irrelevant",
                "unlabelled",
            ),
            0,
        )

    def rows(self, examples: Sequence[Example], found: Found) -> list[Demonstration]:
        """A row for each question: with a passage if it needs one, else without (appendix A.1).

        Questions whose labels cannot be read, and those that need a passage where none was found, have none.
        """
        needs = self._label("needs", [Inquiry("retrieve", e) for e in examples])
        uses = self._label("uses", [Inquiry("utility", e, e.target) for e in examples])
        judged = self._judge([e for e, need in zip(examples, needs, strict=True) if need == RETRIEVAL], found)
        rows = []
        for example, need, use in zip(examples, needs, uses, strict=True):
            said: tuple[Part, ...] | None = None
            if use is None or need is None or (need == RETRIEVAL and not judged[example.id]):
                self.statistics["unlabelled"] += 1
            elif need == RETRIEVAL:
                said = self._retrieved(example, judged[example.id])
            else:
                said = self._unretrieved(example)
            if said is not None and use is not None:
                prompt = generator_prompt(example.question, self._form)
                rows.append(Demonstration(prompt, (*said, Token(use))))
        return rows

    def _unretrieved(self, example: Example) -> tuple[Part, ...] | None:
        """The answer without a passage, or by chance nothing."""
        kept = self._draw("unretrieved", example) < self._mix.unretrieved
        self.statistics["unretrieved" if kept else "unretrieved_left_out"] += 1
        return (Token(NO_RETRIEVAL), example.target) if kept else None

    def _judge(self, examples: Sequence[Example], found: Found) -> dict[str, list[Judged]]:
        """The passages of questions with their labels, by the example's id, where these could be read."""
        pairs = [(example, passage) for example in examples for passage in found[example.id]]
        relevances = self._label("relevant", [Inquiry("relevance", e, passage=p) for e, p in pairs])
        relevant = [pair for pair, label in zip(pairs, relevances, strict=True) if label == RELEVANT]
        supports = iter(self._label("supported", [Inquiry("support", e, e.target, p) for e, p in relevant]))
        judged: dict[str, list[Judged]] = {example.id: [] for example in examples}
        for (example, passage), label in zip(pairs, relevances, strict=True):
            support = next(supports) if label == RELEVANT else None
            if label is not None and (label == IRRELEVANT or support is not None):
                judged[example.id].append(Judged(passage, label, support))
        return judged

    def _retrieved(self, example: Example, judged: Sequence[Judged]) -> tuple[Part, ...]:
        """The answer behind one of the passages, the best that there is, or by chance a worse one."""
        fully = [j for j in judged if j.support == FULL]
        partially = [j for j in judged if j.support == PARTIAL]
        unsupported = [j for j in judged if j.support == NONE]
        irrelevant = [j for j in judged if j.relevance == IRRELEVANT]
        if fully:
            kind, chosen = "fully", fully[0]
        elif partially and (not irrelevant or self._draw("partial", example) < self._mix.partial):
            kind, chosen = "partially", partially[0]
        elif unsupported and (not irrelevant or self._draw("unsupported", example) < self._mix.unsupported):
            kind, chosen = "unsupported", unsupported[0]
        else:
            kind, chosen = "irrelevant", irrelevant[int(self._draw("irrelevant", example) * len(irrelevant))]
        self.statistics[kind] += 1
        opened = (Token(RETRIEVAL), *passage_part(chosen.passage, self._words))
        if chosen.support is None:
            return (*opened, Token(IRRELEVANT), example.target)
        return (*opened, Token(RELEVANT), example.target, Token(chosen.support))

    def _draw(self, what: str, example: Example) -> float:
        return derive_seed(self._seed, what, example.id) / 2**63
