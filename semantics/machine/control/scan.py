"""The rules Step/scan, Step/scan-none, Step/scan-next and Step/scan-leave."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ...model.elements import element_of
from ...model.graph import GraphId, NodeId, TensorId
from ...model.values import Array, Value, shown, zeros
from ...operators.application import Stuck
from ..phases import Again, Change, Enter, Leave, Mask, Select, Stay
from ..rules import undefined
from ..state import State
from .values import (
    Results,
    declared_output,
    declared_sizes,
    held,
    input_at,
    kept_runs,
    named,
    outputs_of_run,
    over_budget,
    results,
    stacked,
)

_BATCHED = 8  # the version with a batch axis
_NEGATIVE_AXES = 11  # the version from which on axes may be negative


@dataclass(frozen=True, slots=True)
class Plan:
    """How a Scan runs. states, scans: the numbers of states and scan inputs; first: the position of the first state.

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
        """How often the body runs."""
        return sum(self.lengths)

    def position(self, run: int) -> tuple[int, int]:
        """The sequence of the batch, and the position in it, of a run."""
        ends = list(accumulate(self.lengths))
        sequence = bisect_right(ends, run)
        return sequence, run - (ends[sequence] - self.lengths[sequence])


def begins(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/scan or Step/scan-none."""
    plan, body = _plan(state, n, "Step/scan"), held(state, n, "body")
    if isinstance(plan, Stuck):
        return plan
    if plan.runs and body is not None:
        return "Step/scan", Enter(body, plan.runs)
    return "Step/scan-none", Stay()


def ends(state: State, n: NodeId) -> tuple[str, Change] | Stuck:
    """Step/scan-next or Step/scan-leave."""
    frame = state.frame
    if frame.runs is not None and frame.run + 1 >= frame.runs:
        return "Step/scan-leave", Leave()
    plan = _plan(state, n, "Step/scan-next")
    if isinstance(plan, Stuck):
        return plan
    first = 0 if plan.batched else plan.states  # the final state of every sequence is an output
    return "Step/scan-next", Again(tuple(range(first, len(state.program.model.graphs[frame.graph].outputs))))


def computes(state: State, select: Select) -> Results | Stuck:
    """The inputs of the body, or the outputs of the Scan."""
    plan = _plan(state, select.node, select.rule)
    if isinstance(plan, Stuck):
        return plan
    match select.change:
        case Enter(body=body):
            return _inputs(state, select.node, body, 0, plan)
        case Again():
            return _inputs(state, select.node, state.frame.graph, state.frame.run + 1, plan)
        case Leave():
            return _outputs(state, select, plan)
        case _:
            return _unrun(state, select, plan)


# ---- How a Scan runs --------------------------------------------------------------------------


def _plan(state: State, n: NodeId, rule: str) -> Plan | Stuck:
    """The plan from the attributes and inputs of a Scan, all conditions of scan_runs checked."""
    node = state.program.model.nodes[n]
    function = "scan_runs"
    attributes, body = state.program.attributes(n), held(state, n, "body")
    scans = attributes.get("num_scan_inputs")
    if body is None or not isinstance(scans, int) or scans < 1:
        return undefined(rule, function, f"{node.path} has no graph body, or num_scan_inputs is not positive")
    batched = node.version == _BATCHED
    first = 1 if batched else 0
    states = len(node.inputs) - first - scans
    graph = state.program.model.graphs[body]
    if states < 0 or len(graph.inputs) != states + scans or len(graph.outputs) < states:
        message = (
            f"{node.path} has {len(node.inputs)} inputs of which {scans} are scanned, its body {len(graph.inputs)}"
            f" inputs and {len(graph.outputs)} outputs"
        )
        return undefined(rule, function, message, "Give the body an input for each state and each scan input.")
    collected = len(graph.outputs) - states

    def flags(name: str, count: int, default: int) -> tuple[int, ...] | Stuck:
        stated = attributes.get(name)
        if stated is None:
            return (default,) * count
        numbers = tuple(it for it in stated if isinstance(it, int)) if isinstance(stated, tuple) else ()
        if len(numbers) != count:
            return undefined(rule, function, f"{node.path}: {name} has {len(numbers)} entries, not {count}")
        if "axes" not in name and any(it not in (0, 1) for it in numbers):
            return undefined(rule, function, f"{node.path}: {name} is {list(numbers)}, a direction is 0 or 1")
        return numbers

    reverse = flags("directions" if batched else "scan_input_directions", scans, 0)
    axes = (1,) * scans if batched else flags("scan_input_axes", scans, 0)
    out_axes = (1,) * collected if batched else flags("scan_output_axes", collected, 0)
    out_reverse = (0,) * collected if batched else flags("scan_output_directions", collected, 0)
    if isinstance(reverse, Stuck):
        return reverse
    if isinstance(axes, Stuck):
        return axes
    if isinstance(out_axes, Stuck):
        return out_axes
    if isinstance(out_reverse, Stuck):
        return out_reverse
    shapes: list[tuple[int, ...]] = []
    resolved: list[int] = []
    for i, axis in enumerate(axes):
        value = input_at(state, n, first + states + i)
        rank = value.ndim if isinstance(value, np.ndarray) else 0
        at = axis + rank if axis < 0 and (node.version or 0) >= _NEGATIVE_AXES else axis
        if not isinstance(value, np.ndarray) or not 0 <= at < rank:
            message = f"{node.path}: the scan input {i} is {shown(value)} and is scanned along axis {axis}"
            return undefined(rule, function, message, "Give every scan input a scan axis that it has.")
        shapes.append(value.shape)
        resolved.append(at)
    sizes = {shape[at] for shape, at in zip(shapes, resolved, strict=True)}
    batches = {shape[0] for shape in shapes} if batched else {1}
    if len(sizes) > 1 or len(batches) > 1:
        message = f"{node.path}: the scan inputs have the shapes {list(map(list, shapes))}, scanned along {resolved}"
        return undefined(rule, function, message, "Give all scan inputs the same size along their scan axes.")
    (length,), (batch,) = sizes, batches
    lengths = _lengths(state, n, rule, batch, length, any(reverse)) if batched else (length,)
    if isinstance(lengths, Stuck):
        return lengths
    return Plan(
        batched, first, states, scans, lengths, length, tuple(resolved), tuple(map(bool, reverse)), out_axes,
        tuple(map(bool, out_reverse)),
    )  # fmt: skip


def _lengths(state: State, n: NodeId, rule: str, batch: int, length: int, reverse: bool) -> tuple[int, ...] | Stuck:
    """The lengths of the sequences of a batch."""
    path, given = state.program.model.nodes[n].path, input_at(state, n, 0)
    if given is None:
        return (length,) * batch
    if not isinstance(given, np.ndarray) or given.dtype != np.int64 or given.shape != (batch,):
        return undefined(rule, "scan_runs", f"{path}: sequence_lens is {shown(given)}, expected int64[{batch}]")
    lengths = tuple(int(it) for it in given.tolist())
    if any(not 0 <= it <= length for it in lengths):
        return undefined(rule, "scan_runs", f"{path}: a sequence length is not between 0 and {length}: {lengths}")
    if reverse and any(it < length for it in lengths):
        message = f"{path} scans sequences of lengths {lengths} in reverse along an axis of {length}"
        return undefined(rule, "scan_runs", message, "ONNX does not say where that scan begins: use Scan of opset 9.")
    return lengths


# ---- Inputs of the body -----------------------------------------------------------------------


def _inputs(state: State, n: NodeId, body: GraphId, run: int, plan: Plan) -> Results | Stuck:
    """What the inputs of the body get for a run."""
    sequence, position = plan.position(run)
    carried = outputs_of_run(state)[: plan.states] if position else ()
    values: list[Value | None] = list(carried)
    for i in range(len(carried), plan.states):
        initial = input_at(state, n, plan.first + i)
        sliced = _of_sequence(state, n, initial, sequence, plan, i)
        if isinstance(sliced, Stuck):
            return sliced
        values.append(sliced)
    for i in range(plan.scans):
        scanned = input_at(state, n, plan.first + plan.states + i)
        if isinstance(scanned, np.ndarray):
            at = plan.length - 1 - position if plan.reverse[i] else position
            index: tuple[int | slice, ...] = (sequence, at) if plan.batched else (*(slice(None),) * plan.axes[i], at)
            values.append(np.asarray(scanned[index], scanned.dtype))
    return results(zip(state.program.model.graphs[body].inputs, values, strict=False))


def _of_sequence(
    state: State, n: NodeId, initial: Value | None, sequence: int, plan: Plan, i: int
) -> Value | Stuck | None:
    """The initial value of a state for a sequence of the batch."""
    if not plan.batched or initial is None:
        return initial
    if not isinstance(initial, np.ndarray) or initial.ndim < 1 or initial.shape[0] != len(plan.lengths):
        message = f"{state.program.model.nodes[n].path}: the initial state {i} is {shown(initial)}"
        return undefined("Step/scan", "scan_input", message, f"Give it the first axis {len(plan.lengths)}, the batch.")
    return np.asarray(initial[sequence], initial.dtype)


# ---- Outputs of the Scan ----------------------------------------------------------------------


def _outputs(state: State, select: Select, plan: Plan) -> Results | Stuck:
    node, last = state.program.model.nodes[select.node], outputs_of_run(state)
    if named(node.outputs) > len(last):
        message = f"{select.path} has {len(node.outputs)} outputs, its body {len(last)}"
        return undefined(select.rule, "scan_output", message, "Give the body an output for each output of the Scan.")
    found: list[tuple[TensorId, Value, Mask | None]] = []
    for i, (t, value) in enumerate(zip(node.outputs, last, strict=False)):
        if t is None or value is None:
            continue
        mask: Mask | None = None
        made: Value | Stuck | tuple[Array, Mask | None]
        if plan.batched:
            runs = [*kept_runs(state, i), value]
            made = _states(state, select, plan, i, runs, t) if i < plan.states else _batch(state, select, plan, runs, t)
        elif i < plan.states:
            made = value
        else:
            runs = [*kept_runs(state, i), value]
            made = _collected(state, select, plan, i - plan.states, runs, t)
        if isinstance(made, Stuck):
            return made
        if isinstance(made, tuple):
            made, mask = made
        found.append((t, made, mask))
    return Results(tuple(it[0] for it in found), tuple(it[1] for it in found), tuple(it[2] for it in found))


def _collected(state: State, select: Select, plan: Plan, k: int, runs: list[Value], t: TensorId) -> Array | Stuck:
    """A scan output without a batch: the elements along its axis."""
    first = runs[0]
    rank = first.ndim + 1 if isinstance(first, np.ndarray) else 1
    axis = _out_axis(state, select, plan.out_axes[k], rank, "scan_output")
    if isinstance(axis, Stuck):
        return axis
    ordered = runs[::-1] if plan.out_reverse[k] else runs
    return stacked(ordered, axis, select.rule, "scan_output", state, t)


def _states(state: State, select: Select, plan: Plan, i: int, runs: list[Value], t: TensorId) -> Array | Stuck:
    """The final states of the sequences of a batch."""
    finals: list[Value] = []
    for sequence, end in enumerate(accumulate(plan.lengths)):
        if plan.lengths[sequence]:
            finals.append(runs[end - 1])
            continue
        initial = _of_sequence(state, select.node, input_at(state, select.node, plan.first + i), sequence, plan, i)
        if isinstance(initial, Stuck):
            return initial
        if initial is None:
            message = f"{select.path}: the state {i} has no initial value, and sequence {sequence} is empty"
            return undefined(select.rule, "scan_output", message, "Give the Scan an initial value for it.")
        finals.append(initial)
    return stacked(finals, 0, select.rule, "scan_output", state, t)


def _batch(
    state: State, select: Select, plan: Plan, runs: list[Value], t: TensorId
) -> tuple[Array, Mask | None] | Stuck:
    """A scan output of a batch, filled up to the size of the scan axis, and what is open in it."""
    together = stacked(runs, 0, select.rule, "scan_output", state, t)
    if isinstance(together, Stuck):
        return together
    shape = (len(plan.lengths), plan.length, *together.shape[1:])
    size = together.nbytes // len(runs) * shape[0] * shape[1]
    refused = over_budget(state, size, select.rule, "scan_output")
    if refused is not None:
        return refused
    array, mask = zeros(element_of(together.dtype), shape), np.ones(shape, np.bool_)
    start = 0
    for sequence, length in enumerate(plan.lengths):
        array[sequence, :length] = together[start : start + length]
        mask[sequence, :length] = False
        start += length
    return array, mask if mask.any() else None


def _unrun(state: State, select: Select, plan: Plan) -> Results | Stuck:
    node, body = state.program.model.nodes[select.node], held(state, select.node, "body")
    found: list[tuple[TensorId, Value, Mask | None]] = []
    for i, t in enumerate(node.outputs):
        if t is None:
            continue
        if i < plan.states:
            initial = input_at(state, select.node, plan.first + i)
            if initial is None:
                message = f"{select.path}: the state {i} has no initial value, and the body does not run"
                return undefined(select.rule, "scan_unrun", message, "Give the Scan an initial value for it.")
            found.append((t, initial, None))
            continue
        k = i - plan.states
        declared = declared_output(state, body, i) if body is not None and k < len(plan.out_axes) else None
        sizes = declared_sizes(declared, select.rule, "scan_unrun", state, t)
        if isinstance(sizes, Stuck):
            return sizes
        if plan.batched:
            array = zeros(sizes[0], (len(plan.lengths), plan.length, *sizes[1]))
            found.append((t, array, np.ones(array.shape, np.bool_) if array.size else None))
            continue
        axis = _out_axis(state, select, plan.out_axes[k], len(sizes[1]) + 1, "scan_unrun")
        if isinstance(axis, Stuck):
            return axis
        found.append((t, zeros(sizes[0], (*sizes[1][:axis], 0, *sizes[1][axis:])), None))
    return Results(tuple(it[0] for it in found), tuple(it[1] for it in found), tuple(it[2] for it in found))


def _out_axis(state: State, select: Select, axis: int, rank: int, function: str) -> int | Stuck:
    """The axis of a scan output of this rank, counted from the front."""
    version = state.program.model.nodes[select.node].version or 0
    at = axis + rank if axis < 0 and version >= _NEGATIVE_AXES else axis
    if 0 <= at < rank:
        return at
    message = f"{select.path}: scan_output_axes has the axis {axis}, the output has {rank} axes"
    return undefined(select.rule, function, message, "Give an axis that the output has.")
