"""A case made small: the fewest nodes and the smallest shapes at which the same happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import EncodeError
from sonnx.semantics.errors import InternalError, ModelError, Unsupported
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.model.type_protos import to_proto
from sonnx.semantics.model.values import Array, Value
from sonnx.semantics.runtimes.engines.own import MachineSession
from sonnx.semantics.runtimes.engines.protocol import Failure, Source, Values
from sonnx.semantics.runtimes.engines.sources import model_of
from sonnx.semantics.runtimes.engines.tapping import tapped

from .outcomes import Case
from .random_models import reads_of, tensor_proto

Same = Callable[[Case], bool]
"""A case still shows the finding."""
SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smallest case that was found. tried: how many were run."""

    case: Case
    nodes: int
    tried: int


def reduce(case: Case, same: Same, seconds: float = SECONDS) -> Reduced:
    """The case with nodes left out, inputs cut and attributes left out, as long as the same happens."""
    search = _Search(same, time.monotonic() + seconds)
    content = tapped(case.source) if not isinstance(case.source, bytes) else case.source
    small = replace(case, source=content)
    expanded = replace(case, source=tapped(content))
    if onnx.ModelProto.FromString(content).functions and search.same(expanded):
        small = expanded
    small = _fewer_nodes(small, search)
    for _ in range(3):
        before = small
        small = _smaller(small, search)
        small = _plainer(small, search)
        if small is before:
            break
    return Reduced(small, len(_proto(small).graph.node), search.tried)


class _Search:
    """Runs candidates until the time is over."""

    def __init__(self, same: Same, deadline: float) -> None:
        self._same, self.deadline, self.tried = same, deadline, 0

    def same(self, case: Case) -> bool:
        if time.monotonic() > self.deadline:
            return False
        self.tried += 1
        try:
            return self._same(case)
        except (InternalError, ModelError, Unsupported, ValueError, TypeError, KeyError):
            return False


def in_memory(source: Source) -> bytes:
    """The model with all its weights. Raises ModelError for one that cannot be held as one text."""
    if isinstance(source, bytes):
        return source
    try:
        return onnx.load(source).SerializeToString()
    except (EncodeError, ValueError, OSError) as error:
        raise ModelError(f"the model cannot be made small ({type(error).__name__}: {error})") from None


def _proto(case: Case) -> onnx.ModelProto:
    if not isinstance(case.source, bytes):
        raise TypeError("a case is reduced in memory")
    return onnx.ModelProto.FromString(case.source)


# ---- Nodes ------------------------------------------------------------------------------------


def _fewer_nodes(case: Case, search: _Search) -> Case:
    """Single nodes first, then nodes left out one after the other, larger parts before smaller ones."""
    proto = _proto(case)
    values = values_of(case)
    count = len(proto.graph.node)
    if values is None or count < 2:
        return case
    for position in range(count):
        candidate = kept(case, (position,), values)
        if candidate is not None and search.same(candidate):
            return candidate
    chosen = list(range(count))
    size = count // 2
    while size:
        start = 0
        while start < len(chosen):
            rest = chosen[:start] + chosen[start + size :]
            candidate = kept(case, tuple(rest), values) if rest else None
            if candidate is not None and search.same(candidate):
                chosen = rest
            else:
                start += size
        size //= 2
    return kept(case, tuple(chosen), values) or case


def nodes_of(case: Case) -> list[onnx.NodeProto]:
    """The nodes of the main graph."""
    return list(_proto(case).graph.node)


def values_of(case: Case) -> Values | None:
    """The machine's value for every tensor of the main graph; None where it is stuck."""
    values = MachineSession(model_of(case.source)).run_tapped(case.feeds)
    return None if isinstance(values, Failure) else {**values, **case.feeds}


def kept(case: Case, positions: tuple[int, ...], values: Values) -> Case | None:
    """The case with these nodes only: what the others gave is an input now. None where a value is not known."""
    proto = _proto(case)
    nodes = [proto.graph.node[position] for position in positions]
    stored = {it.name: it for it in proto.graph.initializer}
    made = {name for node in nodes for name in node.output}
    declared = {it.name: it for it in (*proto.graph.output, *proto.graph.input, *proto.graph.value_info)}
    read = list(dict.fromkeys(name for node in nodes for name in reads_of(node) if name))
    given = [name for name in read if name not in made and name not in stored]
    if any(name not in values for name in given):
        return None
    outputs = [name for node in nodes for name in node.output if name]
    inner = {name for node in nodes for name in reads_of(node)}
    sinks = [name for name in outputs if name not in inner] or outputs
    graph = onnx.GraphProto(name=proto.graph.name or "reduced", node=nodes)
    for name in given:
        to_proto(type_of(values[name]), graph.input.add(name=name).type)
    for name in sinks:
        if name in values:
            to_proto(type_of(values[name]), graph.output.add(name=name).type)
        else:
            graph.output.append(declared.get(name, onnx.ValueInfoProto(name=name)))
    graph.initializer.extend(stored[name] for name in read if name in stored)
    small = onnx.ModelProto(ir_version=proto.ir_version, opset_import=proto.opset_import, graph=graph)
    small.functions.extend(proto.functions)
    return replace(case, source=small.SerializeToString(), feeds={name: values[name] for name in given})


# ---- Shapes and values ------------------------------------------------------------------------


def _smaller(case: Case, search: _Search) -> Case:
    """Axes cut, alone or with all axes of the same size: to 1, by half, by one."""
    again = True
    while again:
        again = False
        for candidate in _cuts(case):
            if search.same(candidate):
                case, again = candidate, True
                break
    return case


def _cuts(case: Case) -> Iterator[Case]:
    values = _arrays(case)
    sizes = sorted({size for array in values.values() for size in array.shape if size > 1}, reverse=True)
    for size in sizes:
        for target in dict.fromkeys((1, size // 2, size - 1)):
            every = {name: [axis for axis, n in enumerate(a.shape) if n == size] for name, a in values.items()}
            yield _cut(case, values, every, target)
    for name, array in values.items():
        for axis, size in enumerate(array.shape):
            for target in dict.fromkeys((1, size // 2, size - 1)) if size > 1 else ():
                yield _cut(case, values, {name: [axis]}, target)


def _arrays(case: Case) -> dict[str, Array]:
    """The tensors that the case gives: inputs, and initializers."""
    from onnx import numpy_helper

    arrays: dict[str, Array] = {name: value for name, value in case.feeds.items() if isinstance(value, np.ndarray)}
    for stored in _proto(case).graph.initializer:
        if stored.data_type != onnx.TensorProto.STRING:
            arrays[stored.name] = numpy_helper.to_array(stored)
    return arrays


def _cut(case: Case, values: Mapping[str, Array], axes: Mapping[str, list[int]], target: int) -> Case:
    changed = {}
    for name, array in values.items():
        cut = array
        for axis in axes.get(name, ()):
            cut = cut[tuple(slice(0, target) if at == axis else slice(None) for at in range(cut.ndim))]
        if cut is not array:
            changed[name] = np.ascontiguousarray(cut).reshape(cut.shape)
    return _with(case, changed)


def _with(case: Case, changed: Mapping[str, Array]) -> Case:
    """The case with other tensors; outputs are declared without sizes, since these follow."""
    proto = _proto(case)
    feeds: dict[str, Value] = dict(case.feeds)
    for name, array in changed.items():
        if name in feeds:
            feeds[name] = array
    for info in proto.graph.input:
        if info.name in changed:
            info.type.Clear()
            to_proto(type_of(changed[info.name]), info.type)
    for at, stored in enumerate(proto.graph.initializer):
        if stored.name in changed:
            proto.graph.initializer[at].CopyFrom(tensor_proto(changed[stored.name], stored.name))
    for info in proto.graph.output:
        tensor = info.type.tensor_type
        if info.type.WhichOneof("value") == "tensor_type" and tensor.HasField("shape"):
            for dimension in tensor.shape.dim:
                dimension.Clear()
    return replace(case, source=proto.SerializeToString(), feeds=feeds)


def _plainer(case: Case, search: _Search) -> Case:
    """Attributes left out, and tensors made zero or one, where the same happens without them."""
    proto = _proto(case)
    for at, node in enumerate(proto.graph.node):
        for name in [it.name for it in node.attribute if not it.HasField("g")]:
            candidate = _proto(case)
            rest = [it for it in candidate.graph.node[at].attribute if it.name != name]
            del candidate.graph.node[at].attribute[:]
            candidate.graph.node[at].attribute.extend(rest)
            smaller = replace(case, source=candidate.SerializeToString())
            if search.same(smaller):
                case = smaller
    for name, array in _arrays(case).items():
        if array.dtype == object or array.dtype.kind in "iu" or not array.size:
            continue
        for number in (0, 1):
            simple = np.full(array.shape, number).astype(array.dtype)
            if simple.tobytes() == array.tobytes():
                break
            candidate_case = _with(case, {name: simple})
            if search.same(candidate_case):
                case = candidate_case
                break
    return case
