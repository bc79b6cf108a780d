"""A definition on concrete shapes: each element of an output as a value of an algebra of elements.

With exact numbers this is the smt interpretation of one application, the counterpart of ieee on small shapes; with
elements that remember what they were read from it is the footprint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import floor, prod

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.language.syntax import NOWHERE, Operator, Statement
from sonnx.spec.library import specification

from ...errors import Unsupported
from ...formulas.terms import FALSE, Argument, Term
from ...model.elements import element_of
from ..application import Application, AttributeData
from .attributes import constant
from .composition import compose, defaults, definition
from .numbers import Int
from .statements import Meaning, asked, bind_shapes, opening, perform
from .values import Algebra, Array, Dead, ElementType, Run, Scope, Split, Undefined, Value


@dataclass(frozen=True, slots=True)
class Applied:
    """The outputs of an application by position, None where one is not asked for, and the scope to read them in."""

    outputs: tuple[Array | None, ...]
    scope: Scope


def apply(application: Application, algebra: Algebra) -> Applied:
    """The outputs of an application. Reading an input asks the algebra for the element of `NAME` at an index.

    Raises Undefined where a requirement fails or the text has no value, Unsupported for values that are no tensors.
    """
    operator = definition(application.op_type, application.version)
    env = _opening(application, operator, algebra)
    run = Run(
        functions=specification().functions,
        apply=compose,
        algebra=algebra,
        texts=(),
        decided={},
        path=(),
        whole=True,
    )
    scope = bind_shapes(operator, Scope(env, run), operator.span)
    meaning = Meaning(operator, {}, False, frozenset())
    for statement in operator.statements:
        if statement.kind == "rule":
            raise Unsupported(f"{operator.name} is a rule of the machine")
        scope, meaning = _perform(statement, scope, meaning)
    by_position: list[Value | None] = []
    for port in operator.outputs:
        value = meaning.outputs.get(port.name)
        by_position += value if port.mark == "*" and type(value) is tuple else [value]
    pairs = zip(by_position, application.outputs, strict=False)
    return Applied(tuple(value if given and isinstance(value, Array) else None for value, given in pairs), scope)


def _perform(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    try:
        return perform(statement, scope, meaning)
    except Dead as problem:
        raise Undefined("require" if statement.kind == "require" else "dead", statement.span, FALSE) from problem
    except Split as problem:
        raise Unsupported(f"{statement.span}: {problem.term} is no constant") from problem


def _opening(application: Application, operator: Operator, algebra: Algebra) -> dict[str, Value]:
    """The names at the start, the element types of the tensors included."""
    ports: dict[str, Value | None] = {}
    types: dict[str, Value] = {}
    inputs = list(application.inputs)
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            made = [
                tensor(f"{port.name}.{k}", _array(value), algebra)
                for k, value in enumerate(inputs[position:])
                if value is not None
            ]
            ports[port.name] = tuple(made)
            types |= {port.type: made[0].type} if made else {}
        elif position < len(inputs) and inputs[position] is not None:
            item = tensor(port.name, _array(inputs[position]), algebra)
            ports[port.name] = item
            types[port.type] = item.type
        else:
            ports[port.name] = None
    attributes: dict[str, Value | None] = defaults(operator, application.version)
    for name, data in application.attributes.items():
        attributes[name] = attribute(name, data, algebra)
    return {**types, **opening(operator, ports, attributes), **asked(operator, application.outputs)}


def _array(value: object) -> NDArray[np.generic]:
    if isinstance(value, np.ndarray):
        return value
    raise Unsupported("a value that is no tensor")


def tensor(name: str, data: NDArray[np.generic], algebra: Algebra) -> Array:
    """A tensor whose elements the algebra reads."""
    kind = ElementType(element_of(data.dtype))
    read: Callable[[tuple[Int, ...], Scope], Value] = lambda index, scope: algebra.read(name, index, kind, scope)  # noqa: E731
    return Array(name, data.shape, read, kind)


def attribute(name: str, data: AttributeData | Term | tuple[Term, ...], algebra: Algebra) -> Value | None:
    """An attribute's value, or symbols for it; a tensor is read like an input."""
    return tensor(name, data, algebra) if isinstance(data, np.ndarray) else constant(data)


def element_at(applied: Applied, output: int, index: tuple[int, ...]) -> Value:
    """The element of an output. Raises Undefined, Unsupported."""
    found = applied.outputs[output]
    if found is None:
        raise Unsupported(f"output {output} is not asked for")
    try:
        return found.read(index, applied.scope)
    except Dead as problem:
        raise Undefined("contract", NOWHERE, FALSE) from problem


def tensors(application: Application, operator: Operator) -> Mapping[str, NDArray[np.generic]]:
    """The tensors of an application by the names under which the algebra is asked for their elements."""
    found: dict[str, NDArray[np.generic]] = {}
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            found |= {
                f"{port.name}.{k}": _array(v) for k, v in enumerate(application.inputs[position:]) if v is not None
            }
        elif position < len(application.inputs) and application.inputs[position] is not None:
            found[port.name] = _array(application.inputs[position])
    found |= {name: data for name, data in application.attributes.items() if isinstance(data, np.ndarray)}
    return found


def positions(application: Application, operator: Operator) -> Mapping[str, int]:
    """The position of each tensor among the inputs by its name; attributes have none."""
    found: dict[str, int] = {}
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            found |= {f"{port.name}.{k}": position + k for k in range(len(application.inputs) - position)}
        else:
            found[port.name] = position
    return found


# ---- Terms ------------------------------------------------------------------------------------


def evaluate_term(term: Argument, symbols: Mapping[str, int]) -> int | Fraction | bool:
    """The value of a term without quantifiers for given values of its symbols."""
    if isinstance(term, str):
        return symbols[term]
    if not isinstance(term, Term):
        return term
    if term.op in ("true", "false"):
        return term.op == "true"
    if not term.args:
        return symbols[term.op]
    if term.op in ("ite", "rite"):
        chosen = term.args[1] if evaluate_term(term.args[0], symbols) else term.args[2]
        return evaluate_term(chosen, symbols)
    return VALUES[term.op]([evaluate_term(part, symbols) for part in term.args])


Number = int | Fraction | bool

VALUES: Mapping[str, Callable[[list[Number]], Number]] = {
    "+": sum, "*": prod, "r+": sum, "r*": prod,
    "r-": lambda v: v[0] - v[1], "r/": lambda v: Fraction(v[0]) / Fraction(v[1]),
    "div": lambda v: int(v[0]) // int(v[1]), "mod": lambda v: int(v[0]) % int(v[1]),
    "<=": lambda v: v[0] <= v[1], "=": lambda v: v[0] == v[1], "iff": lambda v: v[0] == v[1],
    "r<": lambda v: v[0] < v[1], "r<=": lambda v: v[0] <= v[1], "r=": lambda v: v[0] == v[1],
    "and": all, "or": any, "not": lambda v: not v[0], "=>": lambda v: not v[0] or bool(v[1]),
    "rational": lambda v: Fraction(int(v[0]), int(v[1])), "to_real": lambda v: v[0], "to_int": lambda v: floor(v[0]),
}  # fmt: skip
"""The operators of terms on numbers."""
