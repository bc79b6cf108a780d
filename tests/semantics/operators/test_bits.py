from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sonnx.semantics.model.elements import ELEMENT_TYPES, dtype_of
from sonnx.semantics.operators.application import Application
from sonnx.semantics.operators.compiled import bound
from sonnx.semantics.operators.compiled.elements.bounds.verdict import judge
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


# ---- BitCast ------------------------------------------------------------------------------------

SAME_DIGITS = (
    "uint8 int8 float8e4m3fn float8e8m0",
    "uint16 float16 bfloat16",
    "int32 float",
    "int64 double",
    "int4 uint4",
)


def test_digits_stay_what_they_are_in_each_interpretation(run: Run) -> None:
    for names in SAME_DIGITS:
        for source, target in product(names.split(), repeat=2):
            kind, code = dtype_of(source), ELEMENT_TYPES[target].code
            raw = np.random.default_rng(1).integers(0, 16 if "4" in names[:4] else 256, (2, 3, kind.itemsize))
            x = raw.astype(np.uint8).view(kind)[..., 0]
            found = run("BitCast", 26, x, to=code)
            assert found.dtype == dtype_of(target)
            assert found.tobytes() == x.tobytes()
            allowed = bound.apply(Application("BitCast", 26, (x,), {"to": code}, (True,))).values[0]
            assert isinstance(allowed, bound.Allowed)
            assert judge(allowed, found).holds
            other = (found.view(np.uint8) ^ 1).view(found.dtype)
            assert not judge(allowed, other).allowed[~np.isnan(x.astype(float)) & ~np.isnan(other.astype(float))].any()


def test_bit_cast_refuses_what_has_other_digits(run: Run, refused: Run) -> None:
    x = np.array([0, 1], np.uint8)
    assert run("BitCast", 26, x, to=9).tolist() == [False, True]
    assert run("BitCast", 26, x == 1, to=2).tolist() == [0, 1]
    assert "0 or 1" in refused("BitCast", 26, x + np.uint8(1), to=9)
    assert "equally many" in refused("BitCast", 26, x, to=10)
    assert "no strings" in refused("BitCast", 26, x, to=8)
    assert "no strings" in refused("BitCast", 26, x, to=99)
