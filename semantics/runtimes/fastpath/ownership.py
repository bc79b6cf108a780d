"""Whose memory a value lies in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ...model.values import Array, Map, Optional, Sequence, Value


def root(array: Array) -> Array:
    """The array whose memory an array shows: itself, or what it is a view of."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def roots(value: Value | None) -> Iterator[Array]:
    """The roots of the tensors that a value consists of."""
    match value:
        case None:
            return
        case np.ndarray():
            yield root(value)
        case Sequence(items=items):
            for item in items:
                yield from roots(item)
        case Optional(item=item):
            yield from roots(item)
        case Map(items=pairs):
            for _, item in pairs:
                yield from roots(item)


def rebuilt(value: Value, change: Callable[[Array], Array]) -> Value:
    """The value with each of its tensors replaced."""
    match value:
        case np.ndarray():
            return change(value)
        case Sequence(items=items):
            return replace(value, items=tuple(rebuilt(item, change) for item in items))
        case Optional(item=item):
            return value if item is None else replace(value, item=rebuilt(item, change))
        case Map(items=pairs):
            return replace(value, items=tuple((key, rebuilt(item, change)) for key, item in pairs))
