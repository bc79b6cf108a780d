"""The header of a definition: which one it is, its ports bound to tensors, its attributes with their defaults."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import NOWHERE, Expr, Keyword, Operator, Port, Range, Statement
from sonnx.spec.library import specification

from ...errors import InternalError, Unsupported
from ...model import schemas
from ...model.elements import DTYPES, DType, dtype_of, element_of
from ...model.graph import ValueType
from ...model.type_protos import spelled
from .code import Builder, Clock, Frame, Source, Task, lower, read, run_tasks
from .equations import Dimension, block_tasks, storage_for, tensor, whole
from .expressions import RULES, bind_ranges, evaluate, truth
from .terms import (
    ELEMENT,
    TERMS,
    Affine,
    Axis,
    Function,
    Known,
    Layout,
    NeedStatic,
    Node,
    Operand,
    StuckError,
    Tensor,
    Value,
    kind_of,
    operations,
    row_strides,
    stuck,
)
from .values import Held, Scope, cast, held, literal, operand, plain, static_int, text, type_of

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


KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "INT": (int,),
    "FLOAT": (float, int),
    "STRING": (str,),
    "TENSOR": (np.ndarray,),
    "SPARSE_TENSOR": (np.ndarray,),
    "TYPE_PROTO": (ValueType,),
}
"""For each kind of attribute what holds its value; that of a list has an S more."""


def check_attributes(operator: Operator, version: int, stated: Mapping[str, object], rule: str) -> None:
    """Raises StuckError where an attribute is not one of ONNX's schema, is of another kind, or is required and absent.

    An integer may stand for a FLOAT. Bodies are none of `stated`.
    """
    schema = schemas.schema("", operator.name, version)
    for name in sorted({*stated, *schema.attributes} if schema is not None else ()):
        formal = schema.attributes.get(name) if schema is not None else None
        if name.startswith("__") or (formal is not None and formal.kind in ("GRAPH", "GRAPHS")):
            continue
        if formal is None:
            broken, message = "AttributesListed", f"{operator.name} has no attribute {name} in version {version}."
        elif name not in stated and formal.required:
            broken, message = "AttributesPresent", f"{name} is not given."
        elif name in stated and not _is_of_kind(stated[name], formal.kind):
            broken, message = "AttributeKinds", f"{name} is {stated[name]!r}, it is to be of the kind {formal.kind}."
        else:
            continue
        constraint = specification().constraints[broken]
        raise stuck(rule, constraint.doc, constraint.span, message)


def _is_of_kind(value: object, kind: str) -> bool:
    if kind in KINDS:
        return isinstance(value, KINDS[kind])
    return isinstance(value, tuple) and all(isinstance(item, KINDS.get(kind.removesuffix("S"), ())) for item in value)


def _admits(text: str, found: ValueType) -> bool:
    """True if a type in ONNX's spelling is of this kind, or an optional of it: that may be given as it is."""
    word = {"sequence": "seq("}.get(found.kind, f"{found.kind}(")
    return text.startswith(word) or (found.kind == "sequence" and text.startswith("optional(seq("))


def _check_output_type(statement: Statement, value: Value, rule: str, target: _Target) -> None:
    """Raises StuckError where the type that a definition states for an output is none that ONNX's schema admits."""
    schema = schemas.schema("", target.operator.name, target.version)
    if not isinstance(value, (ValueType, np.dtype)):
        raise InternalError(f"{statement.span}: {value!r} is no type")
    stated = spelled(value if isinstance(value, ValueType) else ValueType("tensor", element_of(value)))
    for port, formal in zip(target.operator.outputs, schema.outputs if schema is not None else (), strict=False):
        if port.type == statement.names[0] and stated is not None and stated not in formal.types:
            message = f"{port.name} would be {stated}, which ONNX does not admit there."
            advice = "Ask for another type, or use a newer operator set."
            raise stuck(rule, written(port), statement.span, message, advice)


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
    """True if a message can show the value."""
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


# Recurrences: the views of an `along` block, step by step, each step vectorised over the other indices.
# The first step is compiled with its index 0; all others share one code, in which the index is a number in the frame.


Tasks = list[tuple[list[Task], int]]


def along(statement: Statement, scope: Scope, default: DType | None) -> Scope:
    """The scope with the views of the block, computed. default: the element type of numerals."""
    (steps,) = statement.ranges
    length = static_int(evaluate(steps.bound, scope))
    tensors: dict[str, Tensor] = {}
    slots: list[tuple[int, tuple[int, ...], DType]] = []
    first = _first(statement, scope, length, default, tensors, slots)
    inner = scope.bind(dict(tensors))
    later: list[Tasks] = []
    clock: Clock | None = None
    if length > 1:
        axis = Axis(length)
        clock = Clock(axis, scope.builder.slot(), 1, length - 1)
        known = Known({**scope.known.ranges, axis: (1, length - 1)}, scope.known.facts, scope.known.masks)
        try:
            later = [_step(statement, replace(inner, known=known), Affine(0, ((axis, 1),)), tensors, clock)]
        except NeedStatic:
            later = [_step(statement, inner, t, tensors, None) for t in range(1, length)]

    def run(frame: Frame) -> None:
        for slot, shape, storage in slots:
            frame[slot] = np.zeros(shape, storage)
        for tasks, work in first:
            run_tasks(tasks, frame, work)
        if clock is None:
            return
        for t in range(1, length):
            frame[clock.slot] = t
            for tasks, work in later[0] if len(later) == 1 else later[t - 1]:
                run_tasks(tasks, frame, work)

    scope.builder.emit(run)
    return inner


def _first(
    statement: Statement,
    scope: Scope,
    length: int,
    default: DType | None,
    tensors: dict[str, Tensor],
    slots: list[tuple[int, tuple[int, ...], DType]],
) -> Tasks:
    """The code of the first step; makes the tensors as their kinds show."""
    found: Tasks = []
    (steps,) = statement.ranges
    inner = scope.bind({steps.names[0]: 0})
    for view in statement.body:
        names, dimensions, some = bind_ranges(list(view.ranges[1:]), inner)
        shape = (length, *(size for size, _ in dimensions))
        value: Operand = 0
        if some and length:
            here = inner.bind({**names, view.ranges[0].names[0]: 0})
            value = operand(evaluate(view.expr, here))
        if not isinstance(value, TERMS) and not isinstance(value, bool) and default is not None:
            value = literal(value, default, scope)
        kind = kind_of(value)
        dtype = value.type if isinstance(value, Node) and kind == ELEMENT else None
        slot = scope.builder.slot()
        layout = Layout(slot, math.prod(shape), 0, row_strides(shape))
        made = Tensor(kind, dtype, shape, _known(layout), made=layout)
        tensors[view.names[0]] = made
        inner = inner.bind({view.names[0]: made})
        order = tuple(axis for _, axes in dimensions for axis in axes)
        split = (length, *(axis.size for axis in order)) if some else shape
        storage = storage_for(scope.builder.algebra, kind, dtype)
        scope.builder.claim(math.prod(shape) * storage.itemsize)
        slots.append((slot, split, storage))
        if some and length:
            found.append(block_tasks(scope.builder, value, order, slot, 0))
    return found


def _known(layout: Layout) -> Callable[[], Layout]:
    return lambda: layout


def _step(statement: Statement, scope: Scope, t: Operand, tensors: Mapping[str, Tensor], clock: Clock | None) -> Tasks:
    """The code of a step, at a number or at the clock's."""
    found: Tasks = []
    builder = scope.builder
    (steps,) = statement.ranges
    inner = scope.bind({steps.names[0]: t})
    for view in statement.body:
        names, dimensions, some = bind_ranges(list(view.ranges[1:]), inner)
        if not some:
            continue
        made = tensors[view.names[0]]
        value: Value = evaluate(view.expr, inner.bind({**names, view.ranges[0].names[0]: t}))
        item = operand(value)
        if made.kind == ELEMENT and made.type is not None:
            item = literal(item, made.type, scope)
        order = tuple(axis for _, axes in dimensions for axis in axes)
        for each in _tensors_in(item):
            _ = each.layout  # what the body reads from outside is computed before the recurrence
        builder.clock = clock
        try:
            at = t if isinstance(t, int) else -1
            found.append(block_tasks(builder, item, order, made.layout.slot, at))
        finally:
            builder.clock = None
    return found


def _tensors_in(term: Operand) -> list[Tensor]:
    """The tensors that a term reads, once for each operation that reads one."""
    return [node.data.tensor for node in operations(term) if isinstance(node.data, Source)]


# Applying a definition: its statements in written order, its outputs as tensors.


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
        scope = STATEMENTS[statement.kind](statement, scope, _Target(operator, version, asked, tuple(wanted), outputs))
    found: list[Value] = []
    for position, port in enumerate(operator.outputs):
        if port.mark == "*":
            several = outputs[port.name]
            if not isinstance(several, tuple):
                raise InternalError(f"{port.name} is no list")
            found += several
        else:
            found.append(outputs[port.name] if position < len(wanted) and wanted[position] else None)
    return found


@dataclass(frozen=True, slots=True)
class _Target:
    """The definition, the outputs that are asked for, by name and by position, and those that are there."""

    operator: Operator
    version: int
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
    """True if an expression is a numeral, whose sort in a view is Element."""
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


def _type_statement(statement: Statement, scope: Scope, target: _Target) -> Scope:
    value = evaluate(statement.expr, scope)
    _check_output_type(statement, value, scope.builder.rule, target)
    return scope.bind({statement.names[0]: value})


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
    numbered = int(str(version))
    operator = definition(str(name), numbered)
    wanted = [position < count for position in range(len(operator.outputs))]
    found = apply_definition(operator, numbered, inputs, attributes, wanted, scope.builder)
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
