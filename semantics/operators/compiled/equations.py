"""Folds in the written order, and equations: tensors from terms, evaluated in blocks that stay in the cache."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
from sonnx.spec.language.syntax import Span

from ...errors import Unsupported
from ...model.elements import DOUBLE, DType, integer_range, is_float, is_integer
from .code import (
    LOWER,
    Builder,
    Code,
    Frame,
    Job,
    Source,
    Space,
    Task,
    Write,
    box_where,
    combine,
    empty,
    lower,
    over,
    run_of,
    run_tasks,
    slices,
    threads,
    view_of,
    write,
)
from .elements.ieee import ElementTable, Extreme, takes_out, to_double
from .terms import (
    BOOL,
    ELEMENT,
    INT,
    LIMIT,
    STRINGS,
    TERMS,
    Affine,
    Array,
    Axis,
    IndexFacts,
    Layout,
    Node,
    Operand,
    Tensor,
    axes_of,
    bounds,
    conjunction,
    disjunction,
    element_type,
    fits_int64,
    operations,
    row_strides,
    safe,
    stuck,
)

# What a fold is, and the spaces in which its terms are evaluated.


CHUNK: Final = 1 << 17
"""The number of elements of the terms of a fold that exist at a time."""
Box = Mapping[Axis, tuple[int, int]]
"""For each axis a range, half open."""


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


def fold_space(axes: tuple[Axis, ...], space: Space, box: Box | None = None) -> Space:
    """The space with the axes of a fold in front, all of them or a box."""
    whole = {axis: (0, axis.size) for axis in axes}
    return Space(space.builder, (*axes, *space.order), {**space.box, **whole, **(box or {})})


def blocks(order: Sequence[Axis], limit: int, *, even: bool = False) -> Iterator[Box]:
    """Boxes of at most about `limit` indices that cover the space in row-major order: of leading axes one index, then
    pieces of an axis, then whole axes. even: the pieces are equally long, else only the last one may be shorter."""
    inner, cut = 1, len(order)
    while cut > 0 and inner * order[cut - 1].size <= limit:
        cut -= 1
        inner *= order[cut].size
    rest = {axis: (0, axis.size) for axis in order[cut:]}
    if cut == 0:
        yield rest
        return
    axis, width = order[cut - 1], max(1, limit // inner)
    pieces = -(-axis.size // width)
    ends = [axis.size * k // pieces if even else min(k * width, axis.size) for k in range(pieces + 1)]
    for outer in product(*(range(a.size) for a in order[: cut - 1])):
        fixed = {a: (v, v + 1) for a, v in zip(order, outer, strict=False)}
        yield from ({**fixed, axis: piece, **rest} for piece in pairwise(ends))


def widths(box: Box, axes: Sequence[Axis]) -> tuple[int, ...]:
    """The number of indices of a box along axes."""
    return tuple(box[axis][1] - box[axis][0] for axis in axes)


def fold_terms(fold: Fold, term: Operand, space: Space, box: Box) -> Code:
    """The code of a body or guard over a box of steps and all outputs."""
    return lower(term, fold_space(fold.axes, space, box))


def no_term(name: str, span: Span, rule: str) -> Exception:
    """The signal that a fold has no value."""
    return stuck(rule, f"{name} has a term", span, f"{name} has no term here: its guard holds for no index.")


OPERATIONS: Final[Mapping[str, str]] = {"sum": "add", "prod": "mul"}
"""The operation of a fold, where it is called otherwise."""


def fold_function(fold: Fold, node: Node, space: Space) -> Callable[..., Array]:
    """The operation that takes a further term into account."""
    return space.builder.algebra.operation(OPERATIONS.get(fold.name, fold.name), element_type(node))


def without(x: Array, count: int) -> Array:
    """The array without leading dimensions, all of size 1."""
    x = np.asarray(x)
    return x.reshape(x.shape[count:]) if x.ndim >= count else x


def start_of(fold: Fold, space: Space) -> Job | None:
    """The code of the value that the fold starts with."""
    return None if fold.start is None else run_of(lower(fold.start, space))


def of_none(fold: Fold, node: Node, space: Space) -> Array | None:
    """The element that a fold without terms is, None where it has no value."""
    if fold.name not in OPERATIONS or node.type is None:
        return None
    return space.builder.algebra.constant(node.type, 0 if fold.name == "sum" else 1)


def identity(fold: Fold, node: Node, space: Space) -> Array:
    """The neutral elements: -0.0 (0 where there is none), 1, the infinities or the limits of the type."""
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
            return np.zeros((), storage_for(space.builder.algebra, node.kind, node.type))


# Folds whose guard picks one output for each step, such as `if [J[j, l] for l < w] = i`: each step in order, on that
# output alone, without looking at the others.


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
    indices: dict[Axis, Operand] = {}
    for part in parts:
        if not isinstance(part, Node) or part.op != "=":
            return None
        for index, position in (part.args, part.args[::-1]):
            inner = isinstance(index, TERMS) and bool(index.axes) and set(index.axes) <= set(fold.axes)
            plain = isinstance(position, Affine) and position.const == 0 and len(position.terms) == 1
            if inner and plain and isinstance(position, Affine):
                axis, factor = position.terms[0]
                if factor == 1 and axis not in fold.axes and axis not in indices:
                    indices[axis] = index
                    break
        else:
            return None
    return Places(tuple(indices), tuple(indices.values()))


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
    start = start_of(fold, space)
    dtype, neutral = _storage_of(node, space), identity(fold, node, space)
    apply = _step(fold, node, space)
    fill = of_none(fold, node, space)

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
                if fill is not None:
                    view[~seen] = fill
                elif not fold.masked:
                    raise no_term(fold.name, fold.span, fold.rule)
        return total

    return run


def _picked(
    indices: list[Job], sizes: tuple[int, ...], box: list[tuple[int, int]]
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


def _terms(fold: Fold, space: Space, rest: tuple[Axis, ...], sizes: tuple[int, ...]) -> Job:
    """The terms by step, over the axes that the guard does not pick."""
    inner = Space(space.builder, rest, {axis: space.box[axis] for axis in rest})
    code = run_of(lower(fold.body, fold_space(fold.axes, inner)))
    used = axes_of(fold.body)
    tail = over(inner, used)
    count = math.prod(sizes)
    return lambda frame: np.broadcast_to(code(frame), (*sizes, *tail)).reshape(count, *tail)


def _step(fold: Fold, node: Node, space: Space) -> Callable[[Array, tuple[Array, ...], Array | None], None]:
    """The function that takes the terms into account, one after the other."""
    if fold.name == "count":
        return lambda total, at, _terms: np.add.at(total, at, 1)
    if fold.name == "last":
        return _replace
    function = fold_function(fold, node, space) if node.type is not None else None

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


# The step-by-step fold of elements over a block of outputs, the strategy on which convolutions and products run.
# The body is a tree of operations over leaves. A leaf is evaluated for a chunk of steps and packed: outputs on which
# the same leaves depend form one dimension, and the longest of these dimensions is the innermost, so that each step is
# a few operations on long contiguous rows: the terms into a buffer, the buffer added to the totals.


PACKED: Final = 1 << 16
"""The number of elements of a leaf that are packed at a time."""


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
    function = fold_function(fold, node, space)
    dtype = space.builder.algebra.storage(element_type(node))
    start = start_of(fold, space)
    axes = tuple(a for a in space.order if a in node.axes)
    groups = _groups(axes, leaves, space)
    final = _unpacked(groups, axes, space)
    dims = tuple(math.prod(widths(space.box, group)) for group in groups)
    merged = len(groups) > 1
    order = tuple(axis for group in groups for axis in group)
    if not merged:
        dims = widths(space.box, order)
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


def _tree(term: Operand, fold: Fold, space: Space, leaves: list[Leaf]) -> Step | int:
    """The body as a tree over leaves; equal leaves are not looked for."""
    moving = set(axes_of(term)).intersection(fold.axes)
    if isinstance(term, Node) and term.op == "element" and moving and term.kind == ELEMENT:
        function = space.builder.algebra.operation(str(term.data), element_type(term.args[0]))
        return Step(function, tuple(_tree(argument, fold, space, leaves) for argument in term.args))
    leaves.append(Leaf(term, frozenset(axes_of(term)).intersection(space.order), not moving))
    return len(leaves) - 1


def _groups(axes: tuple[Axis, ...], leaves: list[Leaf], space: Space) -> list[tuple[Axis, ...]]:
    """The axes by the leaves that depend on them; the group of most outputs last."""
    grouped: dict[tuple[bool, ...], list[Axis]] = {}
    for axis in axes:
        grouped.setdefault(tuple(axis in leaf.axes for leaf in leaves), []).append(axis)
    groups = [tuple(group) for group in grouped.values()]
    if len(groups) > 1:
        sizes = [math.prod(widths(space.box, group)) for group in groups]
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

    widest = max((math.prod(widths(space.box, tuple(leaf.axes))) for leaf in leaves if not leaf.fixed), default=1)
    easy = all(isinstance(leaf.term, Node) and leaf.term.op == "read" for leaf in leaves if not leaf.fixed)
    limit = max(16, PACKED // max(1, widest))
    if easy and not pack:
        limit = max(limit, 4096)
    whole = fold_space(fold.axes, space)
    loads: list[Callable[[Frame], Rows]] = []
    codes: list[Job | None] = []
    for leaf in leaves:
        code = None
        if leaf.fixed:
            code = run_of(lower(leaf.term, space))
        elif isinstance(leaf.term, Node) and leaf.term.op == "read" and _is_view(leaf.term, whole):
            code = run_of(lower(leaf.term, whole))
        codes.append(code)
    count = len(fold.axes)
    place = [space.order.index(axis) for axis in order]
    for box in blocks(fold.axes, limit):
        steps = widths(box, fold.axes)
        total = math.prod(steps)
        shapers: list[Callable[[Frame], Array | list[Array]]] = []
        for leaf, code in zip(leaves, codes, strict=True):
            dims = tuple(math.prod(widths(space.box, g)) if leaf.axes.issuperset(g) else 1 for g in groups)
            if leaf.fixed and code is not None:
                shapers.append(_fixed(code, space, place, dims, leaf))
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


def _fixed(code: Job, space: Space, place: list[int], dims: tuple[int, ...], leaf: Leaf) -> Job:
    shape = over(space, tuple(leaf.axes))

    def load(frame: Frame) -> Array:
        value = np.broadcast_to(code(frame), shape)
        kept = [p for p in range(len(shape)) if p not in place]
        return value.transpose(*kept, *place).reshape(dims)

    return load


def _moving(
    run: Job,
    where: tuple[slice, ...] | None,
    steps: tuple[int, ...],
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
    sizes = widths(space.box, order)
    permutation = [order.index(axis) for axis in axes]
    shape = over(space, axes)
    if order == list(axes):
        return lambda x: x.reshape(shape)
    return lambda x: x.reshape(sizes).transpose(permutation).reshape(shape)


def _start_view(
    axes: tuple[Axis, ...], order: tuple[Axis, ...], dims: tuple[int, ...], space: Space
) -> Callable[[Array], Array]:
    permutation = [axes.index(axis) for axis in order]
    sizes = widths(space.box, axes)
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


# Folds with a guard: each step on the box of outputs that it concerns, or on all of them under a mask.


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
    covered = np.zeros(shape, bool)
    for _, box in parts:
        covered[slices(space, box, shape)] = True
    return covered


def by_boxes(fold: Fold, node: Node, parts: list[Part], space: Space) -> Code:
    """Each step on the outputs that it concerns."""
    axes = tuple(axis for axis in space.order if axis in node.axes or any(b[axis] != space.box[axis] for _, b in parts))
    shape = over(space, axes)
    count = len(fold.axes)
    steps: list[tuple[int, tuple[slice, ...], Job]] = []
    for fixed, box in parts:
        code = lower(fold.body, Space(space.builder, (*fold.axes, *space.order), {**fixed, **box}))
        flat = 0
        for axis in fold.axes:
            flat = flat * axis.size + fixed[axis][0]
        steps.append((flat, slices(space, box, shape), _stripped(run_of(code), count)))
    covered = _covered(parts, space, shape)
    start = start_of(fold, space)
    if not covered.all() and start is None and fold.name not in ("sum", "prod") and not fold.masked:
        raise no_term(fold.name, fold.span, fold.rule)
    missing = ~covered if not covered.all() else None
    if fold.name in ("argmax", "argmin"):
        return _best_by_boxes(fold, steps, shape, space)
    return _fold_by_boxes(fold, node, steps, shape, missing, start, space)


def _stripped(run: Job, count: int) -> Job:
    return lambda frame: without(run(frame), count)


def _fold_by_boxes(
    fold: Fold,
    node: Node,
    steps: list[tuple[int, tuple[slice, ...], Job]],
    shape: tuple[int, ...],
    missing: Array | None,
    start: Job | None,
    space: Space,
) -> Code:
    dtype = _storage_of(node, space)
    neutral = identity(fold, node, space)
    empty_value = of_none(fold, node, space)
    function = None if fold.name == "last" else fold_function(fold, node, space)

    def run(frame: Frame) -> Array:
        total = np.empty(shape, dtype)
        total[...] = neutral if start is None else start(frame)
        for _, where, code in steps:
            part = _view_of(total, where)
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
    steps: list[tuple[int, tuple[slice, ...], Job]],
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
            update_best(fold.name, _view_of(best, where), _view_of(position, where), value, flat)
        return position

    return run


def _view_of(array: Array, where: tuple[slice, ...]) -> Array:
    """A part of an array that can be written to, without axes too."""
    index: tuple[Any, ...] = (*where, ...)
    part: Array = array[index]
    return part


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
    parts: list[tuple[Job, Job, tuple[int, ...], int]] = []
    flat = 0
    for box in blocks(fold.axes, max(1, CHUNK // size)):
        steps = widths(box, fold.axes)
        body, guard = (run_of(fold_terms(fold, term, space, box)) for term in (fold.body, fold.guard))
        parts.append((body, guard, steps, flat))
        flat += math.prod(steps)
    start = start_of(fold, space)
    dtype = _storage_of(node, space)
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
                    _update_masked(fold.name, best, position, term, mask, first + step)
                elif function is None:
                    np.copyto(total, term, where=mask, casting="unsafe")
                else:
                    new = np.where(known, function(total, term), term)
                    np.copyto(total, new, where=mask, casting="unsafe")
                known |= mask
        if not known.all() and not fold.masked and fold.name not in ("sum", "prod"):
            raise no_term(fold.name, fold.span, fold.rule)
        if fold.name == "prod" and not known.all():
            total[~known] = space.builder.algebra.constant(element_type(node), 1)
        return position if ordering else total

    return run


def _update_masked(name: str, best: Array, position: Array, term: Array, mask: Array, flat: int) -> None:
    b, p, t = best[mask], position[mask], np.asarray(term)[mask]
    update_best(name, b, p, t, flat)
    best[mask], position[mask] = b, p


# Folds, strictly in the written order: row-major, the left-most index slowest, starting with the first term.
# Each strategy gives the same bits. What is sequential is only the fold: a step is one operation on all outputs of a
# block. Truth values and exact integers are reduced at once, since no order of theirs changes the result.


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
    for box in blocks(fold.axes, max(1, CHUNK // max(1, math.prod(over(space, node.axes))))):
        steps = widths(box, fold.axes)
        parts.append((fold_terms(fold, fold.body, space, box), fold_terms(fold, fold.guard, space, box), steps))
    start = lower(fold.start, space) if fold.start is not None else None
    shape = over(space, node.axes)
    wide = fold.name in ("sum", "prod") and not fits_int64(node.low, node.high)

    def reduce(body: Array, guard: Array, steps: tuple[int, ...]) -> Array:
        body = np.asarray(body)
        if fold.name == "count":
            body = body.astype(np.int64)
        if wide and body.dtype != object and _may_exceed(fold.name, body, math.prod(steps)):
            body = body.astype(object)
        if not (guard.ndim == 0 and bool(guard)):
            if neutral is None:
                return _masked_extreme(ufunc, body, guard, steps, shape, fold)
            body = np.where(guard, body, np.asarray(neutral).astype(body.dtype))
        full = np.broadcast_to(body, (*steps, *shape))
        return np.asarray(ufunc.reduce(full, axis=tuple(range(count))), object if full.dtype == object else None)

    def total(pieces: list[Array], first: Array | None) -> Array:
        result = pieces[0] if first is None else np.asarray(first)
        for piece in pieces[1:] if first is None else pieces:
            # NumPy makes a number of an array without axes, and an array of uint64 of a great one.
            if wide:
                result, piece = safe("add" if fold.name == "sum" else "mul", result, piece)
            result = np.asarray(ufunc(result, piece), object if object in (result.dtype, piece.dtype) else None)
        return result

    arrays = [(b, g, s) for b, g, s in parts if isinstance(b, np.ndarray) and isinstance(g, np.ndarray)]
    if len(arrays) == len(parts) and not callable(start):
        return total([reduce(b, g, s) for b, g, s in arrays], start)
    runs = [(run_of(body), run_of(guard), steps) for body, guard, steps in parts]
    begin = run_of(start) if start is not None else None

    def run(frame: Frame) -> Array:
        pieces = [reduce(np.asarray(body(frame)), np.asarray(guard(frame)), steps) for body, guard, steps in runs]
        return total(pieces, begin(frame) if begin is not None else None)

    return run


def _may_exceed(name: str, body: Array, steps: int) -> bool:
    """True if the sum or product of so many of these integers might not be computed in int64."""
    most = max(abs(int(body.min())), abs(int(body.max()))) if body.size else 0
    return most * steps >= LIMIT if name == "sum" else most > 1


def _masked_extreme(
    ufunc: np.ufunc, body: Array, guard: Array, steps: tuple[int, ...], shape: tuple[int, ...], fold: Fold
) -> Array:
    full, mask = (np.broadcast_to(x, (*steps, *shape)) for x in (body, guard))
    axes = tuple(range(len(steps)))
    if not mask.any(axis=axes).all() and fold.start is None and not fold.masked:
        raise no_term(fold.name, fold.span, fold.rule)
    least = full.min() if ufunc is np.maximum else full.max()
    return np.asarray(ufunc.reduce(np.where(mask, full, least), axis=axes))


def _plain(fold: Fold, node: Node, space: Space) -> Code:
    size = math.prod(over(space, node.axes))
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
    parts: list[tuple[Job, tuple[int, ...], int]] = []
    for box in blocks(fold.axes, max(64, CHUNK // size)):
        steps = widths(box, fold.axes)
        parts.append((run_of(fold_terms(fold, fold.body, space, box)), (*steps, *shape), math.prod(steps)))
    start = start_of(fold, space)
    dtype = space.builder.algebra.storage(element_type(node))

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
    if fold.steps * math.prod(over(space, node.axes)) > 1 << 22:
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


# Which elements of a result the text leaves open: the condition, as a term, that goes with a term.


def free_of(term: Operand) -> Operand:
    """True if the value of a term is left open: by itself, or because what it is made of is."""
    if not isinstance(term, Node) or not term.free:
        return False
    inner = [free_of(argument) for argument in term.args]
    match term.op:
        case "const":
            return True
        case "oneof":
            return disjunction([Node("differs", term.args, term.axes, BOOL), *inner])
        case "cast" | "saturate":
            return disjunction([_outside(term), *inner])
        case "ite":
            condition, then, other = inner
            chosen = term.args[0]
            if not isinstance(then, TERMS) and not isinstance(other, TERMS) and then == other:
                return disjunction([condition, then])
            return disjunction([condition, Node("ite", (chosen, then, other), axes_of(chosen, then, other), BOOL)])
        case "read":
            source: Source = term.data
            if source.tensor.free is None:
                return disjunction(inner)
            mask = source.tensor.free()
            return Node("read", term.args, term.axes, BOOL, data=replace(source, tensor=mask))
        case "fold":
            fold: Fold = term.data
            body = disjunction([free_of(fold.body), free_of(fold.guard)])
            first = free_of(fold.start) if fold.start is not None else False
            return disjunction([first, _any(fold, body)])
        case _:
            return disjunction(inner)


def _any(fold: Fold, body: Operand) -> Operand:
    outer = tuple(axis for axis in axes_of(body, fold.guard) if axis not in fold.axes)
    condition = conjunction([fold.guard, body])
    if not isinstance(condition, TERMS):
        return condition
    data = Fold("any", fold.axes, body, fold.guard, None, fold.masked, fold.span, fold.rule)
    return Node("fold", (body, fold.guard), outer, BOOL, data=data)


def _outside(term: Node) -> Operand:
    """A conversion of a float that is NaN or outside the range of the integer type, or has no value in the type."""
    (operand,) = term.args
    if not isinstance(operand, Node) or operand.kind != ELEMENT or operand.type is None:
        return False
    if not is_float(operand.type) and (operand.type != STRINGS or term.op == "cast"):
        return False
    if term.op == "cast" and (term.type is None or not is_integer(term.type)):
        return False
    return Node("outside", (operand,), operand.axes, BOOL, data=(term.op, term.type))


def _lower_outside(node: Node, space: Space) -> Code:
    op, target = node.data
    (operand,) = node.args
    if op == "saturate" or not is_integer(target):
        if isinstance(operand, Node) and operand.type == STRINGS:
            from .elements.numerals import number_of, numbers

            return combine(lambda x: np.isnan(numbers(x, number_of, DOUBLE)), [lower(operand, space)])
        return combine(lambda x: np.isnan(to_double(np.asarray(x))), [lower(operand, space)])
    low, high = integer_range(target)

    def outside(x: Array) -> Array:
        whole = np.trunc(to_double(np.asarray(x)))
        return np.asarray(~((whole >= low) & (whole < high + 1)))

    return combine(outside, [lower(operand, space)])


def _lower_differs(node: Node, space: Space) -> Code:
    def differs(a: Array, b: Array) -> Array:
        same = np.asarray(a == b).astype(bool)
        if is_float(np.asarray(a).dtype):
            same = (same & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b))
        return np.asarray(~same)

    return combine(differs, [lower(argument, space) for argument in node.args])


LOWER["outside"] = _lower_outside
LOWER["differs"] = _lower_differs


# Equations: a tensor from a term, evaluated in blocks that stay in the cache, on threads where that pays.


BLOCK: Final = 1 << 16
"""Outputs of a block whose terms are elementwise."""
FOLD_BLOCK: Final = 24 << 10
"""Outputs of a block with a fold: totals and buffer together stay in the second-level cache."""

Dimension = tuple[int, tuple[Axis, ...]]
"""A dimension of a tensor: its size and the axes whose values, row-major, are its positions; none for size 1."""


def tensor(builder: Builder, term: Operand, dimensions: Sequence[Dimension], kind: str, dtype: DType | None) -> Tensor:
    """The tensor whose elements are the values of the term; it is computed when it is first read."""
    shape = tuple(size for size, _ in dimensions)
    low, high = bounds(term, IndexFacts()) if kind == INT else (None, None)

    def make() -> Layout:
        return _alias(term, dimensions, builder) or _computed(builder, term, dimensions, kind, dtype)

    free = _freedom(builder, term, dimensions) if isinstance(term, Node) and term.free else None
    return Tensor(kind, dtype, shape, make, low, high, free)


def _freedom(builder: Builder, term: Node, dimensions: Sequence[Dimension]) -> Callable[[], Tensor]:
    """Makes, once, the tensor that says which elements are left open."""
    tensors: list[Tensor] = []

    def free() -> Tensor:
        if not tensors:
            tensors.append(tensor(builder, free_of(term), dimensions, BOOL, None))
        return tensors[0]

    return free


def _alias(term: Operand, dimensions: Sequence[Dimension], builder: Builder) -> Layout | None:
    """The layout of a tensor that is a view of another, None when it is none."""
    if not isinstance(term, Node) or term.op != "read" or 0 in (size for size, _ in dimensions):
        return None
    source: Source = term.data
    order = tuple(axis for _, axes in dimensions for axis in axes)
    place = view_of(source.tensor.layout, source.tensor.shape, term.args, whole(builder, order))
    if place is None or place[1]:
        return None
    layout, _ = place
    strides, at = [], 0
    for _, axes in dimensions:
        part = layout.strides[at : at + len(axes)]
        at += len(axes)
        for position in range(len(axes) - 1):
            if part[position] != part[position + 1] * axes[position + 1].size:
                return None
        strides.append(part[-1] if part else 0)
    return Layout(layout.slot, layout.count, layout.offset, tuple(strides))


def whole(builder: Builder, order: tuple[Axis, ...]) -> Space:
    """The space of all indices."""
    return Space(builder, order, {axis: (0, axis.size) for axis in order})


def _computed(
    builder: Builder, term: Operand, dimensions: Sequence[Dimension], kind: str, dtype: DType | None
) -> Layout:
    order = tuple(axis for _, axes in dimensions for axis in axes)
    shape = tuple(size for size, _ in dimensions)
    storage = storage_for(builder.algebra, kind, dtype)
    builder.claim(math.prod(shape) * storage.itemsize)
    slot = builder.slot()
    layout = Layout(slot, math.prod(shape), 0, row_strides(shape))
    if 0 in shape:
        builder.emit(_allocate(slot, shape, storage))
        return layout
    split = tuple(axis.size for axis in order)
    tasks, work = block_tasks(builder, term, order, slot)
    keep = builder.algebra.keep

    def run(frame: Frame) -> None:
        out = frame[slot] = np.empty(split, storage)
        try:
            run_tasks(tasks, frame, work)
        except OverflowError:  # an integer that int64 does not hold
            if kind != INT:
                raise
            out = frame[slot] = np.empty(split, object)
            run_tasks(tasks, frame, work)
        if keep is not None:
            out = keep(out)
        frame[slot] = out if split == shape else out.reshape(shape)

    builder.emit(run)
    return layout


def block_tasks(
    builder: Builder, term: Operand, order: tuple[Axis, ...], slot: int, at: int | None = None
) -> tuple[list[Task], int]:
    """The function that writes the values of a term into the array in a slot, block by block, and how much work that
    is.

    at: the array has one more dimension in front, of which one position is written: a number, or -1 for the clock's.
    """
    size = math.prod(axis.size for axis in order)
    steps = fold_steps(term)
    kept = shared(term)
    boxes = list(blocks(order, _limit(size, steps, builder.algebra), even=True))
    tasks: list[Task] = []
    clock = builder.clock.slot if builder.clock is not None and at == -1 else None
    for box in boxes:
        space = Space(builder, order, box, kept)
        where = None if len(boxes) == 1 else tuple(slice(*box[axis]) for axis in order)
        tasks.append(_task(write(term, space), slot, where, space.slots, at, clock))
    return tasks, size * max(1, steps)


def storage_for(algebra: ElementTable, kind: str, dtype: DType | None) -> DType:
    """The dtype of arrays that hold values of a kind."""
    if kind == ELEMENT and dtype is not None:
        return algebra.storage(dtype)
    return np.dtype({BOOL: np.bool_, INT: np.int64}.get(kind, np.object_))


def _storage_of(node: Node, space: Space) -> DType:
    """The dtype of the results of a fold."""
    wide = node.kind == INT and not fits_int64(node.low, node.high)
    return np.dtype(object) if wide else storage_for(space.builder.algebra, node.kind, node.type)


def _allocate(slot: int, shape: tuple[int, ...], storage: DType) -> Task:
    def run(frame: Frame) -> None:
        try:
            frame[slot] = np.empty(shape, storage)
        except ValueError as error:  # without elements, and yet beyond what strides can say
            raise Unsupported(f"a tensor of the shape {list(shape)} has sizes that numpy does not take") from error

    return run


def _task(
    code: Write, slot: int, where: tuple[slice, ...] | None, slots: Sequence[int], at: int | None, clock: int | None
) -> Task:
    def run(frame: Frame) -> None:
        out = frame[slot]
        if at is not None:
            position = at if clock is None else frame[clock]
            out = out[position, ...]
        code(frame, out if where is None else out[where])
        for kept in slots:
            frame[kept] = None

    return run


def _limit(size: int, steps: int, algebra: ElementTable) -> int:
    """The number of outputs of a block: so many blocks that each thread has work, where there is much."""
    limit = algebra.block or FOLD_BLOCK if steps > 1 else algebra.cells or BLOCK
    if size * max(steps, 1) < 1 << 19:
        return max(limit, 1)
    pieces = max(1, -(-size // limit))
    pieces = -(-pieces // threads()) * threads()
    return max(64, -(-size // pieces))


def fold_steps(term: Operand) -> int:
    """The steps of the longest fold in a term."""
    return max([1, *(node.data.steps for node in operations(term) if isinstance(node.data, Fold))])


def shared(term: Operand) -> frozenset[int]:
    """The operations that occur more than once in a term, outside folds."""
    counts: Counter[int] = Counter()
    stack: list[object] = [term]
    while stack:
        item = stack.pop()
        if not isinstance(item, Node):
            continue
        counts[id(item)] += 1
        if counts[id(item)] == 1 and item.op != "fold":
            stack += item.args
    return frozenset(key for key, times in counts.items() if times > 1)
