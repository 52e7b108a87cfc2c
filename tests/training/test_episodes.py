"""From traces to turns: the ids that were read and sampled, whose turns they are, and what a step reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from toy_agents import TEAM, TRIPLES, build_toy_model, judge_team, lora, team
from toy_training import toy_run
from transformers.models.llama.modeling_llama import LlamaMLP

from ragtrials.data import Example
from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.loading import load_tokenizer
from ragtrials.llm.models import resolve_model
from ragtrials.llm.prompts import PromptBuilder
from ragtrials.program import Completion, Evidence, Generate, Retrieve, Step, Trace, user
from ragtrials.training.actor_critic import Row
from ragtrials.training.episodes import Judgement, buffer_of, mean_scalars, turns_of
from ragtrials.training.kl import KlControl
from ragtrials.training.ppo import PPO, Buffer
from ragtrials.training.ppo_report import Pass, report
from ragtrials.training.ppo_settings import Critic, Ppo
from ragtrials.training.ppo_stage import ppo
from ragtrials.training.rows import Demonstration
from ragtrials.training.settings import Lora
from ragtrials.training.stages import sft
from ragtrials.training.trajectories import response_mask, trajectories
from ragtrials.training.turns import Turn


def spoken(role: str, *ids: int, allowed: tuple[str, ...] = ()) -> Step:
    request = Generate((user("?"),), role=role, allowed=allowed)
    return Step(0, request, Completion("x", token_ids=(ids[-1],), prompt_ids=ids[:-1]))


FOUND = Step(0, Retrieve("?", 1), [])
TRACES = [
    Trace(
        "q0",
        "x",
        (spoken("first", 1, 2, 3), FOUND, spoken("second", 4, 5, allowed=("a",)), spoken("third", 6, 7)),
    ),
    Trace("q1", "x", (spoken("first", 8, 9), spoken("third", 10, 11))),
]
JUDGED = [Judgement(1.0, (0.1, 0.2, 0.3), {"f1": 0.5}), Judgement(0.0, (0.4, 0.5), {"f1": 1.0, "late": 2.0})]


def test_turns_are_what_was_read_and_sampled() -> None:
    turns = turns_of(TRACES, JUDGED, ["first", "second", "third"], lambda texts: (5, 2) if texts else ())
    assert turns == [
        Turn("first", 0, (1, 2), (3,), 0.1),
        Turn("second", 0, (4,), (5,), 0.2, (5, 2), (1, 2, 3)),
        Turn("third", 0, (6,), (7,), 0.3, (), (1, 2, 3, 4, 5)),
        Turn("first", 1, (8,), (9,), 0.4),
        Turn("third", 1, (10,), (11,), 0.5, (), (8, 9)),
    ]


def test_turns_of_others_are_left_out_but_seen() -> None:
    turns = turns_of(TRACES, JUDGED, ["third"], lambda _: ())
    assert [(turn.role, turn.episode, turn.reward) for turn in turns] == [
        ("third", 0, 0.3),
        ("third", 1, 0.5),
    ]
    assert turns[0].before == (1, 2, 3, 4, 5)


def test_a_reward_is_due_to_every_generation() -> None:
    with pytest.raises(RunFailure, match="example q1: 1 rewards for 2 generations"):
        turns_of(TRACES, [JUDGED[0], Judgement(0.0, (0.0,))], ["first"], lambda _: ())


def test_means_are_over_the_episodes_that_name_a_scalar() -> None:
    assert mean_scalars(JUDGED) == {"reward": 0.5, "f1": 0.75, "late": 2.0}


@pytest.mark.parametrize(("prompt", "response"), [((), (1,)), ((1,), ())])
def test_an_empty_turn_is_none(prompt: tuple[int, ...], response: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="a turn of first has no prompt, or nothing was sampled"):
        Turn("first", 0, prompt, response, 0.0)


# Buffers


def test_every_pass_asks_everything_once_in_another_order() -> None:
    examples = [Example(str(n), f"q{n}", ()) for n in range(7)]
    asked = [pair for step in range(7) for pair in buffer_of(examples, step, 4, seed=5)]
    assert [example.id for example, _ in asked] == [branch.example_id for _, branch in asked]
    passes = [[e.id for e, _ in asked[start : start + 7]] for start in range(0, 28, 7)]
    assert all(sorted(one) == [str(n) for n in range(7)] for one in passes)
    assert len({tuple(one) for one in passes}) == 4
    assert [branch.sample for _, branch in asked] == [1] * 7 + [2] * 7 + [3] * 7 + [4] * 7
    assert buffer_of(examples, 3, 4, seed=5) == asked[12:16]
    assert buffer_of(examples, 3, 4, seed=6) != asked[12:16]


def test_a_buffer_may_be_larger_than_the_data() -> None:
    asked = buffer_of([Example("a", "?", ()), Example("b", "?", ())], 0, 5, seed=0)
    assert [branch.sample for _, branch in asked] == [1, 1, 2, 2, 3]


# Trajectories


TURNS = [
    Turn("first", 0, (1,), (2, 3), 0.0),
    Turn("second", 0, (1,), (4,), 0.0),
    Turn("first", 1, (1,), (5, 6, 7), 0.0),
]


def test_a_trajectory_is_a_turn_or_an_episode() -> None:
    assert response_mask(TURNS).tolist() == [[True, True, False], [True, False, False], [True, True, True]]
    places, real = trajectories(TURNS, "turn")
    assert [row[mask].tolist() for row, mask in zip(places, real, strict=True)] == [[0, 1], [3], [6, 7, 8]]
    places, real = trajectories(TURNS, "episode")
    assert [row[mask].tolist() for row, mask in zip(places, real, strict=True)] == [[0, 1, 3], [6, 7, 8]]


# The report of a step


def test_the_scalars_of_a_step() -> None:
    turns = [replace(TURNS[0], reward=1.0), replace(TURNS[1], reward=0.25), replace(TURNS[2], reward=-0.5)]
    rows = [Row(place, turn, "p", torch.zeros(2), None) for place, turn in enumerate(turns)]
    mask = response_mask(turns)
    numbered = torch.arange(9.0).reshape(3, 3)
    buffer = Buffer(
        rows,
        mask,
        torch.tensor([0, 1, 0]),
        old=torch.full((3, 3), -1.0),
        reference=torch.tensor([[-2.0, -1.5, 9], [-1, 9, 9], [-0.5, -1, -3]]),
        entropy=numbered,
        values=torch.zeros(3, 3),
        advantages=torch.zeros(3, 3),
        returns=torch.tensor([[1.0, 1, 9], [2, 9, 9], [3, 4, 5]]),
    )
    buffer.values[2] = torch.tensor([3.0, 4.0, 5.5])
    passes = [
        Pass(
            0.5,
            1.0,
            2.0,
            [(torch.tensor([0, 2]), torch.tensor([1, 2])), (torch.tensor([1]), torch.tensor([0]))],
        ),
        Pass(
            1.5,
            2.0,
            4.0,
            [(torch.tensor([2]), torch.tensor([3])), (torch.tensor([1, 0]), torch.tensor([1, 0]))],
        ),
    ]
    scalars = report(buffer, passes, beta=0.2, rate=1e-5)
    assert scalars == pytest.approx(
        {
            "policy_loss": 1.0,
            "value_loss": 1.5,
            "grad_norm": 3.0,
            "beta": 0.2,
            "learning_rate": 1e-5,
            "score": 0.25,
            "kl": (1.0 + 0.5 + 0 - 0.5 + 0 + 2) / 3,
            "length": 2.0,
            "entropy": (0 + 1 + 3 + 6 + 7 + 8) / 6,
            "clip_fraction": 7 / 12,
            # Returns 1 1 2 3 4 5: mean 8/3, sum of squares 40/3. Missed: 1 1 2 0 0 -1/2, mean 7/12, 101/24.
            "explained_variance": 1 - (101 / 24) / (40 / 3),
            "first/score": 0.25,
            "first/kl": (1.5 + 1.5) / 2,
            "first/length": 2.5,
            "first/entropy": 22 / 5,
            "first/clip_fraction": 6 / 10,
            "first/explained_variance": 1 - (2 * 0.7**2 + 2 * 0.3**2 + 0.8**2) / (64 / 5),
            "second/score": 0.25,
            "second/kl": 0.0,
            "second/length": 1.0,
            "second/entropy": 3.0,
            "second/clip_fraction": 1 / 2,
            "second/explained_variance": 0.0,
        }
    )


# Rollout, update and evaluation


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_toy_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_learning_reads_the_prompts_that_evaluation_builds(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts that have to be shortened, too."""
    learnt: list[Turn] = []
    step = PPO.step

    def watched(self: PPO, turns: list[Turn]) -> dict[str, float]:
        learnt.extend(turns)
        return step(self, turns)

    monkeypatch.setattr(PPO, "step", watched)
    evidence = Evidence("The Seine flows through Paris. " * 40)

    def read(question: str) -> Any:
        for role in TEAM[:2]:
            asked = Generate((user(f"{role} ", evidence, f" {question}?"),), role=role, max_new_tokens=4)
            yield asked
        return ""

    run = toy_run(tmp_path, model, TRIPLES, max_prompt_tokens=60)
    settings = Ppo(steps=1, questions=4, update=lora(lora=Lora(last_layers=1)))
    ppo(run, "ppo", {"p": TEAM[:2]}, read, lambda trace, _: Judgement(0.0, (0.0, 0.0)), settings)
    prompts = PromptBuilder(load_tokenizer(resolve_model(str(model))), "toy")
    evaluated = run.rollout("evaluation", read, TRIPLES)
    seen = {trace.generations[n].result.prompt_ids for trace in evaluated for n in (0, 1)}  # type: ignore[union-attr]
    built = {
        prompts.build(step.request.messages, 60).ids  # type: ignore[union-attr]
        for trace in evaluated
        for step in trace.generations
    }
    assert seen == built
    assert len(learnt) == 8
    for turn in learnt:
        assert turn.prompt_ids in built
        assert len(turn.prompt_ids) <= 60
        assert 1 <= len(turn.response_ids) <= 4


def test_checkpointing_computes_twice_and_changes_nothing(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if the adapter that it begins with was trained with dropout."""
    found, calls = [], Counter[bool]()
    checkpointing = False
    forward = LlamaMLP.forward

    def counted(self: Any, states: torch.Tensor) -> torch.Tensor:
        calls[checkpointing] += torch.is_grad_enabled()
        return forward(self, states)

    monkeypatch.setattr(LlamaMLP, "forward", counted)
    for checkpointing in (False, True):
        run = toy_run(tmp_path / str(checkpointing), model, TRIPLES)
        update = lora(lora=Lora(r=4, dropout=0.5), gradient_checkpointing=checkpointing)
        rows = [Demonstration((user("g"),), "a")] * 8
        sft(run, "sft", TEAM, rows, replace(update, gradient_checkpointing=False))
        calls[checkpointing] = 0
        update = replace(update, lora=Lora(r=4))
        settings = Ppo(steps=2, questions=6, update=update, critic=Critic("adapter"))
        ppo(run, "ppo", {"p": TEAM}, team, judge_team, settings)
        found.append(load_file(run.policies["first"] / "adapter_model.safetensors"))
    for name, weight in found[0].items():
        torch.testing.assert_close(weight, found[1][name], rtol=0, atol=1e-6, msg=name)
    assert calls[True] == 2 * calls[False] > 0


# Settings


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Ppo(steps=-1), "ppo.steps must be at least 0 and ppo.questions at least 1"),
        (lambda: Ppo(questions=0), "ppo.steps must be at least 0 and ppo.questions at least 1"),
        (lambda: Ppo(temperature=0.0), "ppo.temperature must be above 0, not 0.0: PPO needs samples"),
        (lambda: Ppo(top_p=0.0), "ppo.top_p must be above 0 and at most 1, not 0.0"),
        (lambda: Ppo(top_p=1.1), "ppo.top_p must be above 0 and at most 1, not 1.1"),
        (lambda: Ppo(gamma=1.01), "ppo.gamma must be in [0, 1], not 1.01"),
        (lambda: Ppo(lam=float("nan")), "ppo.lam must be in [0, 1], not nan"),
        (lambda: Ppo(clip=0.0), "ppo.clip must be above 0, or none, not 0.0"),
        (lambda: Ppo(value_clip=-1.0), "ppo.value_clip must be above 0, or none, not -1.0"),
        (lambda: Ppo(value_weight=-0.1), "ppo.value_weight and ppo.entropy_weight must be at least 0"),
        (lambda: Ppo(update=lora(lora=Lora(dropout=0.1))), "ppo.update.lora.dropout must be 0: sampling and"),
        (
            lambda: Ppo(critic=Critic("adapter"), update=lora(tuning="full")),
            "ppo.critic.weights=adapter needs ppo.update.tuning=lora: take shared or model",
        ),
        (lambda: KlControl(init=0.1, floor=0.2), "kl.floor must be at most kl.init (0.1), not 0.2"),
    ],
)
def test_a_bad_setting_is_one_line(make: Any, message: str) -> None:
    with pytest.raises(UserError) as caught:
        make()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
