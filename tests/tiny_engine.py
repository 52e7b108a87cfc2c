"""A transformers engine on the tiny model of `tiny`, and requests of unequal lengths for it."""

from __future__ import annotations

from ragtrials.llm.build import load_engine
from ragtrials.program import Generate, user

QUESTIONS = [
    "Where?",
    "Which river flows through the capital of France? " * 4,
    "Who was born in Berlin, and when did she move to Zürich? " * 9,
    "yes or no",
    "漢字 😀",
    "In 1,234.5 days, what is the population of the city on the Spree?" * 2,
    "a",
]


def load(folder, **options):
    return load_engine(str(folder), **{"dtype": "float32", "device": "cpu", "batch_size": 4} | options)


def requests(**options):
    return [Generate((user(question),), max_new_tokens=12, **options) for question in QUESTIONS]


def run(engine, asked):
    return engine.generate(asked, range(len(asked)))
