"""Elements and values as texts: the shortest decimal number that reads back to the same bits, or bits on request."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ...machine.inputs import type_text
from ...machine.memory import type_of
from ...machine.trace.format import Json
from ...model.elements import element_of, finfo, is_float
from ...model.path import quote
from ...model.values import Array, Map, Value

FORMATS: Final = ("d", "x", "a", "b")
"""decimal; bits in hexadecimal; a float in hexadecimal; bits in binary."""
_TEXT: Final = 60


def element_text(element: Array, form: str = "d") -> str:
    """One element: an array of rank 0 or with one element."""
    array = np.ascontiguousarray(element).reshape(())
    if array.dtype == object:
        text = bytes(array.item()).decode("utf-8", "backslashreplace")
        return quote(text if len(text) <= _TEXT else text[:_TEXT] + "...")
    if form in ("x", "b"):
        bits = int.from_bytes(np.frombuffer(array.tobytes(), np.uint8).tobytes(), "little")
        return f"0x{bits:0{2 * array.dtype.itemsize}x}" if form == "x" else f"0b{bits:0{8 * array.dtype.itemsize}b}"
    if array.dtype == np.bool_:
        return "true" if array else "false"
    if array.dtype.kind == "c":
        return str(complex(array.item()))
    if not is_float(array.dtype):
        return str(int(array))
    number = float(array.astype(np.float64))
    if form == "a":
        return number.hex()
    return _decimal(number, array)


def element_value(element: Array) -> Json:
    """One element as JSON has it: a number with the digits of its text, true, false or a text; what is not finite, and
    what is complex, as its text."""
    array = np.ascontiguousarray(element).reshape(())
    if array.dtype == np.bool_:
        return bool(array)
    if array.dtype == object:
        return bytes(array.item()).decode("utf-8", "backslashreplace")
    text = element_text(array)
    if array.dtype.kind == "c":
        return text
    if not is_float(array.dtype):
        return int(text)
    return float(text) if math.isfinite(float(text)) else text


def _decimal(number: float, array: Array) -> str:
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    if array.dtype.kind == "f":
        return str(array.item()) if array.dtype == np.float64 else str(array[()])
    for digits in range(1, 18):  # a type that NumPy does not print: the shortest that reads back
        text = f"{number:.{digits}g}"
        if np.asarray(float(text)).astype(array.dtype).tobytes() == array.tobytes():
            return text
    return repr(number)


def type_of_value(value: Value) -> str:
    """float[2, 3], sequence(float)."""
    if isinstance(value, np.ndarray):
        return f"{element_of(value.dtype)}{list(value.shape)}"
    return type_text(type_of(value))


def value_lines(value: Value, form: str = "d", limit: int = 200) -> tuple[str, ...]:
    """The elements, one line for each row; at most `limit` of them, which is said."""
    if isinstance(value, np.ndarray):
        return _tensor_lines(value, form, limit)
    if isinstance(value, Map):
        keys = [str(key)[1:] if isinstance(key, bytes) else str(key) for key, _ in value.items[:limit]]
        rows = zip(keys, value.items, strict=False)
        entries = [f"{key}: {'; '.join(value_lines(item, form, limit))}" for key, (_, item) in rows]
        return tuple(entries)
    items = getattr(value, "items", None)
    if isinstance(items, tuple):
        lines: list[str] = []
        for i, item in enumerate(items[:limit]):
            lines.append(f"[{i}] {type_of_value(item)}")
            lines += [f"  {line}" for line in value_lines(item, form, max(limit // max(len(items), 1), 1))]
        return tuple(lines) or ("no items",)
    inner = getattr(value, "item", None)
    return ("nothing",) if inner is None else value_lines(inner, form, limit)


def _tensor_lines(array: Array, form: str, limit: int) -> tuple[str, ...]:
    if not array.size:
        return ("no elements",)
    if array.ndim == 0:
        return (element_text(array, form),)
    width = array.shape[-1]
    rows = np.ndindex(array.shape[:-1])
    lines, left = [], limit
    for row in rows:
        if left <= 0:
            break
        taken = min(width, left)
        cells = [element_text(np.asarray(array[(*row, i)], array.dtype), form) for i in range(taken)]
        left -= taken
        head = f"[{', '.join(map(str, (*row, ':')))}] " if array.ndim > 1 else ""
        lines.append(f"{head}{' '.join(cells)}")
    if array.size > limit:
        lines.append(f"... {array.size - limit} more elements: take a slice, or print -n {array.size}")
    return tuple(lines)


def statistics(value: Value) -> tuple[tuple[str, str], ...]:
    """Least, greatest and mean element, and how many are NaN, infinite, zero, subnormal."""
    if not isinstance(value, np.ndarray) or value.dtype == object or not value.size or value.dtype.kind == "c":
        return ()
    if value.dtype == np.bool_:
        return (("true", str(int(np.count_nonzero(value)))), ("elements", str(value.size)))
    wide = value.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    rows: list[tuple[str, str]] = [("elements", str(value.size))]
    if finite.size:
        with np.errstate(all="ignore"):
            rows += [("min", f"{finite.min():.9g}"), ("max", f"{finite.max():.9g}"), ("mean", f"{finite.mean():.9g}")]
    if is_float(value.dtype):
        rows += [("nan", str(int(np.isnan(wide).sum()))), ("inf", str(int(np.isinf(wide).sum())))]
        rows.append(("subnormal", str(int(subnormal(value).sum()))))
    rows.append(("zero", str(int((wide == 0).sum()))))
    return tuple(rows)


def subnormal(array: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which elements are subnormal numbers of their type."""
    smallest = float(finfo(array.dtype).smallest_normal)
    wide = np.abs(array.astype(np.float64))
    return np.asarray((wide > 0) & (wide < smallest))
