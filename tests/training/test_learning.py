"""Training must learn: a tiny model gets from nowhere to nearly perfect on toy tasks, in seconds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny import build_tiny_model
from toy_training import FULL, LETTERS, letter_examples, mean_reward, say, toy_run

from ragtrials.program import user
from ragtrials.training.rows import Preference
from ragtrials.training.scalars import read_log
from ragtrials.training.stages import dpo, sft


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_model(tmp_path_factory.mktemp("model"))


def following(letter: str) -> str:
    return LETTERS[(LETTERS.index(letter) + 1) % len(LETTERS)]


def test_sft_learns_to_copy(tmp_path: Path, model: Path) -> None:
    run = toy_run(tmp_path, model, letter_examples(copies=40))
    asked = letter_examples()
    assert mean_reward(run, "before", asked) <= 0.1
    rows = run.demonstrate(say, run.examples, reply=lambda request, example: example.target)
    sft(run, "sft", "generator", rows, FULL)
    assert mean_reward(run, "after", asked) >= 0.9


def test_dpo_raises_margin_and_reward(tmp_path: Path, model: Path) -> None:
    # First a coin flip: the letter itself or the following one.
    both = letter_examples(copies=20) + letter_examples(following, copies=20)
    run = toy_run(tmp_path, model, both)
    rows = run.demonstrate(say, run.examples, reply=lambda request, example: example.target)
    sft(run, "coin", "generator", rows, replace(FULL, epochs=2))
    wanted = letter_examples(following)
    before = mean_reward(run, "before", wanted)
    assert before <= 0.7
    pairs = [Preference((user(x),), chosen=following(x), rejected=x) for x in LETTERS] * 30
    dpo(run, "dpo", "generator", pairs, replace(FULL, learning_rate=1e-3), beta=0.1)
    assert mean_reward(run, "after", wanted) >= max(0.8, before + 0.2)
    margins = [
        scalars["rewards/margins"]
        for (stage, _), scalars in sorted(read_log(tmp_path).items())
        if stage == "dpo" and "rewards/margins" in scalars
    ]
    assert margins[0] == pytest.approx(0.0, abs=1e-4)  # the policy starts as its own reference
    assert margins[-1] > 0.5
