"""What the text leaves open in an element: of which tensors, at which places, under which conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sonnx.semantics.formulas.terms import Argument, Term
from sonnx.semantics.operators.symbolic.elements.terms import FREE, STEP
from sonnx.semantics.operators.symbolic.numbers import opposite
from sonnx.semantics.operators.symbolic.values import conjuncts

from ...smt.smtlib import QUANTIFIERS
from .comparison import parts_of

Occurrence = tuple[tuple[Argument, ...], tuple[Term, ...]]
"""The place of an open element, and the conditions under which a term comes to it."""


def number_of(term: Term) -> Argument:
    """The number of the tensor that an open element is one of."""
    return term.args[0] if term.op == "@.one" else term.args[1]


def place_of(term: Term) -> tuple[Argument, ...]:
    """The index of an open element in its tensor."""
    return term.args[2:] if term.op == "@.free" else term.args[3:]


def open_numbers(term: Argument) -> frozenset[Argument]:
    """The numbers of the tensors of which open elements occur in a term."""
    return frozenset(number_of(part) for part in parts_of(term) if part.op in FREE)


def occurrences(term: Term, number: Argument) -> Iterator[Occurrence]:
    """Where the open elements of a tensor occur in a term: in each alternative, and in each condition."""
    there: dict[int, bool] = {}
    seen: set[Occurrence] = set()

    def has(term: Argument) -> bool:
        if not isinstance(term, Term):
            return False
        if id(term) not in there:
            there[id(term)] = (term.op in FREE and number_of(term) == number) or any(map(has, term.args))
        return there[id(term)]

    def found(term: Argument, known: tuple[Term, ...]) -> Iterator[Occurrence]:
        if not isinstance(term, Term) or not has(term):
            return
        if term.op in FREE and number_of(term) == number:
            occurrence = place_of(term), known
            if occurrence not in seen:
                seen.add(occurrence)
                yield occurrence
        match term:
            case Term("@.ite" | "ite", (Term() as condition, left, right)):
                yield from found(condition, known)
                yield from found(left, (*known, *conjuncts(condition)))
                yield from found(right, (*known, *conjuncts(opposite(condition))))
            case _:
                for part in term.args:
                    yield from found(part, known)

    yield from found(term, ())


def steps_of(term: Argument) -> frozenset[str]:
    """The variables of folds that occur in a term."""
    return frozenset(part.op for part in parts_of(term) if part.op.startswith(STEP))


def renamed(term: Argument, names: Mapping[str, str]) -> Argument:
    """A term with other names for symbols, those that a quantifier binds as well."""
    if not isinstance(term, Term):
        return term
    if term.op in QUANTIFIERS:
        *bound, body = term.args
        return Term(term.op, (*(names.get(str(name), name) for name in bound), renamed(body, names)))
    return Term(names.get(term.op, term.op), tuple(renamed(part, names) for part in term.args))
