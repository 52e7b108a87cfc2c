"""Self-RAG learns: when to retrieve, which passage helps, and to read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import build_tiny_model
from toy_training import FULL, LETTERS, toy_run

from ragtrials.data import Example, Passage
from ragtrials.driver import Driver
from ragtrials.llm.build import load_engine
from ragtrials.llm.scripted import ScriptedEngine
from ragtrials.methods._self_config import Labels, Mix, SelfConfig
from ragtrials.methods._self_prompts import (
    relevance_question,
    retrieve_question,
    support_question,
    utility_question,
)
from ragtrials.methods._self_scores import Weights
from ragtrials.methods._self_tokens import ALL
from ragtrials.methods.self_rag import SelfRAG
from ragtrials.program import Generate, Hit, Trace
from ragtrials.seeding import derive_seed
from ragtrials.training.run import TrainRun

KNOWN, ASKED = LETTERS[:12], LETTERS[12:24]
VALUES = "wxyz"


def known(copies: int) -> list[Example]:
    """Their answers are in the questions."""
    return [Example(f"known {x} {n}", f"say {x}", ((x,),)) for n in range(copies) for x in KNOWN]


def asked(copies: int, first: int = 0) -> list[Example]:
    """Their answers are in passages alone: the same question has another answer each time."""
    return [
        Example(
            f"asked {x} {n}",
            f"find {x}",
            ((VALUES[(n + LETTERS.index(x)) % 4],),),
            supporting=(f"asked {x} {n}",),
        )
        for n in range(first, first + copies)
        for x in ASKED
    ]


class Library:
    """For each question a passage with its answer and one with another; for every fifth two of the others."""

    signature: dict[str, Any] = {}  # noqa: RUF012

    def search(
        self, queries: Sequence[str], k: int, example_ids: Sequence[str] | None = None
    ) -> list[list[Hit]]:
        assert example_ids is not None
        return [self.hits(example_id) for example_id in example_ids]

    def hits(self, example_id: str) -> list[Hit]:
        _, letter, number = example_id.split()
        n, place = int(number), LETTERS.index(letter)
        right = n + place  # as in `asked`
        good = Passage(example_id, "yes", VALUES[right % 4])
        bad = [Passage(f"bad {m}", "no", VALUES[(right + 1 + m) % 4]) for m in (0, 1)]
        found = bad if n % 5 == 4 else [good, bad[0]] if (n + place) % 2 else [bad[0], good]
        return [Hit(passage, 1.0) for passage in found]


CONFIG = SelfConfig(
    k=2,
    prompt="released",
    max_new_tokens=8,
    labels=Labels(critic=False),
    mix=Mix(unretrieved=1.0),
    generator=replace(FULL, learning_rate=6e-3, epochs=9),
)


_SHOWN = Passage("p", "yes", "w")
CRITIC_TEXT = "\n".join(
    chat[0].text
    for chat in (
        retrieve_question("say a"),
        relevance_question("find b", _SHOWN, None),
        support_question("find b", "w", _SHOWN, None),
        utility_question("say a", "a"),
    )
)
"""What a tokenizer learns the critic's prompts from, so that they are short."""


def knows(request: Generate) -> str:
    """The untrained model: it repeats a letter that it is told to say."""
    words = request.messages[-1].text.split()
    return words[words.index("say") + 1] if "say" in words else "?"


def untrained_first(run: TrainRun) -> None:
    """Let `knows` answer in the place of a random model, until there are trained weights."""
    load, untrained = run._around.load_engine, ScriptedEngine(knows)
    run._around = replace(run._around, load_engine=lambda policies: load(policies) if policies else untrained)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = build_tiny_model(tmp_path_factory.mktemp("model") / "tiny", chat_template=None, heads=4)
    run = toy_run(
        tmp_path_factory.mktemp("run"), folder, known(7) + asked(8), retriever=Library(), tokens=ALL
    )
    untrained_first(run)
    SelfRAG(CONFIG).train(run)
    engine = load_engine(
        str(folder), dtype="float32", device="cpu", batch_size=32, policies=run.policies, tokens=ALL
    )
    return run, engine


def answered(engine: Any, examples: Sequence[Example], **changes: Any) -> list[Trace]:
    method = SelfRAG(replace(CONFIG, **changes))
    return Driver(Library(), engine).run(method.answer, [(e.id, e.question) for e in examples])


def share(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


def right(traces: Sequence[Trace], examples: Sequence[Example]) -> float:
    return share([t.answer == e.target for t, e in zip(traces, examples, strict=True)])


NEW = asked(4, first=20)
"""Of other copies than those that were trained on, with another passage each."""


def test_adaptive_retrieval_separates_what_is_known(trained: Any) -> None:
    _, engine = trained
    for examples, calls in ((known(1), 0), (NEW, 1)):
        traces = answered(engine, examples)
        assert share([trace.cost.retrieval_calls == calls for trace in traces]) >= 0.9
        assert right(traces, examples) >= 0.9


def test_answers_come_from_the_passages(trained: Any) -> None:
    _, engine = trained
    assert right(answered(engine, NEW, mode="always"), NEW) >= 0.9
    assert right(answered(engine, NEW, mode="never"), NEW) < 0.6  # a guess among four
    assert right(answered(engine, known(1), mode="never"), known(1)) >= 0.9


def test_relevance_alone_picks_the_right_passage(trained: Any) -> None:
    """Behind the other passage it has learnt to guess."""
    _, engine = trained
    both = [e for e in NEW if int(e.id.split()[2]) % 5 != 4]
    alone = Weights(relevance=1, support=0, utility=0, sequence=0)
    traces = answered(engine, both, mode="always", weights=alone)
    assert right(traces, both) >= 0.9
    against = Weights(relevance=-1, support=0, utility=0, sequence=0)
    assert right(answered(engine, both, mode="always", weights=against), both) <= 0.5
    first = [Library().hits(e.id)[0].passage.title == "yes" for e in both]
    assert 0.3 < share(first) < 0.7  # the rank does not give it away


def test_labels_of_the_rows(trained: Any) -> None:
    run, _ = trained
    counts = {name: count for name, count in run.statistics["generator"].items() if count}
    assert counts == {"unretrieved": 84, "fully": 84, "irrelevant": 12}


def test_a_critic_learns_the_labels_and_gives_them_to_the_generator(tmp_path: Path) -> None:
    """It sees the rules' labels of some questions, and labels all of them nearly as the rules would."""
    folder = build_tiny_model(tmp_path / "tiny", text=CRITIC_TEXT, vocab=700, heads=4)
    examples = sorted(known(2) + asked(5), key=lambda e: derive_seed(e.id))
    run = toy_run(tmp_path / "run", folder, examples, retriever=Library(), tokens=ALL)
    untrained_first(run)
    critic = replace(FULL, learning_rate=6e-3, epochs=5, batch_size=32, micro_batch=32)
    config = replace(
        CONFIG,
        labels=Labels(retrieve=64, relevance=128, support=128, utility=64),
        critic=critic,
        generator=replace(FULL, epochs=1),
    )
    SelfRAG(config).train(run)
    by_rules = {"unretrieved": 24, "fully": 48, "irrelevant": 12}
    counts = {name: count for name, count in run.statistics["generator"].items() if count}
    assert sum(abs(counts.get(name, 0) - count) for name, count in by_rules.items()) <= 8
    assert set(run.policies) == {"critic", "generator"}
