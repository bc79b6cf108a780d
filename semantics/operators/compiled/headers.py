"""The header of a definition: which one it is, its ports bound to tensors, its attributes with their defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
from sonnx.spec.language.syntax import Operator, Port
from sonnx.spec.library import specification

from ...errors import Unsupported
from ...model import schemas
from ...model.elements import DTYPES, element_of
from ...model.graph import ValueType
from .held import Held, plain, type_of
from .plan import Builder
from .terms import DType, Tensor, Value, stuck

Input = Tensor | Held | tuple[Tensor | Held, ...] | None


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


def opening(
    operator: Operator,
    version: int,
    inputs: Sequence[Input],
    attributes: Mapping[str, Value],
    wanted: Sequence[bool],
    builder: Builder,
) -> dict[str, Value]:
    """The names that a definition starts with. wanted: by position, whether an output is asked for."""
    names: dict[str, Value] = {**defaults(operator.name, version), **attributes}
    types: dict[str, DType | ValueType] = {}
    for position, port in enumerate(operator.outputs):
        if port.mark == "*":
            names[port.name] = (None,) * (len(wanted) - position)
        elif port.mark == "?":
            names[port.name] = names[f"given {port.name}"] = (
                True if position < len(wanted) and wanted[position] else None
            )
    for port, given in _actual(operator, inputs):
        names[port.name] = given
        if given is None and not port.mark:
            raise stuck(builder.rule, written(port), port.span, f"{port.name} is required and absent.")
        entries = given if isinstance(given, tuple) and not isinstance(given, Held) else (given,)
        for each in entries if given is not None else ():
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
            rest = tuple(x for x in inputs[position:] if isinstance(x, (Tensor, Held)))
            found.append((port, rest))
            break
        found.append((port, inputs[position] if position < len(inputs) else None))
    return found


def check_types(operator: Operator, version: int, inputs: Sequence[Input], rule: str) -> None:
    """Raises StuckError for a tensor whose element type ONNX's schema does not admit at that version."""
    schema = schemas.schema("", operator.name, version)
    for position, given in enumerate(inputs):
        if schema is None or not schema.inputs or given is None or (isinstance(given, Tensor) and given.type is None):
            continue
        at = min(position, len(schema.inputs) - 1)
        found = type_of(given)
        if isinstance(found, ValueType):
            admitted = any(_admits(text, found) for text in schema.inputs[at].types)
            held = f"is of kind {found.kind}"
        else:
            admitted = f"tensor({element_of(found)})" in schema.inputs[at].types
            held = f"has elements of type {element_of(found)}"
        if not admitted:
            port = operator.inputs[at]
            message = f"{port.name} {held}, which ONNX does not admit there."
            raise stuck(rule, written(port), port.span, message, "Cast the input, or use a newer operator set.")


def _admits(text: str, found: ValueType) -> bool:
    """Whether a type in ONNX's spelling is of this kind, or an optional of it: that may be given as it is."""
    word = {"sequence": "seq("}.get(found.kind, f"{found.kind}(")
    return text.startswith(word) or (found.kind == "sequence" and text.startswith("optional(seq("))


def written(port: Port) -> str:
    """A port as its definition writes it."""
    dims = [str(d) if isinstance(d, int) else d[0] + ("..." if d[1] else "") for d in port.shape or ()]
    return f"{port.name}{port.mark}: {port.type}" + (f"[{', '.join(dims)}]" if port.shape is not None else "")


def _bind_type(port: Port, given: Value, types: dict[str, DType | ValueType], builder: Builder) -> None:
    found = type_of(given)
    expected = DTYPES.get(port.type) or types.get(port.type)
    if expected is None:
        types[port.type] = found
    elif expected != found:
        message = f"{port.name} has elements of {found}, where {port.type} is {expected}."
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
            message = f"{port.name} has the shape {list(shape)}, where {label} = {shown(expected)}."
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
    """An attribute as an expression sees it: numbers exact, NaN, infinities and -0.0 as floats, text as str."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
            return value
        exact = Fraction(value)
        return int(exact) if exact.denominator == 1 else exact
    if isinstance(value, (tuple, list)):
        return tuple(attribute_value(item) for item in value)
    if value is None or isinstance(value, (int, str, Tensor)):
        return value
    if isinstance(value, ValueType):
        return plain(value)
    raise Unsupported(f"an attribute that is a {type(value).__name__}")


def is_shown(value: Value) -> bool:
    """Whether a message can show the value."""
    if isinstance(value, Tensor):
        return True
    return isinstance(value, (int, float, Fraction, str, np.dtype)) or (
        isinstance(value, tuple) and all(is_shown(item) for item in value)
    )


def shown(value: Value) -> str:
    """A value as a message shows it."""
    if isinstance(value, tuple):
        return f"[{', '.join(shown(item) for item in value)}]"
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)
