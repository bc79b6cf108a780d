"""Special values: NaN, infinities, both zeros, subnormals, the limits of each type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import numpy as np
from sonnx.semantics.model.elements import BITS, element_of
from sonnx.semantics.model.values import Array, Sequence, Value

SHARE: Final = 0.1
"""The part of the elements that become special."""


@cache
def special(element: str) -> Array:
    """The special values of an element type."""
    from sonnx.semantics.model.elements import dtype_of

    dtype = dtype_of(element)
    if element == "string":
        made = np.empty(3, object)
        made[:] = [b"", b"NaN", "\u00e9\u20ac".encode()]
        return made
    if element == "bool":
        return np.array([False, True])
    if element.startswith("complex"):
        parts = [0.0, -0.0, 1.0, np.nan, np.inf]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    bits = BITS[element]
    if "int" in element:
        low = 0 if element.startswith("uint") else -(1 << (bits - 1))
        high = (1 << bits) - 1 if low == 0 else (1 << (bits - 1)) - 1
        return np.array(sorted({low, low + 1, 0, 1, high - 1, high} | ({-1} if low else set())), object).astype(dtype)
    return _floats(bits, dtype)


def _floats(bits: int, dtype: np.dtype[np.generic]) -> Array:
    """By their codes: zeros, the least and greatest subnormal and normal numbers, one and its neighbours, NaN and
    infinity where the type has them."""
    code = np.dtype(f"u{dtype.itemsize}")
    one = int(np.asarray(1.0).astype(dtype).view(code))
    magnitudes = {0, 1, 2, one - 1, one, one + 1, (1 << (bits - 1)) - 1, (1 << (bits - 1)) - 2}
    for value in (np.inf, -np.inf, np.nan):
        with np.errstate(all="ignore"):
            magnitudes.add(int(np.asarray(value).astype(dtype).view(code)) & ((1 << (bits - 1)) - 1))
    for exponent in range(-200, 200, 7):
        with np.errstate(all="ignore"):
            magnitudes.add(int(np.asarray(2.0**exponent).astype(dtype).view(code)) & ((1 << (bits - 1)) - 1))
    sign = 1 << (bits - 1)
    ordered = sorted(magnitudes | {m | sign for m in magnitudes})
    return np.array([c for c in ordered if 0 <= c < 1 << bits], np.uint64).astype(code).view(dtype)


def with_special_values(values: Mapping[str, Value], seed: int, share: float = SHARE) -> dict[str, Value]:
    """The values with a share of their elements made special; integers of rank 0 and 1 stay, since they are mostly
    shapes, axes and indices."""
    numbers = np.random.default_rng([seed, 7])
    return {name: _with_special(value, numbers, share) for name, value in values.items()}


def _with_special(value: Value, numbers: np.random.Generator, share: float) -> Value:
    if isinstance(value, Sequence):
        return Sequence(value.inner, tuple(_with_special(item, numbers, share) for item in value.items))
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    element = element_of(value.dtype)
    if element.startswith(("int", "uint")) and value.ndim < 2:
        return value
    table = special(element)
    made = value.copy()
    chosen = numbers.random(value.shape) < share
    made[chosen] = table[numbers.integers(len(table), size=int(chosen.sum()))]
    return made
