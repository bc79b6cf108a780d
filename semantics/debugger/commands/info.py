"""The commands `info WHAT`: tables about the session and its position."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from ...machine.inputs import type_text
from ...machine.memory import history_bytes
from ...machine.report import content, sizes
from ...machine.state import frames, node_path, tensor_path, value_of
from ...machine.transitions import enabled
from ...model.path import quote
from ...resources.persistent import items
from ..display.answers import Answer, Rows
from ..expressions.parsing import expression_text
from ..session.command import Command, answered, none
from ..session.session import Session
from ..stops.stops import describe
from .values import _where

_MANY: Final = 200


def _breakpoints(session: Session, text: str) -> Answer:
    none(text)
    rows = []
    for stop in session.stops:
        kind, where, extra = describe(stop)
        condition = "" if stop.condition is None else f"if {expression_text(stop.condition)}"
        only = " ".join(it for it in (extra, condition) if it)
        rows.append((str(stop.number), kind, where, only, "" if stop.enabled else "off"))
    return Rows("stops", ("number", "kind", "where", "only", "state"), tuple(rows))


def _tensors(session: Session, text: str) -> Answer:
    state, pattern = session.state, text.strip()
    rows: list[tuple[str, ...]] = []
    more = 0
    for frame in reversed(frames(state)):
        for t, where in items(frame.table):
            name = session.model.tensors[t].name
            if pattern and not fnmatchcase(name, pattern):
                continue
            if len(rows) >= _MANY:
                more += 1
                continue
            value = None if where.freed else value_of(state, t)
            shown = "freed" if value is None else content(value)
            rows.append((tensor_path(state, t), type_text(where.type), f"0x{where.offset:x}", shown))
    notes = (f"{more} more: give a glob of names",) if more else ()
    return Rows("tensors that have a value", ("tensor", "type", "address", "content"), tuple(rows), notes)


def _memory(session: Session, text: str) -> Answer:
    none(text)
    state, history = session.state, session.history
    known = [history.at(i).state.store.memory for i in range(history.last, max(history.last - _MANY, -1), -1)]
    written = sum(it.written for i in range(1, session.index + 1) if (it := history.at(i).came) is not None)
    rows = (
        ("size of M", sizes(state.store.memory.size)),
        ("greatest so far", sizes(state.store.space.peak)),
        ("pieces", str(len(state.store.memory.segments))),
        ("written by the steps so far", sizes(written)),
        ("kept for the last states", sizes(history_bytes(known))),
    )
    return Rows("memory", ("what", "bytes"), rows)


def _ready(session: Session, text: str) -> Answer:
    none(text)
    state, rows = session.state, []
    for n in enabled(state)[:_MANY]:
        line = session.listing.of_node.get(n, 0)
        rows.append((node_path(state, n), str(line), "next" if n == session.moment.next else ""))
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
    Command("info breakpoints", answered(_breakpoints), "What was set.", examples=("info breakpoints",)),
    Command("info frames", answered(_where), "The frames.", examples=("info frames",)),
    Command("info tensors", answered(_tensors), "Tensors that have a value.", "[GLOB]", (), ("info tensors conv*",)),
    Command("info memory", answered(_memory), "How large the memory is, and the history.", examples=("info memory",)),
    Command("info ready", answered(_ready), "Nodes that may come next.", examples=("info ready",)),
    Command("info schedule", answered(_schedule), "The order and the timeline.", examples=("info schedule",)),
    Command("info inputs", answered(_inputs), "Inputs and outputs of the model.", examples=("info inputs",)),
)
