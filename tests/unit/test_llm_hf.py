from __future__ import annotations

import functools
import itertools
import random

import pytest
from tiny import build_tiny_model

from ragtrials.errors import RunFailure, UserError
from ragtrials.llm import hf
from ragtrials.llm.build import load_engine
from ragtrials.program import Evidence, Generate, Score, user

torch = pytest.importorskip("torch")
QUESTIONS = [
    "Where?",
    "Which river flows through the capital of France? " * 4,
    "Who was born in Berlin, and when did she move to Zürich? " * 9,
    "yes or no",
    "漢字 😀",
    "In 1,234.5 days, what is the population of the city on the Spree?" * 2,
    "a",
]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGTRIALS_CACHE", str(tmp_path_factory.mktemp("cache")))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # so small a model only loses by more
        yield
        torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", with_bos=True, context=700)


@pytest.fixture(scope="module")
def engine(folder):
    return load(folder)


def load(folder, **options):
    return load_engine(str(folder), **{"dtype": "float32", "device": "cpu", "batch_size": 4} | options)


def requests(**options):
    return [Generate((user(question),), max_new_tokens=12, **options) for question in QUESTIONS]


def run(engine, asked):
    return engine.generate(asked, range(len(asked)))


def reference(engine, request):
    """What a plain `model.generate` on this one prompt gives: the new ids."""
    ids = engine.tokenizer.apply_chat_template(
        [{"role": "user", "content": request.messages[0].text}],
        add_generation_prompt=True,
        return_tensors="pt",
    )
    with torch.inference_mode():
        out = engine.model.generate(
            **ids, max_new_tokens=request.max_new_tokens, do_sample=False, pad_token_id=0, eos_token_id=3
        )
    return tuple(out[0, ids["input_ids"].shape[1] :].tolist())


def test_greedy_ids_are_those_of_a_plain_generate_call(engine):
    asked = requests()
    for request, completion in zip(asked, run(engine, asked), strict=True):
        assert completion.token_ids == reference(engine, request)
        ids = engine.tokenizer.apply_chat_template(
            [{"role": "user", "content": request.messages[0].text}], add_generation_prompt=True
        )["input_ids"]
        assert completion.prompt_ids == tuple(ids)
        assert completion.logprobs is None


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.9, "top_p": 0.8, "logprobs": True}, {"stop": ("e",)}]
)
def test_results_depend_neither_on_batch_size_nor_on_order(folder, engine, options):
    asked = requests(**options)
    seeds = [101 + i for i in range(len(asked))]
    expected = engine.generate(asked, seeds)
    assert (
        len({completion.token_ids for completion in expected}) > 4
    )  # the questions do get different answers
    for size in (1, 2, 7):
        engine_of_size = load(folder, batch_size=size)
        order = list(range(len(asked)))
        random.Random(size).shuffle(order)
        shuffled = engine_of_size.generate([asked[i] for i in order], [seeds[i] for i in order])
        for i, completion in zip(order, shuffled, strict=True):
            assert completion.token_ids == expected[i].token_ids
            assert completion.text == expected[i].text
            assert completion.finish == expected[i].finish
            if options.get("logprobs"):
                assert completion.logprobs == pytest.approx(expected[i].logprobs, abs=1e-4)


def test_nothing_asked_nothing_done(engine):
    assert engine.generate([], []) == []
    assert engine.score([]) == []


def test_every_request_needs_its_seed(engine):
    with pytest.raises(ValueError, match="shorter"):
        engine.generate(requests(), [1])


def test_requests_with_different_settings_come_back_in_order(engine):
    asked = [
        Generate((user("Where?"),), max_new_tokens=3),
        Generate((user("Where?"),), max_new_tokens=5, temperature=1.0),
        Generate((user("Who?"),), max_new_tokens=3),
        Generate((user("Where?"),), max_new_tokens=4, logprobs=True),
    ]
    together = engine.generate(asked, [7, 7, 7, 7])
    alone = [engine.generate([request], [7])[0] for request in asked]
    assert [c.token_ids for c in together] == [c.token_ids for c in alone]
    assert together[3].logprobs is not None
    assert len(together[3].logprobs) == len(together[3].token_ids)


def test_sampling_follows_the_seed_alone(engine):
    request = Generate((user("Where?"),), max_new_tokens=8, temperature=1.0)
    results = engine.generate([request] * 6, [1, 2, 1, 3, 2, 1])
    ids = [completion.token_ids for completion in results]
    assert ids[0] == ids[2] == ids[5]
    assert ids[1] == ids[4]
    assert len({ids[0], ids[1], ids[3]}) == 3
    assert engine.generate([request], [2])[0].token_ids == ids[1]


def test_sampled_tokens_are_distributed_as_the_model_says(engine):
    request = Generate((user("Where?"),), max_new_tokens=1, temperature=2.0)
    n = 2000
    prompt = engine.generate([request], [0])[0].prompt_ids
    with torch.inference_mode():
        expected = (engine.model(torch.tensor([prompt])).logits[0, -1] / 2.0).softmax(-1)
    drawn = [c.token_ids[0] for c in load_many(engine, request, n)]
    counts = torch.bincount(torch.tensor(drawn), minlength=len(expected)).float()
    likely = expected > 5 / n
    chi2 = ((counts - n * expected) ** 2 / (n * expected))[likely].sum().item()
    freedom = int(likely.sum())
    assert freedom > 20
    assert abs(chi2 - freedom) < 5 * (2 * freedom) ** 0.5


def load_many(engine, request, n):
    old = engine.settings
    engine.settings = type(old)(old.dtype, old.device, 500, old.max_prompt_tokens)
    try:
        return engine.generate([request] * n, range(n))
    finally:
        engine.settings = old


def test_allowed_limits_the_tokens_to_those_of_the_strings(engine):
    allowed = ("yes", " no", "1, 2")
    ids = set(
        itertools.chain.from_iterable(
            engine.tokenizer(text, add_special_tokens=False).input_ids for text in allowed
        )
    )
    ids.add(engine.tokenizer.eos_token_id)
    asked = requests(allowed=allowed) + requests(allowed=allowed, temperature=3.0)
    results = run(engine, asked)
    assert {token for completion in results for token in completion.token_ids} <= ids
    assert len({completion.token_ids for completion in results}) > 3


def test_each_request_has_its_own_allowed_strings(engine):
    asked = [Generate((user("Where?"),), max_new_tokens=4, allowed=(word,)) for word in ("a", "b", "c")]
    for word, completion in zip("abc", run(engine, asked), strict=True):
        assert set(completion.text) <= {word}


def test_logprobs_are_those_of_a_scored_continuation(engine):
    for temperature in (0.0, 1.0):
        (completion,) = engine.generate(
            [Generate((user("Where?"),), max_new_tokens=6, temperature=temperature, logprobs=True)], [3]
        )
        ids = torch.tensor([completion.prompt_ids + completion.token_ids])
        with torch.inference_mode():
            logprobs = engine.model(ids).logits[0].log_softmax(-1)
        start = len(completion.prompt_ids) - 1
        expected = [logprobs[start + i, token].item() for i, token in enumerate(completion.token_ids)]
        assert completion.logprobs == pytest.approx(expected, abs=1e-4)


def test_logprobs_stand_under_the_sampling_temperature_whatever_is_allowed(engine):
    common = {"max_new_tokens": 1, "logprobs": True, "temperature": 2.0}
    (completion,) = engine.generate([Generate((user("Where?"),), allowed=("a",), top_p=0.5, **common)], [0])
    with torch.inference_mode():
        logits = engine.model(torch.tensor([completion.prompt_ids])).logits[0, -1]
    expected = (logits / 2.0).log_softmax(-1)[completion.token_ids[0]].item()
    assert completion.logprobs == pytest.approx([expected], abs=1e-4)


@pytest.mark.parametrize("size", [1, 3, 7])
def test_scores_are_teacher_forced_logprobs(folder, engine, size):
    continuations = ["Paris", " the Seine, a river", "", "1", "漢字", "no", "yes yes yes yes yes"]
    asked = [Score((user(q),), c) for q, c in zip(QUESTIONS, continuations, strict=True)]
    results = load(folder, batch_size=size).score(asked)
    for request, completion in zip(asked, results, strict=True):
        assert completion.text == request.continuation
        assert completion.finish == "scored"
        assert engine.tokenizer.decode(completion.token_ids) == request.continuation
        ids = torch.tensor([completion.prompt_ids + completion.token_ids])
        with torch.inference_mode():
            logprobs = engine.model(ids).logits[0].log_softmax(-1)
        start = len(completion.prompt_ids) - 1
        expected = [logprobs[start + i, token].item() for i, token in enumerate(completion.token_ids)]
        assert completion.logprobs == pytest.approx(expected, abs=1e-4)


def test_positions_count_from_the_first_real_token(engine, monkeypatch):
    seen = []
    forward = engine.model.forward

    @functools.wraps(forward)  # generate looks at its parameters
    def spy(*args, **kwargs):
        seen.append((kwargs["attention_mask"], kwargs["position_ids"]))
        return forward(*args, **kwargs)

    monkeypatch.setattr(engine.model, "forward", spy)
    engine.score([Score((user(QUESTIONS[2]),), "yes"), Score((user("Where?"),), "no")])
    run(engine, [Generate((user(q),), max_new_tokens=1) for q in QUESTIONS[1:3]])
    assert len(seen) == 2
    for mask, positions in seen:
        assert mask.min() == 0  # one row is padded
        for row, real in zip(positions, mask.sum(dim=1).tolist(), strict=True):
            assert row[-real:].tolist() == list(range(real))


def test_prompts_are_batched_by_length_whatever_their_order(engine, monkeypatch):
    batches = []
    generate = engine.model.generate

    def spy(input_ids, **kwargs):
        batches.append([tuple(row) for row in input_ids.tolist()])
        return generate(input_ids, **kwargs)

    monkeypatch.setattr(engine.model, "generate", spy)
    asked = requests()
    run(engine, asked)
    first = batches.copy()
    batches.clear()
    run(engine, asked[::-1])
    assert batches == first
    pad = engine.tokenizer.pad_token_id
    lengths = [len(row) - row.count(pad) for batch in first for row in batch]
    assert lengths == sorted(lengths, reverse=True)
    assert [len(batch) for batch in first] == [4, 3]


def test_only_the_continuations_logits_are_computed(engine, monkeypatch):
    seen = []
    forward = engine.model.forward

    def spy(*args, **kwargs):
        output = forward(*args, **kwargs)
        seen.append(tuple(output.logits.shape[:2]))
        return output

    monkeypatch.setattr(engine.model, "forward", spy)
    engine.score([Score((user(QUESTIONS[2]),), "yes"), Score((user("Where?"),), "no")])
    assert [shape[0] for shape in seen] == [2]
    assert seen[0][1] <= 6


def scripted_model(engine, monkeypatch, rows):
    """Makes the model's logits spell given token ids, row by row of a batch, and then ids of "x"."""
    vocabulary = engine.model.config.vocab_size
    filler = engine.tokenizer("x", add_special_tokens=False).input_ids[0]
    step = itertools.count()

    def forward(input_ids=None, **kwargs):
        from transformers.modeling_outputs import CausalLMOutputWithPast

        at = next(step)
        logits = torch.zeros(len(input_ids), 1, vocabulary)
        for row in range(len(input_ids)):
            wanted = rows[row][at] if at < len(rows[row]) else filler
            logits[row, 0, wanted] = 5.0
        return CausalLMOutputWithPast(logits=logits, past_key_values=kwargs.get("past_key_values"))

    monkeypatch.setattr(engine.model, "forward", forward)


def test_the_end_token_is_kept_in_the_ids_and_never_in_the_text(engine, monkeypatch):
    tokenizer = engine.tokenizer
    eos, bos = tokenizer.eos_token_id, tokenizer.bos_token_id
    paris = tokenizer("Paris", add_special_tokens=False).input_ids
    other = tokenizer(" Rome, a city", add_special_tokens=False).input_ids
    scripted_model(engine, monkeypatch, [[bos, *paris, eos], other])
    asked = [Generate((user(q),), max_new_tokens=len(other), logprobs=True) for q in ("a longer one", "b")]
    first, second = run(engine, asked)
    assert first.text == "Paris"  # not "<s>Paris<|im_end|>"
    assert first.token_ids == (bos, *paris, eos)  # as sampled: with the end, without padding
    assert first.finish == "stop"
    assert first.logprobs is not None
    assert len(first.logprobs) == len(first.token_ids)
    assert (second.text, second.token_ids, second.finish) == (" Rome, a city", tuple(other), "length")


def test_text_that_spells_a_special_token_is_text(engine, monkeypatch):
    from_bytes = engine.tokenizer(
        "< |im_end|>".replace(" ", ""), split_special_tokens=True, add_special_tokens=False
    )
    scripted_model(engine, monkeypatch, [[*from_bytes.input_ids, engine.tokenizer.eos_token_id]])
    (completion,) = run(engine, [Generate((user("q"),), max_new_tokens=40)])
    assert completion.text == "<|im_end|>"


def test_generation_ends_at_the_first_stop_string(engine, monkeypatch):
    encode = lambda text: engine.tokenizer(text, add_special_tokens=False).input_ids  # noqa: E731
    rows = [encode("St. Louis\nQuestion: who"), encode("a stop b\nand more")]
    scripted_model(engine, monkeypatch, rows)
    asked = [Generate((user(q),), max_new_tokens=40, stop=("\n", " stop", "")) for q in ("longer", "q")]
    first, second = run(engine, asked)
    assert (first.text, first.finish) == ("St. Louis", "stop")
    assert (second.text, second.finish) == ("a", "stop")
    # The ids are those sampled until the stop string was complete, and no more.
    assert engine.tokenizer.decode(first.token_ids) == "St. Louis\n"
    assert engine.tokenizer.decode(second.token_ids) == "a stop"


def test_a_stop_string_over_several_tokens_and_characters_of_several_bytes(engine, monkeypatch):
    encode = lambda text: engine.tokenizer(text, add_special_tokens=False).input_ids  # noqa: E731
    scripted_model(engine, monkeypatch, [encode("漢字 </答> 😀 more")])
    (completion,) = run(engine, [Generate((user("q"),), max_new_tokens=60, stop=("</答>",))])
    assert completion.text == "漢字 "
    assert engine.tokenizer.decode(completion.token_ids) == "漢字 </答>"


def test_sampling_defaults_of_the_folder_are_not_used(folder, engine, tmp_path):
    import json
    import shutil

    copy = shutil.copytree(folder, tmp_path / "tiny")
    file = copy / "generation_config.json"
    settings = json.loads(file.read_text())
    file.write_text(
        json.dumps(settings | {"do_sample": True, "temperature": 5.0, "repetition_penalty": 9.0, "top_k": 3})
    )
    asked = requests()
    assert [c.token_ids for c in run(load(copy), asked)] == [c.token_ids for c in run(engine, asked)]


def test_all_end_tokens_of_the_folder_end_a_turn(folder, tmp_path, monkeypatch):
    import json
    import shutil

    copy = shutil.copytree(folder, tmp_path / "tiny")
    file = copy / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"eos_token_id": [3, 50]}))
    engine = load(copy)
    scripted_model(engine, monkeypatch, [[60, 50, 61], [60, 61, 3]])
    first, second = run(engine, [Generate((user(q),), max_new_tokens=6) for q in ("longer", "q")])
    assert (first.token_ids, second.token_ids) == ((60, 50), (60, 61, 3))
    assert first.text == engine.tokenizer.decode([60])  # ends are no text, special or not


def test_long_evidence_is_shortened_to_the_budget_and_the_context(folder):
    engine = load(folder, max_prompt_tokens=120)
    long = Evidence("The Seine flows through Paris. " * 100)
    (completion,) = run(engine, [Generate((user(long, "Which river?"),), max_new_tokens=4)])
    assert len(completion.prompt_ids) == 120
    assert completion.dropped_tokens > 100
    (completion,) = run(load(folder), [Generate((user(long, "Which river?"),), max_new_tokens=40)])
    assert len(completion.prompt_ids) == 700 - 40  # the context holds prompt and answer
    (scored,) = load(folder).score([Score((user(long, "Which river?"),), "x" * 10)])
    assert len(scored.prompt_ids) == 700 - len(scored.token_ids)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens is 0: give 1 or more"),
        ({"temperature": -1.0}, "temperature is -1.0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0.0}, "top_p is 0.0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
    ],
)
def test_settings_out_of_range_are_refused(engine, options, message):
    with pytest.raises(UserError, match=message):
        run(engine, [Generate((user("q"),), **options)])


@pytest.mark.parametrize("method", ["generate", "score"])
def test_no_memory_is_a_failure_with_a_hint(engine, monkeypatch, method):
    def forward(**_):
        return torch.empty(10**15)  # the CPU's allocator really refuses this

    monkeypatch.setattr(engine.model, "forward", forward)
    asked = {
        "generate": lambda: run(engine, requests()),
        "score": lambda: engine.score([Score((user("q"),), "a")]),
    }
    with pytest.raises(RunFailure, match="tiny ran out of memory with 4 prompts at once: lower --batch-size"):
        asked[method]()


def test_other_errors_of_the_model_are_not_taken_for_memory(engine, monkeypatch):
    def forward(**_):
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(engine.model, "forward", forward)
    with pytest.raises(RuntimeError, match="shapes differ"):
        run(engine, requests())


def test_weights_that_do_not_belong_to_the_config_are_refused(folder, tmp_path):
    import json
    import shutil

    copy = shutil.copytree(folder, tmp_path / "tiny")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(UserError, match="tiny: 9 weights are missing or of another shape"):
        load(copy)
    (copy / "tokenizer.json").write_text('{"a": 1}')
    with pytest.raises(UserError, match="model tiny: transformers cannot load its tokenizer"):
        load(copy)
    shutil.copy(folder / "tokenizer.json", copy)
    (copy / "config.json").write_text(json.dumps({"model_type": "no_such_type"}))
    with pytest.raises(UserError, match="model tiny: transformers cannot load its") as error:
        load(copy)
    assert "\n" not in str(error.value)


def test_bfloat16_runs_and_says_so(folder):
    engine = load(folder, dtype="bfloat16")
    assert engine.model.dtype is torch.bfloat16
    assert engine.signature["dtype"] == "bfloat16"
    completion = run(engine, requests(logprobs=True))[0]
    assert all(value <= 0 for value in completion.logprobs)


def test_a_method_gets_what_the_protocol_promises(engine):
    from ragtrials.program import Engine

    checked: Engine = engine
    assert isinstance(engine, hf.HFEngine)
    assert dict(checked.signature)["engine"] == "hf"
