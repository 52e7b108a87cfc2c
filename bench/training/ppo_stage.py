"""`ppo`: agents act together on questions and learn from what came of it, step by step, once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ragtrials.config import parse, plain
from ragtrials.data import Example
from ragtrials.errors import RunFailure, UserError
from ragtrials.program import Generate, Trace
from ragtrials.progress import progress
from ragtrials.seeding import derive_seed
from ragtrials.training.episodes import Judgement, buffer_of, mean_scalars, turns_of
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.programs import Answer, sampled
from ragtrials.training.report import RolloutReport, StageReport, last_scalars
from ragtrials.training.scalars import read_log
from ragtrials.training.stages import STEPS, WEIGHTS, once

if TYPE_CHECKING:
    from ragtrials.training.agents import Agents
    from ragtrials.training.ppo import PPO
    from ragtrials.training.run import TrainRun

Judge = Callable[[Trace, Example], Judgement]


@dataclass
class _Course:
    """What a stage has done so far, by this process and by killed ones up to their last saving."""

    turns: int = 0
    tokens: int = 0
    updates: int = 0
    seconds: float = 0.0
    loss: float = 0.0
    rollouts: RolloutReport = field(default_factory=RolloutReport)
    last: Mapping[str, float] = field(default_factory=dict)


def ppo(
    run: TrainRun,
    stage: str,
    policies: Mapping[str, Sequence[str]],
    answer: Answer,
    judge: Judge,
    settings: Ppo,
    learners: Sequence[str] | None = None,
) -> None:
    """Train the policies of roles by PPO, with their start as the reference.

    The model that is trained is the one that samples: rollouts read the weights that the optimiser changes.
    Roles without a trained policy act greedily, with the weights that earlier stages gave them.

    Args:
        run: The training; the roles' weights are replaced in it.
        stage: A name of its own, e.g. "ppo".
        policies: The roles that each trained policy plays, by a name for the policy.
        answer: The program that the agents work in.
        judge: What an episode was worth.
        settings: How to learn; with no steps the roles stay as they are.
        learners: The roles that draw, and whose turns are learnt from; by default all of the policies.
            Others act greedily, with the weights of their policy as these change (MMOA-RAG's "w/o i").

    Raises:
        UserError: There are no examples, or settings and model do not fit together.
        RunFailure: Memory ran out, a loss is not a number, or no learner was asked anything.
    """
    if not settings.steps:
        return
    drawing = learners or [role for roles in policies.values() for role in roles]

    def train(folder: Path) -> tuple[StageReport, dict[str, Path]]:
        if not run.examples:
            raise UserError(f"{run.label}: stage {stage} has no examples to train on")
        return _train(run, stage, policies, answer, judge, settings, drawing, folder)

    once(run, stage, settings.update.micro_batch, train)
    log = read_log(run.folder)
    curve = [log[stage, step]["reward"] for step in range(1, settings.steps + 1)]
    run.statistics[stage] = {"reward": [round(reward, 4) for reward in curve]}


def _train(
    run: TrainRun,
    stage: str,
    policies: Mapping[str, Sequence[str]],
    answer: Answer,
    judge: Judge,
    settings: Ppo,
    learners: Sequence[str],
    folder: Path,
) -> tuple[StageReport, dict[str, Path]]:
    from ragtrials.training.agents import Agents
    from ragtrials.training.weights import release

    agents = Agents(run, stage, policies, settings)
    course = _resume(agents.ppo, folder)
    drawn = sampled(answer, learners, settings.temperature, settings.top_p)
    with progress(f"{run.label}: {stage}", settings.steps) as bar:
        bar.advance(agents.ppo.taken)
        while agents.ppo.taken < settings.steps:
            scalars = _step(run, stage, agents, drawn, judge, learners, course)
            run.log_step(stage, scalars, agents.ppo.taken)
            course.last = scalars
            if agents.ppo.taken % settings.update.save_steps == 0:
                _save(agents.ppo, course, folder)
            bar.advance(1)
    weights = agents.save(folder / WEIGHTS)
    report = StageReport(
        stage,
        "+".join(weights),
        "ppo",
        course.turns,
        0,
        course.tokens,
        course.updates,
        agents.trained_parameters,
        round(course.seconds, 3),
        course.loss / settings.steps,
        last_scalars([course.last]),
        course.rollouts,
    )
    del agents
    release(run.device)
    return report, weights


def _step(
    run: TrainRun,
    stage: str,
    agents: Agents,
    answer: Answer,
    judge: Judge,
    learners: Sequence[str],
    course: _Course,
) -> dict[str, float]:
    """Sample a buffer of episodes, judge them, learn."""
    settings = agents.ppo.settings
    asked = buffer_of(run.examples, agents.ppo.taken, settings.questions, derive_seed(run.seed, stage))
    traces, cost = run.play(answer, [branch for _, branch in asked], agents.engine)
    course.rollouts += cost
    if settings.update.tuning == "full":
        _refuse_others(run, traces, agents)
    judged = [judge(trace, example) for trace, (example, _) in zip(traces, asked, strict=True)]
    turns = turns_of(traces, judged, learners, agents.engine.allowed_ids)
    if not turns:
        raise RunFailure(
            f"none of {', '.join(learners)} was asked anything by the {len(asked)} questions of PPO step "
            f"{agents.ppo.taken + 1}: nothing can be learnt from them"
        )
    clock = time.perf_counter()
    scalars = agents.ppo.step(turns) | mean_scalars(judged)
    course.seconds += time.perf_counter() - clock
    course.turns += len(turns)
    epochs, batch = settings.update.epochs, settings.update.batch_size
    course.tokens += epochs * sum(len(t.prompt_ids) + len(t.response_ids) for t in turns)
    course.updates += epochs * -(-len(turns) // batch)
    course.loss += scalars["policy_loss"] + settings.value_weight * scalars["value_loss"]
    return scalars


def _refuse_others(run: TrainRun, traces: Sequence[Trace], agents: Agents) -> None:
    """Hold that only trained roles spoke: a model that is trained as a whole answers for all of them."""
    steps = [step for trace in traces for step in trace.generations]
    spoke = {step.request.role for step in steps if isinstance(step.request, Generate)}
    if others := sorted(spoke.difference(agents.ppo.models.actors.cast.policies)):
        raise UserError(
            f"{run.label}: {others[0]} acts without being trained, but full tuning changes the one model "
            "that answers all roles: train it, too, or set ppo.update.tuning=lora"
        )


def _save(ppo: PPO, course: _Course, folder: Path) -> None:
    """Put the state of this step in the place of an earlier one, whole or not at all."""
    import torch

    steps = folder / STEPS
    steps.mkdir(parents=True, exist_ok=True)
    unfinished = steps / "unfinished.pt"
    torch.save({"ppo": ppo.state(), "course": plain(course)}, unfinished)
    unfinished.replace(steps / "last.pt")


def _resume(ppo: PPO, folder: Path) -> _Course:
    """Go on from the last saved step, if there is one.

    Raises:
        UserError: The file cannot be read.
        RunFailure: It is of other weights.
    """
    import pickle

    import torch

    saved = folder / STEPS / "last.pt"
    if not saved.is_file():
        return _Course()
    try:
        state = torch.load(saved, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, OSError, pickle.UnpicklingError) as error:
        # torch's own words go over many lines, and advise to load it less safely.
        raise UserError(f"{saved} is damaged: delete it, and the stage starts anew") from error
    ppo.restore(state["ppo"])
    return parse(_Course, state["course"], str(saved))
