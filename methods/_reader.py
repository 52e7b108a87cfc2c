"""A reader that is fine-tuned on gold answers: what `sft`, `ra_dit` and `ret_robust` share.

They differ in the passages that stand before a training question, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ragtrials.data import Passage
from ragtrials.errors import UserError
from ragtrials.method import Method
from ragtrials.methods._prompts import answer_from
from ragtrials.program import Program, Retrieve, retrieve
from ragtrials.seeding import derive_seed
from ragtrials.training.settings import ALL_LINEAR, Lora, Optimisation
from ragtrials.training.stages import sft

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun


@dataclass(frozen=True, slots=True)
class EvidenceMix:
    """How often which evidence stands before a training question (RetRobust, §3.2: a third each).

    Attributes:
        top: Weight of the best passages.
        low: Weight of passages of a low rank.
        random: Weight of passages that were found for another training question.
    """

    top: float = 1.0
    low: float = 0.0
    random: float = 0.0

    def __post_init__(self) -> None:
        if min(self.top, self.low, self.random) < 0 or not self.top + self.low + self.random > 0:
            raise UserError("evidence_mix: weights must be at least 0, and one of them above 0")

    def draw(self, *parts: int | str) -> Literal["top", "low", "random"]:
        """The kind of evidence that the seed made from `parts` gives."""
        place = derive_seed(*parts) / 2**63 * (self.top + self.low + self.random)
        return "top" if place < self.top else "low" if place < self.top + self.low else "random"


@dataclass(frozen=True, slots=True)
class ReaderConfig:
    """Settings.

    Attributes:
        k: Passages that are read.
        max_new_tokens: Longest answer.
        passage_words: Words of each passage's text that are shown; all if None.
        examples: Training examples; all of the split if None.
        development: Held-out examples that pick the best step; 0 keeps the last step.
        mode: What a training instance shows: "concat" all k passages as in evaluation, "per_doc" one of
            them, so that a question gives k instances (RA-DIT, §2.2).
        evidence_mix: Which passages training instances show.
        low_rank: The best rank that "low" evidence has, counted from 1.
        sft: The optimisation.
    """

    k: int = 5
    max_new_tokens: int = 32
    passage_words: int | None = None
    examples: int | None = None
    development: int = 0
    mode: Literal["concat", "per_doc"] = "concat"
    evidence_mix: EvidenceMix = field(default_factory=EvidenceMix)
    low_rank: int = 50
    sft: Optimisation = field(default_factory=Optimisation)

    def __post_init__(self) -> None:
        for name in ("k", "max_new_tokens", "passage_words", "examples", "low_rank"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be at least 1, not {value}")
        if self.development < 0:
            raise UserError(f"development must be at least 0, not {self.development}")


LAPTOP = ReaderConfig(
    k=3,
    passage_words=60,
    examples=120,
    sft=Optimisation(
        lora=Lora(r=16, alpha=32, targets=ALL_LINEAR, last_layers=10),
        learning_rate=5e-4,
        schedule="linear",
        warmup=0.1,
        batch_size=4,
        micro_batch=4,
        save_steps=10,
    ),
)
"""A third of the layers of a 135M model and 120 questions: some ten minutes on two slow cores."""
SMOKE = replace(
    LAPTOP,
    k=2,
    max_new_tokens=4,
    examples=8,
    sft=Optimisation(lora=Lora(r=4, alpha=8), learning_rate=1e-3, batch_size=4, micro_batch=2, save_steps=1),
)


class FineTunedReader(Method):
    """Retrieve-then-read, with a reader that was fine-tuned on gold answers."""

    trains = True
    Config = ReaderConfig
    evaluation_settings: ClassVar[tuple[str, ...]] = ("max_new_tokens",)
    config: ReaderConfig

    def answer(self, question: str) -> Program:
        passages = yield from retrieve(question, k=self.config.k)
        return (yield from self._read(question, passages))

    def _read(self, question: str, passages: tuple[Passage, ...]) -> Program:
        config = self.config
        return (yield from answer_from(question, passages, (), config.passage_words, config.max_new_tokens))

    def train(self, run: TrainRun) -> None:
        others = tuple(example.question for example in run.examples)

        def lesson(question: str) -> Program:
            passages = yield from self._evidence(question, others, run.seed)
            shown = [(p,) for p in passages] if self.config.mode == "per_doc" and passages else [passages]
            for seen in shown:
                yield from self._read(question, seen)
            return ""

        rows, held_out = (
            run.demonstrate(lesson, examples, reply=lambda request, example: example.target)
            for examples in (run.examples, run.development)
        )
        run.statistics["evidence"] = self._counts(others, run.seed)
        sft(run, "sft", "generator", rows, self.config.sft, held_out)

    def _evidence(
        self, question: str, others: tuple[str, ...], seed: int
    ) -> Generator[Retrieve, Any, tuple[Passage, ...]]:
        """The passages that stand before a training question."""
        k, low = self.config.k, self.config.low_rank
        kind = self.config.evidence_mix.draw(seed, "evidence", question)
        if kind == "low":
            return (yield from retrieve(question, k=low + k - 1))[low - 1 :]
        if kind == "random":
            strangers = [other for other in others if other != question]
            if strangers:
                question = strangers[derive_seed(seed, "stranger", question) % len(strangers)]
        return (yield from retrieve(question, k=k))

    def _counts(self, questions: tuple[str, ...], seed: int) -> dict[str, int]:
        drawn = [self.config.evidence_mix.draw(seed, "evidence", question) for question in questions]
        return {kind: drawn.count(kind) for kind in ("top", "low", "random")}
