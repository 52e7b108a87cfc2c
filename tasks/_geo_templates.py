"""The sentences of the passages: several ways to say each fact."""

from __future__ import annotations

CITY_OPENING = (
    "{name} is a {kind} in {where}.",
    "{name} lies in {where}.",
    "In {where} there is a {kind} by the name of {name}.",
    "The {kind} of {name} is situated in {where}.",
    "Among the {kinds} of {where} is {name}.",
    "{name} is one of the {kinds} in {where}.",
    "The map of {where} shows {name}, a {kind}.",
    "{name}, a {kind} with {population} inhabitants, belongs to {where}.",
    "{population} people live in {name}, a {kind} in {where}.",
    "{name} ({where}) is a {kind} of {population} residents.",
    "The country in which one finds the {kind} of {name} is {where_reversed}.",
    "{name} is a {kind}, and the country that it belongs to is {where_reversed}.",
    "As for the {kind} of {name}, its country is {where_reversed}.",
    "{where_reversed} is the country of {name}, a {kind}.",
)
CITY_POPULATION = (
    "It has {population} inhabitants.",
    "The population of {name} is {population}.",
    "About {population} people live there.",
    "The {kind} is home to {population} people.",
    "According to GeoNames, {population} residents call it home.",
    "The number of inhabitants stands at {population}.",
    "{name} counts {population} souls.",
)
CITY_POSITION = (
    "It lies at {latitude} and {longitude}.",
    "Its coordinates are {latitude}, {longitude}.",
    "On a map {name} is found at {latitude} and {longitude}.",
    "The latitude is {latitude}, the longitude {longitude}.",
    "The geographical position of {name} is {latitude}, {longitude}.",
    "The coordinates of {name} are {latitude} and {longitude}.",
)
CITY_TIME = (
    "Clocks there follow the {timezone} time zone.",
    "The time zone is {timezone}.",
    "{name} keeps the time of {timezone}.",
    "Local time is that of the zone {timezone}.",
    "{name} uses the {timezone} time zone.",
    "In {name} clocks follow {timezone} time.",
)
CITY_LANDMARK = (
    "The nearest large city is {landmark}, {km} km away.",
    "It is situated {km} km {direction} of {landmark}.",
    "From {landmark} it is {km} kilometres to the {direction}.",
    "Some {km} km {direction} of {landmark}, {name} is within reach of that city.",
    "{landmark}, the closest big city, is {km} km off.",
)
CITY_OTHER_NAMES = (
    "It is also known as {others}.",
    "Another name for {name} is {others}.",
    "Some maps call it {others}.",
    "The {kind} also goes by the name of {others}.",
    "In other sources {name} appears as {others}.",
    "{others} is another way to refer to it.",
)
CITY_RANK = (
    "No place in {country} but {rank_less} has more people.",
    "By population it ranks {ordinal} in {country}.",
    "{name} is number {rank} among the most populous places of {country}.",
)
CITY_ZONE = (
    "The {kind} is situated {zone}.",
    "Geographically it lies {zone}.",
    "Its place on the globe is {zone}.",
    "A traveller who reaches {name} is {zone}.",
)
COUNTRY_OPENING = (
    "{name} {is_} {a_land} in {continent}.",
    "{name} {belong} to {continent}.",
    "{name}, {a_land}, {is_} part of {continent}.",
    "On the map of {continent} one finds {name}.",
    "{name} {is_} counted among the lands of {continent}.",
    "Part of {continent}, {name} {is_} {a_land}.",
)
COUNTRY_CAPITAL_AND_CURRENCY = (
    "The capital is {capital}, and people pay with the {currency} ({code}).",
    "The capital of {name} is {capital}; the currency is the {currency} ({code}).",
    "The {currency} ({code}) is the currency, {capital} the capital.",
    "{name} {is_} governed from {capital}, the capital, and the currency is the {currency} ({code}).",
    "{capital} serves as the capital, and the {currency} ({code}) is the money of {name}.",
)
COUNTRY_CURRENCY = (
    "People in {name} pay with the {currency} ({code}).",
    "The currency is the {currency} ({code}).",
)
COUNTRY_SIZE = (
    "With {population} inhabitants {name} cover{s} {area} square kilometres.",
    "It has {population} inhabitants and an area of {area} km².",
    "The {population} people of {name} share {area} square kilometres of land.",
    "An area of {area} km² is home to {population} people.",
    "The population of {name} is {population}, the area {area} square kilometres.",
)
COUNTRY_LARGEST = (
    "The most populous city is {largest}.",
    "{largest} is the largest city of {name}.",
    "No city there has more people than {largest}.",
)
COUNTRY_NEIGHBOURS = (
    "It borders {neighbours}.",
    "The neighbours of {name} include {neighbours}.",
    "{name} share{s} a land border with {neighbours}.",
    "Beyond the borders lie {neighbours}.",
)
COUNTRY_ONLY_NEIGHBOUR = (
    "The only neighbour of {name} is {neighbours}.",
    "{neighbours} is the one country that it borders.",
    "{name} share{s} a land border with {neighbours} alone.",
)
COUNTRY_LANGUAGES = (
    "Languages spoken there include {languages}.",
    "One hears {languages} spoken.",
    "The people of {name} speak {languages}, among others.",
)
COUNTRY_CODES = (
    "Telephone numbers begin with +{phone}, web addresses end in {tld}.",
    "The dialling code of {name} is +{phone} and the internet domain {tld}.",
    "Its web addresses end in {tld}; calls from abroad start with +{phone}.",
)
STATE_OPENING = (
    "{name} is {a_state} of the United States, abbreviated {code}.",
    "{name} ({code}) is {a_state} of the United States.",
    "The postal abbreviation {code} stands for {name}, {a_state} of the United States.",
    "Among the parts of the United States is {name}, {a_state} with the abbreviation {code}.",
)
STATE_LARGEST = (
    "Its most populous city is {largest}.",
    "{largest} is the largest city there.",
    "More people live in {largest} than in any other of its cities.",
)
STATE_COUNTIES = (
    "It is divided into {counties}.",
    "For administration it is split into {counties}.",
    "The map shows {counties}.",
)
STATE_PLACES = (
    "GeoNames lists {places} places there with at least 5,000 inhabitants.",
    "At least 5,000 people live in each of {places} of its towns, cities and suburbs.",
    "Towns, cities and suburbs of 5,000 people or more number {places}.",
)
STATE_TIME = (
    "Most of its towns keep {timezone} time.",
    "{timezone} is the time zone of most of its towns.",
    "Clocks in most of the state follow {timezone}.",
)
