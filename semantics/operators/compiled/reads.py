"""Reads of tensors: a strided view where the indices are affine and in bounds, else a gather of linear positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sonnx.spec.language.syntax import Span

from .arithmetic import decide
from .code import LOWER, Code, Run, Space, at_clock, lower, over, run_of
from .plan import Frame, strided
from .terms import (
    Affine,
    Array,
    Axis,
    Known,
    Layout,
    Node,
    Operand,
    Tensor,
    Term,
    axes_of,
    bounds,
    is_static,
    stuck,
    tabulated,
)


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """What a read reads: the tensor, for each dimension whether the index was shown to be in bounds, the conditions
    under which it is read, and where that is written.
    """

    tensor: Tensor
    proven: tuple[bool, ...]
    masks: tuple[Term, ...]
    name: str
    span: Span
    rule: str


def read(tensor: Tensor, indices: Sequence[Operand], known: Known, name: str, span: Span, rule: str) -> Node:
    """The element of a tensor at indices. Raises StuckError when an index is out of bounds whatever the data."""
    proven = []
    for position, (index, size) in enumerate(zip(indices, tensor.shape, strict=True)):
        inside = decide(*bounds(index, known), 0, size - 1)
        if inside is None and not known.masks and is_static(index) and not isinstance(index, Affine):
            low, high = bounds(index, known)
            raise outside(rule, name, position, size, low, high, span)
        if inside is False and not known.masks:
            low, high = bounds(index, known)
            raise outside(rule, name, position, size, low, high, span)
        proven.append(inside is True)
    source = Source(tensor, tuple(proven), known.masks, name, span, rule)
    return Node(
        "read", tuple(indices), axes_of(*indices), tensor.kind, tensor.type, tensor.low, tensor.high,
        free=tensor.free is not None, data=source,
    )  # fmt: skip


def outside(rule: str, name: str, position: int, size: int, low: int | None, high: int | None, span: Span) -> Exception:
    """The signal that an index is out of bounds."""
    found = f"{low}" if low == high else f"{low} .. {high}"
    return stuck(
        rule,
        f"the indices of {name} are in bounds",
        span,
        f"The index {found} along dimension {position} of {name} is outside 0 .. {size - 1}.",
    )


def view_of(
    layout: Layout, shape: tuple[int, ...], indices: Sequence[Operand], space: Space
) -> tuple[Layout, int] | None:
    """The layout over the box of a read with affine indices in bounds, and how far it moves with the clock; None when
    it is no such read.
    """
    clock, moving = space.builder.clock, 0
    offset = layout.offset
    strides = dict.fromkeys(space.order, 0)
    for index, stride, size in zip(indices, layout.strides, shape, strict=True):
        if isinstance(index, int):
            if not 0 <= index < size:
                return None
            offset += index * stride
            continue
        if not isinstance(index, Affine):
            return None
        low = high = first = index.const
        for axis, factor in index.terms:
            if clock is not None and axis is clock.axis:
                lo, hi = clock.low, clock.high + 1
                moving += factor * stride
            else:
                lo, hi = space.box[axis]
                first += factor * lo
                strides[axis] += factor * stride
            low += factor * (lo if factor > 0 else hi - 1)
            high += factor * (hi - 1 if factor > 0 else lo)
        if low < 0 or high >= size:
            return None
        offset += first * stride
    return Layout(layout.slot, layout.count, offset, tuple(strides[axis] for axis in space.order)), moving


def _read(node: Node, space: Space) -> Code:
    source: Source = node.data
    tensor = source.tensor
    layout = tensor.layout
    found = view_of(layout, tensor.shape, node.args, space)
    if found is None:
        return _gather(node, source, layout, space)
    view, moving = found
    shape = tuple(
        space.box[axis][1] - space.box[axis][0] if stride else 1
        for axis, stride in zip(space.order, view.strides, strict=True)
    )
    slot, offset, strides = view.slot, view.offset, view.strides
    if moving and space.builder.clock is not None:
        clock = space.builder.clock.slot
        return lambda frame: strided(frame[slot], shape, offset + moving * frame[clock], strides)  # type: ignore[arg-type]
    base = space.builder.frame[slot]
    if offset == 0 and base is not None and base.shape == shape and strides == _strides(shape):
        return lambda frame: frame[slot]
    return lambda frame: strided(frame[slot], shape, offset, strides)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, 0 along dimensions of size 1."""
    out, step = [], 1
    for size in reversed(shape):
        out.append(step if size > 1 else 0)
        step *= size
    return tuple(reversed(out))


def _gather(node: Node, source: Source, layout: Layout, space: Space) -> Code:
    """Positions in the base from the indices that are not affine, a view along the axes that these do not use."""
    tensor = source.tensor
    if not layout.count:
        return np.zeros((1,) * len(space.order), space.builder.frame[layout.slot].dtype)
    plain: list[tuple[Affine | int, int]] = []
    hard: list[tuple[Operand, int, int, int, bool]] = []
    for position, (index, stride, size) in enumerate(zip(node.args, layout.strides, tensor.shape, strict=True)):
        inside = isinstance(index, int) and 0 <= index < size
        if isinstance(index, Affine) and not at_clock(index, space):
            inside = decide(*_over_box(index, space), 0, size - 1) is True
        if inside:
            plain.append((index, stride))  # type: ignore[arg-type]
        else:
            hard.append((index, stride, size, position, source.proven[position]))
    used = set(axes_of(*(index for index, *_ in hard)))
    changed = True
    while changed:  # an affine index that shares an axis with a position becomes part of it
        changed = False
        for item in list(plain):
            index, stride = item
            shared = isinstance(index, Affine) and used.intersection(index.axes)
            if shared and not set(index.axes) <= used:  # type: ignore[union-attr]
                used |= set(index.axes)  # type: ignore[union-attr]
                changed = True
    const, strides = layout.offset, dict.fromkeys(space.order, 0)
    moving: list[tuple[Affine, int]] = []
    for index, stride in plain:
        if isinstance(index, int):
            const += index * stride
        elif used.intersection(index.axes):
            moving.append((index, stride))
        else:
            const += index.const * stride
            for axis, factor in index.terms:
                strides[axis] += factor * stride
                const += factor * stride * space.box[axis][0]
    rest = tuple(axis for axis in space.order if strides[axis])
    rest_shape = tuple(space.box[axis][1] - space.box[axis][0] for axis in rest)
    rest_strides = tuple(strides[axis] for axis in rest)
    lowest = sum(min(0, s * (n - 1)) for s, n in zip(rest_strides, rest_shape, strict=True))
    highest = sum(max(0, s * (n - 1)) for s, n in zip(rest_strides, rest_shape, strict=True))
    kept = tuple(axis for axis in space.order if axis in used)
    codes = [run_of(lower(index, space)) for index, *_ in hard]
    proven = all(found for *_, found in hard)
    still = not any(at_clock(index, space) for index, *_ in hard)
    static = still and all(is_static(index) for index, *_ in hard) and (proven or is_static(*source.masks))
    masks = tuple(run_of(lower(mask, space)) for mask in source.masks) if not proven else ()
    moved: Array = np.asarray(const, np.int64)
    for index, stride in moving:
        moved = moved + tabulated(index, space.order, space.box) * stride
    span = layout.count - highest + lowest
    slot = layout.slot
    inner_shape = over(space, kept)
    result_shape = tuple(
        inner_shape[p] if axis in kept else (rest_shape[rest.index(axis)] if axis in rest else 1)
        for p, axis in enumerate(space.order)
    )
    kept_shape = tuple(space.box[axis][1] - space.box[axis][0] for axis in kept)
    final = _permutation(space.order, kept, rest)

    def positions(frame: Frame) -> Array:
        total = moved
        for code, (_, stride, size, position, proven) in zip(codes, hard, strict=True):
            index = code(frame)
            if not proven:
                index = _checked(index, size, [mask(frame) for mask in masks], source, position)
            else:
                index = np.clip(index, 0, size - 1)
            total = total + index * stride
        if total.dtype == object:
            total = total.astype(np.int64)
        return np.broadcast_to(total, inner_shape).reshape(kept_shape)

    where: Run = run_of(positions([])) if static else positions

    def run(frame: Frame) -> Array:
        at = where(frame)
        base = frame[slot]
        if not rest:
            return (
                np.asarray(base.reshape(-1)[at]).reshape(result_shape)
                if at.ndim == 0
                else base.reshape(-1).take(at).reshape(result_shape)
            )
        view = strided(base, (span, *rest_shape), -lowest, (1, *rest_strides))
        found = view[at + lowest] if lowest else view[at]
        return found.transpose(final).reshape(result_shape)

    return run


def _permutation(order: tuple[Axis, ...], kept: tuple[Axis, ...], rest: tuple[Axis, ...]) -> list[int]:
    """From the dimensions (kept, rest) to the order of the space."""
    dims = (*kept, *rest)
    return [dims.index(axis) for axis in order if axis in dims]


def _over_box(index: Affine, space: Space) -> tuple[int, int]:
    low = high = index.const
    for axis, factor in index.terms:
        lo, hi = space.box[axis]
        low += factor * (lo if factor > 0 else hi - 1)
        high += factor * (hi - 1 if factor > 0 else lo)
    return low, high


def _checked(index: Array, size: int, masks: list[Array], source: Source, position: int) -> Array:
    """The index, clipped; StuckError when it is out of bounds where the read counts."""
    index = np.asarray(index)
    if not index.size:
        return index
    low, high = index.min(), index.max()
    if low >= 0 and high < size:
        return index
    bad = (index < 0) | (index >= size)
    for mask in masks:
        bad = bad & mask
    if bad.any():
        wrong = np.broadcast_to(index, bad.shape)[bad]
        raise outside(source.rule, source.name, position, size, int(wrong.min()), int(wrong.max()), source.span)
    return np.clip(index, 0, size - 1)


LOWER["read"] = _read
