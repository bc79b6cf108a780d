"""Scan: a body over the elements of tensors along an axis, version 8 with a batch and from version 9 on without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...model.graph import Node
from ...model.values import Array, Value
from ...operators.application import AttributeData
from .control import Body, declared_sizes, shown, stacked, zeros
from .kernel import Allocate, Compute, KernelError

_BATCHED: Final = 8
_NEGATIVE_AXES: Final = 11

Values = Sequence[Value | None]


@dataclass(frozen=True, slots=True)
class Form:
    """How a Scan runs. states, scans, collected: the numbers of states, scan inputs and scan outputs; axes and
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


def scan(node: Node, body: Body, attributes: Mapping[str, AttributeData]) -> Compute:
    """What computes a Scan."""
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
    form: Form, body: Body, states: Values, tensors: Sequence[Array], axes: Sequence[int], length: int, captured: Values
) -> tuple[Values, list[list[Value | None]]]:
    """The states after all runs, and what each scan output got from each run."""
    rows: list[list[Value | None]] = [[] for _ in range(form.collected)]
    for run in range(length):
        parts = [
            _part(it, axis, length - 1 - run if reverse else run)
            for it, axis, reverse in zip(tensors, axes, form.reverse, strict=True)
        ]
        found = body.run((*states, *parts), captured)
        states = found[: form.states]
        for row, value in zip(rows, found[form.states :], strict=True):
            row.append(value)
    return states, rows


def _part(array: Array, axis: int, at: int) -> Array:
    """The element of a tensor along an axis."""
    index: tuple[slice | int, ...] = (*(slice(None),) * axis, at)
    return np.asarray(array[index], array.dtype)


def _collected(
    form: Form, body: Body, rows: Sequence[Sequence[Value | None]], asked: Sequence[bool]
) -> list[Value | None]:
    found: list[Value | None] = []
    for row, axis, reverse, declared, wanted in zip(
        rows, form.out_axes, form.out_reverse, body.declared[form.states :], asked, strict=True
    ):
        if not wanted:
            found.append(None)
            continue
        if row:
            first = row[0]
            rank = first.ndim + 1 if isinstance(first, np.ndarray) else 1
            found.append(stacked(row[::-1] if reverse else row, form.axis(axis, rank)))
            continue
        element, sizes = declared_sizes(declared)
        at = form.axis(axis, len(sizes) + 1)
        found.append(zeros(element, (*sizes[:at], 0, *sizes[at:])))
    return found


# ---- With a batch -----------------------------------------------------------------------------


def _batch(
    form: Form, body: Body, lengths: Value | None, given: Values, captured: Values, asked: Sequence[bool]
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
    filled: Array = np.zeros((len(rows), length, *together.shape[1:]), together.dtype)
    if filled.dtype.hasobject:
        filled.fill(b"")
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


# ---- The form ---------------------------------------------------------------------------------


def _form(node: Node, body: Body, attributes: Mapping[str, AttributeData]) -> Form:
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
    return Form(
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


def _sizes(found: Sequence[int]) -> set[int]:
    """The one size that all have. Raises KernelError when they differ."""
    if len(set(found)) != 1:
        raise KernelError(f"the sizes along the scan axes differ: {list(found)}")
    return set(found)
