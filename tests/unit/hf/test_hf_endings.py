"""Where a generated text ends: end tokens, stop strings, and what of them is kept."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest
from tiny_engine import load, run

from ragtrials.program import Generate, user

torch = pytest.importorskip("torch")


def scripted_model(engine, monkeypatch, rows):
    """Makes the model's logits spell given token ids, row by row of a batch, and then ids of "x"."""
    vocabulary = engine.model.config.vocab_size
    filler = engine.tokenizer("x", add_special_tokens=False).input_ids[0]
    step = itertools.count()

    def forward(input_ids=None, **kwargs):
        from transformers.modeling_outputs import CausalLMOutputWithPast

        at = next(step)
        logits = torch.zeros(len(input_ids), 1, vocabulary)
        for row in range(len(input_ids)):
            wanted = rows[row][at] if at < len(rows[row]) else filler
            logits[row, 0, wanted] = 5.0
        return CausalLMOutputWithPast(logits=logits, past_key_values=kwargs.get("past_key_values"))

    monkeypatch.setattr(engine.model, "forward", forward)


def test_the_end_token_is_kept_in_the_ids_and_never_in_the_text(engine, monkeypatch):
    tokenizer = engine.tokenizer
    eos, bos = tokenizer.eos_token_id, tokenizer.bos_token_id
    paris = tokenizer("Paris", add_special_tokens=False).input_ids
    other = tokenizer(" Rome, a city", add_special_tokens=False).input_ids
    scripted_model(engine, monkeypatch, [[bos, *paris, eos], other])
    asked = [Generate((user(q),), max_new_tokens=len(other), logprobs=True) for q in ("a longer one", "b")]
    first, second = run(engine, asked)
    assert first.text == "Paris"  # not "<s>Paris<|im_end|>"
    assert first.token_ids == (bos, *paris, eos)  # as sampled: with the end, without padding
    assert first.finish == "stop"
    assert first.logprobs is not None
    assert len(first.logprobs) == len(first.token_ids)
    assert (second.text, second.token_ids, second.finish) == (" Rome, a city", tuple(other), "length")


def test_text_that_spells_a_special_token_is_text(engine, monkeypatch):
    from_bytes = engine.tokenizer(
        "< |im_end|>".replace(" ", ""), split_special_tokens=True, add_special_tokens=False
    )
    scripted_model(engine, monkeypatch, [[*from_bytes.input_ids, engine.tokenizer.eos_token_id]])
    (completion,) = run(engine, [Generate((user("q"),), max_new_tokens=40)])
    assert completion.text == "<|im_end|>"


def test_generation_ends_at_the_first_stop_string(engine, monkeypatch):
    encode = lambda text: engine.tokenizer(text, add_special_tokens=False).input_ids  # noqa: E731
    rows = [encode("St. Louis\nQuestion: who"), encode("a stop b\nand more")]
    scripted_model(engine, monkeypatch, rows)
    asked = [Generate((user(q),), max_new_tokens=40, stop=("\n", " stop", "")) for q in ("longer", "q")]
    first, second = run(engine, asked)
    assert (first.text, first.finish) == ("St. Louis", "stop")
    assert (second.text, second.finish) == ("a", "stop")
    # The ids are those sampled until the stop string was complete, and no more.
    assert engine.tokenizer.decode(first.token_ids) == "St. Louis\n"
    assert engine.tokenizer.decode(second.token_ids) == "a stop"


def test_a_stop_string_over_several_tokens_and_characters_of_several_bytes(engine, monkeypatch):
    encode = lambda text: engine.tokenizer(text, add_special_tokens=False).input_ids  # noqa: E731
    scripted_model(engine, monkeypatch, [encode("漢字 </答> 😀 more")])
    (completion,) = run(engine, [Generate((user("q"),), max_new_tokens=60, stop=("</答>",))])
    assert completion.text == "漢字 "
    assert engine.tokenizer.decode(completion.token_ids) == "漢字 </答>"


def test_all_end_tokens_of_the_folder_end_a_turn(folder, tmp_path, monkeypatch):
    copy = shutil.copytree(folder, tmp_path / "tiny")
    file = copy / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"eos_token_id": [3, 50]}))
    engine = load(copy)
    scripted_model(engine, monkeypatch, [[60, 50, 61], [60, 61, 3]])
    first, second = run(engine, [Generate((user(q),), max_new_tokens=6) for q in ("longer", "q")])
    assert (first.token_ids, second.token_ids) == ((60, 50), (60, 61, 3))
    assert first.text == engine.tokenizer.decode([60])  # ends are no text, special or not
