"""Bridge questions: a property of the country or state in which a place lies, without naming the former."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragtrials.data import Example
from ragtrials.tasks import _geo_answers as answers
from ragtrials.tasks import _geo_questions as ask
from ragtrials.tasks import _geo_tables as tables
from ragtrials.tasks._geo_draw import Draw, split_of, spread
from ragtrials.tasks._geo_passages import passage
from ragtrials.tasks._geo_places import City, Country, State, World

FRAMES = {
    "capital": (
        "What is the capital of {land}?",
        "Which city serves as the capital of {land}?",
        "Name the capital of {land}.",
        "From which capital is {land} governed?",
    ),
    "currency": (
        "What is the currency of {land}?",
        "Which currency do people pay with in {land}?",
        "In which currency are prices given in {land}?",
        "What money is used in {land}?",
    ),
    "continent": (
        "On which continent is {land}?",
        "Which continent is home to {land}?",
        "Part of which continent is {land}?",
    ),
    "largest city": (
        "What is the most populous city of {land}?",
        "Which is the largest city in {land}?",
        "Which city has the most inhabitants in {land}?",
    ),
    "only neighbour": (
        "Which is the only country that borders {land}?",
        "Which neighbour, its only one, borders {land}?",
        "What is the one country that shares a land border with {land}?",
    ),
}
LANDS = {
    None: (
        "the country in which {city} lies",
        "the country that {city} belongs to",
        "the country where one finds {city}",
        "the home country of {city}",
    ),
    "neighbours": (
        "the country that borders {clue} and in which {city} lies",
        "the country that {city} belongs to and that borders {clue}",
        "the country, bordering {clue}, where one finds {city}",
    ),
    "languages": (
        "the country where people speak {clue} and in which {city} lies",
        "the country, with speakers of {clue}, that {city} belongs to",
    ),
    "currency": (
        "the country, with the {clue} as its currency, that {city} belongs to",
        "the country where people pay with the {clue} and in which {city} lies",
    ),
    "largest city": (
        "the country that has {clue} as its largest city and to which {city} belongs",
        "the country in which {city} lies, like {clue}, its most populous city",
    ),
}
STATES = {
    None: (
        "the US state in which {city} lies",
        "the US state that {city} belongs to",
        "the state of the United States where one finds {city}",
    ),
    "abbreviation": (
        "the US state, {clue} for short, in which {city} lies",
        "the US state that {city} belongs to and that letters abbreviate {clue}",
    ),
}
KINDS_OF_CLUE = ("neighbours", "neighbours", "currency", "largest city", "languages", "abbreviation")
NO_CLUE_ONE_IN = 4
RELATIONS = ("capital", "capital", "currency", "currency", "largest city", "continent", "only neighbour")


@dataclass(frozen=True, slots=True)
class _Bridge:
    city: City
    over: Country | State


def bridge_questions(everything: World, split: str, count: int) -> list[Example]:
    """At most `count` bridge questions of a split, one per place, spread over countries and states."""
    pairs = _pairs(everything, split)
    ordered = spread(pairs, key=lambda p: f"bridge {p.city.key} {p.over.key}", stratum=_stratum)
    return ask.take(ordered, lambda pair: _write(pair, everything), count)


def _pairs(everything: World, split: str) -> Iterator[_Bridge]:
    for city in ask.cities_of(split, everything):
        if everything.is_unique(city.folded):
            over: list[Country | State] = [everything.country(city)]
            if city.country == "US" and city.state != "DC":
                over.append(everything.states[city.state])
            yield from (_Bridge(city, place) for place in over if split_of(place.entity) == split)


def _stratum(pair: _Bridge) -> tuple[str, str]:
    return pair.over.key, pair.city.kind


def _write(pair: _Bridge, everything: World) -> Example | None:
    """The question, or None if it would give away its answer or the title of its second passage."""
    city, over = pair.city, pair.over
    draw = Draw(f"geo bridge {city.key} {over.key}")
    other = ask.unique_other_name(city, everything)
    wording = "other name" if other and draw.below(3) > 0 else "name"
    spoken = other if other and wording == "other name" else ask.called(city, draw)
    relation = draw.pick([r for r in RELATIONS if _is_asked(r, over)])
    clue, fact = _clue(over, relation, everything, draw)
    land = draw.pick((LANDS if isinstance(over, Country) else STATES)[clue]).format(city=spoken, clue=fact)
    gold = _answer(relation, over, everything)
    question = draw.pick(FRAMES[relation]).format(land=land)
    if any(ask.contains_name(question, name) for name in (over.name, *gold)):
        return None
    if any(ask.contains_name(city.name, alias) for alias in gold):
        return None
    meta = {
        "type": "bridge",
        "level": "medium" if clue else "hard",
        "relation": relation,
        "wording": wording,
        "clue": clue,
        "popularity": city.population,
    }
    return ask.example("geo_hop", question, [gold], [city, over], everything, meta)


def _is_asked(relation: str, over: Country | State) -> bool:
    if isinstance(over, State):
        return relation == "largest city"
    return {
        "capital": bool(over.capital) and ask.has_one_capital(over.iso),
        "currency": True,
        "continent": ask.has_one_continent(over.iso),
        "largest city": bool(over.largest),
        "only neighbour": len(over.neighbours) == 1,
    }[relation]


def _answer(relation: str, over: Country | State, everything: World) -> answers.Aliases:
    if isinstance(over, State) or relation == "largest city":
        return answers.largest_of(over)
    if relation == "only neighbour":
        return answers.country(everything.countries[over.neighbours[0]])
    writers = {"capital": answers.capital, "currency": answers.currency, "continent": answers.continent}
    return writers[relation](over)


def _clue(over: Country | State, relation: str, everything: World, draw: Draw) -> tuple[str | None, str]:
    """One or two further facts that the second passage tells, and their kind; (None, "") for no clue."""
    text = passage(over, everything).text
    asked = "neighbours" if relation == "only neighbour" else relation
    told = {
        kind: [fact for fact in facts if fact in text]
        for kind, facts in _facts(over, everything).items()
        if kind != asked
    }
    kinds = [kind for kind in KINDS_OF_CLUE if told.get(kind)]
    if not kinds or draw.below(NO_CLUE_ONE_IN) == 0:
        return None, ""
    kind = draw.pick(kinds)
    return kind, " and ".join(draw.order(told[kind])[:2])


def _facts(over: Country | State, everything: World) -> dict[str, list[str]]:
    if isinstance(over, State):
        return {"abbreviation": [over.code]}
    return {
        "neighbours": [everything.countries[iso].spoken for iso in over.neighbours],
        "languages": list(over.languages),
        "currency": [tables.CURRENCIES[over.currency]],
        "largest city": [over.largest] if over.largest != over.capital else [],
    }
