"""Folds, strictly in the written order: row-major over the indices, the left-most slowest, starting with the first term.

Each strategy gives the same bits. What is sequential is only the fold: a step is one operation on all outputs of a
block. Truth values and exact integers are reduced at once, since no order of theirs changes the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from sonnx.spec.syntax import Span

from .ieee_lower import LOWER, Code, Space, box_where, empty, lower, over, run_of, slices
from .ieee_plan import Frame
from .ieee_steps import stepped
from .ieee_terms import BOOL, ELEMENT, INT, Array, Axis, Node, Operand, Term, is_static, stuck

CHUNK: Final = 1 << 17
"""How many elements of the terms of a fold exist at a time."""
STEPS: Final = 1 << 12
"""A fold of at most this many steps has code of its own for each step."""


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A fold of a body over axes, where a guard holds; the size of each axis is greater than 1."""

    name: str
    axes: tuple[Axis, ...]
    body: Operand
    guard: Operand
    start: Operand | None
    masked: bool
    span: Span
    rule: str

    @property
    def steps(self) -> int:
        """The number of indices."""
        return math.prod(axis.size for axis in self.axes)


def _fold(node: Node, space: Space) -> Code:
    fold: Fold = node.data  # type: ignore[assignment]
    if fold.name in ("any", "all", "count") or (node.kind != ELEMENT and fold.name in ("sum", "prod", "max", "min")):
        return _reduced(fold, node, space)
    if fold.name == "last" and fold.guard is True:
        return _at_end(fold, space)
    if fold.guard is True and fold.name in ("argmax", "argmin"):
        return _position(fold, node, space)
    if fold.guard is True and node.kind == ELEMENT:
        return _plain(fold, node, space)
    parts = _boxes(fold, space) if fold.steps <= STEPS else None
    if parts is not None:
        return _by_boxes(fold, node, parts, space)
    return _by_masks(fold, node, space)


def fold_space(fold: Fold, space: Space, box: Mapping[Axis, tuple[int, int]] | None = None) -> Space:
    """The space with the axes of the fold in front."""
    whole = {axis: (0, axis.size) for axis in fold.axes}
    return Space(space.builder, (*fold.axes, *space.order), {**space.box, **whole, **(box or {})})


def chunks(axes: tuple[Axis, ...], limit: int) -> Iterator[dict[Axis, tuple[int, int]]]:
    """Boxes of at most about `limit` indices that cover the axes in row-major order."""
    inner, split = 1, len(axes)
    while split > 0 and inner * axes[split - 1].size <= limit:
        split -= 1
        inner *= axes[split].size
    if split == 0:
        yield {axis: (0, axis.size) for axis in axes}
        return
    cut = axes[split - 1]
    width = max(1, limit // inner)
    for outer in product(*(range(axis.size) for axis in axes[: split - 1])):
        fixed = {axis: (v, v + 1) for axis, v in zip(axes, outer, strict=False)}
        for lo in range(0, cut.size, width):
            rest = {axis: (0, axis.size) for axis in axes[split:]}
            yield {**fixed, cut: (lo, min(lo + width, cut.size)), **rest}


def _size(space: Space, axes: tuple[Axis, ...]) -> int:
    return math.prod(space.box[axis][1] - space.box[axis][0] for axis in axes if axis in space.box)


def _terms(fold: Fold, term: Operand, space: Space, box: Mapping[Axis, tuple[int, int]]) -> Code:
    return lower(term, fold_space(fold, space, box))


# ---- reductions without an order --------------------------------------------------------------

_REDUCTIONS: Final[Mapping[str, tuple[np.ufunc, object]]] = {
    "any": (np.logical_or, False),
    "all": (np.logical_and, True),
    "count": (np.add, 0),
    "sum": (np.add, 0),
    "prod": (np.multiply, 1),
    "max": (np.maximum, None),
    "min": (np.minimum, None),
}


def _reduced(fold: Fold, node: Node, space: Space) -> Code:
    """Truth values and exact numbers."""
    ufunc, neutral = _REDUCTIONS[fold.name]
    count = len(fold.axes)
    parts: list[tuple[Code, Code, tuple[int, ...]]] = []
    for box in chunks(fold.axes, max(1, CHUNK // max(1, _size(space, node.axes)))):
        steps = tuple(hi - lo for lo, hi in (box[axis] for axis in fold.axes))
        parts.append((_terms(fold, fold.body, space, box), _terms(fold, fold.guard, space, box), steps))
    start = lower(fold.start, space) if fold.start is not None else None
    shape = over(space, node.axes)
    wide = fold.name not in ("any", "all", "count") and (
        node.low is None or node.high is None or node.low <= -(1 << 62) or node.high >= 1 << 62
    )

    def reduce(body: Array, guard: Array, steps: tuple[int, ...]) -> Array:
        body = np.asarray(body)
        if fold.name == "count":
            body = body.astype(np.int64)
        if wide and body.dtype != object:
            body = body.astype(object)
        if not (guard.ndim == 0 and bool(guard)):
            if neutral is None:
                return _masked_extreme(ufunc, body, guard, steps, shape, fold)
            body = np.where(guard, body, np.asarray(neutral).astype(body.dtype))
        full = np.broadcast_to(body, (*steps, *shape))
        return np.asarray(ufunc.reduce(full, axis=tuple(range(count))))

    def total(pieces: list[Array], first: Array | None) -> Array:
        found = first
        for piece in pieces:
            found = piece if found is None else ufunc(found, piece)
        return np.asarray(found)

    if all(isinstance(c, np.ndarray) for body, guard, _ in parts for c in (body, guard)) and not callable(start):
        return total([reduce(b, g, s) for b, g, s in parts], start)  # type: ignore[arg-type]
    runs = [(run_of(body), run_of(guard), steps) for body, guard, steps in parts]
    begin = run_of(start) if start is not None else None

    def run(frame: Frame) -> Array:
        pieces = [reduce(np.asarray(body(frame)), np.asarray(guard(frame)), steps) for body, guard, steps in runs]
        return total(pieces, begin(frame) if begin is not None else None)

    return run


def _masked_extreme(
    ufunc: np.ufunc, body: Array, guard: Array, steps: tuple[int, ...], shape: tuple[int, ...], fold: Fold
) -> Array:
    full, mask = (np.broadcast_to(x, (*steps, *shape)) for x in (body, guard))
    axes = tuple(range(len(steps)))
    if not mask.any(axis=axes).all() and fold.start is None and not fold.masked:
        raise no_term(fold)
    least = full.min() if ufunc is np.maximum else full.max()
    return np.asarray(ufunc.reduce(np.where(mask, full, least), axis=axes))


def no_term(fold: Fold) -> Exception:
    """The signal that a fold has no value."""
    return stuck(
        fold.rule, f"{fold.name} has a term", fold.span, f"{fold.name} has no term here: its guard holds for no index."
    )


# ---- elements without guard -------------------------------------------------------------------


def _plain(fold: Fold, node: Node, space: Space) -> Code:
    size = _size(space, node.axes)
    if size >= 256 or fold.steps <= 8 or size * 16 > fold.steps * 4:
        return stepped(fold, node, space)
    return _accumulated(fold, node, space)


def _function(fold: Fold, node: Node, space: Space) -> Callable[..., Array]:
    name = {"sum": "add", "prod": "mul"}.get(fold.name, fold.name)
    return space.builder.algebra.operation(name, node.type)  # type: ignore[arg-type]


def _accumulated(fold: Fold, node: Node, space: Space) -> Code:
    """Few outputs: the terms of many steps at once, then the sequential scan along the steps."""
    function = _function(fold, node, space)
    if not isinstance(function, np.ufunc):
        return stepped(fold, node, space)
    scan = function.accumulate
    shape = over(space, node.axes)
    size = math.prod(shape)
    parts: list[tuple[Callable[[Frame], Array], tuple[int, ...], int]] = []
    for box in chunks(fold.axes, max(64, CHUNK // size)):
        steps = tuple(hi - lo for lo, hi in (box[axis] for axis in fold.axes))
        parts.append((run_of(_terms(fold, fold.body, space, box)), (*steps, *shape), math.prod(steps)))
    start = run_of(lower(fold.start, space)) if fold.start is not None else None
    dtype = space.builder.algebra.storage(node.type)  # type: ignore[arg-type]

    def run(frame: Frame) -> Array:
        carry = None if start is None else np.broadcast_to(start(frame), shape).reshape(size)
        for body, full, steps in parts:
            offset = 0 if carry is None else 1
            terms = np.empty((size, steps + offset), dtype)
            if carry is not None:
                terms[:, 0] = carry
            terms[:, offset:] = np.broadcast_to(body(frame), full).reshape(steps, size).T
            carry = scan(terms, axis=1)[:, -1]
        return np.asarray(carry).reshape(shape)

    return run


def _at_end(fold: Fold, space: Space) -> Code:
    """`last` without guard: the body at the last index."""
    box = {axis: (axis.size - 1, axis.size) for axis in fold.axes}
    code, count = lower(fold.body, fold_space(fold, space, box)), len(fold.axes)
    if isinstance(code, np.ndarray):
        return _without(code, count)
    return lambda frame: _without(code(frame), count)


def _without(x: Array, count: int) -> Array:
    """The array without leading dimensions, all of size 1."""
    x = np.asarray(x)
    return x.reshape(x.shape[count:]) if x.ndim >= count else x


def _position(fold: Fold, node: Node, space: Space) -> Code:
    """argmax and argmin without guard: NumPy's rule is the language's: the first, a NaN before all numbers."""
    if fold.steps * _size(space, node.axes) > 1 << 22:
        parts = _boxes(fold, space)
        if parts is not None:
            return _by_boxes(fold, node, parts, space)
    shape = over(space, node.axes)
    steps = tuple(axis.size for axis in fold.axes)
    find = np.argmax if fold.name == "argmax" else np.argmin
    code = run_of(_terms(fold, fold.body, space, {}))

    def run(frame: Frame) -> Array:
        full = np.broadcast_to(code(frame), (*steps, *shape)).reshape(fold.steps, *shape)
        return np.asarray(find(_comparable(full), axis=0)).astype(np.int64)

    return run


def _comparable(x: Array) -> Array:
    """The same numbers in a type whose comparison NumPy knows."""
    return x if x.dtype.num <= 23 else x.astype(np.float32)


# ---- guards -----------------------------------------------------------------------------------

Part = tuple[dict[Axis, tuple[int, int]], dict[Axis, tuple[int, int]]]
"""The index of a step, as a box, and the box of outputs at which the guard holds for it."""


def _boxes(fold: Fold, space: Space) -> list[Part] | None:
    """For each step in order the outputs that it concerns, None when these are no boxes."""
    parts: list[Part] = []
    whole = fold_space(fold, space)
    for index in product(*(range(axis.size) for axis in fold.axes)):
        fixed = {axis: (v, v + 1) for axis, v in zip(fold.axes, index, strict=True)}
        box = box_where(fold.guard, whole.inside({**whole.box, **fixed}))
        if box is None:
            return None
        if not empty(box):
            parts.append((fixed, {axis: box[axis] for axis in space.order}))
    return parts


def _covered(parts: list[Part], space: Space, shape: tuple[int, ...]) -> Array:
    found = np.zeros(shape, bool)
    for _, box in parts:
        found[slices(space, box, shape)] = True
    return found


def _by_boxes(fold: Fold, node: Node, parts: list[Part], space: Space) -> Code:
    """Each step on the outputs that it concerns."""
    axes = tuple(axis for axis in space.order if axis in node.axes or any(b[axis] != space.box[axis] for _, b in parts))
    shape = over(space, axes)
    count = len(fold.axes)
    steps: list[tuple[int, tuple[slice, ...], Callable[[Frame], Array]]] = []
    for fixed, box in parts:
        code = lower(fold.body, Space(space.builder, (*fold.axes, *space.order), {**fixed, **box}))
        flat = 0
        for axis in fold.axes:
            flat = flat * axis.size + fixed[axis][0]
        steps.append((flat, slices(space, box, shape), _stripped(run_of(code), count)))
    covered = _covered(parts, space, shape)
    start = run_of(lower(fold.start, space)) if fold.start is not None else None
    if not covered.all() and start is None and fold.name not in ("sum", "prod") and not fold.masked:
        raise no_term(fold)
    missing = ~covered if not covered.all() else None
    if fold.name in ("argmax", "argmin"):
        return _best_by_boxes(fold, steps, shape, space)
    return _fold_by_boxes(fold, node, steps, shape, missing, start, space)


def _stripped(run: Callable[[Frame], Array], count: int) -> Callable[[Frame], Array]:
    return lambda frame: _without(run(frame), count)


def _fold_by_boxes(
    fold: Fold,
    node: Node,
    steps: list[tuple[int, tuple[slice, ...], Callable[[Frame], Array]]],
    shape: tuple[int, ...],
    missing: Array | None,
    start: Callable[[Frame], Array] | None,
    space: Space,
) -> Code:
    dtype = storage_of(node, space)
    neutral = identity(fold, node, space)
    empty_value = None
    if fold.name in ("sum", "prod") and node.kind == ELEMENT:
        empty_value = space.builder.algebra.constant(node.type, 0 if fold.name == "sum" else 1)  # type: ignore[arg-type]
    function = None if fold.name == "last" else _function(fold, node, space)

    def run(frame: Frame) -> Array:
        total = np.empty(shape, dtype)
        total[...] = neutral if start is None else start(frame)
        for _, where, code in steps:
            part = total[where]
            if function is None:
                part[...] = code(frame)
            elif isinstance(function, np.ufunc):
                function(part, code(frame), out=part)
            else:
                part[...] = function(part, code(frame))
        if missing is not None and start is None and empty_value is not None:
            total[missing] = empty_value
        return total

    return run


def _best_by_boxes(
    fold: Fold,
    steps: list[tuple[int, tuple[slice, ...], Callable[[Frame], Array]]],
    shape: tuple[int, ...],
    space: Space,
) -> Code:
    body = fold.body
    dtype = space.builder.algebra.storage(body.type) if isinstance(body, Node) and body.type is not None else None

    def run(frame: Frame) -> Array:
        position = np.full(shape, -1, np.int64)
        best: Array | None = None
        for flat, where, code in steps:
            value = np.asarray(code(frame))
            if best is None:
                best = np.zeros(shape, dtype or value.dtype)
            update_best(fold.name, best[where], position[where], value, flat)
        return position

    return run


def update_best(name: str, best: Array, position: Array, value: Array, flat: int) -> None:
    """Takes a further term into account, in place; position is -1 where there was none yet."""
    better = value > best if name == "argmax" else value < best
    better = np.asarray(better).astype(bool) | (position < 0)
    if value.dtype.kind not in "iubO":
        better |= (value != value) & ~(best != best)  # noqa: PLR0124 - a NaN differs from itself
        better &= ~(best != best) | (position < 0)  # noqa: PLR0124
    np.copyto(best, value, where=better, casting="unsafe")
    position[better] = flat


def storage_of(node: Node, space: Space) -> np.dtype[np.generic]:
    """The dtype of arrays that hold the values of a term."""
    if node.kind == ELEMENT and node.type is not None:
        return space.builder.algebra.storage(node.type)
    return np.dtype({BOOL: np.bool_, INT: np.int64}.get(node.kind, np.object_))


def identity(fold: Fold, node: Node, space: Space) -> Array:
    """What changes no term: -0.0 (0 where there is none), 1, the infinities or the limits of the type."""
    algebra = space.builder.algebra
    if node.kind != ELEMENT or node.type is None:
        return np.asarray(0)
    match fold.name:
        case "sum":
            zero = algebra.constant(node.type, 0)
            minus = np.asarray(algebra.operation("neg", node.type)(zero))
            return minus if bool(minus == zero) and minus.dtype.kind not in "iu" else zero
        case "prod":
            return algebra.constant(node.type, 1)
        case _:
            return np.zeros((), storage_of(node, space))


def _by_masks(fold: Fold, node: Node, space: Space) -> Code:
    """Each step on all outputs, kept where the guard holds."""
    axes = tuple(axis for axis in space.order if axis in node.axes)
    shape = over(space, axes)
    size = math.prod(shape)
    parts: list[tuple[Callable[[Frame], Array], Callable[[Frame], Array], tuple[int, ...], int]] = []
    flat = 0
    for box in chunks(fold.axes, max(1, CHUNK // size)):
        steps = tuple(hi - lo for lo, hi in (box[axis] for axis in fold.axes))
        body, guard = (run_of(_terms(fold, term, space, box)) for term in (fold.body, fold.guard))
        parts.append((body, guard, steps, flat))
        flat += math.prod(steps)
    start = run_of(lower(fold.start, space)) if fold.start is not None else None
    dtype = storage_of(node, space)
    ordering = fold.name in ("argmax", "argmin")
    function = None if ordering or fold.name == "last" else _function(fold, node, space)

    def run(frame: Frame) -> Array:
        known = np.zeros(shape, bool)
        total = np.zeros(shape, dtype)
        position = np.full(shape, -1, np.int64)
        best: Array | None = None
        if start is not None:
            total[...] = start(frame)
            known[...] = True
        for body, guard, steps, first in parts:
            full = (math.prod(steps), *shape)
            terms = np.broadcast_to(body(frame), (*steps, *shape)).reshape(full)
            masks = np.broadcast_to(guard(frame), (*steps, *shape)).reshape(full)
            for step, (term, mask) in enumerate(zip(terms, masks, strict=True)):
                if not mask.any():
                    continue
                if ordering:
                    best = np.zeros(shape, terms.dtype) if best is None else best
                    found = np.where(mask, best, term)
                    del found
                    _update_masked(fold.name, best, position, term, mask, first + step)
                elif function is None:
                    np.copyto(total, term, where=mask)
                else:
                    new = np.where(known, function(total, term), term)
                    np.copyto(total, new, where=mask, casting="unsafe")
                known |= mask
        if not known.all() and not fold.masked and fold.name not in ("sum", "prod"):
            raise no_term(fold)
        if fold.name == "prod" and not known.all():
            total[~known] = space.builder.algebra.constant(node.type, 1)  # type: ignore[arg-type]
        return position if ordering else total

    return run


def _update_masked(name: str, best: Array, position: Array, term: Array, mask: Array, flat: int) -> None:
    b, p, t = best[mask], position[mask], np.asarray(term)[mask]
    update_best(name, b, p, t, flat)
    best[mask], position[mask] = b, p


LOWER["fold"] = _fold
_ = (Term, is_static)
