"""From what agents did to what PPO learns from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ragtrials.branching import Branch
from ragtrials.data import Example
from ragtrials.errors import RunFailure
from ragtrials.program import Completion, Generate, Trace
from ragtrials.seeding import derive_seed
from ragtrials.training.turns import Turn


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an episode was worth.

    Attributes:
        reward: The outcome, which the learning curve shows; e.g. what all agents share.
        rewards: The reward of each generation, in order, those of untrained roles included.
        scalars: What else the log tells of episodes, as means over those of a buffer that name it.
    """

    reward: float
    rewards: tuple[float, ...]
    scalars: Mapping[str, float] = field(default_factory=dict)


def buffer_of(examples: Sequence[Example], step: int, size: int, seed: int) -> list[tuple[Example, Branch]]:
    """The questions of a PPO step: all examples in a new order for each pass over them.

    Args:
        examples: All of them.
        step: Which step, from 0.
        size: Questions of a step.
        seed: Decides the orders.

    Returns:
        Examples with the branches that ask them. A question draws anew in each pass.
    """
    found = []
    orders: dict[int, list[Example]] = {}
    for place in range(step * size, (step + 1) * size):
        number, at = divmod(place, len(examples))
        if number not in orders:
            orders[number] = sorted(examples, key=lambda e: derive_seed(seed, "pass", number, e.id))
        example = orders[number][at]
        found.append((example, Branch(example.id, example.question, sample=number + 1)))
    return found


def turns_of(
    traces: Sequence[Trace],
    judged: Sequence[Judgement],
    roles: Collection[str],
    allowed_ids: Callable[[Sequence[str]], tuple[int, ...]],
) -> list[Turn]:
    """The turns of trained roles: the very token ids that were read and sampled.

    Args:
        traces: One per episode.
        judged: What each was worth.
        roles: The trained roles.
        allowed_ids: The ids that strings of a constrained choice stand for.

    Raises:
        RunFailure: There is not one reward for each generation.
    """
    turns = []
    for episode, (trace, judgement) in enumerate(zip(traces, judged, strict=True)):
        if len(judgement.rewards) != len(trace.generations):
            raise RunFailure(
                f"example {trace.example_id}: {len(judgement.rewards)} rewards for "
                f"{len(trace.generations)} generations"
            )
        before: tuple[int, ...] = ()
        for step, reward in zip(trace.generations, judgement.rewards, strict=True):
            request, result = step.request, step.result
            assert isinstance(request, Generate)
            assert isinstance(result, Completion)
            if request.role in roles:
                allowed = allowed_ids(request.allowed)
                ids = (result.prompt_ids, result.token_ids)
                turns.append(Turn(request.role, episode, *ids, reward, allowed, before))
            before += result.prompt_ids + result.token_ids
    return turns


def mean_scalars(judged: Sequence[Judgement]) -> dict[str, float]:
    """The mean "reward" of episodes, and of every other scalar over the episodes that name it."""
    found: dict[str, list[float]] = {}
    for judgement in judged:
        found.setdefault("reward", []).append(judgement.reward)
        for name, value in judgement.scalars.items():
            found.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in found.items()}
