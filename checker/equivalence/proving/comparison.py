"""What the parts of a comparison ask of the whole: the same argument, condition, or head with its arguments."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from sonnx.semantics.formulas.terms import Argument, Term

TRUTHS = frozenset(
    {"true", "false", "and", "or", "not", "iff", "=", "<=", "=>", "r<", "r<=", "r=", "forall", "exists"}
    | {"@=", "@<", "@<=", "@.truth", "@.is_nan", "@.is_infinite", "@.casts"}
)
"""The heads of truth values."""


def is_element(term: Term) -> bool:
    """True of a term that stands for an element."""
    if term.op in ("@+", "@-", "@*", "@/"):
        return True
    return term.op.startswith("@.") and term.op not in TRUTHS and term.op not in ("@.int", "@.real", "@.place")


def replaced(term: Term, renamed: Mapping[Term, Term]) -> Term:
    """The term with other symbols."""
    found = replaced_argument(term, renamed)
    return found if isinstance(found, Term) else term


def replaced_argument(term: Argument, renamed: Mapping[Term, Term]) -> Argument:
    """An argument with other symbols."""
    if not isinstance(term, Term):
        return term
    if term in renamed:
        return renamed[term]
    return Term(term.op, tuple(replaced_argument(part, renamed) for part in term.args)) if term.args else term


def parts_of(term: Argument) -> Iterator[Term]:
    """The term and all in it."""
    if isinstance(term, Term):
        yield term
        for part in term.args:
            yield from parts_of(part)


class Comparison(Protocol):
    """A comparison of elements: see `equality`."""

    kinds: Mapping[str, Collection[str]]
    laws: dict[str, None]
    reason: str
    open: set[tuple[Term, Term]]
    """The pairs of elements that are being compared, of which none is asked again meanwhile."""

    def alike(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        """The heads are the same, and the arguments."""

    def same_argument(self, left: Argument, right: Argument, facts: tuple[Term, ...]) -> bool:
        """Arguments of two elements with one head are the same."""

    def same_truth(self, left: Term, right: Term, facts: tuple[Term, ...]) -> bool:
        """Two conditions hold in the same cases."""
