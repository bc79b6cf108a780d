"""Values as items: tensors open axis by axis, sequences, maps and optionals by what they hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...machine.heap import type_of
from ...machine.inputs import type_text
from ...machine.trace.replay import digest_of
from ...model.elements import is_float
from ...model.path import quote
from ...model.values import Array, Map, Optional, Value
from ...model.values import Sequence as Items
from ..display.texts import element_text, type_of_value
from ..session.session import Session
from .items import SMALL, Item, Parts, View

Find = Callable[[Session], Value | None]
"""Where a value is found. Raises nothing; None where there is none."""


# ---- Texts ------------------------------------------------------------------------------------


def element(array: Array, view: View) -> str:
    """One element: the shortest decimal that reads back, or on request its bits, a float as a hexadecimal float."""
    if not view.hexadecimal or array.dtype == object or array.dtype == np.bool_ or array.dtype.kind == "c":
        return element_text(array)
    if not is_float(array.dtype):
        return element_text(array, "x")
    text = element_text(array, "a")
    return f"nan (bits {element_text(array, 'x')})" if text == "nan" else text


def summary(value: Value, view: View) -> str:
    """A value in one line: its type; the elements where they are few, else least and greatest, how many are NaN or
    infinite, and how its SHA-256 begins. The type alone where it has more elements than may be looked at."""
    if not isinstance(value, np.ndarray):
        return f"{type_text(type_of(value))} {_holds(value)}"
    if value.ndim == 0:
        return element(value, view)
    if value.size <= SMALL:
        return f"{type_of_value(value)} {_nested(value, view)}"
    if value.size > view.effort:
        return type_of_value(value)
    return f"{type_of_value(value)} {_facts(value, view)} #{digest_of(value)[:8]}"


def _holds(value: Items | Optional | Map) -> str:
    if isinstance(value, Optional):
        return "nothing" if value.item is None else "one value"
    return f"{len(value.items)} items"


def _nested(value: Array, view: View) -> str:
    if value.ndim == 0:
        return element(value, view)
    return f"[{', '.join(_nested(np.asarray(part, value.dtype), view) for part in value)}]"


def _facts(value: Array, view: View) -> str:
    if value.dtype == object or value.dtype.kind == "c":
        return f"first {element(value.reshape(-1)[:1], view)}"
    if value.dtype == np.bool_:
        return f"{int(np.count_nonzero(value))} of {value.size} true"
    ends = extremes(value)
    shown = "" if ends is None else f"min={element(ends[0], view)} max={element(ends[1], view)} "
    if not is_float(value.dtype):
        return shown.rstrip()
    wide = value.astype(np.float64)
    return f"{shown}nan={int(np.isnan(wide).sum())} inf={int(np.isinf(wide).sum())}"


def extremes(value: Array) -> tuple[Array, Array] | None:
    """The least and the greatest finite element; None where there is none, or elements have no order."""
    if value.dtype == object or value.dtype.kind in "bc" or not value.size:
        return None
    if is_float(value.dtype):
        wide = value.astype(np.float64)
        finite = wide[np.isfinite(wide)]
        ends = (finite.min(), finite.max()) if finite.size else None
    else:
        ends = value.min(), value.max()
    return None if ends is None else (_one(ends[0], value), _one(ends[1], value))


def _one(found: object, of: Array) -> Array:
    return np.asarray(found).astype(of.dtype)


# ---- Values -----------------------------------------------------------------------------------


def value_item(name: str, value: Value, find: Find, expression: str, view: View) -> Item:
    """A value. find: where it is found later. expression: which asks for it, "" where none does."""
    kind = type_of_value(value)
    if isinstance(value, np.ndarray):
        single = value.ndim == 0
        parts = None if single else Parts(lambda *_: (), value.shape[0], _elements(find, expression, ()))
        return Item(name, summary(value, view), kind, expression, inside=parts, editable=_editable(value))
    if isinstance(value, Optional):
        inside = Parts(lambda now, how: _item_of_optional(find, now, how)) if value.item is not None else None
        return Item(name, summary(value, view), kind, expression, inside=inside)
    count = len(value.items)
    parts = Parts(lambda *_: (), count, _members(find, expression))
    return Item(name, summary(value, view), kind, expression, inside=parts)


def _editable(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.size == 1 and value.dtype != object


def _elements(
    find: Find, expression: str, index: tuple[int, ...]
) -> Callable[[Session, View, int, int], tuple[Item, ...]]:
    """The elements, or slices, of a tensor at an index, one axis further in."""

    def made(session: Session, view: View, start: int, count: int) -> tuple[Item, ...]:
        value = find(session)
        if not isinstance(value, np.ndarray) or value.ndim <= len(index):
            return ()
        axis = value[index]
        return tuple(_element(value, axis, (*index, i), view) for i in range(start, min(start + count, len(axis))))

    def _element(value: Array, axis: Array, at: tuple[int, ...], view: View) -> Item:
        part = np.asarray(axis[at[-1]], value.dtype)
        text = f"{expression}[{', '.join(map(str, at))}]" if expression else ""
        inside = None if part.ndim == 0 else Parts(lambda *_: (), part.shape[0], _elements(find, expression, at))
        return Item(
            f"[{at[-1]}]", summary(part, view), type_of_value(part), text, inside=inside, editable=_editable(part)
        )

    return made


def _members(find: Find, expression: str) -> Callable[[Session, View, int, int], tuple[Item, ...]]:
    """The items of a sequence, or the entries of a map."""

    def one(session: Session, i: int) -> Value | None:
        value = find(session)
        if isinstance(value, Map):
            return value.items[i][1] if i < len(value.items) else None
        return value.items[i] if isinstance(value, Items) and i < len(value.items) else None

    def made(session: Session, view: View, start: int, count: int) -> tuple[Item, ...]:
        value = find(session)
        found = []
        for i in range(start, start + count):
            item = one(session, i)
            if item is None:
                break
            name = f"[{_key(value.items[i][0])}]" if isinstance(value, Map) else f"[{i}]"
            text = f"{expression}[{i}]" if expression else ""
            found.append(value_item(name, item, _member(one, i), text, view))
        return tuple(found)

    return made


def _member(one: Callable[[Session, int], Value | None], i: int) -> Find:
    return lambda session: one(session, i)


def _key(key: int | bytes) -> str:
    return quote(key.decode("utf-8", "backslashreplace")) if isinstance(key, bytes) else str(key)


def _item_of_optional(find: Find, session: Session, view: View) -> tuple[Item, ...]:
    def item(now: Session) -> Value | None:
        value = find(now)
        return value.item if isinstance(value, Optional) else None

    found = item(session)
    return () if found is None else (value_item("item", found, item, "", view),)
