"""The same checks on every registered method, and proof that the checks can fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from ragtrials.conformance import check_method
from ragtrials.method import Method, Paper
from ragtrials.program import Program, generate, retrieve, user
from ragtrials.registry import METHODS

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun


@pytest.mark.parametrize("name", METHODS.names())
def test_a_method_conforms(name: str) -> None:
    assert check_method(METHODS.load(name)) == []


@dataclass(frozen=True)
class Config:
    """Settings: k is the number of passages."""

    k: int = 2


class Good(Method):
    """Answers."""

    name = "good"
    Config = Config
    PROFILES = {"paper": Config(), "laptop": Config(), "smoke": Config()}  # noqa: RUF012
    paper = Paper("A title", "a place", {})

    def answer(self, question: str) -> Program:
        yield from retrieve(question, self.config.k)
        reply = yield from generate([user(question)])
        return reply.text.strip()


def test_a_plain_method_conforms() -> None:
    assert check_method(Good) == []


class Restless(Good):
    """Asks something else each time."""

    count = 0

    def answer(self, question: str) -> Program:
        type(self).count += 1
        reply = yield from generate([user(f"{question} {self.count}")])
        return reply.text.strip()


class Deaf(Good):
    """Never passes the question on."""

    def answer(self, question: str) -> Program:
        reply = yield from generate([user("What?")])
        return reply.text.strip()


class Careless(Good):
    """Formats the question into a template."""

    def answer(self, question: str) -> Program:
        reply = yield from generate([user(question.replace("\n", " "))], role="judge")
        return reply.text


class Bare(Good):
    """Has no profile but one."""

    PROFILES = {"paper": Config()}  # noqa: RUF012
    paper = Paper("", "", {"x/f1": 35.3})


@dataclass(frozen=True)
class TrainedConfig:
    """Settings: k passages; examples is how many to train on."""

    k: int = 2
    examples: int | None = None


class Trained(Good):
    """Learns."""

    trains = True
    evaluation_settings = ("k",)
    Config = TrainedConfig
    PROFILES = {name: TrainedConfig() for name in ("paper", "laptop", "smoke")}  # noqa: RUF012

    def train(self, run: TrainRun) -> None:
        run.statistics["seen"] = len(run.examples)


def test_a_trained_method_conforms() -> None:
    assert check_method(Trained) == []


class Untaught(Good):
    """Says that it trains, and neither can nor says on how much."""

    trains = True


class Misspelt(Trained):
    """Keeps a setting from training that it does not have."""

    evaluation_settings = ("kay",)


class Idle(Trained):
    """Is not trained, but says what training does not see."""

    trains = False


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (Restless, "the same question and results give another program"),
        (Deaf, "no request holds the question verbatim"),
        (Careless, "a request has a role that is not in `roles`"),
        (Careless, "no request holds the question verbatim"),
        (Careless, "the answer has blanks around it"),
        (Bare, "lacks the profile(s) laptop, smoke"),
        (Bare, "its Paper card lacks title or url"),
        (Bare, "reported numbers must be fractions of 1"),
        (Untaught, "has `trains = True` but no train()"),
        (Untaught, "Config.examples must be there, an `int | None`"),
        (Misspelt, "evaluation_settings names 'kay', which Config lacks"),
        (Idle, "has `evaluation_settings` but `trains = False`"),
    ],
)
def test_a_fault_is_found(kind: Any, problem: str) -> None:
    assert [found for found in check_method(kind) if problem in found]
