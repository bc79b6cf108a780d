"""If, Loop, Scan and SequenceMap: what they compute with their bodies.

The meaning is that of the rules Step/if, Step/loop, Step/scan and Step/sequence-map of part 3 of the specification;
the inputs of a computation here are those of the node, then the values of the tensors that its bodies capture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...machine.heap import type_of
from ...machine.inputs import type_text
from ...model.elements import dtype_of, element_of
from ...model.graph import Node, ValueType
from ...model.values import Array, Value
from ...model.values import Sequence as Items
from ...operators.application import AttributeData
from .compiled import Compiled, begun
from .execution import run_plainly
from .kernel import Allocate, Compute, KernelError

Values = Sequence[Value | None]


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
    """What computes a node with bodies. Raises KernelError where the node lacks one that it needs."""
    match node.op_type:
        case "If":
            return _if(node, _held(bodies, "then_branch"), _held(bodies, "else_branch"))
        case "Loop":
            return _loop(node, _held(bodies, "body"))
        case "SequenceMap":
            return _sequence_map(node, _held(bodies, "body"))
        case _:
            from .control_scan import scan

            return scan(node, _held(bodies, "body"), attributes)


def _held(bodies: Mapping[str, Body], name: str) -> Body:
    if name not in bodies:
        raise KernelError(f"it has no graph {name}")
    return bodies[name]


# ---- If ---------------------------------------------------------------------------------------


def _if(node: Node, then: Body, other: Body) -> Compute:
    count, outputs = len(node.inputs), len(node.outputs)

    def compute(inputs: Values, _allocate: Allocate) -> tuple[Value | None, ...]:
        branch = then if one_bool(inputs[0] if count else None, "the condition") else other
        found = branch.run((), inputs[count:])
        if outputs > len(found):
            raise KernelError(f"it has {outputs} outputs, its branch {len(found)}")
        return tuple(found)

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
            found = body.run((np.array(run, np.int64), condition, *state), captured)
            if len(found) <= outputs:
                raise KernelError(f"it has {outputs} outputs, its body gives {len(found) - 1}")
            condition, state = found[0], found[1 : 1 + carried]
            for row, value in zip(kept, found[1 + carried :], strict=False):
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
    found: list[Value | None] = []
    for number, it in enumerate(asked):
        element, sizes = declared_sizes(declared[number] if number < len(declared) else None) if it else ("float", ())
        found.append(zeros(element, (0, *sizes)) if it else None)
    return found


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
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.size == 1:
        return bool(value.reshape(-1)[0])
    raise KernelError(f"{name} is {shown(value)}, not a tensor of one bool")


def one_int(value: Value | None, name: str) -> int:
    """The one element of an int64 tensor. Raises KernelError for anything else."""
    if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.size == 1:
        return int(value.reshape(-1)[0])
    raise KernelError(f"{name} is {shown(value)}, not a tensor of one int64")


def stacked(items: Sequence[Value | None], axis: int) -> Array:
    """Tensors of one type and shape side by side along a new axis. Raises KernelError when they are not."""
    first = items[0]
    tensors = [item for item in items if isinstance(item, np.ndarray)]
    for number, item in enumerate(items):
        if not isinstance(item, np.ndarray) or not isinstance(first, np.ndarray):
            raise KernelError(f"run {number} gives {shown(item)}, no tensor")
        if item.dtype != first.dtype or item.shape != first.shape:
            raise KernelError(f"run 0 gives {shown(first)}, run {number} {shown(item)}")
    return np.stack(tensors, axis)


def declared_sizes(declared: ValueType | None) -> tuple[str, tuple[int, ...]]:
    """The declared element type and sizes of a tensor that no run gives, 0 for a size that is no number."""
    if declared is None or declared.kind != "tensor" or not declared.element or declared.shape is None:
        raise KernelError("the body does not run, and declares no type and shape of its output")
    return declared.element, tuple(size if isinstance(size, int) and size >= 0 else 0 for size in declared.shape)


_TEXT: Final = b""


def zeros(element: str, shape: tuple[int, ...]) -> Array:
    """A tensor of zeros; of empty texts for strings."""
    dtype = dtype_of(element)
    return np.full(shape, _TEXT, dtype) if dtype.hasobject else np.zeros(shape, dtype)


def shown(value: Value | None) -> str:
    """A value's type as messages show it."""
    return "absent" if value is None else type_text(type_of(value))
