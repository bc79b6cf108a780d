"""Facts about operators: the section "Operators and attributes" of `spec/1-syntax.sonnx`, read off G and the schemas.

`providers` also brings the facts of `type_facts`, so that both sections come from one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from . import type_facts
from .graph import Attribute, Model, Node, NodeId, TensorId
from .schemas import Formal, Schema, normal_domain, schema
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable
from .type_facts import ClaimsSource


def providers(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the sections "Operators and attributes" and "Types, shapes, constants".

    claims: the result of shape inference, a function that waits for it, or None when it did not run.
    """
    return _operators(model) | type_facts.providers(model, claims)


def _operators(model: Model) -> dict[str, Callable[[], Table]]:
    def per_node(value: Callable[[Node], Value | None]) -> Callable[[], Table]:
        return lambda: ValueTable({i: v for i, node in enumerate(model.nodes) if (v := value(node)) is not None})

    def names(members: Callable[[Node], Iterable[Element]]) -> Callable[[], Table]:
        return lambda: SetTable({i: row for i, node in enumerate(model.nodes) if (row := tuple(members(node)))})

    def pairs(rows: Callable[[Node], Iterable[tuple[str, Value]]]) -> Callable[[], Table]:
        return lambda: ValueTable({(i, key): v for i, node in enumerate(model.nodes) for key, v in rows(node)})

    return {
        "operator": per_node(operator),
        "applications": lambda: SetTable(_applications(model)),
        "known": per_node(lambda node: schema_of(node) is not None),
        "version": per_node(_version),
        "schema_determinism": per_node(_determinism),
        "attributes": names(lambda node: it.attributes if (it := schema_of(node)) else ()),
        "written": names(lambda node: node.attributes),
        "unwritten": names(lambda node: _unwritten(node, defaulted=False)),
        "defaulted": names(lambda node: _unwritten(node, defaulted=True)),
        "int_attribute": pairs(lambda node: _values(node, "INT")),
        "float_attribute": pairs(lambda node: _values(node, "FLOAT")),
        "text_attribute": pairs(lambda node: _values(node, "STRING")),
        "ints_attribute": pairs(lambda node: _values(node, "INTS")),
        "texts_attribute": pairs(lambda node: _values(node, "STRINGS")),
        "positions": lambda: SetTable(dict(_positions(model))),
        "given_inputs": names(lambda node: (formal.name for formal, _ in _actual(node, "inputs"))),
        "given_outputs": names(lambda node: (formal.name for formal, _ in _actual(node, "outputs"))),
        "absent_inputs": names(_absent_inputs),
        "input": pairs(lambda node: ((formal.name, actual[0]) for formal, actual in _actual(node, "inputs"))),
        "output": pairs(lambda node: ((formal.name, actual[0]) for formal, actual in _actual(node, "outputs"))),
        "type_variables": names(_shared),
        "typed": lambda: SetTable(dict(_typed(model))),
        "first_typed": lambda: ValueTable({key: row[0] for key, row in _typed(model)}),
    }


# ---- Operator and schema ----------------------------------------------------------------------


def operator(node: Node) -> str:
    """The operator of a node, with its domain in front where that is not ONNX's own."""
    domain = normal_domain(node.domain)
    return f"{domain}::{node.op_type}" if domain else node.op_type


def schema_of(node: Node) -> Schema | None:
    """The schema that is in force for a node; None when ONNX does not define its operator."""
    return schema(*_key(node))


def _key(node: Node) -> tuple[str, str, int | None]:
    return normal_domain(node.domain), node.op_type, node.version


def _applications(model: Model) -> dict[Key, tuple[Element, ...]]:
    found: dict[str, list[NodeId]] = {}
    for i, node in enumerate(model.nodes):
        found.setdefault(operator(node), []).append(i)
    return {name: tuple(row) for name, row in found.items()}


def _undefined(node: Node) -> Unknown:
    return Unknown(f"ONNX does not define the operator of {node.path} in the imported operator set")


def _version(node: Node) -> Value:
    return node.version if node.version is not None else _undefined(node)


def _determinism(node: Node) -> Value:
    found = schema_of(node)
    return found.determinism if found else _undefined(node)


# ---- Attributes -------------------------------------------------------------------------------


@cache
def _optional(domain: str, op_type: str, version: int | None) -> tuple[tuple[str, bool], ...]:
    """The attributes that are not required, each with whether the schema states a default."""
    found = schema(domain, op_type, version)
    return tuple((a.name, a.default is not None) for a in found.attributes.values() if not a.required) if found else ()


def _unwritten(node: Node, *, defaulted: bool) -> Iterator[str]:
    for name, has_default in _optional(*_key(node)):
        if name not in node.attributes and (has_default or not defaulted):
            yield name


def _values(node: Node, kind: str) -> Iterator[tuple[str, Value]]:
    """The attributes of one kind with the value in force, written or default."""
    for name, attribute in node.attributes.items():
        if attribute.kind == kind:
            value = _value(attribute)
            yield name, value if value is not None else Unknown(f"the attribute {name!a} of {node.path} is left out")
    for name, default in _defaults(*_key(node), kind):
        if name not in node.attributes:
            yield name, default


@cache
def _defaults(domain: str, op_type: str, version: int | None, kind: str) -> tuple[tuple[str, Value], ...]:
    found = schema(domain, op_type, version)
    formals = found.attributes.values() if found else ()
    stated = ((a.name, _value(a.default)) for a in formals if a.kind == kind and a.default)
    return tuple((name, value) for name, value in stated if value is not None)


def _value(attribute: Attribute) -> Value | None:
    """The value of an attribute as an element of a structure; None where the source elides it."""
    value = attribute.value
    match attribute.kind:
        case "INT" if isinstance(value, int):
            return value
        case "FLOAT" if isinstance(value, (int, float)):
            return str(np.float32(value))
        case "STRING" if isinstance(value, bytes):
            return _text(value)
        case "INTS" if isinstance(value, tuple):
            return tuple(item for item in value if isinstance(item, int))
        case "STRINGS" if isinstance(value, tuple):
            return tuple(_text(item) for item in value if isinstance(item, bytes))
        case _:
            return None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _positions(model: Model) -> Iterator[tuple[Key, tuple[Element, ...]]]:
    for i, node in enumerate(model.nodes):
        for kind in ("INTS", "STRINGS"):
            for name, value in _values(node, kind):
                if isinstance(value, tuple):
                    yield (i, name), tuple(range(len(value)))


# ---- Inputs and outputs -----------------------------------------------------------------------

Actuals = Sequence[TensorId | None]


def _at(actual: Actuals, position: int, formal: Formal) -> Actuals:
    """The actual inputs (or outputs) that stand for the formal one at a position; a variadic one takes all the rest."""
    return actual[position:] if formal.option == "variadic" else actual[position : position + 1]


def _actual(node: Node, side: str) -> Iterator[tuple[Formal, tuple[TensorId, ...]]]:
    """The formal inputs (or outputs) that are present, each with its tensors."""
    found = schema_of(node)
    if found is None:
        return
    formals, actual = (found.inputs, node.inputs) if side == "inputs" else (found.outputs, node.outputs)
    for position, formal in enumerate(formals):
        present = tuple(t for t in _at(actual, position, formal) if t is not None)
        if present:
            yield formal, present


def _absent_inputs(node: Node) -> Iterator[str]:
    found = schema_of(node)
    given = {formal.name for formal, _ in _actual(node, "inputs")}
    return (f.name for f in (found.inputs if found else ()) if f.option == "optional" and f.name not in given)


def _shared(node: Node) -> dict[str, tuple[TensorId, ...]]:
    """The type variables that several distinct inputs and outputs share, each with them, in order."""
    found = schema_of(node)
    rows: dict[str, dict[TensorId, None]] = {}
    for side in ("inputs", "outputs"):
        for formal, tensors in _actual(node, side):
            if found is not None and formal.type in found.type_constraints and formal.homogeneous:
                rows.setdefault(formal.type, {}).update(dict.fromkeys(tensors))
    return {variable: tuple(row) for variable, row in rows.items() if len(row) > 1}


def _typed(model: Model) -> Iterator[tuple[Key, tuple[TensorId, ...]]]:
    for i, node in enumerate(model.nodes):
        for variable, row in _shared(node).items():
            yield (i, variable), row
