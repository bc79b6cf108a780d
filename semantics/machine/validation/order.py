"""The order of steps: the node that comes next by the schedule which the head of a trace names.

topological: the first of the order of the graph that has given nothing yet. demand: what the outputs need, depth first.
random:SEED: one of the enabled nodes, drawn by SplitMix64 from the seed and the number of the step (Steele, Lea, Flood:
Fast splittable pseudorandom number generators, OOPSLA 2014). recorded: the choice of who ran it, which may be any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from ...model.graph import GraphId, NodeId, TensorId
from ...operators.application import Program
from .rules import Refused, Turn

SCHEDULE: Final = "the schedule"
_WORDS: Final = "topological, demand, recorded or random:SEED"
_MASK: Final = 2**64 - 1

Has = Callable[[TensorId], bool]
"""True where a tensor has a value."""


@dataclass(slots=True)
class _Left:
    """What is left of a run of a graph. position: in its order. output, needed: which output is asked for, and what
    nodes it needs, the next one last. ready, places: the enabled nodes and where they stand. waiting: for how many
    tensors each other node waits."""

    position: int = 0
    output: int = 0
    needed: list[NodeId] = field(default_factory=list)
    ready: list[NodeId] = field(default_factory=list)
    places: dict[NodeId, int] = field(default_factory=dict)
    waiting: dict[NodeId, int] = field(default_factory=dict)


class Order:
    """The choices of a schedule, run by run of each graph. Raises Refused for a text that names none."""

    def __init__(self, schedule: str, program: Program) -> None:
        kind, _, seed = schedule.partition(":")
        drawn = re.fullmatch(r"random:(0|[1-9][0-9]{0,19})", schedule, re.ASCII)
        if schedule not in ("topological", "demand", "recorded") and not (drawn and int(seed) <= _MASK):
            raise Refused("", SCHEDULE, f"a schedule is {_WORDS}", schedule)
        self.kind, self._seed, self._program = kind, int(seed or 0), program
        self._runs = [self._begun(0)]

    def next(self, graph: GraphId, has: Has, steps: int) -> NodeId | None:
        """The node of the graph that runs that comes next after so many steps; None when there is no more."""
        left = self._runs[-1]
        match self.kind:
            case "topological":
                return self._in_order(left, graph, has)
            case "demand":
                return self._demanded(left, graph, has)
        return left.ready[_drawn(self._seed, steps, len(left.ready))] if left.ready else None

    def done(self, turn: Turn, graph: GraphId) -> None:
        """A step is done. graph: the one that ran."""
        if turn.leaves:
            self._runs.pop()
        if turn.again is not None:
            self._runs[-1] = self._begun(graph)
            return
        self._fired(turn.node, () if turn.enters is not None else [it.tensor for it in turn.results])
        if turn.enters is not None:
            self._runs.append(self._begun(turn.enters))

    def _begun(self, graph: GraphId) -> _Left:
        if self.kind != "random":
            return _Left()
        ready, missing = list(self._program.ready(graph)), self._program.missing
        waiting = {n: missing[n] for n in self._program.model.graphs[graph].nodes if missing[n]}
        return _Left(ready=ready, places={n: place for place, n in enumerate(ready)}, waiting=waiting)

    def _in_order(self, left: _Left, graph: GraphId, has: Has) -> NodeId | None:
        order = self._program.order(graph)
        while left.position < len(order):
            writes = self._program.writes[order[left.position]]
            if writes and not any(map(has, writes)):
                return order[left.position]
            left.position += 1
        return None

    def _demanded(self, left: _Left, graph: GraphId, has: Has) -> NodeId | None:
        outputs, program = self._program.model.graphs[graph].outputs, self._program
        while True:
            if not left.needed:
                while left.output < len(outputs) and has(outputs[left.output]):
                    left.output += 1
                wanted = outputs[left.output] if left.output < len(outputs) else None
            elif any(map(has, program.writes[left.needed[-1]])):
                left.needed.pop()
                continue
            else:
                wanted = next((t for t in program.reads[left.needed[-1]] if not has(t)), None)
                if wanted is None:
                    return left.needed[-1]
            producer = None if wanted is None else program.producers.get(wanted)
            if producer is None:
                return None
            left.needed.append(producer)

    def _fired(self, n: NodeId, written: Iterable[TensorId]) -> None:
        left, program = self._runs[-1], self._program
        if n in left.places:
            place, last = left.places.pop(n), left.ready.pop()
            if last != n:
                left.ready[place], left.places[last] = last, place
        for t in written:
            for reader in program.readers.get(t, ()):
                if reader not in left.waiting:
                    continue  # a node of a body: its holder waits
                left.waiting[reader] -= 1
                if not left.waiting[reader]:
                    del left.waiting[reader]
                    if program.writes[reader]:
                        left.places[reader] = len(left.ready)
                        left.ready.append(reader)


def _drawn(seed: int, steps: int, count: int) -> int:
    """A number below count."""
    mixed = (seed + (steps + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return (mixed ^ mixed >> 31) % count
