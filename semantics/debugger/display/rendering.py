"""Answers as lines of text, and as JSON. Both are printable ASCII or inert text whatever a model calls its tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from textwrap import wrap
from typing import Final

from sonnx.spec.terminal import one_line

from ...machine.trace.format import Json
from .answers import Answer, Cell, Hit, Listed, Note, Quit, Refusal, Rows, Shown, Stop, Where, cell_text

_GAP: Final = "  "
_BELOW: Final = "    "
_LEAST: Final = 6  # characters to which a column is narrowed
_WIDEST: Final = 60  # beyond it a cell shifts those behind it, where there is no width to keep to


def table(rows: Sequence[tuple[str, ...]], width: int | None) -> tuple[str, ...]:
    """Rows of cells, headings first, as lines with the columns below each other. A column whose words, such as paths,
    would be torn to fit has lines of its own: the first column above each row, others below it."""
    natural = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    if width is None or sum(natural) + len(_GAP) * (len(natural) - 1) <= width:
        widths = natural if width is not None else [min(it, _WIDEST) for it in natural]
        return tuple(_joined(row, widths) for row in rows)
    beside, below = list(range(len(natural))), set[int]()
    longest = [max(len(word) for row in rows for word in (*row[i].split(), "")) for i in beside]
    while True:
        widths = _narrowed([natural[i] for i in beside], width)
        torn = [i for i, columns in zip(beside, widths, strict=True) if longest[i] > columns]
        if not torn or len(beside) == 1:
            break
        widest = max(torn, key=lambda i: longest[i])
        beside.remove(widest)
        below.add(widest)
    first = 0 in below
    if first:
        widths = _narrowed([natural[i] for i in beside], width - len(_BELOW))
    shown: list[str] = []
    for number, row in enumerate(rows):
        shown += _own_lines(row[0], width, "") if first else ()
        cells = [_pieces(row[i], columns) for i, columns in zip(beside, widths, strict=True)]
        for i in range(max(len(it) for it in cells)):
            line = _joined(tuple(it[i] if i < len(it) else "" for it in cells), widths)
            shown.append(f"{_BELOW}{line}" if first else line)
        for i in sorted(below - {0}) if number else ():
            shown += _own_lines(f"{rows[0][i]}: {row[i]}" if row[i] else "", width, _BELOW)
    return tuple(line for line in shown if line.strip())


def _own_lines(text: str, width: int, indent: str) -> list[str]:
    return wrap(text, width, initial_indent=indent, subsequent_indent=f"{indent} ", break_on_hyphens=False)


def sentence(text: str, width: int | None) -> tuple[str, ...]:
    """A line, or several of which all but the first are indented."""
    if width is None or len(text) <= width:
        return (text,)
    return tuple(wrap(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)) or (text,)


def _joined(cells: tuple[str, ...], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(columns) for cell, columns in zip(cells, widths, strict=True)).rstrip()


def _narrowed(widths: Sequence[int], width: int) -> list[int]:
    """Widths that fit: the widest column gives way first, none becomes narrower than it has to."""
    narrow = list(widths)
    room = width - len(_GAP) * (len(narrow) - 1)
    while sum(narrow) > room:
        widest = max(range(len(narrow)), key=lambda i: narrow[i])
        if narrow[widest] <= _LEAST:
            break
        narrow[widest] -= 1
    return narrow


def _pieces(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    return wrap(cell, width, subsequent_indent=" ", break_on_hyphens=False, drop_whitespace=True) or [""]


_PHASES = ("", "selected", "read", "applied", "written")
_REASONS = {
    "breakpoint": "breakpoint",
    "watch": "watch",
    "catch": "catch",
    "end": "the end",
    "start": "the start",
    "stuck": "stuck",
    "pause": "paused",
}


def lines(answer: Answer, width: int | None = None) -> tuple[str, ...]:
    """The answer for a person. width: of the terminal, where there is one."""
    match answer:
        case Stop():
            shown = _folded(_stop(answer), width)
        case Note(lines=sentences):
            shown = _folded(sentences, width)
        case Rows():
            shown = _rows(answer, width)
        case Listed(lines=listed):
            digits = max((len(str(it.number)) for it in listed), default=1)
            shown = tuple(
                f"{'B' if it.stops else ' '}{'>' if it.current else ' '}{it.number:>{digits}}  {it.text}"
                for it in listed
            )
        case Shown():
            shown = _shown(answer)
        case Refusal(message=message, candidates=candidates):
            tail = f": {', '.join(candidates)}" if candidates else ""
            shown = _folded((f"refused: {message}{tail}",), width)
        case Quit():
            shown = ()
    return tuple(one_line(line) for line in shown)


def prompt(where: Where) -> str:
    """The position in few characters; an edited timeline says so."""
    phase = f".{where.phase}" if where.phase else ""
    edited = " EDITED" if where.edited else ""
    return f"(sonnx {where.index}{phase}{edited}) "


def to_json(answer: Answer) -> str:
    """One line of JSON: the class of the answer as `kind`, and its fields."""
    fields_ = _fields(answer)
    if isinstance(answer, Rows):
        named = [zip(answer.headings, map(_json, row), strict=True) for row in answer.rows]
        fields_["rows"] = [{heading: value for heading, value in row if heading} for row in named]
    if isinstance(answer, Shown):
        fields_["statistics"] = {name: _number(text) for name, text in answer.statistics}
    return json.dumps({"kind": type(answer).__name__.lower(), **fields_}, allow_nan=False, sort_keys=True)


def _number(text: str) -> Json:
    """A number of the statistics."""
    value = float(text)
    return text if not math.isfinite(value) else int(text) if text.lstrip("-").isdecimal() else value


def _fields(data: object) -> dict[str, Json]:
    if not is_dataclass(data):
        return {}
    return {field.name: _json(getattr(data, field.name)) for field in fields(data)}


def _json(value: object) -> Json:
    if isinstance(value, Cell):
        return value.value
    if isinstance(value, tuple):
        return [_json(it) for it in value]
    if is_dataclass(value):
        return _fields(value)
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        return value
    return str(value)


def _stop(answer: Stop) -> tuple[str, ...]:
    rows = [
        *(f"line {it.line}: {it.text}" if it.line else it.text for it in answer.logged),
        *(_hit(hit) for hit in answer.hits),
    ]
    where = answer.where
    if answer.reason in _REASONS and not answer.hits:
        rows.append(_REASONS[answer.reason])
    phase = f" {_PHASES[where.phase]} by {where.rule}" if where.phase else ""
    place = f"line {where.line}: {where.text}" if where.line else "no line"
    call = f"  (the call {where.call} begins)" if where.call else ""
    rows.append(f"step {where.index}{phase}  {place}{call}")
    return (*rows, *answer.notes, *(line for it in answer.displayed for line in _shown(it)))


def _hit(hit: Hit) -> str:
    number = f" {hit.number}" if hit.number else ""
    changed = ""
    if hit.kind == "watch":
        changed = f": {hit.old} -> {hit.new}" if hit.old else f": {hit.new}"
    return f"{hit.kind}{number}: {hit.text}{changed}"


def _rows(answer: Rows, width: int | None) -> tuple[str, ...]:
    notes = _folded(answer.notes, width)
    if not answer.rows:
        return (f"{answer.title}: none", *notes)
    cells = [tuple(one_line(cell_text(it)) for it in row) for row in (answer.headings, *answer.rows)]
    return (*_folded((f"{answer.title}:",), width), *table(cells, width), *notes)


def _folded(sentences: tuple[str, ...], width: int | None) -> tuple[str, ...]:
    return tuple(line for it in sentences for line in sentence(one_line(it), width))


def _shown(answer: Shown) -> tuple[str, ...]:
    numbers = ", ".join(f"{name} {value}" for name, value in answer.statistics)
    head = f"{answer.name}: {answer.type}"
    body = answer.lines
    if len(body) == 1 and not numbers:
        return (f"{head} = {body[0]}",)
    return (head, *(f"  {line}" for line in body), *((f"  {numbers}",) if numbers else ()))
