"""States that an engine computed while it sampled are those that a later reading computes."""

from __future__ import annotations

import pytest
import torch
from tiny import build_tiny_model

from ragtrials.llm.hf import HFEngine
from ragtrials.llm.loading import load_model, load_tokenizer
from ragtrials.llm.models import resolve_model
from ragtrials.llm.tap import StateTap
from ragtrials.program import Generate, user
from ragtrials.training.trunk import Trunk

QUESTIONS = (
    "Where?",
    "Which river flows through Paris?",
    "Where?",
    "Who was born in Berlin, and when was it?",
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> HFEngine:
    resolved = resolve_model(str(build_tiny_model(tmp_path_factory.mktemp("model"), layers=3)))
    model = load_model(resolved, "float32", "cpu")
    live = HFEngine.over(
        model, resolved, load_tokenizer(resolved), dtype="float32", device="cpu", batch_size=3
    )
    live.tap = StateTap(model.get_decoder().layers[2])
    return live


def asked(**options: object) -> list[Generate]:
    return [
        Generate((user(question),), max_new_tokens=9, temperature=1.5, **options)  # type: ignore[arg-type]
        for question in QUESTIONS
    ]


@pytest.mark.parametrize("options", [{}, {"stop": ("e",)}, {"allowed": ("Paris",)}])
def test_they_are_those_of_the_trunk_whatever_the_batch(engine: HFEngine, options: dict[str, object]) -> None:
    tap = engine.tap
    assert tap is not None
    drawn = engine.generate(asked(**options), range(len(QUESTIONS)))
    assert len({len(completion.token_ids) for completion in drawn} | {0}) > 1
    trunk = Trunk(engine.model, 2)
    for completion in drawn:
        ids = torch.tensor([completion.prompt_ids + completion.token_ids])[:, :-1]
        expected = trunk.below(ids, torch.ones_like(ids))[0]
        kept = tap.take(completion.prompt_ids, completion.token_ids)
        assert kept is not None
        torch.testing.assert_close(kept, expected, rtol=1e-4, atol=1e-5)
    tap.forget()
    assert tap.take(drawn[0].prompt_ids, drawn[0].token_ids) is None


def test_a_tap_changes_no_answer(engine: HFEngine) -> None:
    tap = engine.tap
    heard = engine.generate(asked(), range(len(QUESTIONS)))
    engine.tap = None
    try:
        assert engine.generate(asked(), range(len(QUESTIONS))) == heard
    finally:
        engine.tap = tap


def test_nothing_is_kept_of_other_passes(engine: HFEngine) -> None:
    tap = engine.tap
    assert tap is not None
    with tap.listening() as heard:
        pass
    engine.model(torch.tensor([[5, 6, 7]]))
    assert heard == []


def test_only_what_was_sampled_is_known(engine: HFEngine) -> None:
    assert engine.tap is not None
    assert engine.tap.take((1, 2, 3), (4,)) is None
