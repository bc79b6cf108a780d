"""The smt interpretation of operators, expressions: one fold over `Expr` with one table.

Conditions and indices may be terms; a branch is evaluated under its condition, and what must hold for its value to be
defined is demanded under it. Arithmetic, comparison and branches go through lists component by component.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import cast

from sonnx.spec.language.syntax import Arm, Binder, Expr, Keyword

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Term
from . import calls, folds
from . import values as lists
from .numbers import Int, both, either, equal, less, opposite, within
from .values import (
    LENGTHS,
    Array,
    Dead,
    ElementType,
    Function,
    Listed,
    Open,
    Scope,
    Value,
    arithmetic,
    branch,
    compound,
    decide,
    demand,
    entries,
    merge,
    negative,
    relate,
    same_truth,
    settle,
    settle_text,
    steady,
    whole,
)


def evaluate(expr: Expr, scope: Scope) -> Value:
    """The value of an expression. Raises Split, Dead, Undefined."""
    return RULES[expr.head](expr, scope)


def truth(expr: Expr, scope: Scope) -> Term:
    """The value of a Bool."""
    found = evaluate(expr, scope)
    if not isinstance(found, Term):
        raise InternalError(f"{expr.span}: {found!r} is no truth value")
    return found


def _var(expr: Expr, scope: Scope) -> Value:
    name = str(expr.args[0])
    found = scope.env.get(name)
    if found is None:
        if f"given {name}" in scope.env:
            raise Dead  # absent: under the condition that it is given nothing is evaluated
        return ElementType(name)
    return found


def _float(expr: Expr, _scope: Scope) -> Value:
    return Fraction(str(expr.args[0]))


def _given(expr: Expr, scope: Scope) -> Value:
    return scope.env[f"given {expr.args[0]}"]


# ---- Logic ------------------------------------------------------------------------------------


def _and(expr: Expr, scope: Scope) -> Value:
    found: list[Term] = []
    for part in expr.parts():
        try:
            found.append(truth(part, scope.under(*found)))
        except Dead:
            found.append(FALSE)
        if found[-1] == FALSE:
            return FALSE
    return both(*found)


def _or(expr: Expr, scope: Scope) -> Value:
    found: list[Term] = []
    for part in expr.parts():
        try:
            found.append(truth(part, scope.under(*map(opposite, found))))
        except Dead:
            found.append(TRUE)
        if found[-1] == TRUE:
            return TRUE
    return either(*found)


def _implies(expr: Expr, scope: Scope) -> Value:
    left, right = expr.parts()
    condition = truth(left, scope)
    if condition == FALSE:
        return TRUE
    try:
        return either(opposite(condition), truth(right, scope.under(condition)))
    except Dead:
        return TRUE


def _iff(expr: Expr, scope: Scope) -> Value:
    left, right = (truth(part, scope) for part in expr.parts())
    return same_truth(left, right)


def _not(expr: Expr, scope: Scope) -> Value:
    return opposite(truth(expr.part(0), scope))


# ---- Relations --------------------------------------------------------------------------------


def _compare(expr: Expr, scope: Scope) -> Value:
    values = [evaluate(part, scope) for part in expr.parts()]
    found = []
    for position, relation in enumerate(expr.args[1::2]):
        found.append(relate(str(relation), values[position], values[position + 1], scope))
    return both(*found)


# ---- Branches ---------------------------------------------------------------------------------


def _ite(expr: Expr, scope: Scope) -> Value:
    condition, then, other = expr.parts()
    asked = truth(condition, scope)
    return branch(asked, lambda inner: evaluate(then, inner), lambda inner: evaluate(other, inner), scope)


def _case(expr: Expr, scope: Scope) -> Value:
    text = settle_text(scope, evaluate(expr.part(0), scope))
    for arm in expr.args:
        if isinstance(arm, Arm) and (text in arm.labels or not arm.labels):
            return evaluate(arm.body, scope)
    demand(scope, "case", expr.span, FALSE, text)
    raise Dead


# ---- Arithmetic -------------------------------------------------------------------------------


def _arithmetic(expr: Expr, scope: Scope) -> Value:
    left, right = (evaluate(part, scope) for part in expr.parts())
    return arithmetic(expr.head, left, right, expr.span, scope)


def _neg(expr: Expr, scope: Scope) -> Value:
    return negative(evaluate(expr.part(0), scope), scope)


def _concat(expr: Expr, scope: Scope) -> Value:
    left, right = (entries(evaluate(part, scope), scope) for part in expr.parts())
    return left + right


# ---- Lists and tensors ------------------------------------------------------------------------


def _vector(expr: Expr, scope: Scope) -> Value:
    return tuple(evaluate(part, scope) for part in expr.parts())


def _comprehension(expr: Expr, scope: Scope) -> Value:
    size = settle(scope, whole(evaluate(expr.part(2), scope)), LENGTHS)
    return _collected(expr, str(expr.args[1]), tuple(range(size)), scope)


def _collect(expr: Expr, scope: Scope) -> Value:
    binder = expr.args[1]
    if not isinstance(binder, Binder):
        raise InternalError(f"{expr.span}: no binder")
    return _collected(expr, binder.name, entries(evaluate(binder.domain, scope), scope), scope)


def _collected(expr: Expr, name: str, items: tuple[Value, ...], scope: Scope) -> Value:
    body, guard = expr.part(0), expr.args[-1]
    found = []
    for item in items:
        inner = scope.bind({name: item})
        if isinstance(guard, Expr):
            condition = truth(guard, inner)
            if not decide(inner, condition):
                continue
            inner = inner.under(condition)
        found.append(evaluate(body, inner))
    return tuple(found)


def _index(expr: Expr, scope: Scope) -> Value:
    base, *parts = expr.parts()
    source = evaluate(base, scope)
    indices = [evaluate(part, scope) for part in parts]
    if isinstance(source, Array):
        flat: list[Int] = []
        for index in indices:
            flat += map(whole, entries(index, scope)) if compound(index, index) else [whole(index)]
        return read(expr, source, tuple(flat), scope)
    at = whole(indices[0])
    if isinstance(source, Listed):
        return lists.entry(source, at, expr.span, scope)
    if isinstance(source, Open) and isinstance(at, int) and at in LENGTHS:
        demand(scope, "position", expr.span, less(at, source.length))
        return source.entry(at)
    return pick(expr, entries(source, scope), at, scope)


def read(expr: Expr, source: Array, index: tuple[Int, ...], scope: Scope) -> Value:
    """An element of a tensor; the index must lie in bounds."""
    if len(index) != len(source.shape):
        demand(scope, "length", expr.span, FALSE, source.name)
        raise Dead
    demand(
        scope, "index", expr.span, both(*(within(i, n) for i, n in zip(index, source.shape, strict=True))), source.name
    )
    return source.read(index, scope)


def pick(expr: Expr, items: tuple[Value, ...], index: Int, scope: Scope) -> Value:
    """An entry of a list; the position must be below its length."""
    demand(scope, "position", expr.span, within(index, len(items)))
    if isinstance(index, int):
        return items[index]
    if steady(scope, index):
        return items[settle(scope, index, range(len(items)))]
    chosen: Value | None = items[-1] if items else None
    for position in reversed(range(len(items) - 1)):
        chosen = None if chosen is None else merge(equal(index, position), items[position], chosen, scope)
    return items[settle(scope, index, range(len(items)))] if chosen is None else chosen


def _fold(expr: Expr, scope: Scope) -> Value:
    return folds.fold(expr, scope, evaluate)


def _call(expr: Expr, scope: Scope) -> Value:
    name = str(expr.args[0])
    arguments = [evaluate(part, scope) for part in expr.parts()]
    local = scope.env.get(name)
    if isinstance(local, Function):
        return invoke(local, arguments, scope)
    declared = scope.run.functions.get(name)
    if declared is not None and declared.body is not None:
        return invoke(Function(name, declared.parameters, declared.body, {}), arguments, scope)
    return calls.call(name, arguments, expr.span, scope)


def invoke(function: Function, arguments: list[Value], scope: Scope) -> Value:
    """The body of a function, evaluated where it was defined."""
    names = {parameter.name: value for parameter, value in zip(function.parameters, arguments, strict=True)}
    return evaluate(function.body, replace(scope, env={**function.env, **names}))


def _apply(expr: Expr, scope: Scope) -> Value:
    return outputs_of(expr, scope)[0]


def outputs_of(expr: Expr, scope: Scope) -> tuple[Value, ...]:
    """The outputs of an operator that the text applies."""
    name, version, *rest = expr.args
    inputs: list[Value | None] = []
    for part in rest:
        value = evaluate(part, scope) if isinstance(part, Expr) else None
        if type(value) is tuple:
            inputs += value
        elif part is None or value is not None:
            inputs.append(value)
    attributes = {part.name: evaluate(part.value, scope) for part in rest if isinstance(part, Keyword)}
    return scope.run.apply(str(name), cast("int", version), inputs, attributes, expr.span, scope)


def _outside(expr: Expr, _scope: Scope) -> Value:
    raise InternalError(f"{expr.span}: {expr.head} does not occur in operators")


RULES: Mapping[str, Callable[[Expr, Scope], Value]] = {
    "var": _var,
    "int": lambda expr, _scope: cast("int", expr.args[0]),
    "float": _float,
    "text": lambda expr, _scope: str(expr.args[0]),
    "true": lambda _expr, _scope: TRUE,
    "false": lambda _expr, _scope: FALSE,
    "and": _and,
    "or": _or,
    "not": _not,
    "implies": _implies,
    "iff": _iff,
    "compare": _compare,
    **dict.fromkeys(("add", "sub", "mul", "quotient", "div", "mod"), _arithmetic),
    "neg": _neg,
    "concat": _concat,
    "ite": _ite,
    "case": _case,
    "fold": _fold,
    "index": _index,
    "call": _call,
    "given": _given,
    "apply": _apply,
    "vector": _vector,
    "comprehension": _comprehension,
    "collect": _collect,
    **dict.fromkeys(("forall", "exists", "unique", "set_comprehension", "map_comprehension"), _outside),
}
"""For each head the rule that gives the value."""
