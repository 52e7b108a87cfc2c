"""Which examples of the published files a split holds, so that nothing evaluated is ever trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragtrials.data import Example
from ragtrials.metrics import normalise
from ragtrials.task import Task, sample

HELD_OUT = 500
"""Examples of the validation part at most."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A published record that gives no example, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Part:
    """The examples of a split, and by id why others of its published file are in no split."""

    examples: list[Example]
    left_out: Mapping[str, str]


def part_of(task: Task, split: str, read: Callable[[str], Iterable[Example | LeftOut]]) -> Part:
    """The part that is called `split`: the reported file, or what "train" or "validation" gets of train.

    Training examples whose id or normalised question is in the reported file are left out of both.

    Args:
        task: Its card names the splits and the reported one.
        split: One of the card's splits.
        read: Gives what a published file holds: "train" or the reported split.
    """
    if split not in task.card.splits:
        raise task.unknown_split(split)
    reported = task.card.reported_split
    if split == reported:
        return _sorted_out(read(reported))
    train, evaluated = _sorted_out(read("train")), _sorted_out(read(reported)).examples
    ids = {example.id for example in evaluated}
    questions = {normalise(example.question) for example in evaluated}
    kept, left_out = [], dict(train.left_out)
    for example in train.examples:
        if example.id in ids or normalise(example.question) in questions:
            left_out[example.id] = f"its question is evaluated in {reported}"
        else:
            kept.append(example)
    return Part(carve(kept, split), left_out)


def carve(examples: Sequence[Example], split: str) -> list[Example]:
    """What "train" or "validation" gets of the training examples.

    Validation is a tenth, at most `HELD_OUT`, drawn by id hash; train is the rest.
    """
    held_out = sample(examples, min(HELD_OUT, len(examples) // 10))
    if split == "validation":
        return held_out
    ids = {example.id for example in held_out}
    return [example for example in examples if example.id not in ids]


def described(train: str, reported: str, published: str) -> dict[str, str]:
    """The `splits` of a card.

    Args:
        train: What the training file is, e.g. "the published train split".
        reported: The name of the reported split.
        published: What the reported split is.
    """
    return {
        "train": f"{train} without the part held out as validation and without questions of {reported}",
        "validation": f"a tenth of train, at most {HELD_OUT}, to pick checkpoints; drawn by id hash",
        reported: f"{published}, never trained on",
    }


def _sorted_out(found: Iterable[Example | LeftOut]) -> Part:
    examples: list[Example] = []
    left_out: dict[str, str] = {}
    for item in found:
        if isinstance(item, LeftOut):
            left_out[item.id] = item.reason
        else:
            examples.append(item)
    return Part(examples, left_out)
