"""Arithmetic of sets of floating-point elements: each operation rounded once, to the element type or a wider one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from .....model.elements import DType, has_nan
from ...terms import Array
from ..ieee import Extreme, Operation
from .rounding import added, divided, down, multiplied, rooted, settled, up
from .storage import FLOAT_SET, Opened, either, everything, is_set, lift, opened

Rounded = Callable[..., tuple[Array, Array]]


def _nan_free(x: Array) -> Array:
    return np.where(np.isnan(x), 0.0, x)


def _both(a: Opened, b: Opened) -> tuple[Array | None, Array | None]:
    return either(a.maybe, b.maybe), either(a.sure, b.sure)


def _points(value: Array, exact: Array | bool, dtype: DType, maybe: Array | None, sure: Array | None) -> Array:
    """The result of an operation on known numbers; what has no value is a NaN."""
    nan = np.isnan(value)
    if nan.any():
        maybe, sure = either(maybe, nan), either(sure, nan)
        value = np.where(nan, 0.0, value)
    low = down(value, exact)
    high = low if exact is True else up(value, exact)
    return settled(value, low, value, high, dtype, maybe, sure)


def add(dtype: DType) -> Operation:
    """The sum."""

    def operation(x: Array, y: Array) -> Array:
        a, b = opened(x), opened(y)
        maybe, sure = _both(a, b)
        if a.known and b.known:
            return _points(*added(a.low, b.low), dtype, maybe, sure)
        clash = ((a.high == np.inf) & (b.low == -np.inf)) | ((a.low == -np.inf) & (b.high == np.inf))
        always = ((a.low == np.inf) & (b.high == -np.inf)) | ((a.high == -np.inf) & (b.low == np.inf))
        least, exact_low = added(a.low, b.low)
        most, exact_high = added(a.high, b.high)
        least, most = np.where(np.isnan(least), -np.inf, least), np.where(np.isnan(most), np.inf, most)
        low, high = down(least, exact_low), up(most, exact_high)
        low, least = (np.where(z == 0, -0.0, z) for z in (low, least))
        high, most = (np.where(z == 0, 0.0, z) for z in (high, most))
        return settled(least, low, most, high, dtype, either(maybe, clash), either(sure, always))

    return operation


def subtract(dtype: DType) -> Operation:
    """The difference."""
    plus = add(dtype)
    return lambda x, y: plus(x, negative(y))


def negative(x: Array) -> Array:
    """The element with the other sign."""
    if not is_set(x):
        return np.negative(x)
    out = np.empty(x.shape, x.dtype)
    for name, other in (("low", "high"), ("high", "low"), ("least", "most"), ("most", "least")):
        out[name] = -x[other]
    return out


def _corners(function: Rounded, a: Opened, b: Opened) -> tuple[Array, Array, Array, Array]:
    """The least and the greatest result at the ends of two intervals: rounded, and enclosed."""
    near: list[Array] = []
    below: list[Array] = []
    above: list[Array] = []
    for p in (a.low,) if a.known else (a.low, a.high):
        for q in (b.low,) if b.known else (b.low, b.high):
            value, exact = function(p, q)
            value = _nan_free(value)
            near.append(value)
            below.append(down(value, exact))
            above.append(up(value, exact))
    least, low = np.minimum.reduce(near), np.minimum.reduce(below)
    most, high = np.maximum.reduce(near), np.maximum.reduce(above)
    return (
        np.where(least == 0, -0.0, least),
        np.where(low == 0, -0.0, low),
        np.where(most == 0, 0.0, most),
        np.where(high == 0, 0.0, high),
    )


def _holds_zero(a: Opened) -> Array:
    return (a.low <= 0) & (a.high >= 0)


def _holds_infinity(a: Opened) -> Array:
    return np.isinf(a.low) | np.isinf(a.high)


def multiply(dtype: DType) -> Operation:
    """The product."""

    def operation(x: Array, y: Array) -> Array:
        a, b = opened(x), opened(y)
        maybe, sure = _both(a, b)
        if a.known and b.known:
            if a.short and b.short:
                return _points(a.low * b.low, True, dtype, maybe, sure)
            return _points(*multiplied(a.low, b.low), dtype, maybe, sure)
        clash = (_holds_zero(a) & _holds_infinity(b)) | (_holds_zero(b) & _holds_infinity(a))
        zero_a, zero_b = (a.low == 0) & (a.high == 0), (b.low == 0) & (b.high == 0)
        endless_a, endless_b = (np.isinf(z.low) & (z.low == z.high) for z in (a, b))
        always = (zero_a & endless_b) | (zero_b & endless_a)
        least, low, most, high = _corners(multiplied, a, b)
        return settled(least, low, most, high, dtype, either(maybe, clash), either(sure, always))

    return operation


def divide(dtype: DType) -> Operation:
    """The quotient."""

    def operation(x: Array, y: Array) -> Array:
        a, b = opened(x), opened(y)
        maybe, sure = _both(a, b)
        if a.known and b.known:
            return _points(*divided(a.low, b.low), dtype, maybe, sure)
        clash = (_holds_zero(a) & _holds_zero(b)) | (_holds_infinity(a) & _holds_infinity(b))
        zeros_b = (b.low == 0) & (b.high == 0) & (np.signbit(b.low) == np.signbit(b.high))
        open_b = _holds_zero(b) & ~zeros_b
        least, low, most, high = _corners(divided, a, b)
        least, low = (np.where(open_b, -np.inf, z) for z in (least, low))
        most, high = (np.where(open_b, np.inf, z) for z in (most, high))
        return settled(least, low, most, high, dtype, either(maybe, clash), sure)

    return operation


def extreme(function: np.ufunc) -> Callable[[DType], Operation]:
    """The greater or the lesser of two elements: no rounding, bound by bound."""
    signed = Extreme(function)

    def make(dtype: DType) -> Operation:
        raised = lift(dtype)

        def operation(x: Array, y: Array) -> Array:
            a, b = raised(x), raised(y)
            out = np.empty(np.broadcast_shapes(a.shape, b.shape), FLOAT_SET)
            for name in FLOAT_SET.names or ():
                out[name] = signed(np.array(a[name]), np.array(b[name]))
            return out

        return operation

    return make


def absolute(dtype: DType) -> Operation:
    """The absolute value."""
    raised = lift(dtype)

    def operation(x: Array) -> Array:
        a = raised(x)
        out = np.empty(a.shape, FLOAT_SET)
        for first, last in (("low", "high"), ("least", "most")):
            p, q = np.abs(a[first]), np.abs(a[last])
            spans = np.signbit(a[first]) & ~np.signbit(a[last])
            out[first] = np.where(spans & ~np.isnan(p), 0.0, np.minimum(p, q))
            out[last] = np.maximum(p, q)
        return out

    return operation


def root(dtype: DType) -> Operation:
    """The square root, correctly rounded."""

    def operation(x: Array) -> Array:
        a = opened(x)
        if a.known:
            return _points(*rooted(a.low), dtype, a.maybe, a.sure)
        below, never = a.low < 0, a.high < 0
        near_low, exact_low = rooted(np.where(below, -0.0, a.low))
        near_high, exact_high = rooted(np.where(never, 0.0, a.high))
        low, high = down(near_low, exact_low), up(near_high, exact_high)
        return settled(near_low, low, near_high, high, dtype, either(a.maybe, below), either(a.sure, never))

    return operation


def whole(function: Callable[[Array], Array]) -> Callable[[DType], Operation]:
    """A rounding to integers: monotone, and exact."""

    def make(dtype: DType) -> Operation:
        def operation(x: Array) -> Array:
            a = opened(x)
            low = function(a.low)
            high = low if a.known else function(a.high)
            if a.known and a.sure is not None:
                low = high = _nan_free(low)
            return settled(low, low, high, high, dtype, a.maybe, a.sure)

        return operation

    return make


def remainder(dtype: DType) -> Operation:
    """The remainder of the division rounded toward zero."""

    def operation(x: Array, y: Array) -> Array:
        a, b = opened(x), opened(y)
        maybe, sure = _both(a, b)
        if a.known and b.known:
            return _points(np.fmod(a.low, b.low), True, dtype, maybe, sure)
        clash = _holds_zero(b) | _holds_infinity(a)
        size = np.minimum(np.maximum(np.abs(a.low), np.abs(a.high)), np.maximum(np.abs(b.low), np.abs(b.high)))
        low, high = np.where(a.low < 0, -size, -0.0), np.where(a.high > 0, size, 0.0)
        return settled(low, low, high, high, dtype, either(maybe, clash), sure)

    return operation


ARITHMETIC: Final[Mapping[str, Callable[[DType], Operation]]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "quotient": divide,
    "neg": lambda dtype: lambda x: negative(lift(dtype)(x)),
    "min": extreme(np.minimum),
    "max": extreme(np.maximum),
    "absolute": absolute,
    "remainder": remainder,
    "sqrt": root,
    "round_even": whole(np.rint),
    "round_down": whole(np.floor),
    "round_up": whole(np.ceil),
}
"""For each operation on floating-point elements what it is for a type."""


def cast_float(dtype: DType) -> Operation:
    """Floating-point elements of another type; any value where a NaN meets a type without one."""

    def operation(x: Array) -> Array:
        a = opened(x)
        low = a.low if a.sure is None else _nan_free(a.low)
        high = low if a.known else a.high
        out = settled(low, low, high, high, dtype, a.maybe, a.sure)
        if a.maybe is not None and not has_nan(dtype):
            out[np.broadcast_to(a.maybe, out.shape)] = everything((), dtype)
        return out

    return operation


def number(value: Array, exact: Array | bool, dtype: DType) -> Array:
    """Numbers given as the nearest doubles, as elements."""
    return _points(np.asarray(value, np.float64), exact, dtype, None, None)
