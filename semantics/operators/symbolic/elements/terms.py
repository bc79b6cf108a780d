"""The smt interpretation of operators, elements as terms: what proofs that two texts compute the same element compare.

An element is a term in solver-neutral form, its type the first argument where it has one:

  e.read KIND NAME i j        the element of an input at an index
  e.num KIND VALUE            a numeral, exact, or `-0.0`, `inf`, `-inf`, `nan`
  e.of KIND n                 an exact number, an Int or a Real, as an element
  e.bit KIND c                a truth value as an element
  e+ e- e* e/ KIND a b        arithmetic of the element type
  e.f NAME KIND a ...         a function: exp, negative, minimum, ...
  e.cast KIND FROM a          a conversion; of a float to an integer where `e.casts` says that it has a value
  e.ite c a b                 one or the other
  e.fold NAME KIND (n symbols, n sizes) guard body start    symbols named by depth: equal folds are equal terms
  e.best NAME KIND a ...      the greatest or least of elements in this order
  e.free KIND t i j           any element, as number t of the tensors that are open has it at an index
  e.one t a b i j             one of the two, likewise
  e.unknown KIND k            an element of which nothing is known, not even that it is the same one twice

Bools over elements: e= e< e<= KIND a b, e.truth, e.is_nan, e.is_infinite a, e.casts KIND FROM a. Exact numbers over
elements: e.int, e.real a, e.place NAME (n symbols, n sizes) guard body start. Nothing is computed here that rounding could
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import copysign, isnan

from ....errors import InternalError
from ....formulas.terms import FALSE, TRUE, Argument, Term
from ....model.elements import ELEMENT_TYPES, FLOATS, INTEGERS, limits
from ..numbers import Int, Number, Real, choose, opposite, order, real
from ..values import Bounded, Element, ElementType, Scope, Value, applied, is_truth, same_truth

FREE = ("e.free", "e.one")
"""The heads of elements that the text leaves open."""


@dataclass(slots=True)
class Terms:
    """The algebra. serial: of the elements of which nothing is known."""

    serial: int = 0
    kinds: dict[str, str] = field(default_factory=dict)

    def literal(self, number: int | Fraction, kind: ElementType, scope: Scope) -> Element:
        """The numeral."""
        return Element(numeral(number, kind.name), kind)

    def read(self, name: str, index: tuple[Int, ...], kind: ElementType, scope: Scope) -> Element:
        """The element of an input by its place."""
        return Element(Term("e.read", (kind.name, name, *index)), kind)

    def arithmetic(self, operator: str, left: Element, right: Element, scope: Scope) -> Element:
        """`+ - * /`, not computed."""
        kind = _kind(left, right)
        return Element(Term(f"e{operator}", (kind.name, term_of(left, kind), term_of(right, kind))), kind)

    def compare(self, relation: str, left: Element, right: Element, scope: Scope) -> Term:
        """Relations of elements; of integers that are read or written, those of the numbers."""
        kind = _kind(left, right)
        a, b = term_of(left, kind), term_of(right, kind)
        if kind.name in INTEGERS:
            one, other = self._whole(a, scope), self._whole(b, scope)
            if one is not None and other is not None:
                return order(relation, one, other)
        if relation in (">", ">="):
            return self.compare("<" if relation == ">" else "<=", Element(b, kind), Element(a, kind), scope)
        if relation == "!=":
            return opposite(self.compare("=", left, right, scope))
        if kind.name == "bool" and relation == "=":
            return same_truth(self.truth(a, scope), self.truth(b, scope))
        return Term(f"e{relation}", (kind.name, a, b))

    def _whole(self, term: Term, scope: Scope) -> Int | None:
        """An element of an integer type as a number, where that is plain."""
        match term:
            case Term("e.num", (_, str() as written)) if "/" not in written:
                return int(written)
            case Term("e.read", (_, str() as name, *index)):
                return applied(scope, name, tuple(i for i in index if not isinstance(i, str)), "Int")
            case Term("e.of", (str() as kind, number)) if kind in ("int64", "uint64") and _is_size(number):
                return number if not isinstance(number, str) else None
            case _:
                return None

    def apply(self, name: str, kind: ElementType, arguments: Sequence[Value], scope: Scope) -> Element:
        """A function, not computed."""
        match name:
            case "cast":
                return Element(self._cast(kind, arguments[0], scope), kind)
            case "nan" | "infinity":
                return Element(Term("e.num", (kind.name, "nan" if name == "nan" else "inf")), kind)
            case "arbitrary":
                number, index = scope.run.at
                return Element(Term("e.free", (kind.name, number, *index)), kind)
            case "oneof":
                number, index = scope.run.at
                a, b = (term_of(a, kind) for a in arguments if isinstance(a, Element))
                return Element(a if a == b else Term("e.one", (number, a, b, *index)), kind)
            case "reinterpret":
                return self.abstract(kind, scope)
            case "saturate":
                return self._saturated(kind, arguments[0], scope)
            case "power" if kind.name not in FLOATS:
                made = Term("e.f", (name, kind.name, *(_argument(a, kind) for a in arguments)))
                number, index = scope.run.at
                exponent = Element(_argument(arguments[1], kind), kind)
                known = self.compare("<=", Element(numeral(0, kind.name), kind), exponent, scope)
                return Element(chosen(known, made, Term("e.free", (kind.name, number, *index))), kind)
            case _:
                return Element(Term("e.f", (name, kind.name, *(_argument(a, kind) for a in arguments))), kind)

    def _saturated(self, kind: ElementType, argument: Value, scope: Scope) -> Element:
        if isinstance(argument, Element):
            if not {kind.name, argument.type.name} <= {"float", "double", "float16", "bfloat16"}:
                return self.abstract(kind, scope)  # a NaN may become anything
            return Element(Term("e.f", ("saturate", kind.name, term_of(argument, argument.type))), kind)
        return Element(Term("e.f", ("saturate", kind.name, _argument(argument, kind))), kind)

    def _cast(self, kind: ElementType, argument: Value, scope: Scope) -> Term:
        match argument:
            case Element(_, own):
                term = term_of(argument, own)
                if own.name == kind.name and kind.name in ELEMENT_TYPES:
                    return term
                if kind.name == "bool" and own.name in FLOATS | INTEGERS:
                    return Term("e.bit", ("bool", self._not_zero(term, own)))
                made = Term("e.cast", (kind.name, own.name, term))
                if (kind.name in INTEGERS or kind.name not in ELEMENT_TYPES) and own.name not in INTEGERS | {"bool"}:
                    number, index = scope.run.at
                    fits = Term("e.casts", (kind.name, own.name, term))
                    return Term("e.ite", (fits, made, Term("e.free", (kind.name, number, *index))))
                return made
            case Term() if is_truth(argument, scope):
                if kind.name == "bool":
                    return Term("e.bit", ("bool", argument))
                return chosen(argument, numeral(1, kind.name), numeral(0, kind.name))
            case int() | Fraction() if _plain(argument, kind.name):
                return numeral(argument, kind.name)
            case int() | Fraction() | Real() | Term():
                return Term("e.of", (kind.name, real(argument) if isinstance(argument, Fraction | Real) else argument))
            case _:
                raise Bounded(f"a conversion of {type(argument).__name__} is no term")

    def _not_zero(self, term: Term, kind: ElementType) -> Term:
        return opposite(Term("e=", (kind.name, term, numeral(0, kind.name))))

    def truth(self, term: Term, scope: Scope) -> Term:
        """An element of type bool as a truth value."""
        match term:
            case Term("e.bit", (_, Term() as condition)):
                return condition
            case Term("e.num", (_, written)):
                return FALSE if written == "0" else TRUE
            case _:
                return Term("e.truth", (term,))

    def test(self, name: str, element: Element, scope: Scope) -> Term:
        """Whether an element is a NaN or an infinity."""
        term = term_of(element, element.type)
        if element.type.name in INTEGERS or element.type.name == "bool":
            return FALSE
        match term:
            case Term("e.num", (_, written)):
                return TRUE if written in (("nan",) if name == "is_nan" else ("inf", "-inf")) else FALSE
            case _:
                return Term(f"e.{name}", (term,))

    def lift(self, sort: str, element: Element, scope: Scope) -> Number:
        """The exact value."""
        term = term_of(element, element.type)
        if sort == "Bool":
            return self.truth(term, scope)
        match term:
            case Term("e.num", (_, str() as written)) if written.lstrip("-")[:1].isdigit() and written != "-0.0":
                number = Fraction(written)
                return number.numerator if number.denominator == 1 else number
            case Term("e.ite", (Term() as condition, Term() as left, Term() as right)) if sort == "Int":
                one, other = (self.lift(sort, Element(t, element.type), scope) for t in (left, right))
                if isinstance(one, int | Term) and isinstance(other, int | Term):
                    return choose(condition, one, other)
        if sort == "Int":
            found = self._whole(term, scope)
            return Term("e.int", (term,)) if found is None else found
        if element.type.name in INTEGERS:
            return self.lift("Int", element, scope)
        return Real(Term("e.real", (term,)))

    def choose(self, condition: Term, left: Element, right: Element, scope: Scope) -> Element:
        """The one or the other."""
        kind = _kind(left, right)
        return Element(chosen(condition, term_of(left, kind), term_of(right, kind)), kind)

    def fold(self, name: str, terms: Sequence[tuple[int, Element]], scope: Scope) -> Element | int:
        """The greatest or least of listed elements."""
        kind = terms[0][1].type
        items = tuple(term_of(element, kind) for _, element in terms)
        if name in ("max", "min"):
            return Element(items[0] if len(items) == 1 else Term("e.best", (name, kind.name, *items)), kind)
        raise Bounded(f"{name} of listed elements is no term")

    def abstract(self, kind: ElementType, scope: Scope) -> Element:
        """An element like no other."""
        self.serial += 1
        return Element(Term("e.unknown", (kind.name, self.serial)), kind)

    def folded(
        self,
        name: str,
        symbols: tuple[Term, ...],
        sizes: tuple[Int, ...],
        guard: Term,
        body: Element,
        start: Element | None,
        scope: Scope,
    ) -> Element | Term:
        """A fold as a term."""
        kind = body.type
        first = TRUE if start is None else term_of(start, kind)
        steps = Term("steps", (*symbols, *sizes))
        if name in ("argmax", "argmin"):
            return Term("e.place", (name, steps, guard, term_of(body, kind), first))
        return Element(Term("e.fold", (name, kind.name, steps, guard, term_of(body, kind), first)), kind)


def chosen(condition: Term, left: Term, right: Term) -> Term:
    """One element or the other."""
    if left == right or condition == TRUE:
        return left
    return right if condition == FALSE else Term("e.ite", (condition, left, right))


def numeral(number: int | Fraction, kind: str) -> Term:
    """A numeral as an element."""
    return Term("e.num", (kind, str(number)))


def term_of(element: Element, kind: ElementType) -> Term:
    """The term of an element, of a type that a special number of an attribute takes."""
    value = element.value
    if isinstance(value, Term):
        return value
    if isinstance(value, float):
        written = "nan" if isnan(value) else "-0.0" if value == 0 and copysign(1, value) < 0 else str(value)
        return Term("e.num", (kind.name, written))
    if isinstance(value, int | Fraction):
        return numeral(value, kind.name)
    raise InternalError(f"{value!r} is no term")


def _kind(left: Element, right: Element) -> ElementType:
    return left.type if left.type.name else right.type


def _argument(value: Value, kind: ElementType) -> Argument:
    match value:
        case Element(_, own):
            return term_of(value, own if own.name else kind)
        case int() | Term() | str():
            return value
        case Fraction() | Real():
            return real(value)
        case _:
            raise Bounded(f"an argument that is a {type(value).__name__} is no term")


def _plain(number: int | Fraction, kind: str) -> bool:
    """True if a conversion of the number gives what the numeral is: both are rounded to nearest, or exact."""
    if kind in FLOATS or number in (0, 1):
        return True
    known = limits(kind)
    whole = isinstance(number, int) or number.denominator == 1
    return whole and known is not None and kind in INTEGERS and known[0] <= number <= known[1]


def _is_size(number: Argument) -> bool:
    """A size of an axis of an input, or a small number: it is kept in 64 bits."""
    return (isinstance(number, Term) and not number.args and number.op.startswith("size.")) or (
        isinstance(number, int) and 0 <= number < 1 << 31
    )
