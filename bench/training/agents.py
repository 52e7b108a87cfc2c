"""Everything that a PPO stage works with, on one model in memory: who samples is who learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrials.errors import UserError
from ragtrials.llm.hf import HFEngine
from ragtrials.llm.policy import is_adapter
from ragtrials.seeding import derive_seed
from ragtrials.training import weights
from ragtrials.training.actor_critic import ActorCritic
from ragtrials.training.actors import Actors, Cast
from ragtrials.training.ppo import PPO
from ragtrials.training.ppo_settings import Ppo

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun


class Agents:
    """The models of a stage, the engine that samples with them, and PPO that trains them.

    Args:
        run: The training, with the weights that roles have now.
        stage: The stage's name.
        policies: The roles that each trained policy plays.
        settings: How to learn.

    Raises:
        UserError: Settings and weights do not fit together.

    Attributes:
        engine: Answers every role with its present weights.
        ppo: Learns.
    """

    def __init__(
        self, run: TrainRun, stage: str, policies: Mapping[str, Sequence[str]], settings: Ppo
    ) -> None:
        self._run = run
        seed = derive_seed(run.seed, stage) % 2**32
        self._actors = actors = Actors(
            run.base,
            _cast(run, policies),
            settings.update,
            settings.critic.weights == "adapter",
            run.dtype,
            run.device,
            seed,
        )
        critic = None
        if settings.critic.weights == "model":
            critic = weights.load_trainable(run.base, None, settings.update, run.dtype, run.device, seed)
            critic = getattr(critic, "get_base_model", lambda: critic)().eval()
        if settings.update.gradient_checkpointing:
            for model in (actors.model, *([] if critic is None else [critic])):
                model.gradient_checkpointing_enable({"use_reentrant": False})
                for module in model.modules():  # in training mode it works, but dropout would, too
                    module.training = getattr(module, "gradient_checkpointing", False)
        self.engine = HFEngine.over(
            actors.model,
            run.base,
            run.tokenizer,
            actors.adapters,
            dtype=run.dtype,
            device=run.device,
            batch_size=run.batch_size,
            max_prompt_tokens=run.max_prompt_tokens,
        )
        models = ActorCritic(actors, settings, critic)
        self.engine.tap = models.tap
        mixed = run.dtype == "bfloat16" and run.device.startswith("cuda")
        self.ppo = PPO(models, settings, seed, mixed)

    @property
    def trained_parameters(self) -> int:
        """How many numbers the optimiser changes."""
        return sum(parameter.numel() for parameter in self.ppo.models.parameters().values())

    def save(self, folder: Path) -> dict[str, Path]:
        """Write the trained policies; the folder of each role's weights."""
        return self._actors.save(self._run.tokenizer, folder)


def _cast(run: TrainRun, policies: Mapping[str, Sequence[str]]) -> Cast:
    """Who begins with which weights of earlier stages."""
    trained = {policy: tuple(roles) for policy, roles in policies.items()}
    playing = [role for roles in trained.values() for role in roles]
    begins = {policy: run.start_of(roles) for policy, roles in trained.items()}
    acting = {role: folder for role, folder in run.policies.items() if role not in playing}
    if whole := [role for role, folder in acting.items() if not is_adapter(folder)]:
        raise UserError(
            f"{run.label}: {whole[0]} acts with a whole model of its own, which does not fit beside the one "
            "that is trained: set tuning=lora for all stages"
        )
    return Cast(trained, {policy: start for policy, start in begins.items() if start is not None}, acting)
