"""Rounding of intervals: from enclosures of exact results to what an element type, or a wider one, may make of them.

An operation on numbers gives an exact result s. An implementation holds s rounded to the element type or to any wider
type, which is at most as far from s as the rounding to the element type is: it lies in s - e .. s + e for e the
distance of s from its rounding. Rounding is monotone, so the ends of an interval give the ends of what it becomes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from .....model.elements import DOUBLE, DType, finfo, has_infinity
from ...terms import Array
from ..ieee import narrow
from .storage import either, packed

Limits = tuple[float, float, float, int]

_PHI: Final = 2.0**-53 * (1 + 2.0**-52)
_ETA: Final = 5e-324


@cache
def limits(dtype: DType) -> Limits:
    """The unit roundoff u, the smallest positive number, the greatest number, the precision in bits."""
    info = finfo(dtype)
    precision = int(info.nmant) + 1
    return 2.0**-precision, float(info.smallest_subnormal), float(info.max), precision


def below(x: Array) -> Array:
    """Doubles that are less: the next ones, or at most one further down; of the positive infinity the greatest one.

    S. Rump, P. Zimmermann, S. Boldo, G. Melquiond, "Computing predecessor and successor in rounding to nearest", 2009.
    """
    return -above(-x)


def above(x: Array) -> Array:
    """Doubles that are greater: the next ones, or at most one further up."""
    step = np.abs(x)
    step *= _PHI
    step += _ETA
    step += x
    return np.nextafter(x, np.inf) if np.isnan(step.min(initial=0.0)) else step


def down(x: Array, exact: Array | bool) -> Array:
    """The doubles, or ones just below where they are not exact."""
    return x if exact is True else np.where(exact, x, below(x))


def up(x: Array, exact: Array | bool) -> Array:
    """The doubles, or ones just above where they are not exact."""
    return x if exact is True else np.where(exact, x, above(x))


def settled(
    near_low: Array,
    low: Array,
    near_high: Array,
    high: Array,
    dtype: DType,
    maybe: Array | None = None,
    sure: Array | None = None,
) -> Array:
    """The sets of elements of `dtype` that the result of one operation may be.

    low, high: doubles that enclose its exact value. near_low, near_high: the doubles nearest to its exact bounds. No
    argument is a NaN but where `sure` holds.
    """
    if dtype == DOUBLE:
        return packed(low, high, near_low, near_high, maybe, sure)
    least, most = _rounded(low, dtype), _rounded(high, dtype)
    if not has_infinity(dtype):
        lost_low, lost_high = np.isnan(least) & ~np.isnan(low), np.isnan(most) & ~np.isnan(high)
        greatest = limits(dtype)[2]
        maybe = either(maybe, lost_low, lost_high)
        sure = either(sure, lost_low & lost_high & (np.signbit(low) == np.signbit(high)))
        least = np.where(lost_low, np.copysign(greatest, low), least)
        most = np.where(lost_high, np.copysign(greatest, high), most)
    return packed(_mirrored(least, low, below), _mirrored(most, high, above), least, most, maybe, sure)


def _mirrored(stored: Array, end: Array, outward: Callable[[Array], Array]) -> Array:
    """The end of an interval, rounded, or as far on the other side of it where the rounding moves it inwards."""
    inwards = stored > end if outward is below else stored < end
    if not inwards.any():
        return stored
    moved = outward(2 * end - stored)
    return np.where(inwards, np.where(np.isinf(stored), end, moved), stored)


def _rounded(x: Array, dtype: DType) -> Array:
    return np.asarray(narrow(np.asarray(x), dtype)).astype(np.float64)


def added(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b rounded, and whether that is exact (Knuth's sum)."""
    total = a + b
    part = total - a
    rest = (a - (total - part)) + (b - part)
    return total, (rest == 0) | np.isinf(a) | np.isinf(b)


def multiplied(a: Array, b: Array) -> tuple[Array, Array]:
    """a * b rounded, and whether that is known to be exact (Dekker's product)."""
    product = a * b
    exact = (_product_rest(a, b, product) == 0) & (np.abs(product) > 1e-280)
    return product, exact | (a == 0) | (b == 0) | np.isinf(a) | np.isinf(b)


def _product_rest(a: Array, b: Array, product: Array) -> Array:
    factor = 134217729.0
    high_a, high_b = factor * a - (factor * a - a), factor * b - (factor * b - b)
    low_a, low_b = a - high_a, b - high_b
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def divided(a: Array, b: Array) -> tuple[Array, Array]:
    """a / b rounded, and whether that is known to be exact."""
    quotient = a / b
    product, exact = multiplied(quotient, b)
    return quotient, (exact & (product == a) & np.isfinite(quotient)) | np.isinf(a) | np.isinf(b) | (b == 0) | (a == 0)


def rooted(x: Array) -> tuple[Array, Array]:
    """The square root rounded, and whether that is known to be exact."""
    root = np.sqrt(x)
    product, exact = multiplied(root, root)
    return root, (exact & (product == x)) | np.isinf(x) | (x == 0)
