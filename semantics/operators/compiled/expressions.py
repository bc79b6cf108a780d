"""The ieee interpretation of expressions: one fold over `Expr`, one table by head. The value is static or a term.

`fold_expressions` and `statements` enter folds and the application of operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import Arm, Binder, Expr, Range, Span

from ...errors import InternalError
from ...model.elements import DTYPES
from .code import Changed, Frame, read, strided
from .equations import Fold, no_term, tensor
from .primitives import PRIMITIVES, Unflattened, flat_tensor
from .terms import (
    BOOL,
    ELEMENT,
    INT,
    LIMIT,
    TERMS,
    Affine,
    Axis,
    Function,
    Known,
    Layout,
    NeedStatic,
    Node,
    Operand,
    Tensor,
    Value,
    add,
    axes_of,
    bounds,
    compare,
    conjunction,
    disjunction,
    element_type,
    is_element,
    kind_of,
    negation,
    numerators,
    stuck,
    table,
    tabulated,
)
from .values import Scope, binary, element, ite, literal, negate, operand, relation, static_int, tensor_of


def evaluate(expr: Expr, scope: Scope) -> Value:
    """What an expression denotes in a scope."""
    return RULES[expr.head](expr, scope)


def truth(expr: Expr, scope: Scope) -> Operand:
    """The value of a condition."""
    return operand(evaluate(expr, scope))


def _var(expr: Expr, scope: Scope) -> Value:
    name = str(expr.args[0])
    if name in scope.names:
        return scope.names[name]
    if name in DTYPES:
        return DTYPES[name]
    raise InternalError(f"{expr.span}: {name} stands for nothing")


def _given(expr: Expr, scope: Scope) -> Value:
    name = str(expr.args[0])
    asked = f"given {name}"  # of a name that an input and an output have, the output
    return scope.names.get(asked if asked in scope.names else name) is not None


def _connective(expr: Expr, scope: Scope) -> Value:
    """and, or, implies: a later part counts where the earlier ones leave the matter open."""
    parts: list[Operand] = []
    settled = expr.head == "or"
    for position, part in enumerate(expr.parts()):
        value = truth(part, scope)
        if expr.head == "implies" and position == 0:
            value = negation(value)
        parts.append(value)
        until = settled or expr.head == "implies"
        if not isinstance(value, TERMS) and bool(value) is until:
            return until
        scope = scope.assuming(value, holds=not until)
    return conjunction(parts) if expr.head == "and" else disjunction(parts)


def _iff(expr: Expr, scope: Scope) -> Value:
    a, b = (truth(part, scope) for part in expr.parts())
    return compare(a, "=", b, scope.known)


def _not(expr: Expr, scope: Scope) -> Value:
    return negation(truth(expr.part(0), scope))


def _compare(expr: Expr, scope: Scope) -> Value:
    values = [evaluate(part, scope) for part in expr.parts()]
    relations = [str(name) for name in expr.args[1::2]]
    return conjunction(relation(values[p], name, values[p + 1], scope) for p, name in enumerate(relations))


def _arithmetic(expr: Expr, scope: Scope) -> Value:
    left, right = expr.parts()
    return binary(expr.head, evaluate(left, scope), evaluate(right, scope), scope, expr.span)


def _concat(expr: Expr, scope: Scope) -> Value:
    left, right = (evaluate(part, scope) for part in expr.parts())
    if not isinstance(left, tuple) or not isinstance(right, tuple):
        raise InternalError(f"{expr.span}: ++ of what is no list")
    return (*left, *right)


def _ite(expr: Expr, scope: Scope) -> Value:
    condition, then, other = expr.parts()
    test = truth(condition, scope)
    if not isinstance(test, TERMS):
        return evaluate(then if test else other, scope)
    return ite(test, evaluate(then, scope.assuming(test)), evaluate(other, scope.assuming(test, holds=False)), scope)


def _case(expr: Expr, scope: Scope) -> Value:
    subject = evaluate(expr.part(0), scope)
    for arm in expr.args:
        if isinstance(arm, Arm) and (not arm.labels or subject in arm.labels):
            return evaluate(arm.body, scope)
    rule = scope.builder.rule
    raise stuck(rule, "a case has an arm", expr.span, f"No arm for {subject!r}.")


def _vector(expr: Expr, scope: Scope) -> Value:
    return tuple(evaluate(part, scope) for part in expr.parts())


def _comprehension(expr: Expr, scope: Scope) -> Value:
    count = static_int(evaluate(expr.part(2), scope))
    return _collected(expr, str(expr.args[1]), tuple(range(count)), scope)


def _collect(expr: Expr, scope: Scope) -> Value:
    binder = expr.args[1]
    if not isinstance(binder, Binder):
        raise InternalError("a comprehension without binder")
    domain = evaluate(binder.domain, scope)
    if not isinstance(domain, tuple):
        raise InternalError(f"{expr.span}: a comprehension over what is no list")
    return _collected(expr, binder.name, domain, scope)


def _collected(expr: Expr, name: str, domain: tuple[Value, ...], scope: Scope) -> Value:
    body, guard = expr.part(0), expr.args[-1]
    found: list[Value] = []
    for item in domain:
        inner = scope.bind({name: item})
        if isinstance(guard, Expr):
            test = truth(guard, inner)
            if isinstance(test, TERMS):
                raise NeedStatic(axes_of(test))
            if not test:
                continue
        found.append(evaluate(body, inner))
    return tuple(found)


def _index(expr: Expr, scope: Scope) -> Value:
    base, *indices = expr.parts()
    value = evaluate(base, scope)
    if isinstance(value, tuple):
        return _entry(value, evaluate(indices[0], scope), expr.span, scope)
    name = str(base.args[0]) if base.head == "var" else "the tensor"
    return read_at(tensor_of(value), [evaluate(i, scope) for i in indices], scope, name, expr.span)


def read_at(tensor: Tensor, indices: list[Value], scope: Scope, name: str, span: Span) -> Node:
    """The element of a tensor at indices and index lists, one after the other."""
    flat: list[Operand] = []
    for index in indices:
        if (
            isinstance(index, Unflattened)
            and index.dims == tensor.shape[len(flat) : len(flat) + len(index)]
            and len(index) > 1
        ):
            tensor = flat_tensor(tensor, len(flat), len(index), scope)
            flat.append(index.form)
        elif isinstance(index, tuple):
            flat += [operand(x) for x in index]
        else:
            flat.append(operand(index))
    if len(flat) != len(tensor.shape):
        raise InternalError(f"{span}: {len(flat)} indices of {name}, which has {len(tensor.shape)} axes")
    return read(tensor, flat, scope.known, name, span, scope.builder.rule)


def _entry(items: tuple[Value, ...], index: Value, span: Span, scope: Scope) -> Value:
    if isinstance(index, int):
        if 0 <= index < len(items):
            return items[index]
        rule = scope.builder.rule
        raise stuck(rule, "list positions are in range", span, f"Position {index} of a list of {len(items)} entries.")
    position = operand(index)
    low, high = bounds(position, scope.known)
    if (
        (low is None or low < 0 or high is None or high >= len(items))
        and not scope.known.masks
        and not isinstance(position, Node)
    ):
        rule = scope.builder.rule
        raise stuck(rule, "list positions are in range", span, f"A position outside a list of {len(items)} entries.")
    if not items:
        return 0
    numbers = [x for x in items if isinstance(x, int) and not isinstance(x, bool)]
    if len(numbers) == len(items) and not isinstance(position, Node):
        axes = axes_of(position)
        at = np.clip(tabulated(position, axes), 0, len(items) - 1)
        wide = any(not -LIMIT < x < LIMIT for x in numbers)
        return table(np.asarray(numbers, dtype=object if wide else np.int64)[at], axes, INT)
    if any(isinstance(x, (Tensor, str, tuple, np.dtype)) for x in items):
        raise NeedStatic(axes_of(position))
    first = 0 if low is None else max(low, 0)
    last = len(items) - 1 if high is None else min(high, len(items) - 1)
    found = items[last]
    for k in range(last - 1, first - 1, -1):
        found = ite(compare(position, "=", k, scope.known), items[k], found, scope)
    return found


def _call(expr: Expr, scope: Scope) -> Value:
    name = str(expr.args[0])
    arguments = [evaluate(part, scope) for part in expr.parts()]
    local = scope.names.get(name)
    if isinstance(local, Function):
        outer = local.scope
        if not isinstance(outer, Scope):
            raise InternalError("a function without scope")
        inner = replace(outer, known=scope.known).bind(dict(zip(local.names, arguments, strict=True)))
        return evaluate(local.body, inner)
    declared = scope.functions.get(name)
    if declared is not None and declared.body is not None:
        names = {p.name: a for p, a in zip(declared.parameters, arguments, strict=True)}
        return evaluate(declared.body, replace(scope, names=names))
    primitive = PRIMITIVES.get(name)
    if primitive is None:
        raise InternalError(f"{expr.span}: the primitive {name} has no meaning here")
    return primitive(arguments, scope, expr.span)


def _constant(expr: Expr, _scope: Scope) -> Value:
    value = expr.args[0]
    if isinstance(value, (int, str)):
        return value
    raise InternalError(f"{expr.span}: {value!r} is no constant")


RULES: Final[dict[str, Callable[[Expr, Scope], Value]]] = {
    "var": _var,
    "int": _constant,
    "float": lambda expr, _: Fraction(str(expr.args[0])),
    "text": _constant,
    "true": lambda _expr, _scope: True,
    "false": lambda _expr, _scope: False,
    **dict.fromkeys(("and", "or", "implies"), _connective),
    "iff": _iff,
    "not": _not,
    "compare": _compare,
    **dict.fromkeys(("add", "sub", "mul", "quotient", "div", "mod"), _arithmetic),
    "neg": lambda expr, scope: negate(evaluate(expr.part(0), scope), scope),
    "concat": _concat,
    "ite": _ite,
    "case": _case,
    "index": _index,
    "call": _call,
    "given": _given,
    "vector": _vector,
    "comprehension": _comprehension,
    "collect": _collect,
}
"""For each head of an expression what it denotes."""


# Folds and ranges in expressions: index variables, folds over few or static terms, folds as terms.


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
    guard, start = expr.args[-3:-1]
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
        value = evaluate(expr.part(-1), inner.assuming(test))
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
        start = literal(start, element_type(value), scope)
    elif is_element(start):
        value = literal(value, element_type(start), scope)
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
    guard = expr.args[-3]
    if math.prod(axis.size for axis in axes) > UNROLLED:
        raise InternalError(f"{expr.span}: a fold over {len(axes)} axes whose body differs from index to index")
    found: list[tuple[Operand, Value, int]] = []
    for flat, index in enumerate(product(*(range(axis.size) for axis in axes))):
        fixed = dict(zip(axes, index, strict=True))
        inner = scope.bind({key: _fixed(value, fixed) for key, value in names.items()})
        test: Operand = truth(guard, inner) if isinstance(guard, Expr) else True
        if not isinstance(test, TERMS) and not test:
            continue
        found.append((test, evaluate(expr.part(-1), inner.assuming(test)), flat))
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


# The fold `filter`: the index vectors where a condition holds, a tensor whose shape depends on data.


def filtered(expr: Expr, scope: Scope) -> Value:
    """The index vectors where a condition holds."""
    guard = expr.args[-3]
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
    condition = operand(evaluate(expr.part(-1), inner))
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
