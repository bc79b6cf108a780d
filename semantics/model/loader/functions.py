"""Names in scopes, and model-local functions: their table, the refusal of recursion, what a call hands over.

Definitions are also kept as written. Source: ONNX IR, "Functions".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from ...errors import ModelError
from ..graph import Attribute, Definition, Graph, GraphId, Node, NodeId, Tensor, TensorId, ValueType
from ..path import body_path, node_path, operator_text, quote
from ..schemas import normal_domain, since_version
from ..type_protos import from_proto
from .values import Payloads, consistent, has_value, kind_of

MAX_DEPTH: Final = 100
"""The greatest depth of bodies and calls inside each other."""

MAX_EXPANDED: Final = 1_000_000
"""The most nodes that the calls of a model may expand to."""

MAX_CHARACTERS: Final = 200_000_000
"""The greatest length of the paths of expanded nodes in all: each repeats the paths of its calls."""


@dataclass(frozen=True, slots=True)
class NameScope:
    """A name scope: a graph, or one expansion of a function.

    names: tensors by name, None for an input that the call leaves out. graph: the graph that new tensors and nodes
    belong to. prefix: what their paths begin with. outer: the scope around it; a function has none. opsets: imported
    operator set versions. given: the attributes of the call, None outside of functions. calls: the calls around it.
    """

    names: dict[str, TensorId | None]
    graph: GraphId
    prefix: str
    outer: NameScope | None
    opsets: Mapping[str, int]
    given: Mapping[str, Given] | None = None
    calls: tuple[str, ...] = ()
    depth: int = 0


class Given(NamedTuple):
    """An attribute that a call hands to a function, with the scope in which its graphs read names."""

    proto: AttributeProto
    scope: NameScope


@dataclass(slots=True)
class Lists:
    """The lists of G while they grow; None stands for what is not finished yet. reads: for each graph the tensors of
    outer graphs that it reads, in order of first use. complete: nothing is elided."""

    payloads: Payloads
    typed: bool
    graphs: list[Graph | None] = field(default_factory=list)
    nodes: list[Node | None] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    reads: list[dict[TensorId, None]] = field(default_factory=list)
    members: list[list[NodeId]] = field(default_factory=list)
    expanded: int = 0
    characters: int = 0
    complete: bool = True


def define(lists: Lists, scope: NameScope, name: str, types: Mapping[str, ValueType]) -> TensorId:
    """A new tensor of the scope."""
    number = len(lists.tensors)
    lists.tensors.append(Tensor(name, scope.prefix + quote(name), scope.graph, types.get(name)))
    scope.names[name] = number
    return number


def define_once(lists: Lists, scope: NameScope, name: str, types: Mapping[str, ValueType]) -> TensorId:
    """The tensor that bears the name in this very scope, a new one when there is none."""
    number = scope.names.get(name)
    return define(lists, scope, name, types) if number is None else number


def look_up(scope: NameScope, name: str) -> tuple[bool, TensorId | None]:
    """Looks a name up, here and further out: bound or not, and the tensor, None for an input that a call leaves out."""
    at: NameScope | None = scope
    while at is not None:
        if name in at.names:
            return True, at.names[name]
        at = at.outer
    return False, None


def spend(lists: Lists, scope: NameScope, nodes: int, ahead: int = 0) -> None:
    """Account for nodes that are about to be built by expanding calls; `ahead` are those that will follow.

    Raises ModelError when it is too much.
    """
    if scope.depth > MAX_DEPTH:
        raise ModelError(f"bodies and function calls lie more than {MAX_DEPTH} deep inside each other: flatten them")
    if scope.calls:
        lists.expanded += nodes
        lists.characters += 2 * nodes * len(scope.prefix)
        if lists.expanded + ahead > MAX_EXPANDED:
            raise ModelError(f"the function calls expand to more than {MAX_EXPANDED} nodes: export without functions")
        if lists.characters > MAX_CHARACTERS:
            raise ModelError("the names along nested function calls are too long to be shown: shorten them")


# ---- Functions ------------------------------------------------------------------------------------

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""

_SHOWN_CYCLE: Final = 8


@dataclass(frozen=True, slots=True)
class Function:
    """A model-local function. opsets: its own imports. types: what it states about its tensors.

    size: the nodes that a call of it expands to, graphs which the call hands over aside.
    """

    proto: FunctionProto
    opsets: Mapping[str, int]
    types: Mapping[str, ValueType]
    size: int


def key_of(proto: FunctionProto) -> Key:
    """The key of a function."""
    return (normal_domain(proto.domain), proto.name, proto.overload)


def callee(node: NodeProto) -> Key:
    """The key of the function that a node would call."""
    return (normal_domain(node.domain), node.op_type, node.overload)


def opset_imports(entries: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    """Operator set versions by domain; the last of several imports of one domain counts, as in ONNX's own reader."""
    return {normal_domain(domain): version for domain, version in entries}


def read_functions(model: ModelProto) -> Mapping[Key, Function]:
    """The functions of a model; the first of several definitions of one key counts.

    Raises ModelError when a function calls itself, directly, through others or from a body, and when calls nest or
    expand without measure. Functions that nothing calls are checked too.
    """
    protos: dict[Key, FunctionProto] = {}
    for proto in model.functions:
        protos.setdefault(key_of(proto), proto)
    sizes = _sizes(protos)
    return {
        key: Function(
            proto,
            opset_imports((entry.domain, entry.version) for entry in proto.opset_import),
            {value.name: from_proto(value.type) for value in reversed(proto.value_info) if value.HasField("type")},
            sizes[key],
        )
        for key, proto in protos.items()
    }


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes and those of their bodies."""
    waiting = [iter(nodes)]
    while waiting:
        for node in waiting[-1]:
            yield node
            bodies = [a.g.node for a in node.attribute if a.HasField("g")]
            bodies += [body.node for a in node.attribute for body in a.graphs]
            if bodies:
                waiting += [iter(body) for body in bodies]
                break
        else:
            waiting.pop()


def _sizes(protos: Mapping[Key, FunctionProto]) -> Mapping[Key, int]:
    """The number of nodes that each function expands to, by a depth-first walk over calls."""
    calls: dict[Key, dict[Key, int]] = {}
    own: dict[Key, int] = {}
    for key, proto in protos.items():
        counts: dict[Key, int] = {}
        own[key] = 0
        for node in _all_nodes(proto.node):
            target = callee(node)
            if target in protos:
                counts[target] = counts.get(target, 0) + 1
            else:
                own[key] += 1
        calls[key] = counts
    sizes: dict[Key, int] = {}
    depths: dict[Key, int] = {}
    for root in protos:
        stack: dict[Key, Iterator[Key]] = {} if root in sizes else {root: iter(calls[root])}
        while stack:
            key, rest = next(reversed(stack.items()))
            target_ = next(rest, None)
            if target_ is None:
                stack.popitem()
                sizes[key] = min(own[key] + sum(n * sizes[t] for t, n in calls[key].items()), MAX_EXPANDED + 1)
                depths[key] = 1 + max((depths[t] for t in calls[key]), default=0)
                if depths[key] > MAX_DEPTH:
                    raise ModelError(f"function calls lie more than {MAX_DEPTH} deep inside each other: flatten them")
            elif target_ in stack:
                raise ModelError(_recursion(list(stack), target_))
            elif target_ not in sizes:
                stack[target_] = iter(calls[target_])
    return sizes


def _recursion(stack: Sequence[Key], target: Key) -> str:
    cycle = [_shown(key) for key in (*stack[stack.index(target) :], target)]
    if len(cycle) > _SHOWN_CYCLE:
        cycle = [*cycle[: _SHOWN_CYCLE - 2], "...", cycle[-1]]
    return f"a function calls itself, which ONNX forbids: {' calls '.join(cycle)}: remove the recursion"


def _shown(key: Key) -> str:
    domain, name, overload = key
    text = operator_text(domain, name)
    return f"{text}:{operator_text('', overload)}" if overload else text


# ---- Calls ------------------------------------------------------------------------------------


def expandable(function: Function, node: NodeProto, scope: NameScope) -> bool:
    """True where a call can expand: its domain is imported and it hands over no more than the function declares."""
    proto = function.proto
    fits = len(node.input) <= len(proto.input) and len(node.output) <= len(proto.output)
    return fits and normal_domain(node.domain) in scope.opsets


@dataclass(frozen=True, slots=True)
class Expansion:
    """The scope inside a call, and the outputs that repeat an input or an output: (formal name, actual tensor)."""

    scope: NameScope
    repeats: tuple[tuple[str, TensorId], ...]


def enter(
    function: Function,
    node: NodeProto,
    inputs: Sequence[TensorId | None],
    outputs: Sequence[TensorId | None],
    path: str,
    scope: NameScope,
) -> Expansion:
    """The inside of a call: formal inputs and outputs stand for the tensors of the caller."""
    proto = function.proto
    names: dict[str, TensorId | None] = {}
    for i, formal in enumerate(proto.input):
        names.setdefault(formal, inputs[i] if i < len(inputs) else None)
    repeats: list[tuple[str, TensorId]] = []
    for formal, actual in zip(proto.output, outputs, strict=False):
        if actual is None:
            continue
        if formal in names:
            repeats.append((formal, actual))
        else:
            names[formal] = actual
    inner = NameScope(
        names=names,
        graph=scope.graph,
        prefix=path + "!",
        outer=None,
        opsets=function.opsets,
        given=_given(function, node, scope),
        calls=(*scope.calls, path),
        depth=scope.depth + 1,
    )
    return Expansion(inner, tuple(repeats))


Named = tuple[Iterable[Hashable], Iterable[Hashable]]
"""What a node reads, and what it writes."""


def circular(nodes: Sequence[Named]) -> bool:
    """True where no order of the nodes has each behind those that write what it reads."""
    writers = {name: number for number, (_, written) in enumerate(nodes) for name in written}
    order = TopologicalSorter({k: {writers[it] for it in read if it in writers} for k, (read, _) in enumerate(nodes)})
    try:
        order.prepare()
    except CycleError:
        return True
    return False


def as_written(nodes: Iterable[NodeProto]) -> list[Named]:
    """By name what the nodes of a list, with their bodies, read and write: a call reads what it is given, also where
    its function does not."""
    return [((*node.input, *_free(node)), filter(None, node.output)) for node in nodes]


def _free(node: NodeProto) -> Iterator[str]:
    """The names of outer graphs that the bodies of a node read."""
    for attribute in node.attribute:
        bodies: list[GraphProto] = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())]
        for body in bodies:
            own = {it.name for it in body.input} | {it.name for it in body.initializer}
            own |= {name for it in body.node for name in it.output}
            read = (name for it in body.node for name in (*it.input, *_free(it)))
            yield from (name for name in (*read, *(it.name for it in body.output)) if name not in own)


def _given(function: Function, node: NodeProto, scope: NameScope) -> Mapping[str, Given]:
    """The attributes of a call: those written, references resolved, else the function's defaults."""
    plain = NameScope({}, scope.graph, scope.prefix, None, function.opsets, {})
    given = {default.name: Given(default, plain) for default in reversed(function.proto.attribute_proto)}
    for attribute in reversed(node.attribute):
        if not attribute.ref_attr_name:
            given[attribute.name] = Given(attribute, scope)
        elif scope.given is not None and attribute.ref_attr_name in scope.given:
            given[attribute.name] = scope.given[attribute.ref_attr_name]
    return given


# ---- Definitions as written -----------------------------------------------------------------------

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
