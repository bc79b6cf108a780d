from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tables import table

F, I64 = np.float32, np.int64
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4, 5)).astype(F)


@table("version", [11, 13])
@table("axis", [0, 1, -1])
def test_gather_elements_takes_along_an_axis(version: int, axis: int, run: Run, same: Check) -> None:
    indices = RNG.integers(-X.shape[axis], X.shape[axis], (2, 3, 4))
    places = list(np.ogrid[:2, :3, :4])
    places[axis % 3] = indices % X.shape[axis]
    same(run("GatherElements", version, X, indices, axis=axis), X[tuple(places)])


@pytest.mark.parametrize("version", [11, 13])
def test_gather_elements_refuses_what_names_no_place(version: int, refused: Run) -> None:
    assert "positions" in refused("GatherElements", version, X, np.full((1, 1, 1), 3))
    assert "positions" in refused("GatherElements", version, X, np.full((1, 1, 1), -4))
    assert "not longer" in refused("GatherElements", version, X, np.zeros((1, 5, 1), I64))
    assert "number of axes" in refused("GatherElements", version, X, np.zeros((1, 1), I64))
    assert "axis" in refused("GatherElements", version, X, np.zeros((1, 1, 1), I64), axis=3)


@pytest.mark.parametrize("version", [11, 12, 13])
def test_gather_nd_takes_slices_at_tuples(version: int, run: Run, refused: Run, same: Check) -> None:
    indices = np.array([[[0, 3], [-1, -4]], [[2, 1], [1, 0]]])
    same(run("GatherND", version, X, indices), X[indices[..., 0], indices[..., 1]])
    same(run("GatherND", version, X, np.array([1, -1, 2])), X[1, -1, 2])
    assert "tuple" in refused("GatherND", version, X, np.zeros((2, 4), I64))
    assert "tuple" in refused("GatherND", version, X, np.zeros((2, 0), I64))
    assert "positions" in refused("GatherND", version, X, np.array([[3, 0]]))


def test_gather_nd_12_has_batch_axes(run: Run, refused: Run, same: Check) -> None:
    indices = np.array([[1], [0], [-1]])
    same(run("GatherND", 12, X, indices, batch_dims=1), np.stack([X[0, 1], X[1, 0], X[2, -1]]))
    assert "same batch axes" in refused("GatherND", 12, X, np.zeros((2, 1), I64), batch_dims=1)
    assert "behind the batch axes" in refused("GatherND", 12, X, np.zeros((3, 1), I64), batch_dims=2)


def _scattered(x: Any, indices: Any, updates: Any, axis: int, f: Callable[[Any, Any], Any]) -> Any:
    y = x.copy()
    for j in np.ndindex(indices.shape):
        place = list(j)
        place[axis] = indices[j] % x.shape[axis]
        y[tuple(place)] = f(y[tuple(place)], updates[j])
    return y


SCATTERS = [("Scatter", 9), *(("ScatterElements", v) for v in (11, 13, 16, 18))]


@table(("op", "version"), SCATTERS)
@table("axis", [0, 2, -2])
def test_scatter_elements_replaces(op: str, version: int, axis: int, run: Run, same: Check) -> None:
    shape = [2, 3, 4]
    shape[axis] = 2
    order = np.array([1, -1]).reshape([2 if k == axis % 3 else 1 for k in range(3)])
    indices = np.broadcast_to(order, shape).copy()
    updates = RNG.normal(size=shape).astype(F)
    expected = _scattered(X, indices, updates, axis % 3, lambda _, new: new)
    same(run(op, version, X, indices, updates, axis=axis), expected)


@pytest.mark.parametrize(("op", "version"), SCATTERS)
def test_scatter_elements_refuses_a_place_named_twice(op: str, version: int, refused: Run) -> None:
    two = np.ones((2, 1), F)
    assert "replaced twice" in refused(op, version, np.zeros((3, 1), F), np.array([[1], [-2]]), two)
    assert "positions" in refused(op, version, np.zeros((3, 1), F), np.array([[1], [3]]), two)
    assert "for each update" in refused(op, version, np.zeros((3, 1), F), np.array([[1]]), two)


@table("version", [16, 18])
@table("reduction", ["add", "mul", "max", "min"])
def test_scatter_elements_reduces_in_ascending_order(
    version: int, reduction: str, run: Run, refused: Run, same: Check
) -> None:
    indices = RNG.integers(-3, 3, (6, 2, 5))
    updates = RNG.normal(size=indices.shape).astype(F)
    x = RNG.normal(size=(3, 4, 5)).astype(F)
    if version == 16 and reduction in ("max", "min"):
        assert "three words" in refused("ScatterElements", version, x, indices, updates, reduction=reduction)
        return
    f = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    found = run("ScatterElements", version, x, indices, updates, reduction=reduction)
    same(found, _scattered(x, indices, updates, 0, f))


@pytest.mark.parametrize("version", [9, 11, 28])
def test_one_hot_marks_the_place_of_an_index(version: int, run: Run, same: Check) -> None:
    indices, values = np.array([[0, 2], [3, 1]]), np.array([-1, 5], F)
    for axis in (-1, 0, 1, 2):
        found = run("OneHot", version, indices, np.array(3), values, axis=axis)
        marks = indices[..., None] == np.arange(3)
        same(found, np.moveaxis(np.where(marks, F(5), F(-1)), -1, axis))


def test_one_hot_9_does_not_count_from_the_end(run: Run, refused: Run, same: Check) -> None:
    values = np.array([0, 1], F)
    same(run("OneHot", 9, np.array([-1, -4]), np.array([3]), values), np.zeros((2, 3), F))
    same(run("OneHot", 11, np.array([-1, -4]), np.array([3]), values), np.array([[0, 0, 1], [0, 0, 0]], F))
    same(run("OneHot", 11, np.array([1]), np.array(2), values, axis=-2), np.array([[0], [1]], F))
    assert "axis" in refused("OneHot", 9, np.array([1]), np.array(2), values, axis=-2)


@pytest.mark.parametrize("version", [9, 11])
def test_one_hot_truncates_fractions(version: int, run: Run, refused: Run, same: Check) -> None:
    values = np.array([0, 1], F)
    same(run("OneHot", version, np.array([1.9, -0.5], F), np.array(2.5, F), values), np.array([[0, 1], [1, 0]], F))
    assert "negative" in refused("OneHot", version, np.array([1]), np.array(-1), values)
    assert "is a number" in refused("OneHot", version, np.array([1]), np.array(np.nan, F), values)
    assert run("OneHot", version, np.array([1]), np.array(-0.5, F), values).shape == (1, 0)


@pytest.mark.parametrize("version", [9, 11])
def test_one_hot_leaves_open_which_position_no_integer_names(version: int, run: Run, free: Run, same: Check) -> None:
    values = np.array([0, 1], F)
    indices = np.array([1, np.nan, 1e30, np.inf], F)
    assert free("OneHot", version, indices, np.array(2), values).tolist() == [[False] * 2, *[[True] * 2] * 3]
    assert not free("OneHot", version, np.array([1, 7, -9]), np.array(2), values).any()
    large = np.array([1, 2**63, 2**64 - 1], np.uint64)
    same(run("OneHot", version, large, np.array(2), values), np.array([[0, 1], [0, 0], [0, 0]], F))


@pytest.mark.parametrize("version", [6, 13])
def test_tile_is_that_of_numpy(version: int, run: Run, refused: Run, same: Check) -> None:
    same(run("Tile", version, X, np.array([2, 1, 3])), np.tile(X, (2, 1, 3)))
    same(run("Tile", version, X, np.array([2, 0, 3])), np.tile(X, (2, 0, 3)))
    same(run("Tile", version, np.array(3, F), np.zeros(0, I64)), np.array(3, F))
    assert "for each axis" in refused("Tile", version, X, np.array([2, 1]))
    assert "not negative" in refused("Tile", version, X, np.array([2, 1, -1]))


def _depth_to_space(x: Any, s: int, mode: str) -> Any:
    b, c, h, w = x.shape
    if mode == "DCR":
        t = x.reshape(b, s, s, c // s**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        t = x.reshape(b, c // s**2, s, s, h, w).transpose(0, 1, 4, 2, 5, 3)
    return t.reshape(b, c // s**2, h * s, w * s)


IMAGE = RNG.normal(size=(2, 12, 3, 5)).astype(F)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_and_back(mode: str, run: Run, same: Check) -> None:
    for version in (11, 13, 28):
        found = run("DepthToSpace", version, IMAGE, blocksize=2, mode=mode)
        same(found, _depth_to_space(IMAGE, 2, mode))
    same(run("SpaceToDepth", 28, found, blocksize=2, mode=mode), IMAGE)


def test_the_first_versions_have_one_mode(run: Run, same: Check) -> None:
    found = run("DepthToSpace", 1, IMAGE, blocksize=2)
    same(found, _depth_to_space(IMAGE, 2, "DCR"))
    for version in (1, 13):
        same(run("SpaceToDepth", version, found, blocksize=2), IMAGE)


def test_blocks_divide_what_they_rearrange(refused: Run) -> None:
    for version in (1, 11, 28):
        assert "divided" in refused("DepthToSpace", version, IMAGE, blocksize=5)
        assert "not empty" in refused("DepthToSpace", version, IMAGE, blocksize=0)
    for version in (1, 28):
        assert "divided" in refused("SpaceToDepth", version, IMAGE, blocksize=2)
    assert "two words" in refused("DepthToSpace", 11, IMAGE, blocksize=2, mode="RCD")
    assert "two words" in refused("SpaceToDepth", 28, IMAGE, blocksize=1, mode="RCD")


@table("version", [11, 14])
@table("axis", [0, 1, -1])
def test_cum_sum_runs_along_an_axis(version: int, axis: int, run: Run, same: Check) -> None:
    at = np.array(axis, np.int32)
    forward = np.cumsum(X, axis, dtype=F)
    backward = np.flip(np.cumsum(np.flip(X, axis), axis, dtype=F), axis)
    zero = np.zeros_like(X.take([0], axis))
    same(run("CumSum", version, X, at), forward)
    same(run("CumSum", version, X, at, reverse=1), backward)
    rest = range(X.shape[axis] - 1)
    same(run("CumSum", version, X, at, exclusive=1), np.concatenate([zero, forward.take(rest, axis)], axis))
    rest = range(1, X.shape[axis])
    found = run("CumSum", version, X, at, exclusive=1, reverse=1)
    same(found, np.concatenate([backward.take(rest, axis), zero], axis))


def test_cum_sum_special_cases(run: Run, refused: Run, same: Check) -> None:
    same(run("CumSum", 14, np.zeros((0, 2), F), np.array(0)), np.zeros((0, 2), F))
    same(run("CumSum", 14, np.array([1, np.nan, 2], F), np.array([0])), np.array([1, np.nan, np.nan], F))
    same(run("CumSum", 14, np.array([2**31 - 1, 1], np.int32), np.array(0)), np.array([2**31 - 1, -(2**31)], np.int32))
    assert "axis" in refused("CumSum", 14, X, np.array(3))
    assert "scalar" in refused("CumSum", 14, X, np.array([0, 1]))
    assert "0 or 1" in refused("CumSum", 14, X, np.array(0), reverse=2)
