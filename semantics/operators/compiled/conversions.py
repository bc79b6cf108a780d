"""Numbers as elements and elements of one type as elements of another, each rounded once to nearest, ties to even."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from ...errors import Unsupported
from ...model.elements import element_of
from .terms import Array, DType
from .types import DOUBLE, WIDE, bits, finfo, finite_range, integer_range, is_float, is_integer

Operation = Callable[..., Array]
"""Arrays to an array; takes an array for the result as last argument where `takes_out` says so."""


def constant(dtype: DType, value: float | Fraction) -> Array:
    """An exact number as an element: rounded to nearest even, or truncated and wrapped around for integers."""
    if dtype == np.bool_:
        return np.asarray(value != 0)
    if isinstance(value, float):
        return np.asarray(narrow(np.asarray(value), dtype))
    if is_integer(dtype):
        low, high = integer_range(dtype)
        wrapped = (math.trunc(value) - low) % (high - low + 1) + low
        wide: DType = np.dtype(np.uint64 if low == 0 else np.int64)
        return np.asarray(wrapped, dtype=wide).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(complex(value), dtype=dtype)
    if not is_float(dtype):
        raise Unsupported(f"a number as an element of type {element_of(dtype)}")
    info = finfo(dtype)
    exact = Fraction(value)
    if dtype.name == "float8_e8m0fnu":
        return np.asarray(max(float(exact), 2.0**-127)).astype(dtype)
    if exact == 0:
        return np.asarray(0.0).astype(dtype)
    exponent = max(_exponent(abs(exact)), int(info.minexp))
    quantum = Fraction(2) ** (exponent - int(info.nmant))
    rounded = round(exact / quantum) * quantum
    try:
        return np.asarray(float(rounded)).astype(dtype)
    except OverflowError:
        return np.asarray(math.inf if exact > 0 else -math.inf).astype(dtype)


def _exponent(x: Fraction) -> int:
    """floor(log2(x))."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def narrow(x: Array, dtype: DType) -> Array:
    """Doubles rounded once to a floating-point type."""
    if dtype in WIDE:
        return x.astype(dtype)
    return _to_odd(np.asarray(x)).astype(dtype)


def _to_odd(x: Array) -> Array:
    """Doubles rounded to float so that a second rounding to a type of less than 23 bits is correct: an inexact result
    is the neighbour with an odd last bit.
    """
    near = x.astype(np.float32)
    wide = near.astype(np.float64)
    inexact = (wide != x) & ~np.isnan(x)
    code = near.view(np.uint32) - (inexact & (np.abs(wide) > np.abs(x)))
    odd: Array = (code | inexact).astype(np.uint32).view(np.float32)
    return odd


def to_double(x: Array) -> Array:
    """Floating-point elements as doubles, exactly."""
    return x.astype(np.float64)


@cache
def cast(source: DType, target: DType) -> Operation:
    """The conversion of elements. Where any value is allowed it is the nearest one of the type, 0 for a NaN.

    For integers below a byte it is the low bits of the nearest int64, which ONNX's own tests expect (onnx 1.23,
    test_cast_FLOAT_to_INT4).
    """
    if source == target:
        return lambda x: x
    if object in (source, target):
        raise Unsupported(f"cast from {element_of(source)} to {element_of(target)}")
    if target == np.bool_:
        if is_float(source) and source not in WIDE:
            return lambda x: x.astype(np.float32) != 0  # the zeros of float8e8m0, which has no 0, are none
        return lambda x: x != np.zeros((), source)
    if target.kind == "c" or source.kind == "c" or source == np.bool_:
        return lambda x: x.astype(target)
    if is_float(source):
        if is_float(target):
            if source not in WIDE and target not in WIDE:
                return lambda x: x.astype(np.float32).astype(target)  # ml_dtypes lacks some of the direct conversions
            return (lambda x: narrow(to_double(x), target)) if source == DOUBLE else (lambda x: x.astype(target))
        if bits(target) < 8:
            return lambda x: wrap(float_to_integer(to_double(x), np.dtype(np.int64)), target)
        return lambda x: float_to_integer(to_double(x), target)
    if is_integer(target):
        return lambda x: wrap(x, target)
    if target in WIDE:
        return lambda x: x.astype(target)
    return lambda x: narrow(_integers_to_double(x), target)


def _integers_to_double(x: Array) -> Array:
    """Integers as doubles, exactly or so that rounding to fewer than 50 bits is correct."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    low = (x & x.dtype.type(2047)) != 0
    large = (x > 2**53) | (x < -(2**53)) if x.dtype.kind == "i" else x > 2**53
    return np.where(large, ((x >> 11) | low) << 11, x).astype(np.float64)


def float_to_integer(x: Array, target: DType) -> Array:
    """Doubles truncated toward zero; the nearest value of the type outside its range, 0 for a NaN."""
    low, high = integer_range(target)
    whole = np.trunc(x)
    inside = (whole >= low) & (whole < high + 1)
    wide = np.uint64 if low == 0 else np.int64
    exact = np.where(inside, whole, 0).astype(wide)
    limits = np.where(whole < low, np.asarray(low, wide), np.asarray(high, wide))
    return np.where(inside | np.isnan(x), exact, limits).astype(target)


def wrap(x: Array, target: DType) -> Array:
    """Integers modulo the size of an integer type."""
    if bits(target) >= 8:
        if x.dtype == object:
            low, high = integer_range(target)
            return ((x - low) % (high - low + 1) + low).astype(target)
        return (x.astype(np.int64) if x.dtype.itemsize == 1 and x.dtype.kind not in "iub" else x).astype(target)
    size = 1 << bits(target)
    small = (x if x.dtype == object else x.astype(np.int64)) % size
    if integer_range(target)[0] < 0:
        small = np.where(small >= size // 2, small - size, small)
    return small.astype(np.int8).astype(target)


def integers_to(target: DType) -> Operation:
    """int64 or Python integers as elements."""

    def convert(x: Array) -> Array:
        if target == np.bool_:
            truth: Array = (x != 0).astype(bool)
            return truth
        if is_integer(target):
            return wrap(x, target)
        if x.dtype == object:
            return each(lambda value: constant(target, value), target)(x)
        return x.astype(target) if target in WIDE or target.kind == "c" else narrow(_integers_to_double(x), target)

    return convert


def rationals_to(target: DType) -> Operation:
    """An object array of Fractions as elements."""
    return each(lambda value: constant(target, value), target)


def quotients_to(target: DType) -> Callable[[Array, int], Array]:
    """numerators / denominator as elements."""

    def convert(values: Array, den: int) -> Array:
        small = values.dtype != object and den < 1 << 53 and is_float(target)
        if not small or (values.size and int(np.abs(values).max()) >= 1 << 53):
            return each(lambda value: constant(target, Fraction(int(value), den)), target)(values)
        exact = values.astype(np.float64)
        near = exact / float(den)
        if target == DOUBLE or den & (den - 1) == 0:
            return narrow(near, target)
        rest = (exact - near * float(den)) - _product_error(near, float(den))
        inexact = rest != 0
        code = near.view(np.uint64) - (inexact & ((rest < 0) != (near < 0)))
        return narrow((code | inexact).astype(np.uint64).view(np.float64), target)

    return convert


def _product_error(x: Array, y: float) -> Array:
    """x * y minus the double nearest to it, exact (Dekker's product)."""
    factor = 134217729.0
    high_x, high_y = factor * x - (factor * x - x), factor * y - (factor * y - y)
    low_x, low_y = x - high_x, y - high_y
    return ((high_x * high_y - x * y) + high_x * low_y + low_x * high_y) + low_x * low_y


def each(function: Callable[[Any], Array], target: DType) -> Operation:
    """An operation from a function of one element."""

    def convert(x: Array) -> Array:
        x = np.asarray(x)
        out = np.empty(x.shape, target)
        flat = out.reshape(-1)
        for position, value in enumerate(x.reshape(-1).tolist() if x.dtype != object else x.reshape(-1)):
            flat[position] = function(value)
        return out

    return convert


@cache
def saturate(source: DType | None, target: DType) -> Operation:
    """The conversion of elements, or of exact numbers (source None), limited to the finite range of the target."""
    low, high = finite_range(target)
    if source is None:

        def exact(x: Array) -> Array:
            limit = each(lambda v: constant(target, min(max(_whole(v, target), low), high)), target)
            return limit(np.asarray(x))

        return exact
    if not is_float(source):
        if is_float(target):
            convert = cast(source, target)
            top, bottom = constant(target, high), constant(target, low)
            return lambda x: np.where(np.isfinite(to_double(convert(x))), convert(x), np.where(x > 0, top, bottom))
        return lambda x: _clipped(np.asarray(x), int(low), int(high)).astype(target)
    if is_float(target):
        limits = float(low), float(high)
        return lambda x: narrow(np.clip(to_double(np.asarray(x)), *limits), target)
    return lambda x: float_to_integer(np.rint(to_double(np.asarray(x))), target)


def _clipped(x: Array, low: int, high: int) -> Array:
    wide = x.astype(np.uint64 if x.dtype == np.uint64 else np.int64)
    least = 0 if wide.dtype == np.uint64 else -(2**63)
    most = 2**64 - 1 if wide.dtype == np.uint64 else 2**63 - 1
    return np.clip(wide, max(low, least), min(high, most))


def _whole(value: float | Fraction, target: DType) -> Fraction:
    exact = Fraction(value)
    return Fraction(round(exact)) if is_integer(target) else exact
