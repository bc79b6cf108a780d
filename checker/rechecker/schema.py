"""Operator schemas, as the rechecker reads them: ONNX's, and what the texts declare where ONNX has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import onnx

from . import paths
from .operators.schema import default_of, guest
from .operators.text import Attribute as DeclaredAttribute
from .operators.text import Operator
from .operators.text import Port as Declared
from .reader import Node
from .text import Text, texts

_OPTION = onnx.defs.OpSchema.FormalParameterOption
SINGLE, OPTIONAL, VARIADIC = _OPTION.Single, _OPTION.Optional, _OPTION.Variadic
_OPTIONS = {"": SINGLE, "?": OPTIONAL, "*": VARIADIC}
UNBOUNDED = 2**31 - 1
"""Without a bound."""
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
    """A formal input or output. types: the types that its type or type variable admits. group: what the actual ones of
    a variadic input that comes in groups stand for in turn.
    """

    name: str
    option: onnx.defs.OpSchema.FormalParameterOption
    type_str: str
    is_homogeneous: bool
    types: tuple[str, ...]
    group: tuple[Port, ...] = ()


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


def _full(text: str) -> str:
    """A type with the tensors that ONNX's schemas leave out of maps: map(int64, float) is map(int64,tensor(float))."""
    if "map(" not in text or "tensor(" in text:
        return text
    before, inner = text.split("map(")
    key, value = inner.rstrip(")").split(",")
    return f"{before}map({key.strip()},tensor({value.strip()}))" + ")" * before.count("(")


def schema(domain: str, op_type: str, opset: int | None) -> Schema | None:
    """The schema of an operator in an operator set version, None when it has none."""
    if opset is None or opset <= 0:
        return None
    name = guest(texts().operators, domain, op_type)
    if newest(domain) and (not name or opset > newest(domain)):
        return _of_onnx(domain, op_type, opset)
    return _of_text(texts(), name or paths.operator(domain, op_type), opset)


@cache
def _of_onnx(domain: str, op_type: str, opset: int) -> Schema | None:
    if opset > newest(domain):
        return None
    try:
        it = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    constraints = {c.type_param_str: tuple(map(_full, c.allowed_type_strs)) for c in it.type_constraints}

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


@cache
def _of_text(known: Text, name: str, opset: int) -> Schema | None:
    text = known.operators.in_force(name, opset)
    return None if text is None else _declared(text, known)


def _declared(text: Operator, known: Text) -> Schema:
    """The schema that the text of an operator declares."""
    admitted = {name: tuple(map(_spelled, types)) for name, types in text.types}

    def port(it: Declared) -> Port:
        kinds = [kind if kind in admitted else _spelled(kind) for kind in (it.type, *it.others)]
        first, *others = (Port(it.name, _OPTIONS[it.mark], kind, True, admitted.get(kind, (kind,))) for kind in kinds)
        return replace(first, is_homogeneous=False, group=(first, *others)) if others else first

    def least(ports: Sequence[Declared]) -> int:
        return max((position + 1 + len(it.others) for position, it in enumerate(ports) if it.mark != "?"), default=0)

    def most(ports: Sequence[Declared]) -> int:
        return UNBOUNDED if any(it.mark == "*" for it in ports) else len(ports)

    return Schema(
        text.first,
        False,
        tuple(map(port, text.inputs)),
        tuple(map(port, text.outputs)),
        least(text.inputs),
        most(text.inputs),
        least(text.outputs),
        most(text.outputs),
        {it.name: _attribute(it) for it in text.attributes},
        tuple(onnx.defs.OpSchema.TypeConstraintParam(name, list(types), "") for name, types in admitted.items()),
        _DETERMINISM.NonDeterministic if _draws(text, known) else _DETERMINISM.Deterministic,
    )


def _draws(text: Operator, known: Text) -> bool:
    """True if a text comes to a primitive that draws: itself, by functions or by operators that it applies."""
    seen = set[tuple[str, str]]()
    waiting = [statement.tree for statement in text.statements]
    while waiting:
        for it in waiting.pop().iter_subtrees():
            if it.data not in ("call", "apply"):
                continue
            key = (str(it.children[0]), str(it.children[1]) if it.data == "apply" else "")
            if key in seen:
                continue
            seen.add(key)
            if it.data == "apply":
                applied = known.operators.operator(key[0], int(key[1]))
                waiting += [] if applied is None else [statement.tree for statement in applied.statements]
            elif (function := known.operators.function(key[0])) is not None:
                waiting.append(function.body)
            elif (primitive := known.declaration(key[0])) is not None and "drawn" in primitive.clauses:
                return True
    return False


def _spelled(type_: str) -> str:
    return _full(type_) if "(" in type_ else f"tensor({type_})"


def _attribute(it: DeclaredAttribute) -> Attribute:
    default = default_of(it)
    kind = getattr(onnx.defs.OpSchema.AttrType, it.kind.upper())
    return Attribute(it.name, kind, "", required=not it.mark) if default is None else Attribute(it.name, default, "")


def formal_at(formals: Sequence[Port], position: int) -> Port | None:
    """The formal input or output that the one at a position stands for; None beyond the last."""
    beyond = position - len(formals) + 1
    if beyond < 0:
        return formals[position]
    last = formals[-1] if formals else None
    if last is not None and last.group:
        return last.group[beyond % len(last.group)]
    return last if last is not None and (not beyond or last.option == VARIADIC) else None


def schema_of(node: Node) -> Schema | None:
    """ONNX's schema of a node's operator."""
    return schema(node.domain, node.op_type, node.opset)


def is_guest(domain: str, op_type: str) -> bool:
    """The operator is one of ONNX's own domain that ONNX lacks and a text declares, since a runtime registers it."""
    return bool(guest(texts().operators, domain, op_type))


def text_name(node: Node) -> str:
    """The name of a node's operator in the texts."""
    return guest(texts().operators, node.domain, node.op_type) or operator(node)


def operator(node: Node) -> str:
    """The operator as the specification spells it."""
    return paths.operator(node.domain, node.op_type)


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


def _optional(domain: str, op_type: str, opset: int | None) -> tuple[str, ...]:
    form = schema(domain, op_type, opset)
    formals = {} if form is None else form.attributes
    return tuple(name for name in sorted(formals) if not formals[name].required)
