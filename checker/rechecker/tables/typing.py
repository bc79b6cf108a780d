"""Facts about types of the section "Types" of part 1, continued: what is said about the type of a value, and agrees."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

import onnx

from .. import paths
from ..attributes import Kinds, kind
from ..facts import Facts
from ..inference import WITHIN, Claims, declared, unread
from ..reader import Node
from ..schema import VARIADIC, formal_at, is_guest, schema_of
from ..text import texts
from ..values import UNKNOWN, Find, Key, Value, number
from ..valuetypes import UNSET, Type, completed, of_stored, read, spelled
from .computed import computed
from .graph import Makers, at
from .types import Types

OWN_NAME = re.compile(r"\b([tn])(\d+)\b")
LONGEST = 300
"""The characters of a message of shape inference that a finding has."""


def makers(f: Facts, known: Types) -> Makers:
    """The tables of that section."""
    nodes, tensors = f.reading.nodes, f.reading.tensors
    types = cache(lambda: _types(f, known.claims))
    names = cache(lambda: tuple(spelled(it) for it in types()))
    judged = cache(lambda n: _judged(nodes[n], names()))
    open_ = cache(lambda: tuple(_open(f, types())))
    entries = cache(lambda: _interface(f))
    messages = cache(lambda: tuple(_messages(f, known.claims)))

    @cache
    def refused() -> dict[int, tuple[Value, str]]:
        verdicts: dict[int, tuple[Value, str]] = {}
        for n, message in messages():
            if n is not None and 0 <= n < len(nodes):
                verdicts.setdefault(n, (_verdict(f, nodes[n], names(), message), message))
        return verdicts

    @cache
    def contradictions() -> dict[Key, Value]:
        return dict(_contradictions(f, known.claims))

    def interface(row: Callable[[Type], Value]) -> Callable[[], Find]:
        def find(key: Key) -> Value | None:
            type_ = entries().get(number(key))
            if type_ is None:
                return None
            return UNKNOWN if type_.kind == UNSET.kind and f.source == "listing" else row(type_)

        return lambda: find

    def part(position: int) -> Callable[[], Find]:
        return at(lambda n: judged(n)[position], len(nodes))

    return {
        "interface_kind": interface(lambda it: it.kind),
        "interface_element": interface(lambda it: it.element),
        "interface_inner": interface(lambda it: it.inner.kind if it.inner is not None else UNSET.kind),
        "interface_shape": interface(lambda it: it.shape is not None),
        "type_name": at(lambda t: names()[t] or UNKNOWN, len(tensors)),
        "ill_typed": part(0),
        "admitted_types": part(1),
        "split_variables": part(2),
        "contradictions": lambda: lambda key: contradictions().get(key),
        "open_types": lambda: lambda key: open_(),
        "has_type": lambda: lambda key: UNKNOWN if key in open_() else None,
        "inference_ran": lambda: lambda key: UNKNOWN if known.claims.failed else True,
        "objections": lambda: lambda key: tuple(dict.fromkeys(m for n, m in messages() if n is None)),
        "refused": lambda: lambda key: tuple(refused()),
        "admitted": lambda: lambda key: refused()[number(key)][0] if number(key) in refused() else None,
        "objection": lambda: lambda key: refused()[number(key)][1] if number(key) in refused() else None,
    }


def _interface(f: Facts) -> dict[int, Type]:
    """The statements of the main graph on its inputs and outputs; of several entries the first."""
    main = f.reading.graphs[0]
    types: dict[int, Type] = {}
    for row, values in ((main.inputs, main.proto.input), (main.outputs, main.proto.output)):
        for t, value in zip(row, values, strict=True):
            types.setdefault(t, read(value.type))
    return types


def _types(f: Facts, claims: Claims) -> tuple[Type | None, ...]:
    """The known part of each type: inferred, completed by what is declared or stored; else what the texts of operators
    give, in a model with operators of other domains than ONNX's own."""
    stored = {t: of_stored(tensor) for t, tensor in f.initializers()}
    foreign = any(
        (it.domain not in ("", "ai.onnx") or is_guest(it.domain, it.op_type)) and schema_of(it) is not None
        for it in f.reading.nodes
    )
    given = cache(lambda: computed(f, texts()))

    def one(t: int) -> Type | None:
        claim, own = claims.types.get(t) or stored.get(t), declared(f, t)
        type_ = claim if own is None or own.kind == UNSET.kind else completed(claim, own)
        return given()[t] if foreign and spelled(type_) is None else type_

    return tuple(one(t) for t in range(len(f.reading.tensors)))


# ---- Nodes against the type constraints of their schemas ----------------------------------------


def _judged(node: Node, names: tuple[str | None, ...]) -> tuple[Value, Value, Value]:
    """The tensors of types that are not admitted, what is, and the type variables that stand for several types."""
    schema = schema_of(node)
    if schema is None or schema.deprecated:
        return (), (), ()
    variables = {it.type_param_str for it in schema.type_constraints}
    wrong: dict[int, None] = {}
    admitted: dict[str, None] = {}
    bound: dict[str, dict[str, None]] = {}
    for formals, given in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        for position, t in enumerate(given):
            formal = formal_at(formals, position)
            name = None if t is None else names[t]
            if t is None or name is None or formal is None:
                continue
            if name not in formal.types:
                wrong[t] = None
                admitted[f"{formal.name}: {formal.type_str} is {', '.join(sorted(formal.types))}"] = None
            if formal.type_str in variables and (formal.option != VARIADIC or formal.is_homogeneous):
                bound.setdefault(formal.type_str, {})[name] = None
    split = tuple(f"{variable} to {' and '.join(row)}" for variable, row in bound.items() if len(row) > 1)
    return tuple(wrong), tuple(admitted), split


# ---- Contradictions -----------------------------------------------------------------------------


def _contradictions(f: Facts, claims: Claims) -> Iterator[tuple[Key, Value]]:
    """For each tensor the points in which two statements about its type differ."""
    said: dict[int, list[tuple[str, Type]]] = {}
    for t, who, type_ in _statements(f, claims):
        others = said.setdefault(t, [])
        if type_ is not None and type_.kind != UNSET.kind and all(type_ != other for _, other in others):
            others.append((who, type_))
    for t, statements in said.items():
        points = {
            point: None
            for i, (who, type_) in enumerate(statements)
            for other, earlier in statements[:i]
            for point in _differences(other, earlier, who, type_)
        }
        if points:
            yield t, tuple(points)


def _statements(f: Facts, claims: Claims) -> Iterator[tuple[int, str, Type | None]]:
    def stated(value: onnx.ValueInfoProto) -> Type | None:
        return read(value.type) if value.HasField("type") else None

    initializers: dict[int, list[tuple[int, Type | None]]] = {}
    for t, tensor in f.initializers():
        own = of_stored(tensor) if tensor.element else None
        initializers.setdefault(f.reading.tensors[t].graph, []).append((t, own))
    for g, graph in enumerate(f.reading.graphs):
        yield from ((t, "the input list", stated(v)) for t, v in zip(graph.inputs, graph.proto.input, strict=True))
        yield from ((t, "the output list", stated(v)) for t, v in zip(graph.outputs, graph.proto.output, strict=True))
        yield from ((t, "value_info", stated(v)) for t, v in f.annotations(g))
        yield from ((t, "the stored value", type_) for t, type_ in initializers.get(g, ()))
    yield from ((t, "the declaration", declared(f, t)) for t in range(len(f.reading.tensors)))
    yield from ((t, "inference", type_) for t, type_ in claims.types.items())


def _differences(who: str, one: Type, whose: str, other: Type) -> Iterator[str]:
    def against(point: str, mine: object, theirs: object) -> str:
        return f"{point} {mine} by {who}, {theirs} by {whose}"

    if one.kind != other.kind:
        if UNSET.kind not in (one.kind, other.kind):
            yield against("kind", one.kind, other.kind)
        return
    if one.element != other.element and one.element and other.element:
        shown = paths.quoted if one.kind == "opaque" else str
        yield against("element type", shown(one.element), shown(other.element))
    if one.shape is not None and other.shape is not None:
        if len(one.shape) != len(other.shape):
            yield against("rank", len(one.shape), len(other.shape))
        else:
            for axis, (mine, theirs) in enumerate(zip(one.shape, other.shape, strict=True)):
                if isinstance(mine, int) and isinstance(theirs, int) and mine != theirs:
                    yield against(f"dimension {axis}", mine, theirs)
    if one.inner is not None and other.inner is not None:
        yield from (f"elements: {point}" for point in _differences(who, one.inner, whose, other.inner))


# ---- What inference leaves open and what it rejects ---------------------------------------------


def _open(f: Facts, types: tuple[Type | None, ...]) -> Iterator[int]:
    """The tensors in use whose type is open."""
    used = dict.fromkeys(t for graph in f.reading.graphs for t in graph.outputs)
    for node in f.reading.nodes:
        used |= dict.fromkeys(t for t in (*node.inputs, *node.outputs) if t is not None)
    yield from (t for t in used if spelled(types[t]) is None)


def _verdict(f: Facts, node: Node, names: tuple[str | None, ...], message: str) -> Value:
    """False: what inference says against a node counts; unknown where a type or value that it may need is not known."""
    if any(t is not None and names[t] is None for t in node.inputs) or message.startswith(WITHIN):
        return UNKNOWN
    stored = [it for it in node.attributes.values() if kind(f, it) in (Kinds.TENSOR, Kinds.TENSORS)]
    return UNKNOWN if any(unread(f, it) for it in stored) else False


def _messages(f: Facts, claims: Claims) -> Iterator[tuple[int | None, str]]:
    """The errors of inference, with paths for the numbers that it knows."""

    def place(match: re.Match[str]) -> str:
        things = f.reading.tensors if match[1] == "t" else f.reading.nodes
        return things[int(match[2])].path if int(match[2]) < len(things) else match[0]

    for n, message in claims.errors:
        printable = "".join(char if " " <= char <= "~" else "?" for char in message)
        short = printable if len(printable) <= LONGEST else printable[: LONGEST - 3] + "..."
        yield n, OWN_NAME.sub(place, short)
