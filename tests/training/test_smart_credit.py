"""How credit runs along SmartRAG's episodes, and its KL controller. Oracles 22 to 26 of specs/smart_rag.md.

The table of the surrogate's values is among the cases of test_losses.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from ragtrials.methods._smart_profiles import PROFILES
from ragtrials.training.advantages import gae, shaped_rewards, whiten
from ragtrials.training.kl import KlControl
from ragtrials.training.ppo import PPO
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.trajectories import response_mask
from ragtrials.training.turns import Turn


def turn(episode: int, tokens: int, reward: float) -> Turn:
    return Turn("policy", episode, (1,), tuple(range(tokens)), reward)


EPISODE = [turn(0, 3, -0.2), turn(0, 2, 2.0)]  # a search of three tokens, then a right answer of two
DIRECT = [turn(1, 2, 2.0)]


def credit(
    turns: Sequence[Turn], gamma: float, lam: float, value: float = 0.0
) -> tuple[list[list[float]], list[list[float]]]:
    """Advantages and returns of each turn's tokens, as PPO computes them where every state is worth `value`."""
    mask = response_mask(turns)
    nothing = torch.zeros(mask.shape, dtype=torch.float64)
    rewards = shaped_rewards(
        torch.tensor([t.reward for t in turns], dtype=torch.float64), nothing, mask, beta=0.0
    )
    holder: Any = SimpleNamespace(settings=Ppo(credit="episode", gamma=gamma, lam=lam))
    along: tuple[Tensor, Tensor] = PPO._credit(holder, turns, rewards, torch.full_like(nothing, value))
    both = [[row[real].tolist() for row, real in zip(part, mask, strict=True)] for part in along]
    return both[0], both[1]


def flat(rows: list[list[float]]) -> list[float]:
    return [x for row in rows for x in row]


@pytest.mark.parametrize(
    ("turns", "gamma", "returns"),
    [
        (EPISODE, 0.99, [1.7252, 1.7426, 1.7602, 1.98, 2.0]),
        (DIRECT, 0.99, [1.98, 2.0]),
        (EPISODE, 1.0, [1.8, 1.8, 1.8, 2.0, 2.0]),
        (DIRECT, 1.0, [2.0, 2.0]),
    ],
)
def test_a_query_s_tokens_earn_what_the_answer_earns(
    turns: list[Turn], gamma: float, returns: list[float]
) -> None:
    assert flat(credit(turns, gamma, 1.0)[1]) == pytest.approx(returns, abs=5e-5)


@pytest.mark.parametrize(
    ("value", "advantages"),
    [
        (0.0, [1.3879, 1.4757, 1.5691, 1.8810, 2.0]),
        (0.6, [0.8965, 0.9596, 1.0267, 1.3107, 1.4]),
    ],
)
def test_advantages_run_from_the_answer_into_the_query(value: float, advantages: list[float]) -> None:
    assert flat(credit(EPISODE, 0.99, 0.95, value)[0]) == pytest.approx(advantages, abs=5e-5)


def test_an_answer_is_terminal_whatever_comes_behind_it_in_the_buffer() -> None:
    beside = [*EPISODE, turn(1, 1, 0.0), turn(2, 4, -1.0)]
    assert credit(beside, 0.99, 0.95, 0.6)[0][:2] == credit(EPISODE, 0.99, 0.95, 0.6)[0]
    # The released code lets an episode run into the next one: one more token, and the value behind it.
    rewards = torch.tensor([[0, 0, -0.2, 0, 2, 0.99 * 0.6]], dtype=torch.float64)
    joined, _ = gae(rewards, torch.full_like(rewards, 0.6), torch.ones_like(rewards), 0.99, 0.95)
    assert joined[0, 0].item() == pytest.approx(1.3569, abs=5e-5)


def test_turns_of_two_episodes_may_stand_in_any_order() -> None:
    mixed = [EPISODE[0], DIRECT[0], EPISODE[1]]
    first, second, third = credit(mixed, 0.99, 0.95, 0.6)[0]
    assert [first, third] == credit(EPISODE, 0.99, 0.95, 0.6)[0]
    assert [second] == credit(DIRECT, 0.99, 0.95, 0.6)[0]


def test_gamma_is_1_unless_the_released_code_is_wanted() -> None:
    gammas = {name: config.ppo.gamma for name, config in PROFILES.items()}
    assert gammas == {"paper": 1.0, "official": 0.99, "laptop": 1.0, "smoke": 1.0}
    assert {config.ppo.credit for config in PROFILES.values()} == {"episode"}
    # Undiscounted, the first token of a query loses alpha against a direct answer; at 0.99 nearly twice that.
    query = [turn(0, 10, -0.2), turn(0, 2, 2.0)]
    losses = [credit(DIRECT, g, 1.0)[1][0][0] - credit(query, g, 1.0)[1][0][0] for g in (1.0, 0.99)]
    assert losses == pytest.approx([0.2, 0.3711], abs=1e-3)


def test_whitening_a_whole_buffer_keeps_sizes_that_pairs_lose() -> None:
    advantages = torch.tensor([credit(EPISODE, 0.99, 0.95, 0.6)[0][0], [1.3107, 1.4, -0.6]]).double()
    mask = torch.ones(2, 3, dtype=torch.bool)
    whole = whiten(advantages, mask)
    assert (float(whole.mean()), float(whole.var())) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert len({round(abs(x), 3) for x in whole.flatten().tolist()}) == 6
    for pair in ([0.1, 5.0], [2.0, 2.1]):
        (found,) = whiten(torch.tensor([pair]).double(), mask[:1, :2]).tolist()
        assert found == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)], abs=1e-4)
    assert {config.ppo.whiten for config in PROFILES.values()} == {"all"}


@pytest.mark.parametrize(
    ("init", "target", "seen", "betas"),
    [
        (0.1, 0.1, [-0.2, 0.3, 0.4], [0.098, 0.09996, 0.1019592]),
        (0.001, 0.2, [0.0, 0.2, 0.21, 1.0], [0.00098, 0.00098, 0.0009849, 0.0010046]),
    ],
)
@pytest.mark.parametrize("samples", [1, 400, 633])
def test_beta_moves_by_a_tenth_of_the_error_if_the_horizon_is_ten_buffers(
    init: float, target: float, seen: list[float], betas: list[float], samples: int
) -> None:
    control = KlControl(init=init, target=target, horizon=10 * samples)
    beta, found = init, []
    for kl in seen:
        beta = control.updated(beta, kl, samples)
        found.append(beta)
    assert found == pytest.approx(betas, rel=1e-4)
    assert max(abs(b / a - 1) for a, b in zip([init, *found], found, strict=False)) <= 0.02 + 1e-12


def test_the_paper_profile_converts_tokens_to_actions() -> None:
    settings = PROFILES["paper"].ppo
    actions = settings.kl.horizon / 10  # of a buffer: ten buffers move beta by the whole error
    assert settings.questions < actions < 2 * settings.questions  # a question has one action or two
    tokens = 10 * 512 / actions
    assert settings.kl.target == pytest.approx(0.2 * tokens, rel=0.05)  # ours counts an action, not a token
    assert settings.update.batch_size == round(2 * 64 / tokens)
