"""Strings that spell numbers, in decimal digits, and the spellings of numbers.

The contract of `cast` in spec/primitives.sonnx says which strings these are, and which spelling is written here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from math import copysign, isfinite, nan, nextafter
from typing import Any, Final

import numpy as np

from ....errors import Unsupported
from ....model.elements import DType, element_of, is_float, is_integer
from ..terms import Array

DIGITS: Final = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?inf|nan", re.IGNORECASE)
WHOLE: Final = re.compile(rb"[-+]?[0-9]+")
_PRINTED: Final = frozenset(np.dtype(name) for name in ("float16", "float32", "float64"))
"""The types for which NumPy knows the fewest digits that tell a number from its neighbours."""


def number_of(text: bytes) -> float:
    """The double nearest to the number that a string spells, ties to even; a NaN for a string that spells none."""
    return float(text) if DIGITS.fullmatch(text) else nan


def is_exact(text: bytes, near: float) -> bool:
    """True if the double nearest to what a string spells is that number."""
    if not isfinite(near):
        return b"n" in text.lower()  # not by its size
    if near == 0:
        return not re.search(rb"[1-9]", text.lower().split(b"e")[0])
    return Decimal(text.decode()) == Decimal(near)


def odd_of(text: bytes) -> float:
    """The number that a string spells as a double; of the two doubles around it the one with an odd last bit, so that
    rounding it to fewer than 50 bits is rounding the number.
    """
    near = number_of(text)
    if not isfinite(near) or is_exact(text, near):
        return near
    if near == 0:
        return copysign(nextafter(0.0, 1.0), -1.0 if text.startswith(b"-") else 1.0)
    if np.float64(near).view(np.uint64) & 1:
        return near
    return nextafter(near, float("inf") if Decimal(text.decode()) > Decimal(near) else float("-inf"))


def integer_of(text: bytes) -> int:
    """The integer that a string spells; 0 for a string that spells none."""
    return int(Decimal(text.decode())) if WHOLE.fullmatch(text) else 0  # int(text) has a limit of digits


def numbers(texts: Array, function: Callable[[bytes], float], dtype: DType) -> Array:
    """A function of strings on an array."""
    made = np.empty(np.shape(texts), dtype)
    flat = made.reshape(-1)
    for position, text in enumerate(np.reshape(texts, -1).tolist()):
        flat[position] = function(text)
    return made


@cache
def spelling(source: DType) -> Callable[[Array], Array]:
    """The operation that spells the elements of a type. Raises Unsupported for types without numbers."""
    if not (is_float(source) or is_integer(source)):
        raise Unsupported(f"elements of type {element_of(source)} as strings")
    if is_integer(source):
        return lambda x: _each(lambda value: str(int(value)).encode(), np.asarray(x))
    printed = source if source in _PRINTED else np.dtype(np.float32)
    return lambda x: _each(_plain, np.asarray(x).astype(printed))


def _plain(value: Any) -> bytes:
    if np.isnan(value):
        return b"NaN"
    if np.isinf(value):
        return b"INF" if value > 0 else b"-INF"
    return np.format_float_positional(value, unique=True, trim="0").encode()


def _each(function: Callable[[Any], object], x: Array) -> Array:
    made = np.empty(x.shape, object)
    flat = made.reshape(-1)
    for position, value in enumerate(x.reshape(-1)):
        flat[position] = function(value)
    return made
