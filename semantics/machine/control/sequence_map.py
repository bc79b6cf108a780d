"""The rules Step/sequence-map, Step/sequence-map-none, Step/sequence-map-next and Step/sequence-map-leave."""

from __future__ import annotations

import numpy as np

from ...model.elements import element_of
from ...model.graph import GraphId, NodeId, ValueType
from ...model.values import Sequence, Value, shown
from ...operators.application import Stuck
from ..phases import Again, Change, Enter, Leave, Select, Stay
from ..rules import undefined
from ..state import State
from .values import Results, declared_output, held, input_at, kept_runs, named, outputs_of_run, results


def begins(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/sequence-map or Step/sequence-map-none."""
    node, body, rule = state.program.model.nodes[n], held(state, n, "body"), "Step/sequence-map"
    if body is None:
        return undefined(rule, "body", f"{node.path} has no graph body")
    graph = state.program.model.graphs[body]
    if len(graph.inputs) != len(node.inputs) or len(graph.outputs) < named(node.outputs):
        message = (
            f"{node.path} has {len(node.inputs)} inputs and {len(node.outputs)} outputs, its body"
            f" {len(graph.inputs)} and {len(graph.outputs)}"
        )
        return undefined(rule, "body", message, "Give the body as many inputs and outputs as the node has.")
    first = input_at(state, n, 0)
    if not isinstance(first, Sequence):
        return undefined(rule, "map_runs", f"{node.path}: the first input is {shown(first)}, not a sequence")
    for position in range(1, len(node.inputs)):
        other = input_at(state, n, position)
        if isinstance(other, Sequence) and len(other.items) != len(first.items):
            message = f"{node.path}: the input {position} is {shown(other)}, the first one {shown(first)}"
            return undefined(rule, "map_runs", message, "Give all sequences the same length.")
    return (rule, Enter(body, len(first.items))) if first.items else ("Step/sequence-map-none", Stay())


def ends(state: State, _n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/sequence-map-next or Step/sequence-map-leave."""
    frame = state.frame
    if frame.runs is not None and frame.run + 1 >= frame.runs:
        return "Step/sequence-map-leave", Leave()
    return "Step/sequence-map-next", Again(tuple(range(len(state.program.model.graphs[frame.graph].outputs))))


def computes(state: State, select: Select) -> Results | Stuck:
    """The inputs of the body, or the outputs of the SequenceMap."""
    node = state.program.model.nodes[select.node]
    match select.change:
        case Enter(body=body):
            return _inputs(state, select.node, body, 0)
        case Again():
            return _inputs(state, select.node, state.frame.graph, state.frame.run + 1)
        case Leave():
            last = outputs_of_run(state)
            return _outputs(state, select, last)
        case _:
            graph = held(state, select.node, "body")
            empty: list[Value | None] = []
            for position, t in enumerate(node.outputs):
                declared = None if graph is None or t is None else declared_output(state, graph, position)
                if t is not None and (declared is None or declared.kind != "tensor" or not declared.element):
                    message = f"{select.path}: the body declares no type of its output {position}, and does not run"
                    return undefined(select.rule, "map_unrun", message, "Declare the types of the outputs of the body.")
                empty.append(None if declared is None else Sequence(ValueType("tensor", declared.element), ()))
            return results(zip(node.outputs, empty, strict=True))


def _inputs(state: State, n: NodeId, body: GraphId, run: int) -> Results:
    given = (input_at(state, n, position) for position in range(len(state.program.model.nodes[n].inputs)))
    values = [value.items[run] if isinstance(value, Sequence) else value for value in given]
    return results(zip(state.program.model.graphs[body].inputs, values, strict=True))


def _outputs(state: State, select: Select, last: tuple[Value | None, ...]) -> Results | Stuck:
    node = state.program.model.nodes[select.node]
    found: list[Value | None] = []
    for position, t in enumerate(node.outputs):
        value = last[position] if position < len(last) else None
        if t is None or value is None:
            found.append(None)
            continue
        items = [*kept_runs(state, position), value]
        types = [element_of(item.dtype) if isinstance(item, np.ndarray) else "" for item in items]
        if not types[0] or set(types) != {types[0]}:
            message = f"{select.path}: the runs give its output {position} the types {', '.join(map(shown, items))}"
            return undefined(select.rule, "map_output", message, "Give the output of the body one element type.")
        found.append(Sequence(ValueType("tensor", types[0]), tuple(items)))
    return results(zip(node.outputs, found, strict=True))
