from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
SPECIAL = np.array([NAN, -0.0, 0.0, -1.5, 2.5, INF, -INF, 1e-45], F)
Run = Callable[..., Any]


@pytest.mark.parametrize("version", [6, 13, 14])
def test_relu_keeps_nan_and_negative_zero(version: int, run: Run, same: Run) -> None:
    same(run("Relu", version, SPECIAL), np.array([NAN, -0.0, 0.0, 0.0, 2.5, INF, 0.0, 1e-45], F))


def test_relu_of_integers_is_an_integer(run: Run, same: Run) -> None:
    same(run("Relu", 14, np.array([-128, -1, 0, 127], np.int8)), np.array([0, 0, 0, 127], np.int8))


@pytest.mark.parametrize("version", [6, 13])
def test_sigmoid_of_special_values(version: int, run: Run, same: Run) -> None:
    x = np.array([NAN, INF, -INF, 0.0, -0.0, -90.0], F)
    same(run("Sigmoid", version, x), np.array([NAN, 1.0, 0.0, 0.5, 0.5, 0.0], F))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_sigmoid_rounds_each_operation_to_the_element_type(dtype: Any, run: Run, same: Run) -> None:
    x = np.linspace(-9, 9, 37).astype(dtype)
    e = np.exp(-x.astype(np.float64)).astype(dtype)
    same(run("Sigmoid", 13, x), (dtype(1) / (dtype(1) + e)).astype(dtype))


@pytest.mark.parametrize("version", [6, 13])
def test_tanh_of_special_values(version: int, run: Run, same: Run) -> None:
    x = np.array([NAN, INF, -INF, 0.0, -0.0, 1e-45], F)
    same(run("Tanh", version, x), np.array([NAN, 1.0, -1.0, 0.0, -0.0, 1e-45], F))


@pytest.mark.parametrize("version", [11, 12, 13])
def test_clip_keeps_nan_and_negative_zero(version: int, run: Run, same: Run) -> None:
    expected = np.array([NAN, -0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1e-45], F)
    same(run("Clip", version, SPECIAL, np.array(0, F), np.array(1, F)), expected)
    same(run("Clip", 6, SPECIAL, min=0.0, max=1.0), expected)


@pytest.mark.parametrize("version", [11, 12, 13])
def test_clip_with_min_above_max_gives_max(version: int, run: Run, same: Run) -> None:
    x = np.array([NAN, 0.0, 2.0, 4.0], F)
    expected = np.array([NAN, 1.0, 1.0, 1.0], F)
    same(run("Clip", version, x, np.array(3, F), np.array(1, F)), expected)
    same(run("Clip", 6, x, min=3.0, max=1.0), expected)


def test_a_bound_that_is_nan_does_not_clip(run: Run, same: Run) -> None:
    same(run("Clip", 13, SPECIAL[:5], np.array(NAN), np.array(1, F)), np.array([NAN, -0.0, 0.0, -1.5, 1.0], F))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_clip_without_bounds_limits_to_the_finite_numbers(dtype: Any, run: Run, same: Run) -> None:
    limit = ml_dtypes.finfo(dtype).max
    x = np.array([np.nan, np.inf, -np.inf, 3.0], dtype)
    same(run("Clip", 13, x), np.array([np.nan, limit, -limit, 3.0], dtype))


def test_clip_6_without_bounds_limits_to_the_range_of_float(run: Run, same: Run) -> None:
    limit = float(np.finfo(F).max)
    same(run("Clip", 6, np.array([np.inf, -1e300])), np.array([limit, -limit]))
    same(run("Clip", 6, np.array([np.inf], np.float16)), np.array([65504], np.float16))


def test_clip_of_integers_with_one_bound(run: Run, same: Run) -> None:
    x = np.array([-128, -3, 0, 127], np.int8)
    same(run("Clip", 12, x, np.array(-3, np.int8)), np.array([-3, -3, 0, 127], np.int8))
    same(run("Clip", 13, x, None, np.array(-4, np.int8)), np.array([-128, -4, -4, -4], np.int8))


def test_clip_refuses_a_bound_that_is_no_scalar(refused: Run) -> None:
    assert "min is a scalar" in refused("Clip", 13, SPECIAL, np.zeros(1, F))
    assert "max is a scalar" in refused("Clip", 13, SPECIAL, None, np.zeros(1, F))


@table("op_type", ["Softmax", "LogSoftmax"])
@table("row", [[-INF, -INF, -INF], [1, INF, 2], [1, NAN, 2], [INF, INF, INF]])
def test_softmax_of_a_row_that_has_no_finite_maximum_is_nan(op_type: str, row: list[float], run: Run) -> None:
    for version in (1, 11, 13):
        assert np.isnan(run(op_type, version, np.array([row], F))).all()


def test_softmax_gives_0_for_the_negative_infinity_beside_numbers(run: Run, same: Run) -> None:
    same(run("Softmax", 13, np.array([-INF, 7.0, 7.0], F)), np.array([0.0, 0.5, 0.5], F))
    same(run("LogSoftmax", 13, np.array([-INF, 7.0], F)), np.array([-INF, 0.0], F))


def test_softmax_does_not_overflow_for_large_numbers(run: Run, same: Run) -> None:
    same(run("Softmax", 13, np.array([1e30, 1e30], F)), np.array([0.5, 0.5], F))


def test_log_softmax_does_not_underflow(run: Run, same: Run) -> None:
    same(run("LogSoftmax", 13, np.array([0.0, 1000.0], F)), np.array([-1000.0, 0.0], F))


@table("version", [1, 11])
@table("axis", [0, 1, 2, -1, -3])
def test_softmax_before_13_takes_all_axes_from_axis_on_together(version: int, axis: int, run: Run) -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 5)).astype(F)
    rows = x.reshape(int(np.prod(x.shape[: axis % 3])), -1).astype(np.float64)
    expected = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(run("Softmax", version, x, axis=axis), expected.reshape(x.shape), rtol=2e-6)
    found = run("LogSoftmax", version, x, axis=axis)
    np.testing.assert_allclose(found, np.log(expected).reshape(x.shape), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_softmax_13_takes_one_axis(axis: int, run: Run) -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 5)).astype(F)
    wide = x.astype(np.float64)
    expected = np.exp(wide) / np.exp(wide).sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(run("Softmax", 13, x, axis=axis), expected, rtol=2e-6)
    np.testing.assert_allclose(run("LogSoftmax", 13, x, axis=axis), np.log(expected), rtol=1e-5, atol=1e-6)


def test_the_default_axis_of_softmax_is_the_last_from_13_on_and_1_before(run: Run, same: Run) -> None:
    x = np.zeros((1, 2, 4), F)
    same(run("Softmax", 13, x), np.full((1, 2, 4), 0.25, F))
    same(run("Softmax", 11, x), np.full((1, 2, 4), 0.125, F))


@table("version", [1, 11, 13])
@table("shape", [(0, 3), (2, 0), (1, 0, 3)])
def test_softmax_of_an_empty_tensor_is_empty(version: int, shape: tuple[int, ...], run: Run, same: Run) -> None:
    same(run("Softmax", version, np.zeros(shape, F), axis=1), np.zeros(shape, F))
    same(run("LogSoftmax", version, np.zeros(shape, F), axis=1), np.zeros(shape, F))


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
def test_softmax_refuses_an_axis_that_is_none(op_type: str, refused: Run) -> None:
    for version in (1, 11, 13):
        assert "axis" in refused(op_type, version, np.zeros((2, 3), F), axis=2)
        assert "axis" in refused(op_type, version, np.zeros((2, 3), F), axis=-3)
    assert "axis" in refused(op_type, 13, np.array(1, F))


@pytest.mark.parametrize(("version", "dtype"), [(7, F), (10, np.bool_), (12, np.bool_), (13, np.bool_), (22, np.bool_)])
def test_dropout_in_inference_mode_is_the_input(version: int, dtype: Any, run: Run, same: Run) -> None:
    output, mask = run("Dropout", version, SPECIAL, count=2)
    same(output, SPECIAL)
    assert mask.shape == SPECIAL.shape
    assert mask.dtype == dtype
    if version >= 12:
        assert mask.all()
        same(run("Dropout", version, SPECIAL, np.array(0.9, F), np.array(False)), SPECIAL)


@pytest.mark.parametrize("version", [12, 13, 22])
def test_dropout_refuses_ratios_that_are_none_in_training_mode(version: int, refused: Run) -> None:
    for ratio in (1, -0.5, np.nan, np.inf):
        assert "ratio is at least 0" in refused("Dropout", version, SPECIAL, np.array(ratio, F), np.array(True))


def test_dropout_refuses_inputs_that_are_no_scalars(refused: Run) -> None:
    assert "ratio is a scalar" in refused("Dropout", 13, SPECIAL, np.zeros(1, F))
    assert "training_mode is a scalar" in refused("Dropout", 13, SPECIAL, None, np.zeros(1, bool))


@pytest.mark.parametrize("version", [12, 13, 22])
def test_dropout_of_ratio_0_is_the_input_in_training_mode_too(version: int, run: Run, same: Run) -> None:
    output, mask = run("Dropout", version, SPECIAL, np.array(0, F), np.array(True), count=2)
    same(output, SPECIAL)
    assert mask.all()
