"""Sums of products of two factors as matrix products in double.

Centre and magnitude are the products of the factors and of their magnitudes, by BLAS: it may add in any order and fuse,
which the error that `moments` counts for computing in double covers. The factors are packed from strided views.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...code import LOWER, Code, Frame, Job, Space, lower, over, run_of
from ...equations import Fold, blocks, fold_space, fold_terms
from ...terms import ELEMENT, Array, Axis, Node, Operand, axes_of
from .moments import Moments, Special, quantum_of, together
from .rounding import limits
from .storage import Opened, is_set, known_numbers, opened

PACKED = 1 << 23
"""The number of elements of a factor that are packed at a time."""

Sum = Callable[[Frame], Moments]


@dataclass(frozen=True, slots=True)
class Roles:
    """The axes of the outputs: those of both factors, of the left one alone, of the right one alone."""

    both: tuple[Axis, ...]
    left: tuple[Axis, ...]
    right: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The factors for some steps; mask: where the guard holds, and which factor it is applied to."""

    left: Job
    right: Job
    steps: tuple[int, ...]
    mask: Job | None
    masks_left: bool


def products(fold: Fold, node: Node, space: Space) -> Sum | None:
    """The moments of such a sum; None when it is none."""
    body = fold.body
    if not isinstance(body, Node) or body.op != "element" or body.data != "mul" or body.kind != ELEMENT:
        return None
    if node.type is None or not set(node.axes) <= set(axes_of(body)):
        return None
    first, second = body.args
    masks_left = False
    if fold.guard is not True:
        held = set(axes_of(fold.guard))
        masks_left = held <= set(axes_of(first))
        if not masks_left and not held <= set(axes_of(second)):
            return None
    roles = _roles(first, second, space)
    widest = max(_size(axes_of(first), space), _size(axes_of(second), space), 1)
    parts: list[Part] = []
    for box in blocks(fold.axes, max(1, PACKED // widest)):
        inner = fold_space(fold.axes, space, box)
        mask = None if fold.guard is True else run_of(fold_terms(fold, fold.guard, space, box))
        steps = tuple(hi - lo for lo, hi in (box[axis] for axis in fold.axes))
        parts.append(Part(run_of(_plain(first, inner)), run_of(_plain(second, inner)), steps, mask, masks_left))
    pack = _Pack(roles, space, len(fold.axes))
    shape, smallest = over(space, node.axes), limits(node.type)[1]

    def run(frame: Frame) -> Moments:
        total = _multiplied(parts[0], pack, shape, smallest, frame)
        for part in parts[1:]:
            total = together(total, _multiplied(part, pack, shape, smallest, frame))
        return replace(total, terms=np.maximum(total.terms, 1.0))

    return run


def _size(axes: tuple[Axis, ...], space: Space) -> int:
    return math.prod(space.box[a][1] - space.box[a][0] for a in axes if a in space.box)


def _roles(first: Operand, second: Operand, space: Space) -> Roles:
    left, right = set(axes_of(first)), set(axes_of(second))
    order = space.order
    return Roles(
        tuple(a for a in order if a in left and a in right),
        tuple(a for a in order if a in left and a not in right),
        tuple(a for a in order if a in right and a not in left),
    )


def _plain(term: Operand, space: Space) -> Code:
    """The values of a factor, known elements as they lie in the frame."""
    if isinstance(term, Node) and term.op == "read":
        return LOWER["read"](term, space)
    return lower(term, space)


@dataclass(frozen=True, slots=True)
class _Pack:
    """The matrices of factors (both, left, steps) and (both, steps, right), and the product an array of outputs."""

    roles: Roles
    space: Space
    count: int

    def matrix(self, x: Array, steps: tuple[int, ...], *, left: bool) -> Array:
        """A factor, a view where that is possible."""
        own = self.roles.left if left else self.roles.right
        order = self.space.order
        sizes = [self._width(a) if a in self.roles.both or a in own else 1 for a in order]
        full = np.broadcast_to(x, (*steps, *sizes))
        places = [self.count + order.index(a) for a in self.roles.both]
        mine = [self.count + order.index(a) for a in own]
        rest = [p for p in range(self.count, full.ndim) if p not in places and p not in mine]
        folded = list(range(self.count))
        turned = full.transpose([*places, *mine, *folded, *rest] if left else [*places, *folded, *mine, *rest])
        batch = math.prod(self._width(a) for a in self.roles.both)
        width, total = math.prod(self._width(a) for a in own), math.prod(steps)
        return turned.reshape((batch, width, total) if left else (batch, total, width))

    def unpacked(self, x: Array, shape: tuple[int, ...]) -> Array:
        """A product as an array over the box."""
        order = (*self.roles.both, *self.roles.left, *self.roles.right)
        sizes = [self._width(a) for a in order]
        wanted = [a for a in self.space.order if a in order]
        return x.reshape(sizes).transpose([order.index(a) for a in wanted]).reshape(shape)

    def _width(self, axis: Axis) -> int:
        lo, hi = self.space.box[axis]
        return hi - lo


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor: its finite part as centre and radius (None for 0) with its greatest magnitudes, and, where it is not
    finite, the sets themselves.

    kept: where the guard holds; None for everywhere.
    """

    centre: Array
    radius: Array | None
    size: Array
    sets: Opened | None
    kept: Array | None

    def where(self, mask: Array) -> Array:
        """A mask as a matrix of ones and zeros."""
        return (mask if self.kept is None else mask & self.kept).astype(np.float64)


def _factor(x: Array, pack: _Pack, steps: tuple[int, ...], kept: Array | None, *, left: bool) -> _Factor:
    """A factor as a matrix. The fields of sets are packed one by one, of known elements a single one."""
    if not is_set(x) or known_numbers(x):
        low = pack.matrix(x["low"] if is_set(x) else x, steps, left=left).astype(np.float64, copy=False)
        if kept is not None:
            low = np.where(kept, low, 0.0)
        size = np.abs(low)
        if np.isfinite(size.max(initial=0.0)):
            return _Factor(low, None, size, None, kept)
    a = opened(pack.matrix(x, steps, left=left))
    finite = np.isfinite(a.low) & np.isfinite(a.high)
    sets = None if finite.all() else a
    used = finite if kept is None else finite & kept
    low = np.where(used, a.low, 0.0)
    if a.known:
        return _Factor(low, None, np.abs(low), sets, kept)
    high = np.where(used, a.high, 0.0)
    middle = low + (high - low) / 2
    radius = np.where(low == high, 0.0, np.nextafter(np.maximum(high - middle, middle - low), np.inf))
    if not radius.any():
        return _Factor(middle, None, np.abs(middle), sets, kept)
    return _Factor(middle, radius, np.abs(middle) + radius, sets, kept)


def _multiplied(part: Part, pack: _Pack, shape: tuple[int, ...], smallest: float, frame: Frame) -> Moments:
    """The sum over some steps."""
    a, b = np.asarray(part.left(frame)), np.asarray(part.right(frame))
    number: Array = np.asarray(float(math.prod(part.steps)))
    kept = None
    if part.mask is not None:
        mask = np.asarray(part.mask(frame))
        mask = np.broadcast_to(mask, (*part.steps, *mask.shape[pack.count :]))
        number = mask.sum(axis=tuple(range(pack.count))).astype(np.float64)
        kept = pack.matrix(mask, part.steps, left=part.masks_left)
    p = _factor(a, pack, part.steps, kept if part.masks_left else None, left=True)
    q = _factor(b, pack, part.steps, None if part.masks_left else kept, left=False)
    size = p.size @ q.size
    radius: Array = np.zeros(())
    if q.radius is not None:
        radius = radius + np.abs(p.centre) @ q.radius
    if p.radius is not None:
        radius = radius + p.radius @ q.size
    exact = p.radius is None and q.radius is None
    return Moments(
        pack.unpacked(p.centre @ q.centre, shape),
        pack.unpacked(radius, shape) if radius.ndim else radius,
        pack.unpacked(size, shape),
        number * smallest,
        number,
        1,
        quantum_of(p.centre) * quantum_of(q.centre) if exact else 0.0,
        None if p.sets is None and q.sets is None else _special(p, q, pack, shape),
    )


def _special(p: _Factor, q: _Factor, pack: _Pack, shape: tuple[int, ...]) -> Special:
    """The infinities and NaNs among the products. Of factors that are no known numbers any may come, but what is a NaN
    makes one.
    """

    def some(*pairs: tuple[Array, Array]) -> Array:
        total = sum(p.where(a) @ q.where(b) for a, b in pairs)
        return pack.unpacked(np.asarray(total) > 0, shape)

    x, y = (f.sets or Opened(f.centre, f.centre, None, None, known=f.radius is None) for f in (p, q))
    every_x, every_y = np.ones(x.low.shape, bool), np.ones(y.low.shape, bool)
    if not (x.known and y.known):
        wild_x, wild_y = (~(np.isfinite(z.low) & np.isfinite(z.high)) for z in (x, y))
        maybe = some((wild_x, every_y), (every_x, wild_y))
        never = np.zeros(maybe.shape, bool)
        sure_x, sure_y = (z.sure if z.sure is not None else np.zeros(z.low.shape, bool) for z in (x, y))
        return Special(maybe, never, maybe, never, maybe, some((sure_x, every_y), (every_x, sure_y)))
    a, b = x.low, y.low
    above = some((a == np.inf, b > 0), (a == -np.inf, b < 0), (a > 0, b == np.inf), (a < 0, b == -np.inf))
    below = some((a == np.inf, b < 0), (a == -np.inf, b > 0), (a > 0, b == -np.inf), (a < 0, b == np.inf))
    nan = some((np.isnan(a), every_y), (every_x, np.isnan(b)), (np.isinf(a), b == 0), (a == 0, np.isinf(b)))
    return Special(above, above, below, below, nan, nan)
