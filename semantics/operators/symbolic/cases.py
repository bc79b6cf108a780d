"""The smt interpretation of operators, cases: what an open number, condition or text is on a path."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import cast

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Term
from .numbers import Int, Number, Real, opposite
from .values import ELSE, Dead, Open, Scope, Split, TextSymbol, Value, conjuncts


def settle(scope: Scope, term: Int, candidates: Sequence[int]) -> int:
    """The number that the term is on this path. Raises Split where that is open, Dead where there is none."""
    if not isinstance(term, Term):
        return term
    known = _decided(scope, term)
    if isinstance(known, int):
        return known
    fixed = fixed_value(scope, term)
    if fixed is not None:
        return fixed
    raise Split(term, tuple(candidates), scope)


def settle_softly(scope: Scope, term: Int) -> Int:
    """The number that the term is on this path where it can be one of a few numbers only, else the term."""
    if not isinstance(term, Term) or scope.run.whole or not steady(scope, term):
        return term
    if term in scope.run.decided:
        known = scope.run.decided[term]
        return known if type(known) is int else term
    fixed = fixed_value(scope, term)
    if fixed is not None:
        return fixed
    raise Split(term, tuple(LENGTHS), scope, soft=True)


def fixed_value(scope: Scope, term: Term) -> int | None:
    """The number that a fact says the term is; an alternative counts when the others are denied."""
    for fact in (*scope.facts, *scope.run.path):
        for part in conjuncts(fact):
            if part.op == "or" and term in _atoms(part):
                open_parts = [p for p in part.args if isinstance(p, Term) and not scope.knows(opposite(p))]
                part = open_parts[0] if len(open_parts) == 1 else TRUE
            for equation in conjuncts(part):
                if equation.op == "=" and equation.args[0] == term and isinstance(equation.args[1], int):
                    return equation.args[1]
    return None


@lru_cache(maxsize=50_000)
def _atoms(term: Term) -> frozenset[Term]:
    """The terms that are equated anywhere in a disjunction."""
    if term.op == "=":
        return frozenset(part for part in term.args if isinstance(part, Term))
    return frozenset().union(*(_atoms(part) for part in term.args if isinstance(part, Term)))


def steady(scope: Scope, term: Int) -> bool:
    """Whether the term is made of symbols that are there before the statement, so that it can be settled by cases."""
    if not isinstance(term, Term):
        return True
    if not term.args:
        return term.op in scope.run.base and term.op not in scope.bound
    return all(steady(scope, part) for part in term.args if isinstance(part, Term))


def decide(scope: Scope, condition: Term) -> bool:
    """Whether the condition holds on this path. Raises Split where that is open."""
    if condition in (TRUE, FALSE):
        return condition == TRUE
    if scope.knows(condition):
        return True
    if scope.knows(opposite(condition)):
        return False
    return bool(_decided(scope, condition, (True, False)))


def settle_text(scope: Scope, value: Value) -> str:
    """The text; ELSE for one that the definition does not mention."""
    if isinstance(value, TextSymbol):
        return str(_decided(scope, Term(value.name), (*scope.run.texts, ELSE)))
    return str(value)


def _decided(scope: Scope, term: Term, candidates: tuple[int | str | bool, ...] = ()) -> int | str | bool | None:
    if term in scope.run.decided:
        known = scope.run.decided[term]
        if known is None:
            raise Dead
        return known
    if candidates:
        raise Split(term, candidates, scope)
    return None


LENGTHS = range(9)
"""The lengths that a list of open length may have."""


def number(value: Value) -> Number:
    """The value as an exact number."""
    if isinstance(value, int | Fraction | Real | Term):
        return value
    raise InternalError(f"{value!r} is no exact number")


def whole(value: Value) -> Int:
    """The value as an integer."""
    if isinstance(value, Term | int):
        return value
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    raise InternalError(f"{value!r} is no integer")


def entries(value: Value, scope: Scope) -> tuple[Value, ...]:
    """The entries of a list; the length of an open one is settled."""
    if isinstance(value, Open):
        return tuple(value.entry(k) for k in range(settle(scope, value.length, LENGTHS)))
    if is_list(value):
        return cast("tuple[Value, ...]", value)
    raise InternalError(f"{value!r} is no list")


def is_list(value: Value) -> bool:
    """Whether the value is a list of known length."""
    return type(value) is tuple
