"""Facts about operators and attributes: the section "Operators and attributes"."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import onnx

from ..attributes import Kinds, Payload, default, kind, payload, valued
from ..facts import Facts
from ..reader import Node
from ..schema import OPTIONAL, actuals, determinism, operator, schema_of, unwritten
from ..values import UNKNOWN, Find, Key, Value
from .graph import Makers, at


def makers(f: Facts) -> Makers:
    """The tables of that section."""
    nodes = f.reading.nodes

    def of_node(row: Callable[[Node], Value | None]) -> Callable[[], Find]:
        return at(lambda n: row(nodes[n]), len(nodes))

    def pairs(row: Callable[[Node, str], Value | None]) -> Callable[[], Find]:
        def find(key: Key) -> Value | None:
            match key:
                case (int() as n, str() as name):
                    return row(nodes[n], name)
            return None

        return lambda: find

    def attribute(wanted: int) -> Callable[[], Find]:
        return pairs(lambda node, name: _attribute(f, node, name, wanted))

    def positions(node: Node, name: str) -> Value:
        written = node.attributes.get(name)
        stated = default(node, name) if written is None else written
        value = (
            None
            if stated is None or _kind(f, stated, written) not in (Kinds.INTS, Kinds.STRINGS)
            else (_value(f, stated, written))
        )
        return tuple(range(len(value))) if isinstance(value, tuple) else ()

    @cache
    def applications() -> dict[Key, Value]:
        by_operator: dict[str, list[int]] = {}
        for n, node in enumerate(nodes):
            by_operator.setdefault(operator(node), []).append(n)
        return {name: tuple(row) for name, row in by_operator.items()}

    def shared(node: Node) -> dict[str, tuple[int, ...]]:
        return {variable: row for variable, row in _variables(node).items() if len(row) > 1}

    return {
        "operator": of_node(operator),
        "applications": lambda: applications().get,
        "known": of_node(lambda node: schema_of(node) is not None),
        "version": of_node(lambda node: it.since_version if (it := schema_of(node)) is not None else UNKNOWN),
        "schema_determinism": of_node(lambda node: UNKNOWN if schema_of(node) is None else determinism(node)),
        "attributes": of_node(lambda node: tuple(sorted(it.attributes)) if (it := schema_of(node)) is not None else ()),
        "written": of_node(lambda node: tuple(node.attributes)),
        "unwritten": of_node(lambda node: tuple(unwritten(node))),
        "defaulted": of_node(lambda node: tuple(a for a in unwritten(node) if default(node, a) is not None)),
        "int_attribute": attribute(Kinds.INT),
        "float_attribute": attribute(Kinds.FLOAT),
        "text_attribute": attribute(Kinds.STRING),
        "ints_attribute": attribute(Kinds.INTS),
        "texts_attribute": attribute(Kinds.STRINGS),
        "positions": pairs(positions),
        "given_inputs": of_node(lambda node: tuple(actuals(node))),
        "given_outputs": of_node(lambda node: tuple(actuals(node, output=True))),
        "absent_inputs": of_node(_absent_inputs),
        "input": pairs(lambda node, name: next(iter(actuals(node).get(name, ())), None)),
        "output": pairs(lambda node, name: next(iter(actuals(node, output=True).get(name, ())), None)),
        "type_variables": of_node(lambda node: tuple(shared(node))),
        "typed": pairs(lambda node, variable: shared(node).get(variable)),
        "first_typed": pairs(lambda node, variable: next(iter(shared(node).get(variable, ())), None)),
    }


def _kind(f: Facts, stated: onnx.AttributeProto, written: object) -> int:
    return kind(f, stated) if written is not None else stated.type


def _value(f: Facts, stated: onnx.AttributeProto, written: object) -> Payload:
    if written is None:  # a default: what the schema states is a value
        value = onnx.helper.get_attribute_value(stated)
        return tuple(value) if isinstance(value, list) else value
    return payload(f, stated)


def _attribute(f: Facts, node: Node, name: str, wanted: int) -> Value | None:
    """The value in force of an attribute of the wanted kind; unknown where it is left out, None for no such one."""
    written = node.attributes.get(name)
    stated = default(node, name) if written is None else written
    if stated is None or _kind(f, stated, written) != wanted:
        return None
    if written is not None and not valued(f, written):
        return UNKNOWN
    value = _value(f, stated, written)
    match wanted:
        case Kinds.INT:
            return value if isinstance(value, int) else None
        case Kinds.FLOAT:
            return str(np.float32(value)) if isinstance(value, (int, float)) else None
        case Kinds.STRING:
            return _text(value) if isinstance(value, bytes) else None
        case Kinds.INTS:
            return tuple(item for item in value if isinstance(item, int)) if isinstance(value, tuple) else None
        case _:
            return tuple(_text(item) for item in value if isinstance(item, bytes)) if isinstance(value, tuple) else None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _absent_inputs(node: Node) -> Value:
    schema, given = schema_of(node), actuals(node)
    formals = () if schema is None else schema.inputs
    return tuple(it.name for it in formals if it.option == OPTIONAL and it.name not in given)


def _variables(node: Node) -> dict[str, tuple[int, ...]]:
    """The tensors at the inputs and outputs of each type variable, in order, each once."""
    schema = schema_of(node)
    if schema is None:
        return {}
    names = {it.type_param_str for it in schema.type_constraints}
    by_variable: dict[str, dict[int, None]] = {}
    for formals, given in ((schema.inputs, actuals(node)), (schema.outputs, actuals(node, output=True))):
        for formal in formals:
            if formal.type_str in names and formal.is_homogeneous and formal.name in given:
                by_variable.setdefault(formal.type_str, {}).update(dict.fromkeys(given[formal.name]))
            behind = node.inputs[len(formals) - 1 :]
            for number, it in enumerate(formal.group):
                row = [t for t in behind[number :: len(formal.group)] if t is not None]
                if it.type_str in names and row:
                    by_variable.setdefault(it.type_str, {}).update(dict.fromkeys(row))
    return {variable: tuple(row) for variable, row in by_variable.items()}
