"""A model with added tokens and an adapter as one plain folder: says what the parts say."""

from __future__ import annotations

import pytest
from tiny import build_tiny_model
from tiny_adapters import assert_same, moved_adapter
from tiny_engine import QUESTIONS, load

from ragtrials.llm.merged import merged_folder
from ragtrials.llm.models import resolve_model
from ragtrials.program import Generate, Score, Token, assistant, user

TOKENS = ("[Relevant]", "[Utility:5]")


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def base(request, tmp_path_factory):
    folder = build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", tied=request.param, with_bos=True)
    return resolve_model(str(folder), TOKENS)


def asked(**options):
    chats = [(user(q), assistant(Token("[Relevant]"))) for q in QUESTIONS]
    return [Generate(chat, max_new_tokens=6, logprobs=True, watch=TOKENS, **options) for chat in chats]


def test_it_says_what_model_and_adapter_say(base, tmp_path):
    adapter = moved_adapter(base, tmp_path / "adapter", r=4)
    parts = load(base.folder, tokens=TOKENS, policies={"generator": adapter})
    whole = load(merged_folder(base, adapter, "float32"), tokens=TOKENS)
    assert_same(whole.generate(asked(), [0] * 7), parts.generate(asked(), [0] * 7), close=1e-3)
    scores = [Score((user(q),), "the Seine") for q in QUESTIONS]
    assert_same(whole.score(scores), parts.score(scores), close=1e-3)


def test_without_an_adapter_it_has_the_rows_of_its_tokens(base):
    whole = load(merged_folder(base, None, "float32"), tokens=TOKENS)
    assert whole.generate(asked(), [0] * 7) == load(base.folder, tokens=TOKENS).generate(asked(), [0] * 7)


def test_each_model_adapter_and_format_has_a_folder_of_its_own(base, tmp_path):
    one = moved_adapter(base, tmp_path / "one", r=4)
    other = moved_adapter(base, tmp_path / "other", seed=2, r=4)
    given = [(one, "float32"), (other, "float32"), (None, "float32"), (one, "bfloat16")]
    folders = [merged_folder(base, *each) for each in given]
    assert len(set(folders)) == 4
    assert folders == [merged_folder(base, *each) for each in given]
