"""A world in which half of the questions have to be looked up, for SmartRAG on a tiny model.

All answers are letters. Of what is in sight the question itself says the letter. What is behind a door only
a passage says, and each door of the world has each letter behind it once, so that nobody can learn it by
heart: without a search one question in four is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from pathlib import Path
from typing import Any

from tiny import build_tiny_model

from ragtrials.data import Example, Passage
from ragtrials.methods._smart_config import SmartConfig, WarmUp
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Completion, Hit, Score, Trace
from ragtrials.training.kl import KlControl
from ragtrials.training.ppo_settings import Ppo
from ragtrials.training.run import TrainRun
from ragtrials.training.settings import Optimisation

LETTERS = "bcdf"
_PAIRS = [(number, letter) for number in range(4) for letter in LETTERS]
IN_SIGHT = [Example(f"sight-{x}{n}", f"Here you can see that it is {x}", ((x,),)) for n, x in _PAIRS]
BEHIND = [Example(f"behind-{x}{n}", f"Who is behind the closed door {n}", ((x,),)) for n, x in _PAIRS]
WORLD = [example for pair in zip(IN_SIGHT, BEHIND, strict=True) for example in pair]


class Library:
    """Finds the passage of the example that is asked about, if the query ends as the question does."""

    signature: dict[str, Any] = {"name": "library"}  # noqa: RUF012

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        assert example_ids is not None
        return [self._found(query, i) for query, i in zip(queries, example_ids, strict=True)]

    def _found(self, query: str, example_id: str) -> list[Hit]:
        (example,) = [example for example in WORLD if example.id == example_id]
        name = example.question.split()[-1]
        passage = Passage(example_id, f"door {name}", example.target)
        return [Hit(passage, 1.0)] if query.split()[-1:] == [name] else []


class Nothing:
    """Finds nothing."""

    signature: dict[str, Any] = {"name": "nothing"}  # noqa: RUF012

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        return [[] for _ in queries]


WARM_UP = Optimisation(
    tuning="full",
    learning_rate=3e-3,
    warmup=0.1,
    epochs=30,
    batch_size=16,
    micro_batch=16,
    save_steps=10000,
)
UPDATE = Optimisation(
    tuning="full",
    learning_rate=8e-4,
    warmup=0.1,
    epochs=2,
    batch_size=32,
    micro_batch=32,
    save_steps=10000,
)
# All questions are shown both ways, so that PPO alone learns the decision. Alpha is such that what is best,
# 1.75, is well above always and never searching, 1.5 and 1.25. With a lambda below 1 the end of a long episode
# counts less for its first token until the critic knows better, which charges a search more than alpha. A
# critic on shared weights has to be quiet where there are so few.
CONFIG = SmartConfig(
    k=1,
    alpha=0.5,
    action_tokens=12,
    warm_up=WarmUp(label_mode="all"),
    sft=WARM_UP,
    ppo=Ppo(
        steps=24,
        questions=64,
        lam=1.0,
        credit="episode",
        value_weight=0.05,
        weigh="turn",
        kl=KlControl(init=0.15, adaptive=False),
        update=UPDATE,
    ),
)


def build_smart_model(folder: Path) -> Path:
    """A tiny model whose tokenizer knows the words of SmartRAG's prompt; its template is the bare text."""
    passage = Passage("p", "door", "b")
    words = [
        message.text
        for example in (IN_SIGHT[0], BEHIND[0])
        for message in SmartRAG(CONFIG)._state(example.question, [(passage,)])
    ]
    bare = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    return build_tiny_model(
        folder, text="\n".join(words * 10), vocab=700, hidden=64, heads=4, chat_template=bare
    )


def played(run: TrainRun, name: str, config: SmartConfig) -> list[Trace]:
    """What SmartRAG does with the run's questions and its saved weights, greedy."""
    return run.rollout(name, SmartRAG(config).answer, run.examples)


def searched(traces: Sequence[Trace], kind: str = "") -> float:
    """The share of questions, of a kind or of all, for which something was searched."""
    chosen = [trace for trace in traces if trace.example_id.startswith(kind)]
    return sum(trace.cost.retrieval_calls > 0 for trace in chosen) / len(chosen)


def right_decisions(traces: Sequence[Trace]) -> float:
    """The share of questions that are searched if they are behind a door, and not if they are in sight."""
    needed = [trace.example_id.startswith("behind") for trace in traces]
    did = [trace.cost.retrieval_calls > 0 for trace in traces]
    return sum(a == b for a, b in zip(needed, did, strict=True)) / len(traces)


def earned(run: TrainRun, traces: Sequence[Trace], config: SmartConfig) -> float:
    """The mean reward."""
    judge = SmartRAG(config)._judge(run)
    return sum(judge(t, e).reward for t, e in zip(traces, run.examples, strict=True)) / len(traces)


def probabilities(traces: Sequence[Trace]) -> list[float]:
    """P([Search]) of each question, from traces of a policy with a threshold."""
    found = []
    for trace in traces:
        step = trace.steps[0]
        assert isinstance(step.request, Score)
        assert isinstance(step.result, Completion)
        assert step.result.logprobs is not None
        found.append(exp(sum(step.result.logprobs)))
    return found
