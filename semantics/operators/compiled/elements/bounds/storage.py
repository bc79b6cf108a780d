"""Sets of allowed elements in arrays, and the same sets opened for arithmetic.

A floating-point element is four doubles. `low .. high` encloses every value that an implementation may hold in its
place: rounded to the element type, or kept in any wider type. `least .. most` are the values of the element type
itself that it may have once it is stored. low and high are NaN where it may be a NaN, least and most where it is one.
All four are equal for an element that is known, so that a plain tensor assigned to such an array is right, and a tensor
of known elements is kept as a plain one.
An element of another type is two numbers, the least and the greatest that are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from .....errors import Unsupported
from .....model.elements import DType, integer_range, is_float
from ...terms import Array

_PIECE: Final = 1 << 14
FLOAT_SET: Final = np.dtype([("low", "f8"), ("high", "f8"), ("least", "f8"), ("most", "f8")])


@cache
def storage(dtype: DType) -> DType:
    """The dtype of arrays that hold sets of elements; texts are known, each is itself."""
    if dtype == np.dtype(object):
        return dtype
    if dtype.kind == "c":
        raise Unsupported("complex numbers in the bound interpretation")
    if is_float(dtype):
        return FLOAT_SET
    carrier = carrier_of(dtype)
    return np.dtype([("low", carrier), ("high", carrier)])


def carrier_of(dtype: DType) -> DType:
    """A NumPy type of integers or truth values that holds the values of an element type."""
    if dtype.num <= 23:
        return dtype
    return np.dtype(np.uint8 if dtype.name.startswith("u") else np.int8)


def is_set(x: Array) -> bool:
    """True if an array holds sets; else it holds known elements."""
    return x.dtype.names is not None


@cache
def lift(dtype: DType) -> LiftOperation:
    """The operation that makes sets of the elements of a type."""
    return LiftOperation(storage(dtype), None if dtype.num <= 23 or is_float(dtype) else carrier_of(dtype))


@dataclass(frozen=True, slots=True)
class LiftOperation:
    """Makes sets of elements that are none. carrier: through which type, where NumPy cannot convert directly."""

    into: DType
    carrier: DType | None

    def __call__(self, x: Array) -> Array:
        """The elements as sets; what holds sets stays as it is."""
        x = np.asarray(x)
        if x.dtype == self.into:
            return x
        out = np.empty(x.shape, self.into)
        out[...] = x if self.carrier is None else x.astype(self.carrier)
        return out


@dataclass(frozen=True, slots=True)
class Opened:
    """Sets of numbers as arithmetic takes them: an interval that is everything where the element may be a NaN.

    maybe, sure: where it may be and where it is a NaN; None for nowhere. known: each interval is one number, `high` is
    `low`. short: the numbers are of a type with at most 24 significant bits, so that doubles hold their products.
    """

    low: Array
    high: Array
    maybe: Array | None
    sure: Array | None
    known: bool
    short: bool = False


def opened(x: Array) -> Opened:
    """The sets in an array, or its elements."""
    if not is_set(x):
        value = x.astype(np.float64, copy=False)
        short = x.dtype != np.float64
        nan = np.isnan(value) if value.size and np.isnan(value.max()) else np.zeros(())
        if nan.any():
            return Opened(value, value, nan, nan, known=True, short=short)
        return Opened(value, value, None, None, known=True, short=short)
    low = np.array(x["low"])
    high = np.array(x["high"])
    nan = np.isnan(low)
    if not nan.any():
        if np.array_equal(low, high) and np.array_equal(np.signbit(low), np.signbit(high)):
            return Opened(low, low, None, None, known=True)
        return Opened(low, high, None, None, known=False)
    sure = np.isnan(x["least"])
    alike = nan | ((low == high) & (np.signbit(low) == np.signbit(high)))
    if np.array_equal(sure, nan) and alike.all():
        return Opened(low, low, nan, sure, known=True)
    low[nan], high[nan] = -np.inf, np.inf
    return Opened(low, high, nan, sure, known=False)


def either(*masks: Array | None) -> Array | None:
    """The mask that holds where one of the masks does, None for nowhere."""
    joined: Array | None = None
    for mask in masks:
        if mask is not None:
            joined = mask if joined is None else joined | mask
    return joined if joined is None or joined.any() else None


def compact(x: Array) -> Array:
    """Sets of numbers as they are kept: a plain array of doubles where each is one known element."""
    if x.dtype != FLOAT_SET:
        return x
    codes = x.reshape(-1).view(np.int64).reshape(-1, 4)
    for first in range(0, len(codes), _PIECE):
        part = codes[first : first + _PIECE]
        if not (part == part[:, :1]).all():
            return x
    return np.array(x["low"], order="C")


def known_numbers(x: Array) -> bool:
    """True if sets of floating-point elements are finite known numbers. Of a view with overlaps the base is looked at.

    A view that repeats elements may be said to have unknown ones where only others of its base are unknown.
    """
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    source = base if base.dtype == x.dtype and base.size < x.size else x
    low, high = source["low"], source["high"]
    return np.array_equal(low, high) and np.array_equal(np.signbit(low), np.signbit(high))


def packed(low: Array, high: Array, least: Array, most: Array, maybe: Array | None, sure: Array | None) -> Array:
    """Sets from their bounds; where an element is surely a NaN the bounds do not matter."""
    shape = np.broadcast_shapes(np.shape(low), np.shape(high), np.shape(least), np.shape(most))
    if maybe is not None:
        shape = np.broadcast_shapes(shape, maybe.shape)
    out = np.empty(shape, FLOAT_SET)
    out["low"], out["high"], out["least"], out["most"] = low, high, least, most
    if maybe is not None:
        where = np.broadcast_to(maybe, shape)
        out["low"][where], out["high"][where] = np.nan, np.nan
    if sure is not None:
        where = np.broadcast_to(sure, shape)
        for name in FLOAT_SET.names or ():
            out[name][where] = np.nan
    return out


def everything(shape: tuple[int, ...], dtype: DType) -> Array:
    """Any value of a type."""
    out: Array = np.empty(shape, storage(dtype))
    if is_float(dtype):
        out["low"], out["high"], out["least"], out["most"] = np.nan, np.nan, -np.inf, np.inf
    elif dtype == np.bool_:
        out["low"], out["high"] = False, True
    else:
        out["low"], out["high"] = integer_range(dtype)
    return out


def known(x: Array) -> Array:
    """The elements themselves, doubles for floating-point ones. Raises Unsupported where one is not known."""
    x = np.asarray(x)
    if not is_set(x):
        return x
    low, high = x["low"], x["high"]
    if x.dtype != FLOAT_SET:
        if not np.array_equal(low, high):
            raise Unsupported("a value that is not known decides what is computed")
        return np.array(low)
    if not (np.array_equal(low, high, equal_nan=True) and np.array_equal(np.isnan(low), np.isnan(x["least"]))):
        raise Unsupported("a value that is not known decides what is computed")
    return np.array(low)


def hull(a: Array, b: Array) -> Array:
    """The values that one of two sets allows; the smallest interval that holds them."""
    if a.dtype == object:
        raise Unsupported("one of two texts")
    out = np.empty(np.broadcast_shapes(a.shape, b.shape), a.dtype)
    out["low"], out["high"] = np.minimum(a["low"], b["low"]), np.maximum(a["high"], b["high"])
    if a.dtype == FLOAT_SET:
        zero_low, zero_high = out["low"] == 0, out["high"] == 0
        mixed = np.signbit(a["low"]) != np.signbit(b["low"])
        out["low"] = np.where(zero_low & mixed, -0.0, out["low"])
        out["high"] = np.where(zero_high & (np.signbit(a["high"]) != np.signbit(b["high"])), 0.0, out["high"])
        least, most = np.fmin(a["least"], b["least"]), np.fmax(a["most"], b["most"])
        negative = np.signbit(a["least"]) | np.signbit(b["least"])
        positive = ~np.signbit(a["most"]) | ~np.signbit(b["most"])
        out["least"] = np.where((least == 0) & negative, -0.0, least)
        out["most"] = np.where((most == 0) & positive, 0.0, most)
    return out
