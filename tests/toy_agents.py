"""Toy episodes for PPO with known optima, and agents on a tiny model without a stage around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tiny import build_tiny_model

from ragtrials.data import Example
from ragtrials.llm.models import resolve_model
from ragtrials.program import Program, Trace, generate, user
from ragtrials.training import weights
from ragtrials.training.actor_critic import ActorCritic
from ragtrials.training.actors import Actors, Cast
from ragtrials.training.episodes import Judgement
from ragtrials.training.kl import KlControl
from ragtrials.training.ppo import PPO
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.run import TrainRun
from ragtrials.training.settings import ALL_LINEAR, Lora, Optimisation
from ragtrials.training.turns import Turn

LETTERS = ("a", "b", "c", "d")
TEAM = ("first", "second", "third")
EXAMPLES = [Example(f"{x}{n}", x, ((x,),)) for n in range(8) for x in LETTERS]
"""The question is a letter; what the right reply is, each toy says itself."""

TRIPLES = [example for example in EXAMPLES if example.question != "d"]
"""Three questions for the team, each of them eight times."""

_SIGNS = "ghiklmpqr"
"""What each of the three agents reads for each of the three questions: one letter for each."""
_WANTED = {"a": "abb", "b": "baa", "c": "bab"}

FREE = KlControl(init=0.0, adaptive=False)
"""No penalty for leaving the reference."""
FULL = Optimisation(
    tuning="full",
    learning_rate=3e-3,
    schedule="constant",
    epochs=2,
    batch_size=32,
    micro_batch=32,
    save_steps=1000,
)
"""All weights of a model that is too small for adapters."""


def build_toy_model(folder: Path, seed: int = 0) -> Path:
    """A tiny model whose chat template is the bare messages, so that prompts have a few tokens."""
    bare = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return build_tiny_model(folder, hidden=32, chat_template=bare, seed=seed)


def shifted(letter: str, by: int) -> str:
    """A letter further on in the circle of `LETTERS`."""
    return LETTERS[(LETTERS.index(letter) + by) % len(LETTERS)]


def alone(question: str) -> Program:
    """One agent chooses one letter."""
    reply = yield from generate((user(f"{question}?"),), max_new_tokens=1, allowed=LETTERS)
    return reply.text


def team(question: str) -> Program:
    """Three agents choose a or b; none sees what the others chose."""
    chosen = ""
    for number, role in enumerate(TEAM):
        asked = (user(_SIGNS[3 * LETTERS.index(question) + number]),)
        reply = yield from generate(asked, role=role, max_new_tokens=1, allowed=("a", "b"))
        chosen += reply.text or "-"  # the end of the turn may always be chosen, too
    return chosen


def judge_alone(trace: Trace, example: Example) -> Judgement:
    """1 for the next letter."""
    reward = float(trace.answer == shifted(example.question, 1))
    return Judgement(reward, (reward,))


def judge_team(trace: Trace, example: Example) -> Judgement:
    """What all share: 1 if all three are right, else 0.2 for each who is, so that 0.4 is for two of them."""
    right = sum(a == b for a, b in zip(trace.answer, _WANTED[example.question], strict=True))
    reward = 1.0 if right == 3 else 0.2 * right
    return Judgement(reward, (reward,) * 3)


def right_teams(trace: Trace, example: Example) -> Judgement:
    """The share of questions that all three got right."""
    return Judgement(float(trace.answer == _WANTED[example.question]), (0.0,) * 3)


def pair(question: str) -> Program:
    """Two agents; what the second one says is of no account."""
    chosen = ""
    for number, role in enumerate(TEAM[:2]):
        asked = (user(_SIGNS[3 * LETTERS.index(question) + number]),)
        reply = yield from generate(asked, role=role, max_new_tokens=1, allowed=LETTERS[:3])
        chosen += reply.text or "-"
    return chosen


def judge_pair(trace: Trace, example: Example) -> Judgement:
    """The first one decides, and the reward comes with the last turn."""
    reward = float(trace.answer[0] == {"a": "b", "b": "c", "c": "a"}[example.question])
    return Judgement(reward, (0.0, reward))


def greedy(run: TrainRun, program: Callable[[str], Program], judge: Callable[..., Judgement]) -> float:
    """The mean reward of the saved weights, as evaluation loads and runs them."""
    traces = run.rollout("greedy", program, run.examples)
    return sum(judge(t, e).reward for t, e in zip(traces, run.examples, strict=True)) / len(traces)


# Without a stage


def lora(**changes: Any) -> Optimisation:
    """Adapters of every linear map, one optimiser step for a buffer."""
    options = {
        "lora": Lora(r=4, alpha=8, targets=ALL_LINEAR),
        "learning_rate": 1e-3,
        "schedule": "constant",
        "batch_size": 64,
        "micro_batch": 4,
    }
    return Optimisation(**(options | changes))  # type: ignore[arg-type]


def models_of(
    model: Path,
    settings: Ppo,
    trained: Mapping[str, tuple[str, ...]] | None = None,
    start: Mapping[str, Path] | None = None,
    acting: Mapping[str, Path] | None = None,
    seed: int = 5,
) -> ActorCritic:
    """Actors, reference and critic as `Agents` makes them, on the CPU in float32."""
    base = resolve_model(str(model))
    cast = Cast(trained or {"shared": TEAM}, start or {}, acting or {})
    critic = settings.critic.weights
    actors = Actors(base, cast, settings.update, critic == "adapter", "float32", "cpu", seed)
    own: Any = None
    if critic == "model":
        own = weights.load_trainable(base, None, settings.update, "float32", "cpu", seed)
        own = getattr(own, "get_base_model", lambda: own)().eval()
    return ActorCritic(actors, settings, own)


def stirred(models: ActorCritic, size: float = 0.05, seed: int = 1) -> ActorCritic:
    """The models after some made-up training: every trained number is moved by noise."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in models.parameters().values():
            parameter += size * torch.randn(parameter.shape, generator=generator)
    return models


def made_up_turns(
    episodes: int = 4, roles: Sequence[str] = TEAM, longest: int = 6, seed: int = 2
) -> list[Turn]:
    """Turns of unequal lengths with random ids and rewards; every third choice is limited to some ids."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=generator))

    def ids(length: int, below: int = 300) -> tuple[int, ...]:
        return tuple(draw(4, below) for _ in range(length))

    turns = []
    for episode in range(episodes):
        before: tuple[int, ...] = ()
        for role in roles:
            limited = draw(0, 3) == 0
            prompt, response = ids(draw(1, 9)), ids(draw(1, longest + 1), 12 if limited else 300)
            allowed = tuple(range(4, 12)) if limited else ()
            reward = draw(-4, 5) / 4
            turns.append(Turn(role, episode, prompt, response, reward, allowed, before))
            before += prompt + response
    return turns


def step_of(models: ActorCritic, turns: Sequence[Turn], seed: int = 3) -> tuple[PPO, dict[str, float]]:
    """One step of a new PPO."""
    ppo = PPO(models, models.settings, seed)
    return ppo, ppo.step(turns)


def numbers(models: ActorCritic) -> dict[str, torch.Tensor]:
    """Copies of all that is trained."""
    return {name: p.detach().clone() for name, p in models.parameters().items()}
