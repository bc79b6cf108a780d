"""The smt interpretation of operators, composition: an operator that the text of another applies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sonnx.spec.elaborate.schema import Signature, signatures
from sonnx.spec.language.syntax import Operator, Span, Statement
from sonnx.spec.library import specification

from ...errors import InternalError
from ...formulas.terms import TRUE, Term
from .attributes import default_of
from .statements import Meaning, bind_shapes, opening, perform
from .values import Array, Scope, Value


def signature_of(operator: Operator) -> Signature:
    """The schema of the newest version that a definition covers."""
    return next(s for s in reversed(signatures()[operator.name]) if operator.first <= s.version <= operator.last)


def compose(
    name: str,
    version: int,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Value],
    span: Span,
    scope: Scope,
) -> tuple[Value, ...]:
    """The outputs of an operator that the text applies: what it requires is demanded here, its own obligations hold."""
    operator = definition(name, version)
    ports: dict[str, Value | None] = {}
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            ports[port.name] = tuple(value for value in inputs[position:] if value is not None)
        else:
            ports[port.name] = inputs[position] if position < len(inputs) else None
    stated: dict[str, Value | None] = {**defaults(operator, version), **attributes}
    names: dict[str, Value] = {f"given {port.name}": TRUE for port in operator.outputs}
    names |= {port.name: (0,) for port in operator.outputs if port.mark == "*"}
    inner = replace(scope, env={**names, **_types(operator, ports), **opening(operator, ports, stated)})
    inner = bind_shapes(operator, inner, span)
    dimensions = frozenset(size for value in ports.values() for size in _sizes(value))
    meaning = Meaning(operator, {}, False, dimensions, span)
    for statement in operator.statements:
        inner, meaning = _inside(statement, inner, meaning)
    return in_order(operator, meaning.outputs)


def in_order(operator: Operator, outputs: Mapping[str, Value]) -> tuple[Value, ...]:
    """The outputs that are there by position; those of a list one by one."""
    found: list[Value] = []
    for port in operator.outputs:
        value = outputs.get(port.name)
        if port.mark == "*" and type(value) is tuple:
            found += value
        elif value is not None:
            found.append(value)
    return tuple(found)


def _inside(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """A statement of an applied operator: only a requirement is an obligation."""
    if statement.kind == "require":
        return perform(statement, scope, meaning)
    scope.run.quiet += 1
    try:
        return perform(statement, scope, meaning)
    finally:
        scope.run.quiet -= 1


def _types(operator: Operator, ports: Mapping[str, Value | None]) -> dict[str, Value]:
    """The element types of the inputs, by the names that the header gives them."""
    found: dict[str, Value] = {}
    for port in operator.inputs:
        value = ports[port.name]
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, Array):
            found[port.type] = first.type
    return found


def _sizes(value: Value | None) -> Iterator[Term]:
    if isinstance(value, Array):
        yield from (size for size in value.shape if isinstance(size, Term))


def definition(name: str, version: int) -> Operator:
    """The definition of an operator at a version. Raises InternalError where the specification has none."""
    for operator in specification().operators.get(name, ()):
        if operator.first <= version <= operator.last:
            return operator
    raise InternalError(f"{name}-{version} has no definition")


def defaults(operator: Operator, version: int) -> dict[str, Value | None]:
    """The attributes that an application does not state: the schema's defaults, None where there is none."""
    return {name: default_of(operator.name, version, name) for name in signature_of(operator).attributes}
