"""What vLLM says of the tiny model is what transformers says of it."""

from __future__ import annotations

import json

import pytest
from tiny import build_tiny_model
from tiny_adapters import assert_same
from tiny_engine import QUESTIONS, load, requests, run

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm.build import describe_model
from ragtrials.program import Evidence, Generate, Score, user

torch = pytest.importorskip("torch")
WATCHED = ("<|im_start|>", "<|im_end|>", "<s>")
CLOSE = 2e-4  # of log-probabilities in float32


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that likes to say a control token, and whose folder recommends to sample."""
    from transformers import AutoModelForCausalLM

    folder = build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", with_bos=True, context=700)
    engine = load(folder)
    said = [token for one in run(engine, requests()) for token in one.token_ids[3:]]
    model = AutoModelForCausalLM.from_pretrained(folder)
    start = engine.tokenizer.convert_tokens_to_ids("<|im_start|>")
    with torch.no_grad():  # beats the token that is said most often, wherever that has a positive logit
        model.lm_head.weight[start] = 1.05 * model.lm_head.weight[max(set(said), key=said.count)]
    model.save_pretrained(folder)
    advice = json.loads((folder / "generation_config.json").read_text())
    advice |= {"do_sample": True, "temperature": 0.3, "top_k": 3, "repetition_penalty": 3.0}
    (folder / "generation_config.json").write_text(json.dumps(advice))
    return folder


@pytest.fixture(scope="module")
def engines(folder, both):
    return both(folder)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"logprobs": True},
        {"logprobs": True, "watch": WATCHED},
        {"watch": WATCHED[:1]},
        {"allowed": ("yes", "no", "Document"), "logprobs": True},
        {"allowed": ("yes", "no"), "watch": WATCHED},
    ],
    ids=str,
)
def test_greedy_answers_agree(engines, options):
    hf, vllm = engines
    assert_same(run(vllm, requests(**options)), run(hf, requests(**options)))


def test_a_control_token_ends_generation_and_is_kept(engines):
    hf, vllm = engines
    asked = requests(ends=WATCHED[:1], watch=WATCHED, logprobs=True)
    expected = run(hf, asked)
    assert any(one.marks and one.finish == "stop" for one in expected)
    assert any(one.finish == "length" for one in expected)
    assert_same(run(vllm, asked), expected)


def test_stop_strings_cut_alike(engines):
    hf, vllm = engines
    texts = [one.text for one in run(hf, requests())]
    # Half a character is no text yet for vLLM, and a sign of its own when all is decoded at once.
    stops = tuple(text[4:6] for text in texts if len(text) > 6 and "\ufffd" not in text[4:6])
    expected = run(hf, requests(stop=stops, logprobs=True))
    assert any(one.finish == "stop" for one in expected)
    assert_same(run(vllm, requests(stop=stops, logprobs=True)), expected)


def test_requests_of_several_kinds_are_answered_side_by_side(engines):
    hf, vllm = engines
    asked = [
        Generate((user(question),), max_new_tokens=2 + n, logprobs=n % 2 == 0, watch=WATCHED[: n % 3])
        for n, question in enumerate(QUESTIONS)
    ]
    assert_same(run(vllm, asked), run(hf, asked))
    assert vllm.generate(asked[::-1], range(len(asked))[::-1]) == run(vllm, asked)[::-1]


def test_evidence_is_shortened_alike(engines):
    hf, vllm = engines
    asked = [Generate((user("Read: ", Evidence("Berlin lies on the Spree. " * 200), "Where?"),))]
    expected = hf.generate(asked, [0])
    assert expected[0].dropped_tokens > 0
    assert len(expected[0].prompt_ids) + 32 == 700
    assert_same(vllm.generate(asked, [0]), expected)


def test_scores_agree(engines):
    hf, vllm = engines
    asked = [Score((user(q),), text) for q in QUESTIONS for text in ("Paris", "a", "yes, in Berlin\n", "")]
    asked.append(Score((user("Read: ", Evidence("Berlin lies on the Spree. " * 200)),), "on the Spree"))
    expected = hf.score(asked)
    assert {len(one.token_ids) for one in expected} >= {0, 1}
    assert len(expected[-1].prompt_ids) + len(expected[-1].token_ids) == 700  # the whole context
    assert_same(vllm.score(asked), expected)
    assert vllm.score([]) == []


def test_a_sample_depends_on_its_seed_alone(engines):
    _, vllm = engines
    asked = requests(temperature=1.0)
    first = vllm.generate(asked, range(7))
    assert [c.token_ids for c in vllm.generate(asked[:3], [0, 1, 2])] == [c.token_ids for c in first[:3]]
    other = vllm.generate(asked, range(100, 107))
    assert all(one.token_ids != two.token_ids for one, two in zip(first, other, strict=True))


@pytest.mark.parametrize(
    "options", [{"top_p": 0.5}, {"allowed": ("yes", "no", "Document 1: Berlin")}], ids=str
)
def test_probabilities_of_samples_are_over_the_whole_vocabulary(engines, options):
    hf, vllm = engines
    for one in run(vllm, requests(temperature=1.0, logprobs=True, watch=WATCHED, **options)):
        ids = torch.tensor([one.prompt_ids + one.token_ids])
        with torch.inference_mode():
            rows = hf.model(ids).logits[0, len(one.prompt_ids) - 1 : -1].log_softmax(dim=-1)
        chosen = rows.gather(-1, torch.tensor(one.token_ids).unsqueeze(-1)).squeeze(-1)
        assert one.logprobs == pytest.approx(chosen.tolist(), abs=CLOSE)
        watched = rows[:, [hf.tokenizer.convert_tokens_to_ids(name) for name in WATCHED]]
        assert torch.allclose(torch.tensor(one.watched), watched, atol=CLOSE)


def test_samples_have_the_models_frequencies(engines):
    """A chi-square test of 400 first tokens among allowed ones."""
    hf, vllm = engines
    asked = Generate((user("yes or no"),), max_new_tokens=1, temperature=1.5, allowed=("yes", "no", "1"))
    ids = hf.allowed_ids(asked.allowed)
    found = vllm.generate([asked] * 400, range(400))
    counts = [sum(one.token_ids == (token,) for one in found) for token in ids]
    with torch.inference_mode():
        logits = hf.model(torch.tensor([found[0].prompt_ids])).logits[0, -1, list(ids)]
    expected = [400 * p for p in (logits / 1.5).softmax(dim=-1).tolist()]
    pairs = [(c, e) for c, e in zip(counts, expected, strict=True) if e > 5]
    assert sum(counts) == 400
    assert sum((c - e) ** 2 / e for c, e in pairs) < 30


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"temperature": 0.7, "logprobs": True},
            "log-probabilities at temperature 0 and 1 alone, not at 0.7",
        ),
        (
            {"temperature": 0.7, "watch": WATCHED},
            "log-probabilities at temperature 0 and 1 alone, not at 0.7",
        ),
        ({"temperature": 0.001}, "temperature 0.01 or more"),
        ({"temperature": 3.0}, r"refuses a request \(.*temperature.*\): use --engine hf"),
        ({"temperature": -1.0}, "give 0"),
        ({"ends": ("[Nothing]",)}, "has no control token"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_in_one_line(engines, options, problem):
    _, vllm = engines
    with pytest.raises(UserError, match=problem) as caught:
        run(vllm, requests(**options))
    assert "\n" not in str(caught.value)
    assert len(run(vllm, requests())) == len(QUESTIONS)  # and the engine goes on


def test_a_prompt_that_does_not_fit_fails(engines):
    _, vllm = engines
    with pytest.raises(RunFailure, match="without any passage"):
        vllm.generate([Generate((user("long " * 1000),))], [0])


def test_the_signature_is_known_beforehand_and_is_another(engines, folder):
    hf, vllm = engines
    options = {"dtype": "float32", "device": "cpu", "batch_size": 4}
    assert vllm.signature == describe_model(str(folder), engine="vllm", **options)
    assert vllm.signature["engine"] == "vllm"
    assert vllm.signature["vllm"]
    own = {"engine", "vllm"}
    assert {k: v for k, v in vllm.signature.items() if k not in own} == {
        k: v for k, v in hf.signature.items() if k not in own
    }
