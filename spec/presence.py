"""Guards: which optional inputs and attributes are present where a condition holds, and where it does not."""

from __future__ import annotations

from .syntax import Expr


def presence(expr: Expr) -> frozenset[str]:
    """The names that are given when `expr` holds."""
    match expr:
        case Expr(head="given", args=(name,)):
            return frozenset({str(name)})
        case Expr(head="and"):
            return frozenset().union(*(presence(part) for part in expr.children()))
        case Expr(head="not", args=(Expr() as inner,)):
            return absence(inner)
        case _:
            return frozenset()


def absence(expr: Expr) -> frozenset[str]:
    """The names that are given when `expr` does not hold."""
    match expr:
        case Expr(head="not", args=(Expr() as inner,)):
            return presence(inner)
        case Expr(head="or"):
            return frozenset().union(*(absence(part) for part in expr.children()))
        case _:
            return frozenset()
