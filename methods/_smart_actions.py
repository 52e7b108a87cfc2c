"""SmartRAG's actions (§3): a tag that says what is done, and what it is done with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragtrials.program import Generate

Tag: TypeAlias = Literal["[Search]", "[Answer]"]
SEARCH: Tag = "[Search]"
ANSWER: Tag = "[Answer]"

_LENIENT = re.compile(r"\s*\[\s*(search|answer)\s*\](.*)", re.IGNORECASE | re.DOTALL)
_TAGS: dict[str, Tag] = {"search": SEARCH, "answer": ANSWER}


@dataclass(frozen=True, slots=True)
class Action:
    """What the policy did.

    Attributes:
        tag: What it decided for; None for a malformed action, which has no tag where one belongs.
        payload: The query or the answer, without blanks around it; all of a malformed action.
    """

    tag: Tag | None
    payload: str


def parse_action(text: str, strict: bool = False) -> Action:
    """Read an action.

    Args:
        text: What the policy wrote.
        strict: Take a tag only as it is spelled and with a blank behind it, as the released code does; other
            case or spacing is malformed then.
    """
    if strict:
        first, *rest = text.split(maxsplit=1) or [""]
        payload = "".join(rest).strip()
        if first == SEARCH:
            return Action(SEARCH, payload)
        return Action(ANSWER, payload) if first == ANSWER else Action(None, text.strip())
    found = _LENIENT.match(text)
    if found is None:
        return Action(None, text.strip())
    return Action(_TAGS[found[1].lower()], found[2].strip())


def given_tag(request: Generate) -> Tag | None:
    """The tag that a request has written for the policy; None if the policy writes it itself."""
    last = request.messages[-1]
    if last.role != "assistant":
        return None
    return SEARCH if last.text == SEARCH else ANSWER
