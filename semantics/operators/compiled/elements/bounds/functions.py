"""The functions that have no exact value in general: their value within the accuracy that the specification states.

The value is computed in double. NumPy's functions are taken to be within MARGIN units in the last place of a double,
twice what its tests accept (numpy/_core/tests/data/umath-validation-set-*.csv: at most 2), and so is the C library's
erf. That is added to what the specification allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import inf, pi
from typing import Final

import numpy as np
from sonnx.spec.library import specification

from .....errors import InternalError
from .....model.elements import DOUBLE, DType
from ...terms import Array
from ..ieee import Operation
from ..ieee import operation as ieee_operation
from .rounding import limits, settled
from .storage import Opened, either, opened

MARGIN: Final = 4


@cache
def accuracy(name: str) -> int:
    """The units in the last place of the result that a function of the specification may be off."""
    stated = specification().functions[name].accuracy
    if stated is None:
        raise InternalError(f"the specification states no accuracy of {name}")
    return stated.ulps


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties of a function.

    domain: where it has a value. exact: an argument at which its value is exact, from C's Annex F. turns: the first
    maximum and the first minimum of a periodic function. pole: where a tangent has its first one. falling: it never
    rises. even: it falls to 0 and rises from there. floor: no value is less.
    """

    domain: tuple[float, float] = (-inf, inf)
    exact: float | None = None
    turns: tuple[float, float] | None = None
    pole: float | None = None
    falling: bool = False
    even: bool = False
    floor: float = -inf


SHAPES: Final[Mapping[str, Shape]] = {
    "exp": Shape(exact=0.0, floor=0.0),
    "log": Shape(domain=(0.0, inf), exact=1.0),
    "sin": Shape(exact=0.0, turns=(pi / 2, 3 * pi / 2)),
    "cos": Shape(exact=0.0, turns=(0.0, pi)),
    "tan": Shape(exact=0.0, pole=pi / 2),
    "asin": Shape(domain=(-1.0, 1.0), exact=0.0),
    "acos": Shape(domain=(-1.0, 1.0), exact=1.0, falling=True, floor=0.0),
    "atan": Shape(exact=0.0),
    "sinh": Shape(exact=0.0),
    "cosh": Shape(exact=0.0, even=True, floor=1.0),
    "tanh": Shape(exact=0.0),
    "asinh": Shape(exact=0.0),
    "acosh": Shape(domain=(1.0, inf), exact=1.0, floor=0.0),
    "atanh": Shape(domain=(-1.0, 1.0), exact=0.0),
    "erf": Shape(exact=0.0),
}


def function(name: str, dtype: DType) -> Operation:
    """A function of one element."""
    shape, ulps = SHAPES[name], accuracy(name)
    value = ieee_operation(name, DOUBLE)

    def operation(x: Array) -> Array:
        a = opened(x)
        first, last = shape.domain
        outside = (a.low < first) | (a.high > last)
        never = (a.high < first) | (a.low > last)
        low, high = np.clip(a.low, first, last), np.clip(a.high, first, last)
        if a.sure is not None:
            low, high = (np.where(np.isnan(z), max(first, 0.0), z) for z in (low, high))
        near_low, near_high = _ends(value, shape, low, high, known=a.known)
        least = _lowered(near_low, ulps, dtype, _exact_at(shape, low, near_low))
        most = -_lowered(-near_high, ulps, dtype, _exact_at(shape, high, near_high))
        floor = np.where(least < shape.floor, shape.floor, least)
        maybe, sure = either(a.maybe, outside, _endless(name, a)), either(a.sure, never)
        if a.known:
            sure = either(sure, maybe)
        return settled(floor, floor, most, most, dtype, maybe, sure)

    return operation


def _endless(name: str, a: Opened) -> Array | None:
    """The elements whose argument may be an infinity at which there is no value."""
    return np.isinf(a.low) | np.isinf(a.high) if name in ("sin", "cos", "tan") else None


def _ends(value: Operation, shape: Shape, low: Array, high: Array, *, known: bool) -> tuple[Array, Array]:
    at_low = _number(value(low))
    if known:
        return at_low, at_low
    at_high = _number(value(high))
    if shape.falling:
        return at_high, at_low
    if shape.even:
        least = np.where((low <= 0) & (high >= 0), value(np.zeros(())), np.minimum(at_low, at_high))
        return least, np.maximum(at_low, at_high)
    if shape.turns is not None:
        top, bottom = (_between(turn, 2 * pi, low, high) for turn in shape.turns)
        return np.where(bottom, -1.0, np.minimum(at_low, at_high)), np.where(top, 1.0, np.maximum(at_low, at_high))
    if shape.pole is not None:
        pole = _between(shape.pole, pi, low, high)
        return np.where(pole, -inf, at_low), np.where(pole, inf, at_high)
    return at_low, at_high


def _number(x: Array) -> Array:
    return np.where(np.isnan(x), 0.0, x)


def _between(first: float, period: float, low: Array, high: Array) -> Array:
    """True if one of first, first + period, ... may lie in an interval; unsure near an end counts as yes."""
    slack = 1e-12 * (np.abs(low) + np.abs(high) + 1)
    turns = np.ceil((low - slack - first) / period)
    return ~(turns * period + first > high + slack)


def _exact_at(shape: Shape, argument: Array, value: Array) -> Array:
    """The elements whose value is exact: at one argument, at poles, at infinities where the limit is a number of all
    types."""
    exact: Array = (np.isinf(argument) & (np.isinf(value) | (np.abs(value) <= 1))) | (np.isinf(value) & (argument == 0))
    if shape.domain == (-1.0, 1.0):
        exact = exact | np.isinf(value)
    return exact if shape.exact is None else exact | (argument == shape.exact)


def _lowered(value: Array, ulps: int, dtype: DType, exact: Array) -> Array:
    """The value minus its tolerance."""
    overflow = np.isinf(value) & (value > 0) & ~exact
    base = np.where(overflow, np.finfo(np.float64).max, value)
    lower = base - (ulps * unit(base, dtype) + MARGIN * unit(base, DOUBLE))
    lower = np.nextafter(lower, -np.inf)
    return np.where(exact, value, lower)


def unit(x: Array, dtype: DType) -> Array:
    """The unit in the last place of a type at a number: the gap between neighbours there, the larger one at a power."""
    _, smallest, _, precision = limits(dtype)
    _, exponent = np.frexp(np.where(np.isfinite(x), x, 1.0))
    return np.asarray(np.maximum(np.ldexp(1.0, exponent - precision), smallest))


def power(dtype: DType) -> Operation:
    """a to the power b."""
    ulps = accuracy("power")

    def operation(x: Array, y: Array) -> Array:
        a, b = opened(x), opened(y)
        maybe, sure = either(a.maybe, b.maybe), either(a.sure, b.sure)
        corners: list[Array] = [np.power(p, q) for p in _list(a) for q in _list(b)]
        plain = a.known and b.known
        least: Array
        most: Array
        if plain:
            (value,) = corners
            nan = np.isnan(value)
            maybe = sure = nan if nan.any() else None
            least = most = _number(value)
        else:
            single = (b.low == b.high) & (b.low == np.rint(b.low))
            through = (a.low < 0) & (a.high > 0)
            zero = (a.low <= 0) & (a.high >= 0)
            least, most = np.fmin.reduce(corners), np.fmax.reduce(corners)
            least, most = (
                np.where(through & single, z, w) for z, w in ((np.fmin(least, 0), least), (np.fmax(most, 0), most))
            )
            wild = ((a.low < 0) & ~single) | (zero & (b.low < 0)) | np.isnan(least)
            one = (a.low <= 1) & (a.high >= 1)
            least = np.where(one, np.fmin(least, 1), least)
            most = np.where(one, np.fmax(most, 1), most)
            least, most = np.where(wild, -inf, least), np.where(wild, inf, most)
            maybe, sure = either(maybe, wild), None  # pow(NaN, 0) and pow(1, NaN) are 1
        sharp = _sharp(a, b) if plain else np.zeros(np.shape(least), bool)
        low = _lowered(least, ulps, dtype, sharp | (least == -inf))
        high = -_lowered(-most, ulps, dtype, sharp | (most == inf) & ~plain)
        low = np.where(~np.signbit(a.low) & (low < 0), 0.0, low)
        return settled(low, low, high, high, dtype, maybe, sure)

    return operation


def _list(a: Opened) -> tuple[Array, ...]:
    return (a.low,) if a.known else (a.low, a.high)


def _sharp(a: Opened, b: Opened) -> Array:
    """The elements for which IEEE 754-2019, 9.2.1 gives the value of a power."""
    special = (a.low == 0) | np.isinf(a.low) | np.isinf(b.low) | (a.low == 1) | (b.low == 0)
    return np.asarray(special | (b.low == 1))
