"""Elements in IEEE arithmetic: each operation in the element type, rounded to nearest, ties to even, after every step.

NumPy and ml_dtypes compute the types below float in float and round; for + - * / and the square root that is the
correctly rounded result (float has more than twice the precision plus two bits). Functions without an exact value are
computed in double and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np

from ....errors import InternalError
from ..conversions import (
    Operation,
    cast,
    constant,
    float_to_integer,
    integers_to,
    narrow,
    quotients_to,
    rationals_to,
    saturate,
    to_double,
)
from ..extremes import Extreme
from ..terms import Array, DType
from ..types import DOUBLE, WIDE, integer_range, is_float, is_integer


def power(base: DType, exponent: DType) -> Operation:
    """The power of elements of two types, in the type of the base."""
    if is_integer(base) and is_integer(exponent):
        return integer_power(base)
    if is_integer(base):
        return lambda a, b: float_to_integer(np.power(a.astype(np.float64), to_double(np.asarray(b))), base)
    return lambda a, b: narrow(np.power(to_double(np.asarray(a)), np.asarray(b).astype(np.float64)), base)


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
    return lambda a, b: narrow(np.power(to_double(np.asarray(a)), to_double(np.asarray(b))), dtype)


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
    "is_nan": _predicate(np.isnan),
    "is_infinite": _predicate(np.isinf),
    "round_even": _rounding(np.rint),
    "round_down": _rounding(np.floor),
    "round_up": _rounding(np.ceil),
    "truncate": _rounding(np.trunc),
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
    try:
        make = OPERATIONS[name]
    except KeyError:
        raise InternalError(f"no operation {name} on elements") from None
    return make(dtype)


def takes_out(function: Operation) -> bool:
    """Whether the operation can write into an array given as last argument."""
    return isinstance(function, (np.ufunc, Extreme)) and function is not _erf


@dataclass(frozen=True, slots=True)
class Algebra:
    """What the evaluator asks of elements; another table of the same form is another interpretation.

    storage: the dtype of arrays that hold elements of a type. enter: a tensor of the model as such an array.
    lift: a tensor of the model, which may lie in the frame as it is, as such an array. known: such an array as one of
    the elements themselves; raises Unsupported where it does not tell them. codes: what computes an operation on terms
    other than the table LOWER says. block: the outputs of a block with a fold, 0 for as many as stay in the cache.
    cells: those of a block without one, 0 likewise. keep: a tensor that has been computed as it is kept in the frame.
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
    lift: Callable[[DType], Operation] = lambda dtype: lambda x: x
    known: Operation = lambda x: x
    codes: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    block: int = 0
    cells: int = 0
    keep: Operation | None = None


IEEE: Final = Algebra(
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
)
