"""Answers as lines of text, and as JSON. Both are printable ASCII or inert text whatever a model calls its tensors."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass

from sonnx.spec.inert import inert

from ..trace_format import Json
from .answers import Answer, Hit, Listed, Note, Quit, Refusal, Rows, Shown, Stop, Where

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


def lines(answer: Answer) -> tuple[str, ...]:
    """The answer for a person."""
    match answer:
        case Stop():
            found = _stop(answer)
        case Note(lines=sentences):
            found = sentences
        case Rows():
            found = _rows(answer)
        case Listed(lines=listed):
            width = max((len(str(it.number)) for it in listed), default=1)
            found = tuple(
                f"{'B' if it.stops else ' '}{'>' if it.current else ' '}{it.number:>{width}}  {it.text}"
                for it in listed
            )
        case Shown():
            found = _shown(answer)
        case Refusal(message=message, candidates=candidates):
            tail = f": {', '.join(candidates)}" if candidates else ""
            found = (f"refused: {message}{tail}",)
        case Quit():
            found = ()
    return tuple(inert(line).replace("\n", "\\n") for line in found)


def prompt(where: Where) -> str:
    """The position in few characters; an edited timeline says so."""
    phase = f".{where.phase}" if where.phase else ""
    edited = " EDITED" if where.edited else ""
    return f"(sonnx {where.index}{phase}{edited}) "


def to_json(answer: Answer) -> str:
    """One line of JSON: the class of the answer as `kind`, and its fields."""
    return json.dumps({"kind": type(answer).__name__.lower(), **_fields(answer)}, allow_nan=False, sort_keys=True)


def _fields(data: object) -> dict[str, Json]:
    if not is_dataclass(data):
        return {}
    return {field.name: _json(getattr(data, field.name)) for field in fields(data)}


def _json(value: object) -> Json:
    if isinstance(value, tuple):
        return [_json(it) for it in value]
    if is_dataclass(value):
        return _fields(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _stop(answer: Stop) -> tuple[str, ...]:
    found = [_hit(hit) for hit in answer.hits]
    where = answer.where
    if answer.reason in _REASONS and not answer.hits:
        found.append(_REASONS[answer.reason])
    phase = f" {_PHASES[where.phase]} by {where.rule}" if where.phase else ""
    place = f"line {where.line}: {where.text}" if where.line else "no line"
    call = f"  (the call {where.call} begins)" if where.call else ""
    found.append(f"step {where.index}{phase}  {place}{call}")
    return (*found, *answer.notes)


def _hit(hit: Hit) -> str:
    number = f" {hit.number}" if hit.number else ""
    changed = ""
    if hit.kind == "watch":
        changed = f": {hit.old} -> {hit.new}" if hit.old else f": {hit.new}"
    return f"{hit.kind}{number}: {hit.text}{changed}"


def _rows(answer: Rows) -> tuple[str, ...]:
    if not answer.rows:
        return (f"{answer.title}: none", *answer.notes)
    cells = [answer.headings, *answer.rows]
    widths = [min(max(len(row[i]) for row in cells), 60) for i in range(len(answer.headings))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return (f"{answer.title}:", *table, *answer.notes)


def _shown(answer: Shown) -> tuple[str, ...]:
    numbers = ", ".join(f"{name} {value}" for name, value in answer.statistics)
    head = f"{answer.name}: {answer.type}"
    body = answer.lines
    if len(body) == 1 and not numbers:
        return (f"{head} = {body[0]}",)
    return (head, *(f"  {line}" for line in body), *((f"  {numbers}",) if numbers else ()))
