"""The code of alternatives: two boxes where the condition holds in a box, else both branches and a mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from .conditions import conjuncts
from .lower import LOWER, WRITE, Code, Space, Write, at_clock, combine, lower, over, run_of, write
from .plan import Frame
from .terms import ELEMENT, Affine, Array, Axis, Node, Operand, Table, limits_of


def box_where(condition: Operand, space: Space) -> dict[Axis, tuple[int, int]] | None:
    """The part of the box in which a condition holds when that part is a box, else None. It may be empty."""
    if not isinstance(condition, (Affine, Table, Node)):
        return dict(space.box) if condition else {axis: (lo, lo) for axis, (lo, _) in space.box.items()}
    box = dict(space.box)
    for part in conjuncts(condition):
        if not isinstance(part, Node) or part.op != "within" or not isinstance(part.args[0], Affine):
            return None
        form = part.args[0]
        if at_clock(form, space):
            return None
        first, last = limits_of(part)
        const, free = form.const, []
        for axis, factor in form.terms:
            lo, hi = box[axis]
            if hi - lo == 1:
                const += factor * lo
            else:
                free.append((axis, factor))
        if len(free) > 1:
            return None
        if not free:
            if (first is not None and const < first) or (last is not None and const > last):
                return {axis: (lo, lo) for axis, (lo, _) in space.box.items()}
            continue
        ((axis, factor),) = free
        low = None if first is None else first - const
        high = None if last is None else last - const
        if factor < 0:
            low, high = (None if high is None else -high), (None if low is None else -low)
        lo, hi = box[axis]
        lo = lo if low is None else max(lo, -(-low // abs(factor)))
        hi = hi if high is None else min(hi, high // abs(factor) + 1)
        box[axis] = (lo, max(lo, hi))
    return box


def slices(
    space: Space, box: Mapping[Axis, tuple[int, int]], shape: tuple[int, ...] | None = None
) -> tuple[slice, ...]:
    """Where a smaller box lies in arrays over the box of the space (of `shape`: 1 along what they do not depend on)."""
    out = []
    for position, axis in enumerate(space.order):
        lo, hi = box[axis]
        start = space.box[axis][0]
        full = space.box[axis][1] - start
        whole = shape is not None and shape[position] == 1 and full > 1
        out.append(slice(None) if whole else slice(lo - start, hi - start))
    return tuple(out)


def empty(box: Mapping[Axis, tuple[int, int]]) -> bool:
    """Whether a box has no index."""
    return any(lo >= hi for lo, hi in box.values())


def _branches(node: Node, space: Space) -> tuple[dict[Axis, tuple[int, int]], Operand, Operand] | None:
    """An alternative of which one branch is for a box: the box, the term in it, the term elsewhere."""
    condition, then, other = node.args
    box = box_where(condition, space)
    if box is not None:
        return box, then, other
    if isinstance(condition, Node) and condition.op == "not":
        box = box_where(condition.args[0], space)
        if box is not None:
            return box, other, then
    return None


def _ite(node: Node, space: Space) -> Code:
    found = _branches(node, space)
    if found is None:
        return combine(_choose(node, space), [lower(argument, space) for argument in node.args])
    box, inner, outer = found
    if empty(box):
        return lower(outer, space)
    if box == dict(space.box):
        return lower(inner, space)
    around = lower(outer, space)
    within = lower(inner, space.inside(box))
    shape = over(space, node.axes)
    where = slices(space, box, shape)
    storage = space.builder.algebra.storage(node.type) if node.kind == ELEMENT and node.type is not None else None

    def patch(a: Array, b: Array) -> Array:
        out = np.empty(shape, storage or np.result_type(a, b))
        out[...] = a
        out[where] = b
        return out

    return combine(patch, [around, within])


def _write_ite(node: Node, space: Space) -> Write:
    found = _branches(node, space)
    if found is None:
        code = run_of(_ite(node, space))

        def assign(frame: Frame, out: Array) -> None:
            out[...] = code(frame)

        return assign
    box, inner, outer = found
    if empty(box):
        return write(outer, space)
    if box == dict(space.box):
        return write(inner, space)
    around, within, where = write(outer, space), write(inner, space.inside(box)), slices(space, box)

    def patch(frame: Frame, out: Array) -> None:
        around(frame, out)
        within(frame, out[where])

    return patch


def _choose(node: Node, space: Space) -> Callable[..., Array]:
    if node.kind == ELEMENT and node.type is not None:
        dtype = space.builder.algebra.storage(node.type)

        def choose(condition: Array, a: Array, b: Array) -> Array:
            found = np.where(condition, a, b)
            return found if found.dtype == dtype else found.astype(dtype)

        return choose
    return np.where


LOWER["ite"] = _ite
WRITE["ite"] = _write_ite
