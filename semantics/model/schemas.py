"""ONNX's operator schemas as frozen data. The only place that reads `onnx.defs`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

import onnx
from onnx import defs, helper

from .graph import Attribute, AttributeValue

DOMAIN: Final = ""
"""ONNX's own domain; files may also spell it ai.onnx."""


@cache
def element_types() -> Mapping[int, str]:
    """The element types in ONNX's spelling by their numbers (onnx.proto, TensorProto.DataType)."""
    return {code: name.lower() for name, code in onnx.TensorProto.DataType.items() if code}


@dataclass(frozen=True, slots=True)
class Formal:
    """A formal input or output. option: single, optional or variadic. type: a type or the name of a type variable.

    types: the type strings it allows. min_arity: the least number of actual ones where it is variadic.
    """

    name: str
    option: str
    type: str
    types: tuple[str, ...]
    homogeneous: bool = True
    min_arity: int = 1


@dataclass(frozen=True, slots=True)
class AttributeSchema:
    """A formal attribute. default: None when the schema states none."""

    name: str
    kind: str
    required: bool
    default: Attribute | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """An operator at one version of its meaning. determinism: deterministic, non-deterministic or unknown.

    max_inputs, max_outputs: None without a bound. type_constraints: the allowed type strings of each type variable.
    """

    domain: str
    name: str
    since_version: int
    deprecated: bool
    determinism: str
    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    min_inputs: int
    max_inputs: int | None
    min_outputs: int
    max_outputs: int | None
    attributes: Mapping[str, AttributeSchema]
    type_constraints: Mapping[str, tuple[str, ...]]


def normal_domain(domain: str) -> str:
    """The domain under its one name: ai.onnx and the empty name are the same domain."""
    return DOMAIN if domain == "ai.onnx" else domain


@cache
def newest_opset(domain: str = DOMAIN) -> int:
    """The newest version of an operator set that this ONNX knows, 0 for a domain that it does not know."""
    columns = {"": 2, "ai.onnx.ml": 3, "ai.onnx.training": 4}
    if domain in columns:
        return max(int(row[columns[domain]]) for row in helper.VERSION_TABLE if len(row) > columns[domain])
    return max((it.since_version for it in defs.get_all_schemas_with_history() if it.domain == domain), default=0)


@cache
def newest_ir_version() -> int:
    """The newest IR version that this ONNX knows."""
    return int(onnx.IR_VERSION)


@cache
def since_version(domain: str, op_type: str, opset: int | None) -> int | None:
    """The version of the operator's meaning that is in force in an operator set; None when ONNX does not know it:
    no such operator at that version, no such domain, an operator set that does not exist (yet), or none imported.
    """
    if opset is None or not 0 < opset <= newest_opset(domain):
        return None
    try:
        return int(defs.get_schema(op_type, opset, domain).since_version)
    except defs.SchemaError:
        return None


@cache
def schema(domain: str, op_type: str, version: int | None) -> Schema | None:
    """The schema in force at a version (an operator set's or a since_version); None when `since_version` is None."""
    since = since_version(domain, op_type, version)
    return None if since is None else _read(defs.get_schema(op_type, since, domain))


_DETERMINISM: Final = {"Deterministic": "deterministic", "NonDeterministic": "non-deterministic"}
_UNBOUNDED: Final = 2**31 - 1


def _read(it: defs.OpSchema) -> Schema:
    constraints = {tc.type_param_str: tuple(tc.allowed_type_strs) for tc in it.type_constraints}
    return Schema(
        domain=it.domain,
        name=it.name,
        since_version=int(it.since_version),
        deprecated=bool(it.deprecated),
        determinism=_DETERMINISM.get(_member(getattr(it, "node_determinism", None)), "unknown"),
        inputs=tuple(_formal(parameter, constraints) for parameter in it.inputs),
        outputs=tuple(_formal(parameter, constraints) for parameter in it.outputs),
        min_inputs=int(it.min_input),
        max_inputs=None if it.max_input >= _UNBOUNDED else int(it.max_input),
        min_outputs=int(it.min_output),
        max_outputs=None if it.max_output >= _UNBOUNDED else int(it.max_output),
        attributes=MappingProxyType({name: _attribute(formal) for name, formal in sorted(it.attributes.items())}),
        type_constraints=MappingProxyType(constraints),
    )


def _formal(it: defs.OpSchema.FormalParameter, constraints: Mapping[str, tuple[str, ...]]) -> Formal:
    return Formal(
        name=it.name,
        option=_member(it.option).lower(),
        type=it.type_str,
        types=constraints.get(it.type_str, (it.type_str,)),
        homogeneous=bool(it.is_homogeneous),
        min_arity=int(it.min_arity),
    )


def _attribute(it: defs.OpSchema.Attribute) -> AttributeSchema:
    kind = _member(it.type)
    default = it.default_value
    stated = Attribute(kind, _plain(helper.get_attribute_value(default))) if default.name else None
    return AttributeSchema(it.name, kind, bool(it.required), stated)


def _member(value: object) -> str:
    """The name of a member of one of onnx.defs' enumerations."""
    return str(value).rpartition(".")[2]


def _plain(value: object) -> AttributeValue:
    """A default value; ONNX's schemas state defaults only for numbers, texts and lists of them."""
    if isinstance(value, (int, float, bytes)):
        return value
    return tuple(value) if isinstance(value, (list, tuple)) else None
