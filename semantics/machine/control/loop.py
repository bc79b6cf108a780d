"""The rules Step/loop, Step/loop-none, Step/loop-next and Step/loop-leave."""

from __future__ import annotations

import numpy as np

from ...model.graph import GraphId, NodeId
from ...model.values import Value, zeros
from ...operators.application import Stuck
from ..phases import Again, Change, Enter, Leave, Select, Stay
from ..rules import undefined
from ..state import State
from .values import (
    Results,
    declared_output,
    declared_sizes,
    held,
    input_at,
    kept_runs,
    one_bool,
    one_int,
    outputs_of_run,
    results,
    stacked,
)


def begins(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/loop or Step/loop-none."""
    body = _body(state, n, "Step/loop")
    if isinstance(body, Stuck):
        return body
    trips = _trips(state, n, "Step/loop", "loop_starts")
    if isinstance(trips, Stuck):
        return trips
    going = _condition(state, n, "Step/loop")
    if isinstance(going, Stuck):
        return going
    if going and (trips is None or trips > 0):
        return "Step/loop", Enter(body, trips)
    return "Step/loop-none", Stay()


def ends(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/loop-next or Step/loop-leave."""
    node, frame = state.program.model.nodes[n], state.frame
    going: bool | Stuck = frame.runs is None or frame.run + 1 < frame.runs
    if going and len(node.inputs) > 1 and node.inputs[1] is not None:
        graph = state.program.model.graphs[frame.graph]
        if not graph.outputs:
            return undefined("Step/loop-next", "loop_goes_on", f"the body of {node.path} gives no condition")
        going = one_bool(outputs_of_run(state)[0], "Step/loop-next", "loop_goes_on", state, graph.outputs[0])
        if isinstance(going, Stuck):
            return going
    if not going:
        return "Step/loop-leave", Leave()
    first = 1 + _carried(state, frame.graph)
    return "Step/loop-next", Again(tuple(range(first, len(state.program.model.graphs[frame.graph].outputs))))


def computes(state: State, select: Select) -> Results | Stuck:
    """The inputs of the body, or the outputs of the Loop."""
    match select.change:
        case Enter(body=body):
            condition = input_at(state, select.node, 1)
            initial = [input_at(state, select.node, 2 + i) for i in range(_carried(state, body))]
            going = np.array(True) if condition is None else condition
            return results(zip(_inputs(state, body), [np.array(0, np.int64), going, *initial], strict=False))
        case Again():
            values = outputs_of_run(state)[: 1 + _carried(state, state.frame.graph)]
            number = np.array(state.frame.run + 1, np.int64)
            return results(zip(_inputs(state, state.frame.graph), [number, *values], strict=False))
        case Leave():
            return _outputs(state, select)
        case _:
            return _unrun(state, select)


def _outputs(state: State, select: Select) -> Results | Stuck:
    node, values = state.program.model.nodes[select.node], outputs_of_run(state)
    carried = _carried(state, state.frame.graph)
    found: list[Value | None] = []
    for i, t in enumerate(node.outputs):
        value = values[1 + i] if 1 + i < len(values) else None
        if value is None and t is not None:
            message = f"{select.path} has {len(node.outputs)} outputs, its body gives {len(values) - 1}"
            return undefined(select.rule, "loop_output", message, "Give the body an output for each one of the Loop.")
        if t is not None and value is not None and i >= carried:
            runs = [*kept_runs(state, 1 + i), value]
            array = stacked(runs, 0, select.rule, "loop_output", state, t)
            if isinstance(array, Stuck):
                return array
            value = array
        found.append(value)
    return results(zip(node.outputs, found, strict=True))


def _unrun(state: State, select: Select) -> Results | Stuck:
    node, body = state.program.model.nodes[select.node], held(state, select.node, "body")
    if body is None:
        return undefined(select.rule, "loop_unrun", f"{select.path} has no graph body")
    carried, given = _carried(state, body), len(state.program.model.graphs[body].outputs)
    found: list[Value | None] = []
    for i, t in enumerate(node.outputs):
        value: Value | None = None
        if i < carried:
            value = input_at(state, select.node, 2 + i)
            if value is None and t is not None:
                message = f"{select.path}: the output {i} has no initial value, and the body does not run"
                return undefined(select.rule, "loop_unrun", message, "Give the Loop an initial value for it.")
        elif t is not None:
            declared = declared_output(state, body, 1 + i) if 1 + i < given else None
            sizes = declared_sizes(declared, select.rule, "loop_unrun", state, t)
            if isinstance(sizes, Stuck):
                return sizes
            value = zeros(sizes[0], (0, *sizes[1]))
        found.append(value)
    return results(zip(node.outputs, found, strict=True))


def _trips(state: State, n: NodeId, rule: str, function: str) -> int | Stuck | None:
    """The trip count; None without one."""
    value = input_at(state, n, 0)
    return None if value is None else one_int(value, rule, function, state, state.program.model.nodes[n].inputs[0])


def _condition(state: State, n: NodeId, rule: str) -> bool | Stuck:
    value = input_at(state, n, 1)
    return value is None or one_bool(value, rule, "loop_starts", state, state.program.model.nodes[n].inputs[1])


def _body(state: State, n: NodeId, rule: str) -> GraphId | Stuck:
    """The body, which has at least an iteration number and a condition, and an output for each carried value."""
    body = held(state, n, "body")
    if body is None:
        return undefined(rule, "body", f"{state.program.model.nodes[n].path} has no graph body")
    graph = state.program.model.graphs[body]
    node = state.program.model.nodes[n]
    if len(graph.inputs) < max(2, len(node.inputs)) or len(graph.outputs) < len(graph.inputs) - 1:
        message = (
            f"{graph.path} has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs, its Loop"
            f" {len(node.inputs)} inputs"
        )
        advice = "Give it the inputs number, condition, carried values, and the outputs condition, carried values."
        return undefined(rule, "body", message, advice)
    return body


def _carried(state: State, body: GraphId) -> int:
    return max(len(state.program.model.graphs[body].inputs) - 2, 0)


def _inputs(state: State, body: GraphId) -> tuple[int, ...]:
    return state.program.model.graphs[body].inputs
