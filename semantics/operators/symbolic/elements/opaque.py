"""The smt interpretation of operators, elements of which only reads are known: what definedness needs.

Nothing is assumed of the arithmetic of elements, so that comparisons with NaN and roundings go either way. An element
that is read from a tensor and lifted to an integer, rational or Bool is a function of its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ....errors import InternalError
from ....formulas.terms import FALSE, TRUE, Term
from ..numbers import Int, Number, Real, choose, real
from ..rows import inside, linked
from ..values import Element, ElementType, Row, Scope, Value, applied, axiom, fresh


@dataclass(frozen=True, slots=True)
class Read:
    """The element of a tensor at an index."""

    name: str
    index: tuple[Int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ReadAt:
    """The element of a tensor of any number of axes at an index. first: what tells the tensors of a list apart."""

    name: str
    first: tuple[Int, ...]
    index: Row
    shape: Row


@dataclass(frozen=True, slots=True)
class Chosen:
    """One element or the other."""

    condition: Term
    left: Element
    right: Element


@dataclass(frozen=True, slots=True)
class Opaque:
    """The algebra of elements of which only reads and numerals are known."""

    def literal(self, number: int | Fraction, kind: ElementType, scope: Scope) -> Element:
        """A numeral, as it is."""
        return Element(number, kind)

    def read(self, name: str, index: tuple[Int, ...], kind: ElementType, scope: Scope) -> Element:
        """An element by its place."""
        return Element(Read(name, index), kind)

    def arithmetic(self, operator: str, left: Element, right: Element, scope: Scope) -> Element:
        """Any element."""
        return self.abstract(left.type, scope)

    def compare(self, relation: str, left: Element, right: Element, scope: Scope) -> Term:
        """Either way, whatever is compared: one of the two may be a NaN."""
        return fresh(scope, "compared", "Bool")

    def apply(self, name: str, kind: ElementType, arguments: Sequence[Value], scope: Scope) -> Element:
        """Any element."""
        return self.abstract(kind, scope)

    def test(self, name: str, element: Element, scope: Scope) -> Term:
        """Either way."""
        return fresh(scope, name, "Bool")

    def lift(self, sort: str, element: Element, scope: Scope) -> Number:
        """The value of a read as a function of its place, of anything else a new symbol."""
        match element.value:
            case Read(name, index):
                symbol = applied(scope, name, index, sort if sort != "Rational" else "Real")
            case ReadAt(name, first, index, shape):
                code = linked(index, scope)
                axiom(scope, inside(code, shape, scope), assumed=True)
                symbol = applied(scope, name, (*first, code), sort if sort != "Rational" else "Real")
            case int() | Fraction() as number:
                return (FALSE if number == 0 else TRUE) if sort == "Bool" else number
            case Chosen(condition, left, right):
                return self._chosen(sort, condition, self.lift(sort, left, scope), self.lift(sort, right, scope))
            case _:
                symbol = fresh(scope, "lifted", sort if sort != "Rational" else "Real")
        return Real(symbol) if sort == "Rational" else symbol

    def _chosen(self, sort: str, condition: Term, left: Number, right: Number) -> Number:
        if sort == "Rational":
            return Real(Term("rite", (condition, real(left), real(right))))
        if isinstance(left, Fraction | Real) or isinstance(right, Fraction | Real):
            raise InternalError("a rational where an integer stands")
        return choose(condition, left, right)

    def choose(self, condition: Term, left: Element, right: Element, scope: Scope) -> Element:
        """The one or the other."""
        return Element(Chosen(condition, left, right), left.type if left.type.name else right.type)

    def fold(self, name: str, terms: Sequence[tuple[int, Element]], scope: Scope) -> Element | int:
        """Any of the terms."""
        if name in ("max", "min"):
            return self.abstract(terms[0][1].type, scope)
        raise InternalError("positions of elements are symbols here")

    def abstract(self, kind: ElementType, scope: Scope) -> Element:
        """Any element."""
        return Element(None, kind)
