from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sonnx.semantics.operators.compiled.elements.ieee import operation

Run = Callable[..., Any]
INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]


def every(dtype: Any) -> Any:
    """Integers of a type: its ends, small ones, and random ones."""
    ends = np.iinfo(dtype)
    drawn = np.random.default_rng(7).integers(ends.min, ends.max, 40, dtype=dtype, endpoint=True)
    return np.concatenate([np.array([0, 1, 2, ends.max, ends.min, ends.max - 1], dtype), drawn])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_digits_are_combined_as_numpy_does_it(dtype: Any, run: Run) -> None:
    x = every(dtype)
    for op_type, function in (
        ("BitwiseAnd", np.bitwise_and),
        ("BitwiseOr", np.bitwise_or),
        ("BitwiseXor", np.bitwise_xor),
    ):
        assert (run(op_type, 18, x[:, None], x) == function(x[:, None], x)).all()
    assert (run("BitwiseNot", 18, x) == ~x).all()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_digits_are_moved(dtype: Any, run: Run) -> None:
    size = np.iinfo(dtype).bits
    x, y = every(dtype)[:, None], np.arange(size).astype(dtype)
    for version in (11, 28) if dtype.kind == "u" else (28,):
        assert (run("BitShift", version, x, y, direction="LEFT") == np.left_shift(x, y)).all()
        assert (run("BitShift", version, x, y, direction="RIGHT") == np.right_shift(x, y)).all()
    beyond = np.array([size, np.iinfo(dtype).max] + [-1] * (dtype.kind == "i"), dtype)
    assert (run("BitShift", 28, x, beyond, direction="LEFT") == 0).all()
    assert (run("BitShift", 28, x, beyond, direction="RIGHT") == np.where(x < 0, -1, 0)).all()


def test_what_comes_beyond_the_digits_is_open_before_28(free: Run) -> None:
    x = np.array([1, 1], np.uint8)
    assert free("BitShift", 11, x, np.array([7, 8], np.uint8), direction="RIGHT").tolist() == [False, True]


def test_the_direction_is_one_of_two_words(refused: Run) -> None:
    x = np.array([1], np.uint8)
    assert refused("BitShift", 28, x, x, direction="right") == "direction is one of the two words."


def test_digits_of_narrow_integers() -> None:
    x = np.arange(-8, 8).astype(ml_dtypes.int4)
    found = operation("bit_and", x.dtype)(x[:, None], x).astype(int)
    assert (found == (x.astype(int)[:, None] & x.astype(int))).all()
