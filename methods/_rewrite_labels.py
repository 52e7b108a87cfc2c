"""Warm-start targets for a query rewriter, written by rules from the question alone.

MMOA-RAG (appendix B.1) warms its rewriter up on the rewrites that Rewrite-Retrieve-Read had a proprietary
model write. These rules write queries of the same style, "Scott Derrickson nationality", without any model.

1. A name is a run of capitalised words, with the small words inside it: "University of Oxford", "Kenilworth
   in the United Kingdom", "Kingston, Jamaica", "the town of Goslar". The first word belongs to one unless it
   is a function word. Of "and", only that of a few countries is inside a name: "Trinidad and Tobago".
2. A question that compares names has one query for each of them: the name and the question's other words,
   without function words and words that only compare. It is recognised by an "or" between names, by an "and"
   between them beside a word such as "both", "same" or "older", or by being a yes-no question.
3. Any other question is divided before its relative pronouns. Each clause with a name is a query, with the
   words of the clauses that have none.
4. If that leaves one query, it is the question without function words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_RELATIVE = frozenset(["that", "what", "when", "where", "which", "who", "whom", "whose", "why", "how"])

_VERBS = """
am are can could did do does had has have is may might must shall should was were will would
"""
_YES_NO = frozenset(_VERBS.split())

_SMALL_WORDS = """
a about all also among an and any as at be been being between both but by each either else ever every for
from he her his i if in into it its itself me mine my name near neither nor not of on one ones or our out
part people per s she so some such than the their them then there these they this those to too under up
upon us versus vs we with you your
"""
_FUNCTION = _RELATIVE | _YES_NO | frozenset(_SMALL_WORDS.split())

# Words that say how things are compared: no passage is found by them.
_COMPARATIVES = "closer earlier farther fewer further later less more nearer older younger"
_OTHER_COMPARING = """
common easterly first larger largest least most northerly populous recently same smaller southerly two
westerly
"""
_COMPARATIVE = frozenset(_COMPARATIVES.split())
_COMPARING = _COMPARATIVE | frozenset(_OTHER_COMPARING.split())
_TOGETHER = _COMPARATIVE | frozenset(["between", "both", "common", "same"])

_PARTICLES = """
al at bin da de del della den der des di do dos du e el for from ibn in la las le los nad of on pod sur the
to van von y
"""
_INSIDE_NAMES = frozenset(_PARTICLES.split())
_KINDS = frozenset(["city", "county", "district", "island", "province", "state", "town", "village"])
_PAIRS = frozenset(
    [
        ("antigua", "barbuda"),
        ("bosnia", "herzegovina"),
        ("kitts", "nevis"),
        ("tomé", "príncipe"),
        ("trinidad", "tobago"),
        ("vincent", "grenadines"),
    ]
)

_LONGEST_LINK = 5
"""Words between two names that are compared, at most: "or in the city of" is one of the longest links."""


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    lower: str
    pause: bool
    """Whether a comma or semicolon follows."""

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()


def heuristic_rewrites(question: str, most: int = 4) -> tuple[str, ...]:
    """Queries for a question, by the rules above.

    Args:
        question: The question.
        most: How many queries there are at most, at least 1.

    Returns:
        1 to `most` different queries, each on one line. A question without any word is returned as it is.

    Raises:
        ValueError: `most` is below 1.
    """
    if most < 1:
        raise ValueError(f"at least one query is needed, not {most}")
    words = _words(question)
    names = _names(words)
    compared = _compared(words, names)
    lines: list[str] = []
    if len(compared) > 1 and most > 1:
        lines = _comparison_lines(words, names, compared[:most])
    elif len(names) > 1:
        lines = _clause_lines(words, names, most)
    if len(lines) < 2:
        lines = [" ".join(_content(words, range(len(words)), names, _FUNCTION))]
    found = tuple(dict.fromkeys(line for line in lines if line))
    return found or (" ".join(question.split()) or question,)


def _words(question: str) -> list[_Word]:
    found = []
    for piece in question.split():
        text = piece.strip("\"“”‘’'(),:;?!")
        if text:
            found.append(_Word(text, text.lower(), piece.rstrip("\"”’'?!)").endswith((",", ";"))))
    if found and not re.fullmatch(r"(\w\.)+", found[-1].text):  # a full stop, but not that of "U.S."
        text = found[-1].text.rstrip(".")
        found[-1:] = [_Word(text, text.lower(), False)] if text else []
    return found


def _names(words: Sequence[_Word]) -> list[range]:
    """Where the names are: ranges of word positions, in order."""
    found, start = [], 0
    while start < len(words):
        if not words[start].capital or (start == 0 and words[0].lower in _FUNCTION):
            start += 1
            continue
        end = start + 1
        while (longer := _longer(words, end)) > end:
            end = longer
        before = [word.lower for word in words[max(0, start - 2) : start]]
        kind = len(before) == 2 and before[0] in _KINDS and before[1] == "of"
        found.append(range(start - 2 if kind else start, end))
        start = end
    return found


def _longer(words: Sequence[_Word], end: int) -> int:
    """Where a name that reaches to `end` ends if it goes on there; else `end`."""
    if end == len(words):
        return end
    if words[end].capital or (words[end].text[0].isdigit() and not words[end - 1].pause):
        return end + 1
    if words[end - 1].pause:
        return end
    after = end
    while after < min(end + 3, len(words)) and words[after].lower in _INSIDE_NAMES and not words[after].pause:
        after += 1
    if end < after < len(words) and words[after].capital:
        return after + 1
    if words[end].lower == "and":
        after = end + 2 if end + 1 < len(words) and words[end + 1].lower == "the" else end + 1
        if after < len(words) and (words[end - 1].lower, words[after].lower) in _PAIRS:
            return after + 1
    return end


def _compared(words: Sequence[_Word], names: Sequence[range]) -> list[range]:
    """The names that the question compares; none if it compares nothing."""
    if len(names) < 2:
        return []
    lower = {word.lower for word in words}
    asks = words[0].lower in _YES_NO
    links = [_link(words, left, right) for left, right in pairwise(names)]
    if "or" in links:
        first = links.index("or")
        left, right, after = names[first], names[first + 1], first + 1
        if lower.isdisjoint(
            ["between", "both"]
        ):  # "Bedknobs and Broomsticks or ...": an "and" joins one title
            if first and links[first - 1] == "and" and _adjoin(names[first - 1], left):
                left = range(names[first - 1].start, left.stop)
            if links[after : after + 1] == ["and"] and _adjoin(right, names[after + 1]):
                right, after = range(right.start, names[after + 1].stop), after + 1
        return [left, right, *_chain(names, links, after, "or")]
    if "and" in links and (asks or words[0].lower == "of" or not lower.isdisjoint(_TOGETHER)):
        first = links.index("and")
        return [names[first], names[first + 1], *_chain(names, links, first + 1, "and")]
    return list(names) if asks else []


def _link(words: Sequence[_Word], left: range, right: range) -> str:
    """The "or" or "and" that puts a name beside the one before it; "" if nothing does."""
    gap = [word.lower for word in words[left.stop : right.start]]
    beside = 0 < len(gap) <= _LONGEST_LINK and gap[0] in ("or", "and") and _RELATIVE.isdisjoint(gap)
    return gap[0] if beside else ""


def _adjoin(left: range, right: range) -> bool:
    return right.start - left.stop == 1


def _chain(names: Sequence[range], links: Sequence[str], start: int, link: str) -> list[range]:
    """The names that go on a list after the one at `start`."""
    found = []
    while links[start : start + 1] == [link]:
        start += 1
        found.append(names[start])
    return found


def _comparison_lines(words: Sequence[_Word], names: Sequence[range], compared: Sequence[range]) -> list[str]:
    inside = {position for name in compared for position in name}
    rest = [position for position in range(len(words)) if position not in inside]
    shared = _content(words, rest, names, _FUNCTION | _COMPARING)
    return [_joined(_content(words, name, compared, _FUNCTION), shared) for name in compared]


def _clause_lines(words: Sequence[_Word], names: Sequence[range], most: int) -> list[str]:
    inside = {position for name in names for position in name}
    clauses: list[list[int]] = [[]]
    for position, word in enumerate(words):
        if word.lower in _RELATIVE and position not in inside and clauses[-1]:
            clauses.append([])
        clauses[-1].append(position)
    named = [clause for clause in clauses if not inside.isdisjoint(clause)]
    while len(named) > most:
        named[-2:] = [named[-2] + named[-1]]
    rest = [position for clause in clauses if inside.isdisjoint(clause) for position in clause]
    shared = _content(words, rest, names, _FUNCTION)
    return [_joined(_content(words, clause, names, _FUNCTION), shared) for clause in named]


def _content(
    words: Sequence[_Word], positions: Iterable[int], names: Iterable[range], dropped: Collection[str]
) -> list[str]:
    """The words at these positions: all of names but the "of" of "town of"; of others the rest."""
    kept: set[int] = set()
    for name in names:
        kept.update(name if words[name.start].capital else (name.start, *name[2:]))
    return [words[p].text for p in positions if p in kept or words[p].lower not in dropped]


def _joined(own: Sequence[str], shared: Iterable[str]) -> str:
    """A line of its own words and of the shared ones that it lacks, each of these once."""
    line, seen = [*own], {word.lower() for word in own}
    for word in shared:
        if word.lower() not in seen:
            line.append(word)
            seen.add(word.lower())
    return " ".join(line)
