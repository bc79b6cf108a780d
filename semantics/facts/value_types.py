"""Types that are computed: the facts value_type, value_kind, item_type and content_type of `spec/1-syntax.sonnx`.

From graph inputs and stored values forward, node by node, by the types that schemas and the operators' texts prescribe:
what an output has in common with an input, the `type` statements, an entry of a sequence; bodies with what their nodes
give them. Shapes are left out. A declared type counts where none is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NoReturn

from sonnx.spec.language.syntax import Expr, Operator
from sonnx.spec.library import specification

from ..errors import InternalError
from ..model.graph import Constant, GraphId, Model, Node, NodeId, TensorId, ValueType
from ..model.schemas import Formal, Schema, element_types, normal_domain, schema
from ..model.type_protos import spelled
from ..operators.application import Application
from ..operators.program import Program
from .schemas import formal_at
from .structure import Table, Unknown, Value, ValueTable

Type = ValueType | None
"""A type without shape; None where it is not known."""
INT64, BOOL = ValueType("tensor", "int64"), ValueType("tensor", "bool")


def providers(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of this file."""
    types = cache(lambda: computed(model))

    def rows(value: Callable[[ValueType], str | None]) -> Callable[[], Table]:
        def build() -> Table:
            return ValueTable({t: _stated(model, t, type_, value) for t, type_ in enumerate(types())})

        return build

    return {
        "value_type": rows(spelled),
        "value_kind": rows(lambda type_: type_.kind),
        "item_type": rows(lambda type_: spelled(type_.inner if type_.kind == "sequence" else type_)),
        "content_type": rows(lambda type_: spelled(type_.inner if type_.kind == "optional" else type_)),
        "declared_type": lambda: ValueTable({t: spelled(_declared(model, t)) or "" for t in range(len(model.tensors))}),
    }


def _stated(model: Model, t: TensorId, type_: Type, value: Callable[[ValueType], str | None]) -> Value:
    found = None if type_ is None else value(type_)
    if found is not None:
        return found
    return Unknown(f"the type of {model.tensors[t].path} is not declared, and does not follow from its operator")


def computed(model: Model) -> tuple[Type, ...]:
    """The type of each tensor by number."""
    walk = _Walk(model, Program(model, _no_meaning), {})
    main = model.graphs[0]
    for t in main.inputs:
        walk.types[t] = _declared(model, t)
    _graph(walk, 0)
    return tuple(walk.types.get(t) or _declared(model, t) for t in range(len(model.tensors)))


def _no_meaning(_application: Application) -> NoReturn:
    raise InternalError("types are computed without values")


@dataclass(frozen=True, slots=True)
class _Walk:
    """types: what is computed by now."""

    model: Model
    program: Program
    types: dict[TensorId, Type]


def _graph(walk: _Walk, graph: GraphId) -> None:
    """All nodes of a graph whose inputs have types by now."""
    held = walk.model.graphs[graph]
    for t, constant in (*held.initializers, *held.sparse_initializers):
        walk.types[t] = _stored(constant) or walk.types.get(t) or _declared(walk.model, t)
    for n in walk.program.order(graph):
        node = walk.model.nodes[n]
        inputs = tuple(None if t is None else _known(walk, t) for t in node.inputs)
        rule = _BODIES.get(node.op_type) if not normal_domain(node.domain) else None
        found = rule(walk, n, inputs) if rule is not None else _outputs(node, inputs)
        for output, type_ in zip(node.outputs, found, strict=False):
            if output is not None and type_ is not None and spelled(type_) is not None:
                walk.types[output] = type_


def _known(walk: _Walk, t: TensorId) -> Type:
    return walk.types.get(t) or _declared(walk.model, t)


def _declared(model: Model, t: TensorId) -> Type:
    type_ = model.tensors[t].declared
    return None if type_ is None or spelled(type_) is None else _shapeless(type_)


def _shapeless(type_: ValueType) -> ValueType:
    inner = None if type_.inner is None else _shapeless(type_.inner)
    return replace(type_, shape=None, inner=inner)


def _stored(constant: Constant) -> Type:
    return ValueType("sparse_tensor" if constant.sparse else "tensor", constant.element) if constant.element else None


# ---- Operators without bodies -----------------------------------------------------------------


def _outputs(node: Node, inputs: Sequence[Type]) -> Sequence[Type]:
    it = schema(node.domain, node.op_type, node.version)
    if it is None:
        return ()
    bound: dict[str, Type] = {}
    for position, type_ in enumerate(inputs):
        formal = formal_at(it.inputs, position)
        if formal is not None and type_ is not None and _shared(it, formal):
            bound.setdefault(formal.type, type_)
    return [_output(node, it, formal_at(it.outputs, i), bound, inputs) for i in range(len(node.outputs))]


def _shared(it: Schema, formal: Formal) -> bool:
    """Whether all inputs and outputs of the formal one's type variable have one type."""
    return formal.type in it.type_constraints and (formal.option != "variadic" or formal.homogeneous)


def _output(node: Node, it: Schema, formal: Formal | None, bound: Mapping[str, Type], inputs: Sequence[Type]) -> Type:
    if formal is None:
        return None
    if formal.type in bound and _shared(it, formal):
        return bound[formal.type]
    if len(formal.types) == 1:
        return read(formal.types[0])
    text = definition(node)
    if text is None:
        return None
    site = _Site(node, it, inputs, {**bound})
    for statement in text.statements:
        if statement.kind == "type":
            site.types[statement.names[0]] = _evaluate(statement.expr, site)
        elif statement.kind == "result" and formal.name in statement.names and statement.expr.head == "index":
            return _evaluate(statement.expr, site)
    port = next((port for port in text.outputs if port.name == formal.name), None)
    return None if port is None else site.types.get(port.type)


def definition(node: Node) -> Operator | None:
    """The text of a node's operator in its version."""
    if normal_domain(node.domain) or node.version is None:
        return None
    texts = specification().operators.get(node.op_type, ())
    return next((it for it in texts if it.first <= node.version <= it.last), None)


@dataclass(frozen=True, slots=True)
class _Site:
    node: Node
    schema: Schema
    inputs: Sequence[Type]
    types: dict[str, Type]


def _evaluate(expr: Expr, site: _Site) -> Type:
    """The type that a type expression denotes, and the type of an entry of a sequence or optional; None for others."""
    match expr:
        case Expr(head="var", args=(str() as name,)):
            return site.types.get(name) or _of_name(name, site) or _named(name)
        case Expr(head="call", args=("data_type", Expr(head="var", args=(str() as name,)))):
            code = _number(name, site)
            return None if code is None else ValueType("tensor", element_types().get(code, ""))
        case Expr(head="call", args=("type_of", Expr(head="var", args=(str() as name,)))):
            return _of_name(name, site)
        case Expr(head="call", args=("sequence_of" | "optional_of" as maker, Expr() as inner)):
            type_ = _evaluate(inner, site)
            return None if type_ is None else ValueType(str(maker).removesuffix("_of"), inner=type_)
        case Expr(head="ite", args=(Expr() as test, Expr() as yes, Expr() as no)):
            holds = _test(test, site)
            return None if holds is None else _evaluate(yes if holds else no, site)
        case Expr(head="index", args=(Expr(head="var", args=(str() as name,)), *_)):
            return _entry(_of_name(name, site))
        case Expr(head="index", args=(Expr(head="call", args=("content", Expr() as inner)), *_)):
            type_ = _evaluate(inner, site)
            return type_.inner if type_ is not None and type_.kind == "optional" else type_
    return None


def _named(name: str) -> Type:
    return ValueType("tensor", name) if name in element_types().values() else None


def _entry(type_: Type) -> Type:
    return type_.inner if type_ is not None and type_.kind == "sequence" else None


def _test(expr: Expr, site: _Site) -> bool | None:
    match expr:
        case Expr(head="given", args=(str() as name,)):
            return name in site.node.attributes or _of_name(name, site) is not None
        case Expr(head="or", args=args):
            parts = [_test(part, site) for part in args if isinstance(part, Expr)]
            return True if True in parts else None if None in parts else False
        case Expr(head="compare", args=(Expr(head="var", args=(str() as name,)), "=", Expr() as other)):
            found = _number(name, site)
            return None if found is None or other.head != "int" else found == other.args[0]
    return None


def _of_name(name: str, site: _Site) -> Type:
    """The type of an input, or of what an attribute holds."""
    for position, formal in enumerate(site.schema.inputs):
        if formal.name == name:
            return site.inputs[position] if position < len(site.inputs) else None
    attribute = site.node.attributes.get(name)
    match attribute.value if attribute is not None else None:
        case Constant() as constant:
            return ValueType("tensor", constant.element) if constant.element else None
        case ValueType() as type_:
            return _shapeless(type_)
    return None


def _number(name: str, site: _Site) -> int | None:
    attribute = site.node.attributes.get(name)
    if attribute is None and (formal := site.schema.attributes.get(name)) is not None:
        attribute = formal.default
    return attribute.value if attribute is not None and isinstance(attribute.value, int) else None


@cache
def read(text: str) -> Type:
    """The type that a schema spells: tensor(float), seq(tensor(int64)), map(int64, tensor(float))."""
    kind, _, rest = text.partition("(")
    rest = rest.removesuffix(")")
    match kind.strip():
        case "tensor" | "sparse_tensor" as name:
            return ValueType(name, rest)
        case "seq" | "optional" as name:
            inner = read(rest)
            return None if inner is None else ValueType("sequence" if name == "seq" else name, inner=inner)
        case "map":
            key, _, value = rest.partition(",")
            inner = read(value.strip())
            return None if inner is None else ValueType("map", key.strip(), inner=inner)
    return None


# ---- Operators with bodies --------------------------------------------------------------------


def _enter(walk: _Walk, body: GraphId, given: Sequence[Type]) -> list[Type]:
    """The types of the outputs of a body whose inputs get these, a declaration coming first."""
    held = walk.model.graphs[body]
    for position, t in enumerate(held.inputs):
        walk.types[t] = _declared(walk.model, t) or (given[position] if position < len(given) else None)
    _graph(walk, body)
    return [_known(walk, t) for t in held.outputs]


def _body(walk: _Walk, n: NodeId, name: str) -> GraphId | None:
    return dict(walk.model.nodes[n].bodies).get(name)


def _if(walk: _Walk, n: NodeId, _inputs: Sequence[Type]) -> Sequence[Type]:
    bodies = [_body(walk, n, name) for name in ("then_branch", "else_branch")]
    branches = [_enter(walk, body, ()) for body in bodies if body is not None]
    count = max(map(len, branches), default=0)
    rows = [[row[i] for row in branches if i < len(row)] for i in range(count)]
    return [row[0] if all(type_ == row[0] for type_ in row) else None for row in rows]


def _loop(walk: _Walk, n: NodeId, inputs: Sequence[Type]) -> Sequence[Type]:
    body = _body(walk, n, "body")
    return [] if body is None else _enter(walk, body, (INT64, BOOL, *inputs[2:]))[1:]


def _scan(walk: _Walk, n: NodeId, inputs: Sequence[Type]) -> Sequence[Type]:
    body = _body(walk, n, "body")
    first = 1 if walk.model.nodes[n].version == 8 else 0
    return [] if body is None else _enter(walk, body, inputs[first:])


def _sequence_map(walk: _Walk, n: NodeId, inputs: Sequence[Type]) -> Sequence[Type]:
    body = _body(walk, n, "body")
    if body is None:
        return []
    items = [_entry(type_) or type_ for type_ in inputs]
    return [None if type_ is None else ValueType("sequence", inner=type_) for type_ in _enter(walk, body, items)]


_BODIES: Mapping[str, Callable[[_Walk, NodeId, Sequence[Type]], Sequence[Type]]] = {
    "If": _if, "Loop": _loop, "Scan": _scan, "SequenceMap": _sequence_map,
}  # fmt: skip
"""For each operator that holds graphs the types of its outputs, and what its bodies are given."""
