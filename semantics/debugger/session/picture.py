"""The graph that runs as a picture, with what has fired, what comes next and what could: DOT, and SVG laid out here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sonnx.spec.pages.svg import drawing, rectangle, shape, text

from ...machine.state import has_value
from ...machine.transitions import enabled
from ...model.graph import NodeId
from ...model.path import operator_text
from ...model.schemas import normal_domain
from ..display.listing import single
from ..timeline.history import Refused
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
