"""A graph ready to run: steps that read and write numbered slots; and whose memory a value lies in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...model.graph import TensorId
from ...model.schemas import Schema
from ...model.values import Array, Map, Optional, Value, tensors_in
from ...model.values import Sequence as SequenceValue
from .kernel import Allocate, Compute, Inputs


def root(array: Array) -> Array:
    """The array whose memory an array shows: itself, or what it is a view of."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def roots(value: Value | None) -> Iterator[Array]:
    """The roots of the tensors that a value consists of."""
    return map(root, tensors_in(value))


def rebuilt(value: Value, change: Callable[[Array], Array]) -> Value:
    """The value with each of its tensors replaced."""
    match value:
        case np.ndarray():
            return change(value)
        case SequenceValue(items=items):
            return replace(value, items=tuple(rebuilt(item, change) for item in items))
        case Optional(item=item):
            return value if item is None else replace(value, item=rebuilt(item, change))
        case Map(items=pairs):
            return replace(value, items=tuple((key, rebuilt(item, change)) for key, item in pairs))


ABSENT, UNUSED = 0, 1
"""The slots of what is left out: the first is read and holds None, the second is written."""


@dataclass(frozen=True, slots=True)
class Step:
    """One computation. reads, writes: slots by position. dying: slots that no later step reads.

    memory: where a provider has its own; None for the session's. where: what messages call it; schema: of a single
    node, against which the types of its inputs are checked when a run is recorded. beside: other steps may run at the
    same time.
    """

    compute: Compute
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    dying: tuple[int, ...]
    where: str
    in_place: bool = False
    memory: Allocate | None = None
    schema: Schema | None = None
    beside: bool = False


@dataclass(frozen=True, slots=True)
class Compiled:
    """A graph. start: the slots with what is known before a run; inputs: the slots of the graph's inputs, then those of
    the captured tensors; last_reads: for each slot the number of the last step that reads it, the number of steps for
    an output, -1 for one that nothing reads.
    """

    steps: tuple[Step, ...]
    start: tuple[Value | None, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    last_reads: tuple[int, ...]


def begun(compiled: Compiled, inputs: Inputs) -> list[Value | None]:
    """The slots at the beginning of a run."""
    slots = list(compiled.start)
    for slot, value in zip(compiled.inputs, inputs, strict=True):
        slots[slot] = value
    return slots


@dataclass(frozen=True, slots=True)
class Piece:
    """A computation on tensors, before slots are given out: the same as a `Step`."""

    compute: Compute
    reads: tuple[TensorId | None, ...]
    writes: tuple[TensorId | None, ...]
    where: str
    in_place: bool = False
    memory: Allocate | None = None
    schema: Schema | None = None
    beside: bool = False


def linked(
    pieces: Sequence[Piece],
    inputs: Sequence[TensorId],
    outputs: Sequence[TensorId],
    constants: dict[TensorId, Value],
) -> Compiled:
    """The pieces, which come in an order in which they can run, with slots for their tensors.

    constants: no input is among them. A tensor that nothing gives has a slot that holds None.
    """
    start: list[Value | None] = [None, None]
    slots: dict[TensorId, int] = {}

    def slot(t: TensorId | None, absent: int) -> int:
        if t is None:
            return absent
        if t not in slots:
            slots[t] = len(start)
            start.append(constants.get(t))
        return slots[t]

    entering = tuple(slot(t, UNUSED) for t in inputs)
    rows = [(tuple(slot(t, ABSENT) for t in it.reads), tuple(slot(t, UNUSED) for t in it.writes)) for it in pieces]
    leaving = tuple(slot(t, ABSENT) for t in outputs)
    last = [-1] * len(start)
    for number, (reads, _) in enumerate(rows):
        for it in reads:
            last[it] = number
    for it in leaving:
        last[it] = len(rows)
    lasting = {ABSENT, UNUSED, *(s for s, value in enumerate(start) if value is not None)}
    steps = []
    for number, (piece, (reads, writes)) in enumerate(zip(pieces, rows, strict=True)):
        touched = dict.fromkeys((*reads, *writes))
        dying = tuple(it for it in touched if last[it] in (number, -1) and it not in lasting)
        kept = (piece.where, piece.in_place, piece.memory, piece.schema, piece.beside)
        steps.append(Step(piece.compute, reads, writes, dying, *kept))
    return Compiled(tuple(steps), tuple(start), entering, leaving, tuple(last))
