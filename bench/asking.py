"""One question through one method."""

from __future__ import annotations

from ragtrials.driver import Driver
from ragtrials.errors import UserError
from ragtrials.planning import build_method, checked_policies, named_checkpoint
from ragtrials.program import Trace
from ragtrials.resources import Resources
from ragtrials.suite import Request


def answer_question(question: str, request: Request, resources: Resources) -> Trace:
    """Answer a question that need not be in any dataset, with the method and conditions of `request`.

    Nothing is trained: the request's checkpoint plays its roles, else the untrained model does.
    A question of the task's evaluated split keeps its example id, so that the oracle retriever works.

    Raises:
        UserError: The question is empty, or the request is wrong.
    """
    if not question.strip():
        raise UserError("the question is empty")
    conditions = request.conditions
    checkpoint = named_checkpoint(request)
    method = build_method(request, checkpoint)
    policies = checked_policies(checkpoint, method, resources.describe_engine(conditions, method.tokens))
    task = resources.task(request.task)
    method.prepare(resources.few_shot(task, method.shots, conditions.seed))
    examples = resources.examples(task, conditions.split or task.card.reported_split)
    known = next((example.id for example in examples if example.question == question), "asked")
    retriever = resources.retriever(conditions, task) if method.retrieves else None
    driver = Driver(retriever, resources.engine(conditions, policies, method.tokens), conditions.seed)
    return driver.run(method.answer, [(known, question)])[0]
