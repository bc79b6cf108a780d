"""A plan as a picture (SVG): steps from left to right, addresses from bottom to top, a rectangle for each tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree.ElementTree import Element

from sonnx.spec.pages.svg import drawing, rectangle, shape
from sonnx.spec.pages.svg import text as words

from ...model.graph import TensorId
from ...model.path import quote
from .plan import Allocation, AllocationPlan, Lifetime, lower_bound

_WIDTH: Final = 1200
_HEIGHT: Final = 760
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 24, 92, 56
_CHARACTER: Final = 6.2  # the width of a character of a label, on average
_KINDS: Final = {
    "before": ("#9ecae1", "there before the first step"),
    "step": ("#fdd0a2", "written by a step, free after its last use"),
    "kept": ("#a1d99b", "kept to the end"),
}
_STYLE: Final = (
    "text{font:11px sans-serif;fill:#222}.title{font-size:16px;font-weight:bold}.label{font-size:10px}"
    ".tick{stroke:#ddd}.bound{stroke:#b2182b;stroke-width:1.5;stroke-dasharray:7 4}"
    "rect.t{stroke:#444;stroke-width:.5}rect.t:hover{stroke:#000;stroke-width:2}"
    + "".join(f".{kind}{{fill:{colour}}}" for kind, (colour, _) in _KINDS.items())
)
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def picture(plan: AllocationPlan, names: Mapping[TensorId, str], title: str = "Allocation") -> str:
    """The picture, an SVG document on its own. Names may be anything; a tensor without one is shown by its number.

    Every rectangle has a tooltip with name, bytes and steps; its name is written into it where it fits. Steps are
    counted from 1, as traces and the debugger count them; a plan counts from 0, and its last step is the end.
    """
    first = min((place.first for place in plan.allocations), default=0)
    end = max((place.last for place in plan.allocations), default=0) + 1
    bound = lower_bound(Lifetime(p.tensor, p.size, p.first, p.last) for p in plan.allocations)
    return drawing(
        _WIDTH,
        _HEIGHT,
        shape("style", _STYLE),
        rectangle(0, 0, _WIDTH, _HEIGHT, fill="#fff"),
        _header(plan, title, bound),
        _axes(plan.total, first, end),
        (shown for place in plan.allocations for shown in _rectangle(place, names, plan.total, first, end)),
        _bound(bound, plan.total),
        title=_inert(title),
    )


def _header(plan: AllocationPlan, title: str, bound: int) -> Iterator[Element]:
    yield _text(_LEFT, 26, _fitting(title, 2 * (_WIDTH - _LEFT) / 3), "title")
    share = f" ({100 * bound / plan.total:.1f} % of N)" if plan.total else ""
    yield _text(
        _LEFT, 46, f"{len(plan.allocations)} tensors, N = {_bytes(plan.total)}, alignment {plan.alignment} bytes"
    )
    x = _LEFT
    for kind, (_, meaning) in _KINDS.items():
        yield rectangle(x, 60, 18, 12, class_=f"t {kind}")
        yield _text(x + 24, 70, meaning)
        x += 48 + round(len(meaning) * _CHARACTER)
    yield shape("path", class_="bound", d=f"M{x} 66h26")
    yield _text(x + 32, 70, f"most bytes live at once: {_bytes(bound)}{share}")


def _axes(total: int, first: int, end: int) -> Iterator[Element]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    unit = 1024 ** _unit(total)
    for value in _ticks(0, total / unit, least=1e-3 if unit > 1 else 1):
        y = _y(value * unit, total)
        label = f"{value:g} {_UNITS[_unit(total)]}"
        yield shape("path", class_="tick", d=f"M{_LEFT} {y:.2f}H{right}")
        yield _text(_LEFT - 6, y + 4, label, anchor="end")
    for step in _ticks(max(first, 0) + 1, end, least=1):
        x = _x(step - 0.5, first, end)
        yield shape("path", class_="tick", d=f"M{x:.2f} {_TOP}V{bottom + 4}")
        yield _text(x, bottom + 18, "end" if step == end else f"{step:g}", anchor="middle")
    if first < 0:
        x = (_x(first, first, end) + _x(0, first, end)) / 2
        yield _text(x, bottom + 34, "start", anchor="middle")
    yield _text((_LEFT + right) / 2, bottom + 40, "step", anchor="middle")
    middle = (_TOP + bottom) / 2
    yield _text(22, middle, "address", anchor="middle", turn=True)


def _rectangle(place: Allocation, names: Mapping[TensorId, str], total: int, first: int, end: int) -> Iterator[Element]:
    x, y = _x(place.first, first, end), _y(place.offset + place.size, total)
    width = _x(place.last + 1, first, end) - x
    height = max(_y(place.offset, total) - y, 0.6)
    kind = "before" if place.first < 0 else "kept" if place.last + 1 == end else "step"
    name = names.get(place.tensor) or str(place.tensor)
    steps = "from the start" if place.first < 0 else f"from step {place.first + 1}"
    until = "the end" if place.last + 1 == end else f"step {place.last + 1}"
    where = f"bytes {place.offset} to {place.offset + place.size} ({_bytes(place.size)})"
    tooltip = shape("title", _inert(f"{name}: {where}, {steps} to {until}"))
    yield rectangle(x, y, width, height, tooltip, class_=f"t {kind}")
    if height >= 12 and (label := _fitting(name, width - 6)):
        yield _text(x + width / 2, y + height / 2 + 3.5, label, "label", "middle")
    elif height > 3 * _CHARACTER and width >= 12 and (label := _fitting(name, height - 6)):
        yield _text(x + width / 2 + 3.5, y + height / 2, label, "label", "middle", turn=True)


def _bound(bound: int, total: int) -> Iterator[Element]:
    if total:
        course = f"M{_LEFT} {_y(bound, total):.2f}H{_WIDTH - _RIGHT}"
        yield shape("path", shape("title", _bytes(bound)), class_="bound", d=course)


def _x(step: float, first: int, end: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (step - first) / max(end - first, 1)


def _y(address: float, total: int) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * address / max(total, 1)


def _ticks(low: float, high: float, least: float = 1e-3) -> Iterator[float]:
    """At most ten or so round numbers from low to high, `least` apart or more."""
    steps = (digit * 10.0**power for power in range(-3, 16) for digit in (1, 2, 5))
    step = next(step for step in steps if step >= least and (high - low) / step <= 10)
    for i in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield i * step


def _unit(size: float) -> int:
    """The index of the unit in which a number of bytes is below 1024."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return unit


def _bytes(size: int) -> str:
    unit = _unit(size)
    return f"{size / 1024**unit:.4g} {_UNITS[unit]}" if unit else f"{size} B"


def _fitting(text: str, width: float) -> str:
    """The text, its end left out where it is too wide; nothing where less than three characters fit."""
    room = int(width / _CHARACTER)
    text = quote(text)[1:-1]
    if len(text) <= room:
        return text
    return text[: room - 1] + "…" if room > 3 else ""


def _inert(text: str) -> str:
    """ASCII without control characters."""
    return quote(text)[1:-1]


def _text(x: float, y: float, text: str, style: str = "", anchor: str | None = None, *, turn: bool = False) -> Element:
    turned = f"rotate(-90 {x:.2f} {y:.2f})" if turn else None
    return words(x, y, text, class_=style or None, text_anchor=anchor, transform=turned)
