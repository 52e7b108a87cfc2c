"""Settings of BM25 and the libraries behind them."""

from __future__ import annotations

import math
import sys
from importlib import metadata
from typing import Any

import pytest

from ragtrials.errors import UserError
from ragtrials.retrieval.settings import BM25Settings, libraries


def test_the_defaults_are_those_of_pyserini() -> None:
    assert BM25Settings().plain() == {
        "method": "lucene",
        "k1": 0.9,
        "b": 0.4,
        "stopwords": "english",
        "stemmer": "porter",
        "lower": True,
        "pattern": r"\w+",
    }


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("method", "bm25+", "bm25 method 'bm25\\+' is unknown: use lucene or robertson or atire"),
        ("stopwords", "klingon", "bm25 stopwords 'klingon' is unknown"),
        ("stemmer", "", "bm25 stemmer '' is unknown: use porter or english or none"),
        ("k1", -0.1, "bm25 k1 is -0.1: use a number ≥ 0"),
        ("k1", math.nan, "bm25 k1 is nan"),
        ("k1", math.inf, "bm25 k1 is inf"),
        ("b", 1.01, "bm25 b is 1.01: use a number from 0 to 1"),
        ("b", math.nan, "bm25 b is nan"),
        ("pattern", "(", "bm25 pattern '\\(' is no regular expression"),
        ("pattern", r"(\w)(\d)", "has groups"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_it(field: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        BM25Settings(**{field: value})
    assert "\n" not in str(caught.value)


def test_one_number_has_one_form() -> None:
    plain = BM25Settings(k1=1, b=0).plain()
    assert [repr(plain["k1"]), repr(plain["b"])] == ["1.0", "0.0"]


def test_versions_come_without_an_import() -> None:
    loaded = {"bm25s", "Stemmer"} & sys.modules.keys()
    assert libraries(BM25Settings()) == {
        "bm25s": metadata.version("bm25s"),
        "PyStemmer": metadata.version("PyStemmer"),
    }
    assert {"bm25s", "Stemmer"} & sys.modules.keys() == loaded


def test_a_stemmer_that_is_not_used_has_no_version() -> None:
    assert list(libraries(BM25Settings(stemmer="none"))) == ["bm25s"]


@pytest.mark.parametrize("absent", ["bm25s", "PyStemmer"])
def test_a_missing_library_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    installed = metadata.version

    def version(name: str) -> str:
        if name == absent:
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(UserError, match=f"the bm25 retriever needs {absent}: run `pip install {absent}`"):
        libraries(BM25Settings())
