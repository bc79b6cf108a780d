"""The sign of a zero that maximum, minimum and their folds give does not depend on the order or size of the data."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled import exact, ieee
from sonnx.semantics.operators.compiled.elements.ieee import OPERATIONS
from sonnx.semantics.operators.compiled.terms import Affine, Axis, tabulated
from tables import table

TYPES = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@table("dtype", TYPES)
@table("size", [1, 3, 8, 17, 64])
def test_of_two_zeros_the_greater_is_the_positive_one(dtype: type, size: int) -> None:
    for a, b in itertools.product((0.0, -0.0), repeat=2):
        one, other = (np.full(size, x).astype(dtype) for x in (a, b))
        greater = OPERATIONS["max"](np.dtype(dtype))(one, other)
        lesser = OPERATIONS["min"](np.dtype(dtype))(one, other)
        assert np.signbit(greater.astype(np.float64)).tolist() == [np.signbit(a) and np.signbit(b)] * size
        assert np.signbit(lesser.astype(np.float64)).tolist() == [np.signbit(a) or np.signbit(b)] * size


def reduced(name: str, data: NDArray[np.generic]) -> NDArray[np.generic]:
    version = {"ReduceMax": 20, "ReduceMin": 20}[name]
    result = ieee.apply(Application(name, version, (data, np.array([1])), {"keepdims": 0}, (True,)))
    assert isinstance(result, Outputs)
    (value,) = result.values
    assert isinstance(value, np.ndarray)
    return value


@table("dtype", TYPES)
@table(("rows", "columns"), [(1, 2), (1, 5000), (3, 700), (600, 3)])
def test_folds_give_the_zero_of_the_right_sign(dtype: type, rows: int, columns: int) -> None:
    below, mixed = np.full((rows, columns), -1.0), np.full((rows, columns), -1.0)
    below[:, 0] = -0.0
    mixed[:, 0], mixed[:, -1] = 0.0, -0.0
    for data, sign in ((below, True), (mixed, False), (mixed[:, ::-1], False)):
        greatest = reduced("ReduceMax", data.astype(dtype)).astype(np.float64)
        least = reduced("ReduceMin", (-data).astype(dtype)).astype(np.float64)
        assert np.all(greatest == 0)
        assert np.all(np.signbit(greatest) == sign)
        assert np.all(np.signbit(least) == (not sign))


def test_a_nan_is_still_the_winner() -> None:
    data = np.array([[0.0, np.nan, -0.0], [-0.0, 0.0, -1.0]], np.float32)
    assert np.isnan(reduced("ReduceMax", data)).tolist() == [True, False]


LARGE = [
    0,
    -1,
    7,
    2**40,
    2**40 + 1,
    -(2**40) - 1,
    2**53 + 1,
    2**62 - 1,
    2**62,
    2**62 + 1,
    2**63 - 1,
    -(2**62),
    -(2**63),
]
"""Integers at and beyond the places where float64, products and sums of int64 stop being exact."""


def of_integers(name: str, version: int, data: NDArray[np.generic], **attributes: object) -> list[list[int]]:
    """The result in the ieee and in the exact interpretation."""
    application = Application(name, version, (data,), attributes, (True,))
    results = [apply(application) for apply in (ieee.apply, exact.apply)]
    values = [result.values[0] for result in results if isinstance(result, Outputs)]
    return [[int(x) for x in value.reshape(-1)] for value in values if isinstance(value, np.ndarray)]


@table("replaced", LARGE)
def test_an_integer_equals_itself_alone_however_large_it_is(replaced: int) -> None:
    attributes = {"imputed_value_int64s": (5,), "replaced_value_int64": replaced}
    want = [5 if x == replaced else x for x in LARGE]
    assert of_integers("ai.onnx.ml::Imputer", 1, np.array(LARGE, np.int64), **attributes) == [want, want]


@table("threshold", [2.0**40, 2.0**41, 2.0**62, -(2.0**41), -(2.0**62)])
def test_integers_beyond_a_threshold_are_found_however_large_it_is(threshold: float) -> None:
    want = [int(x > threshold) for x in LARGE]
    assert of_integers("ai.onnx.ml::Binarizer", 1, np.array(LARGE, np.int64), threshold=threshold)[0] == want


@table(("dtype", "number"), [(np.int64, x) for x in LARGE] + [(np.uint64, 2**64 - 1), (np.uint64, 2**63)])
def test_the_mean_of_equal_integers_is_that_integer(dtype: type, number: int) -> None:
    data = np.full(5, number, dtype)
    assert of_integers("ReduceMean", 13, data, axes=(0,), keepdims=0) == [[number], [number]]


@table("index", [x for x in LARGE if not -3 <= x < 3])
def test_a_large_index_is_refused(index: int) -> None:
    inputs = (np.arange(3.0), np.array([index]))
    result = ieee.apply(Application("Gather", 13, inputs, {}, (True,)))
    assert not isinstance(result, Outputs)
    assert result.premise.startswith("The indices are positions along the axis")


@table("factor", [2**61, 2**62, 2**63 - 1])
def test_indices_beyond_int64_are_tabulated_exactly(factor: int) -> None:
    axis = Axis(5)
    values = tabulated(Affine(-1, ((axis, factor),)), (axis,))
    assert values.tolist() == [k * factor - 1 for k in range(5)]
