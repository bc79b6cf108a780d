"""What `sonnx run` shows: a table of the outputs, the space that was needed, and why a run is stuck.

Text from a model never reaches the terminal as it is: control characters are shown as escapes, nothing is markup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sonnx.spec.inert import inert

from .application import Stuck
from .elements import element_of
from .heap import type_of
from .run_inputs import type_text
from .values import Array, Map, Value

SMALL: Final = 8
"""Tensors of up to so many elements are shown whole."""
_TEXT: Final = 60  # characters of one text of a tensor
_WHOLE: Final = 1e6  # whole numbers below it are shown without a point
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def outputs_table(outputs: Mapping[str, Value]) -> Table:
    """Name, type, shape and content of each output."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("output", "type", "shape", "content"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("type", "shape"))
    for name, value in outputs.items():
        if isinstance(value, np.ndarray):
            row = (name, element_of(value.dtype), _shape(value.shape), content(value))
        else:
            row = (name, type_text(type_of(value)), "", content(value))
        table.add_row(*(Text(inert(cell)) for cell in row))
    return table


def content(value: Value) -> str:
    """The elements of a small value, the least, greatest and mean one of a large one."""
    if isinstance(value, np.ndarray):
        return _tensor(value)
    if isinstance(value, Map):
        shown = [f"{_key(key)}: {content(item)}" for key, item in value.items[:SMALL]]
        return f"{{{', '.join(shown)}{', ...' if len(value.items) > SMALL else ''}}}"
    items = getattr(value, "items", None)
    if items is None:
        item = getattr(value, "item", None)
        return "nothing" if item is None else content(item)
    shown = [content(item) for item in items[:SMALL]]
    return f"{len(items)} items: {'; '.join(shown)}{'; ...' if len(items) > SMALL else ''}" if items else "no items"


def sizes(count: int) -> str:
    """A number of bytes for people: 1.5 MiB."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def stuck_lines(stuck: Stuck) -> tuple[str, ...]:
    """Why a run is stuck: what happened, the rule with its place and premise, what to do."""
    place = f" ({stuck.span})" if stuck.span.file else ""
    lines = (f"stuck: {stuck.message}", f"  rule {stuck.rule}{place}: {stuck.premise}")
    return (*lines, f"  {stuck.suggestion}") if stuck.suggestion else lines


def write(console: Console, lines: tuple[str, ...]) -> None:
    """Print lines as they are, control characters as escapes."""
    for line in lines:
        console.print(Text(inert(line)), soft_wrap=True)


def _tensor(value: Array) -> str:
    if value.size <= SMALL:
        return _nested(value)
    if value.dtype == object:
        return f"{_one(value.reshape(-1)[0])}, ..."
    if value.dtype == np.bool_:
        return f"{int(np.count_nonzero(value))} of {value.size} true"
    if value.dtype.kind == "c":
        return f"mean {complex(value.mean()):.6g}"
    numbers = value.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    odd = [
        f"{count} {what}"
        for what, count in (("NaN", int(np.isnan(numbers).sum())), ("infinite", int(np.isinf(numbers).sum())))
        if count
    ]
    if not finite.size:
        return ", ".join(odd)
    with np.errstate(over="ignore"):
        mean = float(finite.mean())
    shown = f"min {_number(float(finite.min()))}, max {_number(float(finite.max()))}, mean {_number(mean)}"
    return ", ".join([shown, *odd])


def _nested(value: Array) -> str:
    if value.ndim == 0:
        return _one(value.reshape(-1)[0])
    return f"[{', '.join(_nested(part) for part in value)}]" if len(value) else "[]"


def _one(element: object) -> str:
    if isinstance(element, bytes):
        text = element.decode("utf-8", "backslashreplace")
        return f'"{text if len(text) <= _TEXT else text[:_TEXT] + "..."}"'
    if isinstance(element, (np.bool_, bool)):
        return "true" if element else "false"
    if isinstance(element, (np.integer, int)):
        return str(int(element))
    if isinstance(element, np.complexfloating):
        return str(complex(element))
    return _number(float(np.float64(element)))  # type: ignore[arg-type]  # ml_dtypes' elements are numbers too


def _number(number: float) -> str:
    whole = math.isfinite(number) and number == int(number) and abs(number) < _WHOLE
    return str(int(number)) if whole and str(number) != "-0.0" else f"{number:.6g}"


def _key(key: int | bytes) -> str:
    return _one(key) if isinstance(key, bytes) else str(key)


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
