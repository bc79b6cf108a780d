"""Guards: which optional inputs and attributes are present where a condition holds, and where it does not."""

from __future__ import annotations

from ..language.syntax import Expr
from .scope import Scope


def presence(expr: Expr, scope: Scope) -> frozenset[str]:
    """The names that are given when `expr` holds."""
    match expr:
        case Expr(head="given", args=(name,)):
            return frozenset({str(name)})
        case Expr(head="and"):
            return frozenset().union(*(presence(part, scope) for part in expr.children()))
        case Expr(head="not", args=(Expr() as inner,)):
            return absence(inner, scope)
        case Expr(head="var", args=(str() as name,)):
            meaning = scope.meaning(name)
            return frozenset() if meaning is None else presence(meaning, scope)
        case _:
            return frozenset()


def alternatives(expr: Expr) -> frozenset[tuple[str, str]]:
    """The pairs of names of which one is given when `expr` holds."""
    match expr:
        case Expr(
            head="or", args=(Expr(head="given", args=(str() as one,)), Expr(head="given", args=(str() as other,)))
        ):
            return frozenset({(one, other)})
        case Expr(head="and"):
            return frozenset().union(*(alternatives(part) for part in expr.children()))
        case _:
            return frozenset()


def absence(expr: Expr, scope: Scope) -> frozenset[str]:
    """The names that are given when `expr` does not hold."""
    match expr:
        case Expr(head="given", args=(name,)):
            return frozenset(other for pair in scope.alternatives if name in pair for other in pair if other != name)
        case Expr(head="not", args=(Expr() as inner,)):
            return presence(inner, scope)
        case Expr(head="or"):
            return frozenset().union(*(absence(part, scope) for part in expr.children()))
        case Expr(head="var", args=(str() as name,)):
            meaning = scope.meaning(name)
            return frozenset() if meaning is None else absence(meaning, scope)
        case _:
            return frozenset()
