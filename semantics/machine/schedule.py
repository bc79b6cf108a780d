"""Schedules: which enabled node fires next, as data. The agenda, what a schedule keeps in mind, is part of the state.

topological: a fixed order. data-driven: any node that is enabled; the choice is drawn from a seed, or was recorded.
demand-driven: what the outputs need, and nothing else. All of them apply the same step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..errors import InternalError
from ..model.graph import GraphId, NodeId, TensorId
from ..operators.application import Program
from ..resources import quick
from ..resources.persistent import PersistentMap, get, persistent_map, put, remove

_MASK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Schedule:
    """kind: topological, random (data-driven, by `seed`), recorded (`choices`: the node of each step) or demand."""

    kind: str = "topological"
    seed: int = 0
    choices: tuple[NodeId, ...] = ()

    def __str__(self) -> str:
        return f"random:{self.seed}" if self.kind == "random" else self.kind


def parse_schedule(text: str) -> Schedule | None:
    """The schedule that a text names: topological, random:SEED (0 to 2**64 - 1) or demand; None for any other text."""
    if text in ("topological", "demand"):
        return Schedule(text)
    match = re.fullmatch(r"random:([0-9]{1,20})", text, re.ASCII)
    return Schedule("random", int(match[1])) if match and int(match[1]) <= _MASK else None


# ---- Agendas ----------------------------------------------------------------------------------


@quick
@dataclass(frozen=True, slots=True)
class Ordered:
    """The position in the order of the graph from which on nodes may be left."""

    position: int = 0


@quick
@dataclass(frozen=True, slots=True)
class Ready:
    """The enabled nodes, numbered without gaps, and back; and how many tensors each other node still waits for.

    The last tensor of a node is not counted: it comes once, and then nobody asks again.
    """

    nodes: PersistentMap[int, NodeId]
    numbers: PersistentMap[NodeId, int]
    waiting: PersistentMap[NodeId, int]


@quick
@dataclass(frozen=True, slots=True)
class Wanted:
    """A stack of nodes that are needed, the next one on top; `seen` of the tensors that it reads have a value."""

    node: NodeId
    seen: int
    below: Wanted | None


@quick
@dataclass(frozen=True, slots=True)
class Demands:
    """The outputs of the graph from position `output` on are still to be asked for, after what `stack` needs."""

    output: int = 0
    stack: Wanted | None = None


Agenda = Ordered | Ready | Demands
Has = Callable[[TensorId], bool]
"""True where a tensor has a value."""


def agenda(schedule: Schedule, program: Program, graph: GraphId) -> Agenda:
    """The agenda with which a run of a graph begins."""
    match schedule.kind:
        case "topological":
            return Ordered()
        case "demand":
            return Demands()
        case "random" | "recorded":
            return program.remembered(("agenda", graph), lambda: _ready(program, graph))
        case _:
            raise InternalError(f"there is no schedule {schedule.kind}")


def _ready(program: Program, graph: GraphId) -> Ready:
    nodes = program.ready(graph)
    return Ready(
        persistent_map(enumerate(nodes)),
        persistent_map((n, number) for number, n in enumerate(nodes)),
        persistent_map((n, program.missing[n]) for n in program.model.graphs[graph].nodes if program.missing[n]),
    )


def after(current: Agenda, program: Program, node: NodeId, written: Sequence[TensorId]) -> Agenda:
    """The agenda when a node of the graph has been chosen and these tensors, of that graph, have got values."""
    if isinstance(current, Ordered):
        order, at = program.orders[program.model.nodes[node].graph], current.position
        return Ordered(at + 1) if at < len(order) and order[at] == node and written else current
    if isinstance(current, Demands):
        return current
    waiting, nodes, numbers = current.waiting, current.nodes, current.numbers
    count, number = nodes.size, get(numbers, node)
    if number is not None:  # the last one gets its number
        count -= 1
        numbers = remove(numbers, node)
        if number != count:
            moved = nodes[count]
            nodes, numbers = put(nodes, number, moved), put(numbers, moved, number)
    for t in written:
        for reader in program.readers.get(t, ()):
            left = get(waiting, reader)
            if left is None:
                continue  # a node of a body: its holder waits
            if left > 1:
                waiting = put(waiting, reader, left - 1)
            elif program.writes[reader]:
                nodes, numbers = put(nodes, count, reader), put(numbers, reader, count)
                count += 1
    return Ready(remove(nodes, count) if count < nodes.size else nodes, numbers, waiting)


# ---- Choosing ---------------------------------------------------------------------------------


def choose(
    schedule: Schedule, current: Agenda, program: Program, graph: GraphId, has: Has, steps: int
) -> tuple[NodeId | None, Agenda]:
    """The node of the graph that comes next, None when the schedule has no more for it; and the agenda then."""
    match current:
        case Ordered():
            return _in_order(current, program, graph, has)
        case Demands():
            return _demanded(current, program, graph, has)
        case Ready():
            if schedule.kind == "recorded":
                return (schedule.choices[steps] if steps < len(schedule.choices) else None), current
            count = current.nodes.size
            return (current.nodes[_drawn(schedule.seed, steps, count)] if count else None), current


def _in_order(current: Ordered, program: Program, graph: GraphId, has: Has) -> tuple[NodeId | None, Agenda]:
    order = program.orders[graph]
    for position in range(current.position, len(order)):
        node = order[position]
        writes = program.writes[node]
        if writes and not any(map(has, writes)):
            return node, current if position == current.position else Ordered(position)
    return None, Ordered(len(order))


def _demanded(current: Demands, program: Program, graph: GraphId, has: Has) -> tuple[NodeId | None, Agenda]:
    """Depth first, without recursion: the first tensor without a value that the node on top reads comes before it."""
    outputs = program.model.graphs[graph].outputs
    output, stack = current.output, current.stack
    while True:
        if stack is None:
            while output < len(outputs) and has(outputs[output]):
                output += 1
            producer = program.producers.get(outputs[output]) if output < len(outputs) else None
            if producer is None:
                return None, Demands(output)
            stack = Wanted(producer, 0, None)
        if any(map(has, program.writes[stack.node])):
            stack = stack.below
            continue
        reads = program.reads[stack.node]
        seen = stack.seen
        while seen < len(reads) and has(reads[seen]):
            seen += 1
        if seen != stack.seen:
            stack = Wanted(stack.node, seen, stack.below)
        if seen == len(reads):
            return stack.node, Demands(output, stack)
        producer = program.producers.get(reads[seen])
        if producer is None:
            return None, Demands(output, stack)
        stack = Wanted(producer, 0, stack)


def _drawn(seed: int, steps: int, count: int) -> int:
    """A number below count from a seed and the number of the step: SplitMix64, so that any state can be continued.

    Source: Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
    """
    mixed = (seed + (steps + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return (mixed ^ mixed >> 31) % count
