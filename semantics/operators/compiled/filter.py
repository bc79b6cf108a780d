"""The fold `filter`: the index vectors where a condition holds, a tensor whose shape depends on data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sonnx.spec.language.syntax import Expr, Range

from .conditions import conjunction
from .equations import tensor
from .expressions import evaluate
from .fold_expressions import SPECIAL, bind_ranges
from .plan import Changed, Frame, strided
from .terms import BOOL, INT, Layout, Tensor, Value
from .values import Scope, operand


def filtered(expr: Expr, scope: Scope) -> Value:
    """The index vectors where a condition holds."""

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
        condition = conjunction((operand(evaluate(guard, inner)), condition))
    mask = tensor(builder, condition, dimensions, BOOL, None)
    layout = mask.layout
    slot = builder.slot()

    def find(frame: Frame) -> None:
        found = strided(frame[layout.slot], shape, layout.offset, layout.strides)
        frame[slot] = (
            np.ascontiguousarray(np.argwhere(found).reshape(-1, rank)) if rank else np.zeros((int(found), 0), np.int64)
        )

    builder.emit(find)
    count = len(builder.frame[slot])
    builder.emit(_same_count(slot, count))
    high = max((size for size in shape), default=1) - 1
    return Tensor(INT, None, (count, rank), lambda: Layout(slot, count * rank, 0, (rank, 1)), 0, max(high, 0))


def _same_count(slot: int, count: int) -> Callable[[Frame], None]:

    def check(frame: Frame) -> None:
        if len(frame[slot]) != count:
            raise Changed

    return check


SPECIAL["filter"] = filtered
