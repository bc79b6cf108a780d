"""The ieee interpretation of expressions: one fold over `Expr`, one table by head. The value is static or a term.

`fold_expressions` and `statements` enter folds and the application of operators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import Arm, Binder, Expr, Span

from ...errors import InternalError
from ...model.elements import DTYPES
from .arithmetic import LIMIT
from .conditions import compare, conjunction, disjunction, negation
from .primitives import PRIMITIVES, Unflattened, flat_tensor
from .reads import read
from .terms import (
    INT,
    TERMS,
    Function,
    NeedStatic,
    Node,
    Operand,
    Tensor,
    Value,
    axes_of,
    bounds,
    stuck,
    table,
    tabulated,
)
from .values import Scope, binary, ite, negate, operand, relation, static_int, tensor_of


def evaluate(expr: Expr, scope: Scope) -> Value:
    """What an expression denotes in a scope."""
    return RULES[expr.head](expr, scope)


def exprs(expr: Expr) -> list[Expr]:
    """The sub-expressions that are direct arguments."""
    return [arg for arg in expr.args if isinstance(arg, Expr)]


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
    for position, part in enumerate(exprs(expr)):
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
    a, b = (truth(part, scope) for part in exprs(expr))
    return compare(a, "=", b, scope.known)


def _not(expr: Expr, scope: Scope) -> Value:
    return negation(truth(exprs(expr)[0], scope))


def _compare(expr: Expr, scope: Scope) -> Value:
    values = [evaluate(arg, scope) for arg in expr.args[::2] if isinstance(arg, Expr)]
    relations = [str(name) for name in expr.args[1::2]]
    return conjunction(relation(values[p], name, values[p + 1], scope) for p, name in enumerate(relations))


def _arithmetic(expr: Expr, scope: Scope) -> Value:
    left, right = exprs(expr)
    return binary(expr.head, evaluate(left, scope), evaluate(right, scope), scope, expr.span)


def _concat(expr: Expr, scope: Scope) -> Value:
    left, right = (evaluate(part, scope) for part in exprs(expr))
    if not isinstance(left, tuple) or not isinstance(right, tuple):
        raise InternalError(f"{expr.span}: ++ of what is no list")
    return (*left, *right)


def _ite(expr: Expr, scope: Scope) -> Value:
    condition, then, other = exprs(expr)
    test = truth(condition, scope)
    if not isinstance(test, TERMS):
        return evaluate(then if test else other, scope)
    return ite(test, evaluate(then, scope.assuming(test)), evaluate(other, scope.assuming(test, holds=False)), scope)


def _case(expr: Expr, scope: Scope) -> Value:
    subject = evaluate(exprs(expr)[0], scope)
    for arm in expr.args:
        if isinstance(arm, Arm) and (not arm.labels or subject in arm.labels):
            return evaluate(arm.body, scope)
    rule = scope.builder.rule
    raise stuck(rule, "a case has an arm", expr.span, f"No arm for {subject!r}.")


def _vector(expr: Expr, scope: Scope) -> Value:
    return tuple(evaluate(part, scope) for part in exprs(expr))


def _comprehension(expr: Expr, scope: Scope) -> Value:
    body, name, bound, guard = expr.args
    count = static_int(evaluate(bound, scope))  # type: ignore[arg-type]
    return _collected(body, str(name), tuple(range(count)), guard, scope)  # type: ignore[arg-type]


def _collect(expr: Expr, scope: Scope) -> Value:
    body, binder, guard = expr.args
    if not isinstance(binder, Binder):
        raise InternalError("a comprehension without binder")
    domain = evaluate(binder.domain, scope)
    if not isinstance(domain, tuple):
        raise InternalError(f"{expr.span}: a comprehension over what is no list")
    return _collected(body, binder.name, domain, guard, scope)  # type: ignore[arg-type]


def _collected(body: Expr, name: str, domain: tuple[Value, ...], guard: Expr | None, scope: Scope) -> Value:
    found: list[Value] = []
    for item in domain:
        inner = scope.bind({name: item})
        if guard is not None:
            test = truth(guard, inner)
            if isinstance(test, TERMS):
                raise NeedStatic(axes_of(test))
            if not test:
                continue
        found.append(evaluate(body, inner))
    return tuple(found)


def _index(expr: Expr, scope: Scope) -> Value:
    base, *indices = exprs(expr)
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
    if all(isinstance(x, int) and not isinstance(x, bool) for x in items) and not isinstance(position, Node):
        axes = axes_of(position)
        at = np.clip(tabulated(position, axes), 0, len(items) - 1)
        wide = any(not -LIMIT < x < LIMIT for x in items)  # type: ignore[operator]
        return table(np.asarray(items, dtype=object if wide else np.int64)[at], axes, INT)
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
    arguments = [evaluate(part, scope) for part in exprs(expr)]
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


def _number(expr: Expr, _scope: Scope) -> Value:
    return expr.args[0]  # type: ignore[return-value]


RULES: Final[dict[str, Callable[[Expr, Scope], Value]]] = {
    "var": _var,
    "int": _number,
    "float": lambda expr, _: Fraction(str(expr.args[0])),
    "text": _number,
    "true": lambda _expr, _scope: True,
    "false": lambda _expr, _scope: False,
    **dict.fromkeys(("and", "or", "implies"), _connective),
    "iff": _iff,
    "not": _not,
    "compare": _compare,
    **dict.fromkeys(("add", "sub", "mul", "quotient", "div", "mod"), _arithmetic),
    "neg": lambda expr, scope: negate(evaluate(exprs(expr)[0], scope), scope),
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
