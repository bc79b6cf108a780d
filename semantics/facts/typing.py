"""Facts about types: what is said about the type of a value, by declaration, by its stored value, by inference."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from ..model.graph import Model, Node, NodeId, TensorId, ValueType
from ..model.path import quote
from ..model.schemas import schema
from ..model.type_protos import spelled
from .inference.claims import Claims, completed
from .inference.errors import WITHIN
from .inference.model import stored_type, unread
from .schemas import formal_at
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable
from .types import ClaimsSource

UNSET = ValueType("unset")
OWN_NAME = re.compile(r"\b([tn])(\d+)\b")
LONGEST = 300
"""The characters of a message of shape inference that are shown."""

Typing = tuple[tuple[TensorId, ...], tuple[str, ...], tuple[str, ...]]
"""Of one node: the ill-typed tensors, the constraints that they are under, the type variables that are split."""


def providers(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Types". claims: see `onnx_facts.providers`."""

    @cache
    def claimed() -> Claims:
        found = claims() if callable(claims) else claims
        return found if found is not None else Claims(failure="shape inference did not run")

    types = cache(lambda: _types(model, claimed()))
    names = cache(lambda: tuple(_name(type_) for type_ in types()))
    typings = cache(lambda: dict(_typings(model, names())))
    open_ = cache(lambda: _open_types(model, types(), claimed()))
    refusals = cache(lambda: _refusals(model, names(), claimed()))

    def rows(part: int) -> Callable[[], Table]:
        return lambda: SetTable({n: found[part] for n, found in typings().items() if found[part]})

    def interface(value: Callable[[ValueType], Value]) -> Callable[[], Table]:
        def build(tensor: TensorId, type_: ValueType) -> Value:
            if type_.kind == UNSET.kind and model.source == "listing":
                return Unknown(f"the listing does not show the type of {model.tensors[tensor].path}")
            return value(type_)

        return lambda: ValueTable({t: build(t, type_) for t, type_ in _interface(model).items()})

    def ran() -> Table:
        failure = claimed().failure
        return ValueTable({(): True if failure is None else Unknown(failure)})

    return {
        "interface_kind": interface(lambda type_: type_.kind),
        "interface_element": interface(lambda type_: type_.element),
        "interface_inner": interface(lambda type_: type_.inner.kind if type_.inner is not None else UNSET.kind),
        "interface_shape": interface(lambda type_: type_.shape is not None),
        "type_name": lambda: ValueTable({t: name or Unknown("the type is open") for t, name in enumerate(names())}),
        "ill_typed": rows(0),
        "admitted_types": rows(1),
        "split_variables": rows(2),
        "contradictions": lambda: SetTable(dict(_contradictions(model, claimed()))),
        "open_types": lambda: SetTable({(): tuple(open_())}),
        "has_type": lambda: ValueTable(dict(open_().items())),
        "inference_ran": ran,
        "objections": lambda: SetTable({(): tuple(m for n, m in _messages(model, claimed()) if n is None)}),
        "refused": lambda: SetTable({(): tuple(refusals())}),
        "admitted": lambda: ValueTable({n: verdict for n, (verdict, _) in refusals().items()}),
        "objection": lambda: ValueTable({n: message for n, (_, message) in refusals().items()}),
    }


def _interface(model: Model) -> dict[TensorId, ValueType]:
    """What the main graph states for its inputs and outputs; of several entries the first."""
    main = model.graphs[0]
    found: dict[TensorId, ValueType] = {}
    for tensors, types in ((main.inputs, main.input_types), (main.outputs, main.output_types)):
        for position, tensor in enumerate(tensors):
            type_ = types[position] if position < len(types) else None
            found.setdefault(tensor, type_ or UNSET)
    return found


def _types(model: Model, claims: Claims) -> tuple[ValueType | None, ...]:
    """What is known of each type: inferred, completed by what is declared or stored."""
    stored = {t: stored_type(it) for g in model.graphs for t, it in (*g.initializers, *g.sparse_initializers)}

    def known(tensor: TensorId, declared: ValueType | None) -> ValueType | None:
        claim = claims.types.get(tensor) or stored.get(tensor)
        if declared is None or declared.kind == UNSET.kind or declared is claim:
            return claim
        return completed(claim, declared)

    return tuple(known(t, tensor.declared) for t, tensor in enumerate(model.tensors))


def _name(type_: ValueType | None) -> str | None:
    if type_ is not None and type_.kind == "tensor":
        return f"tensor({type_.element})" if type_.element else None
    name = spelled(type_)
    return None if name is None else name.replace("sparse_tensor(", "tensor(")


# ---- Nodes against the type constraints of their schemas --------------------------------------


def _typings(model: Model, names: tuple[str | None, ...]) -> Iterator[tuple[NodeId, Typing]]:
    seen: dict[tuple[object, ...], tuple[tuple[tuple[int, int], ...], tuple[str, ...], tuple[str, ...]] | None] = {}
    for n, node in enumerate(model.nodes):
        if node.version is None:
            continue
        inputs = tuple([None if t is None else names[t] for t in node.inputs])
        outputs = tuple([None if t is None else names[t] for t in node.outputs])
        key = (node.domain, node.op_type, node.version, inputs, outputs)
        if key not in seen:
            seen[key] = _judged(node, inputs, outputs)
        found = seen[key]
        if found is not None:
            positions, admitted, split = found
            sides = (node.inputs, node.outputs)
            tensors = dict.fromkeys(t for side, i in positions if (t := sides[side][i]) is not None)
            yield n, (tuple(tensors), admitted, split)


def _judged(
    node: Node, inputs: tuple[str | None, ...], outputs: tuple[str | None, ...]
) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...], tuple[str, ...]] | None:
    """The positions (0 input or 1 output, index) with a type that is not admitted, their constraints, and the type
    variables with several types; None when there are none of both."""
    it = schema(node.domain, node.op_type, node.version)
    if it is None or it.deprecated:
        return None
    wrong: list[tuple[int, int]] = []
    constraints: dict[str, None] = {}
    bound: dict[str, dict[str, None]] = {}
    for side, (formals, actuals) in enumerate(((it.inputs, inputs), (it.outputs, outputs))):
        for position, name in enumerate(actuals):
            formal = formal_at(formals, position)
            if name is None or formal is None:
                continue
            if name not in formal.types:
                wrong.append((side, position))
                constraints[f"{formal.name}: {formal.type} is {_listed(formal.types)}"] = None
            if formal.type in it.type_constraints and (formal.option != "variadic" or formal.homogeneous):
                bound.setdefault(formal.type, {})[name] = None
    split = tuple(f"{variable} to {' and '.join(types)}" for variable, types in bound.items() if len(types) > 1)
    return (tuple(wrong), tuple(constraints), split) if wrong or split else None


def _listed(types: tuple[str, ...]) -> str:
    return ", ".join(sorted(types))


# ---- Contradictions ---------------------------------------------------------------------------


def _contradictions(model: Model, claims: Claims) -> Iterator[tuple[Key, tuple[Element, ...]]]:
    """For each tensor the points in which two statements about its type differ."""
    said: dict[TensorId, list[tuple[str, ValueType]]] = {}
    for tensor, who, type_ in _statements(model, claims):
        if type_ is not None and type_.kind != UNSET.kind:
            others = said.setdefault(tensor, [])
            if all(type_ is not other and type_ != other for _, other in others):
                others.append((who, type_))
    for tensor, statements in said.items():
        if len(statements) > 1:
            points = {
                point: None
                for i, (who, type_) in enumerate(statements)
                for other_who, other in statements[:i]
                for point in _differences(other_who, other, who, type_)
            }
            if points:
                yield tensor, tuple(points)


def _statements(model: Model, claims: Claims) -> Iterator[tuple[TensorId, str, ValueType | None]]:
    for graph in model.graphs:
        for tensor, type_ in zip(graph.inputs, graph.input_types, strict=False):
            yield tensor, "the input list", type_
        for tensor, type_ in zip(graph.outputs, graph.output_types, strict=False):
            yield tensor, "the output list", type_
        for tensor, type_ in graph.value_infos:
            yield tensor, "value_info", type_
        for tensor, constant in (*graph.initializers, *graph.sparse_initializers):
            yield tensor, "the stored value", stored_type(constant) if constant.element else None
    for tensor, value in enumerate(model.tensors):
        yield tensor, "the declaration", value.declared
    for tensor, type_ in claims.types.items():
        yield tensor, "inference", type_


def _differences(who: str, one: ValueType, other_who: str, other: ValueType) -> Iterator[str]:
    def against(point: str, mine: object, theirs: object) -> str:
        return f"{point} {mine} by {who}, {theirs} by {other_who}"

    if one.kind != other.kind:
        if UNSET.kind not in (one.kind, other.kind):
            yield against("kind", one.kind, other.kind)
        return
    if one.element != other.element and one.element and other.element:
        shown = quote if one.kind == "opaque" else str
        yield against("element type", shown(one.element), shown(other.element))
    if one.shape is not None and other.shape is not None:
        if len(one.shape) != len(other.shape):
            yield against("rank", len(one.shape), len(other.shape))
        else:
            for axis, (mine, theirs) in enumerate(zip(one.shape, other.shape, strict=True)):
                if isinstance(mine, int) and isinstance(theirs, int) and mine != theirs:
                    yield against(f"dimension {axis}", mine, theirs)
    if one.inner is not None and other.inner is not None:
        yield from (f"elements: {point}" for point in _differences(who, one.inner, other_who, other.inner))


# ---- What inference leaves open and what it rejects -------------------------------------------


def _open_types(model: Model, types: tuple[ValueType | None, ...], claims: Claims) -> Mapping[TensorId, Unknown]:
    """The tensors in use whose type is open, with the reason."""
    used: dict[TensorId, None] = dict.fromkeys(tensor for graph in model.graphs for tensor in graph.outputs)
    writers: dict[TensorId, NodeId] = {}
    for n, node in enumerate(model.nodes):
        for tensor in node.inputs:
            if tensor is not None:
                used[tensor] = None
        for tensor in node.outputs:
            if tensor is not None:
                used[tensor] = None
                writers[tensor] = n
    rejected = {n for n, _ in claims.errors}
    found = {}
    for tensor in used:
        if _name(types[tensor]) is None:
            found[tensor] = Unknown(_reason(model, tensor, writers.get(tensor), rejected, claims))
    return found


def _reason(model: Model, tensor: TensorId, writer: NodeId | None, rejected: set[NodeId | None], claims: Claims) -> str:
    path = model.tensors[tensor].path
    if claims.failure is not None:
        return f"the type of {path} is not declared, and {claims.failure}"
    if writer is not None and writer in claims.left_out:
        return f"the type of {path} is not declared, and {claims.left_out[writer]}"
    if writer is not None and writer in rejected:
        return f"shape inference rejects the node that writes {path}"
    return f"the type of {path} is not declared, and shape inference does not determine it"


def _refusals(model: Model, names: tuple[str | None, ...], claims: Claims) -> dict[NodeId, tuple[Value, str]]:
    """The nodes that inference rejects: False, or unknown when a type or value that it needs is; and the message."""
    found: dict[NodeId, tuple[Value, str]] = {}
    for n, message in _messages(model, claims):
        if n is not None and 0 <= n < len(model.nodes):
            found.setdefault(n, (_verdict(model, model.nodes[n], names, message), message))
    return found


def _verdict(model: Model, node: Node, names: tuple[str | None, ...], message: str) -> Value:
    for tensor in node.inputs:
        if tensor is not None and names[tensor] is None:
            return Unknown(f"the type of {model.tensors[tensor].path} is open; inference says: {message}")
    if message.startswith(WITHIN):
        return Unknown(f"inference gives up on {node.path} {message}")
    if any(unread(it) for it in node.attributes.values() if it.kind in ("TENSOR", "TENSORS")):
        return Unknown(f"a stored tensor of {node.path} is not read; inference says: {message}")
    return False


def _messages(model: Model, claims: Claims) -> Iterator[tuple[NodeId | None, str]]:
    """The errors of inference, with the model's places for the numbers that inference knows."""

    def place(match: re.Match[str]) -> str:
        elements = model.tensors if match[1] == "t" else model.nodes
        number = int(match[2])
        return elements[number].path if number < len(elements) else match[0]

    for n, message in claims.errors:
        printable = "".join(c if " " <= c <= "~" else "?" for c in message)
        short = printable if len(printable) <= LONGEST else printable[: LONGEST - 3] + "..."
        yield n, OWN_NAME.sub(place, short)
