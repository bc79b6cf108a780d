"""Facts about operators: the section "Operators and attributes" of `spec/1-syntax.sonnx`, read off G and the schemas.

`providers` also brings the facts of `type_facts`, so that both sections come from one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from ..errors import InternalError
from ..model.graph import Attribute, Model, Node, NodeId, TensorId
from ..model.schemas import Formal, Schema, normal_domain, schema
from . import types as type_facts
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable
from .types import ClaimsSource


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
        "given_inputs": names(lambda node: _ports(node).given_inputs),
        "given_outputs": names(lambda node: _ports(node).given_outputs),
        "absent_inputs": names(lambda node: _ports(node).absent_inputs),
        "input": pairs(lambda node: ((name, _tensor(node.inputs[i])) for name, i in _ports(node).first_inputs)),
        "output": pairs(lambda node: ((name, _tensor(node.outputs[i])) for name, i in _ports(node).first_outputs)),
        "type_variables": names(lambda node: (variable for variable, _ in _shared(node))),
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


@dataclass(frozen=True, slots=True)
class _Ports:
    """How actual inputs and outputs stand for the formal ones of a schema; positions are those of the actual lists.

    sharing: the type variables that several actual ones have, each with its positions in inputs and outputs together.
    """

    given_inputs: tuple[str, ...] = ()
    given_outputs: tuple[str, ...] = ()
    absent_inputs: tuple[str, ...] = ()
    first_inputs: tuple[tuple[str, int], ...] = ()
    first_outputs: tuple[tuple[str, int], ...] = ()
    sharing: tuple[tuple[str, tuple[int, ...]], ...] = ()


def _ports(node: Node) -> _Ports:
    present = [tuple([t is not None for t in actual]) for actual in (node.inputs, node.outputs)]
    return _assigned(*_key(node), *present)


@lru_cache(maxsize=4096)
def _assigned(
    domain: str, op_type: str, version: int | None, inputs: tuple[bool, ...], outputs: tuple[bool, ...]
) -> _Ports:
    """The assignment for a schema and the positions that carry a name: the same for most nodes of an operator."""
    found = schema(domain, op_type, version)
    if found is None:
        return _Ports()
    ins, outs = _assign(found.inputs, inputs), _assign(found.outputs, outputs)
    variables: dict[str, list[int]] = {}
    for offset, side in ((0, ins), (len(inputs), outs)):
        for formal, positions in side:
            if formal.type in found.type_constraints and formal.homogeneous:
                variables.setdefault(formal.type, []).extend(offset + position for position in positions)
    return _Ports(
        given_inputs=tuple(f.name for f, positions in ins if positions),
        given_outputs=tuple(f.name for f, positions in outs if positions),
        absent_inputs=tuple(f.name for f, positions in ins if f.option == "optional" and not positions),
        first_inputs=tuple((f.name, positions[0]) for f, positions in ins if positions),
        first_outputs=tuple((f.name, positions[0]) for f, positions in outs if positions),
        sharing=tuple((variable, tuple(row)) for variable, row in variables.items() if len(row) > 1),
    )


def _assign(formals: Sequence[Formal], present: Sequence[bool]) -> list[tuple[Formal, tuple[int, ...]]]:
    """Each formal input (or output) with the positions that stand for it; a variadic one takes all the rest."""
    row = []
    for k, formal in enumerate(formals):
        end = len(present) if formal.option == "variadic" else k + 1
        row.append((formal, tuple(k + i for i, given in enumerate(present[k:end]) if given)))
    return row


def _tensor(t: TensorId | None) -> TensorId:
    if t is None:
        raise InternalError("a position without a name stands for a formal input or output")
    return t


def _shared(node: Node) -> Iterator[tuple[str, tuple[TensorId, ...]]]:
    """The type variables that several distinct inputs and outputs have, each with them, in order."""
    both = node.inputs + node.outputs
    for variable, positions in _ports(node).sharing:
        row = tuple(dict.fromkeys([_tensor(both[position]) for position in positions]))
        if len(row) > 1:
            yield variable, row


def _typed(model: Model) -> Iterator[tuple[Key, tuple[TensorId, ...]]]:
    for i, node in enumerate(model.nodes):
        for variable, row in _shared(node):
            yield (i, variable), row
