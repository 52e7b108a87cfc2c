"""RAG-DDR's rules about documents, rewards and pairs. Numbers in brackets are sections of its spec page."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import cycle, permutations

import pytest

from ragtrials.errors import UserError
from ragtrials.methods._ddr_documents import (
    Fill,
    all_or_kept,
    batches,
    enough,
    judged_relevant,
    select_documents,
)
from ragtrials.methods._ddr_pairs import Candidate, generator_pair, refiner_pairs, refiner_sets
from ragtrials.methods._ddr_rewards import Family, reward, reward_on, scored_part
from ragtrials.methods._ddr_statistics import DocumentStatistics, PairStatistics

SEEDS = range(200)
RETRIEVED = tuple(f"d{i}" for i in range(100))


def documents(*places: int) -> tuple[str, ...]:
    return tuple(RETRIEVED[i] for i in places)


# Verdicts, and the loop that asks for them (9.6)


@pytest.mark.parametrize("text", ["YES", "yes, it is", "Yes.", "YESTERDAY", "No… Yes", "No. Yes"])
def test_a_yes_anywhere_keeps_a_document(text: str) -> None:
    assert judged_relevant(text)


@pytest.mark.parametrize("text", ["NO", "No", "yEs", "", "Y E S"])
def test_anything_else_drops_it(text: str) -> None:
    assert not judged_relevant(text)


def refine(retrieved: Sequence[str], verdicts: str, need: int = 5) -> tuple[int, tuple[str, ...]]:
    """How many documents were judged, and which were kept, by the loop as the method writes it."""
    said: Iterator[str] = iter(verdicts)
    kept: list[str] = []
    judged = 0
    for batch in batches(retrieved, need):
        judged += len(batch)
        kept += [one for one in batch if judged_relevant({"Y": "YES", "N": "NO"}[next(said)])]
        if enough(len(kept), need):
            break
    return judged, all_or_kept(kept, retrieved)


def test_the_loop_ends_after_the_batch_that_gives_enough() -> None:
    assert refine(RETRIEVED, "YNNNNNYYNNYYNNN" + "Y" * 85) == (15, documents(0, 6, 7, 10, 11))


def test_a_whole_batch_is_judged_so_that_more_may_be_kept() -> None:
    judged, kept = refine(RETRIEVED, "YYYNNYYYNN" + "Y" * 90)
    assert (judged, kept) == (10, documents(0, 1, 2, 5, 6, 7))
    assert select_documents(kept, RETRIEVED, 5, "none") == documents(0, 1, 2, 5, 6)


def test_all_documents_are_kept_if_none_is_judged_relevant() -> None:
    assert refine(RETRIEVED, "N" * 100) == (100, RETRIEVED)
    assert refine((), "") == (0, ())


def test_a_short_list_ends_the_loop() -> None:
    assert refine(RETRIEVED[:3], "NYN") == (3, documents(1))


def test_batches_keep_the_order_and_everything() -> None:
    assert list(batches("abcdefg", 3)) == ["abc", "def", "g"]
    assert list(batches("", 3)) == []


# The documents that the generator reads (9.7)


@pytest.mark.parametrize(
    ("kept", "fill", "chosen"),
    [
        ((3, 7), "official", (3, 7, 0, 1, 2)),
        ((0, 4), "official", (0, 4, 0, 1, 2)),
        ((0, 4), "none", (0, 4)),
        ((0, 4), "unique", (0, 4, 1, 2, 3)),
        ((3, 7), "unique", (3, 7, 0, 1, 2)),
        (range(8), "official", range(5)),
        (range(8), "none", range(5)),
        (range(8), "unique", range(5)),
        ((), "unique", range(5)),
        ((), "none", ()),
    ],
)
def test_documents_shown(kept: Sequence[int], fill: Fill, chosen: Sequence[int]) -> None:
    assert select_documents(documents(*kept), RETRIEVED, 5, fill) == documents(*chosen)


def test_fewer_documents_than_wanted_are_all_there_is() -> None:
    assert select_documents(documents(1), RETRIEVED[:3], 5, "unique") == documents(1, 0, 2)
    assert select_documents(documents(1), RETRIEVED[:3], 5, "official") == documents(1, 0, 1, 2)


def test_an_unknown_fill_is_named() -> None:
    with pytest.raises(UserError, match="fill must be none, official or unique, not 'all'"):
        select_documents((), RETRIEVED, 5, "all")  # type: ignore[arg-type]


# Rewards (9.3, 2.2)


@pytest.mark.parametrize(
    ("text", "gold", "data_type", "family", "value"),
    [
        ("(C)", "(C)", "aqua_rat", "llama", 1),
        ("(A) because (C)", "(C)", "aqua_rat", "llama", 0),
        ("The answer is (C)", "(C)", "aqua_rat", "llama", 0),
        ("18 [<COT 62 COT>]", "62", "gsm8k", "llama", 0),
        ("62 [<COT 18 COT>]", "62", "gsm8k", "llama", 1),
        ("(C) [<COT x (A)", "(C)", "aqua_rat", "minicpm", 1),
        ("(A) [<COT x (C)", "(C)", "aqua_rat", "minicpm", 0),
        ("- fights", "fights", "ecqa", "llama", 1),
        ("- love [<COT fights", "fights", "ecqa", "llama", 1),
        ("- love [<COT fights", "fights", "ecqa", "minicpm", 0),
        ("It is Paris.", "Paris", "web_questions", "minicpm", 1),
        ("the cat", "the cat sat on the mat", "marcoqa", "llama", 0.5714285673),
        ("", "the cat", "wiki_qa", "llama", 0),
    ],
)
def test_rewards(text: str, gold: str, data_type: str, family: Family, value: float) -> None:
    assert reward(text, [gold], data_type, family) == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(
    ("data_types", "llama", "minicpm"),
    [
        (("math_qa", "commonsense_qa"), "(A)", "(A)"),
        (("aqua_rat",), "(A)", "(A) is [<"),
        (("ecqa",), "(A) is [<COT b COT>]", "(A) is [<"),
        (("gsm8k", "strategyqa"), "(A) is [<", "(A) is [<"),
        (
            ("web_questions", "wiki_qa", "yahoo_answers_qa", "marcoqa"),
            "(A) is [<COT b COT>]",
            "(A) is [<COT b COT>]",
        ),
    ],
)
def test_the_scored_part_of_all_ten_data_types(data_types: tuple[str, ...], llama: str, minicpm: str) -> None:
    for data_type in data_types:
        assert scored_part("(A) is [<COT b COT>]", data_type, "llama") == llama
        assert scored_part("(A) is [<COT b COT>]", data_type, "minicpm") == minicpm


def test_the_best_gold_counts() -> None:
    assert reward("in Paris", ["Lutetia", "Paris"], "web_questions", "llama") == 1.0


def test_a_task_here_is_rewarded_as_its_namesake_in_the_training_mix() -> None:
    assert reward_on("webquestions", "in Paris", ["Paris"]) == 1.0
    assert reward_on("strategyqa", "no [<COT yes COT>]", ["yes"]) == 0.0
    with pytest.raises(UserError, match="unknown data type 'hotpotqa'"):
        reward_on("hotpotqa", "x", ["x"])


def test_what_has_no_reward_is_named() -> None:
    with pytest.raises(UserError, match="unknown data type 'hotpot'; RAG-DDR's rewards know aqua_rat, "):
        scored_part("x", "hotpot", "llama")
    with pytest.raises(
        UserError, match="unknown generator family 'qwen'; RAG-DDR's rewards know llama, minicpm"
    ):
        scored_part("x", "ecqa", "qwen")  # type: ignore[arg-type]
    for golds in ([], [""], ["Paris", " "]):
        with pytest.raises(UserError, match="ecqa: a gold answer is missing or blank"):
            reward("x", golds, "ecqa", "llama")


# The generator's pair (9.4)


def candidates(*answers: str, gold: str = "Paris", data_type: str = "web_questions") -> list[Candidate]:
    """From "text/r" (raw) and "text/a" (augmented)."""
    split = [answer.rsplit("/", 1) for answer in answers]
    return [
        Candidate(i, text, reward(text, [gold], data_type, "llama"), kind == "r")
        for i, (text, kind) in enumerate(split)
    ]


# Where several candidates are possible, the official code draws with a generator that one file shares; the seeds
# of its published results say nothing about a draw that is seeded per question (quirk 20). What may come out
# agrees with it, and every seed of ours that is tried gives one of these.
@pytest.mark.parametrize(
    ("answers", "pairs"),
    [
        (("London/r", "Paris/a", "Rome/r", "Paris, France/a"), {(1, 0), (1, 2), (3, 0), (3, 2)}),
        (("Paris/r", "Paris/a", "Rome/a", "Rome/r"), {(0, 2)}),
        (("Paris/r", "Rome/r", "Paris/a"), {(0, 1)}),
        (("Paris/a", "Paris/a", "Rome/r", "Rome/a"), {(0, 2), (0, 3), (1, 2), (1, 3)}),
        (("Paris/r", "Paris/r", "Rome/a", "Oslo/a", "Rome/r"), {(0, 2), (0, 3), (1, 2), (1, 3)}),
        (("Paris/r", "Paris/a", "paris/r"), {None}),
        (("Rome/r", "Rome/a"), {None}),
        (("Paris/a",), {None}),
        ((), {None}),
    ],
)
def test_generator_pairs(answers: tuple[str, ...], pairs: set[tuple[int, int] | None]) -> None:
    assert {generator_pair(candidates(*answers), seed) for seed in SEEDS} == pairs


def test_the_middle_is_ignored() -> None:
    gold = "the cat sat on the mat"
    group = candidates("the cat/a", f"{gold}/a", "dog/a", gold=gold, data_type="marcoqa")
    assert 0 < group[0].score < group[1].score
    assert {generator_pair(group, seed) for seed in SEEDS} == {(1, 2)}


def test_a_pair_depends_on_the_seed_alone_and_on_no_order() -> None:
    group = candidates("Paris/a", "Paris/a", "Rome/r", "Rome/a")
    for seed in range(10):
        random.seed(seed)
        assert len({generator_pair(order, seed) for order in permutations(group)}) == 1
    assert random.random() == random.Random(9).random()  # the shared generator is left alone


def test_draws_are_even() -> None:
    group = candidates("Paris/a", "Paris/a", "Rome/r", "Rome/a")
    drawn = [generator_pair(group, seed) for seed in range(4000)]
    assert all(900 < drawn.count(pair) < 1100 for pair in {(0, 2), (0, 3), (1, 2), (1, 3)})


def test_candidates_are_told_apart_by_their_index() -> None:
    with pytest.raises(ValueError, match="same index"):
        generator_pair([Candidate(1, "a", 1.0, True), Candidate(1, "b", 0.0, True)], 0)


# The refiner's pairs (9.5)


def scores_of(*answers: str) -> list[float]:
    return [reward(answer, ["Paris"], "web_questions", "llama") for answer in answers]


ANSWERS = scores_of("Paris", "Rome", "paris", "Oslo", "x")


@pytest.mark.parametrize(
    ("scores", "best", "worst"),
    [
        (ANSWERS, (0, 2), (1, 3, 4)),
        (ANSWERS[:2], (0,), (1,)),  # top_n = 2
        (scores_of("Paris", "paris", "in Paris"), (), ()),
        (scores_of("Rome", "x"), (), ()),
        (ANSWERS[:1], (), ()),
        ([], (), ()),
        ([0.4, 0.9, 0.0, 0.0], (1,), (2, 3)),  # marcoqa: a document between them is left out
    ],
)
def test_refiner_sets_and_pairs(
    scores: Sequence[float], best: tuple[int, ...], worst: tuple[int, ...]
) -> None:
    assert refiner_sets(scores) == (best, worst)
    drawn = {refiner_pairs(scores, seed) for seed in SEEDS}
    assert drawn == ({(yes, no) for yes in best for no in worst} or {None})


def test_equal_documents_are_never_taken_for_each_other() -> None:
    """The official code compares contents: with one text at both ends, it trains YES twice (quirk 7)."""
    texts = ["same", "same"]
    pair = refiner_pairs(scores_of("Paris", "Rome"), 0)
    assert pair == (0, 1)
    assert texts[pair[0]] == texts[pair[1]]


# Statistics of the pairs


def test_statistics_of_the_generators_pairs() -> None:
    groups = [
        candidates("Paris/r", "Rome/a"),
        candidates("Paris/r", "Oslo/a"),
        candidates("Paris/a", "Rome/r"),
        candidates("Paris/r", "Paris/a"),
        [Candidate(7, "x", 0.25, False), Candidate(3, "y", 0.75, True)],
        [],
    ]
    got = PairStatistics.of((group, generator_pair(group, 0)) for group in groups)
    assert got == PairStatistics(
        queries=6,
        kept=4,
        ties=2,
        chosen_raw=3,
        rejected_raw=1,
        mean_best=(1 + 1 + 1 + 1 + 0.75) / 5,
        mean_worst=(0 + 0 + 0 + 1 + 0.25) / 5,
        mean_spread=(1 + 1 + 1 + 0 + 0.5) / 5,
    )


def test_statistics_of_the_refiners_pairs() -> None:
    got = DocumentStatistics.of([ANSWERS, [0.5, 0.5], [0.5], [], [0.0, 0.5]])
    assert got == DocumentStatistics(
        queries=5,
        kept=2,
        ties=3,
        best_documents=3,
        worst_documents=4,
        mean_best=(1 + 0.5 + 0.5 + 0.5) / 4,
        mean_worst=(0 + 0.5 + 0.5 + 0) / 4,
        mean_spread=(1 + 0 + 0 + 0.5) / 4,
    )


def test_statistics_of_nothing() -> None:
    assert PairStatistics.of([]) == PairStatistics(0, 0, 0, 0, 0, 0.0, 0.0, 0.0)
    assert DocumentStatistics.of([]) == DocumentStatistics(0, 0, 0, 0, 0, 0.0, 0.0, 0.0)


# From documents to pairs (9.10)

GOOD, MISLEADING, BESIDE = "Paris is the capital.", "Lyon is the capital.", "Cheese is good."


class FakeGenerator:
    """Repeats what the documents say; without documents it answers only what it knows."""

    def __init__(self, known: bool) -> None:
        self.knows = known

    def __call__(self, shown: Sequence[str]) -> str:
        text = "\n".join(shown)
        if "Paris" in text or (self.knows and not shown):
            return "Paris"
        return "Lyon" if "Lyon" in text else "no idea"


def sampled(generator: FakeGenerator, retrieved: Sequence[str]) -> list[Candidate]:
    """Five times one answer without and one with documents, as the official rollout alternates (2.1)."""
    shown = select_documents((), retrieved, 5, "unique")
    modes = zip(range(10), cycle((True, False)), strict=False)
    answers = [(i, generator(() if raw else shown), raw) for i, raw in modes]
    return [
        Candidate(i, text, reward(text, ["Paris"], "web_questions", "llama"), raw) for i, text, raw in answers
    ]


@pytest.mark.parametrize(
    ("known", "retrieved", "chosen_raw"),
    [(True, (BESIDE, MISLEADING), True), (False, (BESIDE, GOOD), False)],
)
def test_own_knowledge_beats_bad_documents_and_good_ones_beat_ignorance(
    known: bool, retrieved: tuple[str, ...], chosen_raw: bool
) -> None:
    group = sampled(FakeGenerator(known), retrieved)
    for seed in SEEDS:
        pair = generator_pair(group, seed)
        assert pair is not None
        chosen, rejected = group[pair[0]], group[pair[1]]
        assert (chosen.text, chosen.raw, rejected.raw) == ("Paris", chosen_raw, not chosen_raw)


@pytest.mark.parametrize(("known", "retrieved"), [(True, (GOOD,)), (False, (MISLEADING, BESIDE))])
def test_nothing_is_learnt_where_documents_change_nothing(known: bool, retrieved: tuple[str, ...]) -> None:
    assert generator_pair(sampled(FakeGenerator(known), retrieved), 0) is None


def test_the_refiner_learns_which_document_helps() -> None:
    retrieved = (MISLEADING, GOOD, BESIDE)
    scores = scores_of(*(FakeGenerator(True)([document]) for document in retrieved))
    pairs = {refiner_pairs(scores, seed) for seed in SEEDS}
    assert pairs == {(1, 0), (1, 2)}  # YES for the one with the answer, NO for one of the others
