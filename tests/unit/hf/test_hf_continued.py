"""A reply whose beginning is given goes on as if the model had written it: SmartRAG's tags."""

from __future__ import annotations

from dataclasses import replace
from math import exp

import pytest
from tiny_engine import load

from ragtrials.data import Passage
from ragtrials.driver import Driver
from ragtrials.methods._smart_actions import ANSWER, SEARCH
from ragtrials.methods.smart_rag import SmartRAG
from ragtrials.program import Generate, Hit, Score, assistant, user

torch = pytest.importorskip("torch")

CONFIG = replace(SmartRAG.PROFILES["smoke"], action_tokens=24)
METHOD = SmartRAG(CONFIG)
KNOWN, UNKNOWN = "Where?", "Who was born in Berlin, and when did she move to Zürich?"
PASSAGE = Passage("p", "Ann", "Ann was born in Berlin.")


def teach(engine, lessons):
    """Fit the engine's weights until it says what it is told, and no longer: nothing gets certain."""
    ids = engine.tokenizer
    rows = []
    for request, text in lessons:
        prompt = engine.generate([replace(request, max_new_tokens=1)], [0])[0].prompt_ids
        rows.append((prompt, (*ids(text, add_special_tokens=False).input_ids, ids.eos_token_id)))
    optimiser = torch.optim.Adam(engine.model.parameters(), lr=3e-3)
    for _ in range(200):
        said = engine.generate([request for request, _ in lessons], [0] * len(lessons))
        if [one.text for one in said] == [text for _, text in lessons]:
            return
        loss = 0
        for prompt, reply in rows:
            labels = torch.tensor([[-100] * len(prompt) + list(reply)])
            loss += engine.model(input_ids=torch.tensor([prompt + reply]), labels=labels).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    raise AssertionError("the tiny model did not learn two lines")


def asked(question, found=(), **options):
    return Generate(METHOD._state(question, list(found)), "policy", 24, stop=("\n",), **options)


@pytest.fixture(scope="module")
def taught(folder):
    engine = load(folder)
    teach(
        engine,
        [(asked(KNOWN), f"{ANSWER} Zürich, 1,234"), (asked(UNKNOWN), f"{SEARCH} born in Berlin")],
    )
    return engine


@pytest.mark.parametrize(("question", "tag"), [(KNOWN, ANSWER), (UNKNOWN, SEARCH)])
def test_free_and_given_tags_give_the_same_ids(taught, question, tag):
    free = asked(question, logprobs=True)
    given = replace(free, messages=(*free.messages, assistant(tag)))
    whole, rest = taught.generate([free, given], [0, 0])
    assert whole.text.startswith(f"{tag} ")
    assert whole.text == tag + rest.text
    assert rest.prompt_ids + rest.token_ids == whole.prompt_ids + whole.token_ids
    written = len(rest.prompt_ids) - len(whole.prompt_ids)
    assert written > 1
    assert whole.logprobs[written:] == pytest.approx(rest.logprobs, abs=1e-4)


def test_the_probability_of_a_tag_is_that_with_which_it_is_written(taught):
    for question, tag, other in ((KNOWN, ANSWER, SEARCH), (UNKNOWN, SEARCH, ANSWER)):
        free = asked(question, logprobs=True)
        (written,) = taught.generate([free], [0])
        scored, unlike = taught.score([Score(free.messages, t, "policy") for t in (tag, other)])
        assert scored.prompt_ids == written.prompt_ids
        assert scored.token_ids == written.token_ids[: len(scored.token_ids)]
        assert taught.tokenizer.decode(scored.token_ids) == tag
        p = exp(sum(scored.logprobs))
        assert p == pytest.approx(exp(sum(written.logprobs[: len(scored.token_ids)])), rel=1e-3)
        assert 0.01 < p < 0.999
        assert p + exp(sum(unlike.logprobs)) < 1.001


class Shelf:
    signature = {}  # noqa: RUF012

    def search(self, queries, k, example_ids=None):
        return [[Hit(PASSAGE, 1.0)] for _ in queries]


def test_a_threshold_and_a_free_policy_do_the_same(taught):
    def run(**changes):
        method = SmartRAG(replace(CONFIG, **changes))
        return Driver(Shelf(), taught).run(method.answer, [("known", KNOWN), ("unknown", UNKNOWN)])

    free, gated = run(), run(threshold=0.01)
    assert [trace.cost.retrieval_calls for trace in free] == [0, 1]
    p = [step.result for trace in gated for step in trace.steps if isinstance(step.request, Score)]
    known, unknown = (exp(sum(one.logprobs)) for one in p)
    assert known < unknown
    between = run(threshold=(known + unknown) / 2)
    assert [trace.answer for trace in between] == [trace.answer for trace in free]
    assert [trace.retrieved for trace in between] == [trace.retrieved for trace in free]
    assert [trace.cost.retrieval_calls for trace in run(threshold=1.0)] == [0, 0]
    assert [trace.cost.retrieval_calls for trace in run(threshold=-1.0)] == [1, 1]


def test_results_do_not_depend_on_what_is_asked_beside(taught):
    requests = [asked(KNOWN), Generate((user("a"), assistant(" b")), max_new_tokens=5), asked(UNKNOWN)]
    together = taught.generate(requests, [0] * 3)
    assert [c.token_ids for c in together] == [taught.generate([r], [0])[0].token_ids for r in requests]
