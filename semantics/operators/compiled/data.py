"""Primitives that look at data: `values`, `rationals` and `order`. What shapes depend on is remembered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from .plan import Builder, Frame, strided
from .terms import BOOL, ELEMENT, INT, TERMS, Array, Layout, Tensor, Value, row_strides, stuck
from .types import is_integer
from .values import Scope, static_int, tensor_of


def contiguous(tensor: Tensor, builder: Builder) -> Layout:
    """The layout of the tensor's elements one after the other, copied when they do not lie so."""
    layout = tensor.layout
    slot = builder.slot()
    shape = tensor.shape

    def copy(frame: Frame) -> None:
        frame[slot] = np.ascontiguousarray(strided(frame[layout.slot], shape, layout.offset, layout.strides))

    builder.emit(copy)
    count = 1
    for size in shape:
        count *= size
    return Layout(slot, count, 0, row_strides(shape))


def _values(args: list[Value], scope: Scope, _span: Span) -> Value:
    tensor = tensor_of(args[0])
    found = scope.builder.data(tensor).reshape(-1)
    if tensor.kind == ELEMENT and tensor.type is not None and (is_integer(tensor.type) or tensor.type == np.bool_):
        return tuple(int(x) for x in found)
    if tensor.kind == BOOL:
        return tuple(bool(x) for x in found)
    if tensor.kind == INT:
        return tuple(int(x) for x in found)
    raise InternalError(f"values of a tensor of {tensor.type}")


def _rationals(args: list[Value], scope: Scope, span: Span) -> Value:
    found = scope.builder.data(tensor_of(args[0])).reshape(-1)
    if found.dtype == object:
        return tuple(_exact(x) for x in found)
    wide = found.astype(np.float64) if found.dtype.kind not in "iub" else found
    if not np.isfinite(wide).all():
        raise stuck(
            scope.builder.rule, "all are numbers", span, "A NaN or an infinity where an exact number is needed."
        )
    return tuple(_exact(x) for x in wide.tolist())


def _exact(x: float | Fraction) -> int | Fraction:
    value = Fraction(x)
    return int(value) if value.denominator == 1 else value


def _order(args: list[Value], scope: Scope, _span: Span) -> Value:
    tensor, axis = tensor_of(args[0]), static_int(args[1])
    largest = args[2]
    if isinstance(largest, TERMS):
        raise InternalError("order by a condition that is not static")
    layout, shape, slot = tensor.layout, tensor.shape, scope.builder.slot()

    def sort(frame: Frame) -> None:
        x = scope.builder.algebra.known(strided(frame[layout.slot], shape, layout.offset, layout.strides))
        frame[slot] = np.ascontiguousarray(stable_order(x, axis, largest=bool(largest)))

    scope.builder.emit(sort)
    count = 1
    for size in shape:
        count *= size
    made = Layout(slot, count, 0, row_strides(shape))
    return Tensor(INT, None, shape, lambda: made, 0, max(shape[axis] - 1, 0))


def stable_order(x: Array, axis: int, *, largest: bool) -> Array:
    """The stable permutation that sorts along an axis, a NaN as the greatest."""
    if x.dtype.num > 23:
        x = x.astype(np.float32) if np.dtype(x.dtype).name.startswith(("bfloat", "float")) else x.astype(np.int64)
    if not largest:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.flip(x, axis)
    found = np.argsort(turned, axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - found, axis)


PRIMITIVES_OF_DATA: Final[Mapping[str, Callable[[list[Value], Scope, Span], Value]]] = {
    "values": _values,
    "rationals": _rationals,
    "order": _order,
}
