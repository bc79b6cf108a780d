"""Inductive predicates: their clauses are monotone, so that the least relation closed under them exists.

A clause may combine inductive predicates with and, or, forall, exists, the branches of if and case, and through
definitions. Everything else (not, the left of implies, iff, unique, conditions, comparisons, domains, arguments) is
refused, also where two negations would cancel: the clause must stay in the shape that Horn clauses have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..language.syntax import FunctionDeclaration
from .core import Core
from .scope import Ledger

Functions = Mapping[str, FunctionDeclaration]
Bodies = Mapping[str, Core]

PLACES = {
    "not": "not",
    "implies": "the left side of implies",
    "iff": "iff",
    "unique": "unique",
    "ite": "the condition of an if",
    "case": "the value of a case",
    "compare": "a comparison",
    "fold": "a fold",
    **dict.fromkeys(("forall", "exists"), "a domain"),
    **dict.fromkeys(("fact", "inductive", "define", "fun", "record", "field", "local"), "an argument of a function"),
}
"""The words for a place that is not positive."""
POSITIVE = {"and": 0, "or": 0, "forall": 0, "exists": 0, "implies": 1, "ite": 1, "case": 1}
"""The heads with positive parts, and the number of the first one."""


def positions(core: Core) -> Iterator[tuple[Core, str]]:
    """The direct parts, each with "" when it stands positively, else with the name of the place."""
    place = PLACES.get(core.head, "a term")
    yield from ((item.domain, place) for item in core.bound)
    first, last = POSITIVE.get(core.head, len(core.parts)), len(core.parts)
    if core.head == "fold" and core.name in ("any", "all"):
        first, last = 0, 2 if core.name == "any" else 1
    yield from ((part, "" if first <= number < last else place) for number, part in enumerate(core.parts))


def occurrences(core: Core, where: str = "") -> Iterator[tuple[Core, str]]:
    """The calls in a formula, each with the outermost place that makes it not positive ("" for positive)."""
    if core.head in ("define", "inductive"):
        yield core, where
    for part, place in positions(core):
        yield from occurrences(part, where or place)


def uses(name: str, bodies: Bodies, memo: dict[str, dict[str, str]]) -> dict[str, str]:
    """The inductive predicates that a definition stands for, each with the place that makes its use not positive."""
    if name in memo:
        return memo[name]
    places: dict[str, str] = {}
    memo[name] = places
    for call, where in occurrences(bodies[name]):
        inner = {call.name: ""} if call.head == "inductive" else uses(call.name, bodies, memo)
        for inductive, place in inner.items():
            places[inductive] = places.get(inductive, "") or where or place
    return places


def check_positive(functions: Functions, bodies: Bodies, ledger: Ledger) -> None:
    """Reports each use of an inductive predicate in a clause that is not positive, also through definitions.

    bodies: the cores of the functions with a body."""
    memo: dict[str, dict[str, str]] = {}
    for name, body in bodies.items():
        for call, where in occurrences(body) if functions[name].kind == "inductive" else ():
            if call.head == "inductive":
                if where:
                    ledger.report("inductive/negative", call.span, name=call.name, where=where)
                continue
            for inductive, place in uses(call.name, bodies, memo).items():
                if where or place:
                    ledger.report(
                        "inductive/define", call.span, functions[call.name].span,
                        name=call.name, inductive=inductive, where=where or place,
                    )  # fmt: skip
