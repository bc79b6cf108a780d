"""Elements as sets of allowed values: the third table that the evaluator of operator texts runs on."""

from __future__ import annotations

from functools import cache
from typing import Final

from . import bound_integers
from .bound_arithmetic import ARITHMETIC
from .bound_codes import CODES
from .bound_conversions import cast, constant, enter, integers_to, power, quotients_to, rationals_to, saturate
from .bound_functions import SHAPES, function
from .bound_functions import power as float_power
from .bound_storage import compact, known, lift, storage
from .ieee_conversions import Operation
from .ieee_elements import Algebra
from .ieee_terms import DType
from .ieee_types import is_float


@cache
def operation(name: str, dtype: DType) -> Operation:
    """The operation on sets of elements of a type."""
    if not is_float(dtype):
        return bound_integers.operation(name, dtype)
    if name in SHAPES:
        return function(name, dtype)
    return float_power(dtype) if name == "power" else ARITHMETIC[name](dtype)


BOUND: Final = Algebra(
    "bound",
    storage,
    enter,
    constant,
    operation,
    cast,
    integers_to,
    rationals_to,
    quotients_to,
    saturate,
    power,
    lift,
    known,
    CODES,
    1 << 22,
    1 << 14,
    compact,
)
