"""The step-by-step fold of elements over a block of outputs, the strategy on which convolutions and products run.

The body is a tree of operations over leaves. A leaf is evaluated for a chunk of steps and packed: outputs on which the
same leaves depend form one dimension, and the longest of these dimensions is the innermost, so that each step is a few
operations on long contiguous rows: the terms into a buffer, the buffer added to the totals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from .elements.ieee import takes_out
from .fold_space import Fold, chunks, fold_space
from .lower import Code, Space, lower, over, run_of
from .plan import Frame
from .reads import Source, view_of
from .terms import ELEMENT, Array, Axis, Node, Operand, axes_of

PACKED: Final = 1 << 16
"""How many elements of a leaf are packed at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A part of the body. fixed: it does not depend on the axes of the fold."""

    term: Operand
    axes: frozenset[Axis]
    fixed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """An operation on leaves and results of operations."""

    function: Callable[..., Array]
    args: tuple[Step | int, ...]


def stepped(fold: Fold, node: Node, space: Space) -> Code:
    """A fold of elements without guard."""
    leaves: list[Leaf] = []
    tree = _tree(fold.body, fold, space, leaves)
    algebra = space.builder.algebra
    function = algebra.operation({"sum": "add", "prod": "mul"}.get(fold.name, fold.name), node.type)  # type: ignore[arg-type]
    dtype = algebra.storage(node.type)  # type: ignore[arg-type]
    start = run_of(lower(fold.start, space)) if fold.start is not None else None
    axes = tuple(a for a in space.order if a in node.axes)
    groups = _groups(axes, leaves, space)
    final = _unpacked(groups, axes, space)
    dims = tuple(math.prod(_width(space, axis) for axis in group) for group in groups)
    merged = len(groups) > 1
    order = tuple(axis for group in groups for axis in group)
    if not merged:
        dims = tuple(_width(space, axis) for axis in order)
        groups = [(axis,) for axis in order]
    parts = _parts(fold, leaves, order, groups, space, pack=merged)
    inverse = _start_view(axes, order, dims, space)
    product = _product(tree, function)

    def run(frame: Frame) -> Array:
        total: Array | None = None
        if start is not None:
            total = np.empty(dims, dtype)
            total[...] = inverse(np.broadcast_to(start(frame), over(space, axes)))
        buffer = np.empty(dims, dtype)
        for load in parts:
            rows = load(frame)
            if product is not None:
                total = product(rows, total, buffer)
                continue
            for index in range(rows.steps):
                term = _value(tree, rows, index)
                if total is None:
                    total = np.empty(dims, dtype)
                    total[...] = term
                else:
                    total = np.asarray(function(total, term))
        return final(np.asarray(total))

    return run


def _width(space: Space, axis: Axis) -> int:
    lo, hi = space.box[axis]
    return hi - lo


def _tree(term: Operand, fold: Fold, space: Space, leaves: list[Leaf]) -> Step | int:
    """The body as a tree over leaves; equal leaves are not looked for."""
    moving = set(axes_of(term)).intersection(fold.axes)
    if isinstance(term, Node) and term.op == "element" and moving and term.kind == ELEMENT:
        operand = term.args[0]
        function = space.builder.algebra.operation(str(term.data), operand.type)  # type: ignore[union-attr, arg-type]
        return Step(function, tuple(_tree(argument, fold, space, leaves) for argument in term.args))
    leaves.append(Leaf(term, frozenset(axes_of(term)).intersection(space.order), not moving))
    return len(leaves) - 1


def _groups(axes: tuple[Axis, ...], leaves: list[Leaf], space: Space) -> list[tuple[Axis, ...]]:
    """The axes by the leaves that depend on them; the group of most outputs last."""
    found: dict[tuple[bool, ...], list[Axis]] = {}
    for axis in axes:
        found.setdefault(tuple(axis in leaf.axes for leaf in leaves), []).append(axis)
    groups = [tuple(group) for group in found.values()]
    if len(groups) > 1:
        sizes = [math.prod(_width(space, axis) for axis in group) for group in groups]
        widest = max(range(len(groups)), key=lambda p: (min(sizes[p], 4096), p))
        groups.append(groups.pop(widest))
    return groups


@dataclass(slots=True)
class Rows:
    """The values of the leaves for a chunk of steps: for each leaf the rows, or one row for all (`single`)."""

    steps: int
    values: list[Array | list[Array]]
    single: list[bool]


def _parts(
    fold: Fold, leaves: list[Leaf], order: tuple[Axis, ...], groups: list[tuple[Axis, ...]], space: Space, *, pack: bool
) -> list[Callable[[Frame], Rows]]:
    """For each chunk of steps what loads the leaves."""

    widest = max((math.prod(_width(space, a) for a in leaf.axes) for leaf in leaves if not leaf.fixed), default=1)
    easy = all(isinstance(leaf.term, Node) and leaf.term.op == "read" for leaf in leaves if not leaf.fixed)
    limit = max(16, PACKED // max(1, widest))
    if easy and not pack:
        limit = max(limit, 4096)
    whole = fold_space(fold.axes, space)
    loads: list[Callable[[Frame], Rows]] = []
    codes: list[Callable[[Frame], Array] | None] = []
    for leaf in leaves:
        code = None
        if leaf.fixed:
            code = run_of(lower(leaf.term, space))
        elif isinstance(leaf.term, Node) and leaf.term.op == "read" and _is_view(leaf.term, whole):
            code = run_of(lower(leaf.term, whole))
        codes.append(code)
    count = len(fold.axes)
    place = [space.order.index(axis) for axis in order]
    for box in chunks(fold.axes, limit):
        steps = [box[axis][1] - box[axis][0] for axis in fold.axes]
        total = math.prod(steps)
        shapers: list[Callable[[Frame], Array | list[Array]]] = []
        for leaf, code in zip(leaves, codes, strict=True):
            dims = tuple(math.prod(_width(space, a) for a in g) if leaf.axes.issuperset(g) else 1 for g in groups)
            if leaf.fixed:
                shapers.append(_fixed(code, space, place, dims, leaf))  # type: ignore[arg-type]
                continue
            where = None
            if code is None:
                run = run_of(lower(leaf.term, fold_space(fold.axes, space, box)))
            else:
                run = code
                used = set(axes_of(leaf.term))
                where = tuple(slice(*box[axis]) if axis in used else slice(None) for axis in fold.axes)
            shapers.append(_moving(run, where, steps, count, space, place, (total, *dims), leaf, pack=pack))
        single = [leaf.fixed for leaf in leaves]
        loads.append(_loader(total, shapers, single))
    return loads


def _is_view(node: Node, whole: Space) -> bool:

    source: Source = node.data
    return view_of(source.tensor.layout, source.tensor.shape, node.args, whole) is not None


def _loader(
    steps: int, shapers: list[Callable[[Frame], Array | list[Array]]], single: list[bool]
) -> Callable[[Frame], Rows]:
    return lambda frame: Rows(steps, [shape(frame) for shape in shapers], single)


def _fixed(
    code: Callable[[Frame], Array], space: Space, place: list[int], dims: tuple[int, ...], leaf: Leaf
) -> Callable[[Frame], Array]:
    shape = over(space, tuple(leaf.axes))

    def load(frame: Frame) -> Array:
        value = np.broadcast_to(code(frame), shape)
        kept = [p for p in range(len(shape)) if p not in place]
        return value.transpose(*kept, *place).reshape(dims)

    return load


def _moving(
    run: Callable[[Frame], Array],
    where: tuple[slice, ...] | None,
    steps: list[int],
    count: int,
    space: Space,
    place: list[int],
    dims: tuple[int, ...],
    leaf: Leaf,
    *,
    pack: bool,
) -> Callable[[Frame], Array | list[Array]]:
    shape = over(space, tuple(leaf.axes))
    kept = [p + count for p in range(len(shape)) if p not in place]
    permutation = [*range(count), *kept, *(p + count for p in place)]

    def load(frame: Frame) -> Array | list[Array]:
        value = np.asarray(run(frame))
        if where is not None:
            value = value[where]
        if value.ndim < count + len(shape):
            value = value.reshape((1,) * (count + len(shape) - value.ndim) + value.shape)
        value = np.broadcast_to(value, (*steps, *shape)).transpose(permutation)
        if pack:
            packed = value.reshape(dims)
            close = dims[-1] == 1 or packed.strides[-1] == packed.itemsize
            return packed if close else np.ascontiguousarray(packed)
        try:
            return value.reshape(dims, copy=False)
        except ValueError:
            return [value[index].reshape(dims[1:]) for index in np.ndindex(*steps)]

    return load


def _unpacked(groups: list[tuple[Axis, ...]], axes: tuple[Axis, ...], space: Space) -> Callable[[Array], Array]:
    """From the dimensions of groups to those of the space."""
    order = [axis for group in groups for axis in group]
    sizes = [_width(space, axis) for axis in order]
    permutation = [order.index(axis) for axis in axes]
    shape = over(space, axes)
    if order == list(axes):
        return lambda x: x.reshape(shape)
    return lambda x: x.reshape(sizes).transpose(permutation).reshape(shape)


def _start_view(
    axes: tuple[Axis, ...], order: tuple[Axis, ...], dims: tuple[int, ...], space: Space
) -> Callable[[Array], Array]:
    permutation = [axes.index(axis) for axis in order]
    sizes = [_width(space, axis) for axis in axes]
    return lambda x: x.reshape(sizes).transpose(permutation).reshape(dims)


def _value(tree: Step | int, rows: Rows, index: int) -> Array:
    if isinstance(tree, int):
        values = rows.values[tree]
        return np.asarray(values) if rows.single[tree] else values[index]
    return tree.function(*(_value(argument, rows, index) for argument in tree.args))


def _product(tree: Step | int, function: Callable[..., Array]) -> Callable[[Rows, Array | None, Array], Array] | None:
    """The loop for a body of one operation on two leaves, or of one leaf."""
    if not takes_out(function):
        return None
    if isinstance(tree, int):

        def single(rows: Rows, total: Array | None, buffer: Array) -> Array:
            values = iter(rows.values[0])
            if total is None:
                total = np.empty_like(buffer)
                total[...] = next(values)
            for value in values:
                function(total, value, out=total)
            return total

        return single
    if len(tree.args) != 2 or not all(isinstance(a, int) for a in tree.args) or not takes_out(tree.function):
        return None
    times = tree.function

    def both(rows: Rows, total: Array | None, buffer: Array) -> Array:
        left, right = (
            (values if not single else [values] * rows.steps)
            for values, single in zip(rows.values, rows.single, strict=True)
        )
        pairs = zip(left, right, strict=True)
        if total is None:
            total = np.empty_like(buffer)
            a, b = next(pairs)
            times(a, b, out=total)
        for a, b in pairs:
            times(a, b, out=buffer)
            function(total, buffer, out=total)
        return total

    return both
