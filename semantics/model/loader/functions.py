"""Model-local functions: their table, the refusal of recursion, and what a call hands over (ONNX IR, "Functions")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from onnx import FunctionProto, ModelProto, NodeProto

from ...errors import ModelError
from ..graph import TensorId, ValueType
from ..path import operator_text
from ..schemas import normal_domain
from ..type_protos import from_proto
from .scope import MAX_DEPTH, MAX_EXPANDED, Given, Scope

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


def expandable(function: Function, node: NodeProto, scope: Scope) -> bool:
    """Whether a call can be expanded: its domain is imported and it hands over no more than the function declares."""
    proto = function.proto
    fits = len(node.input) <= len(proto.input) and len(node.output) <= len(proto.output)
    return fits and normal_domain(node.domain) in scope.opsets


@dataclass(frozen=True, slots=True)
class Expansion:
    """The scope inside a call, and the outputs that repeat an input or an output: (formal name, actual tensor)."""

    scope: Scope
    repeats: tuple[tuple[str, TensorId], ...]


def enter(
    function: Function,
    node: NodeProto,
    inputs: Sequence[TensorId | None],
    outputs: Sequence[TensorId | None],
    path: str,
    scope: Scope,
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
    inner = Scope(
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


def _given(function: Function, node: NodeProto, scope: Scope) -> Mapping[str, Given]:
    """The attributes of a call: those written, references resolved, else the function's defaults."""
    plain = Scope({}, scope.graph, scope.prefix, None, function.opsets, {})
    given = {default.name: Given(default, plain) for default in reversed(function.proto.attribute_proto)}
    for attribute in reversed(node.attribute):
        if not attribute.ref_attr_name:
            given[attribute.name] = Given(attribute, scope)
        elif scope.given is not None and attribute.ref_attr_name in scope.given:
            given[attribute.name] = scope.given[attribute.ref_attr_name]
    return given
