"""Commands that show values, bytes, lines and frames."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from ...machine.memory import Uninitialised, read
from ...model.path import quote
from ...model.values import Value
from ..display.answers import Answer, Listed, ListedLine, Note, Rows, Shown
from ..display.texts import FORMATS, statistics, type_of_value, value_lines
from ..expressions.evaluating import evaluate, instance_of
from ..expressions.parsing import Name, PathName, Sliced
from ..session.command import Command, answered, context, expression, none, option, whole
from ..session.lines import line_meant
from ..session.session import Outcome, Session, where
from ..stops.stops import Breakpoint
from ..timeline.positions import places
from ..timeline.refused import Refused

_AROUND: Final = 5
_MANY: Final = 4096
_FORMAT: Final = re.compile(r"/([a-z])\b")


# ---- Values -----------------------------------------------------------------------------------


def _print(session: Session, text: str) -> Answer:
    text, limit = option(text, "-n")
    form = "d"
    found = _FORMAT.match(text)
    if found is not None:
        form, text = found[1], text[found.end() :]
        if form not in FORMATS:
            raise Refused(f"there is no format /{form}", tuple(f"/{it}" for it in FORMATS))
    said = expression(session, text)
    value = evaluate(said, context(session))
    name = text.strip()
    if isinstance(said, Name | PathName):
        name = instance_of(said, context(session)).path
    return _shown(name, value, form, 64 if limit is None else whole(limit, least=1))


def _shown(name: str, value: Value | str, form: str, limit: int) -> Answer:
    if isinstance(value, str):
        return Shown(name, "text", (quote(value),))
    few = isinstance(value, np.ndarray) and value.size <= 8
    return Shown(name, type_of_value(value), value_lines(value, form, limit), () if few else statistics(value))


def _whatis(session: Session, text: str) -> Answer:
    said = expression(session, text)
    value = evaluate(said, context(session))
    kind = "text" if isinstance(value, str) else type_of_value(value)
    lines = [kind]
    if isinstance(said, Name | PathName | Sliced):
        inner = said.of if isinstance(said, Sliced) else said
        if isinstance(inner, Name | PathName):
            instance = instance_of(inner, context(session))
            line = session.listing.of_name.get(instance.tensor)
            lines.append(instance.path + ("" if line is None else f", line {line}"))
    return Note(tuple(lines))


def _bytes(session: Session, text: str) -> Answer:
    parts = text.split()
    if not 1 <= len(parts) <= 2:
        raise Refused("x takes an address and a number of bytes")
    memory = session.state.store.memory
    start, length = whole(parts[0]), whole(parts[1] if len(parts) > 1 else "", 64, least=1)
    if start >= memory.size:
        raise Refused(f"the memory has {memory.size} bytes")
    length = min(length, memory.size - start, _MANY)
    rows = []
    for at in range(start, start + length, 16):
        end = min(at + 16, start + length)
        cells = []
        for byte in range(at, end):
            data = read(memory, byte, 1)
            cells.append("??" if isinstance(data, Uninitialised) else bytes(data).hex())
        rows.append((f"0x{at:06x}", " ".join(cells)))
    return Rows(
        "memory",
        ("address", "bytes"),
        tuple(rows),
        ("?? was never written, or is free",) * any("??" in it[1] for it in rows),
    )


# ---- Lines and frames -------------------------------------------------------------------------


def _list(session: Session, text: str) -> Outcome:
    lines = session.listing.lines
    text = text.strip()
    if text == "all":
        first, last = 1, len(lines)
    elif "," in text:
        first, last = (whole(it, least=1) for it in text.split(",", 1))
    else:
        middle = line_meant(session, text) if text else session.listed or where(session).line
        first = middle - _AROUND if text or not session.listed else middle
        last = first + 2 * _AROUND
    first = max(first, 1)
    chosen = lines[first - 1 : last]
    if not chosen:
        raise Refused(f"the listing has the lines 1 to {len(lines)}")
    here = where(session).line
    shown = tuple(ListedLine(it.number, it.text, it.number == here, _stops_on(session, it.number)) for it in chosen)
    after = chosen[-1].number + 1
    return Outcome(replace(session, listed=after if after <= len(lines) else 1), Listed(shown))


def _stops_on(session: Session, number: int) -> tuple[int, ...]:
    line = session.listing.lines[number - 1]
    return tuple(
        it.number
        for it in session.stops
        if isinstance(it, Breakpoint) and (line.node in it.at.nodes or (line.call and line.call in it.at.calls))
    )


def _where(session: Session, text: str) -> Answer:
    none(text)
    stack = places(session.state, session.moment.next)
    rows = []
    for number, place in enumerate(reversed(stack)):
        line = None if place.node is None else session.listing.of_node.get(place.node)
        node = "end" if place.node is None else session.model.nodes[place.node].op_type
        run = "" if place.run is None else str(place.run)
        mark = "*" if number == session.frame else ""
        rows.append((f"{number}{mark}", place.path, run, "" if line is None else str(line), node))
    return Rows("frames", ("frame", "graph or call", "run", "line", "next"), tuple(rows))


def _moved_frame(session: Session, target: int) -> Outcome:
    stack = places(session.state, session.moment.next)
    if not 0 <= target < len(stack):
        raise Refused("this is the outermost frame" if target > 0 else "this is the innermost frame")
    changed = replace(session, frame=target)
    place = stack[len(stack) - 1 - target]
    line = None if place.node is None else session.listing.of_node.get(place.node)
    text = "" if line is None else f": line {line}, {session.listing.lines[line - 1].text.strip()}"
    return Outcome(changed, Note((f"frame {target}, {place.path}{text}",)))


COMMANDS = (
    Command("print", answered(_print), "Show a value: elements and statistics; /x bits, /a hexadecimal floats.",
            "[/d|/x|/a|/b] EXPR [-n N]", ("p",),
            ("print y", "print y[0, :3]", "print /x y[0]", "print max(abs(y - z))", 'print "odd name"[1]'), "tensor"),
    Command("whatis", answered(_whatis), "Show the type of a value, and where it is made.", "EXPR", ("ptype",),
            ("whatis y",), "tensor"),
    Command("x", answered(_bytes), "Show bytes of the memory.", "ADDRESS [LENGTH]", (), ("x 0x40 32",)),
    Command("list", _list, "Show the listing, around the next node or a line.", "[LINE|FIRST,LAST|NODE|all]", ("l",),
            ("list", "list 1,20", "list all"), "node"),
    Command("where", answered(_where), "Show the frames: graphs, runs of bodies, calls.", "", ("bt", "backtrace", "w"),
            ("where",)),
    Command("up", lambda s, t: _moved_frame(s, s.frame + whole(t, 1, least=1)), "Look at the frame around this one.",
            "[N]", ("u",), ("up",)),
    Command("down", lambda s, t: _moved_frame(s, s.frame - whole(t, 1, least=1)), "Look at the frame inside this one.",
            "[N]", ("d",), ("down",)),
    Command("frame", lambda s, t: _moved_frame(s, whole(t, s.frame)), "Look at a frame by its number in where.",
            "[N]", (), ("frame 1",)),
)  # fmt: skip
