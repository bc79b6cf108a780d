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
TOPK = [1, 10, 11, 24]
SCATTER = [11, 13, 16, 18]


def _top(run: Run, version: int, x: Any, k: int, **attributes: Any) -> Any:
    if version == 1:
        return run("TopK", 1, x, count=2, k=k, **attributes)
    return run("TopK", version, x, np.array([k], np.int64), count=2, **attributes)


def _expected(x: Any, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
    """A stable sort by a key for which a NaN is the greatest."""
    at, sign = np.empty(x.shape, np.int64), -1 if largest else 1
    for index in np.ndindex(*(1 if j == axis % x.ndim else s for j, s in enumerate(x.shape))):
        line = tuple(slice(None) if j == axis % x.ndim else i for j, i in enumerate(index))
        keys = [(sign * int(np.isnan(v)), 0.0 if np.isnan(v) else sign * float(v)) for v in x[line]]
        at[line] = sorted(range(len(keys)), key=keys.__getitem__)
    at = np.take(at, range(k), axis=axis)
    return np.take_along_axis(x, at, axis), at


@table("version", TOPK)
@table("axis", [0, 1, -1])
def test_the_greatest_elements_in_descending_order(version: int, axis: int, run: Run, same: Run) -> None:
    x = np.random.default_rng(axis + 5).integers(-3, 4, (5, 7)).astype(F)
    for k in (0, 1, 4, 5) if version > 1 else (1, 4, 5):
        values, at = _expected(x, k, axis, True)
        found = _top(run, version, x, k, axis=axis)
        same(found[0], values)
        same(found[1], at)


@pytest.mark.parametrize("version", TOPK[2:])
@pytest.mark.parametrize("is_sorted", [0, 1])
def test_the_smallest_elements_in_ascending_order(version: int, is_sorted: int, run: Run, same: Run) -> None:
    x = np.random.default_rng(9).integers(-3, 4, (2, 6, 3)).astype(F)
    values, at = _expected(x, 4, 1, False)
    found = _top(run, version, x, 4, axis=1, largest=0, sorted=is_sorted)
    same(found[0], values)
    same(found[1], at)


@pytest.mark.parametrize("version", TOPK)
def test_a_nan_is_greater_than_every_number(version: int, run: Run, same: Run) -> None:
    x = np.array([1, NAN, INF, NAN, -INF, -0.0, 0.0], F)
    found = _top(run, version, x, 7)
    assert found[1].tolist() == [1, 3, 2, 0, 5, 6, 4]
    same(found[0], np.array([NAN, NAN, INF, 1, -0.0, 0.0, -INF], F))
    if version >= 11:
        found = _top(run, version, x, 7, largest=0)
        assert found[1].tolist() == [4, 5, 6, 0, 2, 1, 3]


@table("dtype", [np.int8, np.uint64, np.int64, np.float16, np.float64, ml_dtypes.bfloat16])
def test_the_extremes_of_the_type_are_ordered(dtype: Any, run: Run) -> None:
    info = ml_dtypes.finfo(dtype) if np.dtype(dtype).kind in "fV" else np.iinfo(dtype)
    x = np.array([3, info.min, info.max, 3, 0]).astype(dtype) if np.dtype(dtype).kind == "f" else np.array(
        [dtype(3), dtype(info.min), dtype(info.max), dtype(3), dtype(0)], dtype)  # fmt: skip
    found = _top(run, 24, x, 5)[1].tolist()
    assert found in ([2, 0, 3, 4, 1], [2, 0, 3, 1, 4])
    assert _top(run, 24, x, 5, largest=0)[1].tolist()[-1] == 2


@pytest.mark.parametrize("version", TOPK)
def test_more_elements_than_the_axis_has_are_refused(version: int, refused: Run) -> None:
    assert "The axis has" in _top(refused, version, np.ones((2, 3), F), 3, axis=0)
    assert ("negative" if version > 1 else "positive") in _top(refused, version, np.ones((2, 3), F), -(version > 1))
    for axis in (2, -3):
        assert "axis of X" in _top(refused, version, np.ones((2, 3), F), 1, axis=axis)
    assert "axis of X" in _top(refused, version, np.array(3, F), 1)


@pytest.mark.parametrize("version", [9, 13])
def test_nonzero_lists_columns_of_indices(version: int, run: Run, same: Run) -> None:
    x = np.array([[0, NAN, 2], [-0.0, 0, INF]], F)
    same(run("NonZero", version, x), np.array(np.nonzero(x), np.int64))
    same(run("NonZero", version, np.zeros((2, 3), F)), np.zeros((2, 0), np.int64))
    same(run("NonZero", version, np.zeros((0, 3), F)), np.zeros((2, 0), np.int64))
    same(run("NonZero", version, np.array([True, False, True])), np.array([[0, 2]], np.int64))
    same(run("NonZero", version, np.array([b"", b"a"], object)), np.array([[1]], np.int64))
    same(run("NonZero", version, np.array([0, 1j], np.complex64)), np.array([[1]], np.int64))
    y = np.random.default_rng(2).integers(0, 2, (3, 4, 5)).astype(np.int8)
    same(run("NonZero", version, y), np.array(np.nonzero(y), np.int64))


@pytest.mark.parametrize("version", [9, 13])
def test_nonzero_of_a_scalar_has_no_rows(version: int, run: Run) -> None:
    assert run("NonZero", version, np.array(5, F)).shape == (0, 1)
    assert run("NonZero", version, np.array(0, F)).shape == (0, 0)


def _scattered(data: Any, indices: Any, updates: Any, reduction: str) -> Any:
    result = data.copy()
    for at in np.ndindex(indices.shape[:-1]):
        place = tuple(indices[at])
        match reduction:
            case "none":
                result[place] = updates[at]
            case "add":
                result[place] += updates[at]
            case "mul":
                result[place] *= updates[at]
            case "max":
                result[place] = np.maximum(result[place], updates[at])
            case _:
                result[place] = np.minimum(result[place], updates[at])
    return result


def _reductions(version: int) -> list[str]:
    return ["none", "add", "mul", "max", "min"][: {16: 3, 18: 5}.get(version, 1)]


def _scatter(run: Run, version: int, data: Any, indices: Any, updates: Any, reduction: str) -> Any:
    attributes = {} if version < 16 else {"reduction": reduction}
    return run("ScatterND", version, data, np.asarray(indices, np.int64), updates, **attributes)


@pytest.mark.parametrize("version", SCATTER)
def test_updates_stand_where_the_indices_say(version: int, run: Run, same: Run) -> None:
    data = np.arange(24, dtype=F).reshape(2, 3, 4)
    updates = {
        1: np.array([[-1], [0]]),
        2: np.array([[[1, -1], [0, 2]]]),
        3: np.array([[0, 1, 2], [-1, -3, 0], [1, 2, 3]]),
    }
    for width, indices in updates.items():
        shape = indices.shape[:-1] + data.shape[width:]
        new = np.random.default_rng(width).integers(-9, 9, shape).astype(F)
        for reduction in _reductions(version):
            found = _scatter(run, version, data, indices, new, reduction)
            same(found, _scattered(data, indices, new, reduction))


@pytest.mark.parametrize("version", SCATTER[2:])
def test_updates_of_one_place_are_applied_in_order(version: int, run: Run, same: Run) -> None:
    data = np.array([1, 2, 3], F)
    indices, updates = np.array([[0], [0], [-3], [1]]), np.array([1e8, 1, -1e8, 4], F)
    for reduction in _reductions(version)[1:]:
        same(_scatter(run, version, data, indices, updates, reduction), _scattered(data, indices, updates, reduction))


@pytest.mark.parametrize("version", SCATTER)
def test_a_place_that_is_replaced_twice_is_refused(version: int, refused: Run) -> None:
    data, updates = np.zeros(3, F), np.ones(2, F)
    for indices in ([[1], [1]], [[-1], [2]]):
        assert "twice" in _scatter(refused, version, data, indices, updates, "none")


@pytest.mark.parametrize("version", SCATTER)
def test_indices_out_of_range_are_refused(version: int, refused: Run) -> None:
    for indices in ([[3]], [[-4]]):
        assert "positions" in _scatter(refused, version, np.zeros(3, F), indices, np.ones(1, F), "none")


@pytest.mark.parametrize("version", SCATTER)
def test_empty_index_tuples_replace_everything(version: int, run: Run, same: Run) -> None:
    data = np.zeros((2, 2), F)
    found = _scatter(run, version, data, np.zeros((1, 0)), np.ones((1, 2, 2), F), "none")
    same(found, np.ones((2, 2), F))
    same(_scatter(run, version, data, np.zeros((0, 1)), np.ones((0, 2), F), "none"), data)


def test_a_nan_wins_as_the_greatest_and_as_the_smallest(run: Run, same: Run) -> None:
    data, indices = np.array([1, NAN, 3], F), [[0], [1]]
    for reduction in ("max", "min"):
        same(_scatter(run, 18, data, indices, np.array([NAN, 5], F), reduction), np.array([NAN, NAN, 3], F))


def test_strings_and_truth_values_are_replaced_and_not_reduced(run: Run, refused: Run, same: Run) -> None:
    text = np.array([b"a", b"b"], object)
    same(_scatter(run, 18, text, [[1]], np.array([b"z"], object), "none"), np.array([b"a", b"z"], object))
    assert "Numbers" in _scatter(refused, 18, text, [[1]], np.array([b"z"], object), "add")
    same(_scatter(run, 18, np.array([True]), [[0]], np.array([False]), "none"), np.array([False]))
    integers = _scatter(run, 18, np.array([200], np.uint8), [[0], [0]], np.array([50, 10], np.uint8), "add")
    assert integers.tolist() == [4]


@pytest.mark.parametrize("version", SCATTER)
def test_updates_of_another_shape_are_refused(version: int, refused: Run) -> None:
    assert "an update for each" in _scatter(refused, version, np.zeros((2, 3), F), [[0]], np.ones((1, 2), F), "none")
    assert "axes of the data" in _scatter(refused, version, np.zeros(2, F), [[0, 1]], np.ones(1, F), "none")
