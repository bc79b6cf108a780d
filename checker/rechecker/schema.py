"""What ONNX's operator schemas say, as the rechecker reads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import onnx
from sonnx.semantics.errors import Unsupported

from . import paths
from .reader import Node

_OPTION = onnx.defs.OpSchema.FormalParameterOption
SINGLE, OPTIONAL, VARIADIC = _OPTION.Single, _OPTION.Optional, _OPTION.Variadic
_DETERMINISM = onnx.defs.OpSchema.NodeDeterminism


@cache
def newest(domain: str) -> int:
    """The newest version of an operator set that this ONNX knows, 0 for a domain that it does not know."""
    if not domain:
        return onnx.defs.onnx_opset_version()
    return max((s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain), default=0)


@cache
def schema(domain: str, op_type: str, opset: int | None) -> onnx.defs.OpSchema | None:
    """ONNX's schema of an operator in an operator set version, None when it has none."""
    if opset is None or not 0 < opset <= newest(domain):
        return None
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None


def schema_of(node: Node) -> onnx.defs.OpSchema | None:
    """ONNX's schema of a node's operator."""
    return schema(node.domain, node.op_type, node.opset)


def operator(node: Node) -> str:
    """The operator as the specification spells it."""
    return paths.operator(node.domain, node.op_type)


@cache
def _mark(domain: str, op_type: str, opset: int | None) -> str:
    found = schema(domain, op_type, opset)
    if found is None:
        return "unknown"
    mark: object = getattr(found, "node_determinism", None)
    if mark == _DETERMINISM.Deterministic:
        return "deterministic"
    return "non-deterministic" if mark == _DETERMINISM.NonDeterministic else "unknown"


def determinism(node: Node) -> str:
    """What the schema says: deterministic, non-deterministic or unknown."""
    return _mark(node.domain, node.op_type, node.opset)


def actuals(node: Node, *, output: bool = False) -> dict[str, Sequence[int]]:
    """The tensors at each formal input (or output) that is present; a variadic one takes all the rest."""
    found = schema_of(node)
    if found is None:
        return {}
    formals, listed = (found.outputs, node.outputs) if output else (found.inputs, node.inputs)
    given: dict[str, Sequence[int]] = {}
    for position, formal in enumerate(formals):
        part = listed[position:] if formal.option == VARIADIC else listed[position : position + 1]
        present = [t for t in part if t is not None]
        if present:
            given[formal.name] = present
    return given


def prescribed(formal: onnx.defs.OpSchema.Attribute) -> int:
    """The kind of value that a schema prescribes for an attribute."""
    return onnx.AttributeProto.AttributeType.Value(str(formal.type).rpartition(".")[2])


def kind_of(attribute: onnx.AttributeProto) -> int:
    """The kind of an attribute's value: as stated, or before IR version 2 as written."""
    if attribute.type:
        return attribute.type
    kinds = {
        "f": onnx.AttributeProto.FLOAT,
        "i": onnx.AttributeProto.INT,
        "s": onnx.AttributeProto.STRING,
        "t": onnx.AttributeProto.TENSOR,
        "g": onnx.AttributeProto.GRAPH,
        "floats": onnx.AttributeProto.FLOATS,
        "ints": onnx.AttributeProto.INTS,
        "strings": onnx.AttributeProto.STRINGS,
        "tensors": onnx.AttributeProto.TENSORS,
        "graphs": onnx.AttributeProto.GRAPHS,
    }
    written = [kinds[field.name] for field, _ in attribute.ListFields() if field.name in kinds]
    return written[0] if len(written) == 1 else 0


def unwritten(node: Node) -> list[str]:
    """The attributes that the schema does not require and the node does not write."""
    schema = schema_of(node)
    formals = {} if schema is None else schema.attributes
    return [name for name in sorted(formals) if not formals[name].required and name not in node.attributes]


def value_in_force(node: Node, attribute: str, kind: str) -> int | bytes | None:
    """The value in force of an attribute of that kind, None where the version has none. Raises Unsupported."""
    written = node.attributes.get(attribute)
    if written is None:
        schema = schema_of(node)
        formal = None if schema is None else schema.attributes.get(attribute)
        if formal is None or not formal.default_value.name:
            return None
        written = formal.default_value
    if kind_of(written) != onnx.AttributeProto.AttributeType.Value(kind) or written.ref_attr_name:
        raise Unsupported(f"the attribute {attribute} has another kind of value than its operator prescribes")
    return written.i if kind == "INT" else written.s
