"""What the rules of If, Loop, Scan and SequenceMap read and compute with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import InternalError
from ...model.elements import dtype_of, element_of
from ...model.graph import GraphId, NodeId, TensorId, ValueType
from ...model.path import quote
from ...model.values import Array, Value
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
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.size == 1:
        return bool(value.reshape(-1)[0])
    return undefined(rule, function, f"{_named(state, t)} is {shown(value)}, not a tensor of one bool")


def one_int(value: Value | None, rule: str, function: str, state: State, t: TensorId | None) -> int | Stuck:
    """number(t, M): the one element of an int64 tensor."""
    if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size == 1:
        return int(value.reshape(-1)[0])
    return undefined(rule, function, f"{_named(state, t)} is {shown(value)}, not a tensor of one int64")


def stacked(arrays: list[Value], axis: int, rule: str, function: str, state: State, t: TensorId) -> Array | Stuck:
    """The tensors side by side along a new axis; Stuck when their types or shapes differ, or the budget forbids it."""
    first = arrays[0]
    for number, array in enumerate(arrays):
        if not isinstance(array, np.ndarray) or not isinstance(first, np.ndarray):
            return undefined(rule, function, f"{tensor_path(state, t)}: run {number} gives {shown(array)}, no tensor")
        if array.dtype != first.dtype or array.shape != first.shape:
            message = f"{tensor_path(state, t)}: run 0 gives {shown(first)}, run {number} {shown(array)}"
            return undefined(rule, function, message, "Give the output of the body one shape, whatever run it is.")
    if not isinstance(first, np.ndarray):
        raise InternalError("no tensors are stacked")
    if not 0 <= axis <= first.ndim:
        return undefined(rule, function, f"{tensor_path(state, t)}: there is no axis {axis} in {first.ndim + 1} axes")
    refused = over_budget(state, len(arrays) * first.nbytes, rule, function)
    return refused or np.stack([it for it in arrays if isinstance(it, np.ndarray)], axis)


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
    if declared is None or not declared.element or declared.kind != "tensor" or declared.shape is None:
        lacks = "shape" if declared is not None and declared.element else "element type"
        message = f"{tensor_path(state, t)}: no run gives it a shape, and the body declares no {lacks} of its output"
        return undefined(rule, function, message, "Declare the type and the shape of the outputs of the body.")
    sizes = tuple(size if isinstance(size, int) and size >= 0 else 0 for size in declared.shape)
    return declared.element, sizes


def zeros(element: str, shape: tuple[int, ...]) -> Array:
    """A tensor of zeros; of empty texts for strings."""
    dtype = dtype_of(element)
    return np.full(shape, b"", dtype) if dtype.hasobject else np.zeros(shape, dtype)


def declared_output(state: State, body: GraphId, position: int) -> ValueType | None:
    """The declared type of an output of a graph."""
    graph = state.program.model.graphs[body]
    stated = graph.output_types[position] if position < len(graph.output_types) else None
    return stated or state.program.model.tensors[graph.outputs[position]].declared


def shown(value: Value | None) -> str:
    """What a value is, in a few words: float[2, 3], sequence of 4."""
    if value is None:
        return "absent"
    if isinstance(value, np.ndarray):
        return f"{element_of(value.dtype)}{list(value.shape)}"
    kind = type(value).__name__.lower()
    items = getattr(value, "items", None)
    return f"{kind} of {len(items)}" if isinstance(items, tuple) else kind


def _named(state: State, t: TensorId | None) -> str:
    return quote("") if t is None else tensor_path(state, t)
