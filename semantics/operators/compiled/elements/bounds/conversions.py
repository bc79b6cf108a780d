"""Numbers as sets of elements, and sets of elements of one type as sets of another."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np

from .....model.elements import DOUBLE, DType, finite_range, has_nan, integer_range, is_float, is_integer
from ...terms import STRINGS, Array
from .. import ieee
from .. import ieee as ieee_conversions
from ..ieee import Operation
from .arithmetic import cast_float, number
from .functions import power as float_power
from .rounding import down, multiplied, settled, up
from .spellings import from_texts, known_texts, to_texts
from .storage import carrier_of, everything, lift, opened, storage

_LARGE: Final = float(1 << 53)


def constant(dtype: DType, value: float | Fraction) -> Array:
    """An exact number as an element. An implementation may hold it in a wider type."""
    rounded = ieee_conversions.constant(dtype, value)
    if not is_float(dtype) or (isinstance(value, float) and not np.isfinite(value)):
        return lift(dtype)(rounded)
    stored = rounded.astype(np.float64)
    try:
        near = np.asarray(float(value))
    except OverflowError:
        return lift(dtype)(rounded)
    if Fraction(value) == Fraction(float(near)) and near == stored:
        return lift(dtype)(rounded)
    exact = Fraction(float(near)) == Fraction(value)
    out = settled(near, down(near, exact), near, up(near, exact), dtype)
    out["least"], out["most"] = stored, stored
    return out


@cache
def cast(source: DType, target: DType) -> Operation:
    """The conversion of elements. Where any value is allowed the set is the whole type."""
    if source == target:
        return lambda x: x
    if target == STRINGS:
        return to_texts(source)
    if source == STRINGS:
        return from_texts(target)
    if is_float(source):
        if is_float(target):
            return cast_float(target)
        return _float_to_truth if target == np.bool_ else _float_to_integer(target)
    if target == np.bool_:
        return _to_truth
    return _integer_to_float(target) if is_float(target) else _integer_to_integer(target)


def _ends(low: Array, high: Array, dtype: DType) -> Array:
    out: Array = np.empty(np.broadcast_shapes(np.shape(low), np.shape(high)), storage(dtype))
    carrier = carrier_of(dtype)
    out["low"], out["high"] = np.asarray(low).astype(carrier), np.asarray(high).astype(carrier)
    return out


def _float_to_truth(x: Array) -> Array:
    a = opened(x)
    never = (a.low == 0) & (a.high == 0)
    sometimes = (a.low <= 0) & (a.high >= 0)
    return _ends(~sometimes, ~never, np.dtype(np.bool_))


def _to_truth(x: Array) -> Array:
    low, high = x["low"], x["high"]
    never = (low == 0) & (high == 0)
    return _ends(~((low <= 0) & (high >= 0)), ~never, np.dtype(np.bool_))


def _float_to_integer(target: DType) -> Operation:
    low, high = integer_range(target)

    def operation(x: Array) -> Array:
        a = opened(x)
        first, last = np.trunc(a.low), np.trunc(a.high)
        inside = (first >= low) & (last < high + 1)
        wide: DType = np.dtype(np.uint64 if low == 0 else np.int64)
        ends = [ieee_conversions.float_to_integer(np.where(inside, z, 0.0), wide) for z in (first, last)]
        out = _ends(ends[0], ends[1], target)
        out[~inside] = everything((), target)
        return out

    return operation


def _integer_to_float(target: DType) -> Operation:
    def operation(x: Array) -> Array:
        low, high = x["low"], x["high"]
        if np.array_equal(low, high):
            return _from_integers(low, target)
        ends = [z.astype(np.float64) for z in (low, high)]
        small = [np.abs(z) < _LARGE for z in ends]
        return settled(ends[0], down(ends[0], small[0]), ends[1], up(ends[1], small[1]), target)

    return operation


def _from_integers(x: Array, target: DType) -> Array:
    wide = ieee_conversions.integers_to(DOUBLE)(x if x.dtype.kind != "b" else x.astype(np.int64))
    out = number(wide, np.abs(wide) < _LARGE, target)
    if target == DOUBLE:
        out["least"], out["most"] = wide, wide
    return out


def _integer_to_integer(target: DType) -> Operation:
    low, high = integer_range(target)

    def operation(x: Array) -> Array:
        first, last = (z.astype(np.int64) if z.dtype == np.bool_ else z for z in (x["low"], x["high"]))
        out = _ends(ieee_conversions.wrap(first, target), ieee_conversions.wrap(last, target), target)
        moved = (first != last) & ~((first >= low) & (last <= high))
        if moved.any():
            out[moved] = everything((), target)
        return out

    return operation


def integers_to(target: DType) -> Operation:
    """int64 or Python integers as elements."""
    if not is_float(target):
        convert, raised = ieee_conversions.integers_to(target), lift(target)
        return lambda x: raised(np.asarray(convert(x)))
    return lambda x: _from_integers(np.asarray(x), target)


_is_double: Final = np.frompyfunc(lambda v: Fraction(float(v)) == v, 1, 1)


def rationals_to(target: DType) -> Operation:
    """An object array of Fractions as elements."""
    if not is_float(target):
        convert, raised = ieee_conversions.rationals_to(target), lift(target)
        return lambda x: raised(convert(x))
    near = ieee_conversions.rationals_to(DOUBLE)
    return lambda x: number(near(np.asarray(x)), np.asarray(_is_double(x)).astype(bool), target)


def quotients_to(target: DType) -> Callable[[Array, int], Array]:
    """numerators / denominator as elements."""
    if not is_float(target):
        convert, raised = ieee_conversions.quotients_to(target), lift(target)
        return lambda values, den: raised(convert(values, den))
    near = ieee_conversions.quotients_to(DOUBLE)

    def operation(values: Array, den: int) -> Array:
        quotient = near(values, den)
        product, exact = multiplied(quotient, np.asarray(float(den)))
        small = np.abs(values.astype(np.float64)) < _LARGE
        return number(quotient, exact & small & (product == values.astype(np.float64)) & (float(den) == den), target)

    return operation


@cache
def saturate(source: DType | None, target: DType) -> Operation:
    """The conversion of elements, or of exact numbers (source None), limited to the finite range of the target."""
    if source is None:
        plain, raised = ieee_conversions.saturate(None, target), lift(target)
        return lambda x: raised(plain(x))
    if is_float(source):
        return _saturate_float(target)
    if is_float(target):  # from an integer type, or from strings
        limit = _saturate_float(target)
        double = cast(source, DOUBLE)
        return lambda x: limit(double(x))
    inner = ieee_conversions.saturate(source, target)
    if source == STRINGS:
        return lambda x: lift(target)(inner(known_texts(x)))
    return lambda x: _ends(inner(x["low"]), inner(x["high"]), target)


def _saturate_float(target: DType) -> Operation:
    low, high = (float(z) for z in finite_range(target))
    nearest = ieee_conversions.saturate(DOUBLE, target)

    def operation(x: Array) -> Array:
        a = opened(x)
        if is_integer(target):
            out = _ends(nearest(a.low), nearest(a.high), target)
        else:
            first = np.clip(a.low, low, high)
            last = first if a.known else np.clip(a.high, low, high)
            if a.sure is not None:
                first, last = (np.where(np.isnan(z), 0.0, z) for z in (first, last))
            out = settled(first, first, last, last, target, a.maybe, a.sure)
        if a.maybe is not None and not has_nan(target):
            out[np.broadcast_to(a.maybe, out.shape)] = everything((), target)
        return out

    return operation


def power(base: DType, exponent: DType) -> Operation:
    """The power of elements of two types, in the type of the base."""
    if is_float(base):
        raise_to = float_power(base)
        if is_float(exponent):
            return raise_to
        convert = cast(exponent, DOUBLE)
        return lambda a, b: raise_to(a, convert(b))
    inner, raised = ieee.power(base, exponent), lift(base)
    truncated = cast(DOUBLE, base)
    double, rooted = cast(base, DOUBLE), float_power(DOUBLE)

    def operation(a: Array, b: Array) -> Array:
        if is_float(exponent):
            return truncated(rooted(double(a), b))
        if np.array_equal(a["low"], a["high"]) and np.array_equal(b["low"], b["high"]):
            return raised(np.asarray(inner(a["low"].astype(base), b["low"].astype(exponent))))
        return everything(np.broadcast_shapes(a.shape, b.shape), base)

    return operation


def reinterpret(source: DType, target: DType) -> Operation:
    """Elements with the same binary digits: any of the target where the element, or which NaN it is, is not known."""
    plain, raised = ieee.reinterpret(source, target), lift(target)

    def operation(x: Array) -> Array:
        sets = lift(source)(x)
        low, high = (sets[name] for name in (("least", "most") if is_float(source) else ("low", "high")))
        certain = (low == high) & (np.signbit(low) == np.signbit(high) if is_float(source) else True)
        if is_float(source):
            certain &= ~np.isnan(sets["low"])
        out: Array = np.array(raised(plain(np.where(certain, low, 0).astype(source))))
        out[~certain] = everything((), target)
        return out

    return operation


def enter(x: Array) -> Array:
    """A tensor of the model as it is: known elements are read as sets."""
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)
