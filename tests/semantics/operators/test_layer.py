from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F, D = np.float32, np.float64
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(23)
X = RNG.normal(size=(2, 6, 3, 4)).astype(F)


def _close(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found.astype(D), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("axis", [0, 1, -1, 3, -4])
def test_layer_normalization_standardizes_the_axes_from_one_on(axis: int, run: Run) -> None:
    axes = tuple(range(axis % 4, 4))
    scale, bias = (RNG.normal(size=X.shape[axis % 4 :]).astype(F) for _ in range(2))
    x = X.astype(D)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + 1e-5)
    y, found_mean, deviation = run("LayerNormalization", 17, X, scale, bias, count=3, axis=axis)
    _close(y, normal * scale + bias)
    _close(found_mean, mean)
    _close(deviation, 1 / np.sqrt(variance + 1e-5))
    _close(run("LayerNormalization", 17, X, scale, axis=axis), normal * scale)


def test_layer_normalization_is_exact_in_stash_type(run: Run, refused: Run, same: Check) -> None:
    x = np.array([[1, 2049, 3, 2051]], np.float16)
    y, mean, _ = run("LayerNormalization", 17, x, np.ones(4, np.float16), count=3)
    assert (y.dtype, mean.dtype) == (np.float16, F)
    same(mean, np.array([[1026]], F))
    _, mean, _ = run("LayerNormalization", 17, x, np.ones(4, np.float16), count=3, stash_type=16)
    assert mean.dtype == ml_dtypes.bfloat16
    assert "float or bfloat16" in refused("LayerNormalization", 17, x, np.ones(4, np.float16), stash_type=11)


def test_layer_normalization_refuses_what_does_not_broadcast(run: Run, refused: Run) -> None:
    assert "Scale" in refused("LayerNormalization", 17, X, np.ones(3, F))
    assert "B " in refused("LayerNormalization", 17, X, np.ones(4, F), np.ones((1, 1, 1, 1, 4), F))
    assert "axis" in refused("LayerNormalization", 17, X, np.ones(4, F), axis=4)
    assert run("LayerNormalization", 17, X, np.ones((3, 1), F)).shape == X.shape


def test_layer_normalization_special_cases(run: Run) -> None:
    x = np.array([[1, np.nan], [np.inf, 1], [5, 5]], F)
    found = run("LayerNormalization", 17, x, np.ones(2, F))
    assert np.isnan(found[:2]).all()
    assert not found[2].any()
    y, mean, _ = run("LayerNormalization", 17, np.zeros((2, 0), F), np.ones(1, F), count=3)
    assert y.shape == (2, 0)
    assert np.isnan(mean).all()
    assert mean.shape == (2, 1)


def test_minus_zero_survives_without_bias(run: Run, same: Check) -> None:
    same(run("LayerNormalization", 17, np.array([3, 3], F), np.array([-1, 1], F)), np.array([-0.0, 0], F))


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_rms_normalization_divides_by_the_root_of_the_mean_square(axis: int, run: Run) -> None:
    axes = tuple(range(axis % 4, 4))
    scale = RNG.normal(size=X.shape[axis % 4 :]).astype(F)
    root = np.sqrt((X.astype(D) ** 2).mean(axes, keepdims=True) + 1e-5)
    _close(run("RMSNormalization", 23, X, scale, axis=axis), X / root * scale)


def test_rms_normalization_gives_the_type_of_scale(run: Run, refused: Run) -> None:
    assert run("RMSNormalization", 23, X, np.ones(4, np.float16)).dtype == np.float16
    assert "stash_type" in refused("RMSNormalization", 23, X, np.ones(4, F), stash_type=7)
    assert "scale" in refused("RMSNormalization", 23, X, np.ones(5, F))


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_normalization_standardizes_groups_of_channels(groups: int, run: Run) -> None:
    scale, bias = (RNG.normal(size=6).astype(F) for _ in range(2))
    x = X.astype(D).reshape(2, groups, -1)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    expected = normal.reshape(X.shape) * scale.reshape(6, 1, 1) + bias.reshape(6, 1, 1)
    _close(run("GroupNormalization", 21, X, scale, bias, num_groups=groups), expected)


def test_group_normalization_18_scales_groups_in_the_type_of_its_input(run: Run, refused: Run) -> None:
    scale, bias = np.array([2, -3], F), np.array([10, 20], F)
    x = X.astype(D).reshape(2, 2, -1)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    expected = (normal * scale.reshape(2, 1) + bias.reshape(2, 1)).reshape(X.shape)
    _close(run("GroupNormalization", 18, X, scale, bias, num_groups=2), expected)
    large = np.array([[[60000, 60000]]], np.float16)
    one = np.ones(1, np.float16)
    found = run("GroupNormalization", 18, large, one, one, num_groups=1)
    assert found.dtype == np.float16
    assert np.isnan(found).all(), "the sum is infinite in float16"
    assert "each group" in refused("GroupNormalization", 18, X, np.ones(6, F), np.ones(6, F), num_groups=2)


def test_group_normalization_refuses_unfit_groups(refused: Run) -> None:
    one = np.ones(6, F)
    for groups in (0, -1, 4, 12):
        assert "groups" in refused("GroupNormalization", 21, X, one, one, num_groups=groups)
    assert "stash_type" in refused("GroupNormalization", 21, X, one, one, num_groups=2, stash_type=6)


@pytest.mark.parametrize("version", [6, 22])
def test_instance_normalization_standardizes_each_channel(version: int, run: Run) -> None:
    scale, bias = (RNG.normal(size=6).astype(F) for _ in range(2))
    x = X.astype(D)
    normal = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 0.25)
    expected = normal * scale.reshape(6, 1, 1) + bias.reshape(6, 1, 1)
    _close(run("InstanceNormalization", version, X, scale, bias, epsilon=0.25), expected)


@table("version", [1, 22])
@table("p", [1, 2])
@table("axis", [0, 1, -1, -2])
def test_lp_normalization_divides_by_the_norm(version: int, p: int, axis: int, run: Run) -> None:
    norm = np.linalg.norm(X.astype(D), p, axis, keepdims=True)
    _close(run("LpNormalization", version, X, p=p, axis=axis), X / norm)


@pytest.mark.parametrize("version", [1, 22])
def test_lp_normalization_special_cases(version: int, run: Run, refused: Run, same: Check) -> None:
    same(run("LpNormalization", version, np.array([[0, -0.0], [3, -4]], F)), np.array([[0, 0], [0.6, -0.8]], F))
    assert np.isnan(run("LpNormalization", version, np.array([np.nan, 1], F))).all()
    same(run("LpNormalization", version, np.zeros((2, 0), F)), np.zeros((2, 0), F))
    assert "1 or 2" in refused("LpNormalization", version, X, p=3)
    assert "axis" in refused("LpNormalization", version, X, axis=4)
