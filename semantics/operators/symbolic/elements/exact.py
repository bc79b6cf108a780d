"""The smt interpretation of operators, elements as exact numbers: integers and rationals, or terms over them.

Exact where the element type's arithmetic is: integers within their range, floating-point numbers whose results are
representable. What has no exact value, transcendental functions and special values, raises Inexact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import trunc
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....errors import Unsupported
from ....formulas.terms import FALSE, TRUE, Term
from ....model.elements import BITS, DOUBLE, FLOATS, INTEGERS, dtype_of, finfo, limits
from ..numbers import Int, Number, Real, add, choose, multiply, order, rational, real, subtract
from ..values import Element, ElementType, Scope, Value

NAMES: Final[Mapping[str, str]] = {"minimum": "min", "maximum": "max", "negative": "neg"}
"""The operations of the compiled tables that have another name than the primitive of the language."""


class Inexact(Unsupported):
    """The value of an element is no exact number."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The algebra of exact numbers. tensors: the inputs by name; those that are missing have symbols as elements."""

    tensors: Mapping[str, NDArray[np.generic]]

    def literal(self, number: int | Fraction, kind: ElementType, scope: Scope) -> Element:
        """The number."""
        return Element(number, kind)

    def read(self, name: str, index: tuple[Int, ...], kind: ElementType, scope: Scope) -> Element:
        """The element of an input, as it is."""
        data = self.tensors.get(name)
        if data is None:
            return Element(Term(".".join((name, *map(str, index)))), kind)
        item = data[tuple(i for i in index if isinstance(i, int))]
        return Element(exact(item, kind), kind)

    def arithmetic(self, operator: str, left: Element, right: Element, scope: Scope) -> Element:
        """`+ - * /`; integers are divided toward zero."""
        kind = left.type if left.type.name else right.type
        a, b = number(left), number(right)
        if operator == "/" and b == 0:
            raise Inexact("division by zero")
        if operator == "/" and kind.name in INTEGERS:
            return Element(trunc(Fraction(_constant(a)) / Fraction(_constant(b))), kind)
        if operator == "/" or isinstance(a, Fraction | Real) or isinstance(b, Fraction | Real):
            return Element(fitted(_plain(rational(operator, a, b)), kind.name), kind)
        return Element(fitted({"+": add, "-": subtract, "*": multiply}[operator](a, b), kind.name), kind)

    def compare(self, relation: str, left: Element, right: Element, scope: Scope) -> Term:
        """`= != < <= > >=` of the numbers; an infinity is beyond them all."""
        if INFINITIES & {left.value, right.value}:
            a, b = _extended(left), _extended(right)
            holds = {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
            return TRUE if holds[relation] else FALSE
        return order(relation, number(left), number(right))

    def apply(self, name: str, kind: ElementType, arguments: Sequence[Value], scope: Scope) -> Element:
        """Functions with exact values."""
        if name == "infinity":
            return Element(INFINITY, kind)
        if name == "negative" and isinstance(arguments[0], Element) and arguments[0].value in INFINITIES:
            return Element(-_extended(arguments[0]), kind)
        values = [number(a) if isinstance(a, Element) else _exact_value(a) for a in arguments]
        if name == "cast" and isinstance(arguments[0], Element) and arguments[0].type.name in FLOATS:
            _in_range(kind.name, _constant(values[0]))
        return Element(_plain(_function(name, kind.name, values)), kind)

    def test(self, name: str, element: Element, scope: Scope) -> Term:
        """A number is no NaN and no infinity."""
        return FALSE

    def lift(self, sort: str, element: Element, scope: Scope) -> Number:
        """The number; whether it is not 0."""
        value = number(element)
        return order("!=", value, 0) if sort == "Bool" else value

    def choose(self, condition: Term, left: Element, right: Element, scope: Scope) -> Element:
        """The one or the other."""
        a, b = number(left), number(right)
        if isinstance(a, Fraction | Real) or isinstance(b, Fraction | Real):
            return Element(Real(Term("rite", (condition, real(a), real(b)))), left.type)
        return Element(choose(condition, a, b), left.type)

    def fold(self, name: str, terms: Sequence[tuple[int, Element]], scope: Scope) -> Element | int:
        """The greatest or smallest, the first of equals."""
        if name in ("max", "min"):
            relation = ">=" if name == "max" else "<="
            return reduce(lambda a, b: self._better(relation, a, b, scope), [element for _, element in terms])
        values = [_constant(number(element)) for _, element in terms]
        best = max(values) if name == "argmax" else min(values)
        return terms[values.index(best)][0]

    def _better(self, relation: str, left: Element, right: Element, scope: Scope) -> Element:
        condition = self.compare(relation, left, right, scope)
        if condition in (TRUE, FALSE):
            return left if condition == TRUE else right
        return self.choose(condition, left, right, scope)

    def abstract(self, kind: ElementType, scope: Scope) -> Element:
        """Nothing is unknown here."""
        raise Inexact("an element that the text leaves open")


INFINITY = float("inf")
INFINITIES: frozenset[object] = frozenset({INFINITY, -INFINITY})
"""The values that are no numbers and can be compared with them."""


def _extended(element: Element) -> int | Fraction | float:
    return element.value if isinstance(element.value, float) else _constant(number(element))


def exact(item: float | bytes, kind: ElementType) -> int | Fraction:
    """The number that an element is. Raises Inexact for a NaN, an infinity, a string, a complex number."""
    if kind.name == "string" or kind.name.startswith("complex"):
        raise Inexact(f"elements of type {kind.name}")
    if kind.name in INTEGERS or kind.name == "bool":
        return int(item)
    value = float(item)
    if value != value or value in (float("inf"), float("-inf")):
        raise Inexact("a NaN or an infinity")
    return _whole(Fraction(value))


def number(element: Element) -> Number:
    """The value of an element."""
    value = element.value
    if isinstance(value, Term) and value in (TRUE, FALSE):
        return int(value == TRUE)
    if isinstance(value, int | Fraction | Real | Term):
        return value
    if value == 0:  # -0.0
        return 0
    raise Inexact(f"{value!r} is no number")


DIGITS: Final = {name: finfo(dtype_of(name)).nmant + 1 for name in ("double", "float", "float16", "bfloat16")}
"""The digits of the significand of the types whose numbers are kept; of the narrower ones only powers of two are."""


def fitted(value: Number, kind: str) -> Number:
    """The number as the element type has it: integers wrap around. Raises Inexact for a float that is rounded."""
    known = limits(kind)
    if known is None or not isinstance(value, int | Fraction):
        return value
    if kind in INTEGERS:
        return (int(value) - int(known[0])) % (1 << BITS[kind]) + int(known[0])
    exact_value = Fraction(value)
    below, above = exact_value.denominator, abs(exact_value.numerator)
    digits = (above // (above & -above)).bit_length() if above else 0
    if below & (below - 1) or digits > DIGITS.get(kind, 1) or not known[0] <= exact_value <= known[1]:
        raise Inexact(f"{value} is no {kind}")
    return value


def _plain(value: Number) -> Number:
    return _whole(value) if isinstance(value, Fraction) else value


def _whole(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def _constant(value: Number) -> int | Fraction:
    if isinstance(value, int | Fraction):
        return value
    raise Inexact(f"{value!r} is no constant")


def _exact_value(value: Value) -> Number:
    if isinstance(value, Term) and value in (TRUE, FALSE):
        return int(value == TRUE)
    if isinstance(value, int | Fraction | Real | Term):
        return value
    raise Inexact(f"{value!r} is no number")


def _function(name: str, kind: str, values: Sequence[Number]) -> Number:
    match name:
        case "cast" | "saturate":
            return _cast(kind, _constant(values[0]), saturated=name == "saturate")
        case "negative":
            return rational("*", -1, values[0])
        case "reinterpret":
            raise Inexact("digits are not followed")
        case "oneof":
            return values[0]
        case _:
            return _known(name, kind, values)


def _known(name: str, kind: str, values: Sequence[Number]) -> Number:
    """A function where its value is exact: a root of a square, exp at 0. The type matters to few."""
    from ...compiled.elements import exact as exact_elements

    made = [np.array(_constant(value), dtype=object) for value in values]
    dtype = dtype_of(kind) if name in ("power", "quotient") else DOUBLE
    try:
        return _constant(np.asarray(exact_elements.operation(NAMES.get(name, name), dtype)(*made)).item())
    except (KeyError, Unsupported):
        raise Inexact(f"{name} has no exact value") from None


def _in_range(kind: str, value: int | Fraction) -> None:
    """Raises Inexact for a floating-point number that is outside an integer type, cut off: any value is allowed."""
    known = limits(kind)
    if known is not None and kind in INTEGERS and not known[0] <= trunc(value) <= known[1]:
        raise Inexact(f"any value is allowed for {value} as {kind}")


def _cast(kind: str, value: int | Fraction, *, saturated: bool) -> Number:
    """Exact where the value is representable; integers wrap around, rationals are cut off."""
    if kind == "bool":
        return int(value != 0)
    known = limits(kind)
    if known is None:
        raise Inexact(f"a number as {kind}")
    low, high = known
    if kind not in INTEGERS:
        if saturated:
            return max(low, min(high, value))
        return value
    if saturated:
        return int(max(low, min(high, Fraction(round(value)))))
    if isinstance(value, Fraction) and value.denominator != 1:
        value = trunc(value)
        if not low <= value <= high:
            raise Inexact("any value is allowed")
    return fitted(value, kind)
