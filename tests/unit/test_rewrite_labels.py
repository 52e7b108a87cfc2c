"""The rules that write the rewriter's warm-start targets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtrials.methods._rewrite_labels import heuristic_rewrites
from ragtrials.methods._rewrites import parse_rewrites

COMPARISONS = {
    "Were Scott Derrickson and Ed Wood of the same nationality?": [
        "Scott Derrickson nationality",
        "Ed Wood nationality",
    ],
    "Which of the two is more populous: the town of Goslar or Kenilworth in the United Kingdom?": [
        "town Goslar",
        "Kenilworth in the United Kingdom",
    ],
    "Are Trinidad and Tobago and Panama on the same continent?": [
        "Trinidad and Tobago continent",
        "Panama continent",
    ],
    "Is the money of Saint Vincent and the Grenadines also that of El Salvador?": [
        "Saint Vincent and the Grenadines money",
        "El Salvador money",
    ],
    "Which musical film is older, Bedknobs and Broomsticks or The Muppet Christmas Carol?": [
        "Bedknobs and Broomsticks musical film",
        "The Muppet Christmas Carol musical film",
    ],
    "Which is larger, Laurel or Simon and Garfunkel?": ["Laurel", "Simon and Garfunkel"],
    "Do more people live in Micronesia or in Papua New Guinea?": ["Micronesia live", "Papua New Guinea live"],
    "Is Minsk or the city of Maracaibo closer to the North Pole?": [
        "Minsk North Pole",
        "city Maracaibo North Pole",
    ],
    "Between Bemowo and Riohacha, which one lies in the north?": ["Bemowo lies north", "Riohacha lies north"],
    "Of San Angel and Al Ain City, which one is nearer to the sea?": ["San Angel sea", "Al Ain City sea"],
    "Which is oldest, Rome or Paris or Berlin?": ["Rome oldest", "Paris oldest", "Berlin oldest"],
    "Are Rome and Paris and Berlin capitals?": ["Rome capitals", "Paris capitals", "Berlin capitals"],
    "Are the directors of film House on the Dune and film Antic of the same age?": [
        "House on the Dune directors film age",
        "Antic directors film age",
    ],
    "Does Rafael Novoa have the same nationality as Gayleen Aiken?": [
        "Rafael Novoa nationality",
        "Gayleen Aiken nationality",
    ],
    "Is the University of Oxford older than Kingston, Jamaica?": ["University of Oxford", "Kingston Jamaica"],
}

CLAUSES = {
    "What is the currency of the country where people speak Filipino and Tagalog and in which Guyong lies?": [
        "speak Filipino Tagalog currency country",
        "Guyong lies currency country",
    ],
    "Which continent has the country that borders Oman and Saudi Arabia and in which Sila lies?": [
        "borders Oman Saudi Arabia continent country",
        "Sila lies continent country",
    ],
    "The 2015 CrossFit Games were held at what complex that is south of Los Angeles?": [
        "2015 CrossFit Games held complex",
        "south Los Angeles complex",
    ],
}

KEYWORDS = {
    "What is the capital of the country in which the town of Glamorgan lies?": "capital country town Glamorgan lies",
    "When did Bobby Sands' hunger strike end?": "Bobby Sands hunger strike end",
    "Water Night was composed by an American?": "Water Night composed American",
    "Maxeda has been owned by which firm?": "Maxeda owned firm",
    'Who wrote "Wait for It!" in 1939?': "wrote Wait for It 1939",
    "Which is the largest city in the US state in 2012?": "largest city US state 2012",
    "Name the capital of the U.S.": "capital U.S.",
    "Name the capital that they belong to.": "capital belong",
    "who was the first man on the moon": "first man moon",
    "The director of the film, when did he die?": "director film die",
}


@pytest.mark.parametrize("question", COMPARISONS)
def test_a_comparison_has_one_query_for_each_name(question: str) -> None:
    assert [*heuristic_rewrites(question)] == COMPARISONS[question]


@pytest.mark.parametrize("question", CLAUSES)
def test_clauses_with_names_are_queries(question: str) -> None:
    assert [*heuristic_rewrites(question)] == CLAUSES[question]


@pytest.mark.parametrize("question", KEYWORDS)
def test_other_questions_lose_their_function_words(question: str) -> None:
    assert heuristic_rewrites(question) == (KEYWORDS[question],)


def test_there_are_at_most_so_many() -> None:
    comparison = "Which is oldest, Rome or Paris or Berlin or Bern or Oslo?"
    assert [line.split()[0] for line in heuristic_rewrites(comparison)] == ["Rome", "Paris", "Berlin", "Bern"]
    assert heuristic_rewrites("Is Rome or Paris older?", most=1) == ("Rome Paris older",)
    clauses = "Anna met a man who knew Bob, who saw Carl, who saw Dora, who saw Emil"
    assert heuristic_rewrites(clauses, most=2) == ("Anna met man", "knew Bob saw Carl saw Dora saw Emil")
    with pytest.raises(ValueError, match="at least one query"):
        heuristic_rewrites("Who?", most=0)


@pytest.mark.parametrize("question", ["who is it?", "  what was that \n then? "])
def test_a_question_of_function_words_is_kept(question: str) -> None:
    assert heuristic_rewrites(question) == (" ".join(question.split()),)


PIECES = [
    "Is",
    "which",
    "the",
    "Rome",
    "Paris,",
    "of",
    "and",
    "or",
    "town",
    "city",
    "in",
    "1939",
    "both",
    "lies",
    "?",
]


@given(
    question=st.lists(st.sampled_from([*PIECES, "that", "Trinidad", "Tobago", '"A', "B.", "U.S.", "."])).map(
        " ".join
    )
    | st.text(),
    most=st.integers(1, 5),
)
def test_any_question_gives_lines_that_are_read_back(question: str, most: int) -> None:
    lines = heuristic_rewrites(question, most)
    assert 1 <= len(lines) <= most
    assert len({*lines}) == len(lines)
    if question.strip():
        assert parse_rewrites("\n".join(lines), question, most=most).queries == lines
    else:
        assert lines == (question,)
