"""The sign of a zero that maximum, minimum and their folds give does not depend on the order or size of the data."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.operators.compiled.elements.ieee import OPERATIONS
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
