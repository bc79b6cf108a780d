from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

Run = Callable[..., Any]
TYPES = ("uint8", "int64", "float16", "float32", "float64", "bool", "object")


def drawn(rng: np.random.Generator, dtype: str) -> Any:
    shape = tuple(rng.integers(1, 4, rng.integers(1, 4)))
    if dtype == "object":
        return rng.choice(np.array([b"b", b"a", "é".encode(), b""], dtype=object), shape)
    return rng.integers(0, 2 if dtype == "bool" else 4, shape).astype(dtype)


def by_hand(x: Any, axis: int | None, ordered: int) -> tuple[Any, ...]:
    """The outputs by slices as lists, which Python compares in the order that the text states."""
    rows = x.reshape(-1, 1) if axis is None else np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    keys = [row.tolist() for row in rows]
    firsts = [k for k, key in enumerate(keys) if keys.index(key) == k]
    firsts = sorted(firsts, key=lambda k: keys[k]) if ordered else firsts
    inverse = [next(r for r, k in enumerate(firsts) if keys[k] == key) for key in keys]
    y = x.reshape(-1)[firsts] if axis is None else np.take(x, firsts, axis)
    return y, firsts, inverse, [keys.count(keys[k]) for k in firsts]


@pytest.mark.parametrize("version", [11, 28])
@pytest.mark.parametrize("dtype", TYPES)
def test_each_slice_occurs_once(version: int, dtype: str, run: Run) -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        x, ordered = drawn(rng, dtype), int(rng.integers(2))
        axis = None if rng.random() < 0.4 else int(rng.integers(-x.ndim, x.ndim))
        attributes = {} if axis is None else {"axis": axis}
        found = run("Unique", version, x, count=4, sorted=ordered, **attributes)
        for one, other in zip(found, by_hand(x, axis, ordered), strict=True):
            assert one.tolist() == np.asarray(other).tolist(), (x, axis, ordered)
        assert found[0].dtype == x.dtype
        assert {it.dtype for it in found[1:]} == {np.dtype(np.int64)}


def test_what_occurs_first_stands_for_its_equals(run: Run) -> None:
    found = run("Unique", 11, np.array([1, -0.0, 0.0], np.float32))
    assert found.tolist() == [0, 1]
    assert np.signbit(found[0])
    x = np.array([3, -1, 3], ml_dtypes.bfloat16)
    assert run("Unique", 28, x).tolist() == [-1, 3]


def test_what_has_no_elements_occurs_too(run: Run) -> None:
    assert [it.shape for it in run("Unique", 11, np.zeros((0, 2), np.float32), count=4)] == [(0,)] * 4
    slices = run("Unique", 11, np.zeros((3, 0), np.float32), count=4, axis=0)
    assert [it.shape for it in slices] == [(1, 0), (1,), (3,), (1,)]
    assert slices[3].tolist() == [3]
    assert run("Unique", 11, np.array(5, np.float32)).tolist() == [5]


def test_what_has_no_order_is_not_sorted(run: Run, refused: Run) -> None:
    x = np.array([2j, 1, 2j], np.complex64)
    assert run("Unique", 11, x, sorted=0).tolist() == [2j, 1]
    assert "no order" in refused("Unique", 11, x)
    assert "NaN" in refused("Unique", 11, np.array([np.nan, 1], np.float32))
    assert "NaN" in refused("Unique", 11, np.array([complex(0, np.nan)], np.complex64), sorted=0)
    assert "axis" in refused("Unique", 11, np.ones(2), axis=1)
    assert "0 or 1" in refused("Unique", 11, np.ones(2), sorted=2)
