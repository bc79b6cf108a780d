from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Optional, Sequence
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@table("version", [7, 13, 14])
@table("op_type", ["Add", "Sub", "Mul", "Div"])
@table("shapes", [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (3, 0)), ((5, 1, 7), (2, 1)), ((1,), ())])
def test_shapes_broadcast(op_type: str, version: int, shapes: Any, run: Run, same: Run) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=shape).astype(F) for shape in shapes)
    same(run(op_type, version, a, b), ({**BINARY, "Div": np.divide}[op_type](a, b)).astype(F))


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
def test_shapes_that_do_not_broadcast_are_refused(op_type: str, refused: Run) -> None:
    assert "The shapes broadcast." in refused(op_type, 14, np.zeros((2, 3), F), np.zeros((2,), F))
    assert "The shapes broadcast." in refused(op_type, 14, np.zeros((0,), F), np.zeros((2,), F))


@table("dtype", INTEGERS)
@table("op_type", BINARY)
def test_integers_wrap_around(op_type: str, dtype: Any, run: Run, same: Run) -> None:
    info = np.iinfo(dtype)
    values = [int(info.min), int(info.min) + 1, 0, 1, 3, int(info.max) - 1, int(info.max)]
    exact = {"Add": lambda x, y: x + y, "Sub": lambda x, y: x - y, "Mul": lambda x, y: x * y}[op_type]
    size = 2**info.bits
    wrapped = [[(exact(x, y) - info.min) % size + info.min for y in values] for x in values]
    a = np.array(values, dtype)
    same(run(op_type, 14, a[:, None], a[None, :]), np.array(wrapped, dtype))


def test_division_of_floats_is_that_of_ieee_754(run: Run, same: Run) -> None:
    a, b = np.array([1, -1, 0, 1, INF, 1, -0.0], F), np.array([0, 0, 0, -0.0, INF, NAN, 1], F)
    same(run("Div", 14, a, b), np.array([INF, -INF, NAN, -INF, NAN, NAN, -0.0], F))


def test_sums_of_zeros_and_infinities(run: Run, same: Run) -> None:
    a, b = np.array([-0.0, -0.0, INF, INF], F), np.array([-0.0, 0.0, -INF, 1], F)
    same(run("Add", 14, a, b), np.array([-0.0, 0.0, NAN, INF], F))
    same(run("Sub", 14, a, -b), np.array([-0.0, 0.0, NAN, INF], F))


@table("dtype", INTEGERS)
def test_division_of_integers_truncates_toward_zero(dtype: Any, run: Run, same: Run) -> None:
    signed = np.iinfo(dtype).min < 0
    a = np.array([7, -7, 7, -7, 6, 0] if signed else [7, 8, 9, 255, 0, 1], np.int64).astype(dtype)
    b = np.array([2, 2, -2, -2, 3, 5] if signed else [2, 3, 10, 16, 4, 1], np.int64).astype(dtype)
    expected = [int(x / y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    same(run("Div", 14, a, b), np.array(expected, dtype))


@pytest.mark.parametrize("version", [7, 13, 14])
def test_division_of_an_integer_by_0_is_refused(version: int, refused: Run) -> None:
    assert "No integer is divided by 0" in refused("Div", version, np.array([1, 2]), np.array([1, 0]))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_division_of_the_least_integer_by_minus_1_is_refused(dtype: Any, run: Run, refused: Run, same: Run) -> None:
    least = np.array([np.iinfo(dtype).min], dtype)
    assert "not divided by -1" in refused("Div", 14, least, np.array([3, -1], dtype))
    same(run("Div", 14, least, np.array([1], dtype)), least)
    same(run("Div", 14, np.array([5], dtype), np.array([-1], dtype)), np.array([-5], dtype))


def test_each_operation_of_bfloat16_is_rounded_to_it(run: Run, same: Run) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=50).astype(ml_dtypes.bfloat16) for _ in range(2))
    for op_type, function in {**BINARY, "Div": np.divide}.items():
        exact = function(a.astype(np.float64), b.astype(np.float64))
        same(run(op_type, 14, a, b), exact.astype(F).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("version", [6, 8, 13])
def test_the_sum_of_one_tensor_is_that_tensor(version: int, run: Run, same: Run) -> None:
    x = np.array([-0.0, NAN, 3], F)
    same(run("Sum", version, x), x)


@pytest.mark.parametrize("version", [6, 8, 13])
def test_sum_accumulates_in_the_order_of_the_inputs(version: int, run: Run, same: Run) -> None:
    a, b, c = (np.array([v], F) for v in (1e30, -1e30, 1.0))
    same(run("Sum", version, a, b, c), np.array([1], F))
    same(run("Sum", version, c, a, b), np.array([0], F))


def test_sum_broadcasts_from_8_on(run: Run, refused: Run, same: Run) -> None:
    a, b, c = np.ones((2, 1), F), np.ones((3,), F), np.array(1, F)
    same(run("Sum", 8, a, b, c), np.full((2, 3), 3, F))
    same(run("Sum", 13, c, b, a), np.full((2, 3), 3, F))
    same(run("Sum", 13, np.ones((1, 0), F), np.ones((4, 1), F)), np.ones((4, 0), F))
    assert "same shape" in refused("Sum", 6, a, b)
    assert "The shapes broadcast." in refused("Sum", 13, a, b, np.ones((2,), F))


@table("version", [1, 13, 14, 16, 19, 21, 23, 24, 25])
def test_identity_of_a_tensor_is_that_tensor(version: int, run: Run, same: Run) -> None:
    for x in (
        np.array([[NAN, -0.0]], F),
        np.array(True),
        np.array([b"a", b""], object),
        np.zeros((0, 2), np.complex64),
    ):
        same(run("Identity", version, x), x)


def test_identity_of_a_sequence_or_optional_is_that_value(run: Run) -> None:
    inner = ValueType("tensor", "float")
    sequence = Sequence(inner, (np.ones(2, F), np.zeros((0,), F)))
    found = run("Identity", 14, sequence)
    assert found.inner == inner
    assert [x.tolist() for x in found.items] == [[1, 1], []]
    empty = Optional(inner, None)
    assert run("Identity", 16, empty) == empty
