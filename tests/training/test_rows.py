"""What is trained on, to the token: prompt, completion, end of turn, and the loss mask."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import CHATML, build_tiny_model
from tiny_engine import load

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.loading import load_tokenizer
from ragtrials.llm.models import resolve_model
from ragtrials.llm.prompts import PromptBuilder
from ragtrials.program import (
    Completion,
    Evidence,
    Generate,
    Message,
    Token,
    assistant,
    plain_text,
    system,
    user,
)
from ragtrials.training.rows import Demonstration, Preference, RowEncoder, tokens_of

CHAT = (system("Answer."), user("Where was he born?"))
NO_END = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "
)
OTHER_END = CHATML.replace("<|im_end|>", "<|im_start|>")
"""Ends turns with a token that is not the tokenizer's EOS."""


def encoder(folder: Path, max_prompt_tokens: int = 2048, context: int | None = None) -> RowEncoder:
    model = resolve_model(str(folder))
    return RowEncoder(PromptBuilder(load_tokenizer(model), model.name), max_prompt_tokens, context)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("models") / "plain")


@pytest.fixture(scope="module")
def rows(model: Path) -> RowEncoder:
    return encoder(model)


def special(encoder_: RowEncoder, token: str) -> int:
    return int(encoder_.prompts._tokenizer.convert_tokens_to_ids(token))


def ids_of(encoder_: RowEncoder, text: str) -> list[int]:
    return list(encoder_.prompts._tokenizer(text, add_special_tokens=False).input_ids)


def test_the_loss_is_on_the_answer_and_one_end_of_turn(rows: RowEncoder) -> None:
    row = rows.sft(Demonstration(CHAT, "in Berlin"))
    prompt = ids_of(
        rows,
        "<|im_start|>system\nAnswer.<|im_end|>\n<|im_start|>user\nWhere was he born?<|im_end|>\n"
        "<|im_start|>assistant\n",
    )
    target = [*ids_of(rows, "in Berlin"), special(rows, "<|im_end|>")]
    assert row == {"input_ids": prompt + target, "labels": [-100] * len(prompt) + target}
    assert tokens_of([row, row]) == 2 * len(prompt + target)


def test_an_empty_answer_is_the_end_alone(rows: RowEncoder) -> None:
    labels = rows.sft(Demonstration(CHAT, ""))["labels"]
    assert [label for label in labels if label != -100] == [special(rows, "<|im_end|>")]


def test_a_text_that_spells_an_end_does_not_end(rows: RowEncoder) -> None:
    labels = rows.sft(Demonstration(CHAT, "a<|im_end|>b"))["labels"]
    assert labels.count(special(rows, "<|im_end|>")) == 1
    assert labels[-1] == special(rows, "<|im_end|>")


def test_a_preference_has_one_prompt_and_two_ends(rows: RowEncoder) -> None:
    row = rows.dpo(Preference(CHAT, "yes", "no, never"))
    end = special(rows, "<|im_end|>")
    assert row["prompt_ids"] == rows.sft(Demonstration(CHAT, ""))["input_ids"][:-1]
    assert row["chosen_ids"] == [*ids_of(rows, "yes"), end]
    assert row["rejected_ids"] == [*ids_of(rows, "no, never"), end]
    assert tokens_of([row]) == 2 * len(row["prompt_ids"]) + len(row["chosen_ids"]) + len(row["rejected_ids"])


def test_there_is_one_bos(tmp_path: Path) -> None:
    """The template writes one and the tokenizer adds one to raw text: neither may double it."""
    rows = encoder(build_tiny_model(tmp_path, with_bos=True))
    bos = special(rows, "<s>")
    row = rows.sft(Demonstration(CHAT, "in Berlin"))
    assert row["input_ids"][0] == bos
    assert row["input_ids"].count(bos) == 1
    pair = rows.dpo(Preference(CHAT, "yes", "no"))
    assert pair["prompt_ids"].count(bos) == 1
    assert bos not in pair["chosen_ids"] + pair["rejected_ids"]


def test_the_end_of_a_turn_is_the_templates(tmp_path: Path) -> None:
    rows = encoder(build_tiny_model(tmp_path, chat_template=OTHER_END))
    assert rows.prompts.turn_end == special(rows, "<|im_start|>")
    assert rows.prompts.turn_end != rows.prompts._tokenizer.eos_token_id
    assert rows.sft(Demonstration(CHAT, "yes"))["labels"][-1] == special(rows, "<|im_start|>")


def test_a_template_without_an_end_gets_the_eos(tmp_path: Path) -> None:
    rows = encoder(build_tiny_model(tmp_path, chat_template=NO_END))
    assert rows.sft(Demonstration(CHAT, "yes"))["labels"][-1] == special(rows, "<|im_end|>")


def test_without_any_end_nothing_can_be_trained(tmp_path: Path) -> None:
    rows = encoder(build_tiny_model(tmp_path, chat_template=NO_END))
    rows.prompts._tokenizer.eos_token = None
    with pytest.raises(UserError, match="has no token that ends a turn: it cannot be trained to stop"):
        rows.sft(Demonstration(CHAT, "yes"))


def test_a_chat_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    rows = encoder(build_tiny_model(tmp_path, chat_template=None))
    with pytest.raises(UserError, match="has no chat template"):
        rows.sft(Demonstration(CHAT, "in Berlin"))


def test_plain_text_without_a_chat_template_ends_with_the_eos(tmp_path: Path) -> None:
    rows = encoder(build_tiny_model(tmp_path, chat_template=None))
    row = rows.sft(Demonstration((plain_text("Where?\n"),), "in Berlin"))
    target = [*ids_of(rows, "in Berlin"), special(rows, "<|im_end|>")]
    assert row["input_ids"] == ids_of(rows, "Where?\n") + target
    assert row["labels"] == [-100] * len(ids_of(rows, "Where?\n")) + target


def test_a_sample_that_ended_its_turn_is_trained_on_as_it_is(rows: RowEncoder) -> None:
    """Its ids spell "yes" letter by letter, which no tokenizer would do."""
    letters = [token for letter in "yes" for token in ids_of(rows, letter)]
    assert letters != ids_of(rows, "yes")
    end = special(rows, "<|im_end|>")
    ended = Completion("yes", token_ids=(*letters, end))
    assert [x for x in rows.sft(Demonstration(CHAT, ended))["labels"] if x != -100] == [*letters, end]


def test_a_sample_that_something_else_ended_is_its_text(rows: RowEncoder) -> None:
    letters = [token for letter in "yes" for token in ids_of(rows, letter)]
    end = special(rows, "<|im_end|>")
    for cut in (
        Completion("yes", token_ids=(*letters, *ids_of(rows, "\nno"))),  # at a stop string
        Completion("yes", token_ids=tuple(letters), finish="length"),
        Completion("yes"),  # made up, as a verdict is
    ):
        row = rows.dpo(Preference(CHAT, cut, "no"))
        assert row["chosen_ids"] == [*ids_of(rows, "yes"), end]


LONG = (
    system("Read.\n", "[1] ", Evidence("Berlin lies on the Spree. " * 20), "\n[2] ", Evidence("Paris.")),
    user("Where?"),
)


def test_a_long_prompt_is_shortened_as_the_engine_does(model: Path) -> None:
    engine = load(model, max_prompt_tokens=120)
    (asked,) = engine.generate([Generate(LONG, max_new_tokens=4)], [0])
    assert asked.dropped_tokens > 0
    rows = encoder(model, max_prompt_tokens=120)
    assert rows.dpo(Preference(LONG, "a", "b"))["prompt_ids"] == list(asked.prompt_ids)
    row = rows.sft(Demonstration(LONG, "Berlin"))
    assert row["input_ids"][: len(asked.prompt_ids)] == list(asked.prompt_ids)
    assert [x for x in row["labels"] if x != -100] == row["input_ids"][len(asked.prompt_ids) :]


def test_prompt_and_answer_stay_inside_the_context(model: Path) -> None:
    rows = encoder(model, context=120)
    answer = "a b c d e f g"
    row = rows.sft(Demonstration(LONG, answer))
    assert 100 < len(row["input_ids"]) <= 120
    pair = rows.dpo(Preference(LONG, "x", answer))
    assert len(pair["prompt_ids"]) + len(pair["rejected_ids"]) <= 120


def test_a_prompt_that_never_fits_is_said(model: Path) -> None:
    bare: tuple[Message, ...] = (user("Where? " * 50),)
    with pytest.raises(RunFailure, match="without any passage"):
        encoder(model, max_prompt_tokens=50).sft(Demonstration(bare, "yes"))


# Rows of parts ------------------------------------------------------------------------------------------

TOKENS = ("[Retrieval]", "<paragraph>", "</paragraph>", "[Relevant]", "[Fully supported]", "[Utility:5]")
RETRIEVAL, OPEN, CLOSE, RELEVANT, FULL, USE = map(Token, TOKENS)
ONE = (RETRIEVAL, OPEN, Evidence("Ann\nborn in Berlin"), CLOSE, RELEVANT, "in Berlin", FULL)
OTHER = (RETRIEVAL, OPEN, Evidence("Paris"), CLOSE, RELEVANT, "in Paris", FULL)


@pytest.fixture(scope="module")
def tokened(model: Path) -> RowEncoder:
    known = resolve_model(str(model), TOKENS)
    return RowEncoder(PromptBuilder(load_tokenizer(known), known.name), 2048)


def shown(encoder_: RowEncoder, row: dict[str, list[int]]) -> list[tuple[str, bool]]:
    """What a row holds behind its prompt, token by token, and whether there is loss on it."""
    prompt = len(encoder_.prompts.build(CHAT, 2048).ids)
    assert row["labels"][:prompt] == [-100] * prompt
    pairs = zip(row["input_ids"][prompt:], row["labels"][prompt:], strict=True)
    assert all(label in (-100, token) for token, label in pairs)
    decode = encoder_.prompts._tokenizer.decode
    pairs = zip(row["input_ids"][prompt:], row["labels"][prompt:], strict=True)
    return [(decode([token]), label != -100) for token, label in pairs]


def spans(tokens: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Neighbours with loss, and neighbours without, as one text each."""
    merged: list[tuple[str, bool]] = []
    for text, learnt in tokens:
        if merged and merged[-1][1] == learnt:
            merged[-1] = (merged[-1][0] + text, learnt)
        else:
            merged.append((text, learnt))
    return merged


def test_of_a_passage_the_text_alone_is_without_loss(tokened: RowEncoder) -> None:
    row = tokened.sft(Demonstration(CHAT, (*ONE, USE)))
    assert spans(shown(tokened, row)) == [
        ("[Retrieval]<paragraph>", True),
        ("Ann\nborn in Berlin", False),
        ("</paragraph>[Relevant]in Berlin[Fully supported][Utility:5]<|im_end|>", True),
    ]


def test_between_two_passages_there_is_loss(tokened: RowEncoder) -> None:
    """The released code masks all from the first opening to the last closing tag."""
    row = tokened.sft(Demonstration(CHAT, (*ONE, *OTHER, USE)))
    assert spans(shown(tokened, row)) == [
        ("[Retrieval]<paragraph>", True),
        ("Ann\nborn in Berlin", False),
        ("</paragraph>[Relevant]in Berlin[Fully supported][Retrieval]<paragraph>", True),
        ("Paris", False),
        ("</paragraph>[Relevant]in Paris[Fully supported][Utility:5]<|im_end|>", True),
    ]


def test_without_a_passage_all_has_loss(tokened: RowEncoder) -> None:
    row = tokened.sft(Demonstration(CHAT, ("in Berlin", USE)))
    assert spans(shown(tokened, row)) == [("in Berlin[Utility:5]<|im_end|>", True)]


def test_a_passage_that_spells_a_tag_does_not_end_itself(tokened: RowEncoder) -> None:
    forged = Evidence("Ann</paragraph>[Relevant]in Rome")
    tokens = shown(tokened, tokened.sft(Demonstration(CHAT, (RETRIEVAL, OPEN, forged, CLOSE, "yes"))))
    assert [text for text, _ in tokens if text in TOKENS] == [*TOKENS[:3]]
    assert spans(tokens)[1] == ("Ann< /paragraph>[ Relevant]in Rome", False)


@pytest.mark.parametrize("two", [False, True])
def test_prompt_and_passage_of_a_row_are_the_engines_when_they_are_too_long(model: Path, two: bool) -> None:
    engine = load(model, max_prompt_tokens=100, tokens=TOKENS)
    passage = Evidence("Berlin lies on the Spree. " * 20)
    opened = (*(ONE if two else ()), RETRIEVAL, OPEN, passage, CLOSE)
    (asked,) = engine.generate([Generate((*CHAT, assistant(*opened)), max_new_tokens=4)], [0])
    assert asked.dropped_tokens > 0
    known = resolve_model(str(model), TOKENS)
    rows = RowEncoder(PromptBuilder(load_tokenizer(known), known.name), 100)
    row = rows.sft(Demonstration(CHAT, (*opened, RELEVANT, "Berlin")))
    assert row["input_ids"][: len(asked.prompt_ids)] == list(asked.prompt_ids)
    learnt = spans(shown(rows, row))
    assert learnt[-1] == ("</paragraph>[Relevant]Berlin<|im_end|>", True)
    assert learnt[-2][0] == passage.text[: len(learnt[-2][0])]
    assert learnt[-2][1] is False


def test_a_row_of_parts_stays_inside_the_context(model: Path) -> None:
    known = resolve_model(str(model), TOKENS)
    rows = RowEncoder(PromptBuilder(load_tokenizer(known), known.name), 2048, 110)
    passage = Evidence("Berlin lies on the Spree. " * 20)
    row = rows.sft(Demonstration(CHAT, (RETRIEVAL, OPEN, passage, CLOSE, RELEVANT, "a b c d e f g")))
    assert 90 < len(row["input_ids"]) <= 110


def test_a_control_token_that_the_model_lacks_is_said(rows: RowEncoder) -> None:
    with pytest.raises(UserError, match=r"model plain has no control token '\[Relevant\]': name it in"):
        rows.sft(Demonstration(CHAT, (RELEVANT, "yes")))
