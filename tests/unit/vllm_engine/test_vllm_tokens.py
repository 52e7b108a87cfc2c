"""Added control tokens and their trained embeddings in vLLM, and Self-RAG on top of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from self_segments import Shelf
from tiny import build_tiny_model
from tiny_adapters import assert_same, moved_adapter
from tiny_engine import QUESTIONS

from ragtrials.cache import cache_dir
from ragtrials.driver import Driver
from ragtrials.errors import UserError
from ragtrials.llm.models import resolve_model
from ragtrials.methods._self_config import SelfConfig
from ragtrials.methods._self_tokens import ALL, PARAGRAPH, RELEVANT
from ragtrials.methods.self_rag import SelfRAG
from ragtrials.program import Generate, Score, Token, assistant, user


@pytest.fixture(scope="module")
def engines(tmp_path_factory, both):
    folder = build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", with_bos=True)
    base, adapters = resolve_model(str(folder), ALL), tmp_path_factory.mktemp("adapters")
    trained = {
        role: moved_adapter(base, adapters / role, seed=seed, by=0.2, r=4)
        for seed, role in enumerate(("critic", "generator"))
    }
    return both(folder, policies=trained, tokens=ALL)


def chats():
    return [(user(q), assistant(Token(RELEVANT), "in ", Token(PARAGRAPH))) for q in QUESTIONS]


def test_the_trained_tokens_say_what_they_say_in_transformers(engines):
    hf, vllm = engines
    asked = [Generate(chat, max_new_tokens=8, logprobs=True, watch=ALL, ends=ALL[:3]) for chat in chats()]
    expected = hf.generate(asked, [0] * len(asked))
    assert any(one.marks for one in expected)
    assert_same(vllm.generate(asked, [0] * len(asked)), expected, close=1e-3)


def test_scores_behind_control_tokens_agree(engines):
    hf, vllm = engines
    asked = [Score(chat, "in Berlin") for chat in chats()]
    assert_same(vllm.score(asked), hf.score(asked), close=1e-3)


@pytest.mark.parametrize(
    "changes", [{}, {"mode": "always"}, {"mode": "never"}, {"decoding": "long"}], ids=str
)
def test_self_rag_answers_alike(engines, changes):
    method = SelfRAG(replace(SelfConfig(k=2, max_new_tokens=10), **changes))
    asked = [(str(n), question) for n, question in enumerate(QUESTIONS)]
    hf, vllm = (Driver(Shelf("Ann", "Bo"), engine).run(method.answer, asked) for engine in engines)
    assert [trace.answer for trace in vllm] == [trace.answer for trace in hf]
    assert [len(trace.steps) for trace in vllm] == [len(trace.steps) for trace in hf]
    steps = [[step.result for trace in traces for step in trace.generations] for traces in (vllm, hf)]
    assert_same(*steps, close=1e-3)


def test_the_merged_model_is_written_once(engines):
    assert [path.name.rpartition("-")[0] for path in (cache_dir() / "models").iterdir()] == ["tiny-merged"]


def test_a_second_model_is_refused(engines):
    _, vllm = engines
    with pytest.raises(UserError, match="holds one model, but roles 'generator' and 'critic' have weights"):
        vllm.generate([Generate((user("?"),), role="critic")], [0])
