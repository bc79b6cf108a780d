"""The rechecker's own reading of a model: functions expanded, names resolved, nodes and tensors numbered.

Nothing here comes from the certifier or its loader. Numbers are those of a certificate (`CERTIFICATE.md`, "Expansion,
numbering, paths").
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import onnx
from sonnx.semantics.errors import ModelError

from . import paths

NESTING = 100
"""The greatest depth of bodies and calls in each other."""
EXPANSION = 1_000_000
"""The most nodes that a model may expand to by calls."""
NEWEST = onnx.defs.onnx_opset_version()

FunctionKey = tuple[str, str, str]
Ports = tuple[int | None, ...]


@dataclass(slots=True)
class Graph:
    """A graph: lists of tensor numbers as written, and its protobuf. holder: the node that has it as an attribute.

    around: what the paths of tensors in the name scope of the holder begin with. names: the tensors
    of its own name scope.
    """

    proto: onnx.GraphProto
    path: str
    holder: int | None
    around: str | None
    nodes: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    initializers: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    names: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """One application of an operator; an input or output without a name is None.

    opset: the imported version of its domain, None when it is not imported or a function takes the operator's place.
    scope: what its path begins with. repeated: attributes that are written again. imported: its domain is.
    """

    path: str
    name: str
    graph: int
    domain: str
    op_type: str
    overload: str
    opset: int | None
    inputs: Ports
    outputs: Ports
    attributes: Mapping[str, onnx.AttributeProto]
    bodies: list[int] = field(default_factory=list)
    scope: str = "/"
    repeated: tuple[str, ...] = ()
    imported: bool = True


@dataclass(slots=True)
class Tensor:
    """A named value: its path, its graph, the declaration of its type, and its stored value."""

    name: str
    path: str
    graph: int
    declared: onnx.TypeProto | None = None
    stored: list[onnx.TensorProto] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reading:
    """A model as read. graphs[0] is the main graph; nodes and tensors by number."""

    proto: onnx.ModelProto
    graphs: Sequence[Graph]
    nodes: Sequence[Node]
    tensors: Sequence[Tensor]
    opsets: tuple[tuple[str, int], ...]
    functions: tuple[FunctionKey, ...]


def read(proto: onnx.ModelProto) -> Reading:
    """The reading of a model. Raises ModelError for what cannot be expanded: recursion, nesting without end."""
    return _Reader(proto).reading()


def domain_of(name: str) -> str:
    """The domain under its one name."""
    return "" if name == "ai.onnx" else name


class _Given(NamedTuple):
    """An attribute, and the scope in which its graphs look up names: the caller's for one that a call hands over."""

    attribute: onnx.AttributeProto
    scope: _Scope


@dataclass(frozen=True, slots=True)
class _Scope:
    """Tables in which names are looked up, the innermost first; None there is an input that a call leaves out."""

    tables: tuple[dict[str, int | None], ...]
    graph: int
    prefix: str
    opsets: Mapping[str, int]
    calls: tuple[FunctionKey, ...] = ()
    given: Mapping[str, _Given] | None = None
    depth: int = 0


class _Reader:
    """Builds the lists. In each list of nodes names come first: written, then read; then what the nodes hold."""

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._proto = proto
        self._graphs: list[Graph] = []
        self._nodes: list[Node] = []
        self._tensors: list[Tensor] = []
        self._expanded = 0
        self._has_loop = False
        self._functions: dict[FunctionKey, onnx.FunctionProto] = {}
        for function in proto.functions:
            self._functions.setdefault(_key(function), function)

    def reading(self) -> Reading:
        """Reads everything."""
        opsets = tuple((domain_of(entry.domain), entry.version) for entry in self._proto.opset_import)
        implied = {"": 1} if not opsets and self._proto.ir_version < 3 else {}
        top = _Scope((), 0, "", implied | dict(opsets))
        self._graph(self._proto.graph, "/", None, top, top)
        if self._has_loop and not self._loops():
            raise ModelError(
                "calls of functions and other nodes need each other's outputs, which the functions do not read"
            )
        keys = tuple(_key(function) for function in self._proto.functions)
        return Reading(self._proto, self._graphs, self._nodes, self._tensors, opsets, keys)

    # ---- graphs -----------------------------------------------------------------------------

    def _graph(
        self,
        proto: onnx.GraphProto,
        path: str,
        holder: int | None,
        outer: _Scope,
        at: _Scope,
    ) -> int:
        """A graph: `outer` is the scope that its names look out to, `at` that of its holder."""

        depth, around = (0, None) if holder is None else (at.depth + 1, at.prefix)
        if depth > NESTING:
            raise ModelError(f"bodies and calls lie more than {NESTING} deep in each other")
        number = len(self._graphs)
        graph = Graph(proto, path, holder, around)
        self._graphs.append(graph)
        prefix = path if holder is None else path + "/"
        scope = _Scope(({}, *outer.tables), number, prefix, outer.opsets, at.calls, outer.given, depth)
        types = _declarations(proto)
        graph.names = scope.tables[0]
        graph.inputs = [self._define(value.name, scope, types) for value in proto.input]
        stored = [*proto.initializer, *(sparse.values for sparse in proto.sparse_initializer)]
        graph.initializers = [self._define(tensor.name, scope, types) for tensor in stored]
        for t, tensor in zip(graph.initializers, proto.initializer, strict=False):
            self._tensors[t].stored.append(tensor)
        ports = self._names(proto.node, scope, types)
        graph.outputs = [self._outer_or_new(value.name, scope, types) for value in proto.output]
        self._list(proto.node, ports, scope, graph)
        return number

    def _define(self, name: str, scope: _Scope, types: Mapping[str, onnx.TypeProto]) -> int:
        """The tensor of that name in this very scope, a new one when there is none."""
        number = scope.tables[0].get(name)
        if number is None:
            number = len(self._tensors)
            path = scope.prefix + paths.quoted(name)
            self._tensors.append(Tensor(name, path, scope.graph, types.get(name)))
            scope.tables[0][name] = number
        return number

    def _outer_or_new(self, name: str, scope: _Scope, types: Mapping[str, onnx.TypeProto]) -> int:
        number = next((table[name] for table in scope.tables if name in table), None)
        return self._define(name, scope, types) if number is None else number

    def _names(
        self, nodes: Sequence[onnx.NodeProto], scope: _Scope, types: Mapping[str, onnx.TypeProto]
    ) -> list[tuple[Ports, Ports]]:
        """Inputs and outputs of the nodes of a list; a name that nothing defines is a tensor of the list's graph."""
        written = [tuple(self._define(name, scope, types) if name else None for name in node.output) for node in nodes]
        ports = []
        for node, outputs in zip(nodes, written, strict=True):
            inputs: list[int | None] = []
            for name in node.input:
                table = next((table for table in scope.tables if name in table), None)
                if not name or table is not None:
                    inputs.append(table[name] if name and table is not None else None)
                else:
                    inputs.append(self._define(name, scope, types))
            ports.append((tuple(inputs), outputs))
        return ports

    # ---- nodes ------------------------------------------------------------------------------

    def _list(
        self, nodes: Sequence[onnx.NodeProto], ports: list[tuple[Ports, Ports]], scope: _Scope, graph: Graph
    ) -> None:
        if any((domain_of(node.domain), node.op_type, node.overload) in self._functions for node in nodes):
            rows = [({*node.input} | _outer_names(node), {*node.output}) for node in nodes]
            self._has_loop = self._has_loop or not _settles(rows)
        for index, (node, (inputs, outputs)) in enumerate(zip(nodes, ports, strict=True)):
            domain = domain_of(node.domain)
            path = paths.node(scope.prefix, index, domain, node.op_type, node.name)
            attributes = self._attributes(node, scope)
            key = (domain, node.op_type, node.overload)
            function = self._functions.get(key)
            if function is not None and _fits(function, node, domain in scope.opsets):
                self._call(key, path, inputs, outputs, attributes, scope, graph)
            else:
                own = function is None and not node.overload
                self._node(node, domain, path, inputs, outputs, attributes, scope, graph, own=own)

    def _node(
        self,
        node: onnx.NodeProto,
        domain: str,
        path: str,
        inputs: Ports,
        outputs: Ports,
        attributes: Mapping[str, _Given],
        scope: _Scope,
        graph: Graph,
        *,
        own: bool,
    ) -> None:
        number = len(self._nodes)
        names = [a.name for a in node.attribute]
        first = {name: at for at, name in reversed([*enumerate(names)])}
        repeated = tuple(name for at, name in enumerate(names) if first[name] != at)
        record = Node(
            path,
            node.name,
            scope.graph,
            domain,
            node.op_type,
            node.overload,
            scope.opsets.get(domain) if own else None,
            inputs,
            outputs,
            {name: given.attribute for name, given in attributes.items()},
            scope=scope.prefix,
            repeated=repeated,
            imported=domain in scope.opsets,
        )
        self._nodes.append(record)
        graph.nodes.append(number)
        for name, (attribute, lexical) in attributes.items():
            for body, place in self._held(attribute, name, path):
                record.bodies.append(self._graph(body, place, number, lexical, scope))

    def _held(self, attribute: onnx.AttributeProto, name: str, path: str) -> Iterator[tuple[onnx.GraphProto, str]]:
        """The graphs that an attribute holds, when it says that it holds graphs and nothing else."""
        kind = attribute.type
        if not kind and self._proto.ir_version < 2:
            kind = onnx.AttributeProto.GRAPH if attribute.HasField("g") else kind
            kind = onnx.AttributeProto.GRAPHS if attribute.graphs else kind
        values = {f.name for f, _ in attribute.ListFields()} - {"name", "type", "doc_string", "ref_attr_name"}
        if kind == onnx.AttributeProto.GRAPH and values == {"g"}:
            yield attribute.g, paths.body(path, name)
        elif kind == onnx.AttributeProto.GRAPHS and values == {"graphs"}:
            for index, body in enumerate(attribute.graphs):
                yield body, paths.body(path, name, index)

    def _attributes(self, node: onnx.NodeProto, scope: _Scope) -> dict[str, _Given]:
        """The attributes of a node by name; the first of several, a reference to one of the call replaced by it."""
        attributes: dict[str, _Given] = {}
        for attribute in node.attribute:
            if not attribute.ref_attr_name or scope.given is None:
                attributes.setdefault(attribute.name, _Given(attribute, scope))
            elif attribute.ref_attr_name in scope.given:
                attributes.setdefault(attribute.name, scope.given[attribute.ref_attr_name])
        return attributes

    # ---- calls ------------------------------------------------------------------------------

    def _loops(self) -> bool:
        """True where nodes need each other's outputs when calls are expanded: then a rule says so."""
        held: dict[int, set[int]] = {}
        for number in reversed(range(len(self._nodes))):  # bodies come behind the node that holds them
            node = self._nodes[number]
            read = {t for t in node.inputs if t is not None}
            for body in node.bodies:
                inner = self._graphs[body]
                read |= {t for n in inner.nodes for t in held[n]} | {t for t in inner.outputs if t is not None}
            held[number] = {t for t in read if self._tensors[t].graph <= node.graph}
        return not _settles([(held[n], {*node.outputs} - {None}) for n, node in enumerate(self._nodes)])

    def _call(
        self,
        key: FunctionKey,
        path: str,
        inputs: Ports,
        outputs: Ports,
        attributes: Mapping[str, _Given],
        scope: _Scope,
        graph: Graph,
    ) -> None:
        """Expands a call: formal inputs and outputs stand for the tensors of the caller."""
        function = self._functions[key]
        self._expanded += len(function.node)
        if key in scope.calls or scope.depth >= NESTING or self._expanded > EXPANSION:
            raise ModelError("a function of the model calls itself, or its calls have no measure")
        table: dict[str, int | None] = {}
        for position, name in enumerate(function.input):
            table.setdefault(name, inputs[position] if position < len(inputs) else None)
        doubled = []
        for name, actual in zip(function.output, outputs, strict=False):
            if actual is not None and name in table:
                doubled.append((name, actual))
            elif actual is not None:
                table[name] = actual
        opsets = {domain_of(entry.domain): entry.version for entry in function.opset_import}
        plain = _Scope((), scope.graph, scope.prefix, opsets)
        given = {default.name: _Given(default, plain) for default in reversed(function.attribute_proto)}
        given.update(attributes)
        calls = (*scope.calls, key)
        inner = _Scope((table,), scope.graph, path + "!", opsets, calls, given, scope.depth + 1)
        types = {value.name: value.type for value in reversed(function.value_info) if value.HasField("type")}
        ports = self._names(function.node, inner, types)
        self._list(function.node, ports, inner, graph)
        for position, (name, actual) in enumerate(doubled):
            original = table[name]
            if original is not None:
                self._copy(original, actual, len(function.node) + position, inner, graph)

    def _copy(self, original: int, second: int, index: int, scope: _Scope, graph: Graph) -> None:
        """The Identity node that stands for the second name of one tensor."""
        graph.nodes.append(len(self._nodes))
        path = paths.node(scope.prefix, index, "", "Identity", "")
        opset = scope.opsets.get("") or NEWEST
        self._nodes.append(
            Node(path, "", scope.graph, "", "Identity", "", opset, (original,), (second,), {}, scope=scope.prefix)
        )


def _settles(rows: Sequence[tuple[Set[str | int], Set[str | int | None]]]) -> bool:
    """True where all rows can be done, each when what it reads of others has been written."""
    sources = {name: number for number, (_, written) in enumerate(rows) for name in written if name not in ("", None)}
    waits = {number: {sources[name] for name in read if name in sources} for number, (read, _) in enumerate(rows)}
    try:
        graphlib.TopologicalSorter(waits).prepare()
    except graphlib.CycleError:
        return False
    return True


def _outer_names(node: onnx.NodeProto) -> set[str]:
    """What the graphs that a node holds read of the graphs around them."""
    found: set[str] = set()
    for attribute in node.attribute:
        graphs: list[onnx.GraphProto] = [*attribute.graphs]
        if attribute.HasField("g"):
            graphs.append(attribute.g)
        for graph in graphs:
            inner = {name for it in graph.node for name in (*it.input, *_outer_names(it))}
            inner |= {it.name for it in graph.output}
            written = {name for it in graph.node for name in it.output}
            found |= inner - written - {it.name for it in graph.input} - {it.name for it in graph.initializer}
    return found


def _key(function: onnx.FunctionProto) -> FunctionKey:
    return (domain_of(function.domain), function.name, function.overload)


def _fits(function: onnx.FunctionProto, node: onnx.NodeProto, imported: bool) -> bool:
    """A call can be expanded: its domain is imported, and it hands over no more than the function takes."""
    return imported and len(node.input) <= len(function.input) and len(node.output) <= len(function.output)


def _declarations(proto: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    """The declarations of a graph about types: its inputs before its outputs before value_info, of several the last."""
    listed = (*proto.value_info, *proto.output, *proto.input)
    return {value.name: value.type for value in listed if value.HasField("type")}
