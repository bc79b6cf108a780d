"""The sorts of literals, of logic, of choices and of arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ...language.syntax import BOOL, INT, TEXT, Arm, Binder, Expr, Sort
from ..operands import branches, meet, relate
from ..presence import absence, presence
from ..scope import Ledger, Scope
from ..sorts import ELEMENT, RATIONAL, agree, is_map, is_number, is_vector, join
from .expressions import Rule, bind_all, check, exprs, infer

SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "quotient": "/", "div": "div", "mod": "mod", "neg": "-"}


# ---- logic ------------------------------------------------------------------------------------


def _logic(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    """and, or, implies, iff, not: a later operand is read only where the earlier ones leave the matter open."""
    for part in exprs(expr):
        check(part, BOOL, scope, ledger)
        if expr.head in ("and", "implies"):
            scope = scope.given(presence(part, scope))
        elif expr.head == "or":
            scope = scope.given(absence(part, scope))
    return BOOL


def _quantifier(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    binders, body = [a for a in expr.args if isinstance(a, Binder)], exprs(expr)[-1]
    inner, made = bind_all(binders, scope, ledger)
    check(body, BOOL, inner, ledger)
    if expr.head == "forall" or body.head != "true":
        ledger.check_used(made)
    else:
        ledger.check_used(made[:-1])
    return BOOL


def _compare(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    operands = expr.args[::2]
    sorts = [infer(cast("Expr", operand), scope, ledger) for operand in operands]
    for position, relation in enumerate(expr.args[1::2]):
        left, right = cast("Expr", operands[position]), cast("Expr", operands[position + 1])
        relate(left, sorts[position], str(relation), right, sorts[position + 1], scope, ledger)
    return BOOL


def _ite(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    condition, then, other = exprs(expr)
    check(condition, BOOL, scope, ledger)
    a = infer(then, scope.given(presence(condition, scope)), ledger)
    b = infer(other, scope.given(absence(condition, scope)), ledger)
    return branches(then, a, other, b, ledger)


def _case(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    arms = [a for a in expr.args if isinstance(a, Arm)]
    check(exprs(expr)[0], TEXT, scope, ledger)
    seen: set[str] = set()
    common: Sort | None = None
    for position, arm in enumerate(arms):
        if not arm.labels and position < len(arms) - 1:
            ledger.report("case/else", arm.span)
        for label in arm.labels:
            if label in seen:
                ledger.report("case/label", arm.span, label=label)
            seen.add(label)
        found = infer(arm.body, scope, ledger)
        common = found if position == 0 else branches(arms[0].body, common, arm.body, found, ledger)
    return common


# ---- arithmetic -------------------------------------------------------------------------------


def _arithmetic(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    left, right = exprs(expr)
    a, b = infer(left, scope, ledger), infer(right, scope, ledger)
    result = meet(left, a, right, b, SYMBOLS[expr.head], ledger)
    if expr.head in ("div", "mod") and result in (ELEMENT, RATIONAL):
        ledger.report("sort/expected", expr.span, expected=INT, found=result, hint="")
    return RATIONAL if expr.head == "quotient" and result == INT else result


def _neg(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    (inner,) = exprs(expr)
    found = infer(inner, scope, ledger)
    if not (is_number(found) or is_vector(found)):
        ledger.report("sort/number", inner.span, operator="-", found=found)
        return None
    return found


def _concat(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    """`++`: lists one after the other, or a map overridden by a map; a declared sort may be one of maps."""
    left, right = exprs(expr)
    a, b = infer(left, scope, ledger), infer(right, scope, ledger)
    if a is None or b is None:
        return a
    if a.name == "list" and b.name == "list" and agree(a, b):
        return join(a, b)
    declared = a.element is None and a.name in ledger.sorts
    if (declared and (is_map(b) or a == b)) or (is_map(a) and is_map(b) and agree(a, b)):
        return a
    ledger.report("sort/operands", right.span, operator="++", left=a, right=b, hint="")
    return None


def _constant(sort: Sort) -> Rule:
    return lambda _expr, _scope, _ledger: sort


RULES: Mapping[str, Rule] = {
    "int": _constant(INT),
    "float": _constant(RATIONAL),
    "text": _constant(TEXT),
    "true": _constant(BOOL),
    "false": _constant(BOOL),
    **dict.fromkeys(("or", "and", "not", "implies", "iff"), _logic),
    "compare": _compare,
    **dict.fromkeys(("forall", "exists", "unique"), _quantifier),
    "ite": _ite,
    "case": _case,
    **dict.fromkeys(("add", "sub", "mul", "quotient", "div", "mod"), _arithmetic),
    "neg": _neg,
    "concat": _concat,
}
