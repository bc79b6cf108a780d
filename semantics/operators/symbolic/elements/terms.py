"""The smt interpretation of operators, elements as terms: what proofs that two texts compute the same element compare.

An element is a term in solver-neutral form, its type the first argument where it has one:

  @.read KIND NAME i j        the element of an input at an index
  @.num KIND VALUE            a numeral, exact, or `-0.0`, `inf`, `-inf`, `nan`
  @.text KIND t               a text as an element
  @.of KIND n                 an exact number, an Int or a Real, as an element
  @.bit KIND c                a truth value as an element
  @+ @- @* @/ KIND a b        arithmetic of the element type
  @.f NAME KIND a ...         a function: exp, negative, minimum, ...
  @.cast KIND FROM a          a conversion; of a float to an integer where `@.casts` says that it has a value
  @.ite c a b                 one or the other
  @.fold NAME KIND (n symbols, n sizes) guard body start    symbols named by depth: equal folds are equal terms
  @.best NAME KIND a ...      the greatest or least of elements in this order
  @.free KIND t i j           any element, as number t of the tensors that are open has it at an index
  @.one t a b i j             one of the two, likewise
  @.unknown KIND k            an element of which nothing is known, not even that it is the same one twice

Bools over elements: @= @< @<= KIND a b, @.truth, @.is_nan, @.is_infinite a, @.casts KIND FROM a. Exact numbers over
elements: @.int, @.real a, @.place NAME (n symbols, n sizes) guard body start. Nothing is computed here that rounding
could change.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import copysign, isnan

from ....errors import InternalError
from ....formulas.terms import FALSE, TRUE, Argument, Term
from ....model.elements import ELEMENT_TYPES, FLOATS, INTEGERS, limits
from ..numbers import Int, Number, Real, choose, opposite, order, real
from ..values import Bounded, Element, ElementType, Scope, TextSymbol, Value, applied, is_truth, same_truth
from .known import fits

SIZE = "dim."
"""The beginning of the names of sizes."""
STEP = "$"
FREE = ("@.free", "@.one")
"""The heads of elements that the text leaves open."""


@dataclass(slots=True)
class Terms:
    """The algebra. serial: of the elements of which nothing is known. reads: the symbols of elements as numbers, with
    the element type and the input. wide: somewhere 64 bits are taken to be enough for sizes and products of different
    ones.
    """

    serial: int = 0
    wide: bool = False
    reads: dict[str, tuple[str, str]] = field(default_factory=dict)

    def literal(self, number: int | Fraction, kind: ElementType, scope: Scope) -> Element:
        """The numeral."""
        return Element(numeral(number, kind.name), kind)

    def read(self, name: str, index: tuple[Int, ...], kind: ElementType, scope: Scope) -> Element:
        """The element of an input by its place."""
        return Element(Term("@.read", (kind.name, name, *index)), kind)

    def arithmetic(self, operator: str, left: Element, right: Element, scope: Scope) -> Element:
        """`+ - * /`, not computed."""
        kind = _kind(left, right)
        return Element(Term(f"@{operator}", (kind.name, term_of(left, kind), term_of(right, kind))), kind)

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
        return Term(f"@{relation}", (kind.name, a, b))

    def _whole(self, term: Term, scope: Scope) -> Int | None:
        """An element of an integer type as a number, where that is plain."""
        match term:
            case Term("@.num", (_, str() as written)) if "/" not in written:
                return int(written)
            case Term("@.read", (str() as kind, str() as name, *index)):
                lifted = applied(scope, name, tuple(i for i in index if not isinstance(i, str)), "Int")
                self.reads[lifted.op] = kind, name
                return lifted
            case Term("@.of", ("int64", int() | Term() as number)) if self._fits(number):
                return number
            case _:
                return None

    def _fits(self, number: Int) -> bool:
        """An element of type int64 has the number: a literal or an attribute, or one made of sizes as `known` says."""
        if isinstance(number, int):
            return -(1 << 63) <= number < 1 << 63
        if not number.args and "!" not in number.op and not number.op.startswith(STEP):
            return True
        if not (_of_sizes(number) and fits(number, "int64", {})):
            return False
        self.wide = True
        return True

    def apply(self, name: str, kind: ElementType, arguments: Sequence[Value], scope: Scope) -> Element:
        """A function, not computed."""
        match name:
            case "cast":
                return Element(self._cast(kind, arguments[0], scope), kind)
            case "nan" | "infinity":
                return Element(Term("@.num", (kind.name, "nan" if name == "nan" else "inf")), kind)
            case "arbitrary":
                number, index = scope.run.at
                return Element(Term("@.free", (kind.name, number, *index)), kind)
            case "oneof":
                number, index = scope.run.at
                a, b = (term_of(a, kind) for a in arguments if isinstance(a, Element))
                return Element(a if a == b else Term("@.one", (number, a, b, *index)), kind)
            case "reinterpret":
                return self.abstract(kind, scope)
            case "saturate":
                return self._saturated(kind, arguments[0], scope)
            case "power" if not _all(kind, FLOATS, scope):
                made = Term("@.f", (name, kind.name, *(_argument(a, kind) for a in arguments)))
                number, index = scope.run.at
                exponent = Element(_argument(arguments[1], kind), kind)
                known = self.compare("<=", Element(numeral(0, kind.name), kind), exponent, scope)
                return Element(chosen(known, made, Term("@.free", (kind.name, number, *index))), kind)
            case _:
                return Element(Term("@.f", (name, kind.name, *(_argument(a, kind) for a in arguments))), kind)

    def _saturated(self, kind: ElementType, argument: Value, scope: Scope) -> Element:
        if isinstance(argument, Element):
            if not all(_all(it, {"float", "double", "float16", "bfloat16"}, scope) for it in (kind, argument.type)):
                return self.abstract(kind, scope)  # a NaN may become anything
            return Element(Term("@.f", ("saturate", kind.name, term_of(argument, argument.type))), kind)
        return Element(Term("@.f", ("saturate", kind.name, _argument(argument, kind))), kind)

    def _cast(self, kind: ElementType, argument: Value, scope: Scope) -> Term:
        match argument:
            case Element(_, own):
                term = term_of(argument, own)
                if own.name == kind.name and kind.name in ELEMENT_TYPES:
                    return term
                if kind.name == "bool" and _all(own, FLOATS | INTEGERS, scope):
                    return Term("@.bit", ("bool", self._not_zero(term, own)))
                made = Term("@.cast", (kind.name, own.name, term))
                if not _all(kind, ELEMENT_TYPES.keys() - INTEGERS, scope) and not _all(own, INTEGERS | {"bool"}, scope):
                    number, index = scope.run.at
                    fits = Term("@.casts", (kind.name, own.name, term))
                    return Term("@.ite", (fits, made, Term("@.free", (kind.name, number, *index))))
                return made
            case Term() if is_truth(argument, scope):
                if kind.name == "bool":
                    return Term("@.bit", ("bool", argument))
                return chosen(argument, numeral(1, kind.name), numeral(0, kind.name))
            case Term(name, index) if name in self.reads and kind.name in INTEGERS:
                stored, tensor = self.reads[name]
                read = Term("@.read", (stored, tensor, *index))
                return read if stored == kind.name else Term("@.cast", (kind.name, stored, read))
            case Term("ite", (Term() as condition, int() | Term() as a, int() | Term() as b)):
                return chosen(condition, self._cast(kind, a, scope), self._cast(kind, b, scope))
            case str() | TextSymbol():
                return Term("@.text", (kind.name, argument if isinstance(argument, str) else argument.name))
            case int() | Fraction() if _plain(argument, kind.name):
                return numeral(argument, kind.name)
            case int() | Fraction() | Real() | Term():
                return Term("@.of", (kind.name, real(argument) if isinstance(argument, Fraction | Real) else argument))
            case _:
                raise Bounded(f"a conversion of {type(argument).__name__} is no term")

    def _not_zero(self, term: Term, kind: ElementType) -> Term:
        return opposite(Term("@=", (kind.name, term, numeral(0, kind.name))))

    def truth(self, term: Term, scope: Scope) -> Term:
        """An element of type bool as a truth value."""
        match term:
            case Term("@.bit", (_, Term() as condition)):
                return condition
            case Term("@.num", (_, written)):
                return FALSE if written == "0" else TRUE
            case _:
                return Term("@.truth", (term,))

    def test(self, name: str, element: Element, scope: Scope) -> Term:
        """Whether an element is a NaN or an infinity."""
        term = term_of(element, element.type)
        if _all(element.type, INTEGERS | {"bool"}, scope):
            return FALSE
        match term:
            case Term("@.num", (_, written)):
                return TRUE if written in (("nan",) if name == "is_nan" else ("inf", "-inf")) else FALSE
            case _:
                return Term(f"@.{name}", (term,))

    def lift(self, sort: str, element: Element, scope: Scope) -> Number:
        """The exact value."""
        term = term_of(element, element.type)
        if sort == "Bool":
            return self.truth(term, scope)
        match term:
            case Term("@.num", (_, str() as written)) if written.lstrip("-")[:1].isdigit() and written != "-0.0":
                number = Fraction(written)
                return number.numerator if number.denominator == 1 else number
            case Term("@.ite", (Term() as condition, Term() as left, Term() as right)) if sort == "Int":
                one, other = (self.lift(sort, Element(t, element.type), scope) for t in (left, right))
                if isinstance(one, int | Term) and isinstance(other, int | Term):
                    return choose(condition, one, other)
        if sort == "Int":
            found = self._whole(term, scope)
            return Term("@.int", (term,)) if found is None else found
        if element.type.name in INTEGERS:
            return self.lift("Int", element, scope)
        return Real(Term("@.real", (term,)))

    def choose(self, condition: Term, left: Element, right: Element, scope: Scope) -> Element:
        """The one or the other."""
        kind = _kind(left, right)
        return Element(chosen(condition, term_of(left, kind), term_of(right, kind)), kind)

    def fold(self, name: str, terms: Sequence[tuple[int, Element]], scope: Scope) -> Element | int:
        """The greatest or least of listed elements."""
        kind = terms[0][1].type
        items = tuple(term_of(element, kind) for _, element in terms)
        if name in ("max", "min"):
            return Element(items[0] if len(items) == 1 else Term("@.best", (name, kind.name, *items)), kind)
        raise Bounded(f"{name} of listed elements is no term")

    def abstract(self, kind: ElementType, scope: Scope) -> Element:
        """An element like no other."""
        self.serial += 1
        return Element(Term("@.unknown", (kind.name, self.serial)), kind)

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
            return Term("@.place", (name, steps, guard, term_of(body, kind), first))
        return Element(Term("@.fold", (name, kind.name, steps, guard, term_of(body, kind), first)), kind)


def chosen(condition: Term, left: Term, right: Term) -> Term:
    """One element or the other."""
    if left == right or condition == TRUE:
        return left
    return right if condition == FALSE else Term("@.ite", (condition, left, right))


def numeral(number: int | Fraction, kind: str) -> Term:
    """A numeral as an element."""
    return Term("@.num", (kind, str(number)))


def term_of(element: Element, kind: ElementType) -> Term:
    """The term of an element, of a type that a special number of an attribute takes."""
    value = element.value
    if isinstance(value, Term):
        return value
    if isinstance(value, float):
        written = "nan" if isnan(value) else "-0.0" if value == 0 and copysign(1, value) < 0 else str(value)
        return Term("@.num", (kind.name, written))
    if isinstance(value, int | Fraction):
        return numeral(value, kind.name)
    raise InternalError(f"{value!r} is no term")


def _kind(left: Element, right: Element) -> ElementType:
    return left.type if left.type.name else right.type


def _all(kind: ElementType, among: Collection[str], scope: Scope) -> bool:
    """The element type is one of these, whichever an open one is."""
    known = scope.run.types_of(kind.name)
    return bool(known) and set(known) <= set(among)


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


def _of_sizes(term: Argument) -> bool:
    """Nothing but sizes of axes of inputs occurs."""
    if not isinstance(term, Term):
        return isinstance(term, int)
    if not term.args:
        return term.op.startswith(SIZE)
    return term.op in ("+", "*", "div", "mod", "ite") and all(map(_of_sizes, term.args[term.op == "ite" :]))
