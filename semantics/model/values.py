"""The values that a tensor name can stand for at run time: a tensor of elements, a sequence, an optional or a map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from .elements import dtype_of, element_of
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
    """True if two values are of one type and shape and agree in every bit: NaN is itself, -0.0 is not 0.0."""
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


# Values as the rules of If, Loop, Scan and SequenceMap read and make them. Anything else gives None or a message; the
# machine and the fast path say where.


def tensors_in(value: Value | None) -> Iterator[Array]:
    """The tensors that a value consists of, in order."""
    match value:
        case None:
            return
        case np.ndarray():
            yield value
        case Sequence(items=items):
            for item in items:
                yield from tensors_in(item)
        case Optional(item=item):
            yield from tensors_in(item)
        case Map(items=pairs):
            for _, item in pairs:
                yield from tensors_in(item)


def one_bool(value: Value | None) -> bool | None:
    """The one element of a bool tensor."""
    return bool(value.reshape(-1)[0]) if _is_one(value, np.bool_) else None


def one_int(value: Value | None) -> int | None:
    """The one element of an int64 tensor."""
    return int(value.reshape(-1)[0]) if _is_one(value, np.int64) else None


def _is_one(value: Value | None, scalar: type[np.generic]) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray) and value.dtype == scalar and value.size == 1


def objection_to_stack(items: Iterable[Value | None]) -> str:
    """Why the results of several runs do not stack: the first that is no tensor, or of another type or shape."""
    first: Value | None = None
    for number, item in enumerate(items):
        first = item if number == 0 else first
        if not isinstance(item, np.ndarray) or not isinstance(first, np.ndarray):
            return f"run {number} gives {shown(item)}, no tensor"
        if item.dtype != first.dtype or item.shape != first.shape:
            return f"run 0 gives {shown(first)}, run {number} {shown(item)}"
    return ""


def stacked(items: Iterable[Value | None], axis: int) -> Array:
    """Tensors of one type and shape side by side along a new axis."""
    return np.stack([item for item in items if isinstance(item, np.ndarray)], axis)


def declared_sizes(declared: ValueType | None) -> tuple[str, tuple[int, ...]] | None:
    """The declared element type and sizes of a tensor, 0 for a size that is no number; None where one is not stated."""
    if declared is None or declared.kind != "tensor" or not declared.element or declared.shape is None:
        return None
    return declared.element, tuple(size if isinstance(size, int) and size >= 0 else 0 for size in declared.shape)


def zeros(element: str, shape: tuple[int, ...]) -> Array:
    """A tensor of zeros; of empty texts for strings."""
    dtype = dtype_of(element)
    return np.full(shape, b"", dtype) if dtype.hasobject else np.zeros(shape, dtype)


def shown(value: Value | None) -> str:
    """A value in a few words: float[2, 3], sequence of 4."""
    if value is None:
        return "absent"
    if isinstance(value, np.ndarray):
        return f"{element_of(value.dtype)}{list(value.shape)}"
    kind = type(value).__name__.lower()
    return kind if isinstance(value, Optional) else f"{kind} of {len(value.items)}"
