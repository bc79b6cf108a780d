"""G as the model that ONNX shape inference gets: numbers instead of names, types instead of weights.

Tensors are called `t7`, nodes `n12`: no name of the file reaches the C++ code, and its messages name places exactly.
What inference must not see becomes a declaration without a producer: large and unread constants, and nodes that the
main graph's operator sets do not define or define differently (functions may import other versions)."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from ...model import schemas
from ...model.elements import elements, required
from ...model.graph import Attribute, Constant, GraphId, Model, Node, NodeId, TensorId, ValueType
from ...model.type_protos import ELEMENT_CODES, from_proto, put_attribute, to_proto

# The error text of onnx's strict shape inference, taken apart.
# Nodes bear names of our own in the models that inference gets (`n12`), so a place in the text is exact: `(op_type:Add,
# node name: n5): [ShapeInferenceError] Incompatible dimensions`.


PLACE = re.compile(r"\(op_type:[^(),]*, node name: n(\d+)\): ?")
NOISE = re.compile(r"\[(?:Shape|Type)InferenceError\] ?|Inference error\(s\): ?|\(op_type:[^(),]*\): ?")
INNER = re.compile(r"\(op_type:[^(),]*\): ")
WRAPPED = re.compile(r"Integer overflow in (?:Add|Sub|Mul) during data propagation")
"""The words of data propagation on integers that wrap around, as the operators define them: it cannot follow, and
rejects nothing. onnx.checker, which does not propagate data, takes such a node."""
WITHIN = "within the function that defines the operator: "
"""Begins the message when inference failed in a node that the model does not have: one of the operator's own body."""


def located(text: str) -> Iterator[tuple[int | None, str]]:
    """The number of the node and the message of each error, in order. Of nested places the innermost has the message.

    A text without any place gives one error whose node is None. That integers wrap around is no error.
    """
    pieces = PLACE.split(text)
    told = False
    for node, message in zip(pieces[1::2], pieces[2::2], strict=True):
        if cleaned := _clean(message):
            told = True
            if not WRAPPED.fullmatch(cleaned):
                yield int(node), WITHIN + cleaned if INNER.search(message) else cleaned
    if not told and len(pieces) > 1:
        yield int(pieces[-2]), "no message"
    elif not told and (rest := _clean(text)):
        yield None, rest


def _clean(message: str) -> str:
    return " ".join(NOISE.sub("", message).split())


# Claims: what ONNX's own shape inference says about a model, obtained in a separate process.
# A claim is no fact. The rules compare it with what the model declares, and what inference leaves open stays unknown.


MEMORY = 1 << 30
MEMORY_PER_BYTE = 24
"""The address space that inference gets: a floor, and so many bytes for each byte of the model without its weights."""
NODES = 200_000
"""The number of nodes that one timeout is for. Inference takes its time for each: being large is not hostile."""
PLACEHOLDER = re.compile(r"unk__\d+")
"""A dimension name that inference makes up."""


@dataclass(frozen=True, slots=True)
class Claims:
    """types: the type inferred or, where inference leaves it open, declared. errors: node (None: no place) and
    message, in which `t7` and `n12` stand for tensors and nodes. left_out: nodes that inference did not see, with the
    reason. failure: why there are no claims at all.
    """

    types: Mapping[TensorId, ValueType] = field(default_factory=dict)
    errors: tuple[tuple[NodeId | None, str], ...] = ()
    failure: str | None = None
    left_out: Mapping[NodeId, str] = field(default_factory=dict)


def infer(model: Model, timeout: float) -> Claims:
    """The claims of ONNX shape inference, strict and with data propagation, about all tensors of all graphs.

    Where the result leaves a type open that the model declares, inference runs again with these declarations.
    A crash, the end of the timeout (seconds; for a larger model than `NODES`, that many times as large) or a lack of
    memory is a failure, never an exception.
    """
    timeout *= max(1, len(model.nodes) / NODES)
    deadline = time.monotonic() + timeout
    claims = _run(model, {}, timeout, deadline)
    hints = _hints(model, claims) if claims.failure is None else {}
    if not hints:
        return claims
    again = _run(model, hints, timeout, deadline)
    return again if again.failure is None else claims


def _run(model: Model, hints: Mapping[TensorId, ValueType], timeout: float, deadline: float) -> Claims:
    try:
        proto, left_out = build(model, hints)
        request = proto.SerializeToString()
    except Exception as error:  # protobuf raises several types, for numbers out of range and messages above 2 GiB
        return Claims(failure=f"shape inference cannot be asked: {_line(str(error))}")
    del proto  # in memory it is ten times as large as the request
    limit = MEMORY + MEMORY_PER_BYTE * len(request)
    command = [sys.executable, "-P", "-m", f"{__package__}.worker"]
    try:
        left = max(deadline - time.monotonic(), 0)
        done = subprocess.run(command, input=b"%d\n" % limit + request, capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return Claims(failure=f"shape inference took more than {timeout:g} s")
    except OSError as error:
        return Claims(failure=f"shape inference cannot be started: {_line(str(error))}")
    if done.returncode:
        return Claims(failure=_death(done.returncode, done.stderr))
    return _read(done.stdout, model, left_out)


def _death(code: int, stderr: bytes) -> str:
    if code < 0:
        return f"shape inference crashed (signal {-code})"
    last = stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
    if "MemoryError" in last[0] or "bad_alloc" in last[0]:
        return "shape inference ran out of memory"
    return f"shape inference failed: {_line(last[0])}"


def _line(text: str) -> str:
    """One printable line of moderate length."""
    line = "".join(c if c.isprintable() else " " for c in text.splitlines()[0] if text) if text else "no message"
    return line if len(line) <= 200 else line[:197] + "..."


def _read(answer: bytes, model: Model, left_out: Mapping[NodeId, str]) -> Claims:
    try:
        head, _, rest = answer.partition(b"\n")
        size = int(head)
        proto = ModelProto.FromString(rest[size:])
    except (ValueError, DecodeError):
        return Claims(failure="shape inference gave no readable answer")
    text = rest[:size].decode(errors="replace")
    types: dict[TensorId, ValueType] = {}
    _collect(proto.graph, types, {})
    for graph in model.graphs:
        for tensor, constant in (*graph.initializers, *graph.sparse_initializers):
            types.setdefault(tensor, stored_type(constant))
    return Claims(types, tuple(dict.fromkeys(located(text))) if text else (), None, left_out)


def _collect(graph: GraphProto, types: dict[TensorId, ValueType], known: dict[bytes, ValueType]) -> None:
    """The types of a graph; equal ones, of which a model has many, are one object."""
    for entries in (graph.input, graph.output, graph.value_info):
        for entry in entries:
            if entry.HasField("type") and not entry.name.startswith(COPY):
                text = entry.type.SerializeToString()
                if text not in known:
                    known[text] = _open(from_proto(entry.type))
                types[int(entry.name[1:])] = known[text]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _collect(attribute.g, types, known)
            for body in attribute.graphs:
                _collect(body, types, known)


def _open(type_: ValueType) -> ValueType:
    """The type without the dimension names that inference made up."""
    shape = type_.shape
    if shape is not None and any(isinstance(size, str) and PLACEHOLDER.fullmatch(size) for size in shape):
        shape = tuple(None if isinstance(size, str) and PLACEHOLDER.fullmatch(size) else size for size in shape)
        return replace(type_, shape=shape)
    return replace(type_, inner=_open(type_.inner)) if type_.inner is not None else type_


# ---- Declarations that complete what inference leaves open ------------------------------------


def _hints(model: Model, claims: Claims) -> Mapping[TensorId, ValueType]:
    """Declarations that say more than the claims about tensors that a node reads or a body gives out."""
    useful = {tensor for node in model.nodes for tensor in node.inputs}
    useful.update(tensor for graph in model.graphs[1:] for tensor in graph.outputs)
    hints = {}
    for tensor, value in enumerate(model.tensors):
        if tensor not in useful or value.declared is None or value.declared.kind == "unset":
            continue
        claim = claims.types.get(tensor)
        merged = completed(claim, value.declared)
        if claim is None or _known(merged) > _known(claim):
            hints[tensor] = merged
    return hints


def completed(claim: ValueType | None, declared: ValueType) -> ValueType:
    """The claim, its open parts filled from a declaration that does not contradict it."""
    if claim is None:
        return declared
    if (claim.kind, claim.element) != (declared.kind, declared.element):
        return claim
    inner = claim.inner
    if inner is not None and declared.inner is not None:
        inner = completed(inner, declared.inner)
    shape = claim.shape
    if shape is None:
        shape = declared.shape
    elif declared.shape is not None and len(shape) == len(declared.shape):
        shape = tuple(
            theirs if isinstance(theirs, int) and not isinstance(mine, int) else mine
            for mine, theirs in zip(shape, declared.shape, strict=True)
        )
    return replace(claim, shape=shape, inner=inner)


def _known(type_: ValueType) -> int:
    """A measure of how much the type says: the rank and every dimension with a number count."""
    own = 0 if type_.shape is None else 1 + sum(isinstance(size, int) for size in type_.shape)
    return own + (_known(type_.inner) if type_.inner is not None else 0)


# G as the model that ONNX shape inference gets: numbers instead of names, types instead of weights.
# Tensors are called `t7`, nodes `n12`: no name of the file reaches the C++ code, and its messages name places exactly.
# What inference must not see becomes a declaration without a producer: large and unread constants, and nodes that the
# main graph's operator sets do not define or define differently (functions may import other versions).


IR_VERSION = 10
ONNX_DOMAINS = frozenset({"", "ai.onnx"})
COPY = "c"
"""Begins the names of tensors that the model does not have."""
MOST_ELEMENTS = 4096
"""Constants with more elements go in as types: no shape depends on so many values."""


class InferenceModel(NamedTuple):
    """The model, and the nodes that were left out with the reason."""

    proto: ModelProto
    left_out: Mapping[NodeId, str]


def build(model: Model, hints: Mapping[TensorId, ValueType]) -> InferenceModel:
    """The inference model of `model`. `hints` are types to assume for tensors that inference leaves open."""
    builder = _Builder(model, hints)
    proto = ModelProto(ir_version=IR_VERSION)
    for domain, version in builder.imports.items():
        proto.opset_import.add(domain=domain, version=version)
    proto.graph.name = "g"
    builder.graph(0, proto.graph)
    return InferenceModel(proto, builder.left_out)


def imports(model: Model) -> Mapping[str, int]:
    """The operator set version for each domain: the model's, else the first that a function imports; positive ones."""
    versions = {_domain(domain): version for domain, version in reversed(model.opsets)}
    for node in model.nodes:
        if node.opset is not None:
            versions.setdefault(_domain(node.domain), node.opset)
    return {domain: version for domain, version in versions.items() if 0 < version < 2**31}


def _domain(domain: str) -> str:
    return "" if domain in ONNX_DOMAINS else domain


class _Builder:
    """One pass over G."""

    def __init__(self, model: Model, hints: Mapping[TensorId, ValueType]) -> None:
        self._model = model
        self._hints = hints
        self.imports = imports(model)
        self.left_out: dict[NodeId, str] = {}
        self._versions: dict[tuple[str, str], int | None] = {}
        self._stored: set[TensorId] = set()
        self._copies = 0
        self._passed_on = {tensor for graph in model.graphs for tensor in graph.outputs}

    def graph(self, number: GraphId, into: GraphProto) -> None:
        graph = self._model.graphs[number]
        into.name = "g"
        inputs = dict(zip(graph.inputs, graph.input_types, strict=False))
        for tensor, type_ in inputs.items():
            _declare(into, "input", f"t{tensor}", type_)
        assumed: dict[TensorId, ValueType | None] = {}
        for tensor, constant in (*graph.initializers, *graph.sparse_initializers):
            self._initializer(into, tensor, constant, inputs, assumed)
        written: set[TensorId | None] = set()
        for node in self._order(graph.nodes):
            self._node(into, self._model.nodes[node], node, assumed)
            written.update(self._model.nodes[node].outputs)
        outputs = dict.fromkeys(graph.outputs)
        for tensor, type_ in assumed.items():
            if tensor not in outputs:
                _declare(into, "value_info", f"t{tensor}", type_)
        listed: set[TensorId] = set()
        for tensor in graph.outputs:
            handed_on = None if tensor in written else inputs.get(tensor) or self._model.tensors[tensor].declared
            name = self._copy(into, tensor) if number and tensor in listed else f"t{tensor}"
            _declare(into, "output", name, assumed.get(tensor) or handed_on)
            listed.add(tensor)

    def _copy(self, into: GraphProto, tensor: TensorId) -> str:
        """The name of a copy of a tensor, for a body that gives it out twice: inference types the first entry alone."""
        self._copies += 1
        name = f"{COPY}{self._copies}"
        into.node.add(op_type="Identity", input=[f"t{tensor}"], output=[name])
        return name

    def _initializer(
        self,
        into: GraphProto,
        tensor: TensorId,
        constant: Constant,
        inputs: Mapping[TensorId, ValueType | None],
        assumed: dict[TensorId, ValueType | None],
    ) -> None:
        own = stored_type(constant)
        declared = inputs.get(tensor)
        if declared is not None and declared.kind != "unset" and not _fits(own, declared):
            return
        if constant.sparse or not readable(constant) or tensor in self._stored:
            if tensor not in inputs:
                assumed[tensor] = own
        else:
            self._stored.add(tensor)
            _tensor(constant, into.initializer.add(name=f"t{tensor}"))
            if tensor in self._passed_on:
                assumed[tensor] = own

    def _node(self, into: GraphProto, node: Node, number: NodeId, assumed: dict[TensorId, ValueType | None]) -> None:
        reason = self._obstacle(node)
        if reason is not None:
            self.left_out[number] = reason
            known = _value_type(node) if node.op_type == "Constant" else None
            for tensor in node.outputs:
                if tensor is not None:
                    assumed[tensor] = known or self._model.tensors[tensor].declared
            return
        proto = into.node.add()
        proto.name = f"n{number}"
        proto.op_type = node.op_type
        proto.domain = node.domain
        proto.input.extend(["" if tensor is None else f"t{tensor}" for tensor in node.inputs])
        proto.output.extend(["" if tensor is None else f"t{tensor}" for tensor in node.outputs])
        for name, attribute in node.attributes.items():
            self._attribute(proto, name, attribute)
        for tensor in node.outputs if self._hints else ():
            if tensor is not None and tensor in self._hints:
                assumed[tensor] = self._hints[tensor]

    def _obstacle(self, node: Node) -> str | None:
        """Why inference cannot judge the node; None when it can."""
        if node.version is None or schemas.is_guest(node.domain, node.op_type):
            return f"ONNX has no schema for {node.op_type}"
        domain = _domain(node.domain)
        key = (domain, node.op_type)
        if key not in self._versions:
            schema = schemas.schema(domain, node.op_type, self.imports.get(domain, 0))
            self._versions[key] = None if schema is None else schema.since_version
        if self._versions[key] != node.version:
            return f"a function imports another operator set version for {node.op_type} than the model"
        if node.op_type == "Constant" and any(unread(attribute) for attribute in node.attributes.values()):
            return "the stored value is not read"
        return None

    def _attribute(self, into: NodeProto, name: str, attribute: Attribute) -> None:
        kind = getattr(AttributeProto, attribute.kind, None)
        if kind is None:
            return
        proto = into.attribute.add(name=name, type=kind)
        if attribute.kind not in ("GRAPH", "GRAPHS"):
            put_attribute(proto, attribute, _tensor, _sparse)
            return
        for body in attribute.value if isinstance(attribute.value, tuple) else (attribute.value,):
            if isinstance(body, int):
                self.graph(body, proto.g if attribute.kind == "GRAPH" else proto.graphs.add())

    def _order(self, nodes: tuple[NodeId, ...]) -> Iterable[NodeId]:
        """The nodes, each behind the producers of what it reads, otherwise as in the file; cycles come last."""
        listed = self._model.nodes
        produced = {tensor: n for n in nodes for tensor in listed[n].outputs if tensor is not None}

        def producers(number: NodeId) -> set[NodeId]:
            node = listed[number]
            return {produced[t] for t in (*node.inputs, *node.captures) if t in produced}

        done: set[NodeId] = set()
        for number in nodes:
            if not producers(number) <= done:
                return _sorted(nodes, {number: producers(number) for number in nodes})
            done.add(number)
        return nodes


def _sorted(nodes: tuple[NodeId, ...], before: Mapping[NodeId, set[NodeId]]) -> Iterable[NodeId]:
    position = {number: place for place, number in enumerate(nodes)}
    after: dict[NodeId, list[NodeId]] = {}
    for number, producers in before.items():
        for producer in producers:
            after.setdefault(producer, []).append(number)
    missing = {number: len(producers) for number, producers in before.items()}
    ready = [position[number] for number in nodes if not missing[number]]
    heapify(ready)
    out: list[NodeId] = []
    while ready:
        number = nodes[heappop(ready)]
        out.append(number)
        for later in after.get(number, ()):
            missing[later] -= 1
            if not missing[later]:
                heappush(ready, position[later])
    reached = set(out)
    return [*out, *(number for number in nodes if number not in reached)]


# ---- Constants --------------------------------------------------------------------------------


def readable(constant: Constant) -> bool:
    """The elements are in memory, few, and as many as the dimensions say."""
    if constant.data is None or constant.element not in ELEMENT_CODES:
        return False
    count = elements(constant.dims)
    if count > MOST_ELEMENTS or min(constant.dims, default=0) < 0:
        return False
    if isinstance(constant.data, tuple):
        return constant.element == "string" and len(constant.data) == count
    return constant.element != "string" and len(constant.data) == required(constant.element, "raw_data", count)


def unread(attribute: Attribute) -> bool:
    """The attribute holds a stored tensor whose elements are not readable, or nothing at all."""
    values = attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)
    return any(value is None or (isinstance(value, Constant) and not readable(value)) for value in values)


def stored_type(constant: Constant) -> ValueType:
    """The type of a stored tensor."""
    return ValueType("sparse_tensor" if constant.sparse else "tensor", constant.element, constant.dims)


def _value_type(node: Node) -> ValueType | None:
    """The type of the output of a Constant whose value is not read."""
    for attribute in node.attributes.values():
        if isinstance(attribute.value, Constant):
            return stored_type(attribute.value)
    return None


def _fits(own: ValueType, declared: ValueType) -> bool:
    """The declared type of an input leaves room for its stored value."""
    if (own.kind, own.element) != (declared.kind, declared.element):
        return False
    if declared.shape is None or own.shape is None:
        return True
    return len(own.shape) == len(declared.shape) and all(
        not isinstance(size, int) or size == actual for size, actual in zip(declared.shape, own.shape, strict=True)
    )


def _declare(into: GraphProto, field: str, name: str, type_: ValueType | None) -> None:
    entry = getattr(into, field).add(name=name)
    if type_ is not None and type_.kind != "unset":
        to_proto(type_, entry.type)


def _tensor(constant: Constant, into: TensorProto) -> None:
    into.data_type = ELEMENT_CODES.get(constant.element, 0)
    into.dims.extend(constant.dims)
    if isinstance(constant.data, tuple):
        into.string_data.extend(constant.data)
    elif constant.data is not None:
        into.raw_data = constant.data


def _sparse(constant: Constant, into: SparseTensorProto) -> None:
    """Type and dimensions only: inference reads no elements of sparse tensors."""
    into.values.data_type = ELEMENT_CODES.get(constant.element, 0)
    into.values.dims.append(0)
    into.dims.extend(constant.dims)
