"""Folds whose guard picks one output for each step, such as `if [J[j, l] for l < w] = i`: each step in order, on that
output alone, without looking at the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .fold_space import Fold, fold_space, identity, no_term, storage_of
from .lower import Code, Run, Space, lower, over, run_of
from .plan import Frame
from .terms import TERMS, Affine, Array, Axis, Node, Operand, axes_of

FEW = 64
"""A fold with fewer outputs times steps is not worth it."""


@dataclass(frozen=True, slots=True)
class Places:
    """For some axes of the outputs the index, by step, at which the guard holds."""

    axes: tuple[Axis, ...]
    indices: tuple[Operand, ...]


def places(fold: Fold, condition: Operand) -> Places | None:
    """The outputs that a condition picks, None when it is of another form."""
    parts = condition.args if isinstance(condition, Node) and condition.op == "and" else (condition,)
    found: dict[Axis, Operand] = {}
    for part in parts:
        if not isinstance(part, Node) or part.op != "=":
            return None
        for index, position in (part.args, part.args[::-1]):
            inner = isinstance(index, TERMS) and bool(index.axes) and set(index.axes) <= set(fold.axes)
            plain = isinstance(position, Affine) and position.const == 0 and len(position.terms) == 1
            if inner and plain and isinstance(position, Affine):
                axis, factor = position.terms[0]
                if factor == 1 and axis not in fold.axes and axis not in found:
                    found[axis] = index
                    break
        else:
            return None
    return Places(tuple(found), tuple(found.values()))


def scattered(fold: Fold, node: Node, space: Space) -> Code | None:
    """The code of such a fold; None when it is none or has a use for another strategy."""
    counting = fold.name == "count"
    condition = fold.body if counting and fold.guard is True else fold.guard
    where = places(fold, condition)
    if where is None or not set(where.axes) <= set(space.order) or fold.name in ("argmax", "argmin", "any", "all"):
        return None
    if not counting and set(axes_of(fold.body)).intersection(where.axes):
        return None
    axes = tuple(axis for axis in space.order if axis in node.axes)
    shape = over(space, axes)
    if math.prod(shape) * fold.steps < FEW:
        return None
    steps = Space(space.builder, fold.axes, {axis: (0, axis.size) for axis in fold.axes})
    indices = [run_of(lower(index, steps)) for index in where.indices]
    sizes = tuple(axis.size for axis in fold.axes)
    picks = _picked(indices, sizes, [space.box[axis] for axis in where.axes])
    rest = tuple(axis for axis in space.order if axis not in where.axes)
    order = [space.order.index(axis) for axis in (*where.axes, *rest)]
    body = None if counting else _terms(fold, space, rest, sizes)
    start = run_of(lower(fold.start, space)) if fold.start is not None else None
    dtype, neutral = storage_of(node, space), identity(fold, node, space)
    apply = _step(fold, node, space)
    of_none = {"sum": 0, "prod": 1}.get(fold.name)
    fill = None if of_none is None or node.type is None else space.builder.algebra.constant(node.type, of_none)

    def run(frame: Frame) -> Array:
        total = np.empty(shape, dtype)
        total[...] = neutral if start is None else start(frame)
        kept, at = picks(frame)
        view = total.transpose(order)
        apply(view, at, None if body is None else body(frame)[kept])
        if start is None and not counting:
            seen = np.zeros(view.shape[: len(at)], bool)
            seen[at] = True
            if not seen.all():
                if fold.name not in ("sum", "prod"):
                    if fold.masked:
                        return total
                    raise no_term(fold)
                view[~seen] = fill
        return total

    return run


def _picked(
    indices: list[Run], sizes: tuple[int, ...], box: list[tuple[int, int]]
) -> Callable[[Frame], tuple[Array, tuple[Array, ...]]]:
    """The steps that concern the box, and where in it."""

    def find(frame: Frame) -> tuple[Array, tuple[Array, ...]]:
        flat = [np.broadcast_to(index(frame), sizes).reshape(-1) for index in indices]
        inside = np.ones(math.prod(sizes), bool)
        for values, (lo, hi) in zip(flat, box, strict=True):
            inside &= ((values >= lo) & (values < hi)).astype(bool)
        kept = np.flatnonzero(inside)
        return kept, tuple(values[kept].astype(np.int64) - lo for values, (lo, _) in zip(flat, box, strict=True))

    return find


def _terms(fold: Fold, space: Space, rest: tuple[Axis, ...], sizes: tuple[int, ...]) -> Run:
    """The terms by step, over the axes that the guard does not pick."""
    inner = Space(space.builder, rest, {axis: space.box[axis] for axis in rest})
    code = run_of(lower(fold.body, fold_space(fold.axes, inner)))
    used = axes_of(fold.body)
    tail = tuple(space.box[axis][1] - space.box[axis][0] if axis in used else 1 for axis in rest)
    count = math.prod(sizes)
    return lambda frame: np.broadcast_to(code(frame), (*sizes, *tail)).reshape(count, *tail)


def _step(fold: Fold, node: Node, space: Space) -> Callable[[Array, tuple[Array, ...], Array | None], None]:
    """What takes the terms into account, one after the other."""
    if fold.name == "count":
        return lambda total, at, _terms: np.add.at(total, at, 1)
    if fold.name == "last":
        return _replace
    name = {"sum": "add", "prod": "mul"}.get(fold.name, fold.name)
    function = space.builder.algebra.operation(name, node.type) if node.type is not None else None

    def step(total: Array, at: tuple[Array, ...], terms: Array | None) -> None:
        for position, index in enumerate(zip(*at, strict=True)):
            if function is not None and terms is not None:
                total[index] = function(total[index], terms[position])

    if isinstance(function, np.ufunc) and node.type is not None and node.type.num <= 23:
        each = function

        def at_once(total: Array, at: tuple[Array, ...], terms: Array | None) -> None:
            each.at(total, at, terms)

        return at_once
    return step


def _replace(total: Array, at: tuple[Array, ...], terms: Array | None) -> None:
    """Of several terms for one place the last one counts."""
    if terms is None or not len(terms):
        return
    flat = np.ravel_multi_index(at, total.shape[: len(at)])
    _, last = np.unique(flat[::-1], return_index=True)
    chosen = len(flat) - 1 - last
    total[tuple(index[chosen] for index in at)] = terms[chosen]
