"""A released Self-RAG checkpoint, evaluated as it is: its own tokens, its own prompt, and no chat template."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tiny import build_tiny_model

from ragtrials.cli import main
from ragtrials.llm.loading import added_ids, load_tokenizer
from ragtrials.llm.models import resolve_model
from ragtrials.methods._self_tokens import ALL, IS_REL, IS_SUP, IS_USE, RETRIEVE

# In the order of the checkpoints, at the end of the vocabulary, with a padding token behind them.
LAYOUT = (*RETRIEVE, *reversed(IS_REL), "<paragraph>", "</paragraph>", *IS_USE, *IS_SUP)


def released_model(folder: Path, special: bool) -> Path:
    """A tiny random model with the vocabulary layout of the checkpoints."""
    import torch
    from transformers import AddedToken, AutoModelForCausalLM, AutoTokenizer

    build_tiny_model(folder, hidden=32, chat_template=None, with_bos=True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    words = len(tokenizer)
    tokenizer.add_tokens([AddedToken(name, special=special, normalized=False) for name in LAYOUT])
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    assert [tokenizer.convert_tokens_to_ids(name) for name in LAYOUT] == list(range(words, words + 15))
    model = AutoModelForCausalLM.from_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model.resize_token_embeddings(words + 16, mean_resizing=False)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=[True, False], ids=["special", "plain"])
def released(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the tokens special to their tokenizer, and without."""
    return released_model(tmp_path_factory.mktemp("models") / "selfrag", request.param)


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One for all tests here, as an index is built in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGTRIALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def evaluated(released: Path, folder: str, *options: str) -> dict[str, Any]:
    """The record of an evaluation, with its results and work in a folder."""
    words = ("eval", "self_rag", "geo_pop", "--model", released, "--profile", "released", "--limit", 4)
    given = [x for option in ("max_new_tokens=8", "k=2", *options) for x in ("-o", option)]
    result = call(*words, *given, "--results", f"{folder}/results", "--runs", f"{folder}/runs")
    assert result.exit_code == 0, result.output
    (path,) = Path(folder).glob("results/**/run.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def requests(folder: str) -> list[dict[str, Any]]:
    """What was asked of the model, question by question."""
    lines = [x for file in Path(folder).glob("runs/**/chunk-*.jsonl") for x in file.read_text().splitlines()]
    steps = [step for line in lines for step in json.loads(line).get("steps", ())]
    return [step for step in steps if step["request"]["kind"] == "generate"]


def test_the_checkpoint_is_evaluated_as_it_is(here: Path, released: Path) -> None:
    found = evaluated(released, "adaptive")
    assert (found["n"], found["method"], found["task"]) == (4, "self_rag", "geo_pop")
    assert found["model"].startswith("selfrag")
    assert found["config"]["prompt"] == "released"
    assert found.get("train_id") is None
    assert found["cost"]["llm_calls"] >= 2
    bos = load_tokenizer(resolve_model(str(released))).bos_token_id
    asked = requests("adaptive")
    assert asked
    for step in asked:
        (text, *_) = step["request"]["messages"][0]["content"]
        assert str(text).startswith("### Instruction:\n")
        assert str(text).endswith("\n\n### Response:\n")
        assert step["result"]["prompt_ids"].count(bos) == 1
        assert step["result"]["prompt_ids"][0] == bos


def test_no_token_is_added(released: Path) -> None:
    model = resolve_model(str(released), ALL)
    assert added_ids(model) == ()
    assert len(load_tokenizer(model)) == len(load_tokenizer(resolve_model(str(released))))


def test_retrieval_is_as_the_mode_says(here: Path, released: Path) -> None:
    costs = {
        name: evaluated(released, name, *options)["cost"]
        for name, options in {
            "always": ("mode=always",),
            "never": ("mode=never",),
            "long": ("mode=always", "decoding=long", "depth=2"),
        }.items()
    }
    assert {name: cost["retrieval_calls"] for name, cost in costs.items()} == {
        "always": 1,
        "never": 0,
        "long": 1,
    }
    assert (costs["always"]["llm_calls"], costs["never"]["llm_calls"]) == (2, 1)
    assert costs["long"]["llm_calls"] >= 2


def test_a_chat_is_refused_in_one_line(here: Path, released: Path) -> None:
    """For methods that ask in chats: without a template there is none."""
    for method in ("vanilla_rag", "self_rag"):
        result = call(
            *("eval", method, "geo_pop", "--model", released, "--profile", "smoke", "--limit", 2),
        )
        assert result.exit_code in (1, 2)
        errors = [line for line in result.stderr.splitlines() if "chat template" in line]
        assert len(errors) == 1, result.stderr
        assert "model selfrag has no chat template" in errors[0]
        assert "Traceback" not in result.output
