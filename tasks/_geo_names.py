"""Other names of places: GeoNames lists every spelling that anybody entered, so most of them are dropped."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

_PLAIN_NAME = re.compile(r"[^\W\d_]+(?:(?:[ '’ʻ‘-]|\. )[^\W\d_]+)*\.?")
_WORD = r"[A-ZÀ-ÖØ-ÞĀ-Ž][A-Za-zÀ-ÖØ-öø-žḀ-ỿ]*"
_SMALL_WORD = r"(?:de|del|della|di|da|do|dos|das|du|des|la|le|les|el|am|an|der|den|of|the|on|in|sur|al|y|e|i)"
_LATIN_NAME = re.compile(rf"{_WORD}(?:[ '-](?:{_WORD}|{_SMALL_WORD}))*")
_ASCII = str.maketrans(
    dict(zip("øØłŁđĐðħĦıəƏ’‘ʻ", "oOlLdDdhHieE'''", strict=True))
    | {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "þ": "th", "Þ": "Th"}
)
_NOT_A_WORD = re.compile(r"[\W_]+")
_LONGEST, _STEM, _SAME_WORD, _ALIKE = 24, 4, 0.8, 0.25
_TRANSLITERATED = re.compile(
    "zh|kh|eh|hh|tts|uo|mp$|^nt|^mp|ou[^rnst]|[aeiou]j|j[^aeiou]|k[^ nelis]|v[^aeiou]|q[^u]|sh[ckt]|aa|uu|ii"
)
# Consonants that transliterations exchange become one, vowels and what is hardly heard vanish.
_SOUNDS = str.maketrans("bcdfgmqvwxz", "pktpknkppks", "aeiouyhj ")


def ascii_form(name: str) -> str:
    """A Latin-script name in ASCII: "Łódź" is "Lodz"."""
    if name.isascii():
        return name
    return unicodedata.normalize("NFKD", name.translate(_ASCII)).encode("ascii", "ignore").decode()


def fold(name: str) -> str:
    """The ASCII form without case and punctuation, for comparing names."""
    return _NOT_A_WORD.sub(" ", ascii_form(name).lower()).strip()


def is_plain(name: str) -> bool:
    """Whether a sentence can use the name as it stands: words only, no digits, brackets or slashes."""
    return _PLAIN_NAME.fullmatch(name) is not None


def other_names(name: str, recorded: Iterable[str], english: bool = False, limit: int = 2) -> tuple[str, ...]:
    """Truly other names that a text can give beside `name`: Peking for Beijing, Filiba for Plovdiv.

    Spellings of the same sounds and names that have much in common are dropped. A beginning that many
    languages share comes first ("Peking" before "Bac Kinh"), and each beginning comes once.

    Args:
        name: The place's name.
        recorded: What GeoNames lists.
        english: Whether English is spoken there; then transliterations (Sautgejt for Southgate) fall out.
        limit: How many are wanted.
    """
    own = fold(name)
    sounds, pairs = own.translate(_SOUNDS), _letter_pairs(own)
    found = {
        folded: candidate
        for folded, candidate in _latin_names(recorded, shortest=5)
        if folded.translate(_SOUNDS) != sounds
        and folded not in own
        and own not in folded
        and _likeness(_letter_pairs(folded), pairs) < _ALIKE
        and not (english and _TRANSLITERATED.search(folded))
    }
    if len(found) <= 1:
        return tuple(found.values())[:limit]
    shared = Counter(folded[:_STEM] for folded in found)
    ranked = sorted(found, key=lambda f: (-shared[f[:_STEM]], not found[f].isascii(), len(f), f))
    best = {folded[:_STEM]: found[folded] for folded in reversed(ranked)}
    return tuple(best[stem] for stem in dict.fromkeys(f[:_STEM] for f in ranked))[:limit]


def spellings(name: str, recorded: Iterable[str], limit: int = 4) -> tuple[str, ...]:
    """The recorded names that are near enough to `name` to be meant as the same word: Bucharest, Bucarest."""
    own = fold(name)
    near = {}
    for folded, candidate in _latin_names(recorded, shortest=5):
        likeness = SequenceMatcher(None, folded, own).ratio()
        if folded != own and likeness >= _SAME_WORD:
            near[folded] = (-likeness, folded, candidate)
    return tuple(candidate for _, _, candidate in sorted(near.values())[:limit])


def _latin_names(recorded: Iterable[str], shortest: int) -> Iterator[tuple[str, str]]:
    """Pairs of folded name and name, Latin script in title case only: no codes, no transliterations."""
    for name in recorded:
        if shortest <= len(name) <= _LONGEST and _LATIN_NAME.fullmatch(name) and not name.isupper():
            yield fold(name), name


def _letter_pairs(name: str) -> set[str]:
    return {name[i : i + 2] for i in range(len(name) - 1)}


def _likeness(a: set[str], b: set[str]) -> float:
    """Dice's coefficient of two sets of letter pairs."""
    return 2 * len(a & b) / (len(a) + len(b))


def distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The names without repetitions that differ in case or punctuation only, the first of each kept."""
    kept: dict[str, str] = {}
    for name in names:
        key = re.sub(r"[^\w]", "", name.casefold())
        if key:
            kept.setdefault(key, name)
    return tuple(kept.values())


def safe_aliases(groups: Sequence[Sequence[str]], limit: int = 8) -> dict[str, tuple[str, ...]]:
    """Alias groups of one kind of answer (canonical name first), without aliases that credit a wrong answer.

    An alias falls out if it is part of another answer's canonical name: answers are also judged by
    containment, and there "US" would be found in "Russia", "UK" in "Ukraine". Or if it names another answer.

    Returns:
        The groups by their canonical name, each of at most `limit` aliases.
    """
    spoken_for = Counter(key for group in groups for key in {_squeezed(alias) for alias in group})
    canonical = {group[0]: _squeezed(group[0]) for group in groups}
    haystack = "\n".join(canonical.values())
    safe = {}
    for group in groups:
        own = canonical[group[0]]
        kept = [
            alias
            for alias in group[1:]
            if spoken_for[_squeezed(alias)] == 1
            and haystack.count(_squeezed(alias)) == own.count(_squeezed(alias))
        ]
        safe[group[0]] = distinct([group[0], *kept])[:limit]
    return safe


def _squeezed(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum() or c == " ")
