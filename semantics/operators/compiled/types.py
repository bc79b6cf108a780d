"""Element types: what kind of type a dtype is, and its limits."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np

from ...model.elements import element_of
from ...model.payload import BITS
from .terms import DType

DOUBLE: Final = np.dtype(np.float64)


FLOAT: Final = np.dtype(np.float32)


WIDE: Final = frozenset({np.dtype(np.float16), FLOAT, DOUBLE})


def is_float(dtype: DType) -> bool:
    """Whether the type is a floating-point type."""
    return dtype.kind == "f" or "float" in dtype.name


def is_integer(dtype: DType) -> bool:
    """Whether the type is one of integers; bool is none."""
    return dtype.kind in "iu" or dtype.name.startswith(("int", "uint"))


def bits(dtype: DType) -> int:
    """The number of bits of a value of the type."""
    return BITS[element_of(dtype)]


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if dtype.name.startswith("uint"):
        return 0, 2 ** bits(dtype) - 1
    half = 2 ** (bits(dtype) - 1)
    return -half, half - 1


def finfo(dtype: DType) -> Any:
    """The limits of a floating-point type, as NumPy gives them."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


@cache
def finite_range(dtype: DType) -> tuple[Fraction, Fraction]:
    """The least and the greatest finite number of a numeric type, exact."""
    if is_float(dtype):
        info = finfo(dtype)
        return Fraction(float(info.min)), Fraction(float(info.max))
    low, high = integer_range(dtype)
    return Fraction(low), Fraction(high)


@cache
def has_nan(dtype: DType) -> bool:
    """Whether the type has a NaN."""
    return is_float(dtype) and bool(np.isnan(np.asarray(float("nan")).astype(dtype).astype(np.float64)))


@cache
def has_infinity(dtype: DType) -> bool:
    """Whether the type has an infinity."""
    return is_float(dtype) and bool(np.isinf(np.asarray(float("inf")).astype(dtype).astype(np.float64)))
