"""Operator schemas as frozen data: ONNX's, and those that the text of an operator without one declares.

The only place that reads `onnx.defs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final

import onnx
from onnx import defs, helper
from sonnx.spec.elaborate.core import Core, CoreOperator, CoreStatement
from sonnx.spec.language.syntax import AttributeDeclaration, Port, clause
from sonnx.spec.library import Meanings, specification

from .graph import Attribute, AttributeValue, Node

DOMAIN: Final = ""
"""ONNX's own domain; files may also spell it ai.onnx."""
_GUESTS: Final = "ai.onnx"
"""The domain in the specification's names of operators that runtimes register in ONNX's own domain."""


@cache
def element_types() -> Mapping[int, str]:
    """The element types in ONNX's spelling by their numbers (onnx.proto, TensorProto.DataType)."""
    return {code: name.lower() for name, code in onnx.TensorProto.DataType.items() if code}


@dataclass(frozen=True, slots=True)
class Formal:
    """A formal input or output. option: single, optional or variadic. type: a type or the name of a type variable.

    types: the type strings it allows. min_arity: the least number of actual ones where it is variadic. group: what the
    actual ones stand for in turn where a variadic input comes in groups; its own type is then that of the first.
    """

    name: str
    option: str
    type: str
    types: tuple[str, ...]
    homogeneous: bool = True
    min_arity: int = 1
    group: tuple[Formal, ...] = ()


def formal_at(formals: Sequence[Formal], position: int) -> Formal | None:
    """The formal input or output that the actual one at a position stands for; None beyond the last."""
    last = formals[-1] if formals else None
    if last is None or position < len(formals) - 1:
        return formals[position] if formals else None
    if last.group:
        return last.group[(position - len(formals) + 1) % len(last.group)]
    return last if position < len(formals) or last.option == "variadic" else None


@dataclass(frozen=True, slots=True)
class AttributeSchema:
    """A formal attribute. default: None when the schema states none."""

    name: str
    kind: str
    required: bool
    default: Attribute | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """An operator at one version of its meaning; of each there is one object.

    determinism: deterministic, non-deterministic or unknown. max_inputs, max_outputs: None without a bound.
    type_constraints: the allowed type strings of each type variable.
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


def newest_opset(domain: str = DOMAIN) -> int:
    """The newest version of an operator set that this ONNX knows; 0 for a domain that it does not know, of which the
    specification may declare operators, but not all.
    """
    return _newest_of_onnx(domain)


@cache
def _newest_of_onnx(domain: str) -> int:
    columns = {"": 2, "ai.onnx.ml": 3, "ai.onnx.training": 4}
    if domain in columns:
        return max(int(row[columns[domain]]) for row in helper.VERSION_TABLE if len(row) > columns[domain])
    return max((it.since_version for it in defs.get_all_schemas_with_history() if it.domain == domain), default=0)


@cache
def newest_ir_version() -> int:
    """The newest IR version that this ONNX knows."""
    return int(onnx.IR_VERSION)


def since_version(domain: str, op_type: str, opset: int | None) -> int | None:
    """The version of the operator's meaning that is in force in an operator set; None when neither ONNX nor the
    specification knows it: no such operator at that version, no such domain, an operator set that does not exist (yet),
    or none imported.
    """
    if opset is None or opset <= 0 or 0 < _newest_of_onnx(domain) < opset:
        return None
    if is_of_onnx(domain, op_type):
        return _since_version_of_onnx(domain, op_type, opset)
    own = specification().meanings.of(operator_name(domain, op_type))
    return max((it.first for it in own if it.first <= opset), default=None)


def is_of_onnx(domain: str, op_type: str) -> bool:
    """ONNX says what the operator is, and that there is none of that name: false in a domain that ONNX does not define,
    and for a guest.
    """
    return _newest_of_onnx(domain) > 0 and not is_guest(domain, op_type)


def is_guest(domain: str, op_type: str) -> bool:
    """The operator is one of ONNX's own domain that ONNX lacks and the specification declares, since a runtime
    registers it there.
    """
    return not normal_domain(domain) and f"{_GUESTS}::{op_type}" in specification().meanings


@cache
def _since_version_of_onnx(domain: str, op_type: str, opset: int) -> int | None:
    if opset > _newest_of_onnx(domain):
        return None
    try:
        return int(defs.get_schema(op_type, opset, domain).since_version)
    except defs.SchemaError:
        return None


def schema(domain: str, op_type: str, version: int | None) -> Schema | None:
    """The schema in force at a version (an operator set's or a since_version); None when `since_version` is None."""
    return _schema(specification().meanings, domain, op_type, version)


@lru_cache(maxsize=4096)
def _schema(_meanings: Meanings, domain: str, op_type: str, version: int | None) -> Schema | None:
    """The same. meanings: those of the specification in force."""
    if is_of_onnx(domain, op_type):
        return _in_force(domain, op_type, version)
    since = since_version(domain, op_type, version)
    meaning = None if since is None else specification().meanings.at(operator_name(domain, op_type), since)
    return None if meaning is None else _of_text(meaning)


@cache
def _in_force(domain: str, op_type: str, version: int | None) -> Schema | None:
    since = since_version(domain, op_type, version)
    return None if since is None else _schema_of_onnx(domain, op_type, since)


def schema_at(node: Node) -> Schema | None:
    """The schema in force for a node of a model."""
    return schema(node.domain, node.op_type, node.version)


def schema_of(name: str, version: int | None) -> Schema | None:
    """The same for an operator by its name, which may begin with its domain."""
    domain, _, op_type = name.rpartition("::")
    return schema(domain, op_type, version)


def operator_name(domain: str, op_type: str) -> str:
    """The name of an operator in the specification: with its domain before it, unless that is ONNX's own. That of a
    guest of ONNX's domain has the other name of this domain before it.
    """
    if normal_domain(domain):
        return f"{domain}::{op_type}"
    return f"{_GUESTS}::{op_type}" if is_guest(domain, op_type) else op_type


@cache
def _schema_of_onnx(domain: str, op_type: str, since: int) -> Schema:
    return _read(defs.get_schema(op_type, since, domain))


_OPTIONS: Final = {"": "single", "?": "optional", "*": "variadic"}


@cache
def _of_text(it: CoreOperator) -> Schema:
    """The schema that the text of an operator declares."""
    allowed = {own.name: tuple(map(_spelled, own.allowed)) for own in it.types}

    def formal(port: Port) -> Formal:
        kinds = (it if it in allowed else _spelled(it) for it in port.types)
        group = tuple(Formal(port.name, _OPTIONS[port.mark], it, allowed.get(it, (it,))) for it in kinds)
        if len(group) == 1:
            return group[0]
        return replace(group[0], homogeneous=False, min_arity=len(group), group=group)

    def least(ports: tuple[Port, ...]) -> int:
        return max((k + len(port.types) for k, port in enumerate(ports) if port.mark != "?"), default=0)

    def most(ports: tuple[Port, ...]) -> int | None:
        return None if any(port.mark == "*" for port in ports) else len(ports)

    domain, _, name = it.name.rpartition("::")
    return Schema(
        domain=domain,
        name=name,
        since_version=it.first,
        deprecated=False,
        determinism="non-deterministic" if may_draw(it) else "deterministic",
        inputs=tuple(map(formal, it.inputs)),
        outputs=tuple(map(formal, it.outputs)),
        min_inputs=least(it.inputs),
        max_inputs=most(it.inputs),
        min_outputs=least(it.outputs),
        max_outputs=most(it.outputs),
        attributes=MappingProxyType({own.name: _declared_attribute(own) for own in it.attributes}),
        type_constraints=MappingProxyType(allowed),
    )


def draws(op_type: str, version: int | None) -> bool:
    """True if an operator may have several results, one of which is drawn."""
    operator = None if version is None else specification().meanings.at(op_type, version)
    return operator is not None and may_draw(operator)


@cache
def may_draw(it: CoreOperator) -> bool:
    """True if the text of an operator comes to a primitive that draws, by definitions or operators that it applies."""
    functions = specification().functions
    return any(
        node.head == "fun" and clause(functions[node.name].clauses, "drawn") is not None
        for node in reached(it.statements)
    )


def reached(statements: Iterable[CoreStatement]) -> Iterator[Core]:
    """The nodes of statements, and those of the definitions and operators that they apply."""
    text, seen = specification(), set[str]()
    waiting = [node for statement in statements for node in statement.nodes()]
    while waiting:
        node = waiting.pop()
        yield node
        if node.head == "define" and node.name not in seen:
            seen.add(node.name)
            waiting += text.cores.definition(node.name).body.nodes()
        elif node.head == "apply" and isinstance(node.value, int) and f"{node.name}@{node.value}" not in seen:
            seen.add(f"{node.name}@{node.value}")
            inner = text.meanings.at(node.name, node.value)
            waiting += [] if inner is None else [part for its in inner.statements for part in its.nodes()]


def _spelled(kind: str) -> str:
    return _in_full(kind) if "(" in kind else f"tensor({kind})"


def _declared_attribute(it: AttributeDeclaration) -> AttributeSchema:
    from sonnx.spec.elaborate.declared import constant_of

    kind = it.kind.upper()
    if it.default is None:
        return AttributeSchema(it.name, kind, not it.mark)
    value = constant_of(it.default, it.kind)
    plain = tuple(map(_bytes, value)) if isinstance(value, list) else _bytes(value)
    return AttributeSchema(it.name, kind, False, Attribute(kind, plain))


def _bytes(value: object) -> Any:
    return value.encode() if isinstance(value, str) else value


_DETERMINISM: Final = {"Deterministic": "deterministic", "NonDeterministic": "non-deterministic"}
_UNBOUNDED: Final = 2**31 - 1


def _read(it: defs.OpSchema) -> Schema:
    constraints = {tc.type_param_str: tuple(map(_in_full, tc.allowed_type_strs)) for tc in it.type_constraints}
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


_MAP: Final = re.compile(r"map\((\w+), *(\w+)\)")


def _in_full(text: str) -> str:
    """A type in full: schemas write map(int64, float) for a map whose values are tensors of float."""
    return _MAP.sub(r"map(\1,tensor(\2))", text)


def _formal(it: defs.OpSchema.FormalParameter, constraints: Mapping[str, tuple[str, ...]]) -> Formal:
    return Formal(
        name=it.name,
        option=_member(it.option).lower(),
        type=it.type_str,
        types=constraints.get(it.type_str, (_in_full(it.type_str),)),
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
