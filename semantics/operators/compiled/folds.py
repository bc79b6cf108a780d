"""Folds, strictly in the written order: row-major, the left-most index slowest, starting with the first term.

Each strategy gives the same bits. What is sequential is only the fold: a step is one operation on all outputs of a
block. Truth values and exact integers are reduced at once, since no order of theirs changes the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from .extremes import Extreme
from .fold_space import CHUNK, Fold, chunks, fold_function, fold_space, fold_terms, no_term, outputs, without
from .guards import boxes_of, by_boxes, by_masks
from .lower import LOWER, Code, Space, lower, over, run_of
from .plan import Frame
from .scatter import scattered
from .steps import stepped
from .terms import ELEMENT, Array, Node

STEPS: Final = 1 << 12
"""A fold of at most this many steps has code of its own for each step."""


def _fold(node: Node, space: Space) -> Code:
    fold: Fold = node.data
    if fold.name == "count":
        placed = scattered(fold, node, space)
        if placed is not None:
            return placed
    if fold.name in ("any", "all", "count") or (node.kind != ELEMENT and fold.name in ("sum", "prod", "max", "min")):
        return _reduced(fold, node, space)
    if fold.name == "last" and fold.guard is True:
        return _at_end(fold, space)
    if fold.guard is True and fold.name in ("argmax", "argmin"):
        return _position(fold, node, space)
    if fold.guard is True and node.kind == ELEMENT:
        return _plain(fold, node, space)
    placed = scattered(fold, node, space)
    if placed is not None:
        return placed
    parts = boxes_of(fold, space) if fold.steps <= STEPS else None
    if parts is not None:
        return by_boxes(fold, node, parts, space)
    return by_masks(fold, node, space)


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
    for box in chunks(fold.axes, max(1, CHUNK // max(1, outputs(space, node.axes)))):
        steps = tuple(hi - lo for lo, hi in (box[axis] for axis in fold.axes))
        parts.append((fold_terms(fold, fold.body, space, box), fold_terms(fold, fold.guard, space, box), steps))
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


def _plain(fold: Fold, node: Node, space: Space) -> Code:
    size = outputs(space, node.axes)
    if size >= 256 or fold.steps <= 8 or size * 16 > fold.steps * 4:
        return stepped(fold, node, space)
    return _accumulated(fold, node, space)


def _accumulated(fold: Fold, node: Node, space: Space) -> Code:
    """Few outputs: the terms of many steps at once, then the sequential scan along the steps."""
    function = fold_function(fold, node, space)
    if not isinstance(function, (np.ufunc, Extreme)):
        return stepped(fold, node, space)
    scan = function.accumulate
    shape = over(space, node.axes)
    size = math.prod(shape)
    parts: list[tuple[Callable[[Frame], Array], tuple[int, ...], int]] = []
    for box in chunks(fold.axes, max(64, CHUNK // size)):
        steps = tuple(hi - lo for lo, hi in (box[axis] for axis in fold.axes))
        parts.append((run_of(fold_terms(fold, fold.body, space, box)), (*steps, *shape), math.prod(steps)))
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
    code, count = lower(fold.body, fold_space(fold.axes, space, box)), len(fold.axes)
    if isinstance(code, np.ndarray):
        return without(code, count)
    return lambda frame: without(code(frame), count)


def _position(fold: Fold, node: Node, space: Space) -> Code:
    """argmax and argmin without guard: NumPy's rule is the language's: the first, a NaN before all numbers."""
    if fold.steps * outputs(space, node.axes) > 1 << 22:
        parts = boxes_of(fold, space)
        if parts is not None:
            return by_boxes(fold, node, parts, space)
    shape = over(space, node.axes)
    steps = tuple(axis.size for axis in fold.axes)
    find = np.argmax if fold.name == "argmax" else np.argmin
    code = run_of(fold_terms(fold, fold.body, space, {}))

    def run(frame: Frame) -> Array:
        full = np.broadcast_to(code(frame), (*steps, *shape)).reshape(fold.steps, *shape)
        return np.asarray(find(_comparable(full), axis=0)).astype(np.int64)

    return run


def _comparable(x: Array) -> Array:
    """The same numbers in a type whose comparison NumPy knows."""
    return x if x.dtype.num <= 23 else x.astype(np.float32)


LOWER["fold"] = _fold
