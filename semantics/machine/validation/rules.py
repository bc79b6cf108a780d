"""The rules of part 3: which one a node may take in a state, its premises in written order, and what it gives.

This is spec/3-execution.sonnx written once more, on states that have bytes: a value is read from its region of M. A
premise that does not hold is raised as Refused with its words in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.library import specification

from ...errors import Unsupported
from ...model.elements import element_of
from ...model.graph import Graph, GraphId, Model, NodeId, TensorId, ValueType
from ...model.path import operator_text
from ...model.schemas import normal_domain, operator_name
from ...model.values import Array, Sequence, Value, shown, zeros
from ...operators.application import Application, AttributeData, Draw, Meaning, Stuck, data_of
from .layout import Memory, Region, to_value, type_of

Mask = NDArray[np.bool_]

FIRE: Final = "Step/fire"
NODE: Final = "n in nodes(G)"
ENABLED: Final = "enabled(n, M)"
FINISHED: Final = "finished(G, M)"
COVERED: Final = "covered(P)"
NAMES: Final[Mapping[str, str]] = {"If": "if", "Loop": "loop", "Scan": "scan", "SequenceMap": "sequence-map"}
"""For each operator that has rules of its own how their names begin."""


class Refused(Exception):  # noqa: N818 - it is no error of the program
    """A premise that does not hold: its rule and its words, what the trace says, and what holds instead."""

    def __init__(self, rule: str, premise: str, holds: str, says: str = "") -> None:
        super().__init__(holds)
        self.rule, self.premise, self.holds, self.says = rule, premise, holds, says


# ---- States -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Frame:
    """One run of a graph. holder: the node whose body it is, None for the main graph. number: which run of the body.

    runs: how many there will be, None where that is not known beforehand. prefix: how paths in it begin. table: T of
    this run. kept: for each run before, what it gave to the outputs of the body, None for what is not collected.
    """

    graph: GraphId
    holder: NodeId | None
    number: int
    runs: int | None
    prefix: str
    table: dict[TensorId, Region]
    kept: list[list[Region | None]] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """(G, M, T, K), where T is part of the frames K. stored: for each graph the regions of its initializers.

    draws: the seed of random numbers. budget: the bytes that a value may have.
    """

    model: Model
    meaning: Meaning
    draws: int
    budget: int | None
    memory: Memory
    frames: list[Frame]
    stored: list[dict[TensorId, Region]]
    nodes: dict[GraphId, dict[str, NodeId]] = field(default_factory=dict)
    attributes: dict[NodeId, Mapping[str, AttributeData]] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """A value that a tensor gets. anything: the elements that may have any value by part 3, None for no such one."""

    tensor: TensorId
    value: Value
    anything: Mask | None = None


@dataclass(slots=True)
class Turn:
    """What a rule makes of a state. node: n of the rule. results: W.

    enters: the body whose run 0 begins. again: the positions of the outputs that are kept when the body begins its next
    run, None when it does not. leaves: the body is left.
    """

    rule: str
    node: NodeId
    results: list[Result]
    enters: GraphId | None = None
    runs: int | None = None
    again: range | None = None
    leaves: bool = False


def holding(state: State, t: TensorId) -> Frame | None:
    """The frame of the run of the graph that a tensor belongs to."""
    graph = state.model.tensors[t].graph
    return next((frame for frame in reversed(state.frames) if frame.graph == graph), None)


def region(state: State, t: TensorId) -> Region | None:
    """The region of a tensor; None when t is not in dom(M)."""
    frame = holding(state, t)
    return None if frame is None else frame.table.get(t)


def value(state: State, t: TensorId | None, rule: str) -> Value | None:
    """The value that M gives to a tensor; None when it gives none."""
    where = None if t is None else region(state, t)
    return None if where is None else loaded(state, where, rule)


def loaded(state: State, where: Region, rule: str) -> Value:
    """The value in a region, which is its own still."""
    if not where.live:
        raise Refused(rule, COVERED, f"{where.tensor} is read, and its region was freed")
    return to_value(state.memory.read(where), where.type)


def reads(state: State, n: NodeId) -> tuple[TensorId, ...]:
    """ins(n): what a node and the bodies that it holds read, each once."""
    node = state.model.nodes[n]
    return tuple(dict.fromkeys(t for t in (*node.inputs, *node.captures) if t is not None))


def start(path: str) -> str:
    """How the paths of what is in a graph begin."""
    return path if path.endswith("/") else path + "/"


def tensor_path(state: State, t: TensorId) -> str:
    """The path of a tensor with the numbers of the runs that it is in."""
    tensor, frame = state.model.tensors[t], holding(state, t)
    if frame is None:
        return tensor.path
    return frame.prefix + tensor.path[len(start(state.model.graphs[tensor.graph].path)) :]


def node_path(state: State, n: NodeId, frame: Frame) -> str:
    """The path of a node of the graph of a frame with the numbers of the runs that it is in."""
    return frame.prefix + state.model.nodes[n].path[len(start(state.model.graphs[frame.graph].path)) :]


def holder_path(state: State) -> str:
    """The path of the node whose body runs; "" when none does."""
    holder = state.frames[-1].holder
    return "" if holder is None else node_path(state, holder, state.frames[-2])


# ---- Which rule -------------------------------------------------------------------------------


def turn(state: State, path: str) -> Turn:
    """What the node of this path makes of the state."""
    frame = state.frames[-1]
    if path.startswith(frame.prefix):
        nodes = state.nodes.get(frame.graph)
        if nodes is None:
            skipped = len(start(state.model.graphs[frame.graph].path))
            nodes = {state.model.nodes[n].path[skipped:]: n for n in state.model.graphs[frame.graph].nodes}
            state.nodes[frame.graph] = nodes
        n = nodes.get(path[len(frame.prefix) :])
        if n is not None:
            return _begins(state, n)
    if frame.holder is not None and path == holder_path(state):
        return _ends(state, frame.holder)
    raise Refused(FIRE, NODE, f"the graph that runs is {frame.prefix}, and has no such node", path)


def is_enabled(state: State, n: NodeId) -> str:
    """Why not enabled(n, M); "" when it is."""
    for t in reads(state, n):
        if region(state, t) is None:
            return f"it reads {tensor_path(state, t)}, which has no value"
    outputs = [t for t in state.model.nodes[n].outputs if t is not None]
    for t in outputs:
        if region(state, t) is not None:
            return f"its output {tensor_path(state, t)} has a value: it has fired"
    return "" if outputs else "it has no output"


def unfinished(state: State) -> str:
    """Why not finished(G, M) for the graph that runs; "" when it is."""
    for t in state.model.graphs[state.frames[-1].graph].outputs:
        if region(state, t) is None:
            return f"the output {tensor_path(state, t)} has no value"
    return ""


def operator(state: State, n: NodeId) -> str:
    """The operator of a node that has rules of its own; "" for any other."""
    node = state.model.nodes[n]
    return node.op_type if node.op_type in NAMES and not normal_domain(node.domain) else ""


def _begins(state: State, n: NodeId) -> Turn:
    node, own = state.model.nodes[n], operator(state, n)
    rule = f"Step/{NAMES[own]}" if own else FIRE
    why = is_enabled(state, n)
    if why:
        raise Refused(rule, ENABLED, why)
    if own:
        return _BEGINS[own](state, n)
    if node.bodies:
        name = operator_text(node.domain, node.op_type)
        raise Refused(FIRE, "not (exists b in bodies(n): true)", f"it holds a body, and no rule runs one for {name}")
    return _fires(state, n)


def _ends(state: State, n: NodeId) -> Turn:
    own = operator(state, n)
    why = unfinished(state)
    if why:
        raise Refused(f"Step/{NAMES[own]}-leave", FINISHED, why)
    return _ENDS[own](state, n)


# ---- Step/fire --------------------------------------------------------------------------------


def _fires(state: State, n: NodeId) -> Turn:
    node = state.model.nodes[n]
    attributes = state.attributes.get(n)
    if attributes is None:
        pairs = ((name, data_of(it, state.model)) for name, it in node.attributes.items())
        attributes = state.attributes[n] = {name: data for name, data in pairs if data is not None}
    name = operator_name(node.domain, node.op_type)
    application = Application(
        name,
        node.version or 0,
        tuple([value(state, t, FIRE) for t in node.inputs]),
        attributes,
        tuple([t is not None for t in node.outputs]),
        state.budget,
        Draw(state.draws, node_path(state, n, state.frames[-1])),
    )
    try:
        given = state.meaning(application)
    except Unsupported as problem:
        if node.version is not None and specification().meanings.at(name, node.version) is not None:
            raise
        raise Refused(FIRE, "gives", str(problem)) from None
    if isinstance(given, Stuck):
        raise Refused(given.rule, given.premise, given.message)
    if len(given.values) != len(node.outputs):
        why = f"{node.op_type} gives {len(given.values)} outputs, the node lists {len(node.outputs)}"
        raise Refused(FIRE, "W in gives(n, M)", why)
    return Turn(FIRE, n, _results(zip(node.outputs, given.values, strict=True)))


def _results(pairs: Iterable[tuple[TensorId | None, Value | None]]) -> list[Result]:
    """What tensors get, by position, where there are both."""
    by_tensor = {t: it for t, it in pairs if t is not None and it is not None}
    return [Result(t, it) for t, it in by_tensor.items()]


# ---- What the rules of bodies have in common --------------------------------------------------


def _input(state: State, n: NodeId, position: int, rule: str) -> Value | None:
    inputs = state.model.nodes[n].inputs
    return value(state, inputs[position], rule) if position < len(inputs) else None


def _has(state: State, n: NodeId, position: int) -> bool:
    """has_input(n, ...)."""
    inputs = state.model.nodes[n].inputs
    return position < len(inputs) and inputs[position] is not None


def _flag(it: Value | None, rule: str, premise: str) -> bool:
    """is_true of a tensor for which is_flag holds."""
    if not isinstance(it, np.ndarray) or it.dtype != np.bool_ or it.size != 1:
        raise Refused(rule, premise, f"it is {shown(it)}, not a tensor of one bool")
    return bool(it.item())


def _number(it: Value | None, rule: str, premise: str) -> int:
    """number of a tensor for which is_number holds."""
    if not isinstance(it, np.ndarray) or it.dtype != np.int64 or it.size != 1:
        raise Refused(rule, premise, f"it is {shown(it)}, not a tensor of one int64")
    return int(it.item())


def _body(state: State, n: NodeId, attribute: str, rule: str) -> tuple[GraphId, Graph]:
    """The graph of an attribute: `if b in bodies(n)`."""
    for name, body in state.model.nodes[n].bodies:
        if name == attribute:
            return body, state.model.graphs[body]
    raise Refused(rule, "b in bodies(n)", f"the node has no graph {attribute}")


def _given(state: State, rule: str) -> list[Value | None]:
    """The values of the outputs of the body that runs, by position."""
    return [value(state, t, rule) for t in state.model.graphs[state.frames[-1].graph].outputs]


def _all_runs(state: State, position: int, last: Value, rule: str) -> list[Value]:
    """What all runs gave to an output of the body, the last one at the end."""
    rows = [row[position] for row in state.frames[-1].kept]
    return [*(loaded(state, it, rule) for it in rows if it is not None), last]


def _named(outputs: tuple[TensorId | None, ...]) -> int:
    """The number of outputs up to the last one that has a name."""
    return max((i + 1 for i, t in enumerate(outputs) if t is not None), default=0)


def _stacked(state: State, items: list[Value], axis: int, rule: str, premise: str) -> Array:
    """Tensors of one type and shape side by side along a new axis."""
    arrays = [it for it in items if isinstance(it, np.ndarray)]
    if len(arrays) < len(items) or len({(it.dtype, it.shape) for it in arrays}) > 1:
        kinds = ", ".join(dict.fromkeys(map(shown, items)))
        raise Refused(rule, premise, f"the runs give {kinds}, which cannot be stacked")
    if not 0 <= axis <= arrays[0].ndim:
        raise Refused(rule, premise, f"there is no axis {axis} in {arrays[0].ndim + 1} axes")
    _within(state, len(arrays) * arrays[0].nbytes)
    return np.stack(arrays, axis)


def _within(state: State, size: int) -> None:
    if state.budget is not None and size > state.budget:
        raise MemoryError(f"{size} bytes are needed at once")


def _declared(state: State, graph: Graph, position: int) -> ValueType | None:
    """The declared type of an output of a body; None for one that there is not."""
    if position >= len(graph.outputs):
        return None
    stated = graph.output_types[position] if position < len(graph.output_types) else None
    return stated or state.model.tensors[graph.outputs[position]].declared


def _declared_sizes(declared: ValueType | None, rule: str, premise: str) -> tuple[str, tuple[int, ...]]:
    """The declared element type and sizes of an output of a body, 0 for a size that is no number."""
    if declared is None or declared.kind != "tensor" or not declared.element or declared.shape is None:
        raise Refused(rule, premise, "no run gives it a shape, and the body declares no element type, or no rank")
    return declared.element, tuple(size if isinstance(size, int) and size > 0 else 0 for size in declared.shape)


# ---- If ---------------------------------------------------------------------------------------


def _if(state: State, n: NodeId) -> Turn:
    condition = _flag(_input(state, n, 0, "Step/if"), "Step/if", 'is_flag(input(n, "cond"), M)')
    b, _ = _body(state, n, "then_branch" if condition else "else_branch", "Step/if")
    return Turn("Step/if", n, [], enters=b)


def _if_leave(state: State, n: NodeId) -> Turn:
    rule, outputs = "Step/if-leave", state.model.nodes[n].outputs
    made = _given(state, rule)
    if _named(outputs) > len(made):
        raise Refused(rule, "W in positioned(n, G, M)", f"the If has {len(outputs)} outputs, the branch {len(made)}")
    return Turn(rule, n, _results(zip(outputs, made, strict=False)), leaves=True)


# ---- Loop -------------------------------------------------------------------------------------


def _trips(state: State, n: NodeId, rule: str) -> int | None:
    """The trip count; None when there is none."""
    if not _has(state, n, 0):
        return None
    return _number(_input(state, n, 0, rule), rule, "loop_decided(n, M)")


def _carried(body: Graph) -> int:
    return max(len(body.inputs) - 2, 0)


def _loop(state: State, n: NodeId) -> Turn:
    node, rule = state.model.nodes[n], "Step/loop"
    b, body = _body(state, n, "body", rule)
    if len(body.inputs) < max(2, len(node.inputs)) or len(body.outputs) < len(body.inputs) - 1:
        why = f"the Loop has {len(node.inputs)} inputs, its body {len(body.inputs)} and {len(body.outputs)} outputs"
        raise Refused(rule, "W in loop_input(n, M, K')", why)
    trips = _trips(state, n, rule)
    going = not _has(state, n, 1) or _flag(_input(state, n, 1, rule), rule, "loop_decided(n, M)")
    if not going or (trips is not None and trips <= 0):
        return Turn("Step/loop-none", n, _loop_unrun(state, n, body))
    condition = _input(state, n, 1, rule)
    first: list[Value | None] = [np.array(0, np.int64), np.array(True) if condition is None else condition]
    initial = [_input(state, n, 2 + i, rule) for i in range(_carried(body))]
    return Turn(rule, n, _results(zip(body.inputs, [*first, *initial], strict=False)), enters=b, runs=trips)


def _loop_unrun(state: State, n: NodeId, body: Graph) -> list[Result]:
    rule, premise = "Step/loop-none", "W in loop_unrun(n, M)"
    made: list[tuple[TensorId | None, Value | None]] = []
    for i, t in enumerate(state.model.nodes[n].outputs):
        if t is None:
            continue
        it: Value | None
        if i < _carried(body):
            it = _input(state, n, 2 + i, rule)
            if it is None:
                raise Refused(rule, premise, f"the output {i} has no initial value")
        else:
            element, sizes = _declared_sizes(_declared(state, body, 1 + i), rule, premise)
            it = zeros(element, (0, *sizes))
        made.append((t, it))
    return _results(made)


def _loop_end(state: State, n: NodeId) -> Turn:
    frame, rule = state.frames[-1], "Step/loop-next"
    body, trips = state.model.graphs[frame.graph], _trips(state, n, rule)
    going = trips is None or frame.number + 1 < trips
    if going and _has(state, n, 1):
        condition = value(state, body.outputs[0], rule) if body.outputs else None
        going = _flag(condition, rule, "loop_condition(n, G, M, K)")
    carried, made = _carried(body), _given(state, rule)
    if going:
        again: list[Value | None] = [np.array(frame.number + 1, np.int64), *made[: 1 + carried]]
        results = _results(zip(body.inputs, again, strict=False))
        return Turn(rule, n, results, again=range(1 + carried, len(body.outputs)))
    rule, premise = "Step/loop-leave", "W in loop_output(n, M, K)"
    pairs: list[tuple[TensorId | None, Value | None]] = []
    for i, t in enumerate(state.model.nodes[n].outputs):
        if t is None:
            continue
        it = made[1 + i] if 1 + i < len(made) else None
        if it is None:
            raise Refused(rule, premise, f"the body has no output for the output {i}")
        pairs.append((t, it if i < carried else _stacked(state, _all_runs(state, 1 + i, it, rule), 0, rule, premise)))
    return Turn(rule, n, _results(pairs), leaves=True)


# ---- Scan -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Scanning:
    """How a Scan runs. first: the position of the first state. lengths: of the sequences of the batch, one where there
    is none. length: the size along the scan axis. axes, reverse: for each scan input; the others for each output."""

    batched: bool
    first: int
    states: int
    scans: int
    lengths: list[int]
    length: int
    axes: list[int]
    reverse: list[int]
    out_axes: list[int]
    out_reverse: list[int]


def _scanning(state: State, n: NodeId, rule: str) -> tuple[Scanning, GraphId, Graph]:
    """scan_runs is not -1, and what follows from the inputs and attributes."""
    node, premise = state.model.nodes[n], "scan_runs(n, M)"
    b, body = _body(state, n, "body", rule)
    stated = {name: data_of(it, state.model) for name, it in node.attributes.items()}
    batched, negative = node.version == 8, (node.version or 0) >= 11
    first, scans = int(batched), stated.get("num_scan_inputs")

    def refuse(why: str) -> Refused:
        return Refused(rule, premise, why)

    if not isinstance(scans, int) or scans < 1:
        raise refuse(f"num_scan_inputs is {scans}")
    states = len(node.inputs) - first - scans
    if states < 0 or len(body.inputs) != states + scans or len(body.outputs) < states:
        raise refuse(
            f"{len(node.inputs)} inputs, {scans} of them scanned, do not suit the {len(body.inputs)} of the body"
        )

    def listed(name: str, count: int, default: int, most: int | None) -> list[int]:
        entries = stated.get(name)
        if entries is None or not name:
            return [default] * count
        numbers = [it for it in entries if isinstance(it, int)] if isinstance(entries, tuple) else []
        if len(numbers) != count or (most is not None and any(not 0 <= it <= most for it in numbers)):
            raise refuse(f"{name} is {list(numbers)}, for {count} inputs or outputs")
        return numbers

    collected = len(body.outputs) - states
    reverse = listed("directions" if batched else "scan_input_directions", scans, 0, 1)
    axes = listed("" if batched else "scan_input_axes", scans, first, None)
    out_axes = listed("" if batched else "scan_output_axes", collected, first, None)
    out_reverse = listed("" if batched else "scan_output_directions", collected, 0, 1)
    scanned = [_input(state, n, first + states + i, rule) for i in range(scans)]
    sizes: set[int] = set()
    batches: set[int] = set()
    for i, it in enumerate(scanned):
        rank = it.ndim if isinstance(it, np.ndarray) else 0
        axes[i] += rank if axes[i] < 0 and negative else 0
        if not isinstance(it, np.ndarray) or not 0 <= axes[i] < rank:
            raise refuse(f"the scan input {i} is {shown(it)}, scanned along axis {axes[i]}")
        sizes.add(it.shape[axes[i]])
        batches.add(it.shape[0] if batched else 1)
    if len(sizes) > 1 or len(batches) > 1:
        raise refuse("the scan inputs differ in size along the scan axis, or in that of the batch")
    (length,), (batch,) = sizes, batches
    lengths = [length] * batch
    if batched and _has(state, n, 0):
        given = _input(state, n, 0, rule)
        if not isinstance(given, np.ndarray) or given.dtype != np.int64 or given.shape != (batch,):
            raise refuse(f"sequence_lens is {shown(given)}")
        lengths = given.tolist()
        if any(not 0 <= it <= length for it in lengths) or (any(reverse) and any(it < length for it in lengths)):
            raise refuse(f"the sequences have the lengths {lengths}, the axis {length}")
    return Scanning(batched, first, states, scans, lengths, length, axes, reverse, out_axes, out_reverse), b, body


def _scan_inputs(state: State, n: NodeId, how: Scanning, run: int, body: Graph, rule: str) -> list[Result]:
    ends = list(accumulate(how.lengths))
    sequence = next(s for s, end in enumerate(ends) if run < end)
    position = run - (ends[sequence] - how.lengths[sequence])
    if position:
        values = [value(state, t, rule) for t in body.outputs[: how.states]]
    else:
        values = [_initial(state, n, how, i, sequence, rule) for i in range(how.states)]
    for i in range(how.scans):
        it = _input(state, n, how.first + how.states + i, rule)
        at = how.length - 1 - position if how.reverse[i] else position
        if isinstance(it, np.ndarray):
            index: tuple[int | slice, ...] = (sequence, at) if how.batched else (*(slice(None),) * how.axes[i], at)
            values.append(np.asarray(it[index], it.dtype))
    return _results(zip(body.inputs, values, strict=False))


def _initial(state: State, n: NodeId, how: Scanning, i: int, sequence: int, rule: str) -> Value | None:
    """The initial value of a state, for a sequence of the batch."""
    it = _input(state, n, how.first + i, rule)
    if it is None or not how.batched:
        return it
    if not isinstance(it, np.ndarray) or not it.ndim or it.shape[0] != len(how.lengths):
        raise Refused(rule, "W in scan_input(n, M, K')", f"the initial state {i} is {shown(it)}")
    return np.asarray(it[sequence], it.dtype)


def _scan(state: State, n: NodeId) -> Turn:
    rule = "Step/scan"
    how, b, body = _scanning(state, n, rule)
    if not sum(how.lengths):
        return Turn("Step/scan-none", n, _scan_unrun(state, n, how, body))
    return Turn(rule, n, _scan_inputs(state, n, how, 0, body, rule), enters=b, runs=sum(how.lengths))


def _scan_end(state: State, n: NodeId) -> Turn:
    frame, rule = state.frames[-1], "Step/scan-next"
    how, _, body = _scanning(state, n, rule)
    if frame.number + 1 < sum(how.lengths):
        first = 0 if how.batched else how.states
        results = _scan_inputs(state, n, how, frame.number + 1, body, rule)
        return Turn(rule, n, results, again=range(first, len(body.outputs)))
    rule, premise, outputs = "Step/scan-leave", "W in scan_output(n, M, K)", state.model.nodes[n].outputs
    made = _given(state, rule)
    if _named(outputs) > len(made):
        raise Refused(rule, premise, f"the Scan has {len(outputs)} outputs, its body {len(made)}")
    results = []
    for i, (t, it) in enumerate(zip(outputs, made, strict=False)):
        if t is None or it is None:
            continue
        if i < how.states and not how.batched:
            results.append(Result(t, it))
            continue
        runs = _all_runs(state, i, it, rule)
        if i < how.states:
            results.append(Result(t, _last_states(state, n, how, i, runs)))
        elif how.batched:
            results.append(_of_batch(state, how, t, runs))
        else:
            k = i - how.states
            rank = runs[0].ndim + 1 if isinstance(runs[0], np.ndarray) else 1
            axis = _out_axis(state, n, how.out_axes[k], rank, rule, premise)
            runs = runs[::-1] if how.out_reverse[k] else runs
            results.append(Result(t, _stacked(state, runs, axis, rule, premise)))
    return Turn(rule, n, results, leaves=True)


def _last_states(state: State, n: NodeId, how: Scanning, i: int, runs: list[Value]) -> Array:
    """The state after the last run of each sequence of the batch, its initial value where it has none."""
    rule, premise = "Step/scan-leave", "W in scan_output(n, M, K)"
    last: list[Value] = []
    for sequence, end in enumerate(accumulate(how.lengths)):
        it = runs[end - 1] if how.lengths[sequence] else _initial(state, n, how, i, sequence, rule)
        if it is None:
            raise Refused(rule, premise, f"the state {i} has no initial value, and the sequence {sequence} is empty")
        last.append(it)
    return _stacked(state, last, 0, rule, premise)


def _of_batch(state: State, how: Scanning, t: TensorId, runs: list[Value]) -> Result:
    """The elements of each sequence, filled up to the size of the axis with elements that may have any value."""
    together = _stacked(state, runs, 0, "Step/scan-leave", "W in scan_output(n, M, K)")
    shape = (len(how.lengths), how.length, *together.shape[1:])
    _within(state, together.nbytes // len(runs) * shape[0] * shape[1])
    array, anything, begin = zeros(element_of(together.dtype), shape), np.ones(shape, np.bool_), 0
    for sequence, length in enumerate(how.lengths):
        array[sequence, :length] = together[begin : begin + length]
        anything[sequence, :length] = False
        begin += length
    return Result(t, array, anything if anything.any() else None)


def _scan_unrun(state: State, n: NodeId, how: Scanning, body: Graph) -> list[Result]:
    rule, premise = "Step/scan-none", "W in scan_unrun(n, M)"
    results: list[Result] = []
    for i, t in enumerate(state.model.nodes[n].outputs):
        if t is None:
            continue
        if i < how.states:
            it = _input(state, n, how.first + i, rule)
            if it is None:
                raise Refused(rule, premise, f"the state {i} has no initial value")
            results.append(Result(t, it))
            continue
        element, sizes = _declared_sizes(_declared(state, body, i), rule, premise)
        if how.batched:
            array = zeros(element, (len(how.lengths), how.length, *sizes))
            results.append(Result(t, array, np.ones(array.shape, np.bool_) if array.size else None))
        else:
            axis = _out_axis(state, n, how.out_axes[i - how.states], len(sizes) + 1, rule, premise)
            results.append(Result(t, zeros(element, (*sizes[:axis], 0, *sizes[axis:]))))
    return results


def _out_axis(state: State, n: NodeId, axis: int, rank: int, rule: str, premise: str) -> int:
    at = axis + rank if axis < 0 and (state.model.nodes[n].version or 0) >= 11 else axis
    if not 0 <= at < rank:
        raise Refused(rule, premise, f"scan_output_axes has the axis {axis}, the output {rank} axes")
    return at


# ---- SequenceMap ------------------------------------------------------------------------------


def _map_runs(state: State, n: NodeId, rule: str) -> int:
    """map_runs, which is not -1."""
    given = [_input(state, n, position, rule) for position in range(len(state.model.nodes[n].inputs))]
    lengths = {len(it.items) for it in given if isinstance(it, Sequence)}
    if not given or not isinstance(given[0], Sequence) or len(lengths) > 1:
        raise Refused(rule, "map_runs(n, M)", f"the inputs are {', '.join(map(shown, given))}")
    return lengths.pop()


def _map_inputs(state: State, n: NodeId, run: int, body: Graph, rule: str) -> list[Result]:
    given = [_input(state, n, position, rule) for position in range(len(state.model.nodes[n].inputs))]
    return _results(zip(body.inputs, [it.items[run] if isinstance(it, Sequence) else it for it in given], strict=True))


def _map(state: State, n: NodeId) -> Turn:
    node, rule = state.model.nodes[n], "Step/sequence-map"
    b, body = _body(state, n, "body", rule)
    if len(body.inputs) != len(node.inputs) or len(body.outputs) < _named(node.outputs):
        why = f"{len(node.inputs)} inputs and {len(node.outputs)} outputs do not suit those of the body"
        raise Refused(rule, "W in map_input(n, M, K')", why)
    runs = _map_runs(state, n, rule)
    if runs:
        return Turn(rule, n, _map_inputs(state, n, 0, body, rule), enters=b, runs=runs)
    rule, results = "Step/sequence-map-none", []
    for position, t in enumerate(node.outputs):
        declared = None if t is None else _declared(state, body, position)
        if t is None:
            continue
        if declared is None or declared.kind != "tensor" or not declared.element:
            raise Refused(rule, "W in map_unrun(n)", f"the body declares no type of its output {position}")
        results.append(Result(t, Sequence(ValueType("tensor", declared.element), ())))
    return Turn(rule, n, results)


def _map_end(state: State, n: NodeId) -> Turn:
    frame, rule = state.frames[-1], "Step/sequence-map-next"
    body = state.model.graphs[frame.graph]
    if frame.number + 1 < _map_runs(state, n, rule):
        results = _map_inputs(state, n, frame.number + 1, body, rule)
        return Turn(rule, n, results, again=range(len(body.outputs)))
    rule, made = "Step/sequence-map-leave", _given(state, "Step/sequence-map-leave")
    pairs: list[tuple[TensorId | None, Value | None]] = []
    for position, t in enumerate(state.model.nodes[n].outputs):
        it = made[position] if position < len(made) else None
        if t is None or it is None:
            continue
        items = _all_runs(state, position, it, rule)
        types = {type_of(item).element if isinstance(item, np.ndarray) else "" for item in items}
        if len(types) > 1 or "" in types:
            raise Refused(rule, "W in map_output(n, M, K)", f"the runs give {', '.join(map(shown, items))}")
        pairs.append((t, Sequence(ValueType("tensor", types.pop()), tuple(items))))
    return Turn(rule, n, _results(pairs), leaves=True)


_BEGINS: Final[Mapping[str, Callable[[State, NodeId], Turn]]] = {
    "If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _map,
}  # fmt: skip
_ENDS: Final[Mapping[str, Callable[[State, NodeId], Turn]]] = {
    "If": _if_leave, "Loop": _loop_end, "Scan": _scan_end, "SequenceMap": _map_end,
}  # fmt: skip
