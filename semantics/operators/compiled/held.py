"""Sequences and optionals in a plan: lists that have a type. Their tensors lie in the frame as any others do."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...errors import InternalError, Unsupported
from ...model.elements import dtype_of, element_of
from ...model.graph import ValueType
from ...model.values import Optional, Sequence
from .terms import Array, DType, Layout, Tensor, Value

Entry = Array | Sequence | Optional


class Held(tuple[Value, ...]):
    """The entries of a sequence or of an optional. kind: its type, without shapes."""

    kind: ValueType


@dataclass(frozen=True, slots=True)
class Whole:
    """Where a sequence or an optional is when a plan has run: its type, and where its entries are."""

    kind: ValueType
    items: tuple[Place, ...]


Place = tuple[Layout, tuple[int, ...]] | Whole | None
"""Where an output is when a plan has run; None for one that is not asked for."""


# ---- types ------------------------------------------------------------------------------------


def plain(kind: ValueType) -> DType | ValueType:
    """A type without shapes; that of a tensor is its element type."""
    return dtype_of(kind.element) if kind.kind == "tensor" else _plain(kind)


def _plain(kind: ValueType) -> ValueType:
    return ValueType(kind.kind, kind.element, None, None if kind.inner is None else _plain(kind.inner))


def type_of(value: Value) -> DType | ValueType:
    """The type of a tensor, a sequence or an optional."""
    if isinstance(value, Tensor) and value.type is not None:
        return value.type
    if isinstance(value, Held):
        return value.kind
    raise InternalError(f"{type(value).__name__} has no type")


def _stated(kind: Value) -> ValueType:
    if isinstance(kind, np.dtype):
        return ValueType("tensor", element_of(kind))
    if isinstance(kind, ValueType):
        return kind
    raise InternalError(f"{kind!r} is no type")


def type_holding(word: str) -> Callable[[Value], ValueType]:
    """The function from a type to that of the sequences or optionals of it."""
    return lambda kind: ValueType(word, inner=_stated(kind))


# ---- values -----------------------------------------------------------------------------------


def held(items: tuple[Value, ...], kind: ValueType) -> Held:
    """The entries with their type."""
    found = Held(items)
    found.kind = kind
    return found


def content(value: Value) -> tuple[Value, ...]:
    """What is found in a value: the entry of an optional, else the value itself."""
    return tuple(value) if isinstance(value, Held) and value.kind.kind == "optional" else (value,)


def entries(value: object) -> tuple[Entry, ...]:
    """The entries of a sequence or an optional. Raises Unsupported for a map."""
    match value:
        case Sequence(items=items):
            return tuple(_entry(item) for item in items)
        case Optional(item=item):
            return () if item is None else (_entry(item),)
        case _:
            raise Unsupported("a map as an input of an operator of ONNX's own domain")


def _entry(value: object) -> Entry:
    if isinstance(value, (np.ndarray, Sequence, Optional)):
        return value
    raise Unsupported("a map as an entry of a sequence or an optional")


def kind_of_value(value: object) -> ValueType:
    """The type of a sequence or an optional without shapes: that of its first entry, else the stated one."""
    if isinstance(value, np.ndarray):
        return ValueType("tensor", element_of(value.dtype))
    word = "optional" if isinstance(value, Optional) else "sequence"
    if not isinstance(value, (Sequence, Optional)):
        raise Unsupported("a map as an input of an operator of ONNX's own domain")
    listed = entries(value)
    return ValueType(word, inner=kind_of_value(listed[0]) if listed else _plain(value.inner))


def enter(value: object, signature: list[Hashable], tensors: list[Array]) -> None:
    """Notes what a plan depends on, and the tensors in their order."""
    if isinstance(value, np.ndarray):
        signature += (value.shape, value.dtype)
        tensors.append(value)
        return
    listed = entries(value)
    signature += (kind_of_value(value), len(listed))
    for item in listed:
        enter(item, signature, tensors)


def bound(value: object, tensors: Iterator[Tensor]) -> Tensor | Held:
    """The value in a plan, its tensors taken in their order."""
    if isinstance(value, np.ndarray):
        return next(tensors)
    return held(tuple(bound(item, tensors) for item in entries(value)), kind_of_value(value))


def place_of(value: Value) -> Place:
    """Where a value of the plan will be."""
    match value:
        case None:
            return None
        case Tensor():
            return value.layout, value.shape
        case Held():
            return Whole(value.kind, tuple(place_of(item) for item in value))
        case _:
            raise InternalError(f"an output that is a {type(value).__name__}")


def collected(place: Whole, array: Callable[[Layout, tuple[int, ...]], Array]) -> Entry:
    """The sequence or optional at a place."""
    items = tuple(collected(p, array) if isinstance(p, Whole) else array(*_some(p)) for p in place.items)
    inner: Final = place.kind.inner or ValueType("unset")
    if place.kind.kind == "optional":
        return Optional(inner, items[0] if items else None)
    return Sequence(inner, items)


def _some(place: tuple[Layout, tuple[int, ...]] | None) -> tuple[Layout, tuple[int, ...]]:
    if place is None:
        raise InternalError("an entry without a place")
    return place
