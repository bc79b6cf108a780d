"""Numbers as elements and elements of one type as elements of another, each rounded once to nearest, ties to even."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np

from ....errors import InternalError, Unsupported
from ....model.elements import (
    DOUBLE,
    WIDE,
    DType,
    bits,
    element_of,
    finfo,
    finite_range,
    integer_range,
    is_float,
    is_integer,
)
from ...reading import OF_STRINGS
from ..terms import STRINGS, Array

Operation = Callable[..., Array]
"""Arrays to an array; takes an array for the result as last argument where `takes_out` says so."""


def constant(dtype: DType, value: float | Fraction) -> Array:
    """An exact number as an element: rounded to nearest even, or truncated and wrapped around for integers."""
    if dtype == np.bool_:
        return np.asarray(value != 0)
    if isinstance(value, float):
        return np.asarray(narrow(np.asarray(value), dtype))
    if is_integer(dtype):
        low, high = integer_range(dtype)
        wrapped = (math.trunc(value) - low) % (high - low + 1) + low
        wide: DType = np.dtype(np.uint64 if low == 0 else np.int64)
        return np.asarray(wrapped, dtype=wide).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(complex(value), dtype=dtype)
    if not is_float(dtype):
        raise Unsupported(f"a number as an element of type {element_of(dtype)}")
    info = finfo(dtype)
    exact = Fraction(value)
    if dtype.name == "float8_e8m0fnu":
        return np.asarray(max(float(exact), 2.0**-127)).astype(dtype)
    if exact == 0:
        return np.asarray(0.0).astype(dtype)
    exponent = max(_exponent(abs(exact)), int(info.minexp))
    quantum = Fraction(2) ** (exponent - int(info.nmant))
    rounded = round(exact / quantum) * quantum
    try:
        return np.asarray(float(rounded)).astype(dtype)
    except OverflowError:
        return np.asarray(math.inf if exact > 0 else -math.inf).astype(dtype)


def _exponent(x: Fraction) -> int:
    """floor(log2(x))."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def narrow(x: Array, dtype: DType) -> Array:
    """Doubles rounded once to a floating-point type."""
    if dtype in WIDE:
        return x.astype(dtype)
    return _to_odd(np.asarray(x)).astype(dtype)


def _to_odd(x: Array) -> Array:
    """Doubles rounded to float so that a second rounding to a type of less than 23 bits is correct: an inexact result
    is the neighbour with an odd last bit.
    """
    near = x.astype(np.float32)
    wide = near.astype(np.float64)
    inexact = (wide != x) & ~np.isnan(x)
    code = near.view(np.uint32) - (inexact & (np.abs(wide) > np.abs(x)))
    odd: Array = (code | inexact).astype(np.uint32).view(np.float32)
    return odd


def to_double(x: Array) -> Array:
    """Floating-point elements as doubles, exactly."""
    return x.astype(np.float64)


@cache
def cast(source: DType, target: DType) -> Operation:
    """The conversion of elements. Where any value is allowed it is the nearest one of the type, 0 for a NaN.

    For integers below a byte it is the low bits of the nearest int64, which ONNX's own tests expect (onnx 1.23,
    test_cast_FLOAT_to_INT4).
    """
    if source == target:
        return lambda x: x
    if target == STRINGS:
        from .numerals import spelling

        return spelling(source)
    if source == STRINGS:
        return _from_texts(target)
    if target == np.bool_:
        if is_float(source) and source not in WIDE:
            return lambda x: x.astype(np.float32) != 0  # the zeros of float8e8m0, which has no 0, are none
        return lambda x: x != np.zeros((), source)
    if target.kind == "c" or source.kind == "c" or source == np.bool_:
        return lambda x: x.astype(target)
    if is_float(source):
        if is_float(target):
            if source not in WIDE and target not in WIDE:
                return lambda x: x.astype(np.float32).astype(target)  # ml_dtypes lacks some of the direct conversions
            return (lambda x: narrow(to_double(x), target)) if source == DOUBLE else (lambda x: x.astype(target))
        if bits(target) < 8:
            return lambda x: wrap(float_to_integer(to_double(x), np.dtype(np.int64)), target)
        return lambda x: float_to_integer(to_double(x), target)
    if is_integer(target):
        return lambda x: wrap(x, target)
    if target in WIDE:
        return lambda x: x.astype(target)
    return lambda x: narrow(_integers_to_double(x), target)


def _from_texts(target: DType) -> Operation:
    from . import numerals  # few models have strings

    if is_float(target):
        if target == DOUBLE:
            return lambda x: numerals.numbers(x, numerals.number_of, DOUBLE)
        return lambda x: narrow(numerals.numbers(x, numerals.odd_of, DOUBLE), target)
    if is_integer(target):
        return lambda x: wrap(numerals.numbers(x, numerals.integer_of, STRINGS), target)
    raise Unsupported(f"strings as elements of type {element_of(target)}")


def _integers_to_double(x: Array) -> Array:
    """Integers as doubles, exactly or so that rounding to fewer than 50 bits is correct."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    low = (x & x.dtype.type(2047)) != 0
    large = (x > 2**53) | (x < -(2**53)) if x.dtype.kind == "i" else x > 2**53
    return np.where(large, ((x >> 11) | low) << 11, x).astype(np.float64)


def float_to_integer(x: Array, target: DType) -> Array:
    """Doubles truncated toward zero; the nearest value of the type outside its range, 0 for a NaN."""
    low, high = integer_range(target)
    whole = np.trunc(x)
    inside = (whole >= low) & (whole < high + 1)
    wide = np.uint64 if low == 0 else np.int64
    exact = np.where(inside, whole, 0).astype(wide)
    limits = np.where(whole < low, np.asarray(low, wide), np.asarray(high, wide))
    return np.where(inside | np.isnan(x), exact, limits).astype(target)


def wrap(x: Array, target: DType) -> Array:
    """Integers modulo the size of an integer type."""
    if bits(target) >= 8:
        if x.dtype == object:
            low, high = integer_range(target)
            return np.asarray((x - low) % (high - low + 1) + low, object).astype(target)
        return (x.astype(np.int64) if x.dtype.itemsize == 1 and x.dtype.kind not in "iub" else x).astype(target)
    size = 1 << bits(target)
    small = (x if x.dtype == object else x.astype(np.int64)) % size
    if integer_range(target)[0] < 0:
        small = np.where(small >= size // 2, small - size, small)
    return small.astype(np.int8).astype(target)


def integers_to(target: DType) -> Operation:
    """int64 or Python integers as elements. Raises Unsupported for strings."""
    if target == STRINGS:
        raise Unsupported("a number that is no element as a string")

    def convert(x: Array) -> Array:
        if target == np.bool_:
            truth: Array = (x != 0).astype(bool)
            return truth
        if is_integer(target):
            return wrap(x, target)
        if x.dtype == object:
            return each(lambda value: constant(target, value), target)(x)
        return x.astype(target) if target in WIDE or target.kind == "c" else narrow(_integers_to_double(x), target)

    return convert


def rationals_to(target: DType) -> Operation:
    """An object array of Fractions as elements."""
    return each(lambda value: constant(target, value), target)


def quotients_to(target: DType) -> Callable[[Array, int], Array]:
    """numerators / denominator as elements."""

    def convert(values: Array, den: int) -> Array:
        small = values.dtype != object and den < 1 << 53 and is_float(target)
        if not small or (values.size and int(np.abs(values).max()) >= 1 << 53):
            return each(lambda value: constant(target, Fraction(int(value), den)), target)(values)
        exact = values.astype(np.float64)
        near = exact / float(den)
        if target == DOUBLE or den & (den - 1) == 0:
            return narrow(near, target)
        rest = (exact - near * float(den)) - _product_error(near, float(den))
        inexact = rest != 0
        code = near.view(np.uint64) - (inexact & ((rest < 0) != (near < 0)))
        return narrow((code | inexact).astype(np.uint64).view(np.float64), target)

    return convert


def _product_error(x: Array, y: float) -> Array:
    """x * y minus the double nearest to it, exact (Dekker's product)."""
    factor = 134217729.0
    high_x, high_y = factor * x - (factor * x - x), factor * y - (factor * y - y)
    low_x, low_y = x - high_x, y - high_y
    return ((high_x * high_y - x * y) + high_x * low_y + low_x * high_y) + low_x * low_y


def each(function: Callable[[Any], Array], target: DType) -> Operation:
    """An operation from a function of one element."""

    def convert(x: Array) -> Array:
        x = np.asarray(x)
        out = np.empty(x.shape, target)
        flat = out.reshape(-1)
        for position, value in enumerate(x.reshape(-1).tolist() if x.dtype != object else x.reshape(-1)):
            flat[position] = function(value)
        return out

    return convert


@cache
def saturate(source: DType | None, target: DType) -> Operation:
    """The conversion of elements, or of exact numbers (source None), limited to the finite range of the target."""
    low, high = finite_range(target)
    if source is None:

        def exact(x: Array) -> Array:
            limit = each(lambda v: constant(target, min(max(_whole(v, target), low), high)), target)
            return limit(np.asarray(x))

        return exact
    if source == STRINGS:
        from . import numerals

        if is_float(target):
            limited = saturate(DOUBLE, target)
            return lambda x: limited(numerals.numbers(x, numerals.odd_of, DOUBLE))
        whole = saturate(None, target)
        return lambda x: whole(numerals.numbers(x, numerals.integer_of, STRINGS))
    if not is_float(source):
        if is_float(target):
            convert = cast(source, target)
            top, bottom = constant(target, high), constant(target, low)
            return lambda x: np.where(np.isfinite(to_double(convert(x))), convert(x), np.where(x > 0, top, bottom))
        return lambda x: _clipped(np.asarray(x), int(low), int(high)).astype(target)
    if is_float(target):
        limits = float(low), float(high)
        return lambda x: narrow(np.clip(to_double(np.asarray(x)), *limits), target)
    return lambda x: float_to_integer(np.rint(to_double(np.asarray(x))), target)


def _clipped(x: Array, low: int, high: int) -> Array:
    wide = x.astype(np.uint64 if x.dtype == np.uint64 else np.int64)
    least = 0 if wide.dtype == np.uint64 else -(2**63)
    most = 2**64 - 1 if wide.dtype == np.uint64 else 2**63 - 1
    return np.clip(wide, max(low, least), min(high, most))


def _whole(value: float | Fraction, target: DType) -> Fraction:
    exact = Fraction(value)
    return Fraction(round(exact)) if is_integer(target) else exact


@cache
def reinterpret(source: DType, target: DType) -> Operation:
    """Elements with the same binary digits. Raises InternalError where the types have not equally many."""
    if source.itemsize != target.itemsize or object in (source, target):
        raise InternalError(f"the digits of {source} as {target}")
    return lambda x: np.ascontiguousarray(x, source).view(target).reshape(np.shape(x))


# maximum and minimum of elements: of 0.0 and -0.0 the greater is 0.0 (IEEE 754-2019, 9.6), a NaN wins.
# NumPy leaves to the processor which of the two zeros it gives.


@dataclass(frozen=True, slots=True)
class Extreme:
    """The greater or the lesser of two floating-point arrays, and the fold of it along an axis. function: NumPy's."""

    function: np.ufunc

    def __call__(self, a: Array, b: Array, out: Array | None = None) -> Array:
        """Element by element."""
        zeros = np.logical_and(a == 0, b == 0)
        if not np.any(zeros):
            return np.asarray(self.function(a, b, out=out))
        both = np.asarray(a + b if self.function is np.maximum else -(-a + -b))
        result = np.asarray(self.function(a, b, out=out))
        np.copyto(result, both, where=zeros)
        return result

    def accumulate(self, terms: Array, axis: int) -> Array:
        """The folds of all beginnings of a matrix along axis 1; the sign of a zero is exact in the last one alone."""
        result = np.asarray(self.function.accumulate(terms, axis=axis))
        rows = result[:, -1] == 0
        if rows.any():
            some = terms[rows]
            wins = np.signbit(some) == (self.function is np.minimum)
            greater = ((some == 0) & wins).any(axis=1) == (self.function is np.maximum)
            result[rows, -1] = np.where(greater, 0.0, -0.0).astype(result.dtype)
        return result


# Elements in IEEE arithmetic: each operation in the element type, rounded to nearest, ties to even, after every step.
# NumPy and ml_dtypes compute the types below float in float and round; for + - * / and the square root that is the
# correctly rounded result (float has more than twice the precision plus two bits). Functions without an exact value are
# computed in double and rounded once.


def powers(a: Array, b: Array) -> Array:
    """a to the power b as IEEE 754 has it (pow of 9.2.1). NumPy takes the square root for an exponent of 0.5 that it
    need not step through, which keeps the sign of -0.0 and has no value for -inf.
    """
    found: Array = np.power(a, b)
    half = b == 0.5
    if half.any():
        found = np.asarray(np.where(half & (a == 0), 0.0, np.where(half & (a == -np.inf), np.inf, found)))
    return found


def power(base: DType, exponent: DType) -> Operation:
    """The power of elements of two types, in the type of the base."""
    if is_integer(base) and is_integer(exponent):
        return integer_power(base)
    if is_integer(base):
        return lambda a, b: float_to_integer(powers(a.astype(np.float64), to_double(np.asarray(b))), base)
    return lambda a, b: narrow(powers(to_double(np.asarray(a)), np.asarray(b).astype(np.float64)), base)


def _quotient(a: Array, b: Array) -> Array:
    """Integers divided, truncated toward zero; 0 where the divisor is 0."""
    down = np.floor_divide(a, b)
    rest = a - down * b
    quotient: Array = down + ((rest != 0) & ((rest < 0) != (a < 0)) & (b != 0)).astype(down.dtype)
    return quotient


def _through_double(function: Callable[[Array], Array]) -> Callable[[DType], Operation]:
    def make(dtype: DType) -> Operation:
        return lambda x: narrow(function(to_double(np.asarray(x))), dtype)

    return make


def _absolute(dtype: DType) -> Operation:
    return np.absolute


def _rounding(function: Callable[[Array], Array]) -> Callable[[DType], Operation]:
    def make(dtype: DType) -> Operation:
        if dtype in WIDE:
            return function
        return lambda x: np.asarray(function(np.asarray(x).astype(np.float32))).astype(dtype)

    return make


def _power(dtype: DType) -> Operation:
    if is_integer(dtype):
        return integer_power(dtype)
    return lambda a, b: narrow(powers(to_double(np.asarray(a)), to_double(np.asarray(b))), dtype)


def integer_power(dtype: DType) -> Operation:
    """By squaring, wrapped around; 0 for a negative exponent unless the base is 1 or -1."""

    def power(a: Array, b: Array) -> Array:
        whole = np.asarray(b) if np.asarray(b).dtype == np.uint64 else np.asarray(b).astype(np.int64)
        base, exponent = np.broadcast_arrays(np.asarray(a), whole)
        result = np.ones(base.shape, dtype)
        rest, square = np.abs(exponent), base
        while rest.any():
            result = np.where(rest & 1, result * square, result)
            square, rest = square * square, rest >> 1
        unit = (base == 1) | (base == np.asarray(-1).astype(dtype)) if integer_range(dtype)[0] else base == 1
        return np.where((exponent < 0) & ~unit, np.zeros((), dtype), result)

    return power


def _remainder(dtype: DType) -> Operation:
    if is_integer(dtype):
        return lambda a, b: np.fmod(a, np.where(b == 0, np.ones((), dtype), b))
    return lambda a, b: narrow(np.fmod(to_double(np.asarray(a)), to_double(np.asarray(b))), dtype)


def _bit_and(dtype: DType) -> Operation:
    if dtype.kind in "iu":
        return np.bitwise_and
    return lambda a, b: (np.asarray(a).astype(np.int8) & np.asarray(b).astype(np.int8)).astype(dtype)


def _extreme(function: np.ufunc) -> Callable[[DType], Operation]:
    signed = Extreme(function)

    def make(dtype: DType) -> Operation:
        if dtype.kind in "fiu":
            return signed if dtype.kind == "f" else function
        if is_integer(dtype):
            return lambda a, b: function(np.asarray(a).astype(np.int8), np.asarray(b).astype(np.int8)).astype(dtype)
        return lambda a, b: signed(np.asarray(a).astype(np.float32), np.asarray(b).astype(np.float32)).astype(dtype)

    return make


def _predicate(function: Callable[[Array], Array]) -> Callable[[DType], Operation]:
    def make(dtype: DType) -> Operation:
        if dtype.kind == "c":
            return lambda x: np.asarray(function(np.asarray(x)))
        if not is_float(dtype):
            return lambda x: np.zeros(np.shape(x), bool)
        return lambda x: np.asarray(function(np.asarray(x).astype(np.float32 if dtype != DOUBLE else dtype)))

    return make


_erf: Final = np.frompyfunc(math.erf, 1, 1)


def _numpy(function: Operation) -> Callable[[DType], Operation]:
    return lambda dtype: function


OPERATIONS: Final[Mapping[str, Callable[[DType], Operation]]] = {
    "add": _numpy(np.add),
    "sub": _numpy(np.subtract),
    "mul": _numpy(np.multiply),
    "quotient": lambda dtype: _quotient if is_integer(dtype) else np.divide,
    "neg": _numpy(np.negative),
    "min": _extreme(np.minimum),
    "max": _extreme(np.maximum),
    "absolute": _absolute,
    "power": _power,
    "remainder": _remainder,
    "bit_and": _bit_and,
    "is_nan": _predicate(np.isnan),
    "is_infinite": _predicate(np.isinf),
    "round_even": _rounding(np.rint),
    "round_down": _rounding(np.floor),
    "round_up": _rounding(np.ceil),
    "sqrt": lambda dtype: np.sqrt if dtype in WIDE else _through_double(np.sqrt)(dtype),
    "asin": _through_double(np.arcsin),
    "acos": _through_double(np.arccos),
    "atan": _through_double(np.arctan),
    "asinh": _through_double(np.arcsinh),
    "acosh": _through_double(np.arccosh),
    "atanh": _through_double(np.arctanh),
    "erf": _through_double(lambda x: np.asarray(_erf(x)).astype(np.float64)),
    **{
        name: _through_double(getattr(np, name)) for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
}
"""For each operation on elements of one type what it is for a type."""


@cache
def operation(name: str, dtype: DType) -> Operation:
    """The operation on elements of a type. Raises InternalError for one that the language does not have."""
    if name in OF_STRINGS:
        from .text import TEXT  # few models have strings

        return TEXT[name]
    try:
        make = OPERATIONS[name]
    except KeyError:
        raise InternalError(f"no operation {name} on elements") from None
    return make(dtype)


def takes_out(function: Operation) -> bool:
    """True if the operation can write into an array given as last argument."""
    return isinstance(function, (np.ufunc, Extreme)) and function is not _erf


@dataclass(frozen=True, slots=True)
class ElementTable:
    """The questions of the evaluator about elements; another table of the same form is another interpretation.

    storage: the dtype of arrays that hold elements of a type. enter: a tensor of the model as such an array.
    lift: a tensor of the model, which may lie in the frame as it is, as such an array. known: such an array as one of
    the elements themselves; raises Unsupported where it does not tell them. codes: what computes an operation on terms
    other than the table LOWER says. block: the outputs of a block with a fold, 0 for as many as stay in the cache.
    cells: those of a block without one, 0 likewise. keep: a tensor that has been computed as it is kept in the frame.
    between: a tensor of doubles of which only the shape and two ends are known; None where elements have to be known.
    """

    name: str
    storage: Callable[[DType], DType]
    enter: Callable[[Array], Array]
    constant: Callable[[DType, float | Fraction], Array]
    operation: Callable[[str, DType], Operation]
    cast: Callable[[DType, DType], Operation]
    integers_to: Callable[[DType], Operation]
    rationals_to: Callable[[DType], Operation]
    quotients_to: Callable[[DType], Callable[[Array, int], Array]]
    saturate: Callable[[DType | None, DType], Operation]
    power: Callable[[DType, DType], Operation]
    reinterpret: Callable[[DType, DType], Operation]
    lift: Callable[[DType], Operation] = lambda dtype: lambda x: x
    known: Operation = lambda x: x
    codes: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    block: int = 0
    cells: int = 0
    keep: Operation | None = None
    between: Callable[[tuple[int, ...], float, float], Array] | None = None


IEEE: Final = ElementTable(
    "ieee",
    lambda dtype: dtype,
    lambda x: x,
    constant,
    operation,
    cast,
    integers_to,
    rationals_to,
    quotients_to,
    saturate,
    power,
    reinterpret,
)
