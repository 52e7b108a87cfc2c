from __future__ import annotations

import math

import pytest

from ragtrials.program import Generate, user

torch = pytest.importorskip("torch")
from ragtrials.llm.decoding import Decoding, StopStrings, TokenChooser, cut_before, nucleus  # noqa: E402


def logits(*probabilities):
    return torch.tensor([[math.log(p) if p else -math.inf for p in probabilities]])


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.1, [1]), (0.5, [1]), (0.51, [1, 3]), (0.79, [1, 3]), (0.81, [0, 1, 3]), (1.0, [0, 1, 2, 3])],
)
def test_the_nucleus_is_the_smallest_set_that_reaches_the_mass(top_p, kept):
    result = nucleus(logits(0.15, 0.5, 0.05, 0.3), top_p)[0]
    assert [i for i, value in enumerate(result.tolist()) if value > -math.inf] == kept
    assert result[1] == pytest.approx(math.log(0.5))  # what stays keeps its logit


def test_what_is_excluded_has_no_mass_in_the_nucleus():
    result = nucleus(logits(0.0, 0.4, 0.0, 0.1), 0.75)[0]  # 0.8 and 0.2 of what is left
    assert [value > -math.inf for value in result.tolist()] == [False, True, False, False]


def choose(settings, seeds, scores, allowed=None):
    chooser = TokenChooser(settings, seeds, allowed)
    return chooser(torch.zeros(len(seeds), 1), scores.clone()).argmax(-1).tolist(), chooser


def test_a_sample_keeps_to_the_nucleus():
    scores = logits(0.15, 0.5, 0.05, 0.3).repeat(400, 1)
    taken, _ = choose(Decoding(1, 1.0, 0.7, (), False, False), range(400), scores)
    assert set(taken) == {1, 3}
    assert 0.5 < taken.count(1) / 400 < 0.75  # 0.5 / (0.5 + 0.3) = 0.625


def test_the_nucleus_is_taken_at_the_temperature():
    # At temperature 0.5 the probabilities 0.6 and 0.4 become 0.69 and 0.31: 0.65 is reached by the first.
    taken, _ = choose(Decoding(1, 0.5, 0.65, (), False, False), range(200), logits(0.6, 0.4).repeat(200, 1))
    assert set(taken) == {0}


def test_what_is_not_allowed_is_never_taken():
    settings = Decoding(1, 5.0, 1.0, (), True, True)
    taken, chooser = choose(settings, range(300), logits(0.97, 0.01, 0.02).repeat(300, 1), [[1, 2]] * 300)
    assert set(taken) == {1, 2}
    assert chooser.logprobs[0].max() < math.log(0.5)


def test_a_rows_noise_goes_on_from_step_to_step():
    settings = Decoding(1, 1.0, 1.0, (), False, False)
    chooser = TokenChooser(settings, [5])
    flat = torch.zeros(1, 50)
    first = [chooser(flat[:, :1], flat).argmax().item() for _ in range(6)]
    again = TokenChooser(settings, [5])
    assert [again(flat[:, :1], flat).argmax().item() for _ in range(6)] == first
    assert len(set(first)) > 2


@pytest.mark.parametrize("seed", [-1, 0, 2**63, 2**64 + 5])
def test_any_integer_is_a_seed(seed):
    taken, _ = choose(Decoding(1, 1.0, 1.0, (), False, False), [seed, seed], torch.zeros(2, 50))
    assert taken[0] == taken[1]


def test_a_greedy_request_ignores_top_p():
    assert Decoding.of(Generate((user("q"),), top_p=0.3)) == Decoding.of(Generate((user("q"),)))
    assert Decoding.of(Generate((user("q"),))).plain
    assert not Decoding.of(Generate((user("q"),), logprobs=True)).plain


def test_rows_end_by_themselves():
    stops = StopStrings(["ab"], lambda ids: "".join(map(chr, ids)), frozenset({0}), 3)
    ended = []
    for column in (
        [ord(c) for c in "axa"],
        [ord("b"), ord("a"), 0],
        [ord(c) for c in "cbb"],
        [ord(c) for c in "ddd"],
    ):
        ended.append(stops(torch.tensor(column).unsqueeze(1), None).tolist())
    assert ended[0] == [False, False, False]
    assert ended[1] == [True, False, False]
    assert ended[2] == [True, True, True]  # the skipped id does not part "a" and "b"
    assert stops.lengths == [2, 3, 3]


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [("a.b,c", (",", "."), "a"), ("abc", ("x",), "abc"), ("abc", (), "abc"), ("abc", ("a",), "")],
)
def test_the_text_is_cut_before_the_first_stop_string(text, stop, expected):
    assert cut_before(text, stop) == expected
