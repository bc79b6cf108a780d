"""Elements as sets of allowed values: the third table that the evaluator of operator texts runs on."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from ....model.elements import DType, is_float
from ...reading import OF_STRINGS
from ..terms import Array
from .bounds import integers
from .bounds.arithmetic import ARITHMETIC
from .bounds.codes import CODES
from .bounds.conversions import (
    cast,
    constant,
    enter,
    integers_to,
    power,
    quotients_to,
    rationals_to,
    reinterpret,
    saturate,
)
from .bounds.functions import SHAPES, function
from .bounds.functions import power as float_power
from .bounds.spellings import known_texts
from .bounds.storage import compact, is_set, known, lift, packed, storage
from .ieee import ElementTable, Operation


def _of_text(function: Operation) -> Operation:
    """An operation on strings that are known."""

    def run(*arrays: Array) -> Array:
        result = np.asarray(function(*(known(x) if is_set(x) else known_texts(x) for x in arrays)))
        return result if result.dtype == object else lift(result.dtype)(result)

    return run


@cache
def operation(name: str, dtype: DType) -> Operation:
    """The operation on sets of elements of a type."""
    if name in OF_STRINGS:
        from .text import TEXT

        return _of_text(TEXT[name])
    if not is_float(dtype):
        return integers.operation(name, dtype)
    if name in SHAPES:
        return function(name, dtype)
    return float_power(dtype) if name == "power" else ARITHMETIC[name](dtype)


def between(shape: tuple[int, ...], least: float, most: float) -> Array:
    """Doubles of an interval, NaN excluded."""
    low, high = np.full(shape, least), np.full(shape, most)
    return packed(low, high, low, high, None, None)


BOUND: Final = ElementTable(
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
    reinterpret,
    lift,
    known,
    CODES,
    1 << 22,
    1 << 14,
    compact,
    between,
)
