"""Folds and ranges in expressions: index variables, folds over few or static terms, folds as terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import product
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import Expr, Range, Span

from ...errors import InternalError
from .arithmetic import LIMIT, add, numerators
from .conditions import conjunction, disjunction, negation
from .expressions import RULES, evaluate, truth
from .fold_space import Fold, no_term
from .terms import (
    BOOL,
    ELEMENT,
    INT,
    TERMS,
    Affine,
    Axis,
    Known,
    NeedStatic,
    Node,
    Operand,
    Tensor,
    Value,
    axes_of,
    bounds,
    kind_of,
    stuck,
    table,
    tabulated,
)
from .values import Scope, binary, element, is_element, ite, literal, operand, relation, static_int

UNROLLED: Final = 1 << 14
"""How many indices of a fold are taken one by one when the body needs them static."""


def bind_ranges(ranges: list[Range], scope: Scope) -> tuple[dict[str, Value], list[tuple[int, tuple[Axis, ...]]], bool]:
    """The index variables of ranges, the dimensions they make, and whether there is an index at all.

    An axis of size 1 is no axis: its index is 0.
    """
    names: dict[str, Value] = {}
    dimensions: list[tuple[int, tuple[Axis, ...]]] = []
    for item in ranges:
        bound = evaluate(item.bound, scope)
        sizes = bound if isinstance(bound, tuple) else (bound,)
        made = [_axis(static_int(size), item.span, scope) for size in sizes]
        forms = tuple(form for form, _ in made)
        axes = [axis for _, axis in made]
        if item.dots:
            names[item.names[0]] = forms
        else:
            names.update(zip(item.names, forms, strict=True))
        if len(item.names) > 1 and not item.dots:
            kept = tuple(axis for axis in axes if axis is not None)
            dimensions.append((math.prod(static_int(s) for s in sizes), kept))
        else:
            dimensions += [(static_int(s), (a,) if a is not None else ()) for s, a in zip(sizes, axes, strict=True)]
    return names, dimensions, all(size for size, _ in dimensions)


def _axis(size: int, span: Span, scope: Scope) -> tuple[Operand, Axis | None]:
    if size < 0:
        raise stuck(scope.builder.rule, "sizes are not negative", span, f"An index below {size}.")
    if size <= 1:
        return 0, None
    axis = Axis(size)
    return Affine(0, ((axis, 1),)), axis


EMPTY: Final[Mapping[str, Value]] = {"sum": 0, "prod": 1, "any": False, "all": True, "count": 0}


def _fold(expr: Expr, scope: Scope) -> Value:
    name = str(expr.args[0])
    guard, start, body = expr.args[-3:]
    ranges = [arg for arg in expr.args if isinstance(arg, Range)]
    if name in SPECIAL:
        return SPECIAL[name](expr, scope)
    first = evaluate(start, scope) if isinstance(start, Expr) else None
    names, dimensions, some = bind_ranges(ranges, scope)
    if not some:
        return _empty(name, first, expr, scope)
    axes = tuple(axis for _, group in dimensions for axis in group)
    try:
        inner = scope.bind(names)
        test: Operand = truth(guard, inner) if isinstance(guard, Expr) else True
        if not isinstance(test, TERMS) and not test:
            return _empty(name, first, expr, scope)
        value = evaluate(body, inner.assuming(test))  # type: ignore[arg-type]
        if isinstance(value, (tuple, Tensor)):
            raise NeedStatic(axes)
    except NeedStatic as need:
        if not set(need.axes).intersection(axes):
            raise
        return _unrolled(expr, name, first, names, axes, scope)
    return _folded(name, axes, operand(value), test, first, expr.span, scope)


def _empty(name: str, first: Value, expr: Expr, scope: Scope) -> Value:
    if first is not None:
        return first
    if name in EMPTY:
        return EMPTY[name]
    fold = Fold(name, (), 0, True, None, bool(scope.known.masks), expr.span, scope.builder.rule)
    if fold.masked:
        return 0
    raise no_term(fold)


def _folded(
    name: str, axes: tuple[Axis, ...], value: Operand, test: Operand, first: Value, span: Span, scope: Scope
) -> Value:
    start = None if first is None else operand(first)
    if start is not None and is_element(value):
        start = literal(start, value.type, scope)  # type: ignore[union-attr, arg-type]
    elif is_element(start):
        value = literal(value, start.type, scope)  # type: ignore[union-attr, arg-type]
    if not axes:
        return _single(name, value, test, start, scope)
    plain = _static_fold(name, axes, value, test, start, scope)
    if plain is not None:
        return plain
    kind = {"any": BOOL, "all": BOOL, "count": INT, "argmax": INT, "argmin": INT}.get(name, kind_of(value))
    steps = math.prod(axis.size for axis in axes)
    low, high = _fold_bounds(name, value, start, steps, scope.known)
    fold = Fold(name, axes, value, test, start, bool(scope.known.masks), span, scope.builder.rule)
    outer = tuple(axis for axis in axes_of(value, test, start) if axis not in axes)
    dtype = value.type if isinstance(value, Node) and kind == ELEMENT else None
    free = any(isinstance(x, Node) and x.free for x in (value, test, start))
    args = (value, test) if start is None else (value, test, start)
    return Node("fold", args, outer, kind, dtype, low, high, free, fold)


def _single(name: str, value: Operand, test: Operand, start: Operand | None, scope: Scope) -> Value:
    """A fold over one index."""
    neutral = EMPTY.get(name)
    match name:
        case "any":
            return conjunction((test, value))
        case "all":
            return disjunction((negation(test), value))
        case "count":
            return ite(conjunction((test, value)), 1, 0, scope)
        case "argmax" | "argmin":
            return 0
        case "last":
            return value if start is None else ite(test, value, start, scope)
        case _:
            ops = {"sum": "add", "prod": "mul"}
            both = value if start is None else binary(ops.get(name, name), start, value, scope)
            if test is True:
                return both
            return ite(test, both, start if start is not None else (value if neutral is None else neutral), scope)


def _fold_bounds(
    name: str, value: Operand, start: Operand | None, steps: int, known: Known
) -> tuple[int | None, int | None]:
    if name == "count":
        return 0, steps
    if name in ("argmax", "argmin"):
        return 0, steps - 1
    low, high = bounds(value, known) if kind_of(value) == INT else (None, None)
    if low is None or high is None:
        return None, None
    first = bounds(start, known) if start is not None else (0, 0)
    if first[0] is None or first[1] is None:
        return None, None
    if name == "sum":
        return first[0] + min(0, low * steps), first[1] + max(0, high * steps)
    if name in ("max", "min", "last"):
        return (low, high) if start is None else (min(low, first[0]), max(high, first[1]))
    return None, None


def _static_fold(
    name: str, axes: tuple[Axis, ...], value: Operand, test: Operand, start: Operand | None, scope: Scope
) -> Value:
    """The fold of what depends on no data, where it is small; None otherwise."""
    if isinstance(value, Node) or isinstance(test, Node) or isinstance(start, TERMS):
        return None
    if isinstance(value, float) or (name == "count" and value is False):
        return 0 if name == "count" else None
    outer = tuple(axis for axis in axes_of(value, test) if axis not in axes)
    every = (*axes, *outer)
    if math.prod(axis.size for axis in every) > 1 << 18 or name in ("argmax", "argmin", "last"):
        return None
    shape = tuple(axis.size for axis in every)
    (numbers, den), mask = numerators(value, every), tabulated(test, every)
    numbers, mask = np.broadcast_to(numbers, shape), np.broadcast_to(mask, shape)
    over = tuple(range(len(axes)))
    kind = kind_of(value)
    begin = start
    match name:
        case "any" | "all":
            joined = (numbers & mask).any(axis=over) if name == "any" else (numbers | ~mask).all(axis=over)
            return table(np.asarray(joined), outer, BOOL)
        case "count":
            return table(np.asarray((numbers & mask).sum(axis=over)), outer, INT)
        case "sum":
            summed = np.where(mask, numbers, 0).astype(object).sum(axis=over)
            values = np.asarray(summed)
            if kind == INT and values.size and max(abs(int(v)) for v in values.reshape(-1)) < LIMIT:
                values = values.astype(np.int64)
            found = table(values, outer, kind if kind != BOOL else INT, den)
            return found if begin is None else add(begin, found, scope.known)
        case _:
            return None


def _unrolled(
    expr: Expr, name: str, first: Value, names: dict[str, Value], axes: tuple[Axis, ...], scope: Scope
) -> Value:
    """A fold whose body needs its indices one by one."""
    guard, _, body = expr.args[-3:]
    if math.prod(axis.size for axis in axes) > UNROLLED:
        raise InternalError(f"{expr.span}: a fold over {len(axes)} axes whose body differs from index to index")
    found: list[tuple[Operand, Value, int]] = []
    for flat, index in enumerate(product(*(range(axis.size) for axis in axes))):
        fixed = dict(zip(axes, index, strict=True))
        inner = scope.bind({key: _fixed(value, fixed) for key, value in names.items()})
        test: Operand = truth(guard, inner) if isinstance(guard, Expr) else True
        if not isinstance(test, TERMS) and not test:
            continue
        found.append((test, evaluate(body, inner.assuming(test)), flat))  # type: ignore[arg-type]
    return _chained(name, first, found, expr, scope)


def _fixed(value: Value, fixed: Mapping[Axis, int]) -> Value:
    if isinstance(value, tuple):
        return tuple(_fixed(item, fixed) for item in value)
    if isinstance(value, Affine):
        return value.const + sum(factor * fixed[axis] for axis, factor in value.terms)
    return value


def _chained(name: str, first: Value, found: list[tuple[Operand, Value, int]], expr: Expr, scope: Scope) -> Value:
    if not found:
        return _empty(name, first, expr, scope)
    match name:
        case "any":
            return disjunction(conjunction((test, operand(value))) for test, value, _ in found)
        case "all":
            return conjunction(disjunction((negation(test), operand(value))) for test, value, _ in found)
        case "count":
            total: Value = 0
            for test, value, _ in found:
                counted = ite(conjunction((test, operand(value))), 1, 0, scope)
                total = binary("add", total, counted, scope)
            return total
        case "last":
            result = first
            for test, value, _ in found:
                result = value if result is None else ite(test, value, result, scope)
            return result
        case "argmax" | "argmin":
            return _best(name, found, scope)
        case _:
            return _sum(name, first, found, scope)


def _best(name: str, found: list[tuple[Operand, Value, int]], scope: Scope) -> Value:
    (_, best, position), *rest = found
    if any(isinstance(t, TERMS) for t, *_ in found):
        raise InternalError(f"{name} over indices that differ in kind, with a guard")
    place: Value = position
    for _, value, flat in rest:
        better = relation(value, ">" if name == "argmax" else "<", best, scope)
        if is_element(value):
            nan = element("is_nan", (operand(value),), scope, BOOL)
            good = negation(element("is_nan", (operand(best),), scope, BOOL))
            better = conjunction((disjunction((better, nan)), good))
        best, place = ite(better, value, best, scope), ite(better, flat, place, scope)
    return place


def _sum(name: str, first: Value, found: list[tuple[Operand, Value, int]], scope: Scope) -> Value:
    op = {"sum": "add", "prod": "mul"}.get(name, name)
    result = first
    seen: Operand = first is not None
    for test, value, _ in found:
        if result is None:
            result, seen = value, test
            continue
        joined = binary(op, result, value, scope)
        if test is not True:
            joined = ite(test, joined, result, scope)
        if seen is not True:
            joined = ite(seen, joined, value, scope)
            seen = disjunction((seen, test))
        result = joined
    if seen is not True and name in EMPTY:
        result = ite(seen, result, EMPTY[name], scope)
    return result


SPECIAL: Final[dict[str, Callable[[Expr, Scope], Value]]] = {}
"""Folds that make a tensor."""
RULES["fold"] = _fold
