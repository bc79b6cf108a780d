"""Folds with a guard: each step on the box of outputs that it concerns, or on all of them under a mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from .alternatives import box_where, empty, slices
from .fold_space import (
    CHUNK,
    Fold,
    chunks,
    fold_function,
    fold_space,
    fold_terms,
    identity,
    no_term,
    storage_of,
    without,
)
from .lower import Code, Space, lower, over, run_of
from .plan import Frame
from .terms import ELEMENT, Array, Axis, Node

Part = tuple[dict[Axis, tuple[int, int]], dict[Axis, tuple[int, int]]]
"""The index of a step, as a box, and the box of outputs at which the guard holds for it."""


def boxes_of(fold: Fold, space: Space) -> list[Part] | None:
    """For each step in order the outputs that it concerns, None when these are no boxes."""
    parts: list[Part] = []
    whole = fold_space(fold.axes, space)
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


def by_boxes(fold: Fold, node: Node, parts: list[Part], space: Space) -> Code:
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
    return lambda frame: without(run(frame), count)


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
    function = None if fold.name == "last" else fold_function(fold, node, space)

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
        better |= (value != value) & ~(best != best)
        better &= ~(best != best) | (position < 0)
    np.copyto(best, value, where=better, casting="unsafe")
    position[better] = flat


def by_masks(fold: Fold, node: Node, space: Space) -> Code:
    """Each step on all outputs, kept where the guard holds."""
    axes = tuple(axis for axis in space.order if axis in node.axes)
    shape = over(space, axes)
    size = math.prod(shape)
    parts: list[tuple[Callable[[Frame], Array], Callable[[Frame], Array], tuple[int, ...], int]] = []
    flat = 0
    for box in chunks(fold.axes, max(1, CHUNK // size)):
        steps = tuple(hi - lo for lo, hi in (box[axis] for axis in fold.axes))
        body, guard = (run_of(fold_terms(fold, term, space, box)) for term in (fold.body, fold.guard))
        parts.append((body, guard, steps, flat))
        flat += math.prod(steps)
    start = run_of(lower(fold.start, space)) if fold.start is not None else None
    dtype = storage_of(node, space)
    ordering = fold.name in ("argmax", "argmin")
    function = None if ordering or fold.name == "last" else fold_function(fold, node, space)

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
