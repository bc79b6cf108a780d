"""The rechecker's own reading of a model: functions expanded, names resolved, nodes and tensors numbered.

Nothing here comes from the certifier or its loader. Numbers are those of a certificate (`CERTIFICATE.md`, Numbering):
nodes and tensors in document order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import onnx
from sonnx.semantics.errors import ModelError

from . import recheck_paths as paths

NESTING = 100
"""How deep bodies and calls may lie in each other."""

Opsets = Mapping[str, int]
FunctionKey = tuple[str, str, str]


@dataclass(slots=True)
class Graph:
    """A graph: lists of tensor numbers as written; `types` are the element types of its outputs as declared."""

    path: str
    holder: int | None
    nodes: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    initializers: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    mentions: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    parent: int | None = None


@dataclass(slots=True)
class Node:
    """One application of an operator. No name: None at that position. opset: None when not imported."""

    path: str
    graph: int
    domain: str
    op_type: str
    overload: str
    opset: int | None
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    attributes: Mapping[str, onnx.AttributeProto]
    bodies: tuple[tuple[str, int], ...] = ()


@dataclass(slots=True)
class Tensor:
    """A named value: its path, its graph, what declares its type, and its stored value."""

    name: str
    path: str
    graph: int
    declared: list[onnx.TypeProto] = field(default_factory=list)
    stored: onnx.TensorProto | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A model as read. graphs[0] is the main graph; nodes, tensors: in document order."""

    graphs: Sequence[Graph]
    nodes: Sequence[Node]
    tensors: Sequence[Tensor]
    ir_version: int
    opsets: tuple[tuple[str, int], ...]
    functions: tuple[FunctionKey, ...]


def read(proto: onnx.ModelProto) -> Reading:
    """The reading of a model. Raises ModelError for what cannot be expanded: recursion, nesting without end."""
    return _Reader(proto).reading()


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where names are looked up: the innermost table first. `graph` gets what has no definition."""

    tables: tuple[dict[str, int | None], ...]
    owners: tuple[int, ...]
    prefix: str
    opsets: Opsets
    calls: tuple[FunctionKey, ...]
    given: Mapping[str, _Given] | None


class _Given(NamedTuple):
    """An attribute of a node, and the scope in which its graphs look up names: the caller's for one of a call."""

    attribute: onnx.AttributeProto
    scope: _Scope


class _Reader:
    """Builds the lists; each graph is read in two passes, names first."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._proto = proto
        self._graphs: list[Graph] = []
        self._nodes: list[Node] = []
        self._tensors: list[Tensor] = []
        self._functions: dict[FunctionKey, onnx.FunctionProto] = {}
        for function in proto.functions:
            self._functions.setdefault(_key(function), function)

    def reading(self) -> Reading:
        """Reads everything."""
        opsets = tuple((_domain(entry.domain), entry.version) for entry in self._proto.opset_import)
        scope = _Scope((), (), "", dict(opsets), (), None)
        self._graph(self._proto.graph, "/", None, scope, 0)
        return Reading(
            self._graphs,
            self._nodes,
            self._tensors,
            self._proto.ir_version,
            opsets,
            tuple(_key(function) for function in self._proto.functions),
        )

    # ---- graphs -----------------------------------------------------------------------------

    def _graph(self, proto: onnx.GraphProto, path: str, holder: int | None, outer: _Scope, depth: int) -> int:
        if depth > NESTING:
            raise ModelError("the model nests bodies and calls too deeply to be replayed")
        number = len(self._graphs)
        graph = Graph(path, holder, parent=outer.owners[0] if outer.owners else None)
        self._graphs.append(graph)
        prefix = path if path.endswith("/") else path + "/"
        table: dict[str, int | None] = {}
        scope = _Scope((table, *outer.tables), (number, *outer.owners), prefix, outer.opsets, outer.calls, outer.given)
        for value in proto.input:
            t = self._define(value.name, scope)
            graph.inputs.append(t)
            self._tensors[t].declared.append(value.type)
        for stored in proto.initializer:
            t = self._define(stored.name, scope)
            graph.initializers.append(t)
            self._tensors[t].stored = stored
        for sparse in proto.sparse_initializer:
            graph.initializers.append(self._define(sparse.values.name, scope))
        self._expand(proto.node, scope, graph, depth)
        for value in proto.output:
            t = self._resolve(value.name, scope)
            graph.outputs.append(t)
            self._tensors[t].declared.append(value.type)
        for value in proto.value_info:
            if value.name in table:
                t = self._resolve(value.name, scope)
                self._tensors[t].declared.append(value.type)
        graph.names = {name: t for name, t in table.items() if t is not None}
        return number

    def _define(self, name: str, scope: _Scope) -> int:
        found = scope.tables[0].get(name)
        if found is None:
            found = len(self._tensors)
            self._tensors.append(Tensor(name, scope.prefix + paths.quoted(name), scope.owners[0]))
            scope.tables[0][name] = found
        return found

    def _resolve(self, name: str, scope: _Scope) -> int:
        for table in scope.tables:
            if name in table:
                found = table[name]
                return self._define(name, scope) if found is None else found
        return self._define(name, scope)

    # ---- nodes ------------------------------------------------------------------------------

    def _expand(self, nodes: Iterable[onnx.NodeProto], scope: _Scope, graph: Graph, depth: int) -> None:
        listed = list(nodes)
        defined = scope.tables[0]
        for node in listed:
            for name in node.output:
                if name and name not in defined:
                    self._define(name, scope)
        for index, node in enumerate(listed):
            inputs = tuple(self._resolve(name, scope) if name else None for name in node.input)
            outputs = tuple(self._define(name, scope) if name else None for name in node.output)
            domain = _domain(node.domain)
            path = paths.node(scope.prefix, index, domain, node.op_type, node.name)
            attributes = self._attributes(node, scope)
            key = (domain, node.op_type, node.overload)
            if self._calls(key, node, scope):
                self._call(key, path, inputs, outputs, attributes, scope, graph, depth)
                continue
            number = len(self._nodes)
            record = Node(
                path,
                scope.owners[0],
                domain,
                node.op_type,
                node.overload,
                scope.opsets.get(domain),
                inputs,
                outputs,
                {name: given.attribute for name, given in attributes.items()},
            )
            self._nodes.append(record)
            graph.nodes.append(number)
            if attributes:
                record.bodies = tuple(self._bodies(number, path, attributes, depth))

    def _bodies(
        self, holder: int, path: str, attributes: Mapping[str, _Given], depth: int
    ) -> Iterator[tuple[str, int]]:
        for name, (attribute, scope) in attributes.items():
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield name, self._graph(attribute.g, paths.body(path, name), holder, scope, depth + 1)
            for index, body in enumerate(attribute.graphs):
                yield name, self._graph(body, paths.body(path, name, index), holder, scope, depth + 1)

    def _attributes(self, node: onnx.NodeProto, scope: _Scope) -> dict[str, _Given]:
        """The attributes of a node by name; the first of several, those that refer to one of the call replaced by it."""
        found: dict[str, _Given] = {}
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                found.setdefault(attribute.name, _Given(attribute, scope))
            elif scope.given is not None and attribute.ref_attr_name in scope.given:
                found.setdefault(attribute.name, scope.given[attribute.ref_attr_name])
        return found

    # ---- calls ------------------------------------------------------------------------------

    def _calls(self, key: FunctionKey, node: onnx.NodeProto, scope: _Scope) -> bool:
        """Whether the node is a call that can be expanded: its domain is imported, and it hands over not too much."""
        function = self._functions.get(key)
        if function is None or key[0] not in scope.opsets:
            return False
        return len(node.input) <= len(function.input) and len(node.output) <= len(function.output)

    def _call(
        self,
        key: FunctionKey,
        path: str,
        inputs: tuple[int | None, ...],
        outputs: tuple[int | None, ...],
        attributes: Mapping[str, _Given],
        scope: _Scope,
        graph: Graph,
        depth: int,
    ) -> None:
        if key in scope.calls:
            raise ModelError("a function of the model calls itself; such a model has no expansion")
        if depth > NESTING:
            raise ModelError("the model nests bodies and calls too deeply to be replayed")
        function = self._functions[key]
        table: dict[str, int | None] = {}
        for name, actual in zip(function.output, outputs, strict=False):
            if actual is not None:
                table[name] = actual
        for position, name in enumerate(function.input):
            table[name] = inputs[position] if position < len(inputs) else None
        given = {default.name: default for default in function.attribute_proto} | dict(attributes)
        opsets = {_domain(entry.domain): entry.version for entry in function.opset_import}
        inner = _Scope((table,), (scope.owners[0],), path + "!", opsets, (*scope.calls, key), given)
        self._expand(function.node, inner, graph, depth + 1)


def _key(function: onnx.FunctionProto) -> FunctionKey:
    return (_domain(function.domain), function.name, function.overload)
