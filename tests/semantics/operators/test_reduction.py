from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sonnx.semantics.operators.application import Application
from sonnx.semantics.operators.compiled import bound
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
ATTRIBUTE = [("ReduceSum", 1), ("ReduceSum", 11), ("ReduceMean", 1), ("ReduceMean", 11), ("ReduceMean", 13),
             ("ReduceMax", 1), ("ReduceMax", 11), ("ReduceMax", 12), ("ReduceMax", 13)]  # fmt: skip
INPUT = [("ReduceSum", 13), ("ReduceMean", 18), ("ReduceMax", 18), ("ReduceMax", 20)]
NUMPY = {"ReduceSum": np.sum, "ReduceMean": np.mean, "ReduceMax": np.max}


def _given(op_type: str, version: int, x: Any, axes: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Inputs and attributes; axes are an input in the newest versions."""
    if axes is None:
        return (x,), {}
    return ((x, np.array(axes, np.int64)), {}) if (op_type, version) in INPUT else ((x,), {"axes": axes})


@table(("op_type", "version"), ATTRIBUTE + INPUT)
@table("keepdims", [0, 1])
@table("axes", [None, (0,), (1,), (-1,), (2, 0), (0, 1, 2), (-2, -3)])
def test_reduction_along_axes(op_type: str, version: int, keepdims: int, axes: Any, run: Run, same: Run) -> None:
    x = np.random.default_rng(1).integers(-8, 9, (2, 4, 8)).astype(F)
    inputs, attributes = _given(op_type, version, x, axes)
    found = run(op_type, version, *inputs, keepdims=keepdims, **attributes)
    same(found, NUMPY[op_type](x, axis=axes, keepdims=bool(keepdims)).astype(F))


@table(("op_type", "version"), ATTRIBUTE + INPUT)
def test_no_axes_mean_all_axes(op_type: str, version: int, run: Run, same: Run) -> None:
    inputs, attributes = _given(op_type, version, np.full((2, 4), 3, F), ())
    same(run(op_type, version, *inputs, **attributes), np.full((1, 1), 24 if op_type == "ReduceSum" else 3, F))


@table(("op_type", "version"), INPUT)
@table("keepdims", [0, 1])
def test_no_axes_mean_none_where_noop_with_empty_axes_is_1(
    op_type: str, version: int, keepdims: int, run: Run, same: Run
) -> None:
    x = np.array([[1, -0.0], [NAN, INF]], F)
    for inputs in ((x,), (x, np.zeros(0, np.int64))):
        same(run(op_type, version, *inputs, keepdims=keepdims, noop_with_empty_axes=1), x)
    one = run(op_type, version, np.ones((2, 2), F), np.array([0]), keepdims=0, noop_with_empty_axes=1)
    assert one.shape == (2,)


@table(("op_type", "version"), ATTRIBUTE + INPUT)
def test_a_scalar_is_reduced_to_itself(op_type: str, version: int, run: Run, same: Run) -> None:
    same(run(op_type, version, np.array(-0.0, F)), np.array(-0.0, F))


@pytest.mark.parametrize("version", [1, 11, 13])
def test_the_sum_of_nothing_is_0(version: int, run: Run, same: Run) -> None:
    inputs, attributes = _given("ReduceSum", version, np.zeros((2, 0, 3), F), (1,))
    same(run("ReduceSum", version, *inputs, keepdims=0, **attributes), np.zeros((2, 3), F))
    same(run("ReduceSum", version, *inputs, **attributes), np.zeros((2, 1, 3), F))


@table("version", [1, 11, 12, 13, 18, 20])
def test_the_greatest_of_nothing_is_the_least_of_the_type(version: int, run: Run, same: Run) -> None:
    for dtype, least in ((F, -INF), (np.float64, -np.inf), (np.int32, -(2**31)), (np.uint64, 0)):
        inputs, attributes = _given("ReduceMax", version, np.zeros((2, 0), dtype), (1,))
        same(run("ReduceMax", version, *inputs, keepdims=0, **attributes), np.full(2, least, dtype))
    if version == 20:
        same(run("ReduceMax", 20, np.zeros((2, 0), bool), np.array([1])), np.zeros((2, 1), bool))


@pytest.mark.parametrize("version", [1, 11, 13, 18])
def test_the_mean_of_nothing_is_left_open(version: int, free: Run) -> None:
    inputs, attributes = _given("ReduceMean", version, np.zeros((2, 0), F), (1,))
    assert free("ReduceMean", version, *inputs, **attributes).all()
    inputs, attributes = _given("ReduceMean", version, np.zeros((2, 1), F), (1,))
    assert not free("ReduceMean", version, *inputs, **attributes).any()


@table("version", [1, 11, 12, 13, 18, 20])
@table("row", [[NAN, 1, 2], [1, NAN, 2], [1, 2, NAN], [INF, NAN, -INF]])
def test_the_greatest_beside_a_nan_is_nan(version: int, row: list[float], run: Run) -> None:
    assert np.isnan(run("ReduceMax", version, np.array(row, F))).all()


@pytest.mark.parametrize("row", [[0.0, -0.0], [-0.0, 0.0], [-1.0, -0.0, 0.0]])
def test_of_zeros_one_is_the_greatest(row: list[float], run: Run) -> None:
    assert run("ReduceMax", 18, np.array(row, F), keepdims=0) == 0


def test_negative_zero_alone_is_the_greatest(run: Run, same: Run) -> None:
    same(run("ReduceMax", 18, np.array([-1, -0.0, -2], F), keepdims=0), np.array(-0.0, F))


def test_the_greatest_of_infinities(run: Run, same: Run) -> None:
    same(run("ReduceMax", 18, np.array([-INF, -INF], F), keepdims=0), np.array(-INF, F))
    same(run("ReduceMax", 18, np.array([1, INF], F), keepdims=0), np.array(INF, F))


def test_true_is_greater_than_false(run: Run, same: Run) -> None:
    x = np.array([[False, False], [True, False]])
    same(run("ReduceMax", 20, x, np.array([1]), keepdims=0), np.array([False, True]))


def test_sums_are_accumulated_in_row_major_order(run: Run, same: Run) -> None:
    x = np.array([[1e30, 1.0], [-1e30, 1.0]], F)
    same(run("ReduceSum", 13, x, np.array([1, 0]), keepdims=0), np.array(1.0, F))
    same(run("ReduceSum", 13, x, np.array([0]), keepdims=0), np.array([0.0, 2.0], F))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, F])
def test_sums_are_rounded_to_the_element_type_at_each_step(dtype: Any, run: Run, same: Run) -> None:
    x = np.random.default_rng(4).normal(size=200).astype(dtype)
    total = x[0]
    for value in x[1:]:
        total = dtype(float(total) + float(value))
    same(run("ReduceSum", 13, x, keepdims=0), np.array(total, dtype))


def test_sums_of_integers_wrap_around_and_means_truncate(run: Run, same: Run) -> None:
    x = np.array([2**31 - 1, 1, 1], np.int32)
    same(run("ReduceSum", 13, x, keepdims=0), np.array(-(2**31) + 1, np.int32))
    same(run("ReduceMean", 18, np.array([-1, -2, -4], np.int32), keepdims=0), np.array(-2, np.int32))
    same(run("ReduceMean", 18, np.array([1, 2, 4], np.uint64), keepdims=0), np.array(2, np.uint64))


@pytest.mark.parametrize("version", [1, 11, 13, 18])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_the_mean_of_integers_fits_though_their_sum_does_not(version: int, dtype: Any, run: Run, same: Run) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for numbers in ([high, high, 1], [low, low, high], [high] * 5, [low] * 5, [low, 1]):
        mean = int(Fraction(sum(map(int, numbers)), len(numbers)))
        same(run("ReduceMean", version, np.array(numbers, dtype), keepdims=0), np.array(mean, dtype))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_sum_that_is_accumulated_in_a_wider_type_is_within_the_bound(dtype: Any, run: Run, same: Run) -> None:
    """The definition adds in the element type, whatever leaves it on the way."""
    ones, great = np.ones(4096, dtype), np.full(4, 40000, dtype)
    same(run("ReduceMean", 13, ones, keepdims=0), np.array(0.5 if dtype is np.float16 else 0.0625, dtype))
    for op_type, version, x, wide in (
        ("ReduceMean", 13, ones, 1),
        ("ReduceMean", 18, great, 40000),
        ("ReduceSum", 13, ones, 4096),
        ("ReduceSumSquare", 13, ones, 4096),
        ("ReduceL1", 13, ones, 4096),
        ("ReduceL2", 13, np.full(4, 300, dtype), 600),
        ("ReduceLogSum", 13, ones, np.log(4096)),
        ("GlobalAveragePool", 22, ones.reshape(1, 1, -1), 1),
    ):
        named = {} if op_type == "GlobalAveragePool" else {"keepdims": 0}
        (bounds,) = bound.apply(Application(op_type, version, (x,), named, (True,))).values
        assert bounds.least.item() <= np.array(wide, dtype).astype(float) <= bounds.most.item()


@table(("op_type", "version"), ATTRIBUTE + INPUT)
def test_repeated_axes_and_what_is_no_axis_are_refused(op_type: str, version: int, refused: Run) -> None:
    x = np.ones((2, 3), F)
    for axes, word in (((0, 0), "twice"), ((0, -2), "twice"), ((2,), "axes"), ((-3,), "axes")):
        inputs, attributes = _given(op_type, version, x, axes)
        assert word in refused(op_type, version, *inputs, **attributes)
    assert "keepdims" in refused(op_type, version, x, keepdims=2)


@pytest.mark.parametrize(("op_type", "version"), INPUT)
def test_noop_with_empty_axes_is_0_or_1(op_type: str, version: int, refused: Run) -> None:
    assert "noop_with_empty_axes" in refused(op_type, version, np.ones(2, F), noop_with_empty_axes=2)
