"""Operands side by side: the sort that they have in common, reporting to a ledger where they do not fit."""

from __future__ import annotations

from ..language.syntax import INT, Expr, Sort
from .scope import Ledger, Scope
from .sorts import CLASH, adapt, agree, arithmetic, is_number, is_vector, join, mixing


def meet(
    left: Expr, left_sort: Sort | None, right: Expr, right_sort: Sort | None, operator: str, ledger: Ledger
) -> Sort | None:
    """The sort of an arithmetic combination."""
    a, b = adapt(left, left_sort, right_sort), adapt(right, right_sort, left_sort)
    for sort, operand in ((a, left), (b, right)):
        if not (is_number(sort) or is_vector(sort)):
            ledger.report("sort/number", operand.span, operator=operator, found=sort)
            return None
    result = arithmetic(a, b)
    if result == CLASH:
        ledger.report("sort/operands", right.span, operator=operator, left=a, right=b, hint=mixing(a, b))
        return None
    return result


def relate(
    left: Expr, a: Sort | None, relation: str, right: Expr, b: Sort | None, scope: Scope, ledger: Ledger
) -> None:
    """Reports operands that the relation does not compare."""
    a, b = adapt(left, a, b), adapt(right, b, a)
    if relation in ("in", "not in"):
        if b is not None and b.name in ("set", "list"):
            componentwise = scope.operator is not None and is_vector(a) and is_vector(b)
            if not (agree(a, b.element) or componentwise):
                ledger.report("sort/membership", left.span, left=a, right=b)
        elif not (scope.operator is not None and b in (INT, None) and a in (INT, None)) and b is not None:
            ledger.report("sort/membership", left.span, left=a, right=b)
    elif relation in ("=", "!="):
        if not agree(a, b) and (scope.operator is None or arithmetic(a, b) == CLASH):
            ledger.report("sort/equality", right.span, relation=relation, left=a, right=b, hint=mixing(a, b))
    elif not (is_number(a) or is_vector(a)) or not (is_number(b) or is_vector(b)) or arithmetic(a, b) == CLASH:
        ledger.report("sort/order", right.span, relation=relation, left=a, right=b, hint=mixing(a, b))


def alike(left: Expr, a: Sort | None, right: Expr, b: Sort | None, operator: str, ledger: Ledger) -> Sort | None:
    """The sort of two arguments that are of one sort."""
    a, b = adapt(left, a, b), adapt(right, b, a)
    common = join(a, b)
    if common == CLASH:
        ledger.report("sort/operands", right.span, operator=operator, left=a, right=b, hint=mixing(a, b))
        return None
    return common


def branches(left: Expr, a: Sort | None, right: Expr, b: Sort | None, ledger: Ledger) -> Sort | None:
    """The sort of a choice between two expressions."""
    a, b = adapt(left, a, b), adapt(right, b, a)
    common = join(a, b)
    if common == CLASH:
        ledger.report("sort/branches", right.span, left=a, right=b, hint=mixing(a, b))
        return None
    return common
