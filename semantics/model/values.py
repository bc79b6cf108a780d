"""What a tensor name can stand for at run time: a tensor of elements, a sequence, an optional or a map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graph import ValueType

Array = NDArray[np.generic]
"""A tensor: read-only; its dtype is in bijection with the ONNX element type (`elements`); strings are bytes objects."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of values of one type (ONNX IR, "Sequences")."""

    inner: ValueType
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Optional:
    """An optional: `item` is None when it holds nothing (ONNX IR, "Optional")."""

    inner: ValueType
    item: Value | None


@dataclass(frozen=True, slots=True)
class Map:
    """A map from integers or strings to values of one type, keys ascending (ONNX-ML IR, "Maps")."""

    key: str
    inner: ValueType
    items: tuple[tuple[int | bytes, Value], ...]


Value = Array | Sequence | Optional | Map


def identical(a: Value | None, b: Value | None) -> bool:
    """Whether two values are of one type and shape and agree in every bit: NaN is itself, -0.0 is not 0.0."""
    if isinstance(a, np.ndarray):
        if not isinstance(b, np.ndarray) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return bool(np.array_equal(a, b))
        return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    if isinstance(a, Optional):
        return isinstance(b, Optional) and a.inner == b.inner and identical(a.item, b.item)
    if isinstance(a, Sequence):
        if not isinstance(b, Sequence) or a.inner != b.inner or len(a.items) != len(b.items):
            return False
        return all(identical(x, y) for x, y in zip(a.items, b.items, strict=True))
    if isinstance(a, Map):
        if not isinstance(b, Map) or (a.key, a.inner, len(a.items)) != (b.key, b.inner, len(b.items)):
            return False
        return all(k == m and identical(x, y) for (k, x), (m, y) in zip(a.items, b.items, strict=True))
    return b is None
