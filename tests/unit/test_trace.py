"""What a trace tells about its steps."""

from __future__ import annotations

from ragtrials.program import Completion, Generate, Retrieve, Score, Step, Trace, user


def test_generations_are_the_steps_in_which_the_model_wrote_in_their_order() -> None:
    ask = (user("q"),)
    steps = (
        Step(0, Generate(ask, role="rewriter"), Completion("a")),
        Step(1, Retrieve("a", 2), ()),
        Step(2, Score(ask, "tail"), Completion("tail", finish="scored")),
        Step(2, Generate(ask, role="generator"), Completion("b")),
        Step(3, Generate(ask, role="rewriter"), Completion("a")),
    )
    assert Trace("e", "b", steps).generations == (steps[0], steps[3], steps[4])
    assert Trace("e", "", steps[1:3]).generations == ()
