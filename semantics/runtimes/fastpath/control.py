"""If, Loop, Scan and SequenceMap: what they compute with their bodies.

The meaning is that of the rules Step/if, Step/loop, Step/scan and Step/sequence-map of part 3 of the specification;
the inputs of a computation here are those of the node, then the values of the tensors that its bodies capture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...model import values
from ...model.elements import element_of
from ...model.graph import Node, ValueType
from ...model.values import Array, Value, shown, zeros
from ...model.values import Sequence as Items
from ...operators.application import AttributeData
from .compiled import Compiled, begun
from .execution import run_plainly
from .kernel import Allocate, Compute, KernelError

Values = Sequence[Value | None]

_BATCHED: Final = 8
_NEGATIVE_AXES: Final = 11


@dataclass(frozen=True, slots=True)
class Body:
    """The graph that a node holds. declared: the types of its outputs as the model states them."""

    compiled: Compiled
    inputs: int
    declared: tuple[ValueType | None, ...]

    def run(self, given: Values, captured: Values) -> list[Value | None]:
        """The outputs for values of the inputs; an input too many is nobody's, one too few has no value."""
        inputs = [*given[: self.inputs], *[None] * (self.inputs - len(given)), *captured]
        slots = begun(self.compiled, inputs)
        run_plainly(self.compiled, slots)
        return [slots[it] for it in self.compiled.outputs]


def computing(node: Node, bodies: Mapping[str, Body], attributes: Mapping[str, AttributeData]) -> Compute:
    """The function that computes a node with bodies. Raises KernelError where the node lacks one that it needs."""
    match node.op_type:
        case "If":
            return _if(node, _held(bodies, "then_branch"), _held(bodies, "else_branch"))
        case "Loop":
            return _loop(node, _held(bodies, "body"))
        case "SequenceMap":
            return _sequence_map(node, _held(bodies, "body"))
        case _:
            return _scan(node, _held(bodies, "body"), attributes)


def _held(bodies: Mapping[str, Body], name: str) -> Body:
    if name not in bodies:
        raise KernelError(f"it has no graph {name}")
    return bodies[name]


# ---- If ---------------------------------------------------------------------------------------


def _if(node: Node, then: Body, other: Body) -> Compute:
    count, outputs = len(node.inputs), len(node.outputs)

    def compute(inputs: Values, _allocate: Allocate) -> tuple[Value | None, ...]:
        branch = then if one_bool(inputs[0] if count else None, "the condition") else other
        results = branch.run((), inputs[count:])
        if outputs > len(results):
            raise KernelError(f"it has {outputs} outputs, its branch {len(results)}")
        return tuple(results)

    return compute


# ---- Loop -------------------------------------------------------------------------------------


def _loop(node: Node, body: Body) -> Compute:
    count, outputs = len(node.inputs), len(node.outputs)
    carried, given = max(body.inputs - 2, 0), len(body.declared)
    asked = tuple(t is not None for t in node.outputs)

    def compute(inputs: Values, _allocate: Allocate) -> tuple[Value | None, ...]:
        own, captured = [*inputs[:count], *[None] * (2 - count)], inputs[count:]
        trips = None if own[0] is None else one_int(own[0], "the trip count")
        going = own[1] is None or one_bool(own[1], "the condition")
        condition: Value | None = np.array(True) if own[1] is None else own[1]
        state: list[Value | None] = [*own[2 : 2 + carried], *[None] * (carried - len(own) + 2)]
        kept: list[list[Value | None]] = [[] for _ in range(max(outputs - carried, 0))]
        run = 0
        while going and (trips is None or run < trips):
            results = body.run((np.array(run, np.int64), condition, *state), captured)
            if len(results) <= outputs:
                raise KernelError(f"it has {outputs} outputs, its body gives {len(results) - 1}")
            condition, state = results[0], results[1 : 1 + carried]
            for row, value in zip(kept, results[1 + carried :], strict=False):
                row.append(value)
            run += 1
            going = own[1] is None or one_bool(condition, "the condition that the body gives")
        if not run and any(value is None and it for value, it in zip(state, asked, strict=False)):
            raise KernelError("an output has no initial value, and the body does not run")
        declared = body.declared[1 + carried :] if given > carried else ()
        return (*state[:outputs], *_gathered(kept, declared, asked[carried:], run))

    return compute


def _gathered(
    kept: Sequence[Sequence[Value | None]], declared: Sequence[ValueType | None], asked: Sequence[bool], runs: int
) -> list[Value | None]:
    """The scan outputs of a Loop."""
    if runs:
        return [stacked(row, 0) if it else None for row, it in zip(kept, asked, strict=False)]
    gathered: list[Value | None] = []
    for number, it in enumerate(asked):
        element, sizes = declared_sizes(declared[number] if number < len(declared) else None) if it else ("float", ())
        gathered.append(zeros(element, (0, *sizes)) if it else None)
    return gathered


# ---- Scan: version 8 with a batch, from version 9 on without ----------------------------------


@dataclass(frozen=True, slots=True)
class ScanForm:
    """A Scan. states, scans, collected: the numbers of states, scan inputs and scan outputs; axes and
    directions (1: from the end) of the scan inputs and outputs, axes as written; negative: whether they may be."""

    states: int
    scans: int
    collected: int
    axes: tuple[int, ...]
    reverse: tuple[int, ...]
    out_axes: tuple[int, ...]
    out_reverse: tuple[int, ...]
    negative: bool

    @property
    def outputs(self) -> int:
        """The number of outputs of the body."""
        return self.states + self.collected

    def axis(self, stated: int, rank: int) -> int:
        """An axis counted from the front. Raises KernelError when there is none."""
        at = stated + rank if stated < 0 and self.negative else stated
        if not 0 <= at < rank:
            raise KernelError(f"there is no axis {stated} in {rank} axes")
        return at


def _scan(node: Node, body: Body, attributes: Mapping[str, AttributeData]) -> Compute:
    """The function that computes a Scan."""
    form = _form(node, body, attributes)
    batched = node.version == _BATCHED
    count = len(node.inputs)
    outputs = [position < len(node.outputs) and node.outputs[position] is not None for position in range(form.outputs)]
    asked = outputs[form.states :]

    def compute(inputs: Values, _allocate: Allocate) -> tuple[Value | None, ...]:
        own, captured = inputs[:count], inputs[count:]
        if batched:
            return _batch(form, body, own[0], own[1:], captured, asked)
        states, tensors = own[: form.states], _tensors(own[form.states :])
        axes = [form.axis(axis, it.ndim) for axis, it in zip(form.axes, tensors, strict=True)]
        (length,) = _sizes([it.shape[axis] for axis, it in zip(axes, tensors, strict=True)])
        states, rows = _runs(form, body, states, tensors, axes, length, captured)
        return (*states, *_collected(form, body, rows, asked))

    return compute


def _runs(
    form: ScanForm,
    body: Body,
    states: Values,
    tensors: Sequence[Array],
    axes: Sequence[int],
    length: int,
    captured: Values,
) -> tuple[Values, list[list[Value | None]]]:
    """The states after all runs, and what each scan output got from each run."""
    rows: list[list[Value | None]] = [[] for _ in range(form.collected)]
    for run in range(length):
        parts = [
            _part(it, axis, length - 1 - run if reverse else run)
            for it, axis, reverse in zip(tensors, axes, form.reverse, strict=True)
        ]
        results = body.run((*states, *parts), captured)
        states = results[: form.states]
        for row, value in zip(rows, results[form.states :], strict=True):
            row.append(value)
    return states, rows


def _part(array: Array, axis: int, at: int) -> Array:
    """The element of a tensor along an axis."""
    index: tuple[slice | int, ...] = (*(slice(None),) * axis, at)
    return np.asarray(array[index], array.dtype)


def _collected(
    form: ScanForm, body: Body, rows: Sequence[Sequence[Value | None]], asked: Sequence[bool]
) -> list[Value | None]:
    collected: list[Value | None] = []
    for row, axis, reverse, declared, wanted in zip(
        rows, form.out_axes, form.out_reverse, body.declared[form.states :], asked, strict=True
    ):
        if not wanted:
            collected.append(None)
            continue
        if row:
            first = row[0]
            rank = first.ndim + 1 if isinstance(first, np.ndarray) else 1
            collected.append(stacked(row[::-1] if reverse else row, form.axis(axis, rank)))
            continue
        element, sizes = declared_sizes(declared)
        at = form.axis(axis, len(sizes) + 1)
        collected.append(zeros(element, (*sizes[:at], 0, *sizes[at:])))
    return collected


# ---- Scan with a batch ------------------------------------------------------------------------


def _batch(
    form: ScanForm, body: Body, lengths: Value | None, given: Values, captured: Values, asked: Sequence[bool]
) -> tuple[Value | None, ...]:
    states, tensors = given[: form.states], _tensors(given[form.states :])
    if any(it.ndim < 2 for it in tensors):
        raise KernelError("a scan input has no axis for the batch and none for the sequence")
    (size,) = _sizes([it.shape[0] for it in tensors])
    (length,) = _sizes([it.shape[1] for it in tensors])
    ends = _lengths(lengths, size, length)
    if any(form.reverse) and any(it < length for it in ends):
        raise KernelError("it scans sequences that are shorter than the axis in reverse, ONNX does not say from where")
    for it in states:
        if it is not None and (not isinstance(it, np.ndarray) or it.ndim < 1 or it.shape[0] != size):
            raise KernelError(f"an initial state is {shown(it)}, its first axis is to be the batch of {size}")
    finals: list[Values] = []
    collected: list[list[list[Value | None]]] = []
    for number, end in enumerate(ends):
        own = [np.asarray(it[number], it.dtype) if isinstance(it, np.ndarray) else None for it in states]
        parts = [it[number] for it in tensors]
        after, rows_of_one = _runs(form, body, own, parts, (0,) * form.scans, end, captured)
        finals.append(after)
        collected.append(rows_of_one)
    outputs: list[Value | None] = [*states]
    if any(ends):
        outputs = [stacked([it[i] for it in finals], 0) for i in range(form.states)]
    for i, wanted in enumerate(asked):
        rows = [it[i] for it in collected]
        outputs.append(_filled(rows, body, form.states + i, length) if wanted else None)
    return tuple(outputs)


def _filled(rows: Sequence[Sequence[Value | None]], body: Body, position: int, length: int) -> Array:
    """A scan output of a batch; what lies beyond the end of a sequence is left open, here it is 0."""
    every = [value for row in rows for value in row]
    if not every:
        element, sizes = declared_sizes(body.declared[position])
        return zeros(element, (len(rows), length, *sizes))
    together = stacked(every, 0)
    filled = zeros(element_of(together.dtype), (len(rows), length, *together.shape[1:]))
    start = 0
    for number, row in enumerate(rows):
        filled[number, : len(row)] = together[start : start + len(row)]
        start += len(row)
    return filled


def _lengths(given: Value | None, size: int, length: int) -> tuple[int, ...]:
    if given is None:
        return (length,) * size
    if not isinstance(given, np.ndarray) or given.dtype != np.int64 or given.shape != (size,):
        raise KernelError(f"sequence_lens is {shown(given)}, expected int64[{size}]")
    ends = tuple(int(it) for it in given.tolist())
    if any(not 0 <= it <= length for it in ends):
        raise KernelError(f"a sequence length is not between 0 and {length}: {ends}")
    return ends


# ---- How a Scan runs ----------------------------------------------------------------------------


def _form(node: Node, body: Body, attributes: Mapping[str, AttributeData]) -> ScanForm:
    scans = attributes.get("num_scan_inputs")
    if not isinstance(scans, int) or scans < 1:
        raise KernelError("num_scan_inputs is not positive")
    batched = node.version == _BATCHED
    states = len(node.inputs) - batched - scans
    collected = len(body.declared) - states
    if states < 0 or collected < 0 or body.inputs != states + scans:
        raise KernelError(
            f"it has {len(node.inputs)} inputs of which {scans} are scanned, its body {body.inputs} inputs and"
            f" {len(body.declared)} outputs"
        )
    if len(node.outputs) > states + collected:
        raise KernelError(f"it has {len(node.outputs)} outputs, its body {states + collected}")

    def row(name: str, count: int) -> tuple[int, ...]:
        stated = attributes.get(name, (0,) * count)
        numbers = tuple(it for it in stated if isinstance(it, int)) if isinstance(stated, tuple) else ()
        if len(numbers) != count:
            raise KernelError(f"{name} has {len(numbers)} entries, not {count}")
        if "axes" not in name and any(it not in (0, 1) for it in numbers):
            raise KernelError(f"{name} is {list(numbers)}, a direction is 0 or 1")
        return numbers

    none = (0,) * collected
    return ScanForm(
        states,
        scans,
        collected,
        (0,) * scans if batched else row("scan_input_axes", scans),
        row("directions" if batched else "scan_input_directions", scans),
        none if batched else row("scan_output_axes", collected),
        none if batched else row("scan_output_directions", collected),
        (node.version or 0) >= _NEGATIVE_AXES,
    )


def _tensors(values: Values) -> list[Array]:
    for number, value in enumerate(values):
        if not isinstance(value, np.ndarray):
            raise KernelError(f"the scan input {number} is {shown(value)}, no tensor")
    return [value for value in values if isinstance(value, np.ndarray)]


def _sizes(sizes: Sequence[int]) -> set[int]:
    """The one size that all have. Raises KernelError when they differ."""
    if len(set(sizes)) != 1:
        raise KernelError(f"the sizes along the scan axes differ: {list(sizes)}")
    return set(sizes)


# ---- SequenceMap ------------------------------------------------------------------------------


def _sequence_map(node: Node, body: Body) -> Compute:
    count, outputs = len(node.inputs), len(node.outputs)
    asked = tuple(t is not None for t in node.outputs)

    def compute(inputs: Values, _allocate: Allocate) -> tuple[Value | None, ...]:
        own, captured = inputs[:count], inputs[count:]
        if body.inputs != count or len(body.declared) < outputs:
            raise KernelError(
                f"it has {count} inputs and {outputs} outputs, its body {body.inputs} and {len(body.declared)}"
            )
        first = own[0] if own else None
        if not isinstance(first, Items):
            raise KernelError(f"the first input is {shown(first)}, not a sequence")
        for position, other in enumerate(own):
            if isinstance(other, Items) and len(other.items) != len(first.items):
                raise KernelError(f"the input {position} is {shown(other)}, the first one {shown(first)}")
        runs = [
            body.run([it.items[run] if isinstance(it, Items) else it for it in own], captured)
            for run in range(len(first.items))
        ]
        return tuple(
            _sequence([row[position] for row in runs], body.declared[position], position) if it else None
            for position, it in enumerate(asked)
        )

    return compute


def _sequence(items: Sequence[Value | None], declared: ValueType | None, position: int) -> Items:
    tensors = tuple(item for item in items if isinstance(item, np.ndarray))
    if not items:
        if declared is None or declared.kind != "tensor" or not declared.element:
            raise KernelError(f"the body declares no type of its output {position}, and does not run")
        return Items(ValueType("tensor", declared.element), ())
    types = {element_of(item.dtype) for item in tensors}
    if len(types) != 1 or len(tensors) < len(items):
        raise KernelError(f"the runs give its output {position} the types {', '.join(map(shown, items))}")
    return Items(ValueType("tensor", types.pop()), tensors)


# ---- Values -----------------------------------------------------------------------------------


def one_bool(value: Value | None, name: str) -> bool:
    """The one element of a bool tensor. Raises KernelError for anything else."""
    one = values.one_bool(value)
    if one is None:
        raise KernelError(f"{name} is {shown(value)}, not a tensor of one bool")
    return one


def one_int(value: Value | None, name: str) -> int:
    """The one element of an int64 tensor. Raises KernelError for anything else."""
    one = values.one_int(value)
    if one is None:
        raise KernelError(f"{name} is {shown(value)}, not a tensor of one int64")
    return one


def stacked(items: Sequence[Value | None], axis: int) -> Array:
    """Tensors of one type and shape side by side along a new axis. Raises KernelError when they are not."""
    objection = values.objection_to_stack(items)
    if objection:
        raise KernelError(objection)
    return values.stacked(items, axis)


def declared_sizes(declared: ValueType | None) -> tuple[str, tuple[int, ...]]:
    """The declared element type and sizes of a tensor that no run gives, 0 for a size that is no number."""
    stated = values.declared_sizes(declared)
    if stated is None:
        raise KernelError("the body does not run, and declares no type and shape of its output")
    return stated
