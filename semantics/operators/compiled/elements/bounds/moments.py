"""The moments that bound a sum for every order: centre, radius, magnitude, and how often it is rounded.

A sum of n terms, evaluated in any order or tree, each addition rounded to nearest in the element type or a wider one,
is off by at most (n - 1) u times the sum of the magnitudes; with products as terms, fused or not, n u (C. Jeannerod
and S. Rump, "Improved error bounds for inner products in floating-point arithmetic", 2013, without restriction on n).
Each product may lose half the smallest number more by underflow. A partial sum is at most the sum of the positive terms
and at least that of the negative ones, which tells whether an order exists in which it overflows.

Centre and magnitude are computed in double; their own error, bounded in the same way with the double's u, is part of
the radius. For sums of doubles the set is therefore about twice as wide as it need be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from .....model.elements import DOUBLE, DType
from ...terms import Array
from .rounding import above, below, limits, settled
from .storage import FLOAT_SET, Opened, either, opened

U: Final = 2.0**-53
PIECE: Final = 1 << 14
"""The number of sums that are finished at a time."""
QUANTA: Final = (1.0, 2.0**-6, 2.0**-12)
"""The grids on which data is looked for that sums up without rounding."""


@dataclass(frozen=True, slots=True)
class Special:
    """Infinities and NaNs among the terms: where there may be one and where there is one."""

    maybe_above: Array
    above: Array
    maybe_below: Array
    below: Array
    maybe_nan: Array
    nan: Array


@dataclass(frozen=True, slots=True)
class Moments:
    """A sum of `terms` numbers. centre, radius: of the finite terms, with the sets that they are. size: the sum of the
    greatest magnitudes. loss: what underflow may take away. extra: how often a term is rounded before it is added.

    quantum: a power of two of which each term is a multiple, 0 where none is known.
    """

    centre: Array
    radius: Array
    size: Array
    loss: Array
    terms: Array
    extra: int
    quantum: float
    special: Special | None = None


def quantum_of(x: Array) -> float:
    """A power of two of which each number is a multiple; 0 where none is looked for."""
    few = x[tuple(slice(0, 8) for _ in x.shape)]
    for part in (few, x):
        quantum = next((q for q in QUANTA if np.array_equal(np.rint(part / q) * q, part)), 0.0)
        if not quantum:
            return 0.0
    return quantum


def of_terms(terms: Array, count: int, mask: Array | None = None) -> Moments:
    """The sum of sets along the first `count` dimensions, those where the mask holds."""
    a = opened(terms)
    axes = tuple(range(count))
    low, high, special = _finite(a.low, a.high, a.maybe, a.sure, mask, axes)
    number = np.asarray(float(np.prod(terms.shape[:count])))
    if mask is not None:
        kept = np.broadcast_to(mask, terms.shape)
        low, high = np.where(kept, low, 0.0), np.where(kept, high, 0.0)
        number = np.maximum(kept.sum(axis=axes).astype(np.float64), 1)
    size = np.maximum(np.abs(low), np.abs(high))
    if a.known:
        middle, spread = low, np.zeros(())
    else:
        middle = low + (high - low) / 2
        middle = np.where(np.isfinite(middle), middle, 0.0)
        spread = np.where(low == high, 0.0, np.nextafter(np.maximum(high - middle, middle - low), np.inf))
    quantum = quantum_of(low) if a.known and a.maybe is None else 0.0
    zero = np.zeros(size.shape[count:])
    radius = zero if a.known else spread.sum(axis=axes)
    return Moments(middle.sum(axis=axes), radius, size.sum(axis=axes), zero, number, 0, quantum, special)


def _finite(
    low: Array, high: Array, maybe: Array | None, sure: Array | None, mask: Array | None, axes: tuple[int, ...]
) -> tuple[Array, Array, Special | None]:
    """Intervals without what is no number, and what was taken out."""
    if np.isfinite(low).all() and np.isfinite(high).all():
        return low, high, None
    shape = np.broadcast_shapes(low.shape, () if mask is None else mask.shape)

    def some(where: Array | None) -> Array:
        if where is None:
            return np.asarray(np.zeros(shape, bool).any(axis=axes))
        return np.asarray(np.broadcast_to(where if mask is None else where & mask, shape).any(axis=axes))

    good = None if maybe is None else ~maybe
    above, below = low == np.inf, high == -np.inf
    special = Special(
        some(high == np.inf if good is None else (high == np.inf) & good),
        some(above if good is None else above & good),
        some(low == -np.inf if good is None else (low == -np.inf) & good),
        some(below if good is None else below & good),
        some(maybe),
        some(sure),
    )
    gone = above | below if maybe is None else above | below | maybe
    return np.where(gone, 0.0, low), np.where(gone, 0.0, high), special


def together(a: Moments, b: Moments) -> Moments:
    """The sum of two sums, as one."""
    special = a.special if b.special is None else b.special
    if a.special is not None and b.special is not None:
        special = Special(*(getattr(a.special, n) | getattr(b.special, n) for n in Special.__slots__))
    return Moments(
        a.centre + b.centre,
        a.radius + b.radius,
        a.size + b.size,
        a.loss + b.loss,
        a.terms + b.terms,
        max(a.extra, b.extra),
        min(a.quantum, b.quantum),
        special,
    )


def negated(a: Moments) -> Moments:
    """The sum with the other sign."""
    s = a.special
    turned = None if s is None else Special(s.maybe_below, s.below, s.maybe_above, s.above, s.maybe_nan, s.nan)
    return replace(a, centre=-a.centre, special=turned)


def scaled(a: Moments, factor: Array, dtype: DType, roundings: int = 1) -> Moments:
    """A factor times the sum, whether it is applied to the sum or to the terms before; how often that is rounded."""
    f = opened(factor)
    u, smallest, greatest, _ = limits(dtype)
    middle = f.low + (f.high - f.low) / 2
    spread = np.zeros(()) if f.known else np.nextafter(np.maximum(f.high - middle, middle - f.low), np.inf)
    big = np.maximum(np.abs(f.low), np.abs(f.high))
    wild = ~np.isfinite(big) | (a.size * (1 + 2 * a.terms * u) + a.loss >= greatest)
    s, special = a.special, None
    if s is not None:
        wild = wild | ((s.maybe_above | s.maybe_below | s.maybe_nan) & ~((f.low > 0) | (f.high < 0)))
    if s is not None or wild.any():
        special = _scaled(s, f, wild)
    centre = np.where(wild, 0.0, middle * a.centre)
    radius = np.abs(middle) * a.radius + (np.abs(a.centre) + a.radius) * spread + 2 * U * np.abs(centre)
    size, loss = (np.where(wild, np.inf, z) for z in (a.size * big, a.loss * big + a.terms * smallest))
    return Moments(centre, np.where(wild, np.inf, radius), size, loss, a.terms, a.extra + roundings, 0.0, special)


def _scaled(special: Special | None, factor: Opened, wild: Array) -> Special:
    """Infinities and NaNs times a factor that has one sign. wild: where it has none, or where finite terms may
    overflow: what is a NaN remains one there, and else anything may come.
    """
    never = np.zeros(wild.shape, bool)
    s = special or Special(never, never, never, never, never, never)
    turned = factor.high < 0
    above, below = np.where(turned, s.below, s.above), np.where(turned, s.above, s.below)
    zero = (factor.low == 0) & (factor.high == 0)
    nan = s.nan | (s.above & s.below) | ((s.above | s.below) & zero)
    return Special(
        wild | np.where(turned, s.maybe_below, s.maybe_above),
        ~wild & above,
        wild | np.where(turned, s.maybe_above, s.maybe_below),
        ~wild & below,
        wild | s.maybe_nan,
        nan if factor.sure is None else nan | factor.sure,
    )


def finished(m: Moments, dtype: DType) -> Array:
    """The sets of elements that a sum may be, computed piece by piece so that what is needed stays in the cache."""
    parts = (m.centre, m.radius, m.size, m.loss, m.terms)
    special = () if m.special is None else tuple(getattr(m.special, name) for name in Special.__slots__)
    shape = np.broadcast_shapes(*(z.shape for z in (*parts, *special)))
    count = math.prod(shape)
    if count <= PIECE:
        return _finished(m, dtype)
    flat = [z if z.ndim == 0 else np.broadcast_to(z, shape).reshape(-1) for z in (*parts, *special)]
    out: Array = np.empty(count, FLOAT_SET)
    for first in range(0, count, PIECE):
        piece = slice(first, first + PIECE)
        centre, radius, size, loss, terms, *rest = (z if z.ndim == 0 else z[piece] for z in flat)
        some = Special(*rest) if rest else None
        out[piece] = _finished(Moments(centre, radius, size, loss, terms, m.extra, m.quantum, some), dtype)
    return out.reshape(shape)


def _finished(m: Moments, dtype: DType) -> Array:
    u, smallest, greatest, precision = limits(dtype)
    roundings = m.terms - 1 + m.extra
    off = roundings * u
    if m.extra > 1:
        off = np.where(off < 0.5, off / (1 - np.minimum(off, 0.5)), np.inf)
    own = (m.terms + 8) * U * (1 + 2.0**-20)
    size = m.size * (1 + 2 * own)
    error = off * size + m.loss * (1 + off)
    grown = error + 2 * own * size + (m.loss if dtype == DOUBLE else 0.0)
    radius = (m.radius + grown) * (1 + 2.0**-40 + 2 * own)
    if m.quantum >= smallest:
        radius = np.where(size <= 2.0**precision * m.quantum, 0.0, radius)
    if dtype != DOUBLE and not (m.size.all() or m.radius.all()):
        radius = np.where((m.size == 0) & (m.radius == 0), 0.0, radius)
    radius = np.where(np.isnan(radius), np.inf, radius)
    low, high = below(m.centre - radius), above(m.centre + radius)
    if not radius.all():
        low, high = np.where(radius == 0, m.centre, low), np.where(radius == 0, m.centre, high)
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    total = np.where(np.isfinite(m.size), m.size, np.inf)
    more = m.radius + 2 * own * total + off * total + m.loss
    limit = greatest * (1 - 2.0**-40)
    if m.special is None and (total + more).max(initial=0.0) * (1 + 2.0**-40) < limit:
        low, high = np.where(low == 0, -0.0, low), np.where(high == 0, 0.0, high)
        return settled(low, low, high, high, dtype)
    over = ~((total + m.centre) / 2 + more < limit)
    under = ~((total - m.centre) / 2 + more < limit)
    return _with_specials(low, high, over, under, m.special, dtype)


def _with_specials(low: Array, high: Array, over: Array, under: Array, special: Special | None, dtype: DType) -> Array:
    """The sets with what overflow, infinities and NaNs among the terms may do."""
    maybe, sure = over & under, None
    if special is not None:
        s = special
        sure = s.nan | (s.above & s.below)
        rises, falls = over | s.maybe_above, under | s.maybe_below
        maybe = s.maybe_nan | (rises & falls) | sure
        low = np.where(falls & ~s.above, -np.inf, np.where(s.above, np.inf, low))
        high = np.where(rises & ~s.below, np.inf, np.where(s.below, -np.inf, high))
        low, high = np.where(s.below, -np.inf, low), np.where(s.above, np.inf, high)
        low, high = np.where(s.maybe_nan & ~s.nan, -np.inf, low), np.where(s.maybe_nan & ~s.nan, np.inf, high)
    else:
        low, high = np.where(under, -np.inf, low), np.where(over, np.inf, high)
    low, high = np.where(low == 0, -0.0, low), np.where(high == 0, 0.0, high)
    return settled(low, low, high, high, dtype, either(maybe), either(sure))
