"""Numbers as elements of a type, each rounded once to nearest, ties to even."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import ml_dtypes
import numpy as np

from .kernel import Array

DType = np.dtype[Any]

SINGLE: Final[DType] = np.dtype(np.float32)
DOUBLE: Final[DType] = np.dtype(np.float64)
HALF: Final[DType] = np.dtype(np.float16)
BFLOAT16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
INT32: Final[DType] = np.dtype(np.int32)
BYTE: Final[DType] = np.dtype(np.uint8)


def is_integer(dtype: DType) -> bool:
    """Whether the elements are integers, those below a byte included."""
    return dtype.kind in "iu" or "int" in dtype.name


def is_float(dtype: DType) -> bool:
    """Whether the elements are floating-point numbers of any size."""
    return dtype.kind == "f" or "float" in dtype.name


def summing(dtype: DType) -> DType:
    """The type in which sums of products of floats are computed: float for types of 16 bits and less."""
    return dtype if dtype in (SINGLE, DOUBLE) else SINGLE


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest element of a type of integers."""
    info = ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


def greatest(dtype: DType) -> float:
    """The greatest number of a floating-point type."""
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


def narrow(x: Array, dtype: DType) -> Array:
    """Doubles as elements of a floating-point type."""
    if dtype in (SINGLE, DOUBLE, HALF):
        return x.astype(dtype)
    near = np.asarray(x, np.float64).astype(np.float32)
    wide = near.astype(np.float64)
    inexact = (wide != x) & ~np.isnan(wide)
    bits = near.view(np.uint32) - (inexact & (np.abs(wide) > np.abs(x)))
    odd: Array = (bits | inexact).astype(np.uint32).view(np.float32)
    return odd.astype(dtype)


def converted(x: Array, dtype: DType) -> Array:
    """Floats, or integers of at most 32 bits, as elements of a floating-point type."""
    if x.dtype == dtype:
        return x
    if x.dtype == DOUBLE:
        return narrow(x, dtype)
    if is_integer(x.dtype):
        return narrow(x.astype(np.float64), dtype)
    return x.astype(dtype)


def scalar(value: float | Fraction, dtype: DType) -> Array:
    """A number as an element of rank 0 of a floating-point type."""
    if isinstance(value, (int, float)) and not (isinstance(value, int) and abs(value) > 2**53):
        return narrow(np.asarray(float(value), np.float64), dtype)
    exact = Fraction(value)
    return narrow(np.asarray(float(exact) if dtype == DOUBLE else to_odd(exact)), dtype)


def to_odd(value: Fraction) -> float:
    """A double that rounds to a type of fewer bits as the number does: an inexact one has an odd last bit."""
    near = float(value)
    if Fraction(near) == value:
        return near
    if abs(Fraction(near)) > abs(value):
        near = math.nextafter(near, 0.0)
    (code,) = np.asarray([near]).view(np.uint64)
    return float(np.asarray([code | np.uint64(1)], np.uint64).view(np.float64)[0])


def saturated(x: Array, dtype: DType) -> Array:
    """Floats as the nearest elements of a type of integers, ties to even, limited to its range; 0 for NaN."""
    low, high = integer_range(dtype)
    rounded = np.rint(x)
    if high < 2**24 and x.dtype in (SINGLE, DOUBLE):
        held = np.asarray(np.clip(np.where(np.isnan(rounded), 0, rounded), low, high))
        return held.astype(np.int32).astype(dtype)
    wide = rounded.astype(np.float64)
    inside = (wide > float(low)) & (wide < float(high))
    whole = np.where(inside, wide, 0).astype(np.uint64 if low == 0 else np.int64).astype(dtype)
    whole[wide <= float(low)] = low
    whole[wide >= float(high)] = high
    return whole
