"""Elements as exact numbers: the second table that the evaluator of operator texts runs on.

A number is a Fraction or an int in an object array; nothing is rounded and no sum wraps around. What has no exact value
(an infinity, a NaN, most values of exp) is Unsupported: the interpretation is partial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cache, partial
from typing import Final

import numpy as np

from ....errors import Unsupported
from ....model.elements import DType, finite_range, integer_range, is_float, is_integer
from ...reading import OF_STRINGS
from ..terms import Array
from . import ieee, numerals
from .ieee import ElementTable, Operation

Number = int | Fraction
_OBJECT: Final = np.dtype(object)


def storage(dtype: DType) -> DType:
    """Truth values stay what they are, everything else is an object."""
    return dtype if dtype == np.bool_ else _OBJECT


def enter(x: Array) -> Array:
    """A tensor of the model, exact."""
    if x.dtype == np.bool_ or x.dtype == _OBJECT:
        return np.ascontiguousarray(x) if x.ndim else x
    if x.dtype.kind == "c":
        raise Unsupported("complex numbers in the exact interpretation")
    plain = x if x.dtype.kind in "iu" else x.astype(np.float64 if is_float(x.dtype) else np.int64)
    return _mapped(_number, plain)


def _number(value: float | Fraction) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise Unsupported("an infinity or a NaN in the exact interpretation")
    exact = Fraction(value)
    return int(exact) if isinstance(value, int) else exact


def _mapped(function: Callable[..., object], *arrays: Array) -> Array:
    """The function of the elements, in an object array."""
    values = [np.asarray(x) for x in arrays]
    shape = np.broadcast_shapes(*(x.shape for x in values))
    out = np.empty(shape, _OBJECT)
    flat = out.reshape(-1)
    columns = [np.broadcast_to(x, shape).reshape(-1).tolist() for x in values]
    for position, row in enumerate(zip(*columns, strict=True)):
        flat[position] = function(*row)
    return out


def each(function: Callable[..., object]) -> Operation:
    """An operation from a function of elements."""
    return lambda *arrays: _mapped(function, *arrays)


def constant(dtype: DType, value: float | Fraction) -> Array:
    """A number as an element; an infinity stays one, as the start of a maximum."""
    if dtype == np.bool_:
        return np.asarray(value != 0)
    out = np.empty((), _OBJECT)
    if isinstance(value, float) and math.isinf(value):
        out[()] = value
    else:
        out[()] = _wrapped(math.trunc(value), dtype) if is_integer(dtype) else _number(value)
    return out


def _wrapped(value: int, dtype: DType) -> int:
    low, high = integer_range(dtype)
    return (value - low) % (high - low + 1) + low


@cache
def cast(source: DType, target: DType) -> Operation:
    """The conversion of elements: only what is truncated or wrapped changes."""
    if source == target:
        return lambda x: x
    if target == _OBJECT:
        raise Unsupported("which spelling of a number is open")
    if source == _OBJECT:
        convert, read = numbers_to(target), each(partial(_spelled, whole=is_integer(target)))
        return lambda x: convert(read(x))
    if target == np.bool_:
        return lambda x: np.asarray(np.asarray(x) != 0).astype(bool)
    return numbers_to(target)


def _spelled(text: bytes, *, whole: bool) -> Number:
    """The exact number that a string spells."""
    near = numerals.number_of(text)
    if whole or (math.isfinite(near) and (near != 0 or numerals.is_exact(text, near))):
        return numerals.integer_of(text) if whole else Fraction(Decimal(text.decode())) if near else Fraction(0)
    raise Unsupported("a string that spells an infinity, a NaN, or a number beyond those of double")


def numbers_to(target: DType) -> Operation:
    """Integers, rationals and truth values as elements."""
    if target == np.bool_:
        return lambda x: np.asarray(np.asarray(x) != 0).astype(bool)
    if is_integer(target):
        return each(lambda v: _wrapped(math.trunc(v), target))
    return each(Fraction)


def quotients_to(target: DType) -> Callable[[Array, int], Array]:
    """numerators / denominator as elements."""
    convert = numbers_to(target)
    return lambda values, den: convert(_mapped(lambda v: Fraction(v, den), values))


def saturate(source: DType | None, target: DType) -> Operation:
    """Numbers limited to the range of a type; to an integer type rounded, ties to even."""
    if source == _OBJECT:
        limit, read = saturate(None, target), each(partial(_spelled, whole=is_integer(target)))
        return lambda x: limit(read(x))
    low, high = finite_range(target)
    if is_integer(target):
        return each(lambda v: int(min(max(round(v), low), high)))
    return each(lambda v: min(max(Fraction(v), low), high))


def power(base: DType, _exponent: DType) -> Operation:
    """a to the power b, for integers b."""

    def one(a: Number, b: Number) -> Number:
        exponent = Fraction(b)
        if exponent.denominator != 1 or (a == 0 and exponent < 0):
            raise Unsupported("a power without an exact value")
        result = Fraction(a) ** int(exponent)
        return math.trunc(result) if is_integer(base) else result

    return each(one)


def reinterpret(source: DType, target: DType) -> Operation:
    """Elements with the same binary digits, for numbers that are elements of the source."""
    plain = ieee.reinterpret(source, target)

    def operation(x: Array) -> Array:
        stored = ieee.each(lambda v: ieee.constant(source, Fraction(v)), source)(x)
        if any(Fraction(float(a)) != b for a, b in zip(stored.reshape(-1), np.reshape(x, -1), strict=True)):
            raise Unsupported("the digits of a number that is no element")
        return enter(plain(stored))

    return operation


def _divide(a: Number, b: Number) -> Number:
    if b == 0:
        raise Unsupported("a division by zero in the exact interpretation")
    return Fraction(a) / Fraction(b)


def _truncating(a: int, b: int) -> int:
    return math.trunc(Fraction(a, b)) if b else 0


def _remainder(a: Number, b: Number) -> Number:
    if b == 0:
        raise Unsupported("a remainder by zero in the exact interpretation")
    return a - math.trunc(Fraction(a) / Fraction(b)) * b


def _only(name: str, argument: int, value: int) -> Operation:
    """A function whose exact value is known at one argument."""

    def one(x: Number) -> Number:
        if x != argument:
            raise Unsupported(f"{name}({x}) has no exact value")
        return Fraction(value)

    return each(one)


def _root(x: Number) -> Number:
    exact = Fraction(x)
    if exact >= 0:
        top, bottom = math.isqrt(exact.numerator), math.isqrt(exact.denominator)
        if top * top == exact.numerator and bottom * bottom == exact.denominator:
            return Fraction(top, bottom)
    raise Unsupported(f"sqrt({x}) has no exact value")


_KNOWN: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf"), (0, 0)),
    **dict.fromkeys(("exp", "cos", "cosh"), (0, 1)),
    **dict.fromkeys(("log", "acos", "acosh"), (1, 0)),
}
"""The argument at which a function has an exact value, and the value."""


def _of_text(function: Operation) -> Operation:
    return lambda *arrays: np.asarray(function(*arrays)).astype(object)


_OPERATIONS: Final[Mapping[str, Operation]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "min": np.minimum,
    "max": np.maximum,
    "absolute": np.absolute,
    "is_nan": lambda x: np.zeros(np.shape(x), bool),
    "is_infinite": lambda x: np.zeros(np.shape(x), bool),
    "remainder": each(_remainder),
    "bit_and": each(lambda a, b: int(a) & int(b)),
    "round_even": each(lambda v: Fraction(round(v))),
    "round_down": each(lambda v: Fraction(math.floor(v))),
    "round_up": each(lambda v: Fraction(math.ceil(v))),
    "sqrt": each(_root),
    **{name: _only(name, *known) for name, known in _KNOWN.items()},
}


def operation(name: str, dtype: DType) -> Operation:
    """The operation on elements of a type."""
    if name == "quotient":
        return each(_truncating if is_integer(dtype) else _divide)
    if name == "power":
        return power(dtype, dtype)
    if name in OF_STRINGS:
        from .text import TEXT

        return _of_text(TEXT[name])
    return _OPERATIONS[name]


EXACT: Final = ElementTable(
    "exact",
    storage,
    enter,
    constant,
    operation,
    cast,
    numbers_to,
    numbers_to,
    quotients_to,
    saturate,
    power,
    reinterpret,
)
