"""Values on the way to and from another process, as plain data that any Python reads.

A tensor is ("tensor", element type, shape, bytes as raw_data lays them out); texts are a list of bytes instead. A
sequence is ("sequence", items), an optional ("optional", item or None), a map ("map", type of the keys, pairs).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from ...machine.heap import type_of
from ...model.elements import decode, element_of, encode
from ...model.graph import ValueType
from ...model.values import Map, Optional, Sequence, Value

Plain = None | str | bytes | int | list["Plain"] | tuple["Plain", ...]


def plain(value: Value) -> Plain:
    """A value as plain data."""
    match value:
        case Sequence(items=items):
            return ("sequence", [plain(item) for item in items])
        case Optional(item=item):
            return ("optional", None if item is None else plain(item))
        case Map(key=key, items=pairs):
            return ("map", key, [(k, plain(v)) for k, v in pairs])
        case _:
            element = element_of(value.dtype)
            content: Plain = list(value.reshape(-1).tolist()) if element == "string" else bytes(encode(value))
            return ("tensor", element, list(value.shape), content)


def valued(data: Plain, declared: ValueType | None = None) -> Value:
    """The value of plain data; the declared type says of what an empty sequence or optional is."""
    inner = None if declared is None else declared.inner
    if declared is not None and declared.kind == "optional" and not (isinstance(data, tuple) and data[0] == "optional"):
        data = ("optional", data)  # runtimes give the value itself
    match data:
        case ("tensor", "string", list(shape), list(texts)):
            made = np.empty(len(texts), object)
            made[:] = texts
            made = made.reshape(cast("list[int]", shape))
            made.flags.writeable = False
            return made
        case ("tensor", str(element), list(shape), bytes(content)):
            return decode(content, element, tuple(cast("list[int]", shape)))
        case ("sequence", list(items)):
            made_items = tuple(valued(item, inner) for item in items)
            return Sequence(_inner(made_items, inner), made_items)
        case ("optional", item):
            found = None if item is None else valued(item, inner)
            return Optional(_inner(() if found is None else (found,), inner), found)
        case ("map", str(key), list(pairs)):
            known = [(cast("int | bytes", k), valued(v, inner)) for k, v in cast("list[tuple[Plain, Plain]]", pairs)]
            known.sort(key=lambda pair: pair[0])
            return Map(key, _inner(tuple(v for _, v in known), inner), tuple(known))
        case _:
            raise TypeError(f"no plain value: {type(data).__name__}")


def plain_all(values: Mapping[str, Value]) -> Plain:
    """Values by name as plain data."""
    return [(name, plain(value)) for name, value in values.items()]


def _inner(items: tuple[Value, ...], declared: ValueType | None) -> ValueType:
    found = type_of(items[0]) if items else declared or ValueType("tensor")
    return ValueType(found.kind, found.element, inner=found.inner)
