"""The engine and its folder, its memory and its limits."""

from __future__ import annotations

import json
import shutil

import pytest
from tiny_engine import load, requests, run

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm import hf
from ragtrials.program import Evidence, Generate, Score, user

torch = pytest.importorskip("torch")


def test_sampling_defaults_of_the_folder_are_not_used(folder, engine, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "tiny")
    file = copy / "generation_config.json"
    settings = json.loads(file.read_text())
    file.write_text(
        json.dumps(settings | {"do_sample": True, "temperature": 5.0, "repetition_penalty": 9.0, "top_k": 3})
    )
    asked = requests()
    assert [c.token_ids for c in run(load(copy), asked)] == [c.token_ids for c in run(engine, asked)]


def test_long_evidence_is_shortened_to_the_budget_and_the_context(folder):
    engine = load(folder, max_prompt_tokens=120)
    long = Evidence("The Seine flows through Paris. " * 100)
    (completion,) = run(engine, [Generate((user(long, "Which river?"),), max_new_tokens=4)])
    assert len(completion.prompt_ids) == 120
    assert completion.dropped_tokens > 100
    (completion,) = run(load(folder), [Generate((user(long, "Which river?"),), max_new_tokens=40)])
    assert len(completion.prompt_ids) == 700 - 40  # the context holds prompt and answer
    (scored,) = load(folder).score([Score((user(long, "Which river?"),), "x" * 10)])
    assert len(scored.prompt_ids) == 700 - len(scored.token_ids)


@pytest.mark.parametrize("method", ["generate", "score"])
def test_no_memory_is_a_failure_with_a_hint(engine, monkeypatch, method):
    def forward(**_):
        return torch.empty(10**15)  # the CPU's allocator really refuses this

    monkeypatch.setattr(engine.model, "forward", forward)
    asked = {
        "generate": lambda: run(engine, requests()),
        "score": lambda: engine.score([Score((user("q"),), "a")]),
    }
    with pytest.raises(RunFailure, match="tiny ran out of memory with 4 prompts at once: lower --batch-size"):
        asked[method]()


def test_other_errors_of_the_model_are_not_taken_for_memory(engine, monkeypatch):
    def forward(**_):
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(engine.model, "forward", forward)
    with pytest.raises(RuntimeError, match="shapes differ"):
        run(engine, requests())


def test_weights_that_do_not_belong_to_the_config_are_refused(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "tiny")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(UserError, match="tiny: 9 weights are missing or of another shape"):
        load(copy)
    (copy / "tokenizer.json").write_text('{"a": 1}')
    with pytest.raises(UserError, match="model tiny: transformers cannot load its tokenizer"):
        load(copy)
    shutil.copy(folder / "tokenizer.json", copy)
    (copy / "config.json").write_text(json.dumps({"model_type": "no_such_type"}))
    with pytest.raises(UserError, match="model tiny: transformers cannot load its") as error:
        load(copy)
    assert "\n" not in str(error.value)


def test_bfloat16_runs_and_says_so(folder):
    engine = load(folder, dtype="bfloat16")
    assert engine.model.dtype is torch.bfloat16
    assert engine.signature["dtype"] == "bfloat16"
    completion = run(engine, requests(logprobs=True))[0]
    assert all(value <= 0 for value in completion.logprobs)


def test_a_method_gets_what_the_protocol_promises(engine):
    from ragtrials.program import Engine

    checked: Engine = engine
    assert isinstance(engine, hf.HFEngine)
    assert dict(checked.signature)["engine"] == "hf"
