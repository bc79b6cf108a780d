"""Consistency of the values that a run has computed: each is given, or its node computes it from the others.

This is `consistent` of part 6, decided for one memory. By the theorem OrderIndependence any two consistent memories
that begin with the same values agree, so what is found here of a run needs no trust in the order of its steps: only
that an operator, applied once more to the values of the table, gives the bits that stand there. A node that holds
bodies is applied once more by running them alone, from the values that it reads (Consistent).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.library import specification

from ..errors import InternalError
from ..facts.gathering import structure
from ..formulas.evaluate import judge
from ..model.differences import first_of, unequal
from ..model.graph import NodeId, TensorId
from ..model.values import Value
from ..operators.application import Application, Draw, Program, Stuck
from ..resources.persistent import PersistentMap, items, put
from .execution import incomplete, initial, next_node
from .memory import Region, Store, load_value, parts_of, store_value, type_of
from .phases import Advance, Phase, Write
from .schedule import Ordered, Schedule
from .state import Frame, State, Table, frames, node_path, value_of
from .transitions import step

THEOREM: Final = "OrderIndependence"
"""The sentence about consistent memories."""
Progress = Callable[[int, int], None]
"""Called with the number of nodes that were looked at and that of all."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An equation that does not hold. node: its path, "" for a value that is given. tensor: its path.

    element: the first one that differs, None where the values differ as a whole. stated: what the run has. expected:
    what is given or what the node computes, None where nothing gives the tensor a value, and reason says why.
    """

    node: str
    tensor: str
    element: tuple[int, ...] | None = None
    stated: Value | None = None
    expected: Value | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Consistency:
    """A verdict. equations: how many tensors that a node computes were judged; given: how many that are given.

    failures: in the order of the graph; none for a consistent memory. unmet: the constraints, of those that
    OrderIndependence rests on, which the model does not keep; then another consistent memory may have other values.
    """

    equations: int
    given: int
    failures: tuple[Failure, ...] = ()
    unmet: tuple[str, ...] = ()


# ---- The values of a run ----------------------------------------------------------------------


class Consistent:
    """The observer that judges the values of the main graph when the run has ended, those in space used again too.

    judgement: None before the end. inputs: what the run was given. seconds: how long it took.
    Where space is used again, the states in which a value was last read are kept until the end.
    """

    def __init__(self, inputs: Mapping[TensorId, Value], progress: Progress | None = None) -> None:
        self.judgement: Consistency | None = None
        self.seconds = 0.0
        self._inputs, self._progress = inputs, progress
        self._store: Store | None = None
        self._released: dict[TensorId, tuple[Store, Region]] = {}

    def begun(self, state: State) -> None:
        """Nothing is to be noted yet."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """Keeps what is released now: it has its value in the memory into which the step has written."""
        if isinstance(phase, Write):
            self._store = phase.store
        elif isinstance(phase, Advance) and self._store is not None:
            tensors = state.program.model.tensors
            self._released |= {t: (self._store, where) for t, where in phase.released if not tensors[t].graph}

    def ended(self, state: State) -> None:
        """All values are there."""
        started = time.monotonic()
        self.judgement = consistency(state.program, self._inputs, self.table(state), self._progress)
        self.seconds = time.monotonic() - started

    def table(self, state: State) -> dict[TensorId, Value]:
        """The values of the tensors of the main graph."""
        values: dict[TensorId, Value] = {}
        for t, where in items(frames(state)[0].table):
            store, at = self._released[t] if where.freed else (state.store, where)
            values[t] = load_value(store, at)
        return values


# ---- The judgement ----------------------------------------------------------------------------


def consistency(
    program: Program,
    inputs: Mapping[TensorId, Value],
    table: Mapping[TensorId, Value],
    progress: Progress | None = None,
) -> Consistency:
    """The verdict on a table of values of the main graph, computed from these inputs.

    Raises what `initial` raises for stored values that cannot be read.
    """
    start = initial(program.model, inputs, Schedule(), program.meaning, draws=program.draws)
    if isinstance(start, Stuck):
        raise InternalError("there is a budget where none was set")
    given = {t for t, _ in items(start.frame.table)} & table.keys()
    failures = [*_given(start, given, table)]
    writers = {t: n for n in program.model.graphs[0].nodes for t in program.writes[n] if t in table and t not in given}
    for t in sorted(table.keys() - given - writers.keys()):
        failures.append(Failure("", program.model.tensors[t].path, stated=table[t], reason="nothing gives it a value"))
    nodes = dict.fromkeys(n for n in program.model.graphs[0].nodes if n in set(writers.values()))
    for count, n in enumerate(nodes):
        failures += _equations(start, n, [t for t in program.writes[n] if writers.get(t) == n], table)
        if progress is not None:
            progress(count + 1, len(nodes))
    return Consistency(len(writers), len(given), tuple(failures), _unmet(program))


def _unmet(program: Program) -> tuple[str, ...]:
    """The constraints that the theorem needs and that do not hold of the model."""
    text, facts = specification(), structure(program.model)
    rests = (name for name in text.properties[THEOREM].needs if name in text.constraints)
    return tuple(it for it in rests if judge(text.constraints[it], text.functions, facts, limit=1).verdict != "holds")


def _given(start: State, given: set[TensorId], table: Mapping[TensorId, Value]) -> Iterator[Failure]:
    for t in sorted(given):
        expected = value_of(start, t)
        if expected is None:
            raise InternalError("a value that is given is not there")
        yield from _compared("", start.program.model.tensors[t].path, table[t], expected)


def _equations(start: State, n: NodeId, written: list[TensorId], table: Mapping[TensorId, Value]) -> Iterator[Failure]:
    """The equations of a node: it reads what has a value, and computes the value that each of its outputs has."""
    model = start.program.model
    path = model.nodes[n].path
    absent = next((t for t in start.program.reads[n] if t not in table), None)
    if absent is not None:
        for t in written:
            reason = f"{path} reads {model.tensors[absent].path}, which has no value"
            yield Failure(path, model.tensors[t].path, stated=table[t], reason=reason)
        return
    again = _by_body(start, n, table) if model.nodes[n].bodies else _applied(start, n, table)
    for t in written:
        if isinstance(again, Stuck):
            yield Failure(path, model.tensors[t].path, stated=table[t], reason=f"stuck: {again.message}")
        else:
            yield from _compared(path, model.tensors[t].path, table[t], again[t])


def _applied(start: State, n: NodeId, table: Mapping[TensorId, Value]) -> Mapping[TensorId, Value] | Stuck:
    """The values that an operator without a body gives to the outputs of its node."""
    program, node = start.program, start.program.model.nodes[n]
    made = program.meaning(
        Application(
            program.operators[n],
            node.version or 0,
            tuple(None if t is None else table[t] for t in node.inputs),
            program.attributes(n),
            tuple(t is not None for t in node.outputs),
            draw=Draw(program.draws, node_path(start, n)),
        )
    )
    if isinstance(made, Stuck):
        return made
    pairs = zip(node.outputs, made.values, strict=True)
    return {t: value for t, value in pairs if t is not None and value is not None}


def _by_body(start: State, n: NodeId, table: Mapping[TensorId, Value]) -> Mapping[TensorId, Value] | Stuck:
    """The values that a node with bodies gives to its outputs, in a state that has values for what it reads alone."""
    program, store = start.program, start.store
    own: Table = PersistentMap()
    for t in program.reads[n]:
        stored = store_value(store, table[t], "a value")
        if not isinstance(stored, tuple):
            raise InternalError("there is a budget where none was set")
        store, where = stored
        own = put(own, t, where)
    state = State(program, store, Frame(0, own, Ordered()), Schedule(), start.stored)
    following: NodeId | None = n
    while following is not None:
        after = step(state, following)
        if isinstance(after, Stuck):
            return after
        state = after
        if state.frame.holder is None:
            made = {t: value_of(state, t) for t in program.writes[n]}
            return {t: value for t, value in made.items() if value is not None}
        following, state = next_node(state)
    stuck = incomplete(state)
    if stuck is None:
        raise InternalError("a body has ended and is not left")
    return stuck


# ---- Comparing --------------------------------------------------------------------------------


def _compared(node: str, tensor: str, given: Value, expected: Value) -> Iterator[Failure]:
    """The failure where two values differ in a bit, or in their type."""
    if type_of(given) != type_of(expected):
        yield Failure(node, tensor, None, given, expected)
        return
    if not np.array_equal(_bits(given), _bits(expected)):
        yield Failure(node, tensor, _element(given, expected), given, expected)


def _bits(value: Value) -> NDArray[np.uint8]:
    """The bytes that the value has in M."""
    parts = parts_of(value)
    return np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), np.uint8)


def _element(given: Value, expected: Value) -> tuple[int, ...] | None:
    """The first element, in row-major order, in which two tensors of one type differ."""
    if not (isinstance(given, np.ndarray) and isinstance(expected, np.ndarray)) or not given.size:
        return None
    return first_of(unequal(given, expected))
