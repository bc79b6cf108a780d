"""Definitions compiled: ports are bound to tensors, attributes have their defaults; then the statements, in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from sonnx.spec.elaborate.core import Binding, Bound, Core, CoreOperator, CoreStatement
from sonnx.spec.elaborate.sorts import ELEMENT as ELEMENTS
from sonnx.spec.language.syntax import NOWHERE, Port, spelled_group
from sonnx.spec.library import specification

from ...errors import InternalError, Unsupported
from ...model import schemas
from ...model.elements import DTYPES, DType, dtype_of, element_of
from ...model.graph import ValueType
from ...model.type_protos import spelled
from .. import reading
from .code import Builder, Clock, Frame, Source, Task, lower, read, run_of, run_tasks
from .equations import Dimension, block_tasks, storage_for, tensor, whole
from .expressions import ANSWERS, MEANING, bind_ranges, evaluate, truth
from .terms import (
    ELEMENT,
    INT,
    TERMS,
    Affine,
    Axis,
    IndexFacts,
    Layout,
    NeedStatic,
    Node,
    Operand,
    StuckError,
    Tensor,
    Value,
    bounds,
    fits_int64,
    is_element,
    kind_of,
    operations,
    row_strides,
    stuck,
)
from .values import Held, Scope, cast, held, listed, literal, operand, plain, static_int, text, type_of

Input = Tensor | Held | tuple[Tensor | Held, ...] | None


def definition(op_type: str, version: int) -> CoreOperator:
    """The definition of an operator at a since_version. Raises Unsupported without one."""
    operator = specification().meanings.at(op_type, version)
    if operator is None:
        raise Unsupported(f"the operator {op_type}, version {version}, has no definition yet")
    return operator


def opening(
    operator: CoreOperator,
    version: int,
    inputs: Sequence[Input],
    attributes: Mapping[str, Value],
    wanted: Sequence[bool],
    builder: Builder,
) -> dict[Binding | None, Value]:
    """The start of a definition. wanted: by position, whether an output is asked for."""
    own = operator.names
    stated = {**defaults(operator, version), **attributes}
    names: dict[Binding | None, Value] = {
        own[it]: value for it, value in stated.items() if it in own and own[it].origin == "attribute"
    }
    for position, port in enumerate(operator.outputs):
        result = own.get(f"given {port.name}") or own[port.name]
        if port.mark == "*":
            names[result] = (None,) * (len(wanted) - position)
        elif port.mark == "?":
            names[result] = True if position < len(wanted) and wanted[position] else None
    types: dict[str, DType | ValueType] = {}
    for port, given in _actual(operator, inputs):
        names[own[port.name]] = given
        if given is None and not port.mark:
            raise stuck(builder.rule, written(port), port.span, f"{port.name} is required and absent.")
        entries = given if isinstance(given, tuple) and not isinstance(given, Held) else (given,)
        for number, each in enumerate(entries) if given is not None else ():
            _bind_type(port, port.types[number % len(port.types)], each, types, builder)
        if isinstance(given, Tensor) and port.shape is not None:
            _bind_shape(operator, port, given, names, builder)
    for port in (*operator.inputs, *operator.outputs):
        if port.type in types or port.type in DTYPES:
            names[own[port.type]] = types[port.type] if port.type in types else DTYPES[port.type]
    return names


def _actual(operator: CoreOperator, inputs: Sequence[Input]) -> list[tuple[Port, Input]]:
    found: list[tuple[Port, Input]] = []
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            rest = tuple(x for x in inputs[position:] if isinstance(x, (Tensor, Held)))
            found.append((port, rest))
            break
        found.append((port, inputs[position] if position < len(inputs) else None))
    return found


def check_types(operator: CoreOperator, version: int, inputs: Sequence[Input], rule: str) -> None:
    """Raises StuckError for a tensor whose element type ONNX's schema does not admit at that version."""
    schema = schemas.schema_of(operator.name, version)
    for position, given in enumerate(inputs):
        if schema is None or not schema.inputs or given is None or (isinstance(given, Tensor) and given.type is None):
            continue
        formal = schemas.formal_at(schema.inputs, position) or schema.inputs[-1]
        found = type_of(given)
        if isinstance(found, ValueType):
            admitted = any(_admits(text, found) for text in formal.types)
            held = f"is of kind {found.kind}"
        else:
            admitted = f"tensor({element_of(found)})" in formal.types
            held = f"has elements of type {element_of(found)}"
        if not admitted:
            port = operator.inputs[min(position, len(operator.inputs) - 1)]
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


def check_attributes(operator: CoreOperator, version: int, stated: Mapping[str, object], rule: str) -> None:
    """Raises StuckError where an attribute is not one of ONNX's schema, is of another kind, or is required and absent.

    An integer may stand for a FLOAT. Bodies are none of `stated`.
    """
    schema = schemas.schema_of(operator.name, version)
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


def _check_output_type(statement: CoreStatement, value: Value, rule: str, target: _Target) -> None:
    """Raises StuckError where the type that a definition states for an output is none that ONNX's schema admits."""
    schema = schemas.schema_of(target.operator.name, target.version)
    if not isinstance(value, (ValueType, np.dtype)):
        raise InternalError(f"{statement.span}: {value!r} is no type")
    stated = spelled(value if isinstance(value, ValueType) else ValueType("tensor", element_of(value)))
    for port, formal in zip(target.operator.outputs, schema.outputs if schema is not None else (), strict=False):
        if port.type == statement.binds[0].name and stated is not None and stated not in formal.types:
            message = f"{port.name} would be {stated}, which ONNX does not admit there."
            advice = "Ask for another type, or use a newer operator set."
            raise stuck(rule, written(port), statement.span, message, advice)


def written(port: Port) -> str:
    """A port as its definition writes it."""
    dims = [str(d) if isinstance(d, int) else d[0] + ("..." if d[1] else "") for d in port.shape or ()]
    return f"{port.name}{port.mark}: {spelled_group(port.type, port.others)}" + (
        f"[{', '.join(dims)}]" if port.shape is not None else ""
    )


def _bind_type(port: Port, name: str, given: Value, types: dict[str, DType | ValueType], builder: Builder) -> None:
    found = type_of(given)
    expected = DTYPES.get(name) or types.get(name)
    if expected is None:
        types[name] = found
    elif expected != found:
        message = f"{port.name} has elements of {found}, where {name} is {expected}."
        raise stuck(builder.rule, written(port), port.span, message)


def _bind_shape(
    operator: CoreOperator, port: Port, given: Tensor, names: dict[Binding | None, Value], builder: Builder
) -> None:
    dims, shape = port.shape or (), given.shape
    dotted = [p for p, d in enumerate(dims) if not isinstance(d, int) and d[1]]
    rest = len(shape) - (len(dims) - len(dotted))
    if rest < 0 or (rest > 0 and not dotted):
        count = f"at least {len(dims) - len(dotted)}" if dotted else str(len(dims))
        message = f"{port.name} has the shape {list(shape)}; its definition gives it {count} axes."
        raise stuck(builder.rule, written(port), port.span, message)
    at = 0
    for dim in dims:
        size = rest if not isinstance(dim, int) and dim[1] else 1
        found: Value = shape[at : at + rest] if not isinstance(dim, int) and dim[1] else shape[at]
        expected = dim if isinstance(dim, int) else names.setdefault(operator.names[dim[0]], found)
        at += size
        if expected != found:
            label = dim if isinstance(dim, int) else dim[0]
            message = f"{port.name} has the shape {list(shape)}, where {label} = {shown(expected)}."
            raise stuck(builder.rule, written(port), port.span, message)


@cache
def defaults(operator: CoreOperator, version: int) -> Mapping[str, Value]:
    """The attributes of an operator with the schema's defaults, None where it states none."""
    schema = schemas.schema_of(operator.name, version)
    if schema is None and "::" in operator.name:  # the side of a rewrite, whose attributes have no defaults
        return {it.name: None for it in operator.attributes}
    if schema is None:
        raise Unsupported(f"ONNX knows no operator {operator.name} at version {version}")
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


def _along(statement: CoreStatement, scope: Scope, _target: _Target) -> Scope:
    """The scope with the views of the block, computed."""
    (steps,) = statement.bound
    length = static_int(evaluate(steps.domain, scope))
    slots: list[tuple[int, tuple[int, ...], DType]] = []
    tensors, first = _first(statement, scope, length, slots)
    inner = scope.bind(tensors)
    later: list[Tasks] = []
    clock: Clock | None = None
    if length > 1:
        axis = Axis(length)
        clock = Clock(axis, scope.builder.slot(), 1, length - 1)
        known = IndexFacts({**scope.known.ranges, axis: (1, length - 1)}, scope.known.facts, scope.known.masks)
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
    statement: CoreStatement,
    scope: Scope,
    length: int,
    slots: list[tuple[int, tuple[int, ...], DType]],
) -> tuple[dict[Binding, Tensor], Tasks]:
    """The tensors, as their kinds show, and the code of the first step."""
    tensors: dict[Binding, Tensor] = {}
    code: Tasks = []
    inner = scope.bind({statement.bound[0].variable: 0})
    for view in statement.inner:
        names, dimensions, some = bind_ranges(view.bound, inner)
        shape = (length, *(size for size, _ in dimensions))
        value = operand(evaluate(view.body, inner.bind(names))) if some and length else 0
        value = _held(value, view, scope)
        kind = kind_of(value)
        dtype = value.type if isinstance(value, Node) and kind == ELEMENT else None
        slot = scope.builder.slot()
        layout = Layout(slot, math.prod(shape), 0, row_strides(shape))
        made = Tensor(kind, dtype, shape, _known(layout), made=layout)
        tensors[view.binds[0]] = made
        inner = inner.bind({view.binds[0]: made})
        order = tuple(axis for _, axes in dimensions for axis in axes)
        split = (length, *(axis.size for axis in order)) if some else shape
        wide = kind == INT and not fits_int64(*bounds(value, scope.known))
        storage = np.dtype(object) if wide else storage_for(scope.builder.algebra, kind, dtype)
        scope.builder.claim(math.prod(shape) * storage.itemsize)
        slots.append((slot, split, storage))
        if some and length:
            code.append(block_tasks(scope.builder, value, order, slot, 0))
    return tensors, code


def _known(layout: Layout) -> Callable[[], Layout]:
    return lambda: layout


def _step(
    statement: CoreStatement, scope: Scope, t: Operand, tensors: Mapping[Binding, Tensor], clock: Clock | None
) -> Tasks:
    """The code of a step, at a number or at the clock's."""
    code: Tasks = []
    builder = scope.builder
    inner = scope.bind({statement.bound[0].variable: t})
    for view in statement.inner:
        names, dimensions, some = bind_ranges(view.bound, inner)
        if not some:
            continue
        made = tensors[view.binds[0]]
        item = operand(evaluate(view.body, inner.bind(names)))
        if made.kind == ELEMENT and made.type is not None:
            item = literal(item, made.type, scope)
        order = tuple(axis for _, axes in dimensions for axis in axes)
        for each in _tensors_in(item):
            _ = each.layout  # what the body reads from outside is computed before the recurrence
        builder.clock = clock
        try:
            at = t if isinstance(t, int) else -1
            code.append(block_tasks(builder, item, order, made.layout.slot, at))
        finally:
            builder.clock = None
    return code


def _tensors_in(term: Operand) -> list[Tensor]:
    """The tensors that a term reads, once for each operation that reads one."""
    return [node.data.tensor for node in operations(term) if isinstance(node.data, Source)]


# Applying a definition: its statements in written order, its outputs as tensors.


def apply_definition(
    operator: CoreOperator,
    version: int,
    inputs: Sequence[Input],
    attributes: Mapping[str, Value],
    wanted: Sequence[bool],
    builder: Builder,
) -> list[Value]:
    """The outputs that are wanted, as values of the plan, None for others. Raises StuckError, Unsupported."""
    if operator.rule:
        raise Unsupported(f"{operator.name} is the rule {operator.rule} of the machine, no function of its inputs")
    names = opening(operator, version, inputs, attributes, wanted, builder)
    scope = Scope(specification().cores, builder, names)
    asked = {port.name for port, want in zip(operator.outputs, wanted, strict=False) if want}
    target = _Target(operator, version, asked, tuple(wanted), {})
    for statement in operator.statements:
        scope = STATEMENTS[statement.kind](statement, scope, target)
    values: list[Value] = []
    for position, port in enumerate(operator.outputs):
        if port.mark == "*":
            values += listed(target.outputs[port.name])
        else:
            values.append(target.outputs[port.name] if position < len(wanted) and wanted[position] else None)
    return values


def applied(
    core: Core, inputs: Sequence[Value], attributes: Mapping[str, Value], scope: Scope, count: int
) -> tuple[Value, ...]:
    """The first outputs of an operator that a definition applies."""
    version = int(core.value)
    operator = definition(core.name, version)
    wanted = [position < count for position in range(len(operator.outputs))]
    given = [None if value is None else _with_elements(value, scope) for value in inputs]
    return tuple(apply_definition(operator, version, given, attributes, wanted, scope.builder)[:count])


@dataclass(frozen=True, slots=True)
class _Target:
    """The definition, the outputs that are asked for, by name and by position, and those that are there."""

    operator: CoreOperator
    version: int
    asked: set[str]
    wanted: tuple[bool, ...]
    outputs: dict[str, Value]


def _let(statement: CoreStatement, scope: Scope, _target: _Target) -> Scope:
    return reading.let(statement, scope, MEANING, ANSWERS)


def _function(statement: CoreStatement, scope: Scope, _target: _Target) -> Scope:
    return reading.function(statement, scope)


def _require(statement: CoreStatement, scope: Scope, _target: _Target) -> Scope:
    value = truth(statement.body, scope)
    if not isinstance(value, TERMS):
        if not value:
            raise _violated(statement, scope)
        return scope
    code = run_of(lower(value, whole(scope.builder, ())))

    def check(frame: Frame) -> None:
        if not code(frame):
            raise _violated(statement, scope)

    scope.builder.emit(check)
    return scope


def _restrict(_statement: CoreStatement, scope: Scope, _target: _Target) -> Scope:
    """A restriction of a rule set: what it forbids is defined all the same."""
    return scope


def _violated(statement: CoreStatement, scope: Scope) -> StuckError:
    variables = (it for it in statement.body.nodes() if it.head == "variable" and it.variable in scope.scope)
    mentioned = sorted(variables, key=lambda it: (it.span.line, it.span.column))
    known = {it.name: scope.scope[it.variable] for it in mentioned}
    shows = [f"{name} = {shown(value)}" for name, value in known.items() if is_shown(value)]
    message = f"It does not hold for {', '.join(shows)}." if shows else "It does not hold for these inputs."
    return stuck(scope.builder.rule, statement.doc, statement.span, message)


def _array(
    statement: CoreStatement, scope: Scope, dtype: DType | None, bound: tuple[Bound, ...] | None = None
) -> Tensor:
    """The tensor that ranges and an expression define; dtype: the element type when it is to hold elements."""
    names, dimensions, some = bind_ranges(statement.bound if bound is None else bound, scope)
    if not some:
        return _without_elements(dimensions, dtype or scope.first_type(), scope)
    value = operand(evaluate(statement.body, scope.bind(names)))
    return _tensor(_held(value, statement, scope) if dtype is None else value, dimensions, scope, dtype)


def _held(value: Operand, view: CoreStatement, scope: Scope) -> Operand:
    """The content of a view: a numeral is an element of the first type where the view holds elements."""
    dtype = scope.first_type()
    if view.body.sort != ELEMENTS or dtype is None or is_element(value):
        return value
    return literal(value, dtype, scope)


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


def _view(statement: CoreStatement, scope: Scope, _target: _Target) -> Scope:
    return scope.bind({statement.binds[0]: _array(statement, scope, None)})


def _equation(statement: CoreStatement, scope: Scope, target: _Target) -> Scope:
    if statement.name in target.asked:
        target.outputs[statement.name] = _array(statement, scope, _output_type(statement.name, target, scope))
    return scope


def _each(statement: CoreStatement, scope: Scope, target: _Target) -> Scope:
    first = next(k for k, port in enumerate(target.operator.outputs) if port.name == statement.name)
    dtype = _output_type(statement.name, target, scope)
    target.outputs[statement.name] = tuple(
        _array(statement, scope.bind({statement.binds[0]: k}), dtype) if want else None
        for k, want in enumerate(target.wanted[first:])
    )
    return scope


def _entries(statement: CoreStatement, scope: Scope, target: _Target) -> Scope:
    """A sequence, entry by entry."""
    if statement.name in target.asked:
        kind, _ = _kind(statement.name, target, scope)
        if not isinstance(kind, ValueType) or kind.inner is None:
            raise InternalError(f"{statement.span}: {statement.name} is no sequence")
        place, *within = statement.bound
        length = static_int(evaluate(place.domain, scope))
        at = [scope.bind({place.variable: k}) for k in range(length)]
        items = [_item(statement, kind.inner, here, tuple(within)) for here in at]
        target.outputs[statement.name] = held(tuple(items), kind)
    return scope


def _item(statement: CoreStatement, kind: ValueType, scope: Scope, within: tuple[Bound, ...]) -> Tensor | Held:
    """An entry of a sequence: a tensor, or a map from its pairs."""
    if statement.body.head != "pair":
        return _array(statement, scope, dtype_of(kind.element), within)
    if kind.inner is None:
        raise InternalError(f"{statement.span}: {statement.name} is no sequence of maps")
    sides = zip(statement.body.parts, (kind.element, kind.inner.element), strict=True)
    return held(tuple(_array(replace(statement, body=b), scope, dtype_of(e), within) for b, e in sides), kind)


def _kind(name: str, target: _Target, scope: Scope) -> tuple[Value, str]:
    """The type of an output, None where the text leaves it to the value, and what the header calls it."""
    port = next(p for p in target.operator.outputs if p.name == name)
    return scope.scope.get(target.operator.names[port.type]), port.type


def _output_type(name: str, target: _Target, scope: Scope) -> DType:
    kind, written_type = _kind(name, target, scope)
    return kind if isinstance(kind, np.dtype) else dtype_of(written_type)


def _result(statement: CoreStatement, scope: Scope, target: _Target) -> Scope:
    if statement.name in target.asked:
        kind, _ = _kind(statement.name, target, scope)
        target.outputs[statement.name] = _whole(evaluate(statement.body, scope), kind, statement, scope)
    return scope


def _whole(value: Value, kind: Value, statement: CoreStatement, scope: Scope) -> Value:
    """A tensor, a sequence or an optional as an output. kind: its type, None when it is the value's own."""
    if isinstance(value, Tensor):
        return as_elements(value, kind, scope) if isinstance(kind, np.dtype) else _with_elements(value, scope)
    if isinstance(value, tuple) and isinstance(kind, ValueType):
        return held(tuple(_with_elements(x, scope) for x in value), kind)
    if isinstance(value, Held):
        return value
    raise InternalError(f"{statement.span}: {statement.name} is given what has no type")


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
    item = read(value, indices, IndexFacts(), "the tensor", NOWHERE, scope.builder.rule)
    return _tensor(item, dimensions, scope, dtype)


def _type_statement(statement: CoreStatement, scope: Scope, target: _Target) -> Scope:
    value = evaluate(statement.body, scope)
    _check_output_type(statement, value, scope.builder.rule, target)
    return scope.bind({statement.binds[0]: value})


def _with_elements(value: Value, scope: Scope) -> Tensor | Held:
    """Integers of a view are int64 elements outside it, truth values bool."""
    if isinstance(value, Held):
        return value
    if not isinstance(value, Tensor):
        raise InternalError(f"{type(value).__name__} where a tensor is needed")
    if value.kind == ELEMENT:
        return value
    return as_elements(value, np.dtype(np.bool_ if value.kind == "Bool" else np.int64), scope)


STATEMENTS: Final[Mapping[str, Callable[[CoreStatement, Scope, _Target], Scope]]] = {
    "let": _let,
    "function": _function,
    "require": _require,
    "restrict": _restrict,
    "view": _view,
    "equation": _equation,
    "each": _each,
    "entries": _entries,
    "result": _result,
    "type": _type_statement,
    "along": _along,
}
"""For each kind of statement what it adds to the scope or the outputs."""
