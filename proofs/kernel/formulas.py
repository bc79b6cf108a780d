"""First-order formulas over all graphs: terms with quantifiers, the values that are translated to them, their symbols.

A quantifier is `Term("forall", (Term(variable, (sort,)), ..., body))`. A set is the test of its members, a map the test
of its keys with a look-up, so that what is asked of a solver has no sets and no maps in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sonnx.semantics.formulas.terms import FALSE, TRUE, Argument, Term, conjunction
from sonnx.semantics.formulas.terms import implication as implies

__all__ = ["FALSE", "TRUE", "Argument", "Base", "MapOf", "SetOf", "Signature", "Term", "Value", "conjunction",
           "exists", "forall", "implication"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signature:
    """The sorts of a symbol's arguments and of its value; a constant has no arguments."""

    arguments: tuple[str, ...]
    result: str


@dataclass(frozen=True, slots=True)
class Base:
    """A value that is a term of a sort."""

    term: Argument
    sort: str


@dataclass(frozen=True, slots=True)
class SetOf:
    """A set: `has` tests a term of the sort. ordered: it is a list, of which only the members are known."""

    sort: str
    has: Callable[[Argument], Argument]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map: `has` tests a key, `get` gives the value of a key that it has. values: the sort of the values."""

    keys: str
    values: str
    has: Callable[[Argument], Argument]
    get: Callable[[Argument], Argument]


Value = Base | SetOf | MapOf


def forall(variables: Sequence[tuple[str, str]], body: Argument) -> Argument:
    """For all values of the variables (name, sort)."""
    return _quantified("forall", variables, body)


def exists(variables: Sequence[tuple[str, str]], body: Argument) -> Argument:
    """For some values of the variables (name, sort)."""
    return _quantified("exists", variables, body)


def implication(condition: Argument, conclusion: Argument) -> Argument:
    """The implication; the variables of a universal conclusion stand in front, where solvers look for them."""
    if isinstance(conclusion, Term) and conclusion.op == "forall" and condition not in (TRUE, FALSE):
        return Term("forall", (*conclusion.args[:-1], implication(condition, conclusion.args[-1])))
    return implies(condition, conclusion)


def _quantified(quantifier: str, variables: Sequence[tuple[str, str]], body: Argument) -> Argument:
    if not variables or body == (TRUE if quantifier == "forall" else FALSE):
        return body  # of the two others the quantifier says whether there is an element
    if isinstance(body, Term) and body.op == quantifier:
        return Term(quantifier, (*_binders(variables), *body.args))
    return Term(quantifier, (*_binders(variables), body))


def _binders(variables: Iterable[tuple[str, str]]) -> tuple[Term, ...]:
    return tuple(Term(name, (sort,)) for name, sort in variables)
