"""ONNX's operator schemas, as the rechecker reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import onnx

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


Formal = onnx.defs.OpSchema.FormalParameter
Attribute = onnx.defs.OpSchema.Attribute


@dataclass(frozen=True, slots=True)
class Port:
    """A formal input or output. types: the types that its type or type variable admits."""

    name: str
    option: onnx.defs.OpSchema.FormalParameterOption
    type_str: str
    is_homogeneous: bool
    types: tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    """ONNX's schema of an operator, read once; the names are those of OpSchema."""

    since_version: int
    deprecated: bool
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    min_input: int
    max_input: int
    min_output: int
    max_output: int
    attributes: Mapping[str, onnx.defs.OpSchema.Attribute]
    type_constraints: tuple[onnx.defs.OpSchema.TypeConstraintParam, ...]
    node_determinism: object


@cache
def schema(domain: str, op_type: str, opset: int | None) -> Schema | None:
    """ONNX's schema of an operator in an operator set version, None when it has none."""
    if opset is None or not 0 < opset <= newest(domain):
        return None
    try:
        it = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    constraints = {c.type_param_str: tuple(c.allowed_type_strs) for c in it.type_constraints}

    def port(formal: Formal) -> Port:
        types = constraints.get(formal.type_str, (formal.type_str,))
        return Port(formal.name, formal.option, formal.type_str, formal.is_homogeneous, types)

    return Schema(
        it.since_version,
        it.deprecated,
        tuple(port(formal) for formal in it.inputs),
        tuple(port(formal) for formal in it.outputs),
        it.min_input,
        it.max_input,
        it.min_output,
        it.max_output,
        dict(it.attributes),
        tuple(it.type_constraints),
        getattr(it, "node_determinism", None),
    )


def formal_at(formals: Sequence[Port], position: int) -> Port | None:
    """The formal input or output that the one at a position stands for; None beyond the last."""
    if position < len(formals):
        return formals[position]
    return formals[-1] if formals and formals[-1].option == VARIADIC else None


def schema_of(node: Node) -> Schema | None:
    """ONNX's schema of a node's operator."""
    return schema(node.domain, node.op_type, node.opset)


def operator(node: Node) -> str:
    """The operator as the specification spells it."""
    return paths.operator(node.domain, node.op_type)


@cache
def _mark(domain: str, op_type: str, opset: int | None) -> str:
    form = schema(domain, op_type, opset)
    if form is None:
        return "unknown"
    mark = form.node_determinism
    if mark == _DETERMINISM.Deterministic:
        return "deterministic"
    return "non-deterministic" if mark == _DETERMINISM.NonDeterministic else "unknown"


def determinism(node: Node) -> str:
    """The word of the schema: deterministic, non-deterministic or unknown."""
    return _mark(node.domain, node.op_type, node.opset)


def actuals(node: Node, *, output: bool = False) -> dict[str, Sequence[int]]:
    """The tensors at each formal input (or output) that is present; a variadic one takes all the rest."""
    form = schema_of(node)
    if form is None:
        return {}
    formals, listed = (form.outputs, node.outputs) if output else (form.inputs, node.inputs)
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


def unwritten(node: Node) -> list[str]:
    """The attributes that the schema does not require and the node does not write."""
    return [name for name in _optional(node.domain, node.op_type, node.opset) if name not in node.attributes]


@cache
def _optional(domain: str, op_type: str, opset: int | None) -> tuple[str, ...]:
    form = schema(domain, op_type, opset)
    formals = {} if form is None else form.attributes
    return tuple(name for name in sorted(formals) if not formals[name].required)
