"""Definitions of model-local functions as they are written: what can be said of one that nothing calls.

The names are followed as ONNX's IR has it ("Functions": the nodes are in topological order) and as its checker does:
the list of nodes in its order, the bodies of a node before what the node writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from ..graph import Attribute, Definition, Node, TensorId
from ..path import body_path, node_path, operator_text
from ..schemas import normal_domain, since_version
from .attributes import consistent, has_value, kind_of
from .functions import Key, key_of, opset_imports

_TYPED_FROM = 2  # the IR version that gave attributes types


def definitions(model: ModelProto) -> tuple[Definition, ...]:
    """The definitions of a model in the order of the file, several of one key included."""
    keys = frozenset(key_of(function) for function in model.functions)
    return tuple(_definition(function, keys, model.ir_version >= _TYPED_FROM) for function in model.functions)


@dataclass(slots=True)
class _Walk:
    """A walk over one definition. The lists grow; texts in them are kept once, in order."""

    proto: FunctionProto
    functions: frozenset[Key]
    typed: bool
    nodes: list[Node] = field(default_factory=list)
    numbers: dict[str, TensorId] = field(default_factory=dict)
    early: dict[str, None] = field(default_factory=dict)
    reassigned: dict[str, None] = field(default_factory=dict)
    never_written: dict[str, None] = field(default_factory=dict)
    respelled: dict[str, None] = field(default_factory=dict)


def _definition(proto: FunctionProto, functions: frozenset[Key], typed: bool) -> Definition:
    walk = _Walk(proto, functions, typed)
    opsets = opset_imports((entry.domain, entry.version) for entry in proto.opset_import)
    spelled = {entry.domain for entry in proto.opset_import}
    if "ai.onnx" in spelled and "" not in spelled:
        walk.respelled["opset_import"] = None
    if proto.domain != normal_domain(proto.domain):
        walk.respelled["domain"] = None
    own = set(proto.input)
    _list(walk, proto.node, "/", own, ())
    listed = (proto.input, proto.output, [*proto.attribute, *(default.name for default in proto.attribute_proto)])
    repeated = {name for row in listed for name, count in Counter(row).items() if count > 1}
    return Definition(
        opsets,
        len(proto.input),
        len(proto.output),
        tuple(walk.nodes),
        tuple(sorted(repeated)),
        tuple(walk.early),
        tuple(walk.reassigned),
        (*walk.never_written, *dict.fromkeys(name for name in proto.output if name not in own)),
        tuple(walk.respelled),
    )


def _list(walk: _Walk, protos: Iterable[NodeProto], prefix: str, own: set[str], around: tuple[set[str], ...]) -> None:
    """Follows a list of nodes. own: the names of this scope that have a value by now; around: those of the outer ones,
    which bodies see."""
    for index, proto in enumerate(protos):
        domain = normal_domain(proto.domain)
        path = node_path(prefix, index, operator_text(domain, proto.op_type), proto.name)
        if proto.domain != domain:
            walk.respelled[path] = None
        for name in proto.input:
            if name and not any(name in scope for scope in (own, *around)):
                walk.early[f"{name} at {path}"] = None
        walk.nodes.append(_node(walk, proto, domain, path))
        for place, body in _bodies(walk, proto, path):
            inner = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
            inner |= {tensor.values.name for tensor in body.sparse_initializer}
            _list(walk, body.node, place + "/", inner, (own, *around))
            walk.never_written.update({f"{it.name} of {place}": None for it in body.output if it.name not in inner})
        for name in proto.output:
            if name and any(name in scope for scope in (own, *around)):
                walk.reassigned[f"{name} at {path}"] = None
            own.add(name)


def _node(walk: _Walk, proto: NodeProto, domain: str, path: str) -> Node:
    opset = next((it.version for it in reversed(walk.proto.opset_import) if normal_domain(it.domain) == domain), None)
    foreign = bool(proto.overload) or (domain, proto.op_type, "") in walk.functions
    attributes: dict[str, Attribute] = {}
    again: list[str] = []
    for written in proto.attribute:
        if written.name in attributes:
            again.append(written.name)
            continue
        kind = kind_of(written, walk.typed)
        valued = bool(written.ref_attr_name) or has_value(written, kind, elides=False)
        attributes[written.name] = Attribute(kind, 0 if valued else None)
    return Node(
        proto.name,
        path,
        0,
        domain,
        proto.op_type,
        proto.overload,
        opset,
        None if foreign else since_version(domain, proto.op_type, opset),
        _numbered(walk, proto.input),
        _numbered(walk, proto.output),
        attributes,
        duplicate_attributes=tuple(again),
    )


def _numbered(walk: _Walk, names: Sequence[str]) -> tuple[TensorId | None, ...]:
    return tuple(walk.numbers.setdefault(name, len(walk.numbers)) if name else None for name in names)


def _bodies(walk: _Walk, proto: NodeProto, path: str) -> Iterator[tuple[str, GraphProto]]:
    """The graphs that a node holds, each with its path."""
    seen: set[str] = set()
    for written in proto.attribute:
        kind = kind_of(written, walk.typed)
        if written.name in seen or written.ref_attr_name or not consistent(written, kind):
            continue
        seen.add(written.name)
        if kind == "GRAPH" and written.HasField("g"):
            yield body_path(path, written.name), written.g
        for index, body in enumerate(written.graphs):
            yield body_path(path, written.name, index), body
