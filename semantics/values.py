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
