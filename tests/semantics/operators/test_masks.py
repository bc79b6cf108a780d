from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
X = np.arange(1, 7, dtype=F).reshape(2, 3)


@pytest.mark.parametrize("dtype", [F, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_special_numbers_are_told_apart(dtype: Any, run: Run) -> None:
    x = np.array([NAN, INF, -INF, -0.0, 1], dtype)
    assert run("IsNaN", 20, x).tolist() == [True, False, False, False, False]
    assert run("IsInf", 20, x).tolist() == [False, True, True, False, False]
    assert run("IsInf", 20, x, detect_negative=0).tolist() == [False, True, False, False, False]
    assert run("IsInf", 20, x, detect_positive=0).tolist() == [False, False, True, False, False]


def test_a_type_without_infinity_has_none(run: Run) -> None:
    x = np.array([NAN, 1], ml_dtypes.float8_e4m3fn)
    assert run("IsInf", 20, x).tolist() == [False, False]
    assert run("IsNaN", 20, x).tolist() == [True, False]


@pytest.mark.parametrize(
    ("upper", "k", "expected"),
    [
        (1, None, [[1, 2, 3], [0, 5, 6]]),
        (1, 1, [[0, 2, 3], [0, 0, 6]]),
        (1, -1, [[1, 2, 3], [4, 5, 6]]),
        (0, None, [[1, 0, 0], [4, 5, 0]]),
        (0, -1, [[0, 0, 0], [4, 0, 0]]),
        (0, 2**62, [[1, 2, 3], [4, 5, 6]]),
        (1, 2**62, [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_triangles(upper: int, k: int | None, expected: Any, run: Run) -> None:
    assert run("Trilu", 14, X, *(() if k is None else (np.array(k),)), upper=upper).tolist() == expected


def test_triangles_of_a_batch_of_truth_values_and_of_no_matrices(run: Run, refused: Run) -> None:
    assert run("Trilu", 14, np.ones((2, 2, 2), bool)).tolist() == [[[True, True], [False, True]]] * 2
    assert run("Trilu", 14, np.ones((0, 2, 2), F)).shape == (0, 2, 2)
    assert "input: T[b..., n, m]" in refused("Trilu", 14, np.ones(2, F))
    assert refused("Trilu", 14, X, np.array([0, 1])) == "k is a scalar."
    assert refused("Trilu", 14, X, upper=2) == "upper is 0 or 1."


def test_an_infinity_outside_the_triangle_becomes_zero(run: Run) -> None:
    assert run("Trilu", 14, np.full((2, 2), INF)).tolist() == [[INF, INF], [0, INF]]


def test_the_identity_like_a_matrix(run: Run, refused: Run) -> None:
    found = run("EyeLike", 22, X, k=1, dtype=6)
    assert found.dtype == np.int32
    assert found.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert run("EyeLike", 9, np.full((2, 2), NAN)).tolist() == [[1, 0], [0, 1]]
    assert refused("EyeLike", 9, X, dtype=8).startswith("dtype is the number of a type")
    assert refused("EyeLike", 9, X, dtype=16)


def test_what_a_condition_keeps(run: Run, refused: Run) -> None:
    keep = np.array([False, True])
    assert run("Compress", 11, X, keep, axis=-1).tolist() == [[2], [5]]
    assert run("Compress", 9, X, keep, axis=0).tolist() == [[4, 5, 6]]
    assert run("Compress", 28, X, np.array([True] * 4 + [False, True])).tolist() == [1, 2, 3, 4, 6]
    assert run("Compress", 11, X, np.array([], bool), axis=1).shape == (2, 0)
    assert "not longer" in refused("Compress", 11, X, np.ones(3, bool), axis=0)
    assert refused("Compress", 11, np.array(1, F), np.ones(1, bool)) == "The input is no scalar."


def test_sequences_of_several_lengths_are_reversed(run: Run, refused: Run) -> None:
    x, lengths = np.arange(6, dtype=F).reshape(3, 2), np.array([3, 0])
    assert run("ReverseSequence", 10, x, lengths).tolist() == [[4, 1], [2, 3], [0, 5]]
    assert run("ReverseSequence", 10, x.T, lengths, time_axis=1, batch_axis=0).tolist() == [[4, 2, 0], [1, 3, 5]]
    assert "No length is negative" in refused("ReverseSequence", 10, x, np.array([4, 0]))
    assert "One of batch_axis" in refused("ReverseSequence", 10, x, lengths, time_axis=1)


def test_products_along_an_axis(run: Run) -> None:
    x, axis = np.array([1, 2, 3], np.int32), np.array(0)
    assert run("CumProd", 26, x, axis).tolist() == [1, 2, 6]
    assert run("CumProd", 26, x, axis, exclusive=1).tolist() == [1, 1, 2]
    assert run("CumProd", 26, x, axis, reverse=1).tolist() == [6, 6, 3]
    assert run("CumProd", 26, x, axis, exclusive=1, reverse=1).tolist() == [6, 3, 1]
    assert run("CumProd", 26, np.full(2, 1 << 16, np.uint32), axis).tolist() == [1 << 16, 0]
