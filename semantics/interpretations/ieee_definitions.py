"""Applying a definition: its ports bound to tensors, its statements in written order, its outputs as tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from sonnx.spec.library import specification
from sonnx.spec.syntax import NOWHERE, Expr, Keyword, Operator, Port, Range, Statement

from .. import schemas
from ..elements import DTYPES, dtype_of
from ..errors import InternalError, Unsupported
from .ieee_equations import tensor, whole
from .ieee_expressions import bind_ranges, evaluate, truth
from .ieee_lower import lower
from .ieee_plan import Builder, Frame
from .ieee_terms import (
    ELEMENT,
    TERMS,
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
from .ieee_values import Scope, cast, literal, operand

Input = Tensor | tuple[Tensor, ...] | None


@cache
def definition(op_type: str, version: int) -> Operator:
    """The definition of an operator at a since_version. Raises Unsupported without one."""
    for operator in specification().operators.get(op_type, ()):
        if operator.first <= version <= operator.last:
            return operator
    raise Unsupported(f"the operator {op_type}, version {version}, has no definition yet")


def by_rule(operator: Operator) -> str | None:
    """The rule of the machine that is the meaning of the operator, None when it has equations."""
    return next((s.doc for s in operator.statements if s.kind == "rule"), None)


def apply_definition(
    operator: Operator,
    version: int,
    inputs: Sequence[Input],
    attributes: Mapping[str, Value],
    wanted: Sequence[bool],
    builder: Builder,
) -> list[Tensor | None]:
    """The outputs that are wanted, as tensors of the plan. Raises StuckError, Unsupported."""
    rule = by_rule(operator)
    if rule is not None:
        raise Unsupported(f"{operator.name} is the rule {rule} of the machine, no function of its inputs")
    scope = Scope(builder, specification().functions, _opening(operator, version, inputs, attributes, builder))
    outputs: dict[str, Tensor] = {}
    asked = {port.name for port, want in zip(operator.outputs, wanted, strict=False) if want}
    for statement in operator.statements:
        scope = STATEMENTS[statement.kind](statement, scope, _Target(operator, asked, outputs))
    return [
        outputs[port.name] if position < len(wanted) and wanted[position] else None
        for position, port in enumerate(operator.outputs)
    ]


@dataclass(frozen=True, slots=True)
class _Target:
    """The definition, the outputs that are asked for, and those that are there."""

    operator: Operator
    asked: set[str]
    outputs: dict[str, Tensor]


# ---- the header -------------------------------------------------------------------------------


def _opening(
    operator: Operator, version: int, inputs: Sequence[Input], attributes: Mapping[str, Value], builder: Builder
) -> dict[str, Value]:
    """The names that a definition starts with."""
    names: dict[str, Value] = {**defaults(operator.name, version), **attributes}
    types: dict[str, DType] = {}
    for port, given in _actual(operator, inputs):
        names[port.name] = given
        if given is None and not port.mark:
            raise stuck(builder.rule, written(port), port.span, f"{port.name} is required and absent.")
        tensors = given if isinstance(given, tuple) else () if given is None else (given,)
        for each in tensors:
            _bind_type(port, each, types, builder)
        if isinstance(given, Tensor) and port.shape is not None:
            _bind_shape(port, given, names, builder)
    for port in (*operator.inputs, *operator.outputs):
        if port.type in types:
            names[port.type] = types[port.type]
        elif port.type in DTYPES:
            names[port.type] = DTYPES[port.type]
    return names


def _actual(operator: Operator, inputs: Sequence[Input]) -> list[tuple[Port, Input]]:
    found: list[tuple[Port, Input]] = []
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            rest = tuple(x for x in inputs[position:] if isinstance(x, Tensor))
            found.append((port, rest))
            break
        found.append((port, inputs[position] if position < len(inputs) else None))
    return found


def written(port: Port) -> str:
    """A port as its definition writes it."""
    dims = [str(d) if isinstance(d, int) else d[0] + ("..." if d[1] else "") for d in port.shape or ()]
    return f"{port.name}{port.mark}: {port.type}" + (f"[{', '.join(dims)}]" if port.shape is not None else "")


def _bind_type(port: Port, given: Tensor, types: dict[str, DType], builder: Builder) -> None:
    if given.type is None:
        raise InternalError(f"{port.name} is given what holds no elements")
    expected = DTYPES.get(port.type) or types.get(port.type)
    if expected is None:
        types[port.type] = given.type
    elif expected != given.type:
        message = f"{port.name} has elements of {given.type}, where {port.type} is {expected}."
        raise stuck(builder.rule, written(port), port.span, message)


def _bind_shape(port: Port, given: Tensor, names: dict[str, Value], builder: Builder) -> None:
    dims, shape = port.shape or (), given.shape
    dotted = [p for p, d in enumerate(dims) if not isinstance(d, int) and d[1]]
    rest = len(shape) - (len(dims) - len(dotted))
    if rest < 0 or (rest > 0 and not dotted):
        count = f"at least {len(dims) - len(dotted)}" if dotted else str(len(dims))
        message = f"{port.name} has the shape {list(shape)}; its definition gives it {count} axes."
        raise stuck(builder.rule, written(port), port.span, message)
    at = 0
    for dim in dims:
        if isinstance(dim, int):
            found: Value = shape[at]
            expected: Value = dim
            at += 1
        elif dim[1]:
            found = shape[at : at + rest]
            expected = names.setdefault(dim[0], found)
            at += rest
        else:
            found = shape[at]
            expected = names.setdefault(dim[0], found)
            at += 1
        if expected != found:
            label = dim if isinstance(dim, int) else dim[0]
            message = f"{port.name} has the shape {list(shape)}, where {label} = {_shown(expected)}."
            raise stuck(builder.rule, written(port), port.span, message)


@cache
def defaults(op_type: str, version: int) -> Mapping[str, Value]:
    """The attributes of an operator with the schema's defaults, None where it states none."""
    schema = schemas.schema("", op_type, version)
    if schema is None:
        raise Unsupported(f"ONNX knows no operator {op_type} at version {version}")
    found: dict[str, Value] = {}
    for name, attribute in schema.attributes.items():
        stated = attribute.default
        found[name] = None if stated is None else attribute_value(stated.value)
    return found


def attribute_value(value: object) -> Value:
    """An attribute as an expression sees it: numbers exact, text as str."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        exact = Fraction(value)
        return int(exact) if exact.denominator == 1 else exact
    if isinstance(value, (tuple, list)):
        return tuple(attribute_value(item) for item in value)
    if value is None or isinstance(value, (int, str, Tensor)):
        return value
    raise Unsupported(f"an attribute that is a {type(value).__name__}")


# ---- statements -------------------------------------------------------------------------------


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


def _violated(statement: Statement, scope: Scope) -> Callable[[], StuckError]:
    def error() -> StuckError:
        names = dict.fromkeys(_mentioned(statement.expr))
        known = [f"{n} = {_shown(scope.names[n])}" for n in names if n in scope.names and _is_shown(scope.names[n])]
        message = f"It does not hold for {', '.join(known)}." if known else "It does not hold for these inputs."
        return stuck(scope.builder.rule, statement.doc, statement.span, message)

    return error


def _mentioned(expr: Expr) -> list[str]:
    found = [str(expr.args[0])] if expr.head == "var" else []
    for child in expr.children():
        found += _mentioned(child)
    return found


def _is_shown(value: Value) -> bool:
    if isinstance(value, Tensor):
        return True
    return isinstance(value, (int, float, Fraction, str, np.dtype)) or (
        isinstance(value, tuple) and all(_is_shown(item) for item in value)
    )


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_shown(item) for item in value)}]"
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _array(ranges: Sequence[Range], expr: Expr, scope: Scope, dtype: DType | None) -> Tensor:
    """The tensor that ranges and an expression define; dtype: the element type when it is to hold elements."""
    names, dimensions, some = bind_ranges(list(ranges), scope)
    if not some:
        return _without_elements(dimensions, dtype, scope)
    value = operand(evaluate(expr, scope.bind(names)))
    return _tensor(value, dimensions, scope, dtype)


def _tensor(value: Operand, dimensions: list[tuple[int, tuple[object, ...]]], scope: Scope, dtype: DType | None) -> Tensor:
    if dtype is not None:
        if isinstance(value, Node) and value.kind == ELEMENT:
            if value.type != dtype:
                raise InternalError(f"an output of {dtype} from elements of {value.type}")
        elif kind_of(value) in ("Int", "Bool") and isinstance(value, TERMS):
            value = cast(dtype, value, scope)
        else:
            value = literal(value, dtype, scope)
        return tensor(scope.builder, value, dimensions, ELEMENT, dtype)  # type: ignore[arg-type]
    kind = kind_of(value)
    held = value.type if isinstance(value, Node) and kind == ELEMENT else None
    return tensor(scope.builder, value, dimensions, kind, held)  # type: ignore[arg-type]


def _without_elements(dimensions: list[tuple[int, tuple[object, ...]]], dtype: DType | None, scope: Scope) -> Tensor:
    """A tensor with no element: its expression is not evaluated, for there is no index."""
    held = dtype or np.dtype(np.float32)
    return tensor(scope.builder, literal(0, held, scope), dimensions, ELEMENT, held)  # type: ignore[arg-type]


def _view(statement: Statement, scope: Scope, target: _Target) -> Scope:
    names, dimensions, some = bind_ranges(list(statement.ranges), scope)
    if not some:
        dtype = next((v for v in scope.names.values() if isinstance(v, np.dtype)), None)
        return scope.bind({statement.names[0]: _without_elements(dimensions, dtype, scope)})  # type: ignore[arg-type]
    value = operand(evaluate(statement.expr, scope.bind(names)))
    default = _element_type(target.operator, scope)
    if not isinstance(value, TERMS) and not isinstance(value, bool) and default is not None and _weak(statement.expr):
        value = literal(value, default, scope)
    return scope.bind({statement.names[0]: _tensor(value, dimensions, scope, None)})  # type: ignore[arg-type]


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


def _output_type(port: Port, scope: Scope) -> DType:
    found = scope.names.get(port.type)
    if isinstance(found, np.dtype):
        return found
    return dtype_of(port.type)


def _result(statement: Statement, scope: Scope, target: _Target) -> Scope:
    name = statement.names[0]
    if name not in target.asked:
        return scope
    value = evaluate(statement.expr, scope)
    if not isinstance(value, Tensor):
        raise InternalError(f"{statement.span}: {name} is given what is no tensor")
    port = next(p for p in target.operator.outputs if p.name == name)
    target.outputs[name] = as_elements(value, _output_type(port, scope), scope)
    return scope


def as_elements(value: Tensor, dtype: DType, scope: Scope) -> Tensor:
    """A tensor that holds elements of a type; integers and truth values become elements."""
    if value.kind == ELEMENT:
        if value.type != dtype:
            raise InternalError(f"an output of {dtype} from a tensor of {value.type}")
        return value
    from .ieee_reads import read
    from .ieee_terms import Affine, Axis

    axes = [Axis(size) if size > 1 else None for size in value.shape]
    dimensions = [(s, (a,) if a is not None else ()) for s, a in zip(value.shape, axes, strict=True)]
    if 0 in value.shape:
        return _without_elements(dimensions, dtype, scope)  # type: ignore[arg-type]
    indices = [0 if a is None else Affine(0, ((a, 1),)) for a in axes]
    item = read(value, indices, Known(), "the tensor", NOWHERE, scope.builder.rule)
    return _tensor(item, dimensions, scope, dtype)  # type: ignore[arg-type]


def _type_statement(statement: Statement, scope: Scope, _target: _Target) -> Scope:
    return scope.bind({statement.names[0]: evaluate(statement.expr, scope)})


def _along(statement: Statement, scope: Scope, target: _Target) -> Scope:
    from .ieee_recurrences import along

    return along(statement, scope, _element_type(target.operator, scope))


# ---- composition ------------------------------------------------------------------------------


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
                items = value if isinstance(value, tuple) else (value,)
                for each in items:
                    if not isinstance(each, Tensor):
                        raise InternalError(f"{item.span}: an operator is applied to what is no tensor")
                    inputs.append(_with_elements(each, scope))
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
    "view": _view,
    "equation": _equation,
    "result": _result,
    "type": _type_statement,
    "along": _along,
}
"""For each kind of statement what it adds to the scope or the outputs."""
_ = replace
