"""Elements of tensors: exact where they are numbers and nothing is rounded unsaid, else not known, with bounds."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor, isinf, isnan, trunc
from typing import cast

import numpy as np

from . import formulas as fm
from .formulas import Formula, Int, Poly, Symbol, Unknown
from .proving import bounds, fits
from .values import Dead, Element, Kind, Number, Opaque, Open, Ratio, Run, Value, shown

INTEGERS = {
    **{f"int{b}": (-(1 << b - 1), (1 << b - 1) - 1) for b in (2, 4, 8, 16, 32, 64)},
    **{f"uint{b}": (0, (1 << b) - 1) for b in (2, 4, 8, 16, 32, 64)},
}
"""The integer types with their least and greatest number."""
COMPUTED: Mapping[str, type[np.float32] | type[np.float64]] = {"float": np.float32, "double": np.float64}
"""The floating-point types whose arithmetic is computed."""
HALVES: Mapping[str, tuple[int, int]] = {"float16": (11, 1 << 15), "bfloat16": (8, 1 << 30)}
"""The types of 16 bits, whose numbers are known by bounds: the bits of a significand, and how far it is looked at."""
FLOATS = frozenset({
    "float", "double", "float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "float8e8m0", "float4e2m1", "float6e2m3", "float6e3m2",
})  # fmt: skip
OTHERS = frozenset({"bool", "string", "complex64", "complex128"})
TYPES = frozenset({*INTEGERS, *FLOATS, *OTHERS})
WIDE = frozenset({"int64", "uint64"})
"""Types in which no size is wrapped around: see `magnitude`."""
SIZES = 1 << 53
"""No tensor has so many elements."""


def rational_parts(number: Number) -> tuple[Int, int]:
    """Numerator and denominator."""
    match number:
        case Fraction():
            return number.numerator, number.denominator
        case Ratio(above, below):
            return above, below
        case _:
            return number, 1


def rational_of(above: Int, below: int) -> Number:
    """The quotient in its plainest form."""
    if isinstance(above, int):
        quotient = Fraction(above, below)
        return quotient.numerator if quotient.denominator == 1 else quotient
    return above if below == 1 else Ratio(above, below)


# ---- Numbers as elements ------------------------------------------------------------------------


def opaque(kind: str, name: str) -> Element:
    """An element of which nothing but its type is known."""
    return Element(kind, Opaque(f"{kind}:{name}"))


def as_element(kind: str, value: Value) -> Element:
    """A number, truth value or text as an element of the type, as `cast` of the text has it."""
    if isinstance(value, Element):
        return convert(kind, value)
    if isinstance(value, str):
        return Element("string", value)
    if kind == "bool":
        if isinstance(value, bool) or not isinstance(value, int | Poly | Fraction | Ratio):
            return Element(kind, cast("Formula", value))
        above, _ = rational_parts(value)
        return Element(kind, fm.opposite(fm.equal(above, 0)))
    if isinstance(value, bool):
        value = int(value)
    elif not isinstance(value, int | Poly | Fraction | Ratio):
        value = fm.chosen(cast("Formula", value), 1, 0)
    if kind in INTEGERS:
        if isinstance(value, Fraction):
            value = trunc(value)
        if isinstance(value, Ratio):
            return opaque(kind, shown(value))
        if isinstance(value, Poly) and kind in WIDE and not _of_elements(value):  # a size, or a position
            return Element(kind, value)
        return integral(kind, value)
    if kind in COMPUTED and isinstance(value, int | Fraction):
        return _rounded(kind, Fraction(value))
    if kind in HALVES and isinstance(value, int | Fraction) and _is_half(kind, Fraction(value)):
        return Element(kind, Opaque(f"{kind}:{shown(value)}", Fraction(value), Fraction(value), nan=False))
    return opaque(kind, shown(value))


def _is_half(kind: str, value: Fraction) -> bool:
    """A number is one of a type of 16 bits, and neither subnormal nor great, so that it is itself when converted."""
    precision, largest = HALVES[kind]
    if value == 0:
        return True
    power = value.denominator.bit_length() - 1
    exact = value.denominator == 1 << power and power <= 8
    return exact and abs(value.numerator).bit_length() <= precision and abs(value) <= largest


def integral(kind: str, value: Int) -> Element:
    """An integer in its type, wrapped around where it is too large."""
    low, high = INTEGERS[kind]
    if isinstance(value, int):
        return Element(kind, (value - low) % (high - low + 1) + low)
    least, most = bounds(value)
    kept = (low <= least and most <= high) or (kind in WIDE and fits(value, low, high))
    return Element(kind, value) if kept else opaque(kind, shown(value))


def _of_elements(value: Poly) -> bool:
    """Numbers occur that are larger than any size: elements of inputs, say."""
    ends = [end for symbol in fm.base_symbols(value) for end in (symbol.least, symbol.most) if end is not None]
    return any(abs(end) > SIZES for end in ends)


def _rounded(kind: str, value: Fraction) -> Element:
    """The nearest number of the type, ties to even."""
    if kind == "double":
        return Element(
            kind, np.float64(value.numerator / value.denominator)
        )  # Python divides integers correctly rounded
    with np.errstate(over="ignore"):
        near = np.float32(float(value))
        candidates = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    if value.denominator == 1 and abs(value.numerator) <= 1 << 24:
        return Element(kind, near)
    finite = [c for c in candidates if np.isfinite(c)]
    if not finite or not np.isfinite(near):
        return Element(kind, near)
    best = min(finite, key=lambda c: (abs(Fraction(float(c)) - value), int(c.view(np.uint32)) & 1))
    return Element(kind, best)


def convert(kind: str, element: Element) -> Element:
    """An element in another type."""
    value = element.value
    if element.kind == kind or not element.kind:
        return Element(kind, value)
    if isinstance(value, Opaque):
        return opaque(kind, f"cast({value.name})") if kind != "bool" else Element(kind, Unknown(f"cast({value.name})"))
    if isinstance(value, np.floating):
        number = float(value)
        if kind in COMPUTED:
            return Element(kind, COMPUTED[kind](value))
        if isnan(number) or isinf(number):
            return Element(kind, True) if kind == "bool" else opaque(kind, str(number))
        if kind == "bool":
            return Element(kind, number != 0)
        if kind in INTEGERS:
            low, high = INTEGERS[kind]
            return Element(kind, trunc(number)) if low <= trunc(number) <= high else opaque(kind, str(number))
        return opaque(kind, str(number))
    if isinstance(value, str):
        return Element(kind, value) if kind == "string" else opaque(kind, shown(value))
    if isinstance(value, Poly) and kind in INTEGERS:
        return integral(kind, value)
    return as_element(kind, cast("Value", value))


# ---- Elements as numbers ------------------------------------------------------------------------


def _bound(value: Fraction | None) -> int | None:
    return None if value is None else floor(value)


def as_integer(element: Element) -> Int:
    """The value of an element of an integer type."""
    value = element.value
    match value:
        case int() | Poly():
            return value
        case Opaque() if element.kind in INTEGERS:
            low, high = INTEGERS[element.kind]
            least, most = _bound(value.low), _bound(value.high)
            return fm.poly(
                Symbol(value.name, "data", least=low if least is None else least, most=high if most is None else most)
            )
        case _:
            raise Open(f"{shown(value)} is no integer that is known", data=True)


def as_rational(element: Element) -> Number | Opaque:
    """The exact value of an element; where it is no integer and not known, what stands for it."""
    value = element.value
    if isinstance(value, np.floating):
        if not np.isfinite(value):
            raise Dead
        return rational_of(*Fraction(float(value)).as_integer_ratio())
    if isinstance(value, Opaque) and element.kind not in INTEGERS:
        return value
    return as_integer(element)


def as_truth(element: Element) -> Formula:
    """An element of type bool is true."""
    value = element.value
    match value:
        case Opaque():
            return Unknown(value.name)
        case int() | Poly() if not isinstance(value, bool):
            return fm.opposite(fm.equal(value, 0))
        case np.floating() | str():
            raise Open(f"{value} is no truth value")
        case _:
            return value


# ---- Arithmetic and comparison ------------------------------------------------------------------


def calculate(operator: str, left: Element, right: Element) -> Element:
    """+, -, *, / of two elements of one type."""
    kind = left.kind or right.kind
    a, b = left.value, right.value
    if isinstance(a, np.floating) and isinstance(b, np.floating) and kind in COMPUTED:
        with np.errstate(all="ignore"):
            x, y = COMPUTED[kind](a), COMPUTED[kind](b)
            return Element(kind, COMPUTED[kind](_ARITHMETIC[operator](x, y)))
    if kind in INTEGERS and isinstance(a, int | Poly) and isinstance(b, int | Poly):
        match operator:
            case "add":
                return integral(kind, fm.add(a, b))
            case "sub":
                return integral(kind, fm.subtract(a, b))
            case "mul":
                return integral(kind, fm.multiply(a, b))
            case _ if isinstance(b, int) and b:
                if isinstance(a, int):
                    return integral(kind, trunc(Fraction(a, b)))
                if b > 0 and bounds(a)[0] >= 0:
                    return integral(kind, fm.floor_div(a, b))
    return opaque(kind, f"({shown(left)} {operator} {shown(right)})")


_ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "quotient": np.divide}
"""Arithmetic of floating-point numbers, each operation rounded once."""


def less(relation: str, left: Element, right: Element) -> Formula:
    """A comparison of two elements of one type."""
    a, b = left.value, right.value
    if isinstance(a, np.floating) and isinstance(b, np.floating):
        return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "=": a == b, "!=": a != b}[relation])
    if isinstance(a, str) and isinstance(b, str):
        return a == b if relation == "=" else a != b
    if (left.kind or right.kind) == "bool":
        one, other = as_truth(left), as_truth(right)
        same = fm.either(fm.both(one, other), fm.both(fm.opposite(one), fm.opposite(other)))
        return same if relation == "=" else fm.opposite(same)
    if (left.kind or right.kind) in INTEGERS:
        return relate(relation, as_integer(left), as_integer(right))
    known = _by_bounds(relation, a, b)
    if known is not None:
        return known
    return Unknown(f"({shown(left)} {relation} {shown(right)})")


def _by_bounds(relation: str, a: object, b: object) -> bool | None:
    """The outcome, by the bounds of an element that is not known, of a comparison with a number, or with an element
    whose bounds are one number."""
    if isinstance(b, Opaque) and b.low is not None and b.low == b.high and not b.nan and isinstance(a, Opaque):
        return _compared(relation, a, b.low)
    if isinstance(a, np.floating) and isinstance(b, Opaque):
        return _by_bounds({"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(relation, relation), b, a)
    if not isinstance(a, Opaque) or not isinstance(b, np.floating) or a.nan or a.low is None or a.high is None:
        return None
    if not np.isfinite(b):
        return None
    return _compared(relation, a, Fraction(float(b)))


def _compared(relation: str, a: Opaque, number: Fraction) -> bool | None:
    """The outcome, by the bounds of an element, of a comparison with a number."""
    if a.nan or a.low is None or a.high is None:
        return None
    truths = {
        "<": (a.high < number, a.low >= number), "<=": (a.high <= number, a.low > number),
        ">": (a.low > number, a.high <= number), ">=": (a.low >= number, a.high < number),
        "!=": (a.low > number or a.high < number, a.low == a.high == number),
        "=": (a.low == a.high == number, a.low > number or a.high < number),
    }  # fmt: skip
    always, never = truths[relation]
    return True if always else False if never else None


def relate(relation: str, left: Number, right: Number) -> Formula:
    """A comparison of two exact numbers."""
    (a, b), (c, d) = rational_parts(left), rational_parts(right)
    x, y = (a, c) if b == d else (fm.multiply(a, d), fm.multiply(c, b))
    match relation:
        case "=":
            return fm.equal(x, y)
        case "!=":
            return fm.opposite(fm.equal(x, y))
        case "<=":
            return fm.at_least(y, x)
        case ">=":
            return fm.at_least(x, y)
        case "<":
            return fm.at_least(y, fm.add(x, 1))
        case _:
            return fm.at_least(x, fm.add(y, 1))


def negative(element: Element) -> Element:
    """The element with the other sign."""
    value = element.value
    if isinstance(value, np.floating):
        return Element(element.kind, cast("np.floating", np.negative(value)))
    if isinstance(value, int | Poly) and element.kind in INTEGERS:
        return integral(element.kind, fm.negate(value))
    return opaque(element.kind, f"-{shown(element)}")


def merged(condition: Formula, left: Element, right: Element) -> Element:
    """The one or the other."""
    kind = left.kind or right.kind
    if left.value == right.value and type(left.value) is type(right.value):
        return left
    if kind == "bool":
        one, other = as_truth(left), as_truth(right)
        return Element(kind, fm.either(fm.both(condition, one), fm.both(fm.opposite(condition), other)))
    if kind in INTEGERS:
        return Element(kind, fm.chosen(condition, as_integer(left), as_integer(right)))
    return opaque(kind, f"if({shown(condition)},{shown(left)},{shown(right)})")


_FLOATING = {
    "sqrt": np.sqrt, "round_down": np.floor, "round_up": np.ceil, "round_even": np.rint,
}  # fmt: skip
"""Functions that are exact, or rounded once, in NumPy."""


def function(name: str, arguments: list[Element]) -> Element:
    """A function of elements where it is exact; elsewhere the result is not known."""
    kind = next((a.kind for a in arguments if a.kind), "")
    value = arguments[0].value
    if name in _FLOATING and isinstance(value, np.floating):
        with np.errstate(all="ignore"):
            return Element(kind, COMPUTED[kind](_FLOATING[name](value)))
    if name in ("round_down", "round_up", "round_even") and kind in INTEGERS:
        return arguments[0]
    if kind in INTEGERS and name in ("remainder", "power", "bit_and") and len(arguments) == 2:
        a, b = arguments[0].value, arguments[1].value
        if isinstance(a, int) and isinstance(b, int):
            if name == "remainder" and b:
                return integral(kind, a - b * trunc(Fraction(a, b)))
            if name == "bit_and":
                return integral(kind, a & b)
            if name == "power" and 0 <= b <= 64:
                return integral(kind, a**b)
    return opaque(kind, f"{name}({','.join(map(shown, arguments))})")


def tested(name: str, element: Element) -> Formula:
    """An element is a NaN, or an infinity."""
    value = element.value
    if isinstance(value, np.floating):
        return bool(np.isnan(value) if name == "is_nan" else np.isinf(value))
    if not isinstance(value, Opaque) or element.kind in INTEGERS or element.kind == "bool":
        return False
    if name == "is_nan" and not value.nan:
        return False
    if name == "is_infinite" and value.low is not None and value.high is not None and not value.nan:
        return False
    return Unknown(f"{name}({value.name})")


def extreme(run: Run, left: Element, right: Element, *, least: bool) -> Element:
    """The smaller or the greater element."""
    kind = left.kind or right.kind
    a, b = left.value, right.value
    if isinstance(a, np.floating) and isinstance(b, np.floating):
        with np.errstate(all="ignore"):
            return Element(kind, COMPUTED[kind]((np.minimum if least else np.maximum)(a, b)))
    if kind in INTEGERS and isinstance(a, int | Poly) and isinstance(b, int | Poly):
        order = run.decided(fm.at_least(b, a))
        if order is not None:
            return left if order is least else right
        return Element(kind, fm.chosen(fm.at_least(b, a), *((a, b) if least else (b, a))))
    return opaque(kind, f"{'min' if least else 'max'}({shown(left)},{shown(right)})")


def kind_of(value: Value) -> Kind:
    """A value that is a type."""
    if isinstance(value, Kind):
        return value
    raise Open("no type is known here")
