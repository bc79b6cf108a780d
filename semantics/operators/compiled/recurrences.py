"""Recurrences: the views of an `along` block, step by step, each step vectorised over the other indices.

The first step is compiled with its index 0; all others share one code, in which the index is a number in the frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from sonnx.spec.language.syntax import Statement

from .equations import block_tasks, storage_for
from .expressions import evaluate
from .fold_expressions import bind_ranges
from .plan import Clock, Frame, Task, run_tasks
from .reads import Source
from .terms import (
    ELEMENT,
    TERMS,
    Affine,
    Axis,
    DType,
    Known,
    Layout,
    NeedStatic,
    Node,
    Operand,
    Tensor,
    Value,
    kind_of,
    operations,
    row_strides,
)
from .values import Scope, literal, operand, static_int

Tasks = list[tuple[list[Task], int]]


def along(statement: Statement, scope: Scope, default: DType | None) -> Scope:
    """The scope with the views of the block, computed. default: the element type of numerals."""
    (steps,) = statement.ranges
    length = static_int(evaluate(steps.bound, scope))
    tensors: dict[str, Tensor] = {}
    slots: list[tuple[int, tuple[int, ...], DType]] = []
    first = _first(statement, scope, length, default, tensors, slots)
    inner = scope.bind(dict(tensors))
    later: list[Tasks] = []
    clock: Clock | None = None
    if length > 1:
        axis = Axis(length)
        clock = Clock(axis, scope.builder.slot(), 1, length - 1)
        known = Known({**scope.known.ranges, axis: (1, length - 1)}, scope.known.facts, scope.known.masks)
        try:
            later = [_step(statement, replace(inner, known=known), Affine(0, ((axis, 1),)), tensors, clock)]
        except NeedStatic:
            later = [_step(statement, inner, t, tensors, None) for t in range(1, length)]

    def run(frame: Frame) -> None:
        for slot, shape, storage in slots:
            frame[slot] = np.zeros(shape, storage)
        for tasks, work in first:
            run_tasks(tasks, frame, work)
        if clock is None:
            return
        for t in range(1, length):
            frame[clock.slot] = t  # type: ignore[call-overload]
            for tasks, work in later[0] if len(later) == 1 else later[t - 1]:
                run_tasks(tasks, frame, work)

    scope.builder.emit(run)
    return inner


def _first(
    statement: Statement,
    scope: Scope,
    length: int,
    default: DType | None,
    tensors: dict[str, Tensor],
    slots: list[tuple[int, tuple[int, ...], DType]],
) -> Tasks:
    """The code of the first step; makes the tensors as their kinds show."""
    found: Tasks = []
    (steps,) = statement.ranges
    inner = scope.bind({steps.names[0]: 0})
    for view in statement.body:
        names, dimensions, some = bind_ranges(list(view.ranges[1:]), inner)
        shape = (length, *(size for size, _ in dimensions))
        value: Operand = 0
        if some and length:
            here = inner.bind({**names, view.ranges[0].names[0]: 0})
            value = operand(evaluate(view.expr, here))
        if not isinstance(value, TERMS) and not isinstance(value, bool) and default is not None:
            value = literal(value, default, scope)
        kind = kind_of(value)
        dtype = value.type if isinstance(value, Node) and kind == ELEMENT else None
        slot = scope.builder.slot()
        layout = Layout(slot, math.prod(shape), 0, row_strides(shape))
        made = Tensor(kind, dtype, shape, _known(layout), made=layout)
        tensors[view.names[0]] = made
        inner = inner.bind({view.names[0]: made})
        order = tuple(axis for _, axes in dimensions for axis in axes)
        split = (length, *(axis.size for axis in order)) if some else shape
        storage = storage_for(scope.builder.algebra, kind, dtype)
        scope.builder.claim(math.prod(shape) * storage.itemsize)
        slots.append((slot, split, storage))
        if some and length:
            found.append(block_tasks(scope.builder, value, order, slot, 0))
    return found


def _known(layout: Layout) -> Callable[[], Layout]:
    return lambda: layout


def _step(statement: Statement, scope: Scope, t: Operand, tensors: Mapping[str, Tensor], clock: Clock | None) -> Tasks:
    """The code of a step, at a number or at the clock's."""
    found: Tasks = []
    builder = scope.builder
    (steps,) = statement.ranges
    inner = scope.bind({steps.names[0]: t})
    for view in statement.body:
        names, dimensions, some = bind_ranges(list(view.ranges[1:]), inner)
        if not some:
            continue
        made = tensors[view.names[0]]
        value: Value = evaluate(view.expr, inner.bind({**names, view.ranges[0].names[0]: t}))
        item = operand(value)
        if made.kind == ELEMENT and made.type is not None:
            item = literal(item, made.type, scope)
        order = tuple(axis for _, axes in dimensions for axis in axes)
        for each in _tensors_in(item):
            _ = each.layout  # what the body reads from outside is computed before the recurrence
        builder.clock = clock
        try:
            at = -1 if clock is not None else t
            found.append(block_tasks(builder, item, order, made.layout.slot, at))  # type: ignore[arg-type]
        finally:
            builder.clock = None
    return found


def _tensors_in(term: Operand) -> list[Tensor]:
    """The tensors that a term reads, once for each operation that reads one."""
    return [node.data.tensor for node in operations(term) if isinstance(node.data, Source)]
