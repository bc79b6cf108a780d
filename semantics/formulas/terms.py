"""Solver-neutral terms: what the smt interpretation yields and `checker/smt/solver` prints as SMT-LIB.

A term is an operator and its arguments. Operators: `true`, `false`, `not and or => =`, `< <= + - *`, `div mod` (floor;
SMT-LIB's are Euclidean, the printer translates), `ite`. An argument is a term, the name of a declared symbol, or a
numeral. `operators.symbolic.numbers` says what the operators' interpretation adds: rationals, quantifiers, functions of
indices. Terms are plain tuples and symbols plain strings: a graph with 100,000 nodes makes millions of them.
"""

from __future__ import annotations

from typing import NamedTuple


class Term(NamedTuple):
    """An operator applied to arguments: terms, symbols by their names, numerals."""

    op: str
    args: tuple[Term | str | int, ...] = ()


Argument = Term | str | int

TRUE, FALSE = Term("true"), Term("false")


def weight(term: Term) -> int:
    """The number of operators and declared constants in a term."""
    return 1 + sum(weight(part) for part in term.args if isinstance(part, Term))


def conjunction(terms: list[Argument]) -> Argument:
    """The conjunction, `true` left out, simplified for no and one conjunct and for `false`."""
    if TRUE in terms:
        terms = [term for term in terms if term is not TRUE]
    if FALSE in terms:
        return FALSE
    return TRUE if not terms else terms[0] if len(terms) == 1 else Term("and", tuple(terms))


def disjunction(terms: list[Argument]) -> Argument:
    """The disjunction, `false` left out, simplified for no and one disjunct and for `true`."""
    if FALSE in terms:
        terms = [term for term in terms if term is not FALSE]
    if TRUE in terms:
        return TRUE
    return FALSE if not terms else terms[0] if len(terms) == 1 else Term("or", tuple(terms))


def negation(term: Argument) -> Argument:
    """The negation; a double one cancels."""
    if term is TRUE:
        return FALSE
    if term is FALSE:
        return TRUE
    return term.args[0] if isinstance(term, Term) and term.op == "not" else Term("not", (term,))


def implication(condition: Argument, conclusion: Argument) -> Argument:
    """The implication, simplified where a side is `true` or `false`."""
    if condition is FALSE or conclusion is TRUE:
        return TRUE
    if condition is TRUE:
        return conclusion
    return negation(condition) if conclusion is FALSE else Term("=>", (condition, conclusion))


def equivalence(left: Argument, right: Argument) -> Argument:
    """`left` if and only if `right`, simplified where a side is `true` or `false`."""
    for one, other in ((left, right), (right, left)):
        if one is TRUE:
            return other
        if one is FALSE:
            return negation(other)
    return Term("=", (left, right))
