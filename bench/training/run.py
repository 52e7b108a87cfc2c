"""All that a method's `train` may touch: examples, its own programs run as rollouts, and a log."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ragtrials.branching import Branch
from ragtrials.chunks import read_chunk, write_chunk
from ragtrials.data import Example
from ragtrials.driver import Driver
from ragtrials.errors import UserError
from ragtrials.program import Completion, Engine, Generate, Program, Retriever, Step, Trace
from ragtrials.progress import progress
from ragtrials.training.programs import Answer, NoModel, taught
from ragtrials.training.report import RolloutReport, StageReport, TrainingReport, peak_memory_mb
from ragtrials.training.rows import Demonstration, RowEncoder
from ragtrials.training.scalars import ScalarLog

if TYPE_CHECKING:
    from ragtrials.llm.models import ResolvedModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a training needs from outside.

    Attributes:
        label: What a person calls the training.
        task: Name of the task.
        train_id: Digest of all that it sees.
        folder: Where everything goes.
        seed: Decides every draw.
        chunk: Questions, or branches, that are driven together and saved at once.
        base: The untrained model.
        dtype, device: How it is run; "auto" is resolved already.
        batch_size: Prompts that are read at once.
        max_prompt_tokens: Longer prompts have their passages shortened.
        retriever: Over the training corpus; None for a method that never retrieves.
        load_engine: The engine with the given weights by role.
        load_other: The engine with another model, run in the same way.
        describe_other: That engine's signature, without loading it.
        free_engine: Unloads whichever is loaded.
        scores: All of the task's scores of an answer to an example, the same that evaluation reports.
        main_metric: The one of them that ranks.
        choices: The answers that the task chooses among; empty where any text may be one.
        log: Where scalars go.
    """

    label: str
    task: str
    train_id: str
    folder: Path
    seed: int
    chunk: int
    base: ResolvedModel
    dtype: str
    device: str
    batch_size: int
    max_prompt_tokens: int
    retriever: Retriever | None
    load_engine: Callable[[Mapping[str, Path]], Engine]
    load_other: Callable[[str], Engine]
    describe_other: Callable[[str], Mapping[str, Any]]
    free_engine: Callable[[], None]
    scores: Callable[[str, Example], Mapping[str, float]]
    main_metric: str
    choices: tuple[str, ...]
    log: ScalarLog


class TrainRun:
    """One training of one method on one task.

    Whatever takes long is kept on disk as it is finished (chunks of rollouts, steps and stages of
    optimisation), so a killed training goes on where it was and ends with the same weights.

    Args:
        examples: Training examples in their seeded order.
        development: Examples held out of them.
        surroundings: Everything else.

    Attributes:
        policies: The folder of each trained role's present weights.
        statistics: What the method wants said about its data in the record.
    """

    def __init__(
        self, examples: Sequence[Example], development: Sequence[Example], surroundings: Surroundings
    ) -> None:
        self.examples = examples
        self.development = development
        self.policies: dict[str, Path] = {}
        self.statistics: dict[str, Any] = {}
        self._around = surroundings
        self._stages: list[StageReport] = []
        self._rollouts = RolloutReport()

    @property
    def label(self) -> str:
        """What a person calls the training."""
        return self._around.label

    @property
    def task(self) -> str:
        """Name of the task."""
        return self._around.task

    @property
    def folder(self) -> Path:
        """Where the training keeps its files."""
        return self._around.folder

    @property
    def seed(self) -> int:
        """Decides every draw."""
        return self._around.seed

    @property
    def base(self) -> ResolvedModel:
        """The model that every role starts from."""
        return self._around.base

    @property
    def dtype(self) -> str:
        """Number format of frozen weights and of rollouts."""
        return self._around.dtype

    @property
    def batch_size(self) -> int:
        """Prompts that are read at once."""
        return self._around.batch_size

    @property
    def max_prompt_tokens(self) -> int:
        """Longer prompts have their passages shortened."""
        return self._around.max_prompt_tokens

    @property
    def device(self) -> str:
        """Where the model runs."""
        return self._around.device

    def reward(self, answer: str, example: Example) -> float:
        """The task's main score, the same function that evaluation reports (0..1)."""
        return self.scores(answer, example)[self._around.main_metric]

    def scores(self, answer: str, example: Example) -> Mapping[str, float]:
        """All of the task's scores, the same function that evaluation reports (0..1)."""
        return self._around.scores(answer, example)

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers that the task chooses among; empty where any text may be one."""
        return self._around.choices

    def rollout(self, name: str, answer: Answer, examples: Sequence[Example]) -> list[Trace]:
        """Run a program on examples with the present weights; traces come in the same order.

        Args:
            name: A name of its own in this training.
            answer: The program; `sampled` makes it draw.
            examples: The questions.
        """
        return self.branch(name, answer, [Branch(e.id, e.question) for e in examples])

    def branch(self, name: str, answer: Answer, branches: Sequence[Branch]) -> list[Trace]:
        """Run a program on from given points with the present weights; traces come in the same order."""
        return self._kept(
            name,
            branches,
            [branch.example_id for branch in branches],
            lambda driver, part: driver.branch(answer, part),
        )

    def describe(self, model: str) -> Mapping[str, Any]:
        """The signature of another model that `ask` is to ask: what it is and how it is run.

        Raises:
            UserError: There is no such model. Better known before the first rollout than behind it.
        """
        return self._around.describe_other(model)

    def ask(
        self, name: str, asked: Sequence[tuple[str, Generate, int]], model: str | None = None
    ) -> list[Completion]:
        """Draw single completions with the present weights, or from another model.

        Args:
            name: A name of its own in this training.
            asked: Example id, request, and which draw it is, which decides its seed.
            model: The other model, as `--model` takes it, such as a stronger one that labels data.
        """

        def drive(driver: Driver, part: Sequence[tuple[str, Generate, int]]) -> list[Trace]:
            return [
                Trace(example_id, "", (Step(0, request, result),))
                for (example_id, request, _), result in zip(part, driver.ask(part), strict=True)
            ]

        traces = self._kept(name, asked, [example_id for example_id, _, _ in asked], drive, model)
        return [cast("Completion", trace.steps[0].result) for trace in traces]

    def play(
        self, answer: Answer, branches: Sequence[Branch], engine: Engine
    ) -> tuple[list[Trace], RolloutReport]:
        """Run a program against an engine whose weights are changing: nothing is kept on disk.

        Args:
            answer: The program.
            branches: The questions.
            engine: Who speaks.

        Returns:
            The traces, in the same order, and what they cost.
        """
        driver = Driver(self._around.retriever, engine, self.seed)
        clock = time.perf_counter()
        traces = driver.branch(answer, branches)
        return traces, RolloutReport.of(time.perf_counter() - clock, asdict(driver.timing))

    def demonstrate(
        self, answer: Answer, examples: Sequence[Example], reply: Callable[[Generate, Example], str]
    ) -> list[Demonstration]:
        """Run a program with a teacher in the model's place: what it is asked, and what it should say.

        The rows hold the very prompts of the program, so training and evaluation cannot drift apart.
        No model is called, and nothing is kept on disk: retrieval is quick.

        Args:
            answer: The program.
            examples: The questions.
            reply: The right continuation of a request for an example.
        """
        rows: list[Demonstration] = []
        waiting = iter(examples)

        def with_teacher(question: str) -> Program:
            return taught(answer(question), next(waiting), reply, rows)

        driver = Driver(self._around.retriever, NoModel(), self.seed)
        clock = time.perf_counter()
        driver.run(with_teacher, [(example.id, example.question) for example in examples])
        self._rollouts += RolloutReport.of(time.perf_counter() - clock, asdict(driver.timing))
        return rows

    def start_of(self, roles: Sequence[str]) -> Path | None:
        """The folder of the present weights that several roles share; None while they are the base model's.

        Raises:
            UserError: They have different weights.
        """
        folders = {self.policies.get(role) for role in roles}
        if len(folders) > 1:
            raise UserError(
                f"{self.label}: the roles {', '.join(roles)} are to share weights, but have different ones"
            )
        return folders.pop()

    def log_step(self, stage: str, scalars: Mapping[str, float], step: int) -> None:
        """Write scalars of a step to the log."""
        self._around.log.write(stage, scalars, step)

    @cached_property
    def tokenizer(self) -> Any:
        """The model's tokenizer."""
        from ragtrials.llm.loading import load_tokenizer

        return load_tokenizer(self.base)

    @cached_property
    def encoder(self) -> RowEncoder:
        """Turns rows into token ids as evaluation would."""
        from ragtrials.llm.prompts import PromptBuilder

        config = json.loads((self.base.folder / "config.json").read_text("utf-8"))
        context = config.get("text_config", config).get("max_position_embeddings")
        return RowEncoder(
            PromptBuilder(self.tokenizer, self.base.name), self._around.max_prompt_tokens, context
        )

    def free_engine(self) -> None:
        """Unload the model of the rollouts."""
        self._around.free_engine()

    def finish_stage(self, weights: Mapping[str, Path], report: StageReport) -> None:
        """Take new weights of roles, now or from an earlier process."""
        self.policies.update(weights)
        self._rollouts += report.rollouts
        self._stages.append(report)

    def report(self) -> TrainingReport:
        """What was done and what it cost."""
        optimising = sum(stage.seconds for stage in self._stages)
        return TrainingReport(
            examples=len(self.examples),
            stages=tuple(self._stages),
            rollouts=self._rollouts,
            seconds=round(self._rollouts.seconds + optimising, 3),
            device=self.device,
            peak_memory_mb=peak_memory_mb(self.device),
            statistics=self.statistics,
        )

    def _kept(
        self,
        name: str,
        items: Sequence[T],
        example_ids: Sequence[str],
        drive: Callable[[Driver, Sequence[T]], list[Trace]],
        model: str | None = None,
    ) -> list[Trace]:
        """Drive items chunk by chunk; chunks that are on disk are not driven again."""
        folder, identity = self.folder / "rollouts" / name, f"{self._around.train_id}/{name}"
        size = self._around.chunk
        traces: list[Trace] = []
        with progress(f"{self.label}: {name}", len(items)) as bar:
            for index, start in enumerate(range(0, len(items), size)):
                part = items[start : start + size]
                chunk = read_chunk(folder, identity, index, example_ids[start : start + size])
                if chunk is None:
                    engine = self._engine(model)
                    driver = Driver(self._around.retriever, engine, self.seed)
                    clock = time.perf_counter()
                    found = drive(driver, part)
                    seconds = time.perf_counter() - clock
                    chunk = write_chunk(folder, identity, index, found, seconds, driver.timing)
                self._rollouts += RolloutReport.of(chunk.header.seconds, chunk.header.served)
                traces += chunk.traces
                bar.advance(len(part))
        return traces

    def _engine(self, model: str | None) -> Engine:
        if model is None:
            return self._around.load_engine(self.policies)
        return self._around.load_other(model)
