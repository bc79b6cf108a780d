from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]
POOL = {"pool_int64s": (2, 3, 5, 4, 5, 6, 7, 8, 6, 7), "ngram_counts": (0, 4), "ngram_indexes": (0, 1, 2, 3, 4, 5, 6)}
PAIRS = {**POOL, "mode": "TF", "min_gram_length": 2, "max_gram_length": 2, "max_skip_count": 0}
ROW = [1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8]


def by_hand(row: Any, skips: int, least: int, most: int) -> list[float]:
    """The counts of the pool's n-grams, one after the other."""
    pool = POOL["pool_int64s"]
    grams = [(k,) for k in pool[:4]] + [pool[k : k + 2] for k in range(4, 10, 2)]
    found = []
    for gram in grams:
        steps = range(1, 2 if len(gram) == 1 else skips + 2)
        starts = [(t, s) for t in range(len(row)) for s in steps if t + (len(gram) - 1) * s < len(row)]
        count = sum(tuple(row[t : t + len(gram) * s : s]) == gram for t, s in starts)
        found.append(float(count if least <= len(gram) <= most else 0))
    return found


@pytest.mark.parametrize("skips", [0, 1, 5])
@pytest.mark.parametrize(("least", "most"), [(1, 1), (1, 2), (2, 2)])
def test_n_grams_are_counted(skips: int, least: int, most: int, run: Run) -> None:
    lengths = {"max_skip_count": skips, "min_gram_length": least, "max_gram_length": most}
    expected = by_hand(ROW, skips, least, most)
    assert run("TfIdfVectorizer", 9, np.array(ROW), **{**PAIRS, **lengths}).tolist() == expected
    rows = np.array([ROW, ROW[::-1]], np.int32)
    found = run("TfIdfVectorizer", 9, rows, **{**PAIRS, **lengths})
    assert found.tolist() == [expected, by_hand(ROW[::-1], skips, least, most)]


def test_words_are_counted_and_weighed(run: Run) -> None:
    x = np.array([b"a", b"b", b"a", b"a", "é".encode()], dtype=object)
    pool = {"pool_strings": ("a", "é", "z"), "ngram_counts": (0,), "min_gram_length": 1, "max_gram_length": 1}
    stated = {**pool, "ngram_indexes": (2, 0, 1), "weights": (0.5, 3.0, -1.0), "max_skip_count": 0}
    for mode, expected in (("TF", [1, 0, 3]), ("IDF", [3, 0, 0.5]), ("TFIDF", [3, 0, 1.5])):
        assert run("TfIdfVectorizer", 9, x, mode=mode, **stated).tolist() == expected
    shared = {**stated, "ngram_indexes": (1, 1, 1)}
    assert run("TfIdfVectorizer", 9, x, mode="TFIDF", **shared).tolist() == [0, 4.5]


@pytest.mark.parametrize(
    ("changed", "premise"),
    [
        ({"mode": "tf"}, "three words"),
        ({"ngram_counts": (1, 4)}, "first element"),
        ({"ngram_counts": (0, 5)}, "whole n-grams"),
        ({"ngram_indexes": (0, 1)}, "has a place"),
        ({"ngram_indexes": (0, 1, 2, 3, 4, 5, -6)}, "has a place"),
        ({"weights": (1.0,)}, "has a place"),
        ({"min_gram_length": 0}, "positive"),
        ({"max_skip_count": -1}, "negative"),
        ({"pool_strings": ("a",)}, "one pool"),
    ],
)
def test_what_makes_no_pool_is_refused(changed: dict[str, Any], premise: str, refused: Run) -> None:
    assert premise in refused("TfIdfVectorizer", 9, np.array(ROW), **{**PAIRS, **changed})


def test_strings_are_looked_up_among_strings(refused: Run) -> None:
    assert "one pool" in refused("TfIdfVectorizer", 9, np.array([b"a"], dtype=object), **PAIRS)
    assert "vector or a matrix" in refused("TfIdfVectorizer", 9, np.ones((1, 1, 1), np.int64), **PAIRS)
