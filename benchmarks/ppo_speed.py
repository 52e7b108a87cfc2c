"""What PPO costs beside plain passes of the same tokens: rollouts, looking at them, learning, memory.

    python benchmarks/ppo_speed.py [--model quickstart | --shape 1b|8b|tiny] [--device auto] [--dtype auto]
                                   [--questions 16] [--apart 1] [--output FILE.json] [--check]

Three agents act on each question: they read about 100, 350 and 250 tokens and write up to 24, 12 (limited to
names of passages) and 8. One process and one model, with LoRA on all linear maps, measure

    rollouts   all questions together by the driver; the first --apart of them one after the other; and one
               plain forward pass over what these read and wrote, each agent's by itself;
    learning   what `PPO.step` does with the turns of those first questions: "look" (old log-probabilities,
               reference, values; without gradients) and "update" (loss, backward, optimiser). Beside them
               transformers alone: a forward pass, and a forward and backward pass of cross entropy on the
               same response tokens, with the same adapter and micro-batches, logits only where needed.
               Adapters are on all layers, or on the last third, where PPO computes the rest once;
    memory     one PPO step and one SFT step of trl on the same rows and micro-batches, each in a process
               of its own: how far the resident size (on a GPU what torch allocated) grows at most beyond
               that of the loaded model.

Passes take turns and the quickest of --repeats counts; a rollout is made once. Tokens per second are of CPU
seconds on a CPU, which other work on the machine disturbs less, and of wall seconds on a GPU. Ratios above 1
say that PPO is quicker than the plain pass. --check exits with 1 if an update has less than 0.8 of its speed.
--shape builds a random model of Llama 3's shapes with the tokenizer of the quick start.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measuring import in_own_process
from ppo_parts import (
    AGENTS,
    SHAPES,
    acting,
    at_work,
    plain_of,
    random_model,
    settings_of,
    step_memory,
    tokens_of,
    training,
)

from ragtrials.branching import Branch
from ragtrials.environment import environment
from ragtrials.llm.signature import EngineSettings
from ragtrials.training.agents import Agents
from ragtrials.training.episodes import Judgement, turns_of
from ragtrials.training.ppo import Buffer
from ragtrials.training.run import TrainRun
from ragtrials.training.turns import Turn

LIMIT = 0.8


@dataclass(frozen=True, slots=True)
class Cost:
    """What handling some tokens took."""

    tokens: int
    seconds: float
    cpu_seconds: float


class Clock:
    """Times work on a device."""

    def __init__(self, device: str) -> None:
        self._cuda = device.startswith("cuda")
        self._by = "seconds" if self._cuda else "cpu_seconds"

    def once(self, work: Callable[[], object], tokens: int) -> Cost:
        self._wait()
        began = time.perf_counter(), time.process_time()
        work()
        self._wait()
        return Cost(tokens, time.perf_counter() - began[0], time.process_time() - began[1])

    def best(self, works: Mapping[str, Callable[[], object]], tokens: int, repeats: int) -> dict[str, Cost]:
        names, costs = list(works), {name: list[Cost]() for name in works}
        for turn in range(repeats):
            first = turn % len(names)  # none is always first
            for name in names[first:] + names[:first]:
                costs[name].append(self.once(works[name], tokens))
        return {name: min(taken, key=self.taken) for name, taken in costs.items()}

    def taken(self, cost: Cost) -> float:
        """The seconds that count."""
        return float(getattr(cost, self._by))

    def _wait(self) -> None:
        if self._cuda:
            torch.cuda.synchronize()


def rollouts(
    run: TrainRun, agents: Agents, clock: Clock, options: argparse.Namespace
) -> tuple[dict[str, Cost], dict[str, int], list[Turn]]:
    """Costs, tokens that were read and written together, and the turns of the first questions."""
    answer, costs = acting(), {}
    asked = [Branch(f"q{number}", f"Question {number}:") for number in range(options.questions)]
    run.play(answer, [Branch("warm-up", "Question:")], agents.engine)

    def play(branches: Sequence[Branch]) -> tuple[Cost, Any, list[Any]]:
        played: list[Any] = []
        cost = clock.once(lambda: played.extend(run.play(answer, branches, agents.engine)), 0)
        traces, served = played
        return replace(cost, tokens=served.prompt_tokens + served.completion_tokens), served, traces

    costs["together"], served, traces = play(asked)
    apart = [play([branch])[0] for branch in asked[: options.apart]]
    sums = (sum(getattr(cost, name) for cost in apart) for name in ("tokens", "seconds", "cpu_seconds"))
    costs["one at a time"] = Cost(*sums)
    judged = [Judgement(number % 2, (number % 2,) * len(AGENTS)) for number in range(options.apart)]
    turns = turns_of(traces[: options.apart], judged, tuple(AGENTS), agents.engine.allowed_ids)
    batches = []
    for role in AGENTS:
        own = sorted((turn for turn in turns if turn.role == role), key=lambda turn: -len(turn.prompt_ids))
        batches += [own[at : at + options.batch_size] for at in range(0, len(own), options.batch_size)]
    costs["plain forward"] = clock.once(partial(plain_of, run, agents, batches, False), tokens_of(turns))
    return costs, {"read": served.prompt_tokens, "written": served.completion_tokens}, turns


def learning(
    run: TrainRun, agents: Agents, clock: Clock, turns: Sequence[Turn], repeats: int
) -> dict[str, Cost]:
    """Costs of the two parts of a PPO step, and of plain passes over the same micro-batches."""
    ppo = agents.ppo

    def look() -> Buffer:
        with torch.no_grad():
            return ppo._look(turns)

    buffer = look()
    batches = [[row.turn for row in batch] for batch in ppo.models.micro_batches(buffer.rows)]
    works: dict[str, Callable[[], object]] = {
        "plain forward": partial(plain_of, run, agents, batches, False),
        "look": look,
        "plain forward+backward": partial(plain_of, run, agents, batches, True),
        "update": partial(ppo._update, buffer.rows, buffer),
    }
    return clock.best(works, tokens_of(turns), repeats)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Everything, as JSON values; tables are printed on the way."""
    run = training(options, folder / "run")
    clock = Clock(run.device)
    layers = json.loads((run.base.folder / "config.json").read_text("utf-8"))["num_hidden_layers"]
    threads = torch.get_num_threads()
    print(f"{run.base.name}, {layers} layers, {run.dtype} on {run.device}, {threads} CPU threads", flush=True)
    report: dict[str, Any] = {
        "model": run.base.name,
        "dtype": run.dtype,
        "device": torch.cuda.get_device_name() if run.device.startswith("cuda") else run.device,
        "threads": threads,
        "environment": environment(),
        "options": {
            name: getattr(options, name) for name in ("questions", "apart", "batch_size", "micro_batch")
        },
        "learning": {},
    }
    turns: list[Turn] = []
    for last_layers in (None, max(1, layers // 3)):
        with at_work(run, settings_of(options, 3 * options.apart, last_layers)) as agents:
            if last_layers is None:
                costs, served, turns = rollouts(run, agents, clock, options)
                rates = {name: cost.tokens / clock.taken(cost) for name, cost in costs.items()}
                ratios = {f"together / {name}": rates["together"] / rates[name] for name in list(rates)[1:]}
                report["rollouts"] = {**shown("rollouts", costs, clock, ratios), **served}
            costs = learning(run, agents, clock, turns, options.repeats)
        taken = {name: clock.taken(cost) for name, cost in costs.items()}
        forward, both = taken["plain forward"], taken["plain forward+backward"]
        ratios = {
            "update / plain": both / taken["update"],
            "look / plain forward": forward / taken["look"],
            "look + update / plain": both / (taken["look"] + taken["update"]),
        }
        name = "all layers" if last_layers is None else f"last {last_layers} layers"
        report["learning"][name] = shown(name, costs, clock, ratios)
    (folder / "turns.json").write_text(json.dumps([asdict(turn) for turn in turns]), "ascii")
    report["memory"] = {
        kind: in_own_process(__file__, *call(options, kind, folder)) for kind in ("ppo", "sft")
    }
    for kind, used in report["memory"].items():
        print(f"memory of a {kind} step: {used['growth'] / 1e6:,.0f} MB over {used['loaded'] / 1e6:,.0f} MB")
    both_steps = [report["memory"][kind]["growth"] for kind in ("ppo", "sft")]
    print(f"{'ppo / sft':45}{both_steps[0] / both_steps[1]:8.2f}")
    return report


def call(options: argparse.Namespace, kind: str, folder: Path) -> list[str]:
    """How this script is called for the memory of one step."""
    given = ("model", "device", "dtype", "batch_size", "micro_batch", "threads")
    named = [f"--{name.replace('_', '-')}={getattr(options, name)}" for name in given]
    return [
        *named,
        *["--gradient-checkpointing"] * options.gradient_checkpointing,
        "--memory",
        kind,
        str(folder),
    ]


def shown(title: str, costs: Mapping[str, Cost], clock: Clock, ratios: Mapping[str, float]) -> dict[str, Any]:
    """Print a table; what it says as JSON values."""
    print(f"\n{title:24}{'tokens':>9}{'seconds':>10}{'CPU s':>10}{'tokens/s':>10}")
    rows = {}
    for name, cost in costs.items():
        rate = cost.tokens / clock.taken(cost)
        print(f"  {name:22}{cost.tokens:9,}{cost.seconds:10.2f}{cost.cpu_seconds:10.2f}{rate:10.0f}")
        rows[name] = {**asdict(cost), "tokens_per_second": rate}
    for name, ratio in ratios.items():
        print(f"  {name:43}{ratio:8.2f}", flush=True)
    return {"costs": rows, "ratios": dict(ratios)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="quickstart")
    parser.add_argument("--shape", choices=SHAPES, help="a random model in place of --model")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--questions", type=int, default=16, help="questions that are asked together")
    parser.add_argument("--apart", type=int, default=1, help="the first of them, for everything else")
    parser.add_argument("--batch-size", type=int, default=16, help="prompts at once in rollouts")
    parser.add_argument("--micro-batch", type=int, default=2, help="turns at once in learning")
    parser.add_argument("--gradient-checkpointing", action="store_true")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument("--output", type=Path, help="a JSON file for all figures")
    parser.add_argument("--check", action="store_true", help=f"exit with 1 if an update is below {LIMIT}")
    parser.add_argument("--memory", nargs=2, metavar=("KIND", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 1 <= options.apart <= options.questions:
        parser.error("--apart must be at least 1, and at most --questions")
    torch.set_num_threads(options.threads)
    engine = EngineSettings.resolve(options.dtype, options.device, options.batch_size, 8192)
    options.device, options.dtype = engine.device, engine.dtype
    if options.memory:
        print(json.dumps(step_memory(options.memory[0], options, Path(options.memory[1]))))
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if options.shape:
            built = folder / f"random-{options.shape}"
            options.model = str(random_model(options.shape, built, options.device, options.dtype))
        report = measure(options, folder)
    if options.output:
        options.output.write_text(json.dumps(report, indent=2) + "\n", "utf-8")
    slowest = min(found["ratios"]["update / plain"] for found in report["learning"].values())
    if slowest < LIMIT:
        print(f"an update has {slowest:.2f} of the plain pass's speed, less than {LIMIT}")
    return int(options.check and slowest < LIMIT)


if __name__ == "__main__":
    sys.exit(main())
