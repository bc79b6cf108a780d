from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from admitted import admits
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
OLD = {"ReduceMin": (1, 11, 12, 13)} | dict.fromkeys(
    ("ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"), (1, 11, 13)
)
NEW = dict.fromkeys(OLD, (18,)) | {"ReduceMin": (18, 20), "ReduceLogSum": (18, 28), "ReduceLogSumExp": (18, 28)}
EXACT = {
    "ReduceMin": np.min, "ReduceProd": np.prod, "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)), "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
}  # fmt: skip
EMPTY = {
    "ReduceMin": INF, "ReduceProd": 1, "ReduceL1": 0, "ReduceL2": 0, "ReduceLogSum": -INF, "ReduceLogSumExp": -INF,
    "ReduceSumSquare": 0,
}  # fmt: skip
ALL = [(name, version) for name in OLD for version in (*OLD[name], *NEW[name])]


def f(*values: float) -> Any:
    return np.array(values, F)


def reduce(run: Run, op_type: str, version: int, x: Any, axes: Any = None, **attributes: Any) -> Any:
    """The reduction, with axes as an attribute or an input, as the version has them."""
    if axes is None:
        return run(op_type, version, x, **attributes)
    if version < 18:
        return run(op_type, version, x, axes=tuple(axes), **attributes)
    return run(op_type, version, x, np.array(axes, np.int64), **attributes)


@table(("op_type", "version"), ALL)
@table("axes", [None, (0,), (2, 0), (-1,), (1, -1)])
@table("keepdims", [0, 1])
def test_the_shape_and_the_value_along_axes(op_type: str, version: int, axes: Any, keepdims: int, run: Run) -> None:
    x = np.linspace(0.5, 2, 30).reshape(2, 3, 5)
    found = reduce(run, op_type, version, x, axes, keepdims=keepdims)
    expected = np.asarray(EXACT[op_type](x, axis=axes, keepdims=bool(keepdims)))
    assert found.shape == expected.shape
    assert (np.abs(found - expected) <= 64 * 2.0**-53 * np.maximum(np.abs(expected), 1)).all()


@table(("op_type", "version"), ALL)
def test_the_value_of_no_elements(op_type: str, version: int, run: Run, same: Run) -> None:
    for dtype in (F, np.float64, np.float16):
        x = np.zeros((2, 0, 3), dtype)
        same(reduce(run, op_type, version, x, (1,)), np.full((2, 1, 3), EMPTY[op_type], dtype))
        same(reduce(run, op_type, version, x, keepdims=0), np.array(EMPTY[op_type], dtype))


@table(("op_type", "version"), [(n, v) for n, v in ALL if v >= 18])
def test_without_axes_along_none_where_noop_with_empty_axes_is_1(
    op_type: str, version: int, run: Run, same: Run
) -> None:
    x = f(4, 1)
    found = run(op_type, version, x, np.zeros(0, np.int64), noop_with_empty_axes=1)
    same(found, {"ReduceLogSum": np.log(x), "ReduceSumSquare": x * x}.get(op_type, x))
    same(run(op_type, version, x, noop_with_empty_axes=1), found)
    assert run(op_type, version, x, np.zeros(0, np.int64), keepdims=0).shape == ()


@table(("op_type", "version"), [(n, v) for n, v in ALL if v < 18])
def test_an_empty_list_of_axes_means_all_before_version_18(op_type: str, version: int, run: Run) -> None:
    assert run(op_type, version, np.ones((2, 3), F), axes=(), keepdims=0).shape == ()


@table(("op_type", "version"), ALL)
def test_axes_that_are_none_or_repeated_are_refused(op_type: str, version: int, refused: Run) -> None:
    x = np.ones((2, 3), F)
    assert "axes lists axes" in reduce(refused, op_type, version, x, (2,))
    assert "axes lists axes" in reduce(refused, op_type, version, x, (-3,))
    assert "twice" in reduce(refused, op_type, version, x, (1, -1))
    assert "keepdims" in reduce(refused, op_type, version, x, (1,), keepdims=2)
    if version >= 18:
        assert "noop_with_empty_axes" in reduce(refused, op_type, version, x, (1,), noop_with_empty_axes=2)


@pytest.mark.parametrize("version", [1, 11, 13, 18])
def test_products_sums_and_absolute_values_of_integers_wrap_around(version: int, run: Run, same: Run) -> None:
    x = np.array([-(2**31), 3, -5], np.int32)
    same(reduce(run, "ReduceProd", version, x, keepdims=0), np.array(-(2**31), np.int32))
    same(reduce(run, "ReduceL1", version, x, keepdims=0), np.array(-(2**31) + 8, np.int32))
    same(reduce(run, "ReduceSumSquare", version, x, keepdims=0), np.array(34, np.int32))


@pytest.mark.parametrize("version", [1, 13, 18])
def test_roots_and_logarithms_of_integers_are_truncated(version: int, run: Run, same: Run) -> None:
    x = np.array([1, 2, 3], np.int64)
    same(reduce(run, "ReduceL2", version, x), np.array([3], np.int64))
    same(reduce(run, "ReduceLogSum", version, x * 4), np.array([3], np.int64))
    same(reduce(run, "ReduceLogSumExp", version, x * 1000), np.array([3000], np.int64))
    big = np.array([2**31], np.uint64)
    same(reduce(run, "ReduceL2", version, big), big)


@pytest.mark.parametrize("version", [1, 13, 18])
def test_any_integer_is_allowed_where_the_sum_has_no_root_or_logarithm(version: int, free: Run) -> None:
    wrapped, zero = np.array([46341], np.int32), np.array([1, -1], np.int32)
    assert reduce(free, "ReduceL2", version, wrapped).all()
    assert reduce(free, "ReduceLogSum", version, zero).all()
    assert reduce(free, "ReduceLogSumExp", version, np.zeros((1, 0), np.int32), (1,)).all()
    assert not reduce(free, "ReduceL2", version, zero).any()


@pytest.mark.parametrize("version", [1, 13, 18, 28])
def test_a_logarithm_of_a_sum_of_exponentials_does_not_overflow(version: int, run: Run, same: Run) -> None:
    x = np.array([[1000, 1000], [-1000, -1000], [5, 5]], F)
    found = reduce(run, "ReduceLogSumExp", version, x, (1,), keepdims=0)
    same(found, (x[:, 0] + np.log(F(2))).astype(F))
    x = np.array([[INF, 1], [-INF, -INF], [-INF, 1], [NAN, INF], [INF, INF]], F)
    same(reduce(run, "ReduceLogSumExp", version, x, (1,), keepdims=0), f(INF, -INF, 1, NAN, INF))


@pytest.mark.parametrize("version", [1, 18, 28])
def test_the_logarithm_of_a_negative_sum_is_nan(version: int, run: Run, same: Run) -> None:
    same(reduce(run, "ReduceLogSum", version, f(1, -2)), f(NAN))
    same(reduce(run, "ReduceLogSum", version, f(2, -2)), f(-INF))


@pytest.mark.parametrize("op_type", ["ReduceLogSum", "ReduceLogSumExp"])
def test_integers_are_gone_in_version_28(op_type: str) -> None:
    assert admits(op_type, 18, np.int32)
    assert not admits(op_type, 28, np.int32)


@pytest.mark.parametrize("version", [1, 13, 18])
def test_terms_are_accumulated_in_row_major_order(version: int, run: Run, same: Run) -> None:
    x = np.array([[1e8, 1], [1, 1]], F)
    same(reduce(run, "ReduceL1", version, x, keepdims=0), np.array(1e8, F))
    same(reduce(run, "ReduceL1", version, x[::-1, ::-1], keepdims=0), np.array(F(3) + F(1e8), F))
    same(reduce(run, "ReduceProd", version, f(1e30, 1e30, 1e-30), keepdims=0), np.array(INF))
    same(reduce(run, "ReduceProd", version, f(1e-30, 1e30, 2), keepdims=0), (F(1e-30) * F(1e30)) * F(2))
    half = np.array([0.3, 0.7], ml_dtypes.bfloat16)
    if admits("ReduceSumSquare", version, half.dtype):
        squares = half * half
        same(reduce(run, "ReduceSumSquare", version, half, keepdims=0), squares[0] + squares[1])


# ---- ReduceMin --------------------------------------------------------------------------------


@table("version", [1, 11, 12, 13, 18, 20])
def test_the_least_element_is_nan_where_one_is(version: int, run: Run, same: Run) -> None:
    x = np.array([[1, NAN, 2], [3, -INF, 2], [INF, INF, INF]], F)
    same(reduce(run, "ReduceMin", version, x, (1,), keepdims=0), f(NAN, -INF, INF))


@table("version", [1, 13, 18, 20])
@table("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_the_least_of_no_integers_is_the_greatest_of_the_type(dtype: Any, version: int, run: Run, same: Run) -> None:
    same(reduce(run, "ReduceMin", version, np.zeros((0, 2), dtype), (0,)), np.full((1, 2), np.iinfo(dtype).max, dtype))
    x = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    same(reduce(run, "ReduceMin", version, x), x[1:])


def test_true_is_greater_than_false_in_version_20(run: Run, same: Run) -> None:
    x = np.array([[True, False], [True, True]])
    same(reduce(run, "ReduceMin", 20, x, (1,), keepdims=0), np.array([False, True]))
    same(reduce(run, "ReduceMin", 20, x[:0], (0,), keepdims=0), np.array([True, True]))
    assert not admits("ReduceMin", 18, np.bool_)


# ---- ArgMax and ArgMin ------------------------------------------------------------------------

ARGS = [(name, version) for name in ("ArgMax", "ArgMin") for version in (1, 11, 12, 13)]


@table(("op_type", "version"), ARGS)
def test_the_first_of_several_is_meant(op_type: str, version: int, run: Run, same: Run) -> None:
    x = f(1, 3, 3, 1, 2) if op_type == "ArgMax" else f(3, 1, 1, 3, 2)
    same(run(op_type, version, x), np.array([1]))
    same(run(op_type, version, f(-0.0, 0.0, -0.0)), np.array([0]))


@table(("op_type", "version"), ARGS)
def test_a_nan_counts_as_the_one_that_is_looked_for(op_type: str, version: int, run: Run, same: Run) -> None:
    same(run(op_type, version, f(INF, 1, NAN, -INF, NAN), keepdims=0), np.array(2))


@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("version", [12, 13])
def test_the_last_of_several_is_meant_where_select_last_index_is_1(
    op_type: str, version: int, run: Run, same: Run
) -> None:
    x = f(1, 3, 3, 1, 2) if op_type == "ArgMax" else f(3, 1, 1, 3, 2)
    same(run(op_type, version, x, select_last_index=1), np.array([2]))
    same(run(op_type, version, f(-0.0, 0.0, -0.0), select_last_index=1), np.array([2]))
    same(run(op_type, version, f(INF, 1, NAN, -INF, NAN, 2), select_last_index=1), np.array([4]))


@table(("op_type", "version"), ARGS)
@table("axis", [0, 1, 2, -1, -3])
@table("keepdims", [0, 1])
def test_positions_along_an_axis(op_type: str, version: int, axis: int, keepdims: int, run: Run, same: Run) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (2, 3, 5)).astype(np.int32)
    find = np.argmax if op_type == "ArgMax" else np.argmin
    same(run(op_type, version, x, axis=axis, keepdims=keepdims), find(x, axis=axis, keepdims=bool(keepdims)))
    same(run(op_type, version, x), find(x, axis=0, keepdims=True))


@table(("op_type", "version"), ARGS)
@table("dtype", [np.uint8, np.int8, np.uint64, np.int64, np.float16])
def test_positions_of_numbers_of_every_kind(op_type: str, version: int, dtype: Any, run: Run, same: Run) -> None:
    low, high = (0, 60000) if dtype is np.float16 else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = np.array([1, high, low, high, low], dtype)
    same(run(op_type, version, x), np.array([1 if op_type == "ArgMax" else 2]))


@table(("op_type", "version"), ARGS)
def test_an_axis_without_elements_has_no_position(op_type: str, version: int, run: Run, refused: Run) -> None:
    expected = "The input is not empty" if version == 11 else "The axis has elements"
    assert expected in refused(op_type, version, np.zeros((2, 0), F), axis=1)
    if version == 11:
        assert expected in refused(op_type, version, np.zeros((0, 2), F), axis=1)
    else:
        assert run(op_type, version, np.zeros((0, 2), F), axis=1).shape == (0, 1)


@table(("op_type", "version"), ARGS)
def test_attributes_of_positions_have_their_range(op_type: str, version: int, refused: Run) -> None:
    x = np.ones((2, 3), F)
    assert "axis is an axis" in refused(op_type, version, x, axis=2)
    assert "axis is an axis" in refused(op_type, version, x, axis=-3)
    assert "axis is an axis" in refused(op_type, version, np.array(1, F))
    assert "keepdims" in refused(op_type, version, x, keepdims=2)
    if version >= 12:
        assert "select_last_index" in refused(op_type, version, x, select_last_index=2)


def test_the_norm_of_bfloat16_is_rounded_to_it_at_each_step(run: Run, same: Run) -> None:
    x = np.array([0.3, 0.7], ml_dtypes.bfloat16)
    total = x[0] * x[0] + x[1] * x[1]
    same(run("ReduceL2", 18, x, keepdims=0), np.array(math.sqrt(float(total))).astype(F).astype(ml_dtypes.bfloat16))
