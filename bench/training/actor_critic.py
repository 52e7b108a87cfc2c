"""What PPO asks of its models: log-probabilities, entropies and values of sampled tokens, in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ragtrials.llm.tap import StateTap
from ragtrials.training.actors import CRITIC, Actors
from ragtrials.training.backbone import Backbone
from ragtrials.training.losses import masked_logprobs
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.turns import Turn
from ragtrials.training.value import ValueHead


@dataclass(frozen=True, slots=True)
class Row:
    """A turn as the models read it.

    Attributes:
        place: Its row in the buffer.
        turn: The turn.
        policy: The trained policy that its role has.
        seen: Prompt and response, as `Backbone.enter` gives them.
        judged: What the critic reads, if that is something else.
    """

    place: int
    turn: Turn
    policy: str
    seen: Tensor
    judged: Tensor | None

    @property
    def length(self) -> int:
        """Tokens of the response."""
        return len(self.turn.response_ids)


@dataclass(frozen=True, slots=True)
class Said:
    """What a policy says of responses, each (rows, longest of them), 0 on padding.

    Attributes:
        logprobs: Of the sampled tokens, in nats.
        entropy: Of the distributions that they were sampled from, in nats.
        values: Of the states in which they were sampled; None if the critic reads by itself.
    """

    logprobs: Tensor
    entropy: Tensor
    values: Tensor | None


class ActorCritic:
    """Actors, reference and critic, with the value head.

    Args:
        actors: The models.
        settings: PPO's settings.
        critic_model: A model of the critic's own, with `critic.weights=model`.

    Attributes:
        tap: Hears what the engine that samples computes below the actors' lowest adapter; None if no layer
            is frozen.
    """

    def __init__(self, actors: Actors, settings: Ppo, critic_model: Any = None) -> None:
        self.actors = actors
        self.settings = settings
        name = actors.base.name
        self._actor = Backbone(actors.model, actors.changing(), name)
        depth = self._actor.trunk.depth
        self.tap = StateTap(actors.model.get_decoder().layers[depth]) if depth else None
        self._frozen = self._actor
        if actors.adapters is None:
            with actors.referring("") as reference:
                self._frozen = Backbone(reference, actors.changing(), name)
        self._critic = self._actor
        if critic_model is not None:
            trained = [key for key, p in critic_model.named_parameters() if p.requires_grad]
            self._critic = Backbone(critic_model, trained, name)
        self.head = ValueHead(self._critic.hidden_size, str(actors.model.device))

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """All that is trained, by a name that is the same in every process."""
        found = {f"actor.{name}": p for name, p in self.actors.parameters().items()}
        if self._critic is not self._actor:
            model = self._critic.model
            found |= {f"critic.{name}": p for name, p in model.named_parameters() if p.requires_grad}
        return found | {f"value.{name}": p for name, p in self.head.named_parameters()}

    def rows(self, turns: Sequence[Turn]) -> list[Row]:
        """Make turns ready to be read, many times.

        Raises:
            KeyError: A turn is of a role that is not trained.
        """
        at_once = self.settings.update.micro_batch
        known = [self.tap and self.tap.take(turn.prompt_ids, turn.response_ids) for turn in turns]
        seen = self._actor.enter([t.prompt_ids + t.response_ids for t in turns], at_once, known)
        if self.tap:
            self.tap.forget()
        judged: Sequence[Tensor | None] = [None] * len(turns)
        if self.settings.critic.observation == "central" or self._critic is not self._actor:
            judged = self._critic.enter([self._judged(turn) for turn in turns], at_once)
        policies = self.actors.cast.policies
        return [
            Row(place, turn, policies[turn.role], seen[place], judged[place])
            for place, turn in enumerate(turns)
        ]

    def micro_batches(self, rows: Sequence[Row]) -> Iterator[list[Row]]:
        """Rows that can be read together: of one policy, and of like length, the longest first, so that a
        lack of memory is seen at once."""
        size = self.settings.update.micro_batch
        for policy in self.actors.cast.trained:
            own = sorted(
                (row for row in rows if row.policy == policy), key=lambda row: (-len(row.seen), row.place)
            )
            for start in range(0, len(own), size):
                yield own[start : start + size]

    def actor(self, rows: Sequence[Row]) -> Said:
        """What the policy of a micro-batch says of it now."""
        with self.actors.speaking(rows[0].policy):
            states = self._actor.states([row.seen for row in rows], [row.length for row in rows])
            logprobs, entropy = self._logprobs(self._actor, rows, states)
            values = None if self._critic_reads else _by_row(rows, self.head(states))
        return Said(logprobs, entropy, values)

    def reference(self, rows: Sequence[Row]) -> Tensor:
        """Log-probabilities of a micro-batch under the reference, (rows, longest)."""
        with torch.no_grad(), self.actors.referring(rows[0].policy):
            # With full tuning rows hold ids, which the frozen copy reads as well as the actor.
            states = self._frozen.states([row.seen for row in rows], [row.length for row in rows])
            return self._logprobs(self._frozen, rows, states)[0]

    def values(self, rows: Sequence[Row]) -> Tensor:
        """What a critic that reads by itself says of a micro-batch, (rows, longest)."""
        name = CRITIC if self.settings.critic.weights == "adapter" else rows[0].policy
        with self.actors.speaking(name):
            judged = [row.seen if row.judged is None else row.judged for row in rows]
            states = self._critic.states(judged, [row.length for row in rows])
            return _by_row(rows, self.head(states))

    @property
    def _critic_reads(self) -> bool:
        """Whether the critic needs a pass of its own."""
        critic = self.settings.critic
        return critic.weights != "shared" or critic.observation == "central"

    def _judged(self, turn: Turn) -> tuple[int, ...]:
        if self.settings.critic.observation == "central":
            return turn.before + turn.prompt_ids + turn.response_ids
        return turn.prompt_ids + turn.response_ids

    def _logprobs(self, backbone: Backbone, rows: Sequence[Row], states: Tensor) -> tuple[Tensor, Tensor]:
        logits = backbone.logits(states)
        ids = torch.tensor([i for row in rows for i in row.turn.response_ids], device=logits.device)
        allowed = None
        if self.settings.constrained and any(row.turn.allowed for row in rows):
            allowed = torch.ones_like(logits, dtype=torch.bool)
            start = 0
            for row in rows:
                if row.turn.allowed:
                    allowed[start : start + row.length] = False
                    allowed[start : start + row.length, list(row.turn.allowed)] = True
                start += row.length
        logprobs, entropy = masked_logprobs(logits, ids, self.settings.temperature, allowed)
        return _by_row(rows, logprobs), _by_row(rows, entropy)


def _by_row(rows: Sequence[Row], flat: Tensor) -> Tensor:
    """(rows, longest) from (N), one number for each token of each response, with 0 on padding."""
    parts = flat.split([row.length for row in rows])
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True)
