"""The contract of a method: an algorithm for one question, typed settings, and its paper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ragtrials.data import Example
from ragtrials.program import Program

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun


@dataclass(frozen=True, slots=True)
class Paper:
    """Where a method comes from.

    Attributes:
        title: The paper's title.
        url: Where to read it.
        reported: The paper's numbers, by "task/metric" (fractions of 1), with the setting they hold for.
        deviations: Every way in which this implementation differs from the paper.
    """

    title: str
    url: str
    reported: Mapping[str, float]
    deviations: tuple[str, ...] = ()


class Method(ABC):
    """A RAG method. The file `methods/foo.py` holds the one Method whose `name` is "foo".

    Args:
        config: The settings, an instance of the class's `Config`.
    """

    name: ClassVar[str]
    roles: ClassVar[tuple[str, ...]] = ("generator",)
    retrieves: ClassVar[bool] = True
    """Whether the method may ask the retriever; one that never does is compared under every retriever."""
    trains: ClassVar[bool] = False
    """Whether the method has a `train`; its config then has a field `examples`, how many to train on."""
    evaluation_settings: ClassVar[tuple[str, ...]] = ()
    """Settings that training does not look at, so that one checkpoint serves all their values."""
    paper: ClassVar[Paper]
    Config: ClassVar[type]
    """A frozen dataclass of settings with defaults; `-o name=value` overrides a field."""
    PROFILES: ClassVar[Mapping[str, Any]]
    """Ready settings by name: at least "paper", "laptop" and "smoke"."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.shown: tuple[Example, ...] = ()
        """The few-shot examples: as many training examples as the config's field `shots` asks for."""

    @property
    def shots(self) -> int:
        """How many few-shot examples the method shows; 0 if its config has no field `shots`."""
        return int(getattr(self.config, "shots", 0))

    @property
    def tokens(self) -> tuple[str, ...]:
        """Control tokens that the model has to have; those that it lacks are added, and can be trained."""
        return ()

    def prepare(self, shown: Sequence[Example]) -> None:
        """Take the few-shot examples, drawn from the training split; called once, before any answer."""
        self.shown = tuple(shown)

    @abstractmethod
    def answer(self, question: str) -> Program:
        """The algorithm for one question. Gold answers are out of reach: only the question comes in."""

    @classmethod
    def trained_roles(cls, config: Any) -> tuple[str, ...]:
        """The roles to which `train` gives weights under these settings; all of them by default."""
        return cls.roles

    def train(self, run: TrainRun) -> None:
        """The paper's training: build data from `run.examples`, then change the weights of roles.

        Called once, after `prepare`, for methods with `trains = True`. Gold answers are in
        `run.examples`, which come from the training split alone.
        """
        raise NotImplementedError(f"method {self.name} has `trains = {self.trains}` and no train()")
