"""Primitives that look at data: `values`, `rationals`, `filter` and `order`. What they give shapes by is remembered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

import numpy as np
from sonnx.spec.syntax import Expr, Range, Span

from ..errors import InternalError
from .ieee_elements import is_integer
from .ieee_plan import Builder, Frame, strided
from .ieee_terms import BOOL, ELEMENT, INT, TERMS, Array, Layout, Node, Tensor, Value, row_strides, stuck
from .ieee_values import Scope, operand, static_int, tensor_of


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
        raise stuck(scope.builder.rule, "all are numbers", span, "A NaN or an infinity where an exact number is needed.")
    return tuple(_exact(x) for x in wide.tolist())


def _exact(x: object) -> int | Fraction:
    value = Fraction(x)  # type: ignore[arg-type]
    return int(value) if value.denominator == 1 else value


def _filter(args: list[Value], scope: Scope, _span: Span) -> Value:
    """The index vectors where a condition holds; the argument is the fold itself."""
    from .ieee_equations import tensor
    from .ieee_expressions import bind_ranges, evaluate

    expr = args[0]
    if not isinstance(expr, Expr):
        raise InternalError("filter of what is no expression")
    guard, _, body = expr.args[-3:]
    names, dimensions, some = bind_ranges([a for a in expr.args if isinstance(a, Range)], scope)
    rank, shape = len(dimensions), tuple(size for size, _ in dimensions)
    builder = scope.builder
    if not some:
        slot = builder.slot()

        def nothing(frame: Frame) -> None:
            frame[slot] = np.zeros((0, rank), np.int64)

        builder.emit(nothing)
        return Tensor(INT, None, (0, rank), lambda: Layout(slot, 0, 0, (rank, 1)))
    inner = scope.bind(names)
    condition = operand(evaluate(body, inner))  # type: ignore[arg-type]
    if isinstance(guard, Expr):
        from .ieee_exact_arithmetic import conjunction

        condition = conjunction((operand(evaluate(guard, inner)), condition))
    mask = tensor(builder, condition, dimensions, BOOL, None)
    layout = mask.layout
    slot = builder.slot()

    def find(frame: Frame) -> None:
        found = strided(frame[layout.slot], shape, layout.offset, layout.strides)
        frame[slot] = np.ascontiguousarray(np.argwhere(found).reshape(-1, rank)) if rank else np.zeros((int(found), 0), np.int64)

    builder.emit(find)
    count = len(builder.frame[slot])
    builder.emit(_same_count(slot, count))
    high = max((size for size in shape), default=1) - 1
    return Tensor(INT, None, (count, rank), lambda: Layout(slot, count * rank, 0, (rank, 1)), 0, max(high, 0))


def _same_count(slot: int, count: int) -> Callable[[Frame], None]:
    from .ieee_plan import Changed

    def check(frame: Frame) -> None:
        if len(frame[slot]) != count:
            raise Changed

    return check


def _order(args: list[Value], scope: Scope, _span: Span) -> Value:
    tensor, axis = tensor_of(args[0]), static_int(args[1])
    largest = args[2]
    if isinstance(largest, TERMS):
        raise InternalError("order by a condition that is not static")
    layout, shape, slot = tensor.layout, tensor.shape, scope.builder.slot()

    def sort(frame: Frame) -> None:
        x = strided(frame[layout.slot], shape, layout.offset, layout.strides)
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
    "filter": _filter,
    "order": _order,
}
_ = Node
