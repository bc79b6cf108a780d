"""The rules of part 3 for If, Loop, Scan and SequenceMap: bodies that run step by step in frames.

Each operator has a rule that begins a body, one for a run after another, and one that leaves with the outputs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ..errors import InternalError
from ..model import values
from ..model.elements import element_of
from ..model.graph import GraphId, NodeId, TensorId, ValueType
from ..model.path import quote
from ..model.values import Array, Sequence, Value, shown, zeros
from ..operators.application import Stuck
from .memory import load_value
from .phases import Again, Change, Enter, Leave, Mask, Select, Stay, stuck_at
from .state import State, tensor_path, value_of


@dataclass(frozen=True, slots=True)
class Results:
    """The tensors that get a value, with their values and the elements that the text leaves open."""

    tensors: tuple[TensorId, ...]
    values: tuple[Value, ...]
    free: tuple[Mask | None, ...] = ()


def results(pairs: Iterable[tuple[TensorId | None, Value | None]]) -> Results:
    """Of tensors and values by position those that are both there; a tensor that is listed twice counts once."""
    by_tensor = {t: value for t, value in pairs if t is not None and value is not None}
    return Results(tuple(by_tensor), tuple(by_tensor.values()))


def body_of(state: State, n: NodeId, attribute: str) -> GraphId | None:
    """The graph that a node holds as this attribute."""
    return next((g for name, g in state.program.model.nodes[n].bodies if name == attribute), None)


def input_at(state: State, n: NodeId, position: int) -> Value | None:
    """The value of an input of a node; None for one that is absent."""
    inputs = state.program.model.nodes[n].inputs
    t = inputs[position] if position < len(inputs) else None
    return None if t is None else value_of(state, t)


def named(outputs: tuple[TensorId | None, ...]) -> int:
    """The number of outputs that a body has to give: up to the last one that carries a name."""
    return max((i + 1 for i, t in enumerate(outputs) if t is not None), default=0)


def outputs_of_run(state: State) -> tuple[Value | None, ...]:
    """The values of the outputs of the body that runs, by position."""
    return tuple(value_of(state, t) for t in state.program.model.graphs[state.frame.graph].outputs)


def kept_runs(state: State, position: int) -> list[Value]:
    """The values that the runs before this one gave to an output of the body, in order."""
    values_kept = []
    kept = state.frame.kept
    while kept is not None:
        place = kept.places[position]
        if place is None:
            raise InternalError(f"the output {position} of a body was not kept")
        values_kept.append(load_value(state.store, place))
        kept = kept.before
    return values_kept[::-1]


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
    return stuck_at(rule, function, f"{path} is {shown(value)}, not a tensor of one {of}")


def stacked(arrays: list[Value], axis: int, rule: str, function: str, state: State, t: TensorId) -> Array | Stuck:
    """The tensors side by side along a new axis; Stuck when their types or shapes differ, or the budget forbids it."""
    objection, first = values.objection_to_stack(arrays), arrays[0]
    if objection or not isinstance(first, np.ndarray):
        advice = "" if objection.endswith("no tensor") else "Give the output of the body one shape, whatever run it is."
        return stuck_at(rule, function, f"{tensor_path(state, t)}: {objection}", advice)
    if not 0 <= axis <= first.ndim:
        return stuck_at(rule, function, f"{tensor_path(state, t)}: there is no axis {axis} in {first.ndim + 1} axes")
    return over_budget(state, len(arrays) * first.nbytes, rule, function) or values.stacked(arrays, axis)


def over_budget(state: State, size: int, rule: str, function: str) -> Stuck | None:
    """Stuck when this many bytes more than M holds are over the limit."""
    limit = state.store.space.budget
    if size <= limit:
        return None
    return stuck_at(
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
        return stuck_at(rule, function, message, "Declare the type and the shape of the outputs of the body.")
    return stated


def declared_output(state: State, body: GraphId, position: int) -> ValueType | None:
    """The declared type of an output of a graph."""
    graph = state.program.model.graphs[body]
    stated = graph.output_types[position] if position < len(graph.output_types) else None
    return stated or state.program.model.tensors[graph.outputs[position]].declared


# ---- Loop -----------------------------------------------------------------------------------------


def _loop_begins(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/loop or Step/loop-none."""
    trips = _trips(state, n)
    if isinstance(trips, Stuck):
        return trips
    going = _condition(state, n)
    if isinstance(going, Stuck):
        return going
    starts = going and (trips is None or trips > 0)
    rule, values = ("Step/loop", "loop_input") if starts else ("Step/loop-none", "loop_unrun")
    body = _body(state, n, rule, values)
    if isinstance(body, Stuck):
        return body
    return rule, Enter(body, trips) if starts else Stay()


def _loop_ends(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/loop-next or Step/loop-leave."""
    node, frame = state.program.model.nodes[n], state.frame
    going: bool | Stuck = frame.runs is None or frame.run + 1 < frame.runs
    if going and len(node.inputs) > 1 and node.inputs[1] is not None:
        graph = state.program.model.graphs[frame.graph]
        if not graph.outputs:
            return stuck_at("Step/loop-next", "loop_condition", f"the body of {node.path} gives no condition")
        going = one_bool(outputs_of_run(state)[0], "Step/loop-next", "loop_condition", state, graph.outputs[0])
        if isinstance(going, Stuck):
            return going
    if not going:
        return "Step/loop-leave", Leave()
    first = 1 + _carried(state, frame.graph)
    return "Step/loop-next", Again(tuple(range(first, len(state.program.model.graphs[frame.graph].outputs))))


def _loop_computes(state: State, select: Select) -> Results | Stuck:
    """The inputs of the body, or the outputs of the Loop."""
    match select.change:
        case Enter(body=body):
            condition = input_at(state, select.node, 1)
            initial = [input_at(state, select.node, 2 + i) for i in range(_carried(state, body))]
            going = np.array(True) if condition is None else condition
            return results(zip(_loop_inputs(state, body), [np.array(0, np.int64), going, *initial], strict=False))
        case Again():
            values = outputs_of_run(state)[: 1 + _carried(state, state.frame.graph)]
            number = np.array(state.frame.run + 1, np.int64)
            return results(zip(_loop_inputs(state, state.frame.graph), [number, *values], strict=False))
        case Leave():
            return _loop_outputs(state, select)
        case _:
            return _loop_unrun(state, select)


def _loop_outputs(state: State, select: Select) -> Results | Stuck:
    node, values = state.program.model.nodes[select.node], outputs_of_run(state)
    carried = _carried(state, state.frame.graph)
    made: list[Value | None] = []
    for i, t in enumerate(node.outputs):
        value = values[1 + i] if 1 + i < len(values) else None
        if value is None and t is not None:
            message = f"{select.path} has {len(node.outputs)} outputs, its body gives {len(values) - 1}"
            return stuck_at(select.rule, "loop_output", message, "Give the body an output for each one of the Loop.")
        if t is not None and value is not None and i >= carried:
            runs = [*kept_runs(state, 1 + i), value]
            array = stacked(runs, 0, select.rule, "loop_output", state, t)
            if isinstance(array, Stuck):
                return array
            value = array
        made.append(value)
    return results(zip(node.outputs, made, strict=True))


def _loop_unrun(state: State, select: Select) -> Results | Stuck:
    node, body = state.program.model.nodes[select.node], body_of(state, select.node, "body")
    if body is None:
        return stuck_at(select.rule, "loop_unrun", f"{select.path} has no graph body")
    carried, given = _carried(state, body), len(state.program.model.graphs[body].outputs)
    made: list[Value | None] = []
    for i, t in enumerate(node.outputs):
        value: Value | None = None
        if i < carried:
            value = input_at(state, select.node, 2 + i)
            if value is None and t is not None:
                message = f"{select.path}: the output {i} has no initial value, and the body does not run"
                return stuck_at(select.rule, "loop_unrun", message, "Give the Loop an initial value for it.")
        elif t is not None:
            declared = declared_output(state, body, 1 + i) if 1 + i < given else None
            sizes = declared_sizes(declared, select.rule, "loop_unrun", state, t)
            if isinstance(sizes, Stuck):
                return sizes
            value = zeros(sizes[0], (0, *sizes[1]))
        made.append(value)
    return results(zip(node.outputs, made, strict=True))


def _trips(state: State, n: NodeId) -> int | Stuck | None:
    """The trip count; None without one."""
    value = input_at(state, n, 0)
    if value is None:
        return None
    return one_int(value, "Step/loop", "loop_decided", state, state.program.model.nodes[n].inputs[0])


def _condition(state: State, n: NodeId) -> bool | Stuck:
    value = input_at(state, n, 1)
    if value is None:
        return True
    return one_bool(value, "Step/loop", "loop_decided", state, state.program.model.nodes[n].inputs[1])


def _body(state: State, n: NodeId, rule: str, values: str) -> GraphId | Stuck:
    """The body, which has at least an iteration number and a condition, and an output for each carried value.

    values: the name of the premise that chooses what the rule writes.
    """
    body = body_of(state, n, "body")
    if body is None:
        return stuck_at(rule, "body", f"{state.program.model.nodes[n].path} has no graph body")
    graph = state.program.model.graphs[body]
    node = state.program.model.nodes[n]
    if len(graph.inputs) < max(2, len(node.inputs)) or len(graph.outputs) < len(graph.inputs) - 1:
        message = (
            f"{graph.path} has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs, its Loop"
            f" {len(node.inputs)} inputs"
        )
        advice = "Give it the inputs number, condition, carried values, and the outputs condition, carried values."
        return stuck_at(rule, values, message, advice)
    return body


def _carried(state: State, body: GraphId) -> int:
    return max(len(state.program.model.graphs[body].inputs) - 2, 0)


def _loop_inputs(state: State, body: GraphId) -> tuple[int, ...]:
    return state.program.model.graphs[body].inputs


# ---- Scan -----------------------------------------------------------------------------------------

_BATCHED = 8  # the version with a batch axis
_NEGATIVE_AXES = 11  # the version from which on axes may be negative
_LISTS = ("scan_input_directions", "scan_input_axes", "scan_output_axes", "scan_output_directions")
_BATCHED_LISTS = ("directions", "", "", "")  # the same in the version with a batch axis, which fixes the others


@dataclass(frozen=True, slots=True)
class ScanLayout:
    """A Scan. states, scans: the numbers of states and scan inputs; first: the position of the first state.

    lengths: how long each sequence of the batch is; one entry where there is no batch. length: the size along the scan
    axis. axes, reverse: for each scan input; out_axes, out_reverse: for each scan output, the axis as written.
    """

    batched: bool
    first: int
    states: int
    scans: int
    lengths: tuple[int, ...]
    length: int
    axes: tuple[int, ...]
    reverse: tuple[bool, ...]
    out_axes: tuple[int, ...]
    out_reverse: tuple[bool, ...]

    @property
    def runs(self) -> int:
        """The number of runs of the body."""
        return sum(self.lengths)

    def position(self, run: int) -> tuple[int, int]:
        """The sequence of the batch, and the position in it, of a run."""
        ends = list(accumulate(self.lengths))
        sequence = bisect_right(ends, run)
        return sequence, run - (ends[sequence] - self.lengths[sequence])


def _scan_begins(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/scan or Step/scan-none."""
    layout, body = _layout(state, n, "Step/scan"), body_of(state, n, "body")
    if isinstance(layout, Stuck):
        return layout
    if layout.runs and body is not None:
        return "Step/scan", Enter(body, layout.runs)
    return "Step/scan-none", Stay()


def _scan_ends(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/scan-next or Step/scan-leave."""
    frame = state.frame
    if frame.runs is not None and frame.run + 1 >= frame.runs:
        return "Step/scan-leave", Leave()
    layout = _layout(state, n, "Step/scan-next")
    if isinstance(layout, Stuck):
        return layout
    first = 0 if layout.batched else layout.states  # the final state of every sequence is an output
    return "Step/scan-next", Again(tuple(range(first, len(state.program.model.graphs[frame.graph].outputs))))


def _scan_computes(state: State, select: Select) -> Results | Stuck:
    """The inputs of the body, or the outputs of the Scan."""
    layout = _layout(state, select.node, select.rule)
    if isinstance(layout, Stuck):
        return layout
    match select.change:
        case Enter(body=body):
            return _scan_inputs(state, select.node, body, 0, layout)
        case Again():
            return _scan_inputs(state, select.node, state.frame.graph, state.frame.run + 1, layout)
        case Leave():
            return _scan_outputs(state, select, layout)
        case _:
            return _scan_unrun(state, select, layout)


# ---- How a Scan runs --------------------------------------------------------------------------


def _layout(state: State, n: NodeId, rule: str) -> ScanLayout | Stuck:
    """The layout from the attributes and inputs of a Scan, all conditions of scan_runs checked."""
    node = state.program.model.nodes[n]
    attributes, body = state.program.attributes(n), body_of(state, n, "body")
    scans = attributes.get("num_scan_inputs")
    if body is None or not isinstance(scans, int) or scans < 1:
        return stuck_at(rule, "scan_runs", f"{node.path} has no graph body, or num_scan_inputs is not positive")
    batched = node.version == _BATCHED
    first = 1 if batched else 0
    states = len(node.inputs) - first - scans
    graph = state.program.model.graphs[body]
    if states < 0 or len(graph.inputs) != states + scans or len(graph.outputs) < states:
        message = (
            f"{node.path} has {len(node.inputs)} inputs of which {scans} are scanned, its body {len(graph.inputs)}"
            f" inputs and {len(graph.outputs)} outputs"
        )
        return stuck_at(rule, "scan_runs", message, "Give the body an input for each state and each scan input.")
    collected = len(graph.outputs) - states
    names, axis = (_BATCHED_LISTS, 1) if batched else (_LISTS, 0)
    rows: list[tuple[int, ...]] = []
    for name, count, default in zip(names, (scans, scans, collected, collected), (0, axis, axis, 0), strict=True):
        row = (default,) * count if attributes.get(name) is None else _numbers(state, n, rule, name, count)
        if isinstance(row, Stuck):
            return row
        rows.append(row)
    reverse, axes, out_reverse = tuple(map(bool, rows[0])), rows[1], tuple(map(bool, rows[3]))
    extent = _extent(state, n, rule, first + states, axes)
    if isinstance(extent, Stuck):
        return extent
    axes, length, batch = extent
    lengths = _lengths(state, n, rule, batch, length, any(reverse)) if batched else (length,)
    if isinstance(lengths, Stuck):
        return lengths
    return ScanLayout(batched, first, states, scans, lengths, length, axes, reverse, rows[2], out_reverse)


def _numbers(state: State, n: NodeId, rule: str, name: str, count: int) -> tuple[int, ...] | Stuck:
    """The entries of a list of axes or directions."""
    path, stated = state.program.model.nodes[n].path, state.program.attributes(n)[name]
    numbers = tuple(it for it in stated if isinstance(it, int)) if isinstance(stated, tuple) else ()
    if len(numbers) != count:
        return stuck_at(rule, "scan_runs", f"{path}: {name} has {len(numbers)} entries, not {count}")
    if "axes" not in name and any(it not in (0, 1) for it in numbers):
        return stuck_at(rule, "scan_runs", f"{path}: {name} is {list(numbers)}, a direction is 0 or 1")
    return numbers


def _extent(
    state: State, n: NodeId, rule: str, position: int, axes: tuple[int, ...]
) -> tuple[tuple[int, ...], int, int] | Stuck:
    """The scan axes counted from the front, the size along them, and that of the batch; position: of the first scan
    input."""
    node = state.program.model.nodes[n]
    shapes: list[tuple[int, ...]] = []
    resolved: list[int] = []
    for i, axis in enumerate(axes):
        value = input_at(state, n, position + i)
        rank = value.ndim if isinstance(value, np.ndarray) else 0
        at = axis + rank if axis < 0 and (node.version or 0) >= _NEGATIVE_AXES else axis
        if not isinstance(value, np.ndarray) or not 0 <= at < rank:
            message = f"{node.path}: the scan input {i} is {shown(value)} and is scanned along axis {axis}"
            return stuck_at(rule, "scan_runs", message, "Give every scan input a scan axis that it has.")
        shapes.append(value.shape)
        resolved.append(at)
    sizes = {shape[at] for shape, at in zip(shapes, resolved, strict=True)}
    batches = {shape[0] for shape in shapes} if node.version == _BATCHED else {1}
    if len(sizes) > 1 or len(batches) > 1:
        message = f"{node.path}: the scan inputs have the shapes {list(map(list, shapes))}, scanned along {resolved}"
        return stuck_at(rule, "scan_runs", message, "Give all scan inputs the same size along their scan axes.")
    return tuple(resolved), sizes.pop(), batches.pop()


def _lengths(state: State, n: NodeId, rule: str, batch: int, length: int, reverse: bool) -> tuple[int, ...] | Stuck:
    """The lengths of the sequences of a batch."""
    path, given = state.program.model.nodes[n].path, input_at(state, n, 0)
    if given is None:
        return (length,) * batch
    if not isinstance(given, np.ndarray) or given.dtype != np.int64 or given.shape != (batch,):
        return stuck_at(rule, "scan_runs", f"{path}: sequence_lens is {shown(given)}, expected int64[{batch}]")
    lengths = tuple(int(it) for it in given.tolist())
    if any(not 0 <= it <= length for it in lengths):
        return stuck_at(rule, "scan_runs", f"{path}: a sequence length is not between 0 and {length}: {lengths}")
    if reverse and any(it < length for it in lengths):
        message = f"{path} scans sequences of lengths {lengths} in reverse along an axis of {length}"
        return stuck_at(rule, "scan_runs", message, "ONNX does not say where that scan begins: use Scan of opset 9.")
    return lengths


# ---- Inputs of the body -----------------------------------------------------------------------


def _scan_inputs(state: State, n: NodeId, body: GraphId, run: int, layout: ScanLayout) -> Results | Stuck:
    """The values of the inputs of the body for a run."""
    sequence, position = layout.position(run)
    carried = outputs_of_run(state)[: layout.states] if position else ()
    values: list[Value | None] = list(carried)
    for i in range(len(carried), layout.states):
        initial = input_at(state, n, layout.first + i)
        sliced = _of_sequence(state, n, initial, sequence, layout, i)
        if isinstance(sliced, Stuck):
            return sliced
        values.append(sliced)
    for i in range(layout.scans):
        scanned = input_at(state, n, layout.first + layout.states + i)
        if isinstance(scanned, np.ndarray):
            at = layout.length - 1 - position if layout.reverse[i] else position
            index: tuple[int | slice, ...] = (
                (sequence, at) if layout.batched else (*(slice(None),) * layout.axes[i], at)
            )
            values.append(np.asarray(scanned[index], scanned.dtype))
    return results(zip(state.program.model.graphs[body].inputs, values, strict=False))


def _of_sequence(
    state: State, n: NodeId, initial: Value | None, sequence: int, layout: ScanLayout, i: int
) -> Value | Stuck | None:
    """The initial value of a state for a sequence of the batch."""
    if not layout.batched or initial is None:
        return initial
    if not isinstance(initial, np.ndarray) or initial.ndim < 1 or initial.shape[0] != len(layout.lengths):
        message = f"{state.program.model.nodes[n].path}: the initial state {i} is {shown(initial)}"
        return stuck_at("Step/scan", "scan_input", message, f"Give it the first axis {len(layout.lengths)}, the batch.")
    return np.asarray(initial[sequence], initial.dtype)


# ---- Outputs of the Scan ----------------------------------------------------------------------


def _scan_outputs(state: State, select: Select, layout: ScanLayout) -> Results | Stuck:
    node, last = state.program.model.nodes[select.node], outputs_of_run(state)
    if named(node.outputs) > len(last):
        message = f"{select.path} has {len(node.outputs)} outputs, its body {len(last)}"
        return stuck_at(select.rule, "scan_output", message, "Give the body an output for each output of the Scan.")
    triples: list[tuple[TensorId, Value, Mask | None]] = []
    for i, (t, value) in enumerate(zip(node.outputs, last, strict=False)):
        if t is None or value is None:
            continue
        mask: Mask | None = None
        made: Value | Stuck | tuple[Array, Mask | None]
        if layout.batched:
            runs = [*kept_runs(state, i), value]
            made = (
                _states(state, select, layout, i, runs, t)
                if i < layout.states
                else _batch(state, select, layout, runs, t)
            )
        elif i < layout.states:
            made = value
        else:
            runs = [*kept_runs(state, i), value]
            made = _collected(state, select, layout, i - layout.states, runs, t)
        if isinstance(made, Stuck):
            return made
        if isinstance(made, tuple):
            made, mask = made
        triples.append((t, made, mask))
    return Results(tuple(it[0] for it in triples), tuple(it[1] for it in triples), tuple(it[2] for it in triples))


def _collected(
    state: State, select: Select, layout: ScanLayout, k: int, runs: list[Value], t: TensorId
) -> Array | Stuck:
    """A scan output without a batch: the elements along its axis."""
    first = runs[0]
    rank = first.ndim + 1 if isinstance(first, np.ndarray) else 1
    axis = _out_axis(state, select, layout.out_axes[k], rank, "scan_output")
    if isinstance(axis, Stuck):
        return axis
    ordered = runs[::-1] if layout.out_reverse[k] else runs
    return stacked(ordered, axis, select.rule, "scan_output", state, t)


def _states(state: State, select: Select, layout: ScanLayout, i: int, runs: list[Value], t: TensorId) -> Array | Stuck:
    """The final states of the sequences of a batch."""
    finals: list[Value] = []
    for sequence, end in enumerate(accumulate(layout.lengths)):
        if layout.lengths[sequence]:
            finals.append(runs[end - 1])
            continue
        initial = _of_sequence(state, select.node, input_at(state, select.node, layout.first + i), sequence, layout, i)
        if isinstance(initial, Stuck):
            return initial
        if initial is None:
            message = f"{select.path}: the state {i} has no initial value, and sequence {sequence} is empty"
            return stuck_at(select.rule, "scan_output", message, "Give the Scan an initial value for it.")
        finals.append(initial)
    return stacked(finals, 0, select.rule, "scan_output", state, t)


def _batch(
    state: State, select: Select, layout: ScanLayout, runs: list[Value], t: TensorId
) -> tuple[Array, Mask | None] | Stuck:
    """A scan output of a batch, filled up to the size of the scan axis, and what is open in it."""
    together = stacked(runs, 0, select.rule, "scan_output", state, t)
    if isinstance(together, Stuck):
        return together
    shape = (len(layout.lengths), layout.length, *together.shape[1:])
    size = together.nbytes // len(runs) * shape[0] * shape[1]
    refused = over_budget(state, size, select.rule, "scan_output")
    if refused is not None:
        return refused
    array, mask = zeros(element_of(together.dtype), shape), np.ones(shape, np.bool_)
    start = 0
    for sequence, length in enumerate(layout.lengths):
        array[sequence, :length] = together[start : start + length]
        mask[sequence, :length] = False
        start += length
    return array, mask if mask.any() else None


def _scan_unrun(state: State, select: Select, layout: ScanLayout) -> Results | Stuck:
    node, body = state.program.model.nodes[select.node], body_of(state, select.node, "body")
    made: list[tuple[TensorId, Value, Mask | None]] = []
    for i, t in enumerate(node.outputs):
        if t is None:
            continue
        if i < layout.states:
            initial = input_at(state, select.node, layout.first + i)
            if initial is None:
                message = f"{select.path}: the state {i} has no initial value, and the body does not run"
                return stuck_at(select.rule, "scan_unrun", message, "Give the Scan an initial value for it.")
            made.append((t, initial, None))
            continue
        k = i - layout.states
        declared = declared_output(state, body, i) if body is not None and k < len(layout.out_axes) else None
        sizes = declared_sizes(declared, select.rule, "scan_unrun", state, t)
        if isinstance(sizes, Stuck):
            return sizes
        if layout.batched:
            array = zeros(sizes[0], (len(layout.lengths), layout.length, *sizes[1]))
            made.append((t, array, np.ones(array.shape, np.bool_) if array.size else None))
            continue
        axis = _out_axis(state, select, layout.out_axes[k], len(sizes[1]) + 1, "scan_unrun")
        if isinstance(axis, Stuck):
            return axis
        made.append((t, zeros(sizes[0], (*sizes[1][:axis], 0, *sizes[1][axis:])), None))
    return Results(tuple(it[0] for it in made), tuple(it[1] for it in made), tuple(it[2] for it in made))


def _out_axis(state: State, select: Select, axis: int, rank: int, function: str) -> int | Stuck:
    """The axis of a scan output of this rank, counted from the front."""
    version = state.program.model.nodes[select.node].version or 0
    at = axis + rank if axis < 0 and version >= _NEGATIVE_AXES else axis
    if 0 <= at < rank:
        return at
    message = f"{select.path}: scan_output_axes has the axis {axis}, the output has {rank} axes"
    return stuck_at(select.rule, function, message, "Give an axis that the output has.")


# ---- Sequence map ---------------------------------------------------------------------------------


def _map_begins(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/sequence-map or Step/sequence-map-none."""
    node, first = state.program.model.nodes[n], input_at(state, n, 0)
    if not isinstance(first, Sequence):
        message = f"{node.path}: the first input is {shown(first)}, not a sequence"
        return stuck_at("Step/sequence-map", "map_runs", message)
    for position in range(1, len(node.inputs)):
        other = input_at(state, n, position)
        if isinstance(other, Sequence) and len(other.items) != len(first.items):
            message = f"{node.path}: the input {position} is {shown(other)}, the first one {shown(first)}"
            return stuck_at("Step/sequence-map", "map_runs", message, "Give all sequences the same length.")
    some = bool(first.items)
    rule, values = ("Step/sequence-map", "map_input") if some else ("Step/sequence-map-none", "map_unrun")
    body = body_of(state, n, "body")
    if body is None:
        return stuck_at(rule, "body", f"{node.path} has no graph body")
    graph = state.program.model.graphs[body]
    if len(graph.inputs) != len(node.inputs) or len(graph.outputs) < named(node.outputs):
        message = (
            f"{node.path} has {len(node.inputs)} inputs and {len(node.outputs)} outputs, its body"
            f" {len(graph.inputs)} and {len(graph.outputs)}"
        )
        return stuck_at(rule, values, message, "Give the body as many inputs and outputs as the node has.")
    return rule, Enter(body, len(first.items)) if some else Stay()


def _map_ends(state: State, _n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/sequence-map-next or Step/sequence-map-leave."""
    frame = state.frame
    if frame.runs is not None and frame.run + 1 >= frame.runs:
        return "Step/sequence-map-leave", Leave()
    return "Step/sequence-map-next", Again(tuple(range(len(state.program.model.graphs[frame.graph].outputs))))


def _map_computes(state: State, select: Select) -> Results | Stuck:
    """The inputs of the body, or the outputs of the SequenceMap."""
    node = state.program.model.nodes[select.node]
    match select.change:
        case Enter(body=body):
            return _map_inputs(state, select.node, body, 0)
        case Again():
            return _map_inputs(state, select.node, state.frame.graph, state.frame.run + 1)
        case Leave():
            last = outputs_of_run(state)
            return _map_outputs(state, select, last)
        case _:
            graph = body_of(state, select.node, "body")
            empty: list[Value | None] = []
            for position, t in enumerate(node.outputs):
                declared = None if graph is None or t is None else declared_output(state, graph, position)
                if t is not None and (declared is None or declared.kind != "tensor" or not declared.element):
                    message = f"{select.path}: the body declares no type of its output {position}, and does not run"
                    return stuck_at(select.rule, "map_unrun", message, "Declare the types of the outputs of the body.")
                empty.append(None if declared is None else Sequence(ValueType("tensor", declared.element), ()))
            return results(zip(node.outputs, empty, strict=True))


def _map_inputs(state: State, n: NodeId, body: GraphId, run: int) -> Results:
    given = (input_at(state, n, position) for position in range(len(state.program.model.nodes[n].inputs)))
    values = [value.items[run] if isinstance(value, Sequence) else value for value in given]
    return results(zip(state.program.model.graphs[body].inputs, values, strict=True))


def _map_outputs(state: State, select: Select, last: tuple[Value | None, ...]) -> Results | Stuck:
    node = state.program.model.nodes[select.node]
    made: list[Value | None] = []
    for position, t in enumerate(node.outputs):
        value = last[position] if position < len(last) else None
        if t is None or value is None:
            made.append(None)
            continue
        items = [*kept_runs(state, position), value]
        types = [element_of(item.dtype) if isinstance(item, np.ndarray) else "" for item in items]
        if not types[0] or set(types) != {types[0]}:
            message = f"{select.path}: the runs give its output {position} the types {', '.join(map(shown, items))}"
            return stuck_at(select.rule, "map_output", message, "Give the output of the body one element type.")
        made.append(Sequence(ValueType("tensor", types[0]), tuple(items)))
    return results(zip(node.outputs, made, strict=True))


# ---- If ---------------------------------------------------------------------------------------


def _if_begins(state: State, n: NodeId) -> Chosen:
    node = state.program.model.nodes[n]
    condition = node.inputs[0] if node.inputs else None
    is_true = one_bool(input_at(state, n, 0), "Step/if", "is_flag", state, condition)
    if isinstance(is_true, Stuck):
        return is_true
    name = "then_branch" if is_true else "else_branch"
    body = body_of(state, n, name)
    if body is None:
        return stuck_at("Step/if", "branch", f"{node.path} has no graph {name}")
    return "Step/if", Enter(body)


def _if_ends(_state: State, _n: NodeId) -> Chosen:
    return "Step/if-leave", Leave()


def _if_computes(state: State, select: Select) -> Results | Stuck:
    if isinstance(select.change, Enter):
        return Results((), ())
    values, outputs = outputs_of_run(state), state.program.model.nodes[select.node].outputs
    if named(outputs) > len(values):
        message = f"{select.path} has {len(outputs)} outputs, its branch {len(values)}"
        return stuck_at(select.rule, "positioned", message, "Give both branches an output for each output of the If.")
    return results(zip(outputs, values, strict=False))


# ---- The table ---------------------------------------------------------------------------------

Chosen = tuple[str, Change] | Stuck
"""The rule that applies, and what becomes of the frames."""


@dataclass(frozen=True, slots=True)
class Control:
    """The rules of an operator that runs a body, as the machine takes them.

    first: the first rule that begins at the node; last: the first of those at the end of a run of the body.
    begins, ends: the rule for the enabled node, and for the end of a run. computes: W of the rule.
    """

    first: str
    last: str
    begins: Callable[[State, NodeId], Chosen]
    ends: Callable[[State, NodeId], Chosen]
    computes: Callable[[State, Select], Results | Stuck]


CONTROLS: Mapping[str, Control] = {
    "If": Control("Step/if", "Step/if-leave", _if_begins, _if_ends, _if_computes),
    "Loop": Control("Step/loop", "Step/loop-next", _loop_begins, _loop_ends, _loop_computes),
    "Scan": Control("Step/scan", "Step/scan-next", _scan_begins, _scan_ends, _scan_computes),
    "SequenceMap": Control("Step/sequence-map", "Step/sequence-map-next", _map_begins, _map_ends, _map_computes),
}
"""For each operator with a body, its rules."""
