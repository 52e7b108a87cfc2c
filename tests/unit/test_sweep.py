"""From the words after --over to the runs of a family."""

from __future__ import annotations

from typing import Any

import pytest

from ragtrials.errors import UserError
from ragtrials.suite import Conditions, Request
from ragtrials.sweep import Member, Over, Value, check_suite_name, family, parse_over


def base(method: str = "vanilla_rag", options: tuple[str, ...] = (), **conditions: Any) -> Request:
    return Request("sweep", method, "geo_pop", Conditions(**conditions), options)


def members(*words: str, request: Request | None = None, given: tuple[str, ...] = ()) -> list[Member]:
    return family(request or base(), [parse_over(word) for word in words], given)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2", [Value("1"), Value("2")]),
        (" 1 , 2 ", [Value("1"), Value("2")]),
        ("none", [Value("none")]),
        ('"a,b",c', [Value("a,b"), Value("c")]),
        ("'a,\"b',c", [Value('a,"b'), Value("c")]),
        ('""', [Value("")]),
        ("[a, b],[c],[]", [Value("a,b", True), Value("c", True), Value("", True)]),
        ("[\"a\",'b']", [Value("a,b", True)]),
        ("{a:1,b:[2,3]},{}", [Value("{a:1,b:[2,3]}"), Value("{}")]),
        ('"[a,b]"', [Value("[a,b]")]),
        ("it's,o'clock", [Value("it's"), Value("o'clock")]),
        ("a=b,c", [Value("a=b"), Value("c")]),
    ],
)
def test_values_are_split_at_commas_outside_of_brackets_and_quotes(text: str, values: list[Value]) -> None:
    assert parse_over(f"config.x={text}") == Over("config.x", tuple(values))


def test_a_condition_may_be_written_as_its_option() -> None:
    assert parse_over("max-prompt-tokens=64").name == "max_prompt_tokens"
    assert parse_over("config.a-b=64").name == "config.a-b"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("config.k", "--over 'config.k': write NAME=V1,V2,..."),
        ("=1,2", "--over '=1,2': write NAME=V1,V2,..."),
        ("config.k=", "--over config.k: a value is empty"),
        ("config.k=1,,2", "--over config.k: a value is empty"),
        ("config.k=1,2,", "--over config.k: a value is empty"),
        ("seed=1,2,1", "--over seed: the value 1 stands there twice"),
        ('config.x="a,b', '--over config.x: " is missing at the end of "a,b'),
        ("config.x=[a,b", "--over config.x: ] is missing at the end of [a,b"),
        ("config.x=a],b", "--over config.x: ']' closes nothing; put the value in quotes"),
        ("config.x=[a}", "--over config.x: '}' closes nothing"),
        ("config.x=[a,,b]", "--over config.x: an entry of the list [a,,b] is empty or has a comma in it"),
        ('config.x=["a,b"]', "is empty or has a comma in it"),
    ],
)
def test_a_badly_written_word_is_told(word: str, told: str) -> None:
    with pytest.raises(UserError) as error:
        parse_over(word)
    assert told in str(error.value)


def test_all_combinations_in_order_and_the_last_name_varies_fastest() -> None:
    request = base(options=("shots=0",), limit=3)
    made = members("config.k=2,1", "seed=0,5", "limit=none,7", request=request)
    assert [member.values for member in made] == [
        (k, seed, limit) for k in ("2", "1") for seed in ("0", "5") for limit in ("none", "7")
    ]
    last = made[-1].request
    assert last.options == ("shots=0", "k=1")
    assert last.conditions == Conditions(limit=7, seed=5)
    assert made[0].request.conditions.limit is None
    assert (last.suite, last.method, last.task, last.train) == ("sweep", "vanilla_rag", "geo_pop", True)


def test_settings_of_groups_and_lists_are_varied() -> None:
    made = members("config.ppo.kl.init=0.1,0.2", request=base("smart_rag"))
    assert [member.request.options for member in made] == [("ppo.kl.init=0.1",), ("ppo.kl.init=0.2",)]
    agents = members(
        'config.agents=[selector,generator],"rewriter,generator"', request=base("mmoa_rag", profile="smoke")
    )
    assert [member.request.options for member in agents] == [
        ("agents=selector,generator",),
        ("agents=rewriter,generator",),
    ]


def test_settings_that_depend_on_each_other_are_set_together() -> None:
    # Without its other part the mix would have no weight at all.
    mixed = members("config.evidence_mix.low=1,2", request=base("sft", ("evidence_mix.top=0",)))
    assert len(mixed) == 2
    with pytest.raises(UserError, match=r"^--over config\.gate=never, config\.threshold=0\.5: threshold is"):
        members("config.gate=policy,never", "config.threshold=none,0.5", request=base("smart_rag"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "say what to vary: --over config.SETTING=V1,V2,..."),
        (("k=1,2",), "--over k: no condition, and no setting of the method; did you mean 'config.k'?"),
        (("sed=1,2",), "did you mean 'seed'?"),
        (("confg.k=1",), "did you mean 'config.k'?"),
        (
            ("config.kk=1",),
            "--over config.kk=1: option -o kk: 'kk' is no option of this method; did you mean",
        ),
        (("config.=1",), "--over config.=1: "),
        (("config.k.x=1",), "'k' has no parts"),
        (("seed=1", "config.k=1", "seed=2"), "--over seed: given twice; write all its values after one"),
        (("config.k=1", "seed=2,x"), "--over seed=x: seed must be a whole number, not 'x'"),
        (("seed=none",), "--over seed=none: seed must be a whole number, not 'none'"),
        (("seed=[1,2]",), "--over seed=[1,2]: seed takes no list"),
        (("limit=3,0",), "limit must be at least 1, not 0"),
        (
            ("profile=smoke,lptop",),
            "--over profile=lptop: method vanilla_rag has no profile 'lptop'; did you",
        ),
        (("config.k=2,many",), "--over config.k=many: option -o k must be a whole number, not 'many'"),
        (("config.k=[1,2]",), "must be a whole number, not '1,2'"),
        (("config.k=[1]",), "--over config.k=[1]: config.k takes no list"),
        (("config.k=1,01",), "--over config.k: 1 and 01 are the same value"),
        (("seed=1,+1",), "--over seed: 1 and +1 are the same value"),
    ],
)
def test_a_family_that_cannot_be_run_is_told(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(UserError) as error:
        members(*words)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_varied_name_is_not_also_set() -> None:
    with pytest.raises(
        UserError, match=r"^--over max_prompt_tokens: it is varied, so leave --max-prompt-tokens"
    ):
        members("max_prompt_tokens=64,128", request=base(max_prompt_tokens=64), given=("max_prompt_tokens",))
    with pytest.raises(UserError, match=r"^--over config.k: it is varied, so leave -o k out"):
        members("config.k=1,2", request=base(options=("shots=0", "k = 3")))


def test_an_unknown_method_is_told_by_its_name() -> None:
    with pytest.raises(UserError, match=r"^unknown method 'vanila_rag'; did you mean 'vanilla_rag'"):
        members("seed=1", request=base("vanila_rag"))


def test_a_suite_name_is_a_plain_folder_name() -> None:
    check_suite_name("alpha-0.5_b")
    for name in ("", "a/b", "..", ".hidden", "a b", "-x", "train", "reported"):
        with pytest.raises(UserError, match=r"^--name "):
            check_suite_name(name)
