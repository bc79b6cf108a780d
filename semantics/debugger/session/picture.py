"""The graph at the position of a session: DOT and SVG of the graph that runs, and a page of the whole model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from sonnx.spec.pages.svg import drawing, rectangle, shape, text

from ...machine.report import why
from ...machine.spelling import single
from ...machine.state import State, frames, has_value, value_of
from ...machine.transitions import enabled
from ...model.graph import NodeId, TensorId
from ...model.path import operator_text, quote
from ...model.schemas import normal_domain
from ...model.values import Value, tensors_in
from ...picture.notes import Content, Mark, Picture, in_order
from ..display.texts import element_text, statistics, type_of_value
from ..stops import Breakpoint, Stop, describe, mask_of
from ..timeline.history import History, Refused, edit_text, supplied_text
from .session import Session

_MOST: Final = 400
"""Nodes of a picture: those about the position, in the order of the file."""
_WIDTH, _HEIGHT, _GAP = 150, 34, 26
_COLOURS: Final = {"next": "#ffd24d", "ready": "#fff2c2", "fired": "#cfe8cf", "": "#ffffff"}


def dot(session: Session) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph sonnx {", "  rankdir=TB; node [shape=box, style=filled, fontname=monospace];"]
    kinds = _kinds(session)
    for n, kind in kinds.items():
        lines.append(f'  n{n} [label="{_label(session, n)}", fillcolor="{_COLOURS[kind]}"];')
    lines += [f"  n{a} -> n{b};" for a, b in _edges(session, kinds)]
    return "\n".join([*lines, "}", ""])


def svg(session: Session) -> str:
    """The graph as SVG: each node below all that it reads from."""
    kinds = _kinds(session)
    edges = _edges(session, kinds)
    at = _placed(kinds, edges)
    width = max((x for x, _ in at.values()), default=0) + _WIDTH + _GAP
    middle = _WIDTH // 2
    height = max((y for _, y in at.values()), default=0) + _HEIGHT + _GAP
    lines = [
        shape("line", x1=at[a][0] + middle, y1=at[a][1] + _HEIGHT, x2=at[b][0] + middle, y2=at[b][1], stroke="#888")
        for a, b in edges
    ]
    boxes = [
        (
            rectangle(x, y, _WIDTH, _HEIGHT, fill=_COLOURS[kinds[n]], stroke="#b00" if kinds[n] == "next" else "#444"),
            text(x + 6, y + 21, _label(session, n)),
        )
        for n, (x, y) in at.items()
    ]
    ground = rectangle(0, 0, width, height, fill="white")
    shapes = (ground, *lines, *(piece for box in boxes for piece in box))
    return f"{drawing(width, height, shapes, font_family='monospace', font_size=12)}\n"


def _kinds(session: Session) -> Mapping[NodeId, str]:
    """The part that each node of the graph that runs plays: next, ready, fired, or none of these."""
    state, model = session.state, session.model
    nodes = model.graphs[state.frame.graph].nodes
    if not nodes:
        raise Refused("the graph that runs has no nodes")
    here = session.moment.next
    middle = nodes.index(here) if here in nodes else len(nodes) - 1
    first = max(min(middle - _MOST // 2, len(nodes) - _MOST), 0)
    ready = set(enabled(state))
    kinds = {}
    for n in nodes[first : first + _MOST]:
        fired = any(has_value(state, t) for t in state.program.writes[n])
        kinds[n] = "next" if n == here else "ready" if n in ready else "fired" if fired else ""
    return kinds


def _edges(session: Session, nodes: Mapping[NodeId, str]) -> list[tuple[NodeId, NodeId]]:
    program = session.state.program
    edges: dict[tuple[NodeId, NodeId], None] = {}
    for n in nodes:
        for t in program.reads[n]:
            producer = program.producers.get(t)
            if producer in nodes and producer is not None and producer != n:
                edges[producer, n] = None
    return list(edges)


def _placed(nodes: Mapping[NodeId, str], edges: list[tuple[NodeId, NodeId]]) -> dict[NodeId, tuple[int, int]]:
    """Left upper corners: one row for each length of the longest way to a node."""
    rank = dict.fromkeys(nodes, 0)
    for _ in nodes:
        changed = False
        for a, b in edges:
            if rank[b] <= rank[a]:
                rank[b], changed = rank[a] + 1, True
        if not changed:
            break
    columns: dict[int, int] = {}
    placed = {}
    for n in nodes:
        column = columns.get(rank[n], 0)
        columns[rank[n]] = column + 1
        placed[n] = (_GAP + column * (_WIDTH + _GAP), _GAP + rank[n] * (_HEIGHT + _GAP))
    return placed


def _label(session: Session, n: NodeId) -> str:
    node = session.model.nodes[n]
    text = f"{session.listing.of_node[n]} {single(operator_text(normal_domain(node.domain), node.op_type))}"
    return (text if len(text) <= 20 else f"{text[:18]}..").replace("\\", "/").replace('"', "'")


# ---- The whole model, as a page ---------------------------------------------------------------------

MARKS: Final = (
    Mark("stuck", "!!", "stuck", "alarm"),
    Mark("next", "\u25b6", "comes next", "next"),
    Mark("inside", "\u25b7", "a body of it runs", "next"),
    Mark("nan", "NaN", "NaN in its output", "bad"),
    Mark("inf", "Inf", "infinity in its output", "warn"),
    Mark("outside", "\u2190", "a value in its output is by no definition: supplied, of an engine, or set", "warn"),
    Mark("break", "\u25cf", "breakpoint", ""),
    Mark("ran", "\u2713", "has run", "done"),
    Mark("earlier", "\u21ba", "ran in a run of its body that is over", "faint"),
    Mark("waiting", "", "has not run", "plain"),
)
_ELEMENTS: Final = 1 << 25
"""So many elements of all values together are looked at."""
_FIRST: Final = 4
_UNREAD: Final = (("not", "looked at: there are too many elements"),)


def annotated(session: Session) -> Picture:
    """All nodes with their part in the execution up to the position, and each value as it was written last."""
    model, moment, history = session.model, session.moment, session.history
    written = {t: next(history.writes(t, session.index), None) for t in range(len(model.tensors))}
    outside = {t: _outside(history, t, step) for t, step in written.items() if step is not None}
    values, faults = _values(session, written, outside)
    holders = {frame.holder for frame in frames(session.state)}
    stuck = history.stuck if history.ended and session.index == history.last else None
    marked: dict[NodeId, tuple[str, ...]] = {}
    said: dict[NodeId, tuple[str, ...]] = {}
    for n, node in enumerate(model.nodes):
        gives = [t for t in node.outputs if t is not None]
        names = {name for t in gives for name in faults.get(t, ())}
        names |= {_part(session.state, gives, written)} if gives else set()
        names |= {"outside"} if any(outside.get(t) for t in gives) else set()
        if n in holders:
            names = names - {"waiting"} | {"inside"}
        if n == moment.next:
            names.add("next" if stuck is None else "stuck")
            said[n] = () if stuck is None else (why(stuck),)
        marked[n] = in_order(names, MARKS)
    placed: set[int] = set()
    for stop in session.stops:
        if isinstance(stop, Breakpoint) and stop.enabled:
            called = {call: n for n in range(len(model.nodes) - 1, -1, -1) for call in model.nodes[n].calls}
            for n in (*stop.at.nodes, *(called[it] for it in stop.at.calls if it in called)):
                placed.add(stop.number)
                marked[n] = in_order((*marked[n], "break"), MARKS)
                said[n] = (*said.get(n, ()), _described(stop))
    apart = tuple(_described(it) for it in session.stops if it.enabled and it.number not in placed)
    general = [f"stuck: {why(stuck)}"] if stuck is not None and moment.next is None else []
    unread = [t for t in values if values[t].rows == _UNREAD and written[t] is not None]
    if unread:
        general.append(f"values of {len(unread)} tensors are too large together: what is NaN there is not marked")
    name = model.files[0].name if model.files else "model"
    facts = (f"step {session.index}: values are as they were last written up to it.",)
    edited = (f"Not an execution of the model: {history.label}.",) if history.label else ()
    return Picture(quote(name)[1:-1], (*facts, *edited), MARKS, marked, said, values, moment.next, (*general, *apart))


def _described(stop: Stop) -> str:
    return " ".join(filter(None, (f"{stop.number}:", *describe(stop))))


def _part(state: State, gives: list[TensorId], written: Mapping[TensorId, int | None]) -> str:
    """The part of a node in the execution, by what it gives."""
    if any(has_value(state, t) for t in gives):
        return "ran"
    return "earlier" if any(written[t] is not None for t in gives) else "waiting"


def _outside(history: History, t: TensorId, step: int) -> tuple[str, ...]:
    """Where the value that a tensor got at a step came from, as far as no definition gave it."""
    came = history.at(step).came
    given = (supplied_text(step, came.supplied),) if came is not None and came.supplied and t in came.tensors else ()
    edits = (it for it in history.edits if it.first == step and it.edit is not None and it.edit.tensor == t)
    return (*given, *map(edit_text, edits))


def _values(
    session: Session, written: Mapping[TensorId, int | None], outside: Mapping[TensorId, tuple[str, ...]]
) -> tuple[Mapping[TensorId, Content], Mapping[TensorId, tuple[str, ...]]]:
    """The values that tensors got last, and the faults in them."""
    contents: dict[TensorId, Content] = {}
    faults: dict[TensorId, tuple[str, ...]] = {}
    left = _ELEMENTS
    for t, step in sorted(written.items(), key=lambda it: it[1] is None):  # what nodes gave first
        value = value_of(session.state if step is None else session.history.at(step).state, t)
        if value is None:
            continue
        arrays = list(tensors_in(value))
        left -= sum(it.size for it in arrays)
        if left < 0:
            contents[t] = Content(type_of_value(value), _UNREAD)
            continue
        contents[t] = _content(value, step, outside.get(t, ()))
        masks = ((what, mask_of(it, what)) for what in ("nan", "inf") for it in arrays if it.dtype != object)
        faults[t] = tuple(dict.fromkeys(what for what, mask in masks if mask is not None and mask.any()))
    return contents, faults


def _content(value: Value, step: int | None, outside: tuple[str, ...]) -> Content:
    at = () if step is None else (("step", str(step)),)
    for words in outside:
        head, _, rest = words.partition(" ")
        at = (*at, (head, rest))
    if not isinstance(value, np.ndarray):
        return Content(type_of_value(value), at)
    wanted = ("min", "max", "mean", "nan", "inf", "true")
    rows = tuple(it for it in statistics(value) if it[0] in wanted) if value.size > _FIRST else ()
    flat = value.reshape(-1)[:_FIRST]
    first = " ".join(element_text(flat[i : i + 1]) for i in range(flat.size))
    named = "first" if value.size > _FIRST else "value"
    return Content(type_of_value(value), (*rows, *at), f"{named} {first}" if flat.size else "")
