"""Control tokens that a method adds to a model: their ids, their embeddings, and what is said of them."""

from __future__ import annotations

import json
import shutil

import pytest
from tiny import build_tiny_model
from tiny_engine import QUESTIONS, load, requests, run

from ragtrials.errors import UserError
from ragtrials.llm.build import describe_model
from ragtrials.llm.loading import added_ids, load_model, load_tokenizer
from ragtrials.llm.models import resolve_model
from ragtrials.llm.prompts import PromptBuilder
from ragtrials.program import Evidence, Generate, Mark, Sampled, Token, assistant, user
from ragtrials.training import weights
from ragtrials.training.settings import Lora, Optimisation

torch = pytest.importorskip("torch")

TOKENS = ("[Relevant]", "[No support / Contradictory]", "<paragraph>", "</paragraph>", "[Utility:5]")
CHAT = (user("Where?"),)
IDS = torch.arange(5, 45).unsqueeze(0)


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def base(request, tmp_path_factory):
    folder = build_tiny_model(tmp_path_factory.mktemp("models") / "tiny", tied=request.param, with_bos=True)
    return resolve_model(str(folder), TOKENS)


@pytest.fixture(scope="module")
def tokenizer(base):
    return load_tokenizer(base)


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    """A model with an adapter whose every weight has been moved, and the folder that it was saved to."""
    model = weights.load_trainable(base, None, Optimisation(lora=Lora(r=4)), "float32", "cpu", 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                assert "lora_" in name or "token" in name
                weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    folder = tmp_path_factory.mktemp("adapter") / "weights"
    weights.save_weights(model, load_tokenizer(base), base, folder)
    return model.eval(), folder


def engine_of(base, **options):
    return load(base.folder, tokens=base.tokens, **options)


# Ids and embeddings


def test_each_token_is_one_id_and_is_added_once(base, tokenizer):
    ids = [tokenizer.convert_tokens_to_ids(name) for name in TOKENS]
    assert added_ids(base) == tuple(sorted(ids))
    plain = load_tokenizer(resolve_model(str(base.folder)))
    assert sorted(ids) == list(range(len(plain), len(plain) + len(TOKENS)))
    assert [tokenizer(name, add_special_tokens=False).input_ids for name in TOKENS] == [[i] for i in ids]
    assert tokenizer("Where?[Relevant]yes").input_ids.count(ids[0]) == 1
    assert added_ids(resolve_model(str(base.folder))) == ()


def test_a_new_row_is_the_mean_of_its_words(base, tokenizer):
    model, plain = load_model(base, "float32", "cpu"), load_tokenizer(resolve_model(str(base.folder)))
    for table in (model.get_input_embeddings().weight, model.get_output_embeddings().weight):
        for name, words in (
            ("[No support / Contradictory]", " No support Contradictory"),
            (TOKENS[2], " paragraph"),
        ):
            pieces = plain(words, add_special_tokens=False).input_ids
            row = table[tokenizer.convert_tokens_to_ids(name)]
            assert torch.allclose(row, table[pieces].mean(dim=0), atol=1e-6)


def test_no_draw_decides_a_row(base):
    def loaded(seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return load_model(base, "float32", "cpu").state_dict()

    first, second = loaded(1), loaded(2)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_all_other_tokens_have_the_logits_that_they_had(base):
    plain = load_model(resolve_model(str(base.folder)), "float32", "cpu")
    model = load_model(base, "float32", "cpu")
    known = plain.get_input_embeddings().num_embeddings
    assert model.get_input_embeddings().num_embeddings == known + len(TOKENS)
    with torch.inference_mode():
        assert torch.equal(model(IDS).logits[..., :known], plain(IDS).logits)
    tied = model.config.tie_word_embeddings
    assert (model.get_input_embeddings().weight is model.get_output_embeddings().weight) is tied


def test_the_untrained_model_says_what_it_said(base):
    """A mean is never above its words, so no greedy answer changes."""
    found, expected = run(engine_of(base), requests()), run(load(base.folder), requests())
    assert [c.token_ids for c in found] == [c.token_ids for c in expected]


def test_a_model_that_has_the_tokens_gets_none(base, tokenizer, tmp_path):
    weights.save_weights(load_model(base, "float32", "cpu"), tokenizer, base, tmp_path / "own")
    own = resolve_model(str(tmp_path / "own"), TOKENS)
    assert added_ids(own) == ()
    model = load_model(own, "float32", "cpu")
    assert torch.equal(
        model.get_input_embeddings().weight, load_model(base, "float32", "cpu").get_input_embeddings().weight
    )
    assert [load_tokenizer(own).convert_tokens_to_ids(t) for t in TOKENS] == [
        tokenizer.convert_tokens_to_ids(t) for t in TOKENS
    ]


def test_spare_rows_are_used(tmp_path):
    """As models have them whose embeddings are padded to a round number."""
    folder = build_tiny_model(tmp_path / "tiny")
    plain = load_model(resolve_model(str(folder)), "float32", "cpu")
    rows = plain.get_input_embeddings().num_embeddings
    plain.resize_token_embeddings(rows + 64, mean_resizing=False)
    plain.save_pretrained(folder)
    model = load_model(resolve_model(str(folder), TOKENS), "float32", "cpu")
    assert model.get_input_embeddings().num_embeddings == rows + 64
    before = plain.get_input_embeddings().weight
    after = model.get_input_embeddings().weight
    added = list(added_ids(resolve_model(str(folder), TOKENS)))
    assert added == list(range(rows, rows + len(TOKENS)))
    changed = (before != after).any(dim=1).nonzero().flatten().tolist()
    assert changed == added


# Signatures


def test_tokens_are_named_where_there_are_any_and_nowhere_else(base):
    options = {"dtype": "float32", "device": "cpu"}
    plain, named = (
        describe_model(str(base.folder), **options),
        describe_model(str(base.folder), **options, tokens=TOKENS),
    )
    assert "tokens" not in plain
    assert named == {**plain, "tokens": list(TOKENS)}
    assert dict(engine_of(base).signature) == {**named, "batch_size": 4}


# Adapters


def test_the_embeddings_of_the_tokens_alone_are_trained(base, trained):
    model, _ = trained
    shapes = {n: tuple(p.shape) for n, p in model.named_parameters() if p.requires_grad and "lora_" not in n}
    tables = 1 if model.config.tie_word_embeddings else 2
    assert sorted(shapes.values()) == [(len(TOKENS), 64)] * tables


def test_an_adapter_says_what_the_trained_model_says(base, trained):
    model, folder = trained
    engine = engine_of(base, policies={"generator": folder})
    chats = [
        (*user_chat, assistant(Token("[Relevant]"), "in")) for user_chat in [(user(q),) for q in QUESTIONS]
    ]
    found = engine.generate(
        [Generate(c, max_new_tokens=3, logprobs=True, watch=TOKENS) for c in chats], [0] * 7
    )
    for one in found:
        ids = torch.tensor([one.prompt_ids + one.token_ids])
        with torch.inference_mode():
            expected = model(ids).logits[0, len(one.prompt_ids) - 1 : -1].log_softmax(dim=-1)
        for n, token in enumerate(one.token_ids):
            assert one.logprobs[n] == pytest.approx(expected[n, token].item(), abs=1e-4)
        watched = [engine.tokenizer.convert_tokens_to_ids(name) for name in TOKENS]
        assert torch.allclose(torch.tensor(one.watched), expected[:, watched], atol=1e-4)


def test_switching_leaves_the_base_model_as_it_was(base, trained):
    _, folder = trained
    engine, plain = engine_of(base, policies={"a": folder, "b": folder}), engine_of(base)
    asked = [
        Generate((*CHAT, assistant(Token(name))), role=role, max_new_tokens=4, logprobs=True, watch=TOKENS)
        for name in TOKENS
        for role in ("a", "base", "b", "base")
    ]
    found = engine.generate(asked, [0] * len(asked))
    expected = plain.generate(asked[1::2], [0] * len(asked[1::2]))
    assert found[1::2] == expected  # to the last bit
    assert found[0::4] == found[2::4]
    for trained_one, plain_one in zip(found[0::2], expected, strict=True):
        assert trained_one.logprobs != pytest.approx(plain_one.logprobs, abs=1e-2)


def test_an_adapter_can_be_trained_on(base, trained, tmp_path):
    """It goes on with the weights that it was saved with, and saves them as they are."""
    model, folder = trained
    again = weights.load_trainable(base, folder, Optimisation(lora=Lora(r=4)), "float32", "cpu", 3)
    assert weights.trainable_parameters(again) == weights.trainable_parameters(model)
    with torch.inference_mode():
        ids = torch.tensor([[5, 6, *added_ids(base), 7]])
        assert torch.equal(again.eval()(ids).logits, model(ids).logits)
    weights.save_weights(again, load_tokenizer(base), base, tmp_path / "again")
    for file in ("adapter_model.safetensors", "adapter_config.json"):
        assert (tmp_path / "again" / file).read_bytes() == (folder / file).read_bytes()


def test_an_adapter_with_tokens_is_refused_without_them(base, trained):
    _, folder = trained
    with pytest.raises(
        UserError,
        match=r"adapter_config.json: trainable_token_indices are of other tokens than the 0 .* model tiny; pass",
    ) as caught:
        load(base.folder, policies={"generator": folder})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("tokens", [TOKENS[:4], (*TOKENS, "[Other]")])
def test_an_adapter_with_other_tokens_is_refused(base, trained, tokens):
    _, folder = trained
    with pytest.raises(UserError, match=f"other tokens than the {len(tokens)} that are added"):
        load(base.folder, policies={"generator": folder}, tokens=tokens)


def test_an_adapter_of_a_longer_vocabulary_is_refused(base, trained, tmp_path):
    """As many tokens, but their ids are others': a row too far each, which no shape would show."""
    _, folder = trained
    moved = shutil.copytree(folder, tmp_path / "moved")
    config = json.loads((moved / "adapter_config.json").read_text())
    indices = config["trainable_token_indices"]
    config["trainable_token_indices"] = {name: [i - 1 for i in ids] for name, ids in indices.items()}
    (moved / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="of other tokens than the 5 that are added to model tiny"):
        engine_of(base, policies={"generator": moved})


def test_an_adapter_without_tokens_answers_with_untrained_ones(base, tmp_path):
    plain = resolve_model(str(base.folder))
    model = weights.load_trainable(plain, None, Optimisation(lora=Lora(r=4)), "float32", "cpu", 0)
    weights.save_weights(model, load_tokenizer(plain), plain, tmp_path / "plain")
    fresh = engine_of(base, policies={"generator": tmp_path / "plain"})
    assert run(fresh, requests()) == run(engine_of(base), requests())


# Prompts


def control(engine, completion):
    """The control tokens of a prompt, by name."""
    names = {engine.tokenizer.convert_tokens_to_ids(name): name for name in TOKENS}
    return [names[token] for token in completion.prompt_ids if token in names]


@pytest.fixture(scope="module")
def engine(base):
    return engine_of(base)


def test_control_tokens_stand_in_a_prompt_as_ids(engine):
    opened = assistant(
        Token("<paragraph>"), Evidence("Berlin"), Token("</paragraph>"), "so", Sampled((7, 8), "x")
    )
    plain, asked = engine.generate([Generate(CHAT), Generate((*CHAT, opened))], [0, 0])
    ids = engine.tokenizer
    assert asked.prompt_ids == (
        *plain.prompt_ids,
        ids.convert_tokens_to_ids("<paragraph>"),
        *ids("Berlin", add_special_tokens=False).input_ids,
        ids.convert_tokens_to_ids("</paragraph>"),
        *ids("so", add_special_tokens=False).input_ids,
        7,
        8,
    )


@pytest.mark.parametrize(
    "text",
    [
        "[Relevant]",
        "a<paragraph>b</paragraph>",
        "[[Relevant]Relevant]",
        "<</paragraph>/paragraph>",
        "x[Utility:5]",
    ],
)
def test_no_text_forges_a_control_token(engine, text):
    chats = [
        (user(text),),
        (user("Read: ", Evidence(text)),),
        (*CHAT, assistant(text)),
        (*CHAT, assistant(Evidence(text), Token("[Relevant]"))),
    ]
    found = engine.generate([Generate(chat, max_new_tokens=1) for chat in chats], [0] * 4)
    assert [control(engine, one) for one in found] == [[], [], [], ["[Relevant]"]]
    naive = engine.tokenizer(text, add_special_tokens=False).input_ids
    assert set(naive) & set(added_ids(resolve_model(str(engine.tokenizer.name_or_path), TOKENS)))


def test_only_evidence_is_shortened_in_an_open_turn(base):
    engine = engine_of(base, max_prompt_tokens=80)
    long = "Berlin lies on the Spree. " * 20
    opened = assistant(
        Token("<paragraph>"), Evidence(long), Token("</paragraph>"), Token("[Relevant]"), "so it is"
    )
    whole = engine_of(base).generate([Generate((*CHAT, opened), max_new_tokens=1)], [0])[0]
    (asked,) = engine.generate([Generate((*CHAT, opened), max_new_tokens=1)], [0])
    assert asked.dropped_tokens == len(whole.prompt_ids) - len(asked.prompt_ids) > 0
    assert 70 < len(asked.prompt_ids) <= 80
    assert control(engine, asked) == control(engine, whole) == ["<paragraph>", "</paragraph>", "[Relevant]"]
    shown = engine.tokenizer.decode(asked.prompt_ids)
    kept = shown.partition("<paragraph>")[2].partition("</paragraph>")[0]
    assert kept
    assert long.startswith(kept)
    assert shown.endswith("</paragraph>[Relevant]so it is")


def test_what_a_shortened_chat_shows_is_what_the_prompt_holds(base):
    builder = PromptBuilder(load_tokenizer(base), "tiny")
    chat = (*CHAT, assistant(Token("<paragraph>"), Evidence("Berlin lies. " * 20), Token("</paragraph>")))
    for budget in (60, 1000):
        fitted = builder.fit(chat, budget)
        assert builder.build(fitted, 1000).ids == builder.build(chat, budget).ids
        assert fitted[0] == chat[0]


# Watching and ending


def test_watched_probabilities_are_those_of_a_plain_pass(engine):
    asked = [Generate((user(q),), max_new_tokens=6, watch=TOKENS[:2], logprobs=True) for q in QUESTIONS]
    watched = [engine.tokenizer.convert_tokens_to_ids(name) for name in TOKENS[:2]]
    for one in engine.generate(asked, [0] * len(asked)):
        ids = torch.tensor([one.prompt_ids + one.token_ids])
        with torch.inference_mode():
            rows = engine.model(ids).logits[0, len(one.prompt_ids) - 1 : -1].log_softmax(dim=-1)
        assert len(one.watched) == len(one.token_ids)
        assert torch.allclose(torch.tensor(one.watched), rows[:, watched], atol=1e-4)


def test_watching_changes_nothing_that_is_said(engine):
    plain, watching = run(engine, requests()), run(engine, requests(watch=TOKENS))
    assert [c.token_ids for c in watching] == [c.token_ids for c in plain]
    assert all(c.watched == () and c.marks == () for c in plain)


def test_watched_probabilities_are_under_the_temperature(engine):
    (warm,) = engine.generate([Generate(CHAT, max_new_tokens=1, temperature=2.0, watch=TOKENS)], [3])
    with torch.inference_mode():
        row = (engine.model(torch.tensor([warm.prompt_ids])).logits[0, -1] / 2).log_softmax(dim=-1)
    ids = [engine.tokenizer.convert_tokens_to_ids(name) for name in TOKENS]
    assert warm.watched[0] == pytest.approx(row[ids].tolist(), abs=1e-4)


def favour(engine, order):
    """Make the model say these ids one after the other, whatever it reads."""
    head = engine.model.get_output_embeddings()
    state = {"said": 0}

    def hook(module, args, output):
        row = order[min(state["said"], len(order) - 1)]
        state["said"] += 1
        output = output.clone()
        output[:, -1, row] = 1e4
        return output

    return head.register_forward_hook(hook)


def test_marks_and_ends(engine):
    relevant, end = (engine.tokenizer.convert_tokens_to_ids(name) for name in ("[Relevant]", "[Utility:5]"))
    words = engine.tokenizer("so it", add_special_tokens=False).input_ids
    order = [relevant, *words, end, *words]

    def ask(**options):
        hook = favour(engine, order)
        (found,) = engine.generate([Generate(CHAT, max_new_tokens=len(order), **options)], [0])
        hook.remove()
        return found

    whole = ask(watch=TOKENS)
    assert whole.token_ids == tuple(order)
    assert whole.finish == "length"
    assert whole.marks == (Mark(0, "[Relevant]"), Mark(1 + len(words), "[Utility:5]"))
    assert whole.text == "so itso it"  # control tokens are no text
    ended = ask(watch=TOKENS, ends=("[Utility:5]",))
    assert ended.token_ids == tuple(order[: 2 + len(words)])
    assert ended.finish == "stop"
    assert ended.marks == whole.marks
    assert (ended.text, len(ended.watched)) == ("so it", len(ended.token_ids))
    unwatched = ask(ends=("[Utility:5]",))
    assert (unwatched.token_ids, unwatched.marks, unwatched.watched) == (ended.token_ids, (), ())


def test_rows_of_a_batch_end_by_themselves(engine):
    asked = requests(watch=TOKENS) + requests(watch=TOKENS, ends=TOKENS[:1])
    together = run(engine, asked)
    alone = [engine.generate([one], [0])[0] for one in asked]
    assert [c.token_ids for c in together] == [c.token_ids for c in alone]
    for one, two in zip(together, alone, strict=True):
        assert torch.allclose(torch.tensor(one.watched), torch.tensor(two.watched), atol=1e-4)


@pytest.mark.parametrize("options", [{"watch": ("[Other]",)}, {"ends": ("[Other]",)}])
def test_a_token_that_the_model_lacks_is_one_line(engine, options):
    with pytest.raises(UserError, match=r"model tiny has no control token '\[Other\]': name it in") as caught:
        engine.generate([Generate(CHAT, **options)], [0])
    assert "\n" not in str(caught.value)
