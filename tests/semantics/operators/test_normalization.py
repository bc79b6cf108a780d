from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]


def _parameters(c: int, dtype: Any = F) -> list[Any]:
    rng = np.random.default_rng(1)
    scale, bias, mean = (rng.normal(size=c).astype(dtype) for _ in range(3))
    return [scale, bias, mean, rng.uniform(0.5, 2, size=c).astype(dtype)]


def _inference(x: Any, scale: Any, bias: Any, mean: Any, var: Any, epsilon: float = 1e-5) -> Any:
    """Y in the arithmetic of x, operation by operation."""
    t = x.dtype.type
    shape = (1, -1) + (1,) * (x.ndim - 2) if x.ndim > 1 else (1,)
    s, b, m, v = (p.reshape(shape) for p in (scale, bias, mean, var))
    return (x - m) / np.sqrt(v + t(F(epsilon))) * s + b


@table("version", [7, 9, 14, 15])
@table("shape", [(2, 3), (2, 3, 5), (2, 3, 5, 7), (0, 3, 2), (2, 3, 0)])
def test_inference_normalizes_each_channel(version: int, shape: Any, run: Run, same: Run) -> None:
    x = np.random.default_rng(2).normal(size=shape).astype(F)
    p = _parameters(3)
    same(run("BatchNormalization", version, x, *p), _inference(x, *p))
    found = run("BatchNormalization", version, x, *p, epsilon=float(F(0.25)))
    same(found, _inference(x, *p, epsilon=0.25))


@pytest.mark.parametrize("version", [9, 14, 15])
def test_a_tensor_with_one_axis_has_one_channel(version: int, run: Run, same: Run) -> None:
    x = np.array([NAN, -0.0, 3], F)
    p = _parameters(1)
    same(run("BatchNormalization", version, x, *p), _inference(x, *p))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_inference_rounds_to_the_common_type(dtype: Any, run: Run, same: Run) -> None:
    x = np.random.default_rng(2).normal(size=(4, 3)).astype(dtype)
    p = _parameters(3, dtype)
    same(run("BatchNormalization", 15, x, *p), _inference(x, *p).astype(dtype))


def test_inputs_of_different_types_are_computed_with_in_float(run: Run, same: Run) -> None:
    x = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float16)
    p = _parameters(3)
    same(run("BatchNormalization", 15, x, *p), _inference(x.astype(F), *p).astype(np.float16))


def test_batch_normalization_7_without_spatial_has_parameters_for_each_place(run: Run, refused: Run, same: Run) -> None:
    x = np.random.default_rng(2).normal(size=(4, 3, 2)).astype(F)
    p = [v.reshape(3, 2) for v in _parameters(6)]
    scale, bias, mean, var = p
    same(run("BatchNormalization", 7, x, *p, spatial=0), (x - mean) / np.sqrt(var + F(1e-5)) * scale + bias)
    assert "spatial" in refused("BatchNormalization", 7, x, *p)
    assert "spatial" in refused("BatchNormalization", 7, x, *_parameters(3), spatial=0)


@table("version", [14, 15])
@table("shape", [(2, 3), (2, 3, 5), (2, 3, 5, 7)])
def test_training_normalizes_with_the_statistics_of_the_batch(version: int, shape: Any, run: Run) -> None:
    x = np.random.default_rng(3).normal(size=shape).astype(F)
    scale, bias, mean, var = _parameters(3)
    y, running_mean, running_var = run(
        "BatchNormalization", version, x, scale, bias, mean, var, count=3, training_mode=1, momentum=float(F(0.75))
    )
    axes = (0, *range(2, x.ndim))
    m, v = x.astype(np.float64).mean(axis=axes), x.astype(np.float64).var(axis=axes)
    np.testing.assert_allclose(running_mean, mean * 0.75 + m * 0.25, rtol=1e-5)
    np.testing.assert_allclose(running_var, var * 0.75 + v * 0.25, rtol=1e-5)
    expected = _inference(x.astype(np.float64), *(p.astype(np.float64) for p in (scale, bias, m, v)))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_training_of_float16_accumulates_in_float_from_15_on(run: Run) -> None:
    x = np.full((4096, 1), 32, np.float16)
    p = _parameters(1, np.float16)
    mean = {v: run("BatchNormalization", v, x, *p, count=3, training_mode=1, momentum=0.0)[1] for v in (14, 15)}
    assert mean[15][0] == 32
    assert not np.isfinite(mean[14][0])


@pytest.mark.parametrize("version", [14, 15])
def test_inference_has_no_other_output(version: int, refused: Run) -> None:
    assert "only output" in refused("BatchNormalization", version, np.zeros((2, 3), F), *_parameters(3), count=3)


@pytest.mark.parametrize("version", [14, 15])
def test_training_needs_an_element_in_each_channel(version: int, refused: Run) -> None:
    x = np.zeros((0, 3), F)
    assert "each channel has an element" in refused("BatchNormalization", version, x, *_parameters(3), training_mode=1)


@pytest.mark.parametrize("version", [7, 9])
def test_versions_7_and_9_refuse_the_outputs_of_training(version: int, refused: Run) -> None:
    assert "only output" in refused("BatchNormalization", version, np.zeros((2, 3), F), *_parameters(3), count=5)


@pytest.mark.parametrize("version", [9, 14, 15])
def test_the_parameters_have_one_element_for_each_channel(version: int, refused: Run) -> None:
    sentence = "one element for each channel"
    assert sentence in refused("BatchNormalization", version, np.zeros((2, 4), F), *_parameters(3))
    assert sentence in refused("BatchNormalization", version, np.zeros(3, F), *_parameters(3))


def test_the_input_has_a_batch_axis_and_in_version_7_a_channel_axis(refused: Run) -> None:
    for version in (9, 14, 15):
        assert "batch axis" in refused("BatchNormalization", version, np.array(1, F), *_parameters(1))
    assert "channel axis" in refused("BatchNormalization", 7, np.zeros(3, F), *_parameters(1))


def test_a_negative_variance_gives_nan(run: Run) -> None:
    x, one = np.ones((1, 1), F), np.ones(1, F)
    assert np.isnan(run("BatchNormalization", 15, x, one, one, one, -one)).all()


@table("version", [1, 13])
@table("size", [1, 2, 3, 4, 5, 9])
@table("shape", [(2, 5), (1, 7, 2, 3), (1, 0, 2), (0, 3, 2)])
def test_lrn_divides_by_a_power_of_the_sum_of_squares_around(
    version: int, size: int, shape: Any, run: Run, same: Run
) -> None:
    x = np.random.default_rng(5).integers(-3, 4, shape).astype(F)
    squares = np.zeros_like(x)
    for c in range(shape[1]):
        low, high = max(0, c - (size - 1) // 2), min(shape[1] - 1, c + size // 2)
        squares[:, c] = (x[:, low : high + 1] ** 2).sum(axis=1)
    alpha, beta, bias = 0.5, 0.75, 2.0
    base = F(bias) + F(alpha / size) * squares
    same(
        run("LRN", version, x, size=size, alpha=alpha, beta=beta, bias=bias), x / (base.astype(float) ** beta).astype(F)
    )


def test_lrn_refuses_an_empty_window(refused: Run) -> None:
    assert "not empty" in refused("LRN", 13, np.zeros((1, 2), F), size=0)
