"""Where an execution stands: the graphs and calls that it is in, read off the state alone.

A call was expanded when the model was loaded, so no transition enters it. At the first node of a call the execution
stands before the call, when it came from outside: whether it is in the call depends on the position, not on how one got
there, so that stepping back undoes stepping forward.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...machine.state import Frame, State, frames
from ...model.graph import GraphId, NodeId
from .history import History, Moment

Level = GraphId | str
"""A graph that runs, or the path of a call."""


@dataclass(frozen=True, slots=True)
class Place:
    """One frame as a person sees it, a graph or a call.

    node: the next node in it, the holder of a body that ends included; None at the end. path: of the graph with the
    numbers of its runs, or of the call. run: which run of a body, None for the main graph, a branch or a call. depth:
    how many frames of the machine lie below the one that it belongs to.
    """

    level: Level
    node: NodeId | None
    path: str
    run: int | None
    depth: int


def levels(state: State, n: NodeId | None) -> tuple[Level, ...]:
    """The graphs and calls, outermost first, in which the node n comes next."""
    return tuple(place.level for place in places(state, n))


def places(state: State, n: NodeId | None) -> tuple[Place, ...]:
    """The frames, outermost first, for the node n that comes next."""
    model, stack = state.program.model, frames(state)
    found: list[Place] = []
    around: tuple[str, ...] = ()
    for depth, frame in enumerate(stack):
        node = stack[depth + 1].holder if depth + 1 < len(stack) else n
        found.append(Place(frame.graph, node, frame.prefix.rstrip("/") or "/", _run(frame), depth))
        if node is None or model.nodes[node].graph != frame.graph:
            continue
        calls = model.nodes[node].calls
        inner = calls[len(around) :] if calls[: len(around)] == around else calls
        found += [Place(call, node, call, None, depth) for call in inner]
        around = calls
    return tuple(found)


def base(history: History, index: int) -> tuple[Level, ...]:
    """The levels in which the execution is at a moment: those of the next node, without calls that begin there."""
    moment = history.at(index)
    now = levels(moment.state, moment.next)
    floor = max(i for i, level in enumerate(now) if isinstance(level, int)) + 1
    if index == 0 or moment.came is None:
        return now[:floor]
    before = levels(history.at(index - 1).state, moment.came.node)
    same = 0
    while same < min(len(now), len(before)) and now[same] == before[same]:
        same += 1
    return now[: max(same, floor)]


def inside(levels_: tuple[Level, ...], outer: tuple[Level, ...]) -> bool:
    """Whether levels lie strictly inside of others."""
    return len(levels_) > len(outer) and levels_[: len(outer)] == outer


def is_end_of_body(moment: Moment) -> bool:
    """Whether the graph that runs has all its outputs, so that its holder goes on."""
    return moment.next is not None and moment.next == moment.state.frame.holder


def _run(frame: Frame) -> int | None:
    return frame.run if "@" in frame.prefix.rsplit("/", 2)[-2] else None
