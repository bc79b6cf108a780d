"""The facts about computed types: value_type, value_kind, item_type, content_type, declared_type.

From graph inputs and stored values forward, node by node: an output has the type of the inputs that share its type
variable, the one type that its schema admits, or what the operator's text says of it; a body gets what its node gives
it. Shapes are left out. A declared type counts where none is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import onnx
from lark import Tree

from .. import paths
from ..attributes import Kinds, default, kind, payload, valued
from ..facts import Facts, order
from ..inference import declared
from ..reader import Node
from ..schema import VARIADIC, Port, Schema, formal_at, operator, schema_of, text_name
from ..stored import ELEMENTS, Stored
from ..text import Text
from ..values import UNKNOWN, Find, Value
from ..valuetypes import Type, of_stored, read, spelled
from .graph import Makers, at

INT64, BOOL = Type("tensor", "int64"), Type("tensor", "bool")


def makers(f: Facts, text: Text) -> Makers:
    """The tables of these facts. text: of the specification, for the operators' own."""
    count = len(f.reading.tensors)
    types = cache(lambda: computed(f, text))

    def row(shown: Callable[[Type], str | None]) -> Callable[[], Find]:
        def value(t: int) -> Value:
            type_ = types()[t]
            said = None if type_ is None else shown(type_)
            return UNKNOWN if said is None else said

        return at(value, count)

    return {
        "value_type": row(exact),
        "value_kind": row(lambda type_: type_.kind),
        "item_type": row(lambda type_: exact(type_.inner if type_.kind == "sequence" else type_)),
        "content_type": row(lambda type_: exact(type_.inner if type_.kind == "optional" else type_)),
        "declared_type": at(lambda t: exact(declared(f, t)) or "", count),
    }


def exact(type_: Type | None) -> str | None:
    """The type as ONNX spells it, a sparse tensor as such; None where a part is open."""
    text = spelled(type_)
    sparse = text is not None and type_ is not None and type_.kind == "sparse_tensor"
    if type_ is not None and type_.inner is not None and text is not None:
        inner = exact(type_.inner)
        head = text.partition(",")[0] + "," if type_.kind == "map" else text.partition("(")[0] + "("
        return None if inner is None else f"{head}{inner})"
    return f"sparse_{text}" if sparse else text


@dataclass(frozen=True, slots=True)
class _Walk:
    """types: what is computed by now."""

    facts: Facts
    text: Text
    stored: Sequence[Sequence[tuple[int, Stored]]]
    types: dict[int, Type | None] = field(default_factory=dict)

    def declared(self, t: int) -> Type | None:
        """The declared type, if all of it is."""
        type_ = declared(self.facts, t)
        return None if type_ is None or exact(type_) is None else _shapeless(type_)

    def known(self, t: int) -> Type | None:
        """The computed type, else the declared one."""
        return self.types.get(t) or self.declared(t)


def computed(f: Facts, text: Text) -> list[Type | None]:
    """The type of each tensor."""
    stored: list[list[tuple[int, Stored]]] = [[] for _ in f.reading.graphs]
    for t, tensor in f.initializers():
        stored[f.reading.tensors[t].graph].append((t, tensor))
    walk = _Walk(f, text, stored)
    walk.types.update((t, walk.declared(t)) for t in f.reading.graphs[0].inputs)
    _graph(walk, 0)
    return [walk.known(t) for t in range(len(f.reading.tensors))]


def _graph(walk: _Walk, g: int) -> None:
    """All nodes of a graph that can be reached from its inputs and stored values."""
    for t, tensor in walk.stored[g]:
        own = _shapeless(of_stored(tensor)) if tensor.element else None
        walk.types[t] = own or walk.known(t)
    for n in order(walk.facts, g):
        node = walk.facts.reading.nodes[n]
        inputs = [None if t is None else walk.known(t) for t in node.inputs]
        rule = _HOLDERS.get(operator(node))
        types = _outputs(walk, node, inputs) if rule is None else rule(walk, node, inputs)
        for output, type_ in zip(node.outputs, types, strict=False):
            if output is not None and exact(type_) is not None:
                walk.types[output] = type_


def _shapeless(type_: Type) -> Type:
    return replace(type_, shape=None, inner=None if type_.inner is None else _shapeless(type_.inner))


# ---- Operators without bodies -------------------------------------------------------------------


def _outputs(walk: _Walk, node: Node, inputs: Sequence[Type | None]) -> list[Type | None]:
    schema = schema_of(node)
    if schema is None:
        return []
    variables = {it.type_param_str for it in schema.type_constraints}

    def shared(formal: Port) -> bool:
        return formal.type_str in variables and (formal.option != VARIADIC or formal.is_homogeneous)

    bound: dict[str, Type] = {}
    for position, type_ in enumerate(inputs):
        formal = formal_at(schema.inputs, position)
        if formal is not None and type_ is not None and shared(formal):
            bound.setdefault(formal.type_str, type_)
    types: list[Type | None] = []
    for position in range(len(node.outputs)):
        formal = formal_at(schema.outputs, position)
        if formal is None:
            types.append(None)
        elif formal.type_str in bound and shared(formal):
            types.append(bound[formal.type_str])
        elif len(formal.types) == 1:
            types.append(named(formal.types[0]))
        else:
            types.append(_by_text(walk, node, schema, formal.name, bound, inputs))
    return types


@cache
def named(text: str) -> Type | None:
    """The type that a schema spells."""
    name, _, rest = text.partition("(")
    rest = rest.removesuffix(")")
    match name.strip():
        case "tensor" | "sparse_tensor" as tensor:
            return Type(tensor, rest)
        case "seq" | "optional" as holder:
            inner = named(rest)
            return None if inner is None else Type("sequence" if holder == "seq" else "optional", inner=inner)
        case "map":
            key, _, value = rest.partition(",")
            inner = named(value.strip())
            return None if inner is None else Type("map", key.strip(), inner=inner)
    return None


@dataclass(frozen=True, slots=True)
class _Site:
    """A node beside the text of its operator: what stands for its names there."""

    facts: Facts
    node: Node
    schema: Schema
    inputs: Sequence[Type | None]
    types: dict[str, Type | None]


def _by_text(
    walk: _Walk, node: Node, schema: Schema, output: str, bound: Mapping[str, Type], inputs: Sequence[Type | None]
) -> Type | None:
    """The type of an output by the operator's text: its `type` statements in order, or an entry of a list."""
    stated = walk.text.operators.operator(text_name(node), schema.since_version)
    if stated is None:
        return None
    site = _Site(walk.facts, node, schema, inputs, {**bound})
    variables = {it.type_param_str for it in schema.type_constraints}
    if stated.inputs:  # in a text all inputs of a type variable have one type, of a variadic input too
        for position, type_ in enumerate(inputs):
            kind = stated.inputs[min(position, len(stated.inputs) - 1)].type
            if type_ is not None and kind in variables:
                site.types.setdefault(kind, type_)
    for statement in stated.statements:
        match statement.tree:
            case Tree(data="type_statement", children=[name, expr]):
                site.types[str(name)] = _type(expr, site)
            case Tree(data="whole", children=[name, Tree(data="index") as expr]) if str(name) == output:
                return _type(expr, site)
    return next((site.types.get(port.type) for port in stated.outputs if port.name == output), None)


def _type(expr: object, site: _Site) -> Type | None:
    """The type that a type expression denotes, or of an entry of a sequence; None for any other expression."""
    match expr:
        case Tree(data="var", children=[name]):
            element = Type("tensor", str(name)) if str(name) in ELEMENTS.values() else None
            return site.types.get(str(name)) or _of(str(name), site) or element
        case Tree(data="call", children=["data_type", Tree(data="var", children=[name])]):
            code = _number(str(name), site)
            return None if code is None else Type("tensor", ELEMENTS.get(code, ""))
        case Tree(data="call", children=["type_of", Tree(data="var", children=[name])]):
            return _of(str(name), site)
        case Tree(data="call", children=["type_of", Tree(data="index") as inner]):
            return _type(inner, site)
        case Tree(data="call", children=["sequence_of" | "optional_of" as maker, inner]):
            type_ = _type(inner, site)
            return None if type_ is None else Type(str(maker).removesuffix("_of"), inner=type_)
        case Tree(data="call", children=["map_of", keys, inner]):
            key, type_ = _type(keys, site), _type(inner, site)
            return None if key is None or type_ is None else Type("map", key.element, inner=type_)
        case Tree(data="ite", children=[test, yes, no]):
            holds = _holds(test, site)
            return None if holds is None else _type(yes if holds else no, site)
        case Tree(data="index", children=[Tree(data="var", children=[name]), *_]):
            return _entry(_of(str(name), site))
        case Tree(data="index", children=[Tree(data="call", children=["content", inner]), *_]):
            type_ = _type(inner, site)
            return type_.inner if type_ is not None and type_.kind == "optional" else type_
    return None


def _entry(type_: Type | None) -> Type | None:
    return type_.inner if type_ is not None and type_.kind == "sequence" else None


def _holds(expr: object, site: _Site) -> bool | None:
    match expr:
        case Tree(data="given", children=[name]):
            return str(name) in site.node.attributes or _of(str(name), site) is not None
        case Tree(data="or", children=parts):
            truths = [_holds(part, site) for part in parts]
            return True if True in truths else None if None in truths else False
        case Tree(data="compare", children=[Tree(data="var", children=[name]), "=", Tree(data="int") as other]):
            value = _number(str(name), site)
            return None if value is None else value == int(str(other.children[0]))
    return None


def _of(name: str, site: _Site) -> Type | None:
    """The type of an input, or of what an attribute holds."""
    for position, formal in enumerate(site.schema.inputs):
        if formal.name == name:
            return site.inputs[position] if position < len(site.inputs) else None
    attribute = site.node.attributes.get(name)
    if attribute is None or not valued(site.facts, attribute):
        return None
    match kind(site.facts, attribute):
        case Kinds.TENSOR:
            element = ELEMENTS.get(attribute.t.data_type, "")
        case Kinds.SPARSE_TENSOR:
            element = ELEMENTS.get(attribute.sparse_tensor.values.data_type, "")
        case Kinds.TYPE_PROTO:
            return _shapeless(read(attribute.tp))
        case _:
            return None
    return Type("tensor", element) if element else None


def _number(name: str, site: _Site) -> int | None:
    attribute = site.node.attributes.get(name)
    if attribute is not None:
        value = payload(site.facts, attribute)
        return value if isinstance(value, int) else None
    stated = default(site.node, name)
    return stated.i if stated is not None and stated.type == onnx.AttributeProto.INT else None


# ---- Operators with bodies ----------------------------------------------------------------------


def _enter(walk: _Walk, body: int, given: Sequence[Type | None]) -> list[Type | None]:
    """The types of the outputs of a body whose inputs get these, a declaration coming first."""
    graph = walk.facts.reading.graphs[body]
    for position, t in enumerate(graph.inputs):
        walk.types[t] = walk.declared(t) or (given[position] if position < len(given) else None)
    _graph(walk, body)
    return [walk.known(t) for t in graph.outputs]


def _body(walk: _Walk, node: Node, name: str) -> int | None:
    wanted = paths.body(node.path, name)
    return next((b for b in node.bodies if walk.facts.reading.graphs[b].path == wanted), None)


def _if(walk: _Walk, node: Node, _inputs: Sequence[Type | None]) -> list[Type | None]:
    bodies = [_body(walk, node, name) for name in ("then_branch", "else_branch")]
    branches = [_enter(walk, body, ()) for body in bodies if body is not None]
    rows = [[row[i] for row in branches if i < len(row)] for i in range(max(map(len, branches), default=0))]
    return [row[0] if all(type_ == row[0] for type_ in row) else None for row in rows]


def _loop(walk: _Walk, node: Node, inputs: Sequence[Type | None]) -> list[Type | None]:
    body = _body(walk, node, "body")
    return [] if body is None else _enter(walk, body, (INT64, BOOL, *inputs[2:]))[1:]


def _scan(walk: _Walk, node: Node, inputs: Sequence[Type | None]) -> list[Type | None]:
    body, schema = _body(walk, node, "body"), schema_of(node)
    first = 1 if schema is not None and schema.since_version == 8 else 0
    return [] if body is None else _enter(walk, body, inputs[first:])


def _sequence_map(walk: _Walk, node: Node, inputs: Sequence[Type | None]) -> list[Type | None]:
    body = _body(walk, node, "body")
    items = [_entry(type_) or type_ for type_ in inputs]
    types = [] if body is None else _enter(walk, body, items)
    return [None if type_ is None else Type("sequence", inner=type_) for type_ in types]


_HOLDERS: Mapping[str, Callable[[_Walk, Node, Sequence[Type | None]], list[Type | None]]] = {
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "SequenceMap": _sequence_map,
}
"""For each operator that holds graphs the types of its outputs, and what its bodies are given."""
