"""From a serialised model to G: scanned, parsed without its large tensors, then built in one pass.

The pass numbers graphs, nodes and tensors, resolves names and expands calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from types import MappingProxyType
from typing import Final

from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from ...errors import ModelError
from ...resources.process import paused
from ..graph import Attribute, Constant, Graph, GraphId, Model, ModelFile, Node, NodeId, TensorId, ValueType
from ..path import body_path, node_path, operator_text, quote
from ..schemas import newest_opset, normal_domain, since_version
from ..type_protos import from_proto
from . import functions
from .source import digest, texts_in_force
from .values import SIMPLE, Payloads, attribute, complete, consistent, dense, kind_of, open_external, sparse
from .wire import scan

_TYPED_FROM: Final = 2  # the IR version that gave attributes types
_IMPORTS_FROM: Final = 3  # the IR version that gave models operator set imports

Attributes = tuple[Mapping[str, Attribute], tuple[tuple[str, GraphId], ...], tuple[str, ...]]
"""The attributes of a node, the bodies among them, and the names that occur again."""

_NONE: Final[Attributes] = (MappingProxyType({}), (), ())

Resolved = list[tuple[tuple[TensorId | None, ...], tuple[TensorId | None, ...]]]
"""Inputs and outputs of each node of a list."""


def build(
    proto: ModelProto, payloads: Payloads, source: str, files: tuple[ModelFile, ...] = (), content: bytes = b""
) -> Model:
    """G of a parsed model. Raises ModelError for what cannot be represented: recursion, expansion without measure,
    external data that cannot be resolved; and for cycles through calls whose functions do not read what they are given
    (ONNX IR, "Graphs": nodes are in topological order). payloads gets the names of the external files."""
    lists = functions.Lists(payloads, proto.ir_version >= _TYPED_FROM)
    opsets = tuple((normal_domain(entry.domain), entry.version) for entry in proto.opset_import)
    implied = (("", 1),) if not opsets and proto.ir_version < _IMPORTS_FROM else ()
    top = functions.NameScope({}, 0, "", None, functions.opset_imports((*implied, *opsets)))
    made = _Pass(lists, functions.read_functions(proto))
    made.graph(proto.graph, "/", None, top, top)
    if made.circular and not functions.circular([((*n.inputs, *n.captures), n.outputs) for n in lists.nodes if n]):
        raise ModelError(
            f"the nodes of {made.circular} need each other's outputs, which ONNX forbids, though a function that is "
            "called there does not read them: leave these inputs of the call out"
        )
    return Model(
        graphs=tuple(graph for graph in lists.graphs if graph is not None),
        nodes=tuple(node for node in lists.nodes if node is not None),
        tensors=tuple(lists.tensors),
        ir_version=proto.ir_version,
        opsets=opsets,
        source=source,
        files=files,
        folder=payloads.folder,
        producer=f"{proto.producer_name} {proto.producer_version}".strip(),
        metadata=tuple((entry.key, entry.value) for entry in proto.metadata_props),
        functions=tuple(functions.key_of(function) for function in proto.functions),
        definitions=functions.definitions(proto),
        runnable=lists.complete,
        content=content,
        added=texts_in_force(),
    )


class _Pass:
    """The pass over one model: its growing lists, its functions, and what was looked up before."""

    def __init__(self, lists: functions.Lists, functions: Mapping[functions.Key, functions.Function]) -> None:
        self._lists = lists
        self._functions = functions
        self._operators: dict[tuple[str, str], tuple[str, str]] = {}
        self._value_types: dict[bytes, ValueType] = {}
        self._simple: dict[bytes, Attribute] = {}
        self.circular = ""
        """The first list of nodes with calls that has no order, the calls taken for nodes."""

    # ---- Graphs -------------------------------------------------------------------------------

    def graph(
        self,
        proto: GraphProto,
        path: str,
        holder: NodeId | None,
        lexical: functions.NameScope,
        around: functions.NameScope,
    ) -> GraphId:
        """The number of a graph, built with all that it holds. lexical: the scope that its names look out to; around:
        the scope of the node that holds it, which is another one when a call hands the graph over."""
        lists = self._lists
        number = len(lists.graphs)
        lists.graphs.append(None)
        lists.reads.append({})
        lists.members.append([])
        scope = functions.NameScope(
            names={},
            graph=number,
            prefix=path if holder is None else path + "/",
            outer=lexical if holder is not None else None,
            opsets=lexical.opsets,
            given=lexical.given,
            calls=around.calls,
            depth=around.depth + (holder is not None),
        )
        inputs, outputs, infos = self._types(proto.input), self._types(proto.output), self._types(proto.value_info)
        types = {name: type_ for name, type_ in (*infos, *outputs, *inputs) if type_ is not None}
        input_ids = tuple(functions.define_once(lists, scope, name, types) for name, _ in inputs)
        dense_ids = tuple(
            (functions.define_once(lists, scope, it.name, types), self._kept(dense(it, lists.payloads)))
            for it in proto.initializer
        )
        sparse_ids = tuple(
            (functions.define_once(lists, scope, it.values.name, types), self._kept(sparse(it, lists.payloads)))
            for it in proto.sparse_initializer
        )
        nodes = list(proto.node)
        resolved = self._names(nodes, scope, types)
        output_ids = tuple(self._output(scope, name, types) for name, _ in outputs)
        self._nodes(nodes, resolved, scope)
        lists.graphs[number] = Graph(
            name=proto.name,
            path=path,
            nodes=tuple(lists.members[number]),
            inputs=input_ids,
            outputs=output_ids,
            initializers=dense_ids,
            value_infos=tuple((t, type_) for name, type_ in infos if (t := scope.names.get(name)) is not None),
            input_types=tuple(type_ for _, type_ in inputs),
            output_types=tuple(type_ for _, type_ in outputs),
            holder=holder,
            sparse_initializers=sparse_ids,
        )
        return number

    def _types(self, values: Iterable[ValueInfoProto]) -> list[tuple[str, ValueType | None]]:
        """Names with their types; equal types, of which a model has many, are one object."""
        known = self._value_types
        typed: list[tuple[str, ValueType | None]] = []
        for value in values:
            type_ = None
            if value.HasField("type"):
                text = value.type.SerializeToString()
                type_ = known.get(text)
                if type_ is None:
                    type_ = known[text] = from_proto(value.type)
            typed.append((value.name, type_))
        return typed

    def _kept(self, constant: Constant) -> Constant:
        self._lists.complete = self._lists.complete and complete(constant)
        return constant

    def _output(self, scope: functions.NameScope, name: str, types: Mapping[str, ValueType]) -> TensorId:
        _, tensor = functions.look_up(scope, name)
        if tensor is None:
            return functions.define(self._lists, scope, name, types)
        if self._lists.tensors[tensor].graph != scope.graph:
            self._lists.reads[scope.graph][tensor] = None
        return tensor

    def _names(
        self, protos: Sequence[NodeProto], scope: functions.NameScope, types: Mapping[str, ValueType]
    ) -> Resolved:
        """Inputs and outputs of all nodes of a list; first all that is written, then what is read."""
        lists, names = self._lists, scope.names
        functions.spend(lists, scope, len(protos))
        written: list[tuple[TensorId | None, ...]] = []
        for proto in protos:
            outputs: list[TensorId | None] = []
            for name in proto.output:
                tensor = names.get(name) if name else None
                outputs.append(functions.define(lists, scope, name, types) if tensor is None and name else tensor)
            written.append(tuple(outputs))
        return [(self._inputs(proto, scope, types), written[i]) for i, proto in enumerate(protos)]

    def _inputs(
        self, proto: NodeProto, scope: functions.NameScope, types: Mapping[str, ValueType]
    ) -> tuple[TensorId | None, ...]:
        names = scope.names
        tensors: list[TensorId | None] = []
        for name in proto.input:
            tensor = names.get(name) if name else None
            if tensor is None and name and name not in names:
                bound, tensor = functions.look_up(scope, name)
                if not bound:
                    tensor = functions.define(self._lists, scope, name, types)
            tensors.append(tensor)
        return tuple(tensors)

    # ---- Nodes --------------------------------------------------------------------------------

    def _nodes(self, protos: Sequence[NodeProto], resolved: Resolved, scope: functions.NameScope) -> None:
        if self._functions and not self.circular and any(functions.callee(it) in self._functions for it in protos):
            self.circular = scope.prefix or "/" if functions.circular(functions.as_written(protos)) else ""
        for index, proto in enumerate(protos):
            inputs, outputs = resolved[index]
            domain, operator = self._operator(proto.domain, proto.op_type)
            path = node_path(scope.prefix, index, operator, proto.name)
            function = self._functions.get(functions.callee(proto)) if self._functions else None
            if function is not None and functions.expandable(function, proto, scope):
                self._expand(function, proto, inputs, outputs, path, scope)
            else:
                self._node(proto, domain, path, inputs, outputs, scope)

    def _operator(self, domain: str, op_type: str) -> tuple[str, str]:
        """The domain under its one name, and the operator as paths show it."""
        known = self._operators.get((domain, op_type))
        if known is None:
            normal = normal_domain(domain)
            known = self._operators[domain, op_type] = (normal, operator_text(normal, op_type))
        return known

    def _node(
        self,
        proto: NodeProto,
        domain: str,
        path: str,
        inputs: tuple[TensorId | None, ...],
        outputs: tuple[TensorId | None, ...],
        scope: functions.NameScope,
    ) -> None:
        lists = self._lists
        number = len(lists.nodes)
        lists.nodes.append(None)
        lists.members[scope.graph].append(number)
        attributes, bodies, repeated = self._attributes(proto, number, path, scope) if proto.attribute else _NONE
        captures = self._captures(bodies, scope.graph)
        if scope.graph:
            reads, tensors = lists.reads[scope.graph], lists.tensors
            for tensor in (*inputs, *captures):
                if tensor is not None and tensors[tensor].graph != scope.graph:
                    reads[tensor] = None
        opset = scope.opsets.get(domain)
        op_type, overload = proto.op_type, proto.overload
        own = not overload and (domain, op_type, "") not in self._functions
        lists.nodes[number] = Node(
            proto.name,
            path,
            scope.graph,
            domain,
            op_type,
            overload,
            opset,
            since_version(domain, op_type, opset) if own else None,
            inputs,
            outputs,
            attributes,
            bodies,
            captures,
            scope.calls,
            repeated,
        )

    def _captures(self, bodies: tuple[tuple[str, GraphId], ...], holder: GraphId) -> tuple[TensorId, ...]:
        """The tensors that the bodies of a node of the graph `holder` read of the graphs around them."""
        read: dict[TensorId, None] = {}
        for _, body in bodies:
            read |= self._lists.reads[body]
        return tuple(read)

    def _attributes(self, proto: NodeProto, number: NodeId, path: str, scope: functions.NameScope) -> Attributes:
        """The attributes of a node; of several with one name the first counts."""
        attributes: dict[str, Attribute] = {}
        bodies: list[tuple[str, GraphId]] = []
        repeated: list[str] = []
        for written in proto.attribute:
            name = written.name
            if name in attributes:
                repeated.append(name)
                continue
            actual = functions.Given(written, scope)
            if written.ref_attr_name:
                if scope.given is None:
                    attributes[name] = Attribute(kind_of(written, self._lists.typed), None)
                    self._lists.complete = False
                    continue
                given = scope.given.get(written.ref_attr_name)
                if given is None:
                    continue
                actual = given
            attributes[name] = self._attribute(name, actual, bodies, number, path, scope)
        return attributes, tuple(bodies), tuple(repeated)

    def _attribute(
        self,
        name: str,
        given: functions.Given,
        bodies: list[tuple[str, GraphId]],
        number: NodeId,
        path: str,
        scope: functions.NameScope,
    ) -> Attribute:
        proto, lexical = given
        simple = b""
        if proto.type in SIMPLE:
            simple = proto.SerializeToString()
            known = self._simple.get(simple)
            if known is not None:
                return known
        kind = kind_of(proto, self._lists.typed)
        if kind == "GRAPH" and proto.HasField("g") and consistent(proto, kind):
            body = self.graph(proto.g, body_path(path, name), number, lexical, scope)
            bodies.append((name, body))
            return Attribute(kind, body)
        if kind == "GRAPHS" and consistent(proto, kind):
            held = tuple(
                self.graph(it, body_path(path, name, i), number, lexical, scope) for i, it in enumerate(proto.graphs)
            )
            bodies.extend((f"{name}[{i}]", body) for i, body in enumerate(held))
            return Attribute(kind, held)
        result = attribute(proto, kind, self._lists.payloads)
        self._lists.complete = self._lists.complete and _known(result)
        if simple:
            self._simple[simple] = result
        return result

    # ---- Calls --------------------------------------------------------------------------------

    def _expand(
        self,
        function: functions.Function,
        proto: NodeProto,
        inputs: Sequence[TensorId | None],
        outputs: Sequence[TensorId | None],
        path: str,
        scope: functions.NameScope,
    ) -> None:
        expansion = functions.enter(function, proto, inputs, outputs, path, scope)
        body = list(function.proto.node)
        functions.spend(self._lists, expansion.scope, 0, ahead=function.size)
        self._nodes(body, self._names(body, expansion.scope, function.types), expansion.scope)
        for i, (formal, actual) in enumerate(expansion.repeats):
            original = expansion.scope.names[formal]
            if original is not None:
                self._identity(original, actual, len(body) + i, expansion.scope)

    def _identity(self, original: TensorId, copy: TensorId, index: int, scope: functions.NameScope) -> None:
        """A node that gives a formal input, or an output listed before, its second name."""
        lists = self._lists
        opset = scope.opsets.get("") or newest_opset()
        path = node_path(scope.prefix, index, "Identity", "")
        if scope.graph and lists.tensors[original].graph != scope.graph:
            lists.reads[scope.graph][original] = None
        lists.members[scope.graph].append(len(lists.nodes))
        version = since_version("", "Identity", opset)
        lists.nodes.append(
            Node("", path, scope.graph, "", "Identity", "", opset, version, (original,), (copy,), calls=scope.calls)
        )


def _known(stated: Attribute) -> bool:
    """True where nothing of an attribute is elided."""
    value = stated.value
    if isinstance(value, Constant):
        return complete(value)
    if isinstance(value, tuple):
        return all(complete(it) for it in value if isinstance(it, Constant))
    return value is not None


# ---- From bytes -----------------------------------------------------------------------------------

Progress = Callable[[int, int], None]
"""Called with the number of bytes of external data read and of all."""


def from_bytes(
    buffer: bytes | mmap,
    source: str,
    *,
    folder: Path | None = None,
    files: tuple[ModelFile, ...] = (),
    content: bytes = b"",
    progress: Progress | None = None,
) -> Model:
    """G of a serialised ModelProto. folder: where its external data lie, None when it has no place.

    files: the model file; the external files that the model names are added, each once. content: see Model.
    Raises ModelError.
    """
    scanned = scan(buffer)
    try:
        proto = ModelProto.FromString(scanned.stripped)
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"the file is no ONNX model ({error}): export it again") from None
    if not proto.HasField("graph"):
        raise ModelError("the file has no graph: it is no ONNX model, or was cut off; export it again")
    payloads = Payloads(scanned, folder, elides=source == "listing")
    with paused():
        model = build(proto, payloads, source, files, content)
    if folder is None or not payloads.files:
        return model
    return replace(model, files=(*files, *_external(folder, tuple(payloads.files), progress)))


def _external(folder: Path, names: tuple[str, ...], progress: Progress | None) -> Iterator[ModelFile]:
    opened: list[tuple[str, int]] = []
    try:
        opened.extend((name, open_external(folder, name)) for name in names)
        total = sum(os.fstat(fd).st_size for _, fd in opened)
        done = 0

        def tell(size: int) -> None:
            nonlocal done
            done += size
            if progress is not None:
                progress(done, total)

        for name, fd in opened:
            size, sha256 = digest(fd, tell)
            yield ModelFile(name, size, sha256)
    finally:
        for _, fd in opened:
            os.close(fd)


def in_file(path: Path, error: ModelError) -> ModelError:
    """The error with the file in front, unless it names it already."""
    text = str(error)
    name = quote(str(path))
    return error if text.startswith(name) else ModelError(f"{name}: {text}")
