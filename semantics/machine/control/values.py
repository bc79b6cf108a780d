"""What the rules of If, Loop, Scan and SequenceMap read and compute with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InternalError
from ...model import values
from ...model.graph import GraphId, NodeId, TensorId, ValueType
from ...model.path import quote
from ...model.values import Array, Value, shown
from ...operators.application import Stuck
from ..phases import Mask
from ..regions import load_value
from ..rules import undefined
from ..state import State, tensor_path, value_of


@dataclass(frozen=True, slots=True)
class Results:
    """The tensors that get a value, with their values and the elements that the text leaves open."""

    tensors: tuple[TensorId, ...]
    values: tuple[Value, ...]
    free: tuple[Mask | None, ...] = ()


def results(pairs: Iterable[tuple[TensorId | None, Value | None]]) -> Results:
    """Of tensors and values by position those that are both there; a tensor that is listed twice counts once."""
    found = {t: value for t, value in pairs if t is not None and value is not None}
    return Results(tuple(found), tuple(found.values()))


def held(state: State, n: NodeId, attribute: str) -> GraphId | None:
    """The graph that a node holds as this attribute."""
    return next((g for name, g in state.program.model.nodes[n].bodies if name == attribute), None)


def input_at(state: State, n: NodeId, position: int) -> Value | None:
    """The value of an input of a node; None for one that is absent."""
    inputs = state.program.model.nodes[n].inputs
    t = inputs[position] if position < len(inputs) else None
    return None if t is None else value_of(state, t)


def named(outputs: Sequence[TensorId | None]) -> int:
    """How many outputs a body has to give: up to the last one that carries a name."""
    return max((i + 1 for i, t in enumerate(outputs) if t is not None), default=0)


def outputs_of_run(state: State) -> tuple[Value | None, ...]:
    """The values of the outputs of the body that runs, by position."""
    return tuple(value_of(state, t) for t in state.program.model.graphs[state.frame.graph].outputs)


def kept_runs(state: State, position: int) -> list[Value]:
    """What the runs before this one gave to an output of the body, in order."""
    found = []
    kept = state.frame.kept
    while kept is not None:
        place = kept.places[position]
        if place is None:
            raise InternalError(f"the output {position} of a body was not kept")
        found.append(load_value(state.store, place))
        kept = kept.before
    return found[::-1]


def one_bool(value: Value | None, rule: str, function: str, state: State, t: TensorId | None) -> bool | Stuck:
    """is_true(t, M): the one element of a bool tensor."""
    one = values.one_bool(value)
    return _not_one(value, "bool", rule, function, state, t) if one is None else one


def one_int(value: Value | None, rule: str, function: str, state: State, t: TensorId | None) -> int | Stuck:
    """number(t, M): the one element of an int64 tensor."""
    one = values.one_int(value)
    return _not_one(value, "int64", rule, function, state, t) if one is None else one


def _not_one(value: Value | None, of: str, rule: str, function: str, state: State, t: TensorId | None) -> Stuck:
    path = quote("") if t is None else tensor_path(state, t)
    return undefined(rule, function, f"{path} is {shown(value)}, not a tensor of one {of}")


def stacked(arrays: list[Value], axis: int, rule: str, function: str, state: State, t: TensorId) -> Array | Stuck:
    """The tensors side by side along a new axis; Stuck when their types or shapes differ, or the budget forbids it."""
    objection, first = values.objection_to_stack(arrays), arrays[0]
    if objection or not isinstance(first, np.ndarray):
        advice = "" if objection.endswith("no tensor") else "Give the output of the body one shape, whatever run it is."
        return undefined(rule, function, f"{tensor_path(state, t)}: {objection}", advice)
    if not 0 <= axis <= first.ndim:
        return undefined(rule, function, f"{tensor_path(state, t)}: there is no axis {axis} in {first.ndim + 1} axes")
    return over_budget(state, len(arrays) * first.nbytes, rule, function) or values.stacked(arrays, axis)


def over_budget(state: State, size: int, rule: str, function: str) -> Stuck | None:
    """Stuck when this many bytes more than M holds are over the limit."""
    limit = state.store.space.budget
    if size <= limit:
        return None
    return undefined(
        rule, function, f"{size} bytes are needed at once, the limit on memory is {limit}", "Raise --max-memory."
    )


def declared_sizes(
    declared: ValueType | None, rule: str, function: str, state: State, t: TensorId
) -> tuple[str, tuple[int, ...]] | Stuck:
    """The declared element type and sizes of a tensor, 0 for a size that is no number."""
    stated = values.declared_sizes(declared)
    if stated is None:
        lacks = "shape" if declared is not None and declared.element else "element type"
        message = f"{tensor_path(state, t)}: no run gives it a shape, and the body declares no {lacks} of its output"
        return undefined(rule, function, message, "Declare the type and the shape of the outputs of the body.")
    return stated


def declared_output(state: State, body: GraphId, position: int) -> ValueType | None:
    """The declared type of an output of a graph."""
    graph = state.program.model.graphs[body]
    stated = graph.output_types[position] if position < len(graph.output_types) else None
    return stated or state.program.model.tensors[graph.outputs[position]].declared
