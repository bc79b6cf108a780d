"""Commands that show values, bytes, lines and frames, and tables about the session."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

import numpy as np

from ...machine.inputs import type_text
from ...machine.memory import Uninitialised, history_bytes, read
from ...machine.report import content, sizes
from ...machine.state import frames, node_path, tensor_path, value_of
from ...machine.transitions import enabled
from ...model.path import quote
from ...model.values import Value
from ...resources.persistent import items
from ..display.answers import Answer, Cell, Listed, ListedLine, Note, Rows, Shown, count
from ..display.texts import FORMATS, element_value, statistics, type_of_value, value_lines
from ..expressions import Name, PathName, Sliced, evaluate, expression_text, instance_of
from ..session.session import (
    Command,
    Outcome,
    Session,
    answered,
    context,
    expression,
    line_meant,
    none,
    option,
    where,
    whole,
)
from ..stops import Breakpoint, describe
from ..timeline.history import Refused, call_frames

_AROUND: Final = 5
_MANY: Final = 4096
_FORMAT: Final = re.compile(r"/([a-z])\b")


# ---- Values -----------------------------------------------------------------------------------


def _print(session: Session, text: str) -> Answer:
    text, limit = option(text, "-n")
    form = "d"
    match = _FORMAT.match(text)
    if match is not None:
        form, text = match[1], text[match.end() :]
        if form not in FORMATS:
            raise Refused(f"there is no format /{form}", tuple(f"/{it}" for it in FORMATS))
    said = expression(session, text)
    value = evaluate(said, context(session))
    name = text.strip()
    if isinstance(said, Name | PathName):
        name = instance_of(said, context(session)).path
    return shown(name, value, form, 64 if limit is None else whole(limit, least=1))


def shown(name: str, value: Value | str, form: str, limit: int) -> Shown:
    """A value as an answer; at most `limit` of its elements."""
    if isinstance(value, str):
        return Shown(name, "text", (quote(value),))
    rows = () if isinstance(value, np.ndarray) and value.size <= 8 else statistics(value)
    if not isinstance(value, np.ndarray):
        return Shown(name, type_of_value(value), value_lines(value, form, limit), rows)
    flat = value.reshape(-1)
    elements = tuple(element_value(flat[i : i + 1]) for i in range(min(value.size, limit)))
    more = max(value.size - limit, 0)
    return Shown(name, type_of_value(value), value_lines(value, form, limit), rows, tuple(value.shape), elements, more)


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
    shown = tuple(ListedLine(it.number, it.text, it.number == here, stops_on(session, it.number)) for it in chosen)
    after = chosen[-1].number + 1
    return Outcome(replace(session, listed=after if after <= len(lines) else 1), Listed(shown))


def stops_on(session: Session, number: int) -> tuple[int, ...]:
    """The numbers of the breakpoints on a line of the listing."""
    line = session.listing.lines[number - 1]
    return tuple(
        it.number
        for it in session.stops
        if isinstance(it, Breakpoint)
        and (
            line.node in it.at.nodes
            or (line.call and line.call in it.at.calls)
            or (line.kind == "return" and line.graph in it.at.returns)
        )
    )


def _where(session: Session, text: str) -> Answer:
    none(text)
    stack = call_frames(session.state, session.moment.next)
    rows = []
    for number, place in enumerate(reversed(stack)):
        line = None if place.node is None else session.listing.of_node.get(place.node)
        node = "end" if place.node is None else session.model.nodes[place.node].op_type
        mark = "*" if number == session.frame else ""
        rows.append((count(number, f"{number}{mark}"), place.path, count(place.run), count(line), node))
    return Rows("frames", ("frame", "graph or call", "run", "line", "next"), tuple(rows))


def _moved_frame(session: Session, target: int) -> Outcome:
    stack = call_frames(session.state, session.moment.next)
    if not 0 <= target < len(stack):
        raise Refused("this is the outermost frame" if target > 0 else "this is the innermost frame")
    changed = replace(session, frame=target)
    place = stack[len(stack) - 1 - target]
    line = None if place.node is None else session.listing.of_node.get(place.node)
    text = "" if line is None else f": line {line}, {session.listing.lines[line - 1].text.strip()}"
    return Outcome(changed, Note((f"frame {target}, {place.path}{text}",)))


# ---- Tables about the session ---------------------------------------------------------------------

_MANY_ROWS: Final = 200


def _breakpoints(session: Session, text: str) -> Answer:
    none(text)
    rows = []
    for stop in session.stops:
        kind, where, extra = describe(stop)
        condition = "" if stop.condition is None else f"if {expression_text(stop.condition)}"
        only = " ".join(it for it in (extra, condition) if it)
        rows.append((count(stop.number), kind, where, only, "" if stop.enabled else "off"))
    return Rows("stops", ("number", "kind", "where", "only", "state"), tuple(rows))


def _tensors(session: Session, text: str) -> Answer:
    state, pattern = session.state, text.strip()
    rows: list[tuple[str | Cell, ...]] = []
    more = 0
    for frame in reversed(frames(state)):
        for t, region in items(frame.table):
            name = session.model.tensors[t].name
            if pattern and not fnmatchcase(name, pattern):
                continue
            if len(rows) >= _MANY_ROWS:
                more += 1
                continue
            value = None if region.freed else value_of(state, t)
            shown = "freed" if value is None else content(value)
            rows.append(
                (tensor_path(state, t), type_text(region.type), count(region.offset, f"0x{region.offset:x}"), shown)
            )
    notes = (f"{more} more: give a glob of names",) if more else ()
    return Rows("tensors that have a value", ("tensor", "type", "address", "content"), tuple(rows), notes)


def _memory(session: Session, text: str) -> Answer:
    none(text)
    state, history = session.state, session.history
    known = [history.at(i).state.store.memory for i in range(history.last, max(history.last - _MANY_ROWS, -1), -1)]
    written = sum(it.written for i in range(1, session.index + 1) if (it := history.at(i).came) is not None)
    rows = (
        ("size of M", _size(state.store.memory.size)),
        ("greatest so far", _size(state.store.space.peak)),
        ("pieces", count(len(state.store.memory.segments))),
        ("written by the steps so far", _size(written)),
        ("kept for the last states", _size(history_bytes(known))),
    )
    return Rows("memory", ("what", "bytes"), rows)


def _size(number: int) -> Cell:
    return count(number, sizes(number))


def _ready(session: Session, text: str) -> Answer:
    none(text)
    state, rows = session.state, []
    for n in enabled(state)[:_MANY_ROWS]:
        line = session.listing.of_node.get(n, 0)
        rows.append((node_path(state, n), count(line), "next" if n == session.moment.next else ""))
    return Rows("nodes that may come next", ("node", "line", ""), tuple(rows))


def _schedule(session: Session, text: str) -> Answer:
    none(text)
    history = session.history
    chosen = tuple((f"step {step}", session.model.nodes[n].path) for step, n in sorted(history.chosen.items()))
    rows = (
        ("schedule", str(session.state.schedule)),
        ("steps known", str(history.last) + (", the end" if history.ended else "")),
        ("timeline", f"{session.timelines.index(history)} of {len(session.timelines)}"),
        ("an execution of the model", "yes" if not history.label else f"no: {history.label}"),
        *chosen,
    )
    return Rows("schedule", ("what", ""), rows)


def _inputs(session: Session, text: str) -> Answer:
    none(text)
    graph, rows = session.model.graphs[0], []
    for what, row in (("input", graph.inputs), ("output", graph.outputs)):
        for t in row:
            value = value_of(session.state, t)
            name = quote(session.model.tensors[t].name)
            rows.append(
                (what, name, type_text(session.model.tensors[t].declared), "" if value is None else content(value))
            )
    return Rows("inputs and outputs", ("", "name", "declared", "content"), tuple(rows))


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
    Command("info breakpoints", answered(_breakpoints), "What was set.", examples=("info breakpoints",)),
    Command("info frames", answered(_where), "The frames.", examples=("info frames",)),
    Command("info tensors", answered(_tensors), "Tensors that have a value.", "[GLOB]", (), ("info tensors conv*",)),
    Command("info memory", answered(_memory), "How large the memory is, and the history.", examples=("info memory",)),
    Command("info ready", answered(_ready), "Nodes that may come next.", examples=("info ready",)),
    Command("info schedule", answered(_schedule), "The order and the timeline.", examples=("info schedule",)),
    Command("info inputs", answered(_inputs), "Inputs and outputs of the model.", examples=("info inputs",)),
)  # fmt: skip
