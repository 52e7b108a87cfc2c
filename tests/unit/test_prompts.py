"""The prompt parts that methods share, and how much of a passage vanilla_rag shows."""

from __future__ import annotations

import pytest

from ragtrials.config import override
from ragtrials.data import Passage
from ragtrials.errors import UserError
from ragtrials.methods._prompts import first_words, passage_parts
from ragtrials.methods.vanilla_rag import VanillaRag, VanillaRagConfig
from ragtrials.program import Evidence, Generate, Hit

TEXT = " One  two\nthree,\tfour é五. "
PASSAGES = (Passage("a", "Ada", TEXT), Passage("b", "", "Bob."))


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (None, TEXT),
        (1, " One"),
        (2, " One  two"),
        (3, " One  two\nthree,"),
        (4, " One  two\nthree,\tfour"),
        (5, TEXT),
        (60, TEXT),
    ],
)
def test_the_first_words_are_spaced_as_in_the_text(count: int | None, shown: str) -> None:
    assert first_words(TEXT, count) == shown


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
@pytest.mark.parametrize("count", [None, 1, 3])
def test_a_text_without_words_is_left_alone(text: str, count: int | None) -> None:
    assert first_words(text, count) == text


def test_whole_passages_are_shown_unless_told_otherwise() -> None:
    parts = ("[1] Ada: ", Evidence(TEXT), "\n", "[2] : ", Evidence("Bob."), "\n")
    assert passage_parts(PASSAGES) == passage_parts(PASSAGES, None) == parts


def test_only_texts_are_cut_never_titles() -> None:
    long_title = Passage("c", "A title of five words", "one two three")
    assert passage_parts([long_title], 2) == ("[1] A title of five words: ", Evidence("one two"), "\n")


@pytest.mark.parametrize(("options", "shown"), [([], TEXT), (["passage_words=2"], " One  two")])
def test_vanilla_rag_shows_as_many_words_as_its_setting_says(options: list[str], shown: str) -> None:
    program = VanillaRag(override(VanillaRagConfig(shots=0), options)).answer("Who?")
    next(program)
    request = program.send([Hit(PASSAGES[0], 1.0)])
    assert isinstance(request, Generate)
    assert Evidence(shown) in request.messages[0].content


@pytest.mark.parametrize("words", [0, -1])
def test_fewer_words_than_one_are_refused(words: int) -> None:
    with pytest.raises(UserError, match=f"^passage_words must be at least 1, or none .*not {words}$"):
        override(VanillaRagConfig(), [f"passage_words={words}"])


def test_none_shows_whole_passages_again() -> None:
    assert override(VanillaRagConfig(passage_words=9), ["passage_words=none"]) == VanillaRagConfig()
