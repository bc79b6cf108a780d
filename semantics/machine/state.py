"""The state of the machine, (G, M, K): the program, the memory with the tables of what lies where, and the frames."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.graph import GraphId, NodeId, TensorId
from ..model.values import Value
from ..operators.application import Program
from ..resources import quick
from ..resources.persistent import PersistentMap, get
from .memory import Region, Store, load_value
from .schedule import Agenda, Schedule

Table = PersistentMap[TensorId, Region]
"""T: where the value of each tensor of one run of a graph lies."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Regions of the values that one run of a body gave to its outputs, by position (None: not collected), and those of
    the runs before."""

    places: tuple[Region | None, ...]
    before: Kept | None = None


@quick
@dataclass(frozen=True, slots=True)
class Frame:
    """One run of a graph: its table, what is to be done next, and the frame of the graph that waits for it.

    left: where space is used again, how many nodes are still to read a tensor; all of them where it says nothing.
    holder: the node whose body this is, None for the main graph. run: which run of the body it is. runs: how many
    there will be, None where that is not known beforehand. kept: what the runs before gave. prefix: how the paths of
    its nodes and tensors begin in place of the path of the graph, with the number of the run.
    """

    graph: GraphId
    table: Table
    agenda: Agenda
    left: PersistentMap[TensorId, int] = PersistentMap()  # noqa: RUF009 - it is immutable
    holder: NodeId | None = None
    run: int = 0
    runs: int | None = None
    kept: Kept | None = None
    prefix: str = "/"
    below: Frame | None = None


def advanced_frame(
    frame: Frame, table: Table, agenda: Agenda, left: PersistentMap[TensorId, int] | None = None
) -> Frame:
    """The frame with another table and agenda; `replace` takes too long for every step."""
    counts = frame.left if left is None else left
    return Frame(
        frame.graph, table, agenda, counts, frame.holder, frame.run, frame.runs, frame.kept, frame.prefix, frame.below
    )


@quick
@dataclass(frozen=True, slots=True)
class State:
    """A state: G and what is known of it, M with the bookkeeping of its space, and the frame on top.

    stored: for each graph the table of its initializers, with which each run of it begins.
    steps: how many transitions led here; the schedule decides by this number which of several nodes fires.
    """

    program: Program
    store: Store
    frame: Frame
    schedule: Schedule
    stored: tuple[Table, ...]
    steps: int = 0


def region_of(state: State, t: TensorId) -> Region | None:
    """The region of a tensor's value, in the run at hand of the graph that it belongs to; None when it has none."""
    frame: Frame | None = state.frame
    where = get(state.frame.table, t)
    if where is not None or state.frame.below is None:
        return where
    graph = state.program.model.tensors[t].graph
    while frame is not None and frame.graph != graph:
        frame = frame.below
    return None if frame is None else get(frame.table, t)


def value_of(state: State, t: TensorId) -> Value | None:
    """The value of a tensor; None when it has none, and when its space was given to another tensor."""
    place = region_of(state, t)
    return None if place is None or place.freed else load_value(state.store, place)


def has_value(state: State, t: TensorId) -> bool:
    """t in dom(M): the tensor has got a value, whether or not its space is used for another one since."""
    return region_of(state, t) is not None


def frames(state: State) -> tuple[Frame, ...]:
    """The frames, that of the main graph first."""
    stack = []
    frame: Frame | None = state.frame
    while frame is not None:
        stack.append(frame)
        frame = frame.below
    return tuple(reversed(stack))


def node_path(state: State, n: NodeId) -> str:
    """The path of a node with the numbers of the runs that it is in. n: of the graph that runs, or its holder."""
    model = state.program.model
    node, frame = model.nodes[n], state.frame
    if n == frame.holder and frame.below is not None:
        frame = frame.below
    if frame.below is None:
        return node.path  # no numbers of runs
    return frame.prefix + node.path[len(_start(model.graphs[frame.graph].path)) :]


def tensor_path(state: State, t: TensorId) -> str:
    """The path of a tensor with the numbers of the runs that it is in."""
    model = state.program.model
    tensor = model.tensors[t]
    frame: Frame | None = state.frame
    while frame is not None and frame.graph != tensor.graph:
        frame = frame.below
    return tensor.path if frame is None else frame.prefix + tensor.path[len(_start(model.graphs[frame.graph].path)) :]


def run_prefix(state: State, holder: NodeId, graph: GraphId, run: int | None) -> str:
    """The beginning of the paths in a run of a body; run is None for a branch, which runs once.

    holder is a node of the frame on top.
    """
    model = state.program.model
    node = model.nodes[holder]
    rest = model.graphs[graph].path[len(node.path) :]
    return f"{node_path(state, holder)}{rest}{'' if run is None else f'@{run}'}/"


def _start(graph: str) -> str:
    return graph if graph.endswith("/") else graph + "/"
