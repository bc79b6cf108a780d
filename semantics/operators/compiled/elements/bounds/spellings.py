"""Strings of which any spelling of a number is allowed, as entries of arrays of strings; numbers that strings spell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import copysign, isnan

import numpy as np

from .....errors import Unsupported
from .....model.elements import DOUBLE, DType, integer_range, is_float, is_integer
from ...terms import STRINGS, Array
from .. import ieee
from ..ieee import Operation, narrow
from ..numerals import DIGITS, WHOLE, integer_of, is_exact, number_of, numbers, odd_of, spelling
from .arithmetic import number
from .storage import lift, opened


@dataclass(frozen=True, slots=True)
class Spelled:
    """Any string that spells an element of a type from least to most, or a NaN where maybe; where sure nothing else."""

    type: DType
    least: float
    most: float
    maybe: bool = False
    sure: bool = False

    def allows(self, text: bytes) -> bool:
        """True if a string is one of them."""
        if is_integer(self.type):
            low, high = integer_range(self.type)
            return bool(WHOLE.fullmatch(text)) and max(low, self.least) <= integer_of(text) <= min(high, self.most)
        if not DIGITS.fullmatch(text):
            return False
        value = _rounded(text, self.type)
        if isnan(value):
            return self.maybe
        below = value > self.least or (value == self.least and copysign(1, value) >= copysign(1, self.least))
        above = value < self.most or (value == self.most and copysign(1, value) <= copysign(1, self.most))
        return not self.sure and below and above


def _rounded(text: bytes, dtype: DType) -> float:
    """The number of a floating-point type that a string spells."""
    if dtype == np.float64:
        return number_of(text)
    with np.errstate(over="ignore"):
        return float(narrow(np.asarray(odd_of(text)), dtype).astype(np.float64))


def allowed_texts(allowed: Array, given: Array) -> Array:
    """By element: the string given is the one, or one of those, that an array of strings allows."""
    fits = np.zeros(given.shape, np.bool_)
    flat = fits.reshape(-1)
    pairs = zip(np.reshape(allowed, -1).tolist(), np.reshape(given, -1).tolist(), strict=True)
    for position, (one, text) in enumerate(pairs):
        flat[position] = one.allows(text) if isinstance(one, Spelled) else one == text
    return fits


def known_texts(x: Array) -> Array:
    """The strings in an array. Raises Unsupported where one is any of several."""
    if any(isinstance(text, Spelled) for text in np.reshape(x, -1).tolist()):
        raise Unsupported("a string that is any spelling of a number")
    return x


@cache
def to_texts(source: DType) -> Operation:
    """Sets of elements as strings: all spellings of all that they may be."""
    spelling(source)  # refuses types without numbers

    def operation(x: Array) -> Array:
        sets = lift(source)(x)
        made = np.empty(sets.shape, object)
        if is_float(source):
            a = opened(sets)
            never = np.zeros(sets.shape, np.bool_)
            masks = [never if it is None else np.broadcast_to(it, sets.shape) for it in (a.maybe, a.sure)]
            parts = [sets["least"], sets["most"], *masks]
        else:
            parts = [sets["low"], sets["high"]]
        for position, row in enumerate(zip(*(part.reshape(-1).tolist() for part in parts), strict=True)):
            made.reshape(-1)[position] = Spelled(source, *row)
        return made

    return operation


@cache
def from_texts(target: DType) -> Operation:
    """Strings as elements: an implementation may hold the number in a wider type first."""
    if not is_float(target):
        plain, raised = ieee.cast(STRINGS, target), lift(target)
        return lambda x: raised(plain(known_texts(x)))

    def operation(x: Array) -> Array:
        texts = known_texts(x)
        near = numbers(texts, number_of, DOUBLE)
        exact = numbers(texts, lambda text: is_exact(text, number_of(text)), np.dtype(np.bool_))
        out = number(near, exact, target)
        if target == DOUBLE:
            out["least"], out["most"] = near, near
        return out

    return operation
