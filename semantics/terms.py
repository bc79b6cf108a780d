"""Solver-neutral terms: what the smt interpretation yields and `checker/solver` prints as SMT-LIB.

A term is an operator and its arguments. Operators: `const` (a declared symbol of sort Bool or Int, by name), `true`,
`false`, `int` (a numeral), `not and or => =`, `< <= + - *`, `div mod` (floor; SMT-LIB's are Euclidean, the printer
translates), `ite`, `distinct`. Terms are plain tuples: a graph with 100,000 nodes makes millions of them.
"""

from __future__ import annotations

from typing import NamedTuple


class Term(NamedTuple):
    """An operator applied to arguments; a symbol's name or an int stands for itself as the only argument of a leaf."""

    op: str
    args: tuple[Term | str | int, ...] = ()


TRUE, FALSE = Term("true"), Term("false")


def symbol(name: str) -> Term:
    """A declared constant."""
    return Term("const", (name,))


def conjunction(terms: list[Term]) -> Term:
    """The conjunction, simplified for no and one conjunct."""
    return TRUE if not terms else terms[0] if len(terms) == 1 else Term("and", tuple(terms))


def disjunction(terms: list[Term]) -> Term:
    """The disjunction, simplified for no and one disjunct."""
    return FALSE if not terms else terms[0] if len(terms) == 1 else Term("or", tuple(terms))


def negation(term: Term) -> Term:
    """The negation."""
    return Term("not", (term,))
