"""What a model answers without retrieval: how SmartRAG and Self-RAG find out what it knows by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragtrials.branching import Branch
from ragtrials.data import Example
from ragtrials.methods._prompts import clean_answer, closed_book_prompt
from ragtrials.program import Program, generate
from ragtrials.training.programs import Answer, sampled

if TYPE_CHECKING:
    from ragtrials.training.run import TrainRun


def closed_book_answers(
    run: TrainRun,
    role: str,
    examples: Sequence[Example],
    shown: Sequence[Example],
    max_new_tokens: int,
    samples: int = 1,
    temperature: float = 0.7,
) -> Mapping[str, Sequence[str]]:
    """Answers with the present weights, by the example's id; the rollouts are called "known".

    Args:
        run: The training.
        role: Who answers.
        examples: The questions.
        shown: Few-shot examples.
        max_new_tokens: Longest answer.
        samples: Answers to each question: a greedy one, or so many drawn ones.
        temperature: Of drawn ones.
    """

    def closed_book(question: str) -> Program:
        prompt = closed_book_prompt(question, shown)
        reply = yield from generate(prompt, role=role, max_new_tokens=max_new_tokens, stop=("\n",))
        return clean_answer(reply.text)

    answer: Answer = sampled(closed_book, role, temperature) if samples > 1 else closed_book
    branches = [Branch(e.id, e.question, sample=n) for e in examples for n in range(samples)]
    found: dict[str, list[str]] = defaultdict(list)
    for trace in run.branch("known", answer, branches):
        found[trace.example_id].append(trace.answer)
    return found


def mostly_right(run: TrainRun, answers: Sequence[str], example: Example, score: str) -> bool:
    """Whether more than half of the answers have the full score."""
    right = sum(run.scores(answer, example)[score] >= 1 for answer in answers)
    return 2 * right > len(answers)
