"""The algebra of elements of which some are known: exact where the numbers are, opaque elsewhere.

Of a constant tensor the least and the greatest element are known too, so that what is required of each of a million
stored elements is one question about any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, copysign, inf, isfinite, isinf, isnan

import numpy as np
from numpy.typing import NDArray

from ....errors import Unsupported
from ....formulas.terms import FALSE, TRUE, Term
from ....model.elements import FLOATS, INTEGERS, limits
from ..numbers import (
    Int,
    Real,
    at_most,
    both,
    choose,
    definitions,
    either,
    floor_div,
    maximum,
    minimum,
    multiply,
    opposite,
    order,
    polynomial,
)
from ..numbers import Number as ExactNumber
from ..values import Element, ElementType, Scope, Value, axiom, is_truth, same_truth
from .exact import Exact, exact, fitted
from .opaque import Opaque, Read

# How large a number over sizes can be: whether integers of 64 bits have it, or it is wrapped around.
# No tensor has `MOST` elements, and the sizes that a model leaves open do not have a product of so much either. So a
# product of different sizes is below that, their sum too, while a power of a size or a size beside a large constant
# need not fit.


MOST = 1 << 48
"""Above every size, and every product of different sizes. No machine has a memory of so many bytes."""
MONOMIALS = 64
"""A bound with more summands than this is none."""
EXACT = 1 << 53
"""Floating-point numbers of 64 bits have every integer up to this."""

Bound = dict[tuple[str, ...], Fraction]
"""An upper limit of the absolute value of a number: a sum of products of sizes, with their factors."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """defined: what some symbols stand for. bounds, signs: what was found of those."""

    defined: Mapping[str, Term]
    bounds: dict[str, Bound | None] = field(default_factory=dict)
    signs: dict[str, bool] = field(default_factory=dict)


def fits(number: Int, kind: str, defined: Mapping[str, Term]) -> bool:
    """True if an element type of 64 bits has the number whatever the sizes are. defined: what symbols stand for."""
    known = Bounds(defined)
    bound = _bound_of(number, known)
    if bound is None:
        return False
    most = sum((factor * _largest(symbols) for symbols, factor in bound.items()), Fraction(0))
    if kind == "double":
        return most <= EXACT
    low, high = limits(kind) or (Fraction(0), Fraction(0))
    return most <= high and (-most >= low or _no_negative(number, known))


def _largest(symbols: tuple[str, ...]) -> int:
    """Above a product of sizes, of which each is counted once, and of indices, each as large as a size may be."""
    indices = [name for name in symbols if _is_index(name)]
    powers = Counter(name for name in symbols if not _is_index(name))
    return int(MOST ** (max(powers.values(), default=0) + len(indices)))


def _is_index(name: str) -> bool:
    return ".size." not in name and not name.startswith("dim.")


def _bound_of(number: Int, known: Bounds) -> Bound | None:
    total: Bound = {}
    for atoms, factor in polynomial(number).items():
        product: Bound | None = {(): Fraction(abs(factor))}
        for atom in atoms:
            product = _times(product, _atom(atom, known))
        if product is None:
            return None
        for symbols, by in product.items():
            total[symbols] = total.get(symbols, Fraction(0)) + by
    return total if len(total) <= MONOMIALS else None


def _times(left: Bound | None, right: Bound | None) -> Bound | None:
    if left is None or right is None or len(left) * len(right) > MONOMIALS:
        return None
    product: Bound = {}
    for one, a in left.items():
        for other, b in right.items():
            symbols = tuple(sorted((*one, *other)))
            product[symbols] = product.get(symbols, Fraction(0)) + a * b
    return product


def _either(bounds: Iterable[Bound | None]) -> Bound | None:
    """Above each of the numbers."""
    larger: Bound = {}
    for bound in bounds:
        if bound is None:
            return None
        for symbols, factor in bound.items():
            larger[symbols] = max(larger.get(symbols, Fraction(0)), factor)
    return larger


def _parts(term: Term) -> tuple[Int, ...]:
    return tuple(Term(part) if isinstance(part, str) else part for part in term.args)


def _atom(term: Term, known: Bounds) -> Bound | None:
    match term.op, _parts(term):
        case "ite", (_, left, right):
            return _either((_bound_of(left, known), _bound_of(right, known)))
        case "div", (number, by):
            bound = _bound_of(number, known)
            if bound is None:
                return None
            scale = by if isinstance(by, int) else 1
            bound = {symbols: factor / abs(scale) for symbols, factor in bound.items()}
            return {**bound, (): Fraction(ceil(bound.get((), Fraction(0))) + 1)}  # rounded down
        case "mod", (_, by):
            return _bound_of(by, known)
        case (("flat" | "unflat" | "to_int"), _):
            return {(f"{term}",): Fraction(1)}
        case name, ():
            if name in known.defined:
                if name not in known.bounds:
                    known.bounds[name] = None  # of a symbol that is defined by itself nothing is known
                    known.bounds[name] = _bound_of(known.defined[name], known)
                return known.bounds[name]
            return {(name,): Fraction(1)} if _is_size(name) else None
        case _:
            return None


def _is_size(name: str) -> bool:
    """True if a symbol stands for a size, or an index within one: not for an element of a tensor."""
    return name.rpartition(".")[2] not in ("Int", "Real", "Bool") and ".entry." not in name and "lifted" not in name


def _no_negative(number: Int, known: Bounds) -> bool:
    """True if it is evident that a number is not below 0: a sum of products of sizes."""
    return all(
        factor >= 0 and all(_not_below(atom, known) for atom in atoms) for atoms, factor in polynomial(number).items()
    )


def _not_below(term: Term, known: Bounds) -> bool:
    match term.op, _parts(term):
        case "ite", (_, left, right):
            return _no_negative(left, known) and _no_negative(right, known)
        case "div", (number, by):
            return _no_negative(number, known) and _no_negative(by, known)
        case "mod", (_, by):
            return _no_negative(by, known)
        case name, ():
            if name in known.defined:
                if name not in known.signs:
                    known.signs[name] = False
                    known.signs[name] = _no_negative(known.defined[name], known)
                return known.signs[name]
            return _is_size(name)
        case _:
            return False


# The algebra of elements of which some are known: exact where the numbers are, opaque elsewhere.
# Of a constant tensor the least and the greatest element are known too, so that what is required of each of a million
# stored elements is one question about any of them.


Number = int | Fraction | Real | Term | Read
"""An element that is known: a number, a term over the sizes, or which element of another tensor it is."""
Range = tuple[Fraction, Fraction, bool]
"""The least and the greatest element, and whether a NaN is among them."""

WIDE = ("int64", "uint64", "double")
"""Element types in which a size of an axis is never rounded or wrapped around: see `magnitude`."""


def number_of(item: float | bytes, kind: str) -> int | Fraction | float | None:
    """A stored element: a number, a float for infinities, NaN and a zero with its sign; None where it is neither."""
    if kind == "string" or kind.startswith("complex"):
        return None
    if kind in INTEGERS or kind == "bool":
        return int(item)
    value = float(item)
    return exact(item, ElementType(kind)) if isfinite(value) and value != 0 else value


@dataclass(frozen=True, slots=True)
class Known:
    """constants: the tensors whose elements are all there, by the names that formulas give them. Of a 0 that was
    computed the sign is not known; one that is stored, 0.0 or -0.0, has it until something is done with it.
    """

    constants: Mapping[str, NDArray[np.generic]]
    ranges: dict[str, Range | None] = field(default_factory=dict)
    matched: dict[tuple[str, str], NDArray[np.generic]] = field(default_factory=dict)
    opaque: Opaque = field(default_factory=Opaque)
    exact: Exact = field(default_factory=lambda: Exact({}))

    def literal(self, number: int | Fraction, kind: ElementType, scope: Scope) -> Element:
        """The number, if the element type has it."""
        return Element(number, kind)

    def read(self, name: str, index: tuple[Int, ...], kind: ElementType, scope: Scope) -> Element:
        """An element by its place."""
        return self.opaque.read(name, index, kind, scope)

    def arithmetic(self, operator: str, left: Element, right: Element, scope: Scope) -> Element:
        """Exact where nothing is rounded; of sizes in 64 bits nothing is."""
        kind = left.type if left.type.name else right.type
        wide = kind.name in WIDE and not _of_elements(left.value) and not _of_elements(right.value)
        if _numeric(left) and _numeric(right) and (_constant(left, right) or wide):
            infinite = _infinite(operator, left.value, right.value, kind.name)
            if infinite is not None:
                return Element(infinite, kind)
            quotient = _quotient(operator, left.value, right.value, kind.name)
            if quotient is not None:
                return Element(quotient, kind)
            try:
                result = self.exact.arithmetic(operator, left, right, scope)
                if self._fits(result.value, kind.name, scope):
                    return result
            except Unsupported:
                pass
        return self.opaque.arithmetic(operator, left, right, scope)

    def _fits(self, value: object, kind: str, scope: Scope) -> bool:
        """True if a number over sizes is neither wrapped around nor rounded in a wide type."""
        if not isinstance(value, Term) or not kind:
            return True
        return fits(value, kind, definitions(scope.run.path) if _is_named(value) else {})

    def compare(self, relation: str, left: Element, right: Element, scope: Scope) -> Term:
        """Numbers as numbers, a NaN as unequal to all; what is not known goes either way."""
        if _truths(scope, left.value, right.value):
            same = _same(scope, left.value, right.value)
            if same is None or relation not in ("=", "!="):
                return self.opaque.compare(relation, left, right, scope)
            return same if relation == "=" else opposite(same)
        if _numeric(left) and _numeric(right):
            return self.exact.compare(relation, left, right, scope)
        if isinstance(left.value, float) or isinstance(right.value, float):
            return self._special(relation, left, right, scope)
        if self._ordered(left) and self._ordered(right):
            sort = "Rational" if (left.type.name or right.type.name) in FLOATS else "Int"
            return order(relation, self.lift(sort, left, scope), self.lift(sort, right, scope))
        return self.opaque.compare(relation, left, right, scope)

    def _special(self, relation: str, left: Element, right: Element, scope: Scope) -> Term:
        values = [item.value for item in (left, right)]
        if any(isinstance(v, float) and isnan(v) for v in values):
            return TRUE if relation == "!=" else FALSE
        if not all(isinstance(v, int | Fraction | float) for v in values):
            return self.opaque.compare(relation, left, right, scope)
        return self.exact.compare(relation, left, right, scope)

    def _ordered(self, element: Element) -> bool:
        """True if the element is no NaN."""
        if _numeric(element) or element.type.name in INTEGERS:
            return True
        limits = self._range(element)
        return limits is not None and not limits[2]

    def apply(self, name: str, kind: ElementType, arguments: Sequence[Value], scope: Scope) -> Element:
        """Functions of numbers where they are exact; sizes keep their value in wide types."""
        values = [_unsigned(a.value) if isinstance(a, Element) else a for a in arguments]
        if kind.name == "string" and name == "cast" and isinstance(values[0], str):
            return Element(values[0], kind)
        if name == "matches":
            matched = self._matched(*values)
            return self.opaque.apply(name, kind, arguments, scope) if matched is None else Element(matched, kind)
        if _truths(scope, *values):
            (truth,) = values if name == "cast" and len(values) == 1 else (None,)
            if isinstance(truth, Term) and (kind.name == "bool" or kind.name in INTEGERS):
                return Element(truth if kind.name == "bool" else choose(truth, 1, 0), kind)
            return self.opaque.apply(name, kind, arguments, scope)
        if values and all(isinstance(v, int | Fraction) and not isinstance(v, Term) for v in values):
            try:
                result = self.exact.apply(name, kind, arguments, scope)
                if isinstance(result.value, int | Fraction):
                    fitted(result.value, kind.name)
                return result
            except Unsupported:
                return self.opaque.apply(name, kind, arguments, scope)
        if all(isinstance(v, int | Term) for v in values) and (name in ORDERED or not any(map(_of_elements, values))):
            terms = [v for v in values if isinstance(v, int | Term)]
            made = _of_sizes(name, kind.name, terms)
            taken = name in ORDERED or not any(isinstance(a, Element) for a in arguments)  # one of them, or a size
            if made is not None and (taken or self._fits(made, kind.name, scope)):
                return Element(made, kind)
        return self.opaque.apply(name, kind, arguments, scope)

    def _matched(self, text: object, pattern: object) -> Term | None:
        """Whether a stored string matches a pattern, by its place; None where it is not known."""
        if not isinstance(text, Read) or text.name not in self.constants or not isinstance(pattern, str):
            return None
        if (text.name, pattern) not in self.matched:
            from ...compiled.elements.text import TEXT

            try:
                found = TEXT["matches"](self.constants[text.name], np.asarray(pattern.encode(), object))
            except (ValueError, Unsupported):
                return None
            self.matched[text.name, pattern] = found
        fits = self.matched[text.name, pattern]
        rare = bool(fits.sum() <= fits.size - fits.sum())
        places = np.argwhere(fits == rare)
        if len(places) > MONOMIALS:
            return None
        there = either(*(both(*(order("=", i, int(k)) for i, k in zip(text.index, at, strict=True))) for at in places))
        return there if rare else opposite(there)

    def test(self, name: str, element: Element, scope: Scope) -> Term:
        """True if the element is a NaN or an infinity."""
        if isinstance(element.value, float):
            return TRUE if (isnan if name == "is_nan" else isinf)(element.value) else FALSE
        if _numeric(element) or element.type.name in INTEGERS or element.type.name == "bool":
            return FALSE
        limits = self._range(element)
        if limits is not None and (not limits[2] if name == "is_nan" else _finite(limits)):
            return FALSE
        return self.opaque.test(name, element, scope)

    def lift(self, sort: str, element: Element, scope: Scope) -> ExactNumber:
        """The number; of a read its place, with what is known of the whole tensor and of its type."""
        value = _unsigned(element.value)
        if isinstance(value, int | Fraction | Real | Term):
            if isinstance(value, Term) and is_truth(value, scope):
                return value if sort == "Bool" else choose(value, 1, 0)
            return order("!=", value, 0) if sort == "Bool" else value
        if isinstance(value, Read) and sort == "Rational" and element.type.name in INTEGERS:
            return self.lift("Int", element, scope)  # one symbol for one element
        lifted = self.opaque.lift(sort, element, scope)
        if isinstance(value, Read) and sort != "Bool":
            known = self._range(element)
            if known is not None and _finite(known):
                axiom(scope, both(order("<=", _plain(known[0]), lifted), order("<=", lifted, _plain(known[1]))))
            elif element.type.name in INTEGERS and not isinstance(lifted, Fraction | Real):
                low, high = limits(element.type.name) or (Fraction(0), Fraction(0))
                axiom(scope, both(at_most(int(low), lifted), at_most(lifted, int(high))))
        return lifted

    def _range(self, element: Element) -> Range | None:
        value = element.value
        if not isinstance(value, Read) or value.name not in self.constants:
            return None
        if value.name not in self.ranges:
            self.ranges[value.name] = _extremes(self.constants[value.name], element.type.name)
        return self.ranges[value.name]

    def choose(self, condition: Term, left: Element, right: Element, scope: Scope) -> Element:
        """The one or the other."""
        left, right = (replace(it, value=_unsigned(it.value)) for it in (left, right))
        a, b = left.value, right.value
        if _truths(scope, a, b):
            one, other = _as_truth(scope, a), _as_truth(scope, b)
            if one is None or other is None:
                return self.opaque.choose(condition, left, right, scope)
            made = either(both(condition, one), both(opposite(condition), other))
            return Element(made, left.type if left.type.name else right.type)
        if isinstance(a, int | Term) and isinstance(b, int | Term):
            return Element(choose(condition, a, b), left.type if left.type.name else right.type)
        return self.opaque.choose(condition, left, right, scope)

    def fold(self, name: str, terms: Sequence[tuple[int, Element]], scope: Scope) -> Element | int:
        """The greatest or smallest of numbers."""
        if all(_numeric(element) for _, element in terms):
            try:
                return self.exact.fold(name, terms, scope)
            except Unsupported:
                pass
        return self.opaque.fold(name, terms, scope)

    def abstract(self, kind: ElementType, scope: Scope) -> Element:
        """Any element."""
        return self.opaque.abstract(kind, scope)


def _numeric(element: Element) -> bool:
    return isinstance(_unsigned(element.value), int | Fraction | Real | Term)


def _unsigned(value: object) -> object:
    """The value as a number, which a 0 with a sign is one of."""
    return 0 if isinstance(value, float) and value == 0 else value


def _infinite(operator: str, left: object, right: object, kind: str) -> float | None:
    """A number that is not 0 divided by a 0 with a sign, in a type with infinities."""
    if operator != "/" or kind not in ("float", "double", "float16", "bfloat16"):
        return None
    if not isinstance(left, int | Fraction) or left == 0 or not isinstance(right, float) or right != 0:
        return None
    return copysign(inf, right) if left > 0 else -copysign(inf, right)


ORDERED = ("minimum", "maximum")
"""Functions of numbers that give one of them."""


def _of_elements(value: object) -> bool:
    """True if a term is about elements of tensors, which may be larger than any size."""
    return isinstance(value, Term) and (
        value.op.rpartition(".")[2] == "Int" or any(_of_elements(part) for part in value.args)
    )


def _is_named(value: Term) -> bool:
    """True if symbols occur that facts may define."""
    return ".entry." in value.op or ".size." in value.op or any(_is_named(p) for p in value.args if isinstance(p, Term))


def _constant(*elements: Element) -> bool:
    return all(isinstance(_unsigned(e.value), int | Fraction) for e in elements)


def _truths(scope: Scope, *values: object) -> bool:
    """True if there is a term of sort Bool among the values."""
    return any(isinstance(value, Term) and is_truth(value, scope) for value in values)


def _as_truth(scope: Scope, value: object) -> Term | None:
    """A stored bool or a term of sort Bool as a term; None for what is neither."""
    if isinstance(value, Term):
        return value if is_truth(value, scope) else None
    return (TRUE if value else FALSE) if isinstance(value, int) else None


def _same(scope: Scope, left: object, right: object) -> Term | None:
    one, other = _as_truth(scope, left), _as_truth(scope, right)
    return None if one is None or other is None else same_truth(one, other)


def _finite(limits: Range) -> bool:
    return not limits[2] and limits[0] > -INFINITE and limits[1] < INFINITE


INFINITE = Fraction(2) ** 20000
"""Beyond every number that an element type has."""


def _extremes(data: NDArray[np.generic], kind: str) -> Range | None:
    """The interval of the elements of a constant; None for one without elements, or of strings."""
    if not data.size or kind == "string" or kind.startswith("complex"):
        return None
    values = data if data.dtype.kind in "iufb" else data.astype(np.float64)
    nan = bool(np.isnan(values).any()) if values.dtype.kind == "f" else False
    with np.errstate(invalid="ignore"):
        low, high = (values.min(), values.max()) if not nan else (np.nanmin(values), np.nanmax(values))
    return _bound(low), _bound(high), nan


def _bound(value: np.generic) -> Fraction:
    number = value.item()
    if isinstance(number, float):
        if isnan(number):
            return Fraction(0)
        if number in (inf, -inf):
            return INFINITE if number > 0 else -INFINITE
    return Fraction(number)


def _plain(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def _quotient(operator: str, left: object, right: object, kind: str) -> Int | None:
    """A size divided by a positive number, toward zero."""
    if operator != "/" or kind not in INTEGERS or not isinstance(left, Term) or not isinstance(right, int) or right < 1:
        return None
    return choose(at_most(0, left), floor_div(left, right), multiply(-1, floor_div(multiply(-1, left), right)))


def _of_sizes(name: str, kind: str, values: list[Int]) -> Int | None:
    """Functions of sizes that a wide type computes without rounding."""
    if kind not in WIDE and not (name in ("minimum", "maximum") and kind in INTEGERS):
        return None
    match name, values:
        case "cast" | "saturate", [value]:
            return value
        case "negative", [value]:
            return multiply(-1, value)
        case "minimum", [left, right]:
            return minimum(left, right)
        case "maximum", [left, right]:
            return maximum(left, right)
        case "absolute", [value]:
            return maximum(value, multiply(-1, value))
        case _:
            return None
