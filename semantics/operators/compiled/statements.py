"""Applying a definition: its statements in written order, its outputs as tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import NOWHERE, Expr, Keyword, Operator, Port, Range, Statement
from sonnx.spec.library import specification

from ...errors import InternalError, Unsupported
from ...model.elements import dtype_of
from ...model.graph import ValueType
from .equations import Dimension, tensor, whole
from .expressions import RULES, evaluate, truth
from .fold_expressions import bind_ranges
from .headers import Input, by_rule, definition, is_shown, opening, shown
from .held import Held, held
from .lower import lower
from .plan import Builder, Frame
from .reads import read
from .recurrences import along
from .terms import (
    ELEMENT,
    TERMS,
    Affine,
    Axis,
    DType,
    Function,
    Known,
    Node,
    Operand,
    StuckError,
    Tensor,
    Value,
    kind_of,
    stuck,
)
from .values import Scope, cast, literal, operand, text


def apply_definition(
    operator: Operator,
    version: int,
    inputs: Sequence[Input],
    attributes: Mapping[str, Value],
    wanted: Sequence[bool],
    builder: Builder,
) -> list[Value]:
    """The outputs that are wanted, as values of the plan, None for others. Raises StuckError, Unsupported."""
    rule = by_rule(operator)
    if rule is not None:
        raise Unsupported(f"{operator.name} is the rule {rule} of the machine, no function of its inputs")
    names = opening(operator, version, inputs, attributes, wanted, builder)
    scope = Scope(builder, specification().functions, names)
    outputs: dict[str, Value] = {}
    asked = {port.name for port, want in zip(operator.outputs, wanted, strict=False) if want}
    for statement in operator.statements:
        scope = STATEMENTS[statement.kind](statement, scope, _Target(operator, asked, tuple(wanted), outputs))
    found: list[Value] = []
    for position, port in enumerate(operator.outputs):
        if port.mark == "*":
            found += outputs[port.name]  # type: ignore[arg-type]
        else:
            found.append(outputs[port.name] if position < len(wanted) and wanted[position] else None)
    return found


@dataclass(frozen=True, slots=True)
class _Target:
    """The definition, the outputs that are asked for, by name and by position, and those that are there."""

    operator: Operator
    asked: set[str]
    wanted: tuple[bool, ...]
    outputs: dict[str, Value]


def _let(statement: Statement, scope: Scope, _target: _Target) -> Scope:
    value: Value
    if statement.expr.head == "apply" and len(statement.names) > 1:
        value = composed(statement.expr, scope, len(statement.names))
    else:
        value = evaluate(statement.expr, scope)
    if len(statement.names) == 1:
        return scope.bind({statement.names[0]: value})
    if not isinstance(value, tuple) or len(value) != len(statement.names):
        rule = scope.builder.rule
        raise stuck(rule, f"{len(statement.names)} entries", statement.span, "The list has another number of entries.")
    return scope.bind(dict(zip(statement.names, value, strict=True)))


def _function(statement: Statement, scope: Scope, _target: _Target) -> Scope:
    function = Function(tuple(p.name for p in statement.parameters), statement.expr, scope)
    return scope.bind({statement.names[0]: function})


def _require(statement: Statement, scope: Scope, _target: _Target) -> Scope:
    value = truth(statement.expr, scope)
    error = _violated(statement, scope)
    if not isinstance(value, TERMS):
        if not value:
            raise error()
        return scope
    code = lower(value, whole(scope.builder, ()))

    def check(frame: Frame) -> None:
        found = code if isinstance(code, np.ndarray) else code(frame)
        if not found:
            raise error()

    scope.builder.emit(check)
    return scope


def _restrict(_statement: Statement, scope: Scope, _target: _Target) -> Scope:
    """What a rule set forbids is defined all the same."""
    return scope


def _violated(statement: Statement, scope: Scope) -> Callable[[], StuckError]:
    def error() -> StuckError:
        names = dict.fromkeys(_mentioned(statement.expr))
        known = [f"{n} = {shown(scope.names[n])}" for n in names if n in scope.names and is_shown(scope.names[n])]
        message = f"It does not hold for {', '.join(known)}." if known else "It does not hold for these inputs."
        return stuck(scope.builder.rule, statement.doc, statement.span, message)

    return error


def _mentioned(expr: Expr) -> list[str]:
    found = [str(expr.args[0])] if expr.head == "var" else []
    for child in expr.children():
        found += _mentioned(child)
    return found


def _array(ranges: Sequence[Range], expr: Expr, scope: Scope, dtype: DType | None) -> Tensor:
    """The tensor that ranges and an expression define; dtype: the element type when it is to hold elements."""
    names, dimensions, some = bind_ranges(list(ranges), scope)
    if not some:
        return _without_elements(dimensions, dtype, scope)
    value = operand(evaluate(expr, scope.bind(names)))
    return _tensor(value, dimensions, scope, dtype)


def _tensor(
    value: Operand, dimensions: list[tuple[int, tuple[Axis, ...]]], scope: Scope, dtype: DType | None
) -> Tensor:
    if dtype is not None:
        if isinstance(value, Node) and value.kind == ELEMENT:
            if value.type != dtype:
                raise InternalError(f"an output of {dtype} from elements of {value.type}")
        elif kind_of(value) in ("Int", "Bool") and isinstance(value, TERMS):
            value = cast(dtype, value, scope)
        else:
            value = literal(value, dtype, scope)
        return tensor(scope.builder, value, dimensions, ELEMENT, dtype)
    kind = kind_of(value)
    held = value.type if isinstance(value, Node) and kind == ELEMENT else None
    return tensor(scope.builder, value, dimensions, kind, held)


def _without_elements(dimensions: list[tuple[int, tuple[Axis, ...]]], dtype: DType | None, scope: Scope) -> Tensor:
    """A tensor with no element: its expression is not evaluated, for there is no index."""
    held = dtype or np.dtype(np.float32)
    some = text("") if held == np.dtype(object) else literal(0, held, scope)
    return tensor(scope.builder, some, dimensions, ELEMENT, held)


def _view(statement: Statement, scope: Scope, target: _Target) -> Scope:
    names, dimensions, some = bind_ranges(list(statement.ranges), scope)
    if not some:
        dtype = next((v for v in scope.names.values() if isinstance(v, np.dtype)), None)
        return scope.bind({statement.names[0]: _without_elements(dimensions, dtype, scope)})
    value = operand(evaluate(statement.expr, scope.bind(names)))
    default = _element_type(target.operator, scope)
    if not isinstance(value, TERMS) and not isinstance(value, bool) and default is not None and _weak(statement.expr):
        value = literal(value, default, scope)
    return scope.bind({statement.names[0]: _tensor(value, dimensions, scope, None)})


def _weak(expr: Expr) -> bool:
    """Whether an expression is a numeral, whose sort in a view is Element."""
    return expr.head in ("int", "float") or (expr.head == "neg" and _weak(next(expr.children())))


def _element_type(operator: Operator, scope: Scope) -> DType | None:
    for port in operator.inputs:
        found = scope.names.get(port.type)
        if isinstance(found, np.dtype):
            return found
    return None


def _equation(statement: Statement, scope: Scope, target: _Target) -> Scope:
    name = statement.names[0]
    if name not in target.asked:
        return scope
    port = next(p for p in target.operator.outputs if p.name == name)
    made = _array(statement.ranges, statement.expr, scope, _output_type(port, scope))
    target.outputs[name] = made
    return scope


def _each(statement: Statement, scope: Scope, target: _Target) -> Scope:
    name, position = statement.names
    first = next(k for k, port in enumerate(target.operator.outputs) if port.name == name)
    dtype = _output_type(target.operator.outputs[first], scope)
    target.outputs[name] = tuple(
        _array(statement.ranges, statement.expr, scope.bind({position: k}), dtype) if want else None
        for k, want in enumerate(target.wanted[first:])
    )
    return scope


def _output_type(port: Port, scope: Scope) -> DType:
    found = scope.names.get(port.type)
    if isinstance(found, np.dtype):
        return found
    return dtype_of(port.type)


def _result(statement: Statement, scope: Scope, target: _Target) -> Scope:
    name = statement.names[0]
    if name not in target.asked:
        return scope
    port = next(p for p in target.operator.outputs if p.name == name)
    target.outputs[name] = _whole(evaluate(statement.expr, scope), scope.names.get(port.type), statement, scope)
    return scope


def _whole(value: Value, kind: Value, statement: Statement, scope: Scope) -> Value:
    """A tensor, a sequence or an optional as an output. kind: its type, None when it is the value's own."""
    if isinstance(value, Tensor):
        return as_elements(value, kind, scope) if isinstance(kind, np.dtype) else _with_elements(value, scope)
    if isinstance(value, tuple) and isinstance(kind, ValueType):
        return held(tuple(_with_elements(x, scope) if isinstance(x, Tensor) else x for x in value), kind)
    if isinstance(value, Held):
        return value
    raise InternalError(f"{statement.span}: {statement.names[0]} is given what has no type")


def as_elements(value: Tensor, dtype: DType, scope: Scope) -> Tensor:
    """A tensor that holds elements of a type; integers and truth values become elements."""
    if value.kind == ELEMENT:
        if value.type != dtype:
            raise InternalError(f"an output of {dtype} from a tensor of {value.type}")
        return value

    axes = [Axis(size) if size > 1 else None for size in value.shape]
    dimensions: list[Dimension] = [(s, (a,) if a is not None else ()) for s, a in zip(value.shape, axes, strict=True)]
    if 0 in value.shape:
        return _without_elements(dimensions, dtype, scope)
    indices = [0 if a is None else Affine(0, ((a, 1),)) for a in axes]
    item = read(value, indices, Known(), "the tensor", NOWHERE, scope.builder.rule)
    return _tensor(item, dimensions, scope, dtype)


def _type_statement(statement: Statement, scope: Scope, _target: _Target) -> Scope:
    return scope.bind({statement.names[0]: evaluate(statement.expr, scope)})


def _along(statement: Statement, scope: Scope, target: _Target) -> Scope:

    return along(statement, scope, _element_type(target.operator, scope))


def composed(expr: Expr, scope: Scope, count: int = 1) -> tuple[Value, ...]:
    """The first outputs of an operator that a definition applies."""
    name, version, *rest = expr.args
    inputs: list[Input] = []
    attributes: dict[str, Value] = {}
    for item in rest:
        match item:
            case None:
                inputs.append(None)
            case Keyword():
                attributes[item.name] = evaluate(item.value, scope)
            case Expr():
                value = evaluate(item, scope)
                for each in value if isinstance(value, tuple) and not isinstance(value, Held) else (value,):
                    if not isinstance(each, (Tensor, Held)):
                        raise InternalError(f"{item.span}: an operator is applied to what is no tensor")
                    inputs.append(_with_elements(each, scope) if isinstance(each, Tensor) else each)
    operator = definition(str(name), int(version))  # type: ignore[arg-type]
    wanted = [position < count for position in range(len(operator.outputs))]
    found = apply_definition(operator, int(version), inputs, attributes, wanted, scope.builder)  # type: ignore[arg-type]
    return tuple(found[:count])


def _with_elements(value: Tensor, scope: Scope) -> Tensor:
    """Integers of a view are int64 elements outside it, truth values bool."""
    if value.kind == ELEMENT:
        return value
    return as_elements(value, np.dtype(np.bool_ if value.kind == "Bool" else np.int64), scope)


STATEMENTS: Final[Mapping[str, Callable[[Statement, Scope, _Target], Scope]]] = {
    "let": _let,
    "function": _function,
    "require": _require,
    "restrict": _restrict,
    "view": _view,
    "equation": _equation,
    "each": _each,
    "result": _result,
    "type": _type_statement,
    "along": _along,
}
"""For each kind of statement what it adds to the scope or the outputs."""


def _applied(expr: Expr, scope: Scope) -> Value:
    return composed(expr, scope)[0]


RULES["apply"] = _applied
