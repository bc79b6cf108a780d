"""The results of ONNX's own shape inference on a model: asked again, in a process of its own.

Several facts of part 1 are statements about that inference, so it has to be run. It gets the model with numbers for
names (tensors t7, nodes n12), without large constants, and without the nodes that the operator sets of the main graph
do not define or define differently; what is left out becomes a declaration.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

import onnx
from google.protobuf.message import DecodeError

from . import paths
from .attributes import FIELDS, LISTS, Kinds, kind, valued
from .facts import Facts
from .reader import Node
from .schema import is_guest, schema, schema_of
from .stored import BITS, Stored, needed, size
from .valuetypes import CODES, Type, completed, of_stored, read, told, write

IR_VERSION = 10
MOST = 4096
"""Constants with more elements go in as types."""
TIMEOUT, PER_NODE = 60.0, 60.0 / 200_000
"""Seconds: for any model, and, where that is more, for each node."""
MEMORY, MEMORY_PER_BYTE = 1 << 30, 24
MADE_UP = re.compile(r"unk__\d+")
WITHIN = "within the function that defines the operator: "
_PLACE = re.compile(r"\(op_type:[^(),]*, node name: n(\d+)\): ?")
_INNER = re.compile(r"\(op_type:[^(),]*\): ")
_WRAPPED = re.compile(r"Integer overflow in (?:Add|Sub|Mul) during data propagation")
_NOISE = re.compile(r"\[(?:Shape|Type)InferenceError\] ?|Inference error\(s\): ?|\(op_type:[^(),]*\): ?")


@dataclass(frozen=True, slots=True)
class Claims:
    """types: of tensors, as inferred. errors: node (None: no place) and message. left_out: nodes that inference did not
    see. failed: there is no answer.
    """

    types: Mapping[int, Type] = field(default_factory=dict)
    errors: tuple[tuple[int | None, str], ...] = ()
    left_out: frozenset[int] = frozenset()
    failed: bool = False


def infer(f: Facts) -> Claims:
    """The results of inference, strict and with data propagation; asked again with the declarations that say more."""
    deadline = time.monotonic() + max(TIMEOUT, PER_NODE * len(f.reading.nodes))
    claims = _ask(f, {}, deadline)
    hints = {} if claims.failed else dict(_hints(f, claims))
    if not hints:
        return claims
    again = _ask(f, hints, deadline)
    return claims if again.failed else again


def declared(f: Facts, t: int) -> Type | None:
    """The type that the model declares for a tensor."""
    stated = f.reading.tensors[t].declared
    return None if stated is None else read(stated)


def _hints(f: Facts, claims: Claims) -> Iterator[tuple[int, Type]]:
    useful = {t for node in f.reading.nodes for t in node.inputs}
    useful.update(t for graph in f.reading.graphs[1:] for t in graph.outputs)
    for t in range(len(f.reading.tensors)):
        own = declared(f, t) if t in useful else None
        if own is not None and own.kind != "unset":
            claim = claims.types.get(t)
            merged = completed(claim, own)
            if claim is None or told(merged) > told(claim):
                yield t, merged


def _ask(f: Facts, hints: Mapping[int, Type], deadline: float) -> Claims:
    try:
        builder = _Builder(f, hints)
        request = builder.model().SerializeToString()
    except Exception:  # protobuf raises several types, for numbers out of range and messages above 2 GiB
        return Claims(failed=True)
    limit = MEMORY + MEMORY_PER_BYTE * len(request)
    command = [sys.executable, "-P", "-m", f"{__package__}.inference_worker"]
    try:
        left = max(deadline - time.monotonic(), 0)
        done = subprocess.run(command, input=b"%d\n" % limit + request, capture_output=True, timeout=left, check=False)
    except (subprocess.TimeoutExpired, OSError):
        return Claims(failed=True)
    if done.returncode:
        return Claims(failed=True)
    try:
        head, _, rest = done.stdout.partition(b"\n")
        text, proto = rest[: int(head)].decode(errors="replace"), onnx.ModelProto.FromString(rest[int(head) :])
    except (ValueError, DecodeError):
        return Claims(failed=True)
    types: dict[int, Type] = {}
    _collect(proto.graph, types)
    for t, tensor in f.initializers():
        types.setdefault(t, of_stored(tensor))
    return Claims(types, tuple(dict.fromkeys(located(text))) if text else (), frozenset(builder.left_out))


def _collect(graph: onnx.GraphProto, types: dict[int, Type]) -> None:
    for entry in (*graph.input, *graph.output, *graph.value_info):
        if entry.HasField("type") and entry.name.startswith("t"):
            types[int(entry.name[1:])] = _bare(read(entry.type))
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _collect(body, types)


def _bare(type_: Type) -> Type:
    """The type without the names of dimensions that inference made up."""
    if type_.shape is not None:
        sizes = (None if isinstance(it, str) and MADE_UP.fullmatch(it) else it for it in type_.shape)
        return replace(type_, shape=tuple(sizes))
    return replace(type_, inner=_bare(type_.inner)) if type_.inner is not None else type_


def located(text: str) -> Iterator[tuple[int | None, str]]:
    """The node and the message of each error in the text of strict inference; a text without any place has no node.

    That integers wrap around, where data propagation does not follow, is none.
    """
    pieces = _PLACE.split(text)
    said = False
    for node, message in zip(pieces[1::2], pieces[2::2], strict=True):
        cleaned = _cleaned(message)
        if cleaned:
            said = True
            if not _WRAPPED.fullmatch(cleaned):
                yield int(node), WITHIN + cleaned if _INNER.search(message) else cleaned
    if not said and len(pieces) > 1:
        yield int(pieces[-2]), "no message"
    elif not said and _cleaned(text):
        yield None, _cleaned(text)


def _cleaned(message: str) -> str:
    return " ".join(_NOISE.sub("", message).split())


# ---- The model that inference gets --------------------------------------------------------------


def readable(tensor: Stored) -> bool:
    """The elements are read, few, and as many as the dimensions say."""
    count = size(tensor.dims)
    if tensor.data is None or count > MOST or min(tensor.dims, default=0) < 0:
        return False
    if isinstance(tensor.data, tuple):
        return tensor.element == "string" and len(tensor.data) == count
    return tensor.element in BITS and len(tensor.data) == needed(tensor.element, "raw_data", count)


class _Builder:
    """The model in numbers. left_out: the nodes that it does not have."""

    def __init__(self, f: Facts, hints: Mapping[int, Type]) -> None:
        self._f, self._hints = f, hints
        self.left_out: set[int] = set()
        self._given: set[int] = set()
        self._copies = 0
        self._handed_on = {t for graph in f.reading.graphs for t in graph.outputs}
        versions = dict(reversed(f.reading.opsets))
        for node in f.reading.nodes:
            if node.opset is not None:
                versions.setdefault(node.domain, node.opset)
        self._imports = {domain: version for domain, version in versions.items() if 0 < version < 2**31}
        first = len(f.reading.graphs)
        self._stored: list[list[tuple[int, Stored]]] = [[] for _ in range(first)]
        for g, graph in enumerate(f.reading.graphs):
            dense = len(graph.proto.initializer)
            pairs = zip(graph.initializers, graph.proto.initializer, strict=False)
            self._stored[g] = [(t, f.dense(proto)) for t, proto in pairs]
            rest = zip(graph.initializers[dense:], graph.proto.sparse_initializer, strict=True)
            self._stored[g] += [(t, f.sparse(proto)) for t, proto in rest]

    def model(self) -> onnx.ModelProto:
        """The whole."""
        proto = onnx.ModelProto(ir_version=IR_VERSION)
        for domain, version in self._imports.items():
            proto.opset_import.add(domain=domain, version=version)
        self._graph(0, proto.graph)
        return proto

    def _graph(self, g: int, into: onnx.GraphProto) -> None:
        graph = self._f.reading.graphs[g]
        into.name = "g"
        stated = [read(value.type) if value.HasField("type") else None for value in graph.proto.input]
        inputs = dict(zip(graph.inputs, stated, strict=True))
        for t, type_ in inputs.items():
            _declare(into.input.add(), t, type_)
        assumed: dict[int, Type | None] = {}
        for t, tensor in self._stored[g]:
            self._initializer(into, t, tensor, inputs, assumed)
        written: set[int | None] = set()
        for n in self._order(graph.nodes):
            self._node(into, n, assumed)
            written.update(self._f.reading.nodes[n].outputs)
        outputs = set(graph.outputs)
        for t, type_ in assumed.items():
            if t not in outputs:
                _declare(into.value_info.add(), t, type_)
        for position, t in enumerate(graph.outputs):
            handed_on = None if t in written else inputs.get(t) or declared(self._f, t)
            entry = into.output.add()
            _declare(entry, t, assumed.get(t) or handed_on)
            if g and t in graph.outputs[:position]:  # inference gives a type to the first entry alone
                self._copies += 1
                entry.name = f"c{self._copies}"
                into.node.add(op_type="Identity", input=[f"t{t}"], output=[entry.name])

    def _initializer(
        self,
        into: onnx.GraphProto,
        t: int,
        tensor: Stored,
        inputs: Mapping[int, Type | None],
        assumed: dict[int, Type | None],
    ) -> None:
        own, stated = of_stored(tensor), inputs.get(t)
        if stated is not None and stated.kind != "unset" and not _fits(own, stated):
            return
        if tensor.parts is not None or not readable(tensor) or t in self._given:
            if t not in inputs:
                assumed[t] = own
            return
        self._given.add(t)
        _tensor(tensor, into.initializer.add(name=f"t{t}"))
        if t in self._handed_on:
            assumed[t] = own

    def _node(self, into: onnx.GraphProto, n: int, assumed: dict[int, Type | None]) -> None:
        node = self._f.reading.nodes[n]
        if self._unseen(node):
            self.left_out.add(n)
            constant = self._constant(node) if node.op_type == "Constant" else None
            for t in node.outputs:
                if t is not None:
                    assumed[t] = constant or declared(self._f, t)
            return
        names = [["" if t is None else f"t{t}" for t in row] for row in (node.inputs, node.outputs)]
        proto = into.node.add(name=f"n{n}", op_type=node.op_type, domain=node.domain, input=names[0], output=names[1])
        for name, attribute in node.attributes.items():
            self._attribute(proto, node, name, attribute)
        assumed.update((t, self._hints[t]) for t in node.outputs if t is not None and t in self._hints)

    def _unseen(self, node: Node) -> bool:
        """Inference cannot judge the node: no schema, another one in the main graph, or a value that is not read."""
        own = schema_of(node)
        if own is None or is_guest(node.domain, node.op_type):
            return True
        main = schema(node.domain, node.op_type, self._imports.get(node.domain, 0))
        if main is None or main.since_version != own.since_version:
            return True
        return node.op_type == "Constant" and any(unread(self._f, it) for it in node.attributes.values())

    def _constant(self, node: Node) -> Type | None:
        """The type of a Constant whose value is not read."""
        for attribute in node.attributes.values():
            stored = list(_tensors(self._f, attribute)) if kind(self._f, attribute) in _SINGLE else []
            if stored:
                return of_stored(stored[0])
        return None

    def _attribute(self, into: onnx.NodeProto, node: Node, name: str, attribute: onnx.AttributeProto) -> None:
        f, kind_ = self._f, kind(self._f, attribute)
        if not kind_:
            into.attribute.add(name=name, type=0)
            return
        proto = into.attribute.add(name=name, type=kind_)
        if not valued(f, attribute):
            return
        match kind_:
            case Kinds.GRAPH:
                self._body(node, paths.body(node.path, name), proto.g)
            case Kinds.GRAPHS:
                for i in range(len(attribute.graphs)):
                    self._body(node, paths.body(node.path, name, i), proto.graphs.add())
            case Kinds.TENSOR:
                _tensor(f.dense(attribute.t), proto.t)
            case Kinds.TENSORS:
                for it in attribute.tensors:
                    _tensor(f.dense(it), proto.tensors.add())
            case Kinds.SPARSE_TENSOR:
                _sparse(f.sparse(attribute.sparse_tensor), proto.sparse_tensor)
            case Kinds.SPARSE_TENSORS:
                for sparse in attribute.sparse_tensors:
                    _sparse(f.sparse(sparse), proto.sparse_tensors.add())
            case Kinds.TYPE_PROTO:
                write(read(attribute.tp), proto.tp)
            case Kinds.TYPE_PROTOS:
                for type_ in attribute.type_protos:
                    write(read(type_), proto.type_protos.add())
            case _ if kind_ in LISTS:
                getattr(proto, FIELDS[kind_]).extend(getattr(attribute, FIELDS[kind_]))
            case _:
                setattr(proto, FIELDS[kind_], getattr(attribute, FIELDS[kind_]))

    def _body(self, node: Node, path: str, into: onnx.GraphProto) -> None:
        for b in node.bodies:
            if self._f.reading.graphs[b].path == path:
                self._graph(b, into)

    def _order(self, nodes: list[int]) -> Iterable[int]:
        """The nodes, each behind those that write what it reads, otherwise as in the file; cycles come last."""
        f = self._f
        writer = {t: n for n in nodes for t in f.reading.nodes[n].outputs if t is not None}
        before = {n: {writer[t] for t in f.reads[n] if t in writer} for n in nodes}
        done: set[int] = set()
        ordered = True
        for n in nodes:
            ordered = ordered and before[n] <= done
            done.add(n)
        if ordered:
            return nodes
        place = {n: i for i, n in enumerate(nodes)}
        after: dict[int, list[int]] = {}
        for n, row in before.items():
            for m in row:
                after.setdefault(m, []).append(n)
        left = {n: len(row) for n, row in before.items()}
        ready = [place[n] for n in nodes if not left[n]]
        heapify(ready)
        sorted_nodes: list[int] = []
        while ready:
            n = nodes[heappop(ready)]
            sorted_nodes.append(n)
            for m in after.get(n, ()):
                left[m] -= 1
                if not left[m]:
                    heappush(ready, place[m])
        reached = set(sorted_nodes)
        return [*sorted_nodes, *(n for n in nodes if n not in reached)]


_SINGLE = (Kinds.TENSOR, Kinds.SPARSE_TENSOR)


def _tensors(f: Facts, attribute: onnx.AttributeProto) -> Iterator[Stored]:
    """The tensors in an attribute."""
    if valued(f, attribute):
        match kind(f, attribute):
            case Kinds.TENSOR:
                yield f.dense(attribute.t)
            case Kinds.TENSORS:
                yield from (f.dense(it) for it in attribute.tensors)
            case Kinds.SPARSE_TENSOR:
                yield f.sparse(attribute.sparse_tensor)
            case Kinds.SPARSE_TENSORS:
                yield from (f.sparse(it) for it in attribute.sparse_tensors)


def unread(f: Facts, attribute: onnx.AttributeProto) -> bool:
    """The attribute holds a stored tensor whose elements are not read, or nothing at all."""
    return not valued(f, attribute) or not all(readable(it) for it in _tensors(f, attribute))


def _fits(own: Type, stated: Type) -> bool:
    """The type that is stated for an input leaves room for its stored value."""
    if (own.kind, own.element) != (stated.kind, stated.element):
        return False
    if own.shape is None or stated.shape is None:
        return True
    pairs = zip(stated.shape, own.shape, strict=False)
    return len(own.shape) == len(stated.shape) and all(not isinstance(s, int) or s == o for s, o in pairs)


def _declare(entry: onnx.ValueInfoProto, t: int, type_: Type | None) -> None:
    entry.name = f"t{t}"
    if type_ is not None and type_.kind != "unset":
        write(type_, entry.type)


def _tensor(tensor: Stored, into: onnx.TensorProto) -> None:
    into.data_type = CODES.get(tensor.element, 0)
    into.dims.extend(tensor.dims)
    if isinstance(tensor.data, tuple):
        into.string_data.extend(tensor.data)
    elif tensor.data is not None:
        into.raw_data = tensor.data


def _sparse(tensor: Stored, into: onnx.SparseTensorProto) -> None:
    into.values.data_type = CODES.get(tensor.element, 0)
    into.values.dims.append(0)
    into.dims.extend(tensor.dims)
