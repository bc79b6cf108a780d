"""Which elements of a result the text leaves open: the condition, as a term, that goes with a term."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from ...errors import Unsupported
from ...model.elements import DType, integer_range, is_float, is_integer
from .arithmetic import conjunction, disjunction
from .code import (
    LOWER,
    Builder,
    Code,
    Frame,
    Source,
    Space,
    Task,
    Write,
    combine,
    lower,
    run_tasks,
    threads,
    view_of,
    write,
)
from .elements.ieee import Algebra, to_double
from .folds import Fold
from .terms import (
    BOOL,
    ELEMENT,
    INT,
    TERMS,
    Array,
    Axis,
    Known,
    Layout,
    Node,
    Operand,
    Tensor,
    axes_of,
    bounds,
    operations,
    row_strides,
)


def free_of(term: Operand) -> Operand:
    """Whether the value of a term is left open: by itself, or because what it is made of is."""
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
    if not isinstance(operand, Node) or operand.kind != ELEMENT or operand.type is None or not is_float(operand.type):
        return False
    if term.op == "cast" and (term.type is None or not is_integer(term.type)):
        return False
    return Node("outside", (operand,), operand.axes, BOOL, data=(term.op, term.type))


def _lower_outside(node: Node, space: Space) -> Code:
    op, target = node.data
    (operand,) = node.args
    if op == "saturate" or not is_integer(target):
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
    low, high = bounds(term, Known()) if kind == INT else (None, None)

    def make() -> Layout:
        return _alias(term, dimensions, builder) or _computed(builder, term, dimensions, kind, dtype)

    free = _freedom(builder, term, dimensions) if isinstance(term, Node) and term.free else None
    return Tensor(kind, dtype, shape, make, low, high, free)


def _freedom(builder: Builder, term: Node, dimensions: Sequence[Dimension]) -> Callable[[], Tensor]:
    """Makes, once, the tensor that says which elements are left open."""
    found: list[Tensor] = []

    def free() -> Tensor:
        if not found:
            found.append(tensor(builder, free_of(term), dimensions, BOOL, None))
        return found[0]

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
    found, _ = place
    strides, at = [], 0
    for _, axes in dimensions:
        part = found.strides[at : at + len(axes)]
        at += len(axes)
        for position in range(len(axes) - 1):
            if part[position] != part[position + 1] * axes[position + 1].size:
                return None
        strides.append(part[-1] if part else 0)
    return Layout(found.slot, found.count, found.offset, tuple(strides))


def whole(builder: Builder, order: tuple[Axis, ...]) -> Space:
    """The space of all indices."""
    return Space(builder, order, {axis: (0, axis.size) for axis in order})


def _computed(
    builder: Builder, term: Operand, dimensions: Sequence[Dimension], kind: str, dtype: DType | None
) -> Layout:
    order = tuple(axis for _, axes in dimensions for axis in axes)
    shape = tuple(size for size, _ in dimensions)
    storage = np.dtype(object) if _is_wide(term, kind) else storage_for(builder.algebra, kind, dtype)
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
        out = np.empty(split, storage)
        frame[slot] = out
        run_tasks(tasks, frame, work)
        if keep is not None:
            out = keep(out)
        frame[slot] = out if split == shape else out.reshape(shape)

    builder.emit(run)
    return layout


def _is_wide(term: Operand, kind: str) -> bool:
    """Whether the term has integers that int64 does not hold."""
    found = operations(term) if kind == INT else ()
    return any(node.op == "integer" and getattr(node.args[0], "type", None) == np.uint64 for node in found)


def block_tasks(
    builder: Builder, term: Operand, order: tuple[Axis, ...], slot: int, at: int | None = None
) -> tuple[list[Task], int]:
    """What writes the values of a term into the array in a slot, block by block, and how much work that is.

    at: the array has one more dimension in front, of which one position is written: a number, or -1 for the clock's.
    """
    size = math.prod(axis.size for axis in order)
    steps = fold_steps(term)
    kept = shared(term)
    boxes = list(blocks(order, _limit(size, steps, builder.algebra)))
    tasks: list[Task] = []
    clock = builder.clock.slot if builder.clock is not None and at == -1 else None
    for box in boxes:
        space = Space(builder, order, box, kept)
        where = None if len(boxes) == 1 else tuple(slice(*box[axis]) for axis in order)
        tasks.append(_task(write(term, space), slot, where, space.slots, at, clock))
    return tasks, size * max(1, steps)


def storage_for(algebra: Algebra, kind: str, dtype: DType | None) -> DType:
    """The dtype of arrays that hold values of a kind."""
    if kind == ELEMENT and dtype is not None:
        return algebra.storage(dtype)
    return np.dtype({BOOL: np.bool_, INT: np.int64}.get(kind, np.object_))


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


def _limit(size: int, steps: int, algebra: Algebra) -> int:
    """How many outputs a block has: so many blocks that each thread has work, where there is much."""
    limit = algebra.block or FOLD_BLOCK if steps > 1 else algebra.cells or BLOCK
    if size * max(steps, 1) < 1 << 19:
        return max(limit, 1)
    pieces = max(1, -(-size // limit))
    pieces = -(-pieces // threads()) * threads()
    return max(64, -(-size // pieces))


def blocks(order: tuple[Axis, ...], limit: int) -> Iterator[dict[Axis, tuple[int, int]]]:
    """Boxes of at most `limit` indices that cover the space, cut along leading axes into equal pieces."""
    inner, cut = 1, len(order)
    while cut > 0 and inner * order[cut - 1].size <= limit:
        cut -= 1
        inner *= order[cut].size
    rest = {axis: (0, axis.size) for axis in order[cut:]}
    if cut == 0:
        yield rest
        return
    axis = order[cut - 1]
    pieces = -(-axis.size // max(1, limit // inner))
    for outer in product(*(range(a.size) for a in order[: cut - 1])):
        fixed = {a: (v, v + 1) for a, v in zip(order, outer, strict=False)}
        for piece in range(pieces):
            lo, hi = axis.size * piece // pieces, axis.size * (piece + 1) // pieces
            yield {**fixed, axis: (lo, hi), **rest}


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
