"""The report of `sonnx run`: a table of the outputs, the space that was needed, and why a run is stuck.

Text from a model never reaches the terminal as it is: control characters are shown as escapes, nothing is markup.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sonnx.spec.terminal import inert, print_line

from ..model.elements import element_of
from ..model.values import Array, Map, Value
from ..operators.application import Stuck
from .inputs import type_text
from .memory import type_of

if TYPE_CHECKING:
    from .consistency import Consistency, Failure

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


def why(stuck: Stuck) -> str:
    """Why the specification gives no result, on one line: the rule, what it demands, the values that break it."""
    return f"{stuck.rule}: {' '.join(it for it in (stuck.premise, stuck.message) if it)}"


def stuck_lines(stuck: Stuck) -> tuple[str, ...]:
    """Why a run is stuck: what happened, the rule with its place and premise, what to do."""
    place = f" ({stuck.span})" if stuck.span.file else ""
    at = f" at {stuck.at}" if stuck.at and stuck.at not in stuck.message else ""
    lines = (f"stuck{at}: {stuck.message}", f"  rule {stuck.rule}{place}: {stuck.premise}")
    return (*lines, f"  {stuck.suggestion}") if stuck.suggestion else lines


def consistency_lines(consistency: Consistency) -> tuple[str, ...]:
    """The verdict on the values of a run by the definition consistent of part 6, and the first equation that fails."""
    judged = f"{_many(consistency.equations, 'equation')} and {_many(consistency.given, 'given value')}"
    if not consistency.failures:
        says = "" if not consistency.unmet else f", but not {', '.join(consistency.unmet)}, without which"
        tail = "says nothing of this run" if consistency.unmet else "applies to this run"
        return (f"consistent: {judged} hold{says or ';'} OrderIndependence (part 6) {tail}",)
    return (
        f"not consistent: {len(consistency.failures)} of {judged} fail, first",
        *_failure_lines(consistency.failures[0]),
    )


def _failure_lines(failure: Failure) -> tuple[str, ...]:
    what = f"{failure.node} does not compute {failure.tensor}" if failure.node else f"{failure.tensor} is not as given"
    if failure.expected is None or failure.stated is None:
        return (f"  {what}: {failure.reason}",)
    given, expected = failure.stated, failure.expected
    at = "" if failure.element is None else f" at element {list(failure.element)}"
    if failure.element is not None and isinstance(given, np.ndarray) and isinstance(expected, np.ndarray):
        given, expected = np.asarray(given[failure.element]), np.asarray(expected[failure.element])
    rows = (("the run has     ", given), ("the equation has", expected))
    shown = (f"  {lead} {_typed(value)} {content(value)}{_code(value, failure.element)}" for lead, value in rows)
    return (f"  {what}{at}", *shown)


def _typed(value: Value) -> str:
    return type_text(type_of(value))


def _code(value: Value, element: tuple[int, ...] | None) -> str:
    """The bits of one number, where decimal digits may hide a difference."""
    if element is None or not isinstance(value, np.ndarray) or value.dtype.hasobject:
        return ""
    return f" (0x{value.tobytes()[::-1].hex()})"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def write(console: Console, lines: tuple[str, ...]) -> None:
    """Print lines as they are, control characters as escapes."""
    for line in lines:
        print_line(console, inert(line))


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
    return f"[{', '.join(_nested(value[k, ...]) for k in range(len(value)))}]" if len(value) else "[]"


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
    return _number(float(np.asarray(element, np.float64)))  # ml_dtypes' elements are numbers too


def _number(number: float) -> str:
    whole = math.isfinite(number) and number == int(number) and abs(number) < _WHOLE
    return str(int(number)) if whole and str(number) != "-0.0" else f"{number:.6g}"


def _key(key: int | bytes) -> str:
    return _one(key) if isinstance(key, bytes) else str(key)


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
