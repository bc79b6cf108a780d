"""Inductive predicates: their clauses are monotone, so that the least relation closed under them exists.

A clause may combine inductive predicates with and, or, forall, exists, the branches of if and case, and through
definitions. Everything else (not, the left of implies, iff, unique, conditions, comparisons, domains, arguments) is
refused, also where two negations would cancel: the clause must stay in the shape that Horn clauses have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..language.errors import InternalError
from ..language.syntax import Arm, Binder, Expr, FunctionDeclaration, Range
from .scope import Ledger

Functions = Mapping[str, FunctionDeclaration]

PLACES = {
    "not": "not",
    "implies": "the left side of implies",
    "iff": "iff",
    "unique": "unique",
    "ite": "the condition of an if",
    "case": "the value of a case",
    "compare": "a comparison",
    "call": "an argument of a function",
    "fold": "a fold",
}


def positions(expr: Expr) -> Iterator[tuple[Expr, str]]:
    """The direct sub-expressions, each with "" when it stands positively, else with the name of the place."""
    place = PLACES.get(expr.head, "a term")
    match expr.head, expr.args:
        case "and" | "or", _:
            yield from ((part, "") for part in expr.children())
        case "implies", (Expr() as left, Expr() as right):
            yield left, place
            yield right, ""
        case "forall" | "exists", (*binders, Expr() as body):
            yield from ((b.domain, "a domain") for b in binders if isinstance(b, Binder))
            yield body, ""
        case "ite", (Expr() as condition, Expr() as then, Expr() as other):
            yield condition, place
            yield then, ""
            yield other, ""
        case "case", (Expr() as value, *arms):
            yield value, place
            yield from ((arm.body, "") for arm in arms if isinstance(arm, Arm))
        case "fold", ("any" | "all" as name, *rest):
            for arg in rest[:-3]:
                if isinstance(arg, Range):
                    yield arg.bound, place
            guard, _, term = rest[-3:]
            if isinstance(guard, Expr):
                yield guard, "" if name == "any" else place
            if isinstance(term, Expr):
                yield term, ""
        case _:
            yield from ((child, place) for child in expr.children())


def occurrences(expr: Expr, where: str = "") -> Iterator[tuple[Expr, str]]:
    """The calls in an expression, each with the outermost place that makes it not positive ("" for positive)."""
    if expr.head == "call":
        yield expr, where
    for child, place in positions(expr):
        yield from occurrences(child, where or place)


def uses(name: str, functions: Functions, memo: dict[str, dict[str, str]]) -> dict[str, str]:
    """The inductive predicates that a definition stands for, each with the place that makes its use not positive."""
    if name in memo:
        return memo[name]
    found: dict[str, str] = {}
    memo[name] = found
    function = functions.get(name)
    if function is None or function.kind != "define" or function.body is None:
        return found
    for call, where in occurrences(function.body):
        callee = str(call.args[0])
        kind = functions[callee].kind if callee in functions else ""
        inner = {callee: ""} if kind == "inductive" else uses(callee, functions, memo)
        for inductive, place in inner.items():
            found[inductive] = found.get(inductive, "") or where or place
    return found


def check_positive(functions: Functions, ledger: Ledger) -> None:
    """Reports each use of an inductive predicate in a clause that is not positive, also through definitions."""
    memo: dict[str, dict[str, str]] = {}
    for function in functions.values():
        if function.kind != "inductive":
            continue
        if function.body is None:
            raise InternalError(f"the inductive predicate {function.name} has no clause")
        for call, where in occurrences(function.body):
            callee = str(call.args[0])
            if callee in functions and functions[callee].kind == "inductive":
                if where:
                    ledger.report("inductive/negative", call.span, name=callee, where=where)
                continue
            for inductive, place in uses(callee, functions, memo).items():
                if where or place:
                    ledger.report(
                        "inductive/define", call.span, functions[callee].span,
                        name=callee, inductive=inductive, where=where or place,
                    )  # fmt: skip
