"""Self-RAG's labels by rules, and the rows that labels make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from ragtrials.data import Example, Passage
from ragtrials.methods._self_config import Labels, Mix
from ragtrials.methods._self_data import GeneratorData, critic_inquiries
from ragtrials.methods._self_labels import WORDS, Inquiry, by_rules, lessons, read, reusing
from ragtrials.methods._self_prompts import generator_prompt
from ragtrials.methods._self_tokens import (
    ALL,
    END_PARAGRAPH,
    FULL,
    IRRELEVANT,
    IS_REL,
    IS_SUP,
    IS_USE,
    NO_RETRIEVAL,
    NONE,
    PARAGRAPH,
    PARTIAL,
    RELEVANT,
    RETRIEVAL,
)
from ragtrials.program import Evidence, Token
from ragtrials.training.rows import Demonstration

ANN = Example("ann", "Where was Ann born?", (("Rome", "Roma"),), supporting=("birth", "hop"))
BIRTH = Passage("birth", "Ann", "Ann was born in Rome.")
HOP = Passage("hop", "Bo", "Bo is Ann's brother.")
ALIAS = Passage("alias", "Cy", "Cy saw Roma.")
OTHER = Passage("other", "Di", "Di likes Romeo and Oslo.")


# Rules --------------------------------------------------------------------------------------------------


def f1(answer: str, example: Example) -> float:
    return {"Rome": 1.0, "in Rome": 0.667, "the city Rome": 0.5, "a": 0.1}.get(answer, 0.0)


def ruled(inquiry: Inquiry, known: Sequence[str] = ()) -> str | None:
    (label,) = by_rules(frozenset(known), f1)("name", [inquiry])
    return label


def test_a_question_that_the_model_knows_needs_no_retrieval() -> None:
    assert ruled(Inquiry("retrieve", ANN)) == RETRIEVAL
    assert ruled(Inquiry("retrieve", ANN), known=["ann"]) == NO_RETRIEVAL


@pytest.mark.parametrize(
    ("passage", "relevance", "support"),
    [(BIRTH, RELEVANT, FULL), (HOP, RELEVANT, PARTIAL), (ALIAS, RELEVANT, NONE), (OTHER, IRRELEVANT, NONE)],
)
def test_passages_by_gold(passage: Passage, relevance: str, support: str) -> None:
    """An alias makes a passage relevant; it supports the very answer that is said, word for word."""
    assert ruled(Inquiry("relevance", ANN, passage=passage)) == relevance
    assert ruled(Inquiry("support", ANN, "Rome", passage)) == support


@pytest.mark.parametrize(
    ("answer", "utility"), [("Rome", 5), ("in Rome", 4), ("the city Rome", 3), ("a", 1), ("Oslo", 1)]
)
def test_the_utility_of_an_answer_is_its_f1(answer: str, utility: int) -> None:
    assert ruled(Inquiry("utility", ANN, answer)) == f"[Utility:{utility}]"


def test_the_title_belongs_to_the_passage() -> None:
    assert ruled(Inquiry("support", ANN, "Rome", Passage("x", "Rome", "A city."))) == FULL


# Words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "label"),
    [
        ("retrieve", "Yes", RETRIEVAL),
        ("retrieve", " no.\n", NO_RETRIEVAL),
        ("relevance", "YES!", RELEVANT),
        ("relevance", "well, no", IRRELEVANT),
        ("support", "Partially", PARTIAL),
        ("support", "fully/no", FULL),
        ("support", "nothing", None),
        ("utility", "4 of 5", IS_USE[3]),
        ("utility", "45", None),
        ("utility", "", None),
        ("retrieve", "maybe", None),
    ],
)
def test_the_first_word_that_stands_for_a_label_counts(kind: Any, text: str, label: str | None) -> None:
    assert read(text, WORDS[kind]) == label


def test_every_label_has_a_word() -> None:
    labels = [label for words in WORDS.values() for label in words.values()]
    assert sorted(labels) == sorted([RETRIEVAL, NO_RETRIEVAL, *IS_REL, *IS_SUP, *IS_USE])
    assert set(labels) < set(ALL)


# The critic ---------------------------------------------------------------------------------------------


def test_what_the_critic_is_asked() -> None:
    found = {"ann": (BIRTH, OTHER)}
    inquiries = critic_inquiries([ANN], found, {"ann": ["Oslo", "Rome", "", "Oslo"]}, Labels(), seed=0)
    assert [(i.kind, i.answer, i.passage) for i in inquiries] == [
        ("retrieve", "", None),
        ("relevance", "", BIRTH),
        ("support", "Rome", BIRTH),
        ("relevance", "", OTHER),
        ("support", "Rome", OTHER),
        ("utility", "Rome", None),
        ("utility", "Oslo", None),  # the model's own: not all answers are useful
    ]
    assert all(ANN.question in i.messages(None)[0].text for i in inquiries)
    shown = [i.messages(2)[0] for i in inquiries if i.passage == BIRTH]
    assert all(m.content[-1] == Evidence("Ann was") for m in shown)
    assert len({i.messages(None) for i in inquiries}) == len(inquiries)


def test_so_many_labels_of_each_kind_are_drawn_from_all() -> None:
    examples = [Example(f"q{n}", "Where?", (("Rome",),)) for n in range(100)]
    found = {example.id: (BIRTH, HOP, ALIAS, OTHER) for example in examples}
    everything = critic_inquiries(examples, found, {}, Labels(), seed=0)
    assert Counter(i.kind for i in everything) == {
        "retrieve": 100,
        "relevance": 400,
        "support": 400,
        "utility": 100,
    }

    counts = Labels(retrieve=50, relevance=120, support=7, utility=999)
    drawn = critic_inquiries(examples, found, {}, counts, seed=0)
    assert Counter(i.kind for i in drawn) == {"retrieve": 50, "relevance": 120, "support": 7, "utility": 100}
    assert [everything.index(inquiry) for inquiry in drawn] == sorted(map(everything.index, drawn))
    assert drawn == critic_inquiries(examples, found, {}, counts, seed=0)
    assert drawn != critic_inquiries(examples, found, {}, counts, seed=1)
    ranks = Counter(i.passage.id for i in drawn if i.kind == "relevance" and i.passage is not None)
    assert all(18 <= ranks[passage.id] <= 42 for passage in found["q0"])
    assert len({i.example.id for i in drawn if i.kind == "retrieve"} & {e.id for e in examples[50:]}) > 10


def test_lessons_are_inquiries_with_labels_that_could_be_read() -> None:
    inquiries = [Inquiry("retrieve", ANN), Inquiry("relevance", ANN, passage=BIRTH)]
    assert lessons(inquiries, [None, RELEVANT], None) == [
        Demonstration(inquiries[1].messages(None), (Token(RELEVANT),), "critic")
    ]


def test_what_was_labelled_is_not_asked_again() -> None:
    asked = []

    def others(name: str, inquiries: Sequence[Inquiry]) -> list[str | None]:
        asked.append((name, list(inquiries)))
        return [f"{name} {n}" for n in range(len(inquiries))]

    every = [
        Inquiry("retrieve", ANN),
        Inquiry("relevance", ANN, passage=BIRTH),
        Inquiry("support", ANN, "Rome", BIRTH),
        Inquiry("support", ANN, "Rome", HOP),
        Inquiry("support", ANN, "Oslo", BIRTH),
    ]
    labelled = {every[0].key: RETRIEVAL, every[2].key: FULL, every[3].key: None}
    label = reusing(labelled, others)
    assert label("a", every) == [RETRIEVAL, "a 0", FULL, "a 1", "a 2"]  # what could not be read is asked
    assert label("b", [every[2], every[0]]) == [FULL, RETRIEVAL]
    assert asked == [("a", [every[1], every[3], every[4]])]


# The generator's rows -----------------------------------------------------------------------------------

WHOLE = Mix(unretrieved=1.0, partial=1.0, unsupported=1.0)


class Table:
    """Labels by what is looked up: a need by question, relevance and support by passage, utility 5."""

    def __init__(
        self, needs: dict[str, str | None], passages: dict[str, tuple[str | None, str | None]]
    ) -> None:
        self.needs, self.passages = needs, passages
        self.asked: dict[str, list[Inquiry]] = {}
        self.utility: str | None = IS_USE[4]

    def __call__(self, name: str, inquiries: Sequence[Inquiry]) -> list[str | None]:
        assert name not in self.asked  # each is kept on disk under its name
        self.asked[name] = list(inquiries)
        return [self.label(inquiry) for inquiry in inquiries]

    def label(self, inquiry: Inquiry) -> str | None:
        if inquiry.kind == "retrieve":
            return self.needs.get(inquiry.example.id, RETRIEVAL)
        if inquiry.kind == "utility":
            return self.utility
        assert inquiry.passage is not None
        relevance, support = self.passages[inquiry.passage.id]
        return relevance if inquiry.kind == "relevance" else support


def passage(name: str) -> Passage:
    return Passage(name, f"Title of {name}", f"Text of {name} goes on.")


LABELS: dict[str, tuple[str | None, str | None]] = {
    "full": (RELEVANT, FULL),
    "full2": (RELEVANT, FULL),
    "part": (RELEVANT, PARTIAL),
    "none": (RELEVANT, NONE),
    "irr": (IRRELEVANT, None),
    "irr2": (IRRELEVANT, None),
    "unread": (None, None),
    "half": (RELEVANT, None),
}


def rows_of(names: str, mix: Mix = WHOLE, count: int = 1, **options: Any) -> tuple[list[Demonstration], Any]:
    """Rows of so many questions that all found the same passages, with the data's maker."""
    examples = [Example(f"q{n}", f"Question {n}?", (("Rome",),)) for n in range(count)]
    found = {e.id: tuple(map(passage, names.split())) for e in examples}
    table = Table(options.pop("needs", {}), LABELS)
    table.utility = options.pop("utility", IS_USE[4])
    data = GeneratorData(table, mix, "chat", options.pop("words", None), options.pop("seed", 0))
    return data.rows(examples, found), data


def kinds(rows: Sequence[Demonstration]) -> list[str]:
    """The passages that rows show, "-" for none."""
    shown = []
    for row in rows:
        assert isinstance(row.completion, tuple)
        texts = [part.text for part in row.completion if isinstance(part, Evidence)]
        shown.append(texts[0].split()[2] if texts else "-")
    return shown


def test_a_row_with_a_passage() -> None:
    rows, data = rows_of("irr part full full2", words=2)
    assert rows == [
        Demonstration(
            generator_prompt("Question 0?", "chat"),
            (
                Token(RETRIEVAL),
                Token(PARAGRAPH),
                Evidence("Title of full\nText of"),
                Token(END_PARAGRAPH),
                Token(RELEVANT),
                "Rome",
                Token(FULL),
                Token(IS_USE[4]),
            ),
        )
    ]
    assert data.statistics["fully"] == sum(data.statistics.values()) == 1


def test_a_row_with_an_irrelevant_passage_has_no_support() -> None:
    ((row,), data) = rows_of("irr")
    assert row.completion[4:] == (Token(IRRELEVANT), "Rome", Token(IS_USE[4]))
    assert data.statistics["irrelevant"] == 1


def test_a_row_without_a_passage() -> None:
    ((row,), data) = rows_of("full", needs={"q0": NO_RETRIEVAL}, utility=IS_USE[2])
    assert row.completion == (Token(NO_RETRIEVAL), "Rome", Token(IS_USE[2]))
    assert data.statistics["unretrieved"] == 1


@pytest.mark.parametrize(
    ("names", "mix", "shown"),
    [
        ("irr none part full", WHOLE, "full"),
        ("irr none part", WHOLE, "part"),
        ("irr none", WHOLE, "none"),
        ("irr none part", Mix(partial=0.0, unsupported=1.0), "none"),
        ("irr none part", Mix(partial=0.0, unsupported=0.0), "irr"),
        ("none part", Mix(partial=0.0, unsupported=0.0), "part"),  # nothing irrelevant to fall back to
        ("none", Mix(partial=0.0, unsupported=0.0), "none"),
        ("unread half full2", WHOLE, "full2"),
    ],
)
def test_which_passage_is_taken(names: str, mix: Mix, shown: str) -> None:
    assert kinds(rows_of(names, mix)[0]) == [shown]


def test_the_shares_of_the_mix() -> None:
    mix, count = Mix(unretrieved=0.4, partial=0.7, unsupported=0.25), 2000
    rows, data = rows_of("irr none part", mix, count)
    taken = kinds(rows)
    assert taken.count("part") / count == pytest.approx(0.7, abs=0.03)
    assert taken.count("none") / count == pytest.approx(0.3 * 0.25, abs=0.02)
    assert taken.count("irr") / count == pytest.approx(0.3 * 0.75, abs=0.03)
    assert data.statistics["partially"] == taken.count("part")
    needs = dict.fromkeys((f"q{n}" for n in range(count)), NO_RETRIEVAL)
    rows, data = rows_of("irr", mix, count, needs=needs)
    assert len(rows) / count == pytest.approx(0.4, abs=0.03)
    assert data.statistics["unretrieved"] == len(rows)
    assert data.statistics["unretrieved_left_out"] == count - len(rows)


def test_irrelevant_passages_are_drawn_among_all() -> None:
    taken = kinds(rows_of("irr irr2", count=1000)[0])
    assert taken.count("irr2") / 1000 == pytest.approx(0.5, abs=0.05)


def test_draws_belong_to_the_seed_and_the_question() -> None:
    mix = Mix(partial=0.5, unsupported=0.5)
    many = kinds(rows_of("irr irr2 none part", mix, 50)[0])
    assert kinds(rows_of("irr irr2 none part", mix, 50)[0]) == many
    assert kinds(rows_of("irr irr2 none part", mix, 20)[0]) == many[:20]
    assert kinds(rows_of("irr irr2 none part", mix, 50, seed=1)[0]) != many


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ("", {}),  # it needs a passage, and there is none
        ("unread", {}),
        ("half", {}),
        ("full", {"needs": {"q0": None}}),
        ("full", {"utility": None}),
    ],
)
def test_what_cannot_be_labelled_makes_no_row(names: str, options: dict[str, Any]) -> None:
    rows, data = rows_of(names, **options)
    assert rows == []
    assert data.statistics["unlabelled"] == sum(data.statistics.values()) == 1


def test_only_what_is_needed_is_labelled() -> None:
    """Passages of questions that need some, and the support of relevant ones."""
    examples = [Example(name, f"{name}?", (("Rome",),)) for name in ("a", "b")]
    table = Table({"b": NO_RETRIEVAL}, LABELS)
    found = {name: (passage("irr"), passage("full")) for name in ("a", "b")}
    GeneratorData(table, WHOLE, "chat", None, 0).rows(examples, found)
    asked = {
        name: [(i.example.id, i.passage and i.passage.id) for i in those]
        for name, those in table.asked.items()
    }
    assert asked == {
        "needs": [("a", None), ("b", None)],
        "uses": [("a", None), ("b", None)],
        "relevant": [("a", "irr"), ("a", "full")],
        "supported": [("a", "full")],
    }
    assert all(i.answer == "Rome" for i in table.asked["supported"] + table.asked["uses"])
