"""Functions of elements, each rounded once to nearest, ties to even, written into given memory.

A function without an exact value is computed in double and rounded once; the other operations are those of the element
type. Types of 8 exponent bits and few digits (bfloat16 ...) are computed in float, which holds them, and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Any, Final

import ml_dtypes
import numpy as np

from .kernel import Array
from .workers import alone, shared

DType = np.dtype[Any]

SINGLE: Final[DType] = np.dtype(np.float32)
DOUBLE: Final[DType] = np.dtype(np.float64)
HALF: Final[DType] = np.dtype(np.float16)
BFLOAT16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
INT32: Final[DType] = np.dtype(np.int32)
BYTE: Final[DType] = np.dtype(np.uint8)


_limits: Final[Callable[[DType], Any]] = ml_dtypes.finfo
_integer_limits: Final[Callable[[DType], Any]] = ml_dtypes.iinfo


def is_integer(dtype: DType) -> bool:
    """True where the elements are integers, those below a byte included."""
    return dtype.kind in "iu" or "int" in dtype.name


def is_float(dtype: DType) -> bool:
    """True where the elements are floating-point numbers of any size."""
    return dtype.kind == "f" or "float" in dtype.name


def summing(dtype: DType) -> DType:
    """The type in which sums of products of floats are computed: float for types of 16 bits and less."""
    return dtype if dtype in (SINGLE, DOUBLE) else SINGLE


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest element of a type of integers."""
    info = _integer_limits(dtype)
    return int(info.min), int(info.max)


def greatest(dtype: DType) -> float:
    """The greatest number of a floating-point type."""
    return float(_limits(dtype).max)


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


# ---- Functions ------------------------------------------------------------------------------------

Step = Callable[[Array, Array], None]
"""Computes the second array from the first; they have one shape and dtype and may be the same memory."""

NATIVE: Final = frozenset({HALF, SINGLE, DOUBLE})
BLOCK: Final = 1 << 14
"""Elements that are computed at a time where there are several steps, so that they stay in the cache between them."""


_FEW_BLOCKS: Final = 4
"""Blocks that are not worth another thread."""


def in_blocks(step: Step, x: Array, out: Array) -> None:
    """The step, block by block; `out` is contiguous."""
    if x.size <= BLOCK:
        step(x, out)
        return
    if not x.flags.c_contiguous:
        np.copyto(out, x)
        x = out
    flat, into = x.reshape(-1), out.reshape(-1)
    blocks = [slice(start, start + BLOCK) for start in range(0, flat.size, BLOCK)]
    (shared if len(blocks) > _FEW_BLOCKS else alone)(len(blocks), lambda k, _: step(flat[blocks[k]], into[blocks[k]]))


def direct(function: np.ufunc) -> Callable[[DType], Step]:
    """A NumPy function in the element type; for types that NumPy lacks in float, rounded."""

    def make(dtype: DType) -> Step:
        if dtype.kind in "biufc":

            def native(x: Array, out: Array) -> None:
                function(x, out=out)

            return native

        def step(x: Array, out: Array) -> None:
            np.copyto(out, function(x.astype(np.float32)), casting="unsafe")

        return step

    return make


def through_double(function: np.ufunc) -> Callable[[DType], Step]:
    """A NumPy function computed in double, rounded once."""

    def make(dtype: DType) -> Step:
        if dtype in NATIVE:

            def native(x: Array, out: Array) -> None:
                function(x, out=out, dtype=DOUBLE)

            return native

        def step(x: Array, out: Array) -> None:
            np.copyto(out, narrow(function(x.astype(np.float64)), dtype))

        return step

    return make


def finite_range(dtype: DType) -> tuple[float, float]:
    """The least and the greatest finite number of a type, integers of a type of integers."""
    if not is_float(dtype):
        return integer_range(dtype)
    info = _limits(dtype)
    return float(info.min), float(info.max)


# ---- limits -----------------------------------------------------------------------------------

_FEW: Final = 256
_FILLED: Final = 1 << 16
_SHORT, _ROW = 64, 1 << 13


@cache
def _order(function: np.ufunc, dtype: DType, filled: bool = False) -> int:
    """Which argument of maximum or minimum is the result when they are zeros of either sign: 0 or 1; -1 when that is
    not always the same. NumPy leaves it to the processor and to how the data lie. filled: the bound is an array too.
    """
    orders = set()
    for size in (1, 2, 3, 7, 8, 15, 16, 31, 33, 64, 67, 129):
        for step in (1, 2):
            for sign in (0.0, -0.0):
                x = np.full(size * step, sign).astype(dtype)[::step]
                bound = scalar(-sign, dtype)
                bound = np.full(size, bound) if filled else bound
                first = set(np.signbit(function(x, bound)).tolist()) == {math.copysign(1, sign) < 0}
                second = set(np.signbit(function(bound, x)).tolist()) == {math.copysign(1, sign) < 0}
                orders.add((first, second))
    return {(True, False): 0, (False, True): 1}.get(orders.pop(), -1) if len(orders) == 1 else -1


@lru_cache(maxsize=16)
def _filled(code: bytes, dtype: DType) -> Array:
    """An array of one element: NumPy's maximum and minimum are much faster on two arrays than with a scalar."""
    filled: Array = np.full(_FILLED, np.frombuffer(code, dtype)[0], dtype)
    filled.flags.writeable = False
    return filled


def _limiting(function: np.ufunc, beyond: np.ufunc) -> Callable[[Array, Array, Array], None]:
    def limit(x: Array, bound: Array, out: Array) -> None:
        if bound.dtype.kind in "iu":
            function(x, bound, out=out)
            return
        usual = x.size > _FEW and bound.dtype in NATIVE and _order(function, bound.dtype, True) >= 0
        if bound != bound:
            np.copyto(out, x)
        elif usual and filled(x, bound, out):
            return
        elif (order := _order(function, bound.dtype, False)) < 0 and bound == 0:
            outside = beyond(x, bound)
            np.copyto(out, x)
            np.copyto(out, bound, where=outside)
        elif order == 1:
            function(bound, x, out=out)
        else:
            function(x, bound, out=out)

    def filled(x: Array, bound: Array, out: Array) -> bool:
        """True where the function was applied with an array of the bound: few calls, each beside one row of it."""
        full, second = _filled(bound.tobytes(), bound.dtype), _order(function, bound.dtype, True) == 1

        def step(data: Array, beside: Array, goal: Array) -> None:
            if second:
                function(beside, data, out=goal)
            else:
                function(data, beside, out=goal)

        if x.ndim == 2 and _SHORT <= x.shape[1] <= _FILLED and not (x.flags.c_contiguous and out.flags.c_contiguous):
            step(x, full[: x.shape[1]], out)
        elif x.flags.c_contiguous and out.flags.c_contiguous:
            flat, into = x.reshape(-1), out.reshape(-1)
            whole = x.size // _ROW * _ROW
            if whole:
                step(flat[:whole].reshape(-1, _ROW), full[:_ROW], into[:whole].reshape(-1, _ROW))
            if whole < x.size:
                step(flat[whole:], full[: x.size - whole], into[whole:])
        elif x.size <= _FILLED:
            step(x, full[: x.size].reshape(x.shape), out)
        else:
            return False
        return True

    return limit


at_least: Final = _limiting(np.maximum, np.less)
"""at_least(x, bound, out): the bound, of rank 0, where x is less, else x. A bound that is a NaN has no effect."""
at_most: Final = _limiting(np.minimum, np.greater)
"""at_most(x, bound, out): the bound where x is greater, else x. A bound that is a NaN has no effect."""


_ZEROS: Final = {kind: np.zeros(_FILLED, kind) for kind in (SINGLE, DOUBLE)}
_ZEROS_ROW: Final = 1 << 12
"""The zeros that data which lie together are compared with, again and again: few enough to stay near the processor."""


def rectifying(x: Array, out: Array) -> list[Callable[[], object]]:
    """at_least(x, 0, out) for floats and doubles as calls, without its questions."""
    zeros, order = _ZEROS[x.dtype], _order(np.maximum, x.dtype, True)
    pairs = [(x, out)]
    if x.flags.c_contiguous and out.flags.c_contiguous:
        flat, into, whole = x.reshape(-1), out.reshape(-1), x.size // _ZEROS_ROW * _ZEROS_ROW
        rows = (flat[:whole].reshape(-1, _ZEROS_ROW), into[:whole].reshape(-1, _ZEROS_ROW))
        pairs = [it for it in (rows, (flat[whole:], into[whole:])) if it[0].size]
    elif not (x.ndim == 2 and _SHORT <= x.shape[1] <= _FILLED):
        order = -1
    if order < 0:
        return [partial(at_least, x, zeros[0, ...], out)]
    return [
        partial(np.maximum, *((zeros[: a.shape[-1]], a) if order else (a, zeros[: a.shape[-1]])), out=goal)
        for a, goal in pairs
    ]


# ---- choice -----------------------------------------------------------------------------------

_CODES: Final[Mapping[int, DType]] = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}


def select(mask: Array, a: Array, b: Array, out: Array) -> None:
    """The elements of a where the mask holds, else those of b, bit by bit; `out` may be the memory of a or b.

    Without a branch for each element: a masked copy takes ten times as long where the mask changes often.
    """
    code = None if out.dtype.hasobject else _CODES.get(out.dtype.itemsize)
    if code is None:
        np.copyto(out, np.where(mask, a, b))
        return
    keep = np.negative(mask.view(np.int8), dtype=code)
    bits = b.view(code)
    changed = np.bitwise_and(np.bitwise_xor(a.view(code), bits), keep)
    np.bitwise_xor(changed, bits, out=out.view(code))


# ---- erf --------------------------------------------------------------------------------------

_GRID: Final = 4096
_TOP: Final = 6
_THIRD, _TWO_THIRDS = 1 / 3, 2 / 3
_CENTRES: Final = np.arange(_TOP * _GRID + 1) / _GRID
_ERF: Final = np.array([math.erf(c) for c in _CENTRES.tolist()])
_SLOPE: Final = 2 / math.sqrt(math.pi) * np.exp(-_CENTRES * _CENTRES)
ERF_TABLES: Final = np.concatenate((_ERF, _SLOPE))
"""The error function at k / 4096, then its slope."""
_each_erf: Final = np.frompyfunc(math.erf, 1, 1)


def _erf_of(x: Array) -> Array:
    """The error function of doubles that are floats of fewer bits, to about the last bit of a double.

    Taylor's series of degree 3 about the nearest multiple of 1 / 4096: the n-th derivative is the first one, which is
    2 / sqrt(pi) * exp(-c * c), times a Hermite polynomial of c. Beyond 6 the function is 1 to the last bit.
    """
    size = np.abs(x)
    np.minimum(size, _TOP, out=size)
    c = np.fmin(size, _TOP)
    c *= _GRID
    np.rint(c, out=c)
    near = c.astype(np.int32)
    c *= 1 / _GRID
    h = np.subtract(size, c, out=size)
    series = c * c
    series *= _TWO_THIRDS
    series -= _THIRD
    series *= h
    series -= c
    series *= h
    series += 1.0
    series *= h
    series *= _SLOPE[near]
    series += _ERF[near]
    return np.asarray(np.copysign(series, x, out=series))


def erf(dtype: DType) -> Step:
    """The error function; of doubles that of the C library, element by element."""

    def step(x: Array, out: Array) -> None:
        if dtype == DOUBLE:
            np.copyto(out, _each_erf(x), casting="unsafe")
        else:
            np.copyto(out, narrow(_erf_of(x.astype(np.float64)), dtype))

    return step
