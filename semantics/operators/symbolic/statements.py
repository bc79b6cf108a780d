"""The smt interpretation of operators, statements: a definition runs over ports that are bound to tensors.

Sizes are terms or numbers, so the same run yields the obligations of a definition for arbitrary shapes and, on concrete
shapes, the value of each element of the outputs as a term over the elements of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import copysign, floor, isfinite, prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.elaborate.core import Binding, Core, CoreOperator, CoreStatement
from sonnx.spec.language.syntax import NOWHERE, Port, Span
from sonnx.spec.library import specification

from ...errors import InternalError, Unsupported
from ...formulas.terms import FALSE, TRUE, Argument, Term
from ...model.elements import element_of
from ...model.graph import ValueType
from ...model.schemas import schema_of
from ..application import Application, AttributeData
from ..reading import function, let
from . import rows
from .elements.opaque import ReadAt
from .expressions import ANSWERS, SYMBOLIC, evaluate, truth
from .folds import Axis, anywhere, at, at_row, axes, demand_sizes, shape_of
from .numbers import Int, add, at_most, equal, subtract, within
from .values import (
    VARIES,
    Algebra,
    Array,
    Body,
    Bounded,
    Dead,
    Element,
    ElementType,
    Env,
    Evaluation,
    Field,
    Given,
    Listed,
    Name,
    Part,
    Row,
    Scope,
    Split,
    Undefined,
    Unranked,
    Value,
    axiom,
    conjuncts,
    demand,
    element,
    entries,
    fresh,
    relate,
    remembered,
    whole,
)

if TYPE_CHECKING:
    from sonnx.spec.elaborate.schema import Signature

ENTRIES = 32
"""The entries of a sequence that a definition makes are told apart up to so many."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """A definition with what its statements have given so far.

    outputs: tensors, and for a list of outputs, a sequence or an optional the tuple of them.
    assume: a `require` is taken for granted; elsewhere it is an obligation at the place of use.
    dimensions: the sizes of the inputs' axes.
    """

    operator: CoreOperator
    outputs: Mapping[str, Value]
    assume: bool
    dimensions: frozenset[Term]
    use: Span | None = None


def opening(
    operator: CoreOperator, inputs: Mapping[str, Value | None], attributes: Mapping[str, Value | None]
) -> dict[Name, Value]:
    """The names that a definition starts with: ports and attributes, each with whether it is given."""
    env: dict[Name, Value] = {}
    for name, value in (*attributes.items(), *inputs.items()):
        variable = operator.names.get(name)
        if variable is not None:
            env[Given(variable)] = FALSE if value is None else TRUE
            if value is not None:
                env[variable] = value
    return env


def output(operator: CoreOperator, port: Port) -> Binding:
    """The name of an output, which an input may have as well."""
    return operator.names.get(f"given {port.name}") or operator.names[port.name]


def asked(operator: CoreOperator, outputs: Sequence[bool]) -> dict[Name, Value]:
    """The names of outputs that a definition starts with: whether each is asked for, and of a list how many are."""
    env: dict[Name, Value] = {}
    for position, port in enumerate(operator.outputs):
        if port.mark == "*":
            env[output(operator, port)] = (0,) * (len(outputs) - position)
        env[Given(output(operator, port))] = TRUE if any(outputs[position : position + 1]) else FALSE
    return env


def bind_shapes(operator: CoreOperator, scope: Scope, span: Span) -> Scope:
    """The names of dimensions, read off the ports' tensors. Names that occur twice and numerals must agree."""
    for port in operator.inputs:
        source = scope.env.get(operator.names[port.name])
        if port.shape is not None and isinstance(source, Field):
            scope = _bind_row(operator, port, source.shape, scope, span)
        if port.shape is None or not isinstance(source, Array):
            continue
        for name, size in _dimensions(port, source, scope, span):
            if isinstance(name, int):
                demand(scope, "contract", span, equal(name, size if isinstance(size, int | Term) else -1), port.name)
            elif operator.names[name] not in scope.env:
                scope = scope.bind({operator.names[name]: size})
            else:
                known = scope.env[operator.names[name]]
                if isinstance(known, Row) or isinstance(size, Row):
                    demand(scope, "contract", span, relate("=", known, size, scope), port.name)
                    continue
                left = known if type(known) is tuple else (known,)
                right = size if type(size) is tuple else (size,)
                if len(left) != len(right):
                    demand(scope, "contract", span, FALSE, port.name)
                for a, b in zip(left, right, strict=True):
                    if isinstance(a, int | Term) and isinstance(b, int | Term):
                        demand(scope, "contract", span, equal(a, b), port.name)
    return scope


def _bind_row(operator: CoreOperator, port: Port, shape: Row, scope: Scope, span: Span) -> Scope:
    """The names of the dimensions of a tensor of an open number of axes."""
    pattern = port.shape or ()
    length = rows.length_of(shape)
    spare = subtract(length, sum(1 for item in pattern if isinstance(item, int) or not item[1]))
    dotted = any(not isinstance(item, int) and item[1] for item in pattern)
    demand(scope, "contract", span, at_most(0, spare) if dotted else equal(spare, 0), port.name)
    low: Int = 0
    for item in pattern:
        if isinstance(item, int) or not item[1]:
            found: Value = rows.entry(shape, low, scope)
            low = add(low, 1)
        else:
            found = rows.cut(shape, low, add(low, spare), scope)
            low = add(low, spare)
        if isinstance(item, int):
            demand(scope, "contract", span, equal(item, whole(found)), port.name)
        elif operator.names[item[0]] not in scope.env:
            scope = scope.bind({operator.names[item[0]]: found})
        else:
            same = relate("=", scope.env[operator.names[item[0]]], found, scope)
            demand(scope, "contract", span, same, port.name)
    return scope


def _dimensions(port: Port, source: Array, scope: Scope, span: Span) -> list[tuple[str | int, Value]]:
    """The dimensions of a port's pattern with their sizes."""
    pattern = port.shape or ()
    dotted = [k for k, item in enumerate(pattern) if not isinstance(item, int) and item[1]]
    spare = len(source.shape) - (len(pattern) - len(dotted))
    if spare < 0 or (spare > 0 and not dotted):
        demand(scope, "contract", span, FALSE, port.name)
        raise Dead
    found: list[tuple[str | int, Value]] = []
    rest = list(source.shape)
    for item in pattern:
        if isinstance(item, int):
            found.append((item, rest.pop(0)))
        elif item[1]:
            found.append((item[0], tuple(rest[:spare])))
            del rest[:spare]
        else:
            found.append((item[0], rest.pop(0)))
    return found


def perform(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """One statement: the scope behind it, with the facts that hold from then on."""
    return KINDS[statement.kind](statement, scope, meaning)


def _let(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    return let(statement, scope, SYMBOLIC, ANSWERS), meaning


def _function(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    return function(statement, scope), meaning


def _require(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    journal = set(scope.run.journal)
    found = truth(statement.body, scope)
    scope.run.journal = journal  # what a requirement reads decides whether there is a value, not which
    if not meaning.assume:
        kind = "require" if meaning.use is None else "contract"
        demand(scope, kind, meaning.use or statement.span, found, meaning.operator.name)
        if scope.run.strict:
            scope.run.owed.update(conjuncts(found))
    return scope.under(found), meaning


def _restrict(_statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """A restriction of a rule set: what it forbids has a meaning all the same."""
    return scope, meaning


def _type(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    return scope.bind({statement.binds[0]: evaluate(statement.body, scope)}), meaning


def _view(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    (own,) = statement.binds
    return scope.bind({own: made(own.name, statement, scope, meaning)}), meaning


def _equation(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    name = statement.name
    found = made(name, statement, scope, meaning, _element_type(name, scope, meaning))
    return scope, replace(meaning, outputs={**meaning.outputs, name: found})


def _each(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    name, (position,) = statement.name, statement.binds
    kind = _element_type(name, scope, meaning)
    several = scope.env[output(meaning.operator, _port(meaning.operator, name))]
    if isinstance(several, Row):
        any_one = fresh(scope, position.name)
        inner = scope.bind({position: any_one}).under(within(any_one, rows.length_of(several)))
        with suppress(Dead):
            made(name, statement, inner, meaning, kind)
        return scope, replace(meaning, outputs={**meaning.outputs, name: ()})
    count = len(entries(several, scope))
    every = tuple(made(f"{name}.{k}", statement, scope.bind({position: k}), meaning, kind) for k in range(count))
    return scope, replace(meaning, outputs={**meaning.outputs, name: every})


def _entries(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """A sequence: a few entries one by one; of others, or of a number that is open, what any of them is like."""
    name, (place, *within) = statement.name, statement.bound
    inner = replace(statement, bound=tuple(within))
    sequence = scope.env.get(meaning.operator.names[_port(meaning.operator, name).type])
    kind = ElementType(sequence.name.removeprefix("sequence_") if isinstance(sequence, ElementType) else "")
    sides = _sides(inner, kind)
    found = axes((place,), scope, evaluate)
    (length,) = demand_sizes(found, scope, meaning.dimensions)
    sequence_made: Value
    if scope.run.every:
        sequence_made = _any_entry(name, length, sides, found, scope, meaning)
    elif isinstance(length, int) and (length <= ENTRIES or scope.run.whole):
        at_each = (scope.bind({place.variable: k}) for k in range(length))
        rows = ([tensor(f"{name}.{k}", s, here, meaning, t) for s, t in sides] for k, here in enumerate(at_each))
        sequence_made = tuple(_one_entry(row, kind) for row in rows)
    else:
        known = frozenset(scope.run.symbols)
        anyone, _, in_range = anywhere(found, scope)
        try:
            row = [tensor(name, side, anyone.under(in_range), meaning, its) for side, its in sides]
            row = [replace(item, shape=tuple(_alike(n, known) for n in item.shape)) for item in row]
            forms: tuple[Value, ...] = (_one_entry(row, kind),)
        except Dead:
            forms = ()
        sequence_made = Listed(sequence if isinstance(sequence, ElementType) else kind, length, forms)
    return scope, replace(meaning, outputs={**meaning.outputs, name: sequence_made})


def _any_entry(
    name: str,
    length: Int,
    sides: Sequence[tuple[CoreStatement, ElementType]],
    place: Sequence[Axis],
    scope: Scope,
    meaning: Meaning,
) -> Row:
    """A sequence where ranks are open: the obligations of any of its entries, which no definition reads."""
    anyone, _, in_range = anywhere(place, scope)
    for side, kind in sides:
        with suppress(Dead):
            made(name, side, anyone.under(in_range), meaning, kind)

    def unread_entry(_position: Int, _scope: Scope) -> Value:
        raise Bounded(f"an entry of the sequence {name}")

    return Row((Part(length, unread_entry),))


def _sides(statement: CoreStatement, kind: ElementType) -> list[tuple[CoreStatement, ElementType]]:
    """The tensors that an entry of this type consists of: itself, or the keys and the values of a map."""
    if statement.body.head != "pair":
        return [(statement, kind)]
    _, key, element = kind.name.split("_", 2)
    bodies = zip(statement.body.parts, (key, element), strict=True)
    return [(replace(statement, body=body), ElementType(name)) for body, name in bodies]


def _one_entry(sides: Sequence[Array], kind: ElementType) -> Value:
    return sides[0] if len(sides) == 1 else Listed(kind, len(sides), tuple(sides), told_apart=True)


def _alike(size: Int, known: frozenset[str]) -> Int:
    """A size that is the same in each entry of a sequence, or VARIES: it is about symbols that are not `known`."""
    return size if _symbols(size) <= known else VARIES


def _symbols(term: Argument) -> frozenset[str]:
    if not isinstance(term, Term):
        return frozenset()
    return frozenset().union(*map(_symbols, term.args)) if term.args else frozenset({term.op})


def _element_type(name: str, scope: Scope, meaning: Meaning) -> ElementType:
    """The element type of an output."""
    port = _port(meaning.operator, name)
    kind = scope.env.get(meaning.operator.names[port.type])
    return kind if isinstance(kind, ElementType) else ElementType(port.type)


def _port(operator: CoreOperator, name: str) -> Port:
    return next(port for port in operator.outputs if port.name == name)


def _result(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    value = evaluate(statement.body, scope)
    if not isinstance(value, Array | Field | Listed | Unranked | Row) and type(value) is not tuple:
        raise InternalError(f"{statement.span}: no tensor, sequence or optional")
    return scope, replace(meaning, outputs={**meaning.outputs, statement.name: value})


def _rule(_statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    return scope, meaning


def made(
    name: str, statement: CoreStatement, scope: Scope, meaning: Meaning, kind: ElementType | None = None
) -> Array | Field:
    """The tensor that a statement with ranges defines, of any number of axes where ranks are open."""
    if not scope.run.every:
        return tensor(name, statement, scope, meaning, kind)
    found = axes(statement.bound, scope, evaluate)
    if all(axis.row is None for axis in found):
        return tensor(name, statement, scope, meaning, kind)
    demand_sizes(found, scope, meaning.dimensions)
    shape, body = shape_of(found), statement.body
    value = None if scope.run.lazy else _anywhere(body, found, scope)
    typed = kind or (value.type if isinstance(value, Element) else ElementType(""))
    if not scope.run.lazy and (value is None or isinstance(value, Element)):
        return Field(name, shape, unread(name, (), shape, typed), typed)
    env = scope.env

    def read(index: Row, here: Scope) -> Value:
        here.run.quiet += 1
        try:
            inner = here.among(env)
            item = evaluate(body, inner.bind(at_row(found, index, inner)))
        finally:
            here.run.quiet -= 1
        return item if kind is None or type(item) is tuple else element(item, kind, here)

    return Field(name, shape, read if scope.run.folded is None else _placed_field(read, scope), typed)


def unread(name: str, first: tuple[Int, ...], shape: Row, kind: ElementType) -> Callable[[Row, Scope], Value]:
    """Elements of which only their place is known."""
    return lambda index, _here: Element(ReadAt(name, first, index, shape), kind)


def tensor(
    name: str, statement: CoreStatement, scope: Scope, meaning: Meaning, kind: ElementType | None = None
) -> Array:
    """The tensor that a statement with ranges defines. kind: of an output, whose elements have it."""
    body, found = statement.body, axes(statement.bound, scope, evaluate)
    if any(axis.row is not None for axis in found):
        raise Bounded(f"{statement.span}: a tensor of an open number of axes in a list")
    shape = demand_sizes(found, scope, meaning.dimensions)
    if scope.run.whole or scope.run.lazy:
        read = _by_name(body, found, scope.env, kind)
        placed = read if scope.run.folded is None else _placed(read, scope)
        return Array(name, shape, remembered(placed), kind or ElementType(""))
    value = _anywhere(body, found, scope)
    if value is None or isinstance(value, Element):
        typed = kind or (value.type if isinstance(value, Element) else ElementType(""))
        return Array(name, shape, opaque(name, typed), typed)
    return Array(name, shape, _by_name(body, found, scope.env, kind), kind or ElementType(""))


def _anywhere(body: Core, found: Sequence[Axis], scope: Scope) -> Value | None:
    """The value at any index, for its obligations; None where there is none."""
    inner, _, in_range = anywhere(found, scope)
    try:
        return evaluate(body, inner.under(in_range))
    except Dead:
        return None


def opaque(name: str, kind: ElementType) -> Body:
    """Elements of which only their place is known."""
    return lambda index, here: here.run.algebra.read(name, index, kind, here)


def _by_name(body: Core, found: Sequence[Axis], env: Env, kind: ElementType | None) -> Body:
    """The expression evaluated at an index. Its obligations were those of any index."""

    def read(index: tuple[Int, ...], here: Scope) -> Value:
        here.run.quiet += 1
        try:
            value = evaluate(body, here.among({**env, **at(found, index)}))
        finally:
            here.run.quiet -= 1
        return value if kind is None or type(value) is tuple else element(value, kind, here)

    return read


def _placed(read: Body, scope: Scope) -> Body:
    """The same, which says where it is: what the text leaves open is open at each place for itself."""
    scope.run.tensors += 1
    number = scope.run.tensors

    def placed(index: tuple[Int, ...], here: Scope) -> Value:
        outside, here.run.at = here.run.at, (number, index)
        try:
            return read(index, here)
        finally:
            here.run.at = outside

    return placed


def _placed_field(read: Callable[[Row, Scope], Value], scope: Scope) -> Callable[[Row, Scope], Value]:
    """The same of a tensor of any number of axes: the place is the code of the index."""
    scope.run.tensors += 1
    number = scope.run.tensors

    def placed(index: Row, here: Scope) -> Value:
        outside, here.run.at = here.run.at, (number, (rows.linked(index, here),))
        try:
            return read(index, here)
        finally:
            here.run.at = outside

    return placed


def _along(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """Views that read each other at earlier steps. Their shapes come first, since each may read each."""
    steps = sum(len(axis.sizes) for axis in axes(statement.bound, scope, evaluate))
    if scope.run.folded is not None:
        raise Bounded(f"{statement.span}: views along steps are no terms")
    if scope.run.every:
        return _along_open(statement, scope, meaning)
    env = dict(scope.env)
    inner = replace(scope, env=env)
    views = [(view, axes((*statement.bound, *view.bound), scope, evaluate)) for view in statement.inner]
    for view, found in views:
        shape = demand_sizes(found, scope, meaning.dimensions)
        (own,) = view.binds
        read = opaque(own.name, ElementType(""))
        if scope.run.whole or scope.run.lazy:
            read = _at_steps(steps, remembered(_by_name(view.body, found, env, None)), read)
        env[own] = Array(own.name, shape, read, ElementType(""))
    if not (scope.run.whole or scope.run.lazy):
        for view, found in views:
            _anywhere(view.body, found, inner)
    return inner, meaning


def _along_open(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """The same where ranks are open."""
    env = dict(scope.env)
    inner = replace(scope, env=env)
    views = [(view, axes((*statement.bound, *view.bound), scope, evaluate)) for view in statement.inner]
    for view, found in views:
        shape, (own,) = demand_sizes(found, scope, meaning.dimensions), view.binds
        kind = ElementType("")
        if all(axis.row is None for axis in found):
            env[own] = Array(own.name, shape, opaque(own.name, kind), kind)
        else:
            env[own] = Field(own.name, shape_of(found), unread(own.name, (), shape_of(found), kind), kind)
    for view, found in views:
        _anywhere(view.body, found, inner)
    return inner, meaning


def _at_steps(steps: int, by_name: Body, unknown: Body) -> Body:
    """Elements by their steps, which are the first indices; at a step that is not known nothing but their place is."""
    return lambda index, here: (by_name if all(type(i) is int for i in index[:steps]) else unknown)(index, here)


KINDS: Mapping[str, Callable[[CoreStatement, Scope, Meaning], tuple[Scope, Meaning]]] = {
    "let": _let,
    "function": _function,
    "require": _require,
    "restrict": _restrict,
    "type": _type,
    "view": _view,
    "along": _along,
    "equation": _equation,
    "each": _each,
    "entries": _entries,
    "result": _result,
    "rule": _rule,
}
"""For each kind of statement what it does."""


# The smt interpretation of operators, attributes: the values that ONNX's schemas state for absent ones.


def type_name(stated: ValueType) -> str:
    """A type as the text writes it: float, sequence_float, optional_sequence_float, map_int64_float; "" where it is
    open."""
    if stated.kind == "map" and stated.element and stated.inner is not None:
        inner = type_name(stated.inner)
        return f"map_{stated.element}_{inner}" if inner else ""
    if stated.kind not in ("sequence", "optional") or stated.inner is None:
        return stated.element if stated.kind == "tensor" else ""
    inner = type_name(stated.inner)
    return f"{stated.kind}_{inner}" if inner else ""


def constant(value: object) -> Value | None:
    """An attribute's value as the text sees it; what is no exact number, a NaN, an infinity, -0.0, is an element of the
    type that it meets."""
    match value:
        case int() | Term():
            return value
        case float():
            rounded = float(np.float32(value))
            exact = isfinite(rounded) and not (rounded == 0 and copysign(1, rounded) < 0)
            return Fraction(rounded) if exact else Element(rounded, ElementType(""))
        case bytes():
            return value.decode("utf-8", "replace")
        case str():
            return value
        case ValueType():
            return ElementType(type_name(value))
        case tuple() | list():
            return tuple(item for part in value if (item := constant(part)) is not None)
        case _:
            return None


# The smt interpretation of operators, composition: an operator that the text of another applies.


def signature_of(operator: CoreOperator) -> Signature:
    """The schema of the newest version that a definition covers."""
    from sonnx.spec.elaborate.declared import declared
    from sonnx.spec.elaborate.schema import signatures
    from sonnx.spec.elaborate.scope import Ledger

    if operator.types or operator.name not in signatures():
        return declared(specification().written(operator), Ledger({}, ()))
    return next(s for s in reversed(signatures()[operator.name]) if operator.first <= s.version <= operator.last)


def compose(
    name: str,
    version: int,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Value],
    span: Span,
    scope: Scope,
    count: int,
) -> tuple[Value, ...]:
    """The outputs of an operator that the text applies: what it requires is demanded here, its own obligations hold."""
    return composed(name, version, inputs, attributes, span, scope, count, assume=False)


def composed(
    name: str, version: int, inputs: Sequence[Value | None], attributes: Mapping[str, Value], span: Span, scope: Scope,
    count: int, *, assume: bool,
) -> tuple[Value, ...]:  # fmt: skip
    """The outputs of an operator that the text applies. assume: what it requires is known here, else it is demanded."""
    operator = definition(name, version)
    ports: dict[str, Value | None] = {}
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            ports[port.name] = tuple(value for value in inputs[position:] if value is not None)
        else:
            ports[port.name] = inputs[position] if position < len(inputs) else None
    stated: dict[str, Value | None] = {**defaults(operator, version), **attributes}
    several = any(port.mark == "*" for port in operator.outputs)
    spare = 0 if several else max(0, len(operator.outputs) - count)
    wanted = asked(operator, (True,) * count + (False,) * spare)
    inner = scope.among({**wanted, **_types(operator, ports), **opening(operator, ports, stated)})
    inner = bind_shapes(operator, inner, span)
    dimensions = frozenset(size for value in ports.values() for size in _sizes(value))
    meaning = Meaning(operator, {}, assume, dimensions, span)
    for statement in operator.statements:
        inner, meaning = _inside(statement, inner, meaning)
    for fact in inner.facts if assume else ():
        if fact not in scope.facts:
            axiom(scope, fact)
    return in_order(operator, meaning.outputs)


def in_order(operator: CoreOperator, outputs: Mapping[str, Value]) -> tuple[Value, ...]:
    """The outputs that are there by position; those of a list one by one."""
    found: list[Value] = []
    for port in operator.outputs:
        value = outputs.get(port.name)
        if port.mark == "*" and type(value) is tuple:
            found += value
        elif value is not None:
            found.append(value)
    return tuple(found)


def _inside(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """A statement of an applied operator: only a requirement is an obligation."""
    if statement.kind == "require":
        return perform(statement, scope, meaning)
    scope.run.quiet += 1
    try:
        return perform(statement, scope, meaning)
    finally:
        scope.run.quiet -= 1


def _types(operator: CoreOperator, ports: Mapping[str, Value | None]) -> dict[Name, Value]:
    """The element types of the inputs, by the names that the header gives them."""
    types: dict[Name, Value] = {}
    for port in operator.inputs:
        value = ports[port.name]
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, Array | Field):
            types[operator.names[port.type]] = first.type
    return types


def _sizes(value: Value | None) -> Iterator[Term]:
    if isinstance(value, Array):
        yield from (size for size in value.shape if isinstance(size, Term))


def definition(name: str, version: int) -> CoreOperator:
    """The definition of an operator at a version. Raises InternalError where the specification has none."""
    operator = specification().meanings.at(name, version)
    if operator is None:
        raise InternalError(f"{name}-{version} has no definition")
    return operator


def defaults(operator: CoreOperator, version: int) -> dict[str, Value | None]:
    """The attributes that an application does not state: the schema's defaults, None where there is none. A float is
    the float32 that the schema means."""
    return dict(_defaults(operator, version))


@cache
def _defaults(operator: CoreOperator, version: int) -> Mapping[str, Value | None]:
    found = schema_of(operator.name, version)
    formals = {} if found is None else found.attributes
    own = (name for name, it in operator.names.items() if it.origin == "attribute")
    stated = {name: formals[name].default if name in formals else None for name in own}
    return {name: None if default is None else constant(default.value) for name, default in stated.items()}


# A definition on concrete shapes: each element of an output as a value of an algebra of elements.
# With exact numbers this is the smt interpretation of one application, the counterpart of ieee on small shapes; with
# elements that remember what they were read from it is the footprint.


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
    run = Evaluation(
        cores=specification().cores,
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


def _perform(statement: CoreStatement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    try:
        return perform(statement, scope, meaning)
    except Dead as problem:
        raise Undefined("require" if statement.kind == "require" else "dead", statement.span, FALSE) from problem
    except Split as problem:
        raise Unsupported(f"{statement.span}: {problem.term} is no constant") from problem


def _opening(application: Application, operator: CoreOperator, algebra: Algebra) -> dict[Name, Value]:
    """The names at the start, the element types of the tensors included."""
    ports: dict[str, Value | None] = {}
    types: dict[Name, Value] = {}
    inputs = list(application.inputs)
    for position, port in enumerate(operator.inputs):
        if port.mark == "*":
            made = [
                read_tensor(f"{port.name}.{k}", _array(value), algebra)
                for k, value in enumerate(inputs[position:])
                if value is not None
            ]
            ports[port.name] = tuple(made)
            types |= {operator.names[port.type]: made[0].type} if made else {}
        elif position < len(inputs) and inputs[position] is not None:
            item = read_tensor(port.name, _array(inputs[position]), algebra)
            ports[port.name] = item
            types[operator.names[port.type]] = item.type
        else:
            ports[port.name] = None
    attributes: dict[str, Value | None] = defaults(operator, application.version)
    for name, data in application.attributes.items():
        attributes[name] = attribute(name, data, algebra)
    return {**types, **opening(operator, ports, attributes), **asked(operator, application.outputs)}


def _array(value: object) -> NDArray[np.generic]:
    if isinstance(value, np.ndarray):
        return value
    raise Unsupported("a value that is no read_tensor")


def read_tensor(name: str, data: NDArray[np.generic], algebra: Algebra) -> Array:
    """A read_tensor whose elements the algebra reads."""
    kind = ElementType(element_of(data.dtype))
    read: Callable[[tuple[Int, ...], Scope], Value] = lambda index, scope: algebra.read(name, index, kind, scope)  # noqa: E731
    return Array(name, data.shape, read, kind)


def attribute(name: str, data: AttributeData | Term | tuple[Term, ...], algebra: Algebra) -> Value | None:
    """An attribute's value, or symbols for it; a read_tensor is read like an input."""
    return read_tensor(name, data, algebra) if isinstance(data, np.ndarray) else constant(data)


def element_at(applied: Applied, output: int, index: tuple[int, ...]) -> Value:
    """The element of an output. Raises Undefined, Unsupported."""
    found = applied.outputs[output]
    if found is None:
        raise Unsupported(f"output {output} is not asked for")
    try:
        return found.read(index, applied.scope)
    except Dead as problem:
        raise Undefined("contract", NOWHERE, FALSE) from problem


def tensors(application: Application, operator: CoreOperator) -> Mapping[str, NDArray[np.generic]]:
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


def positions(application: Application, operator: CoreOperator) -> Mapping[str, int]:
    """The position of each read_tensor among the inputs by its name; attributes have none."""
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
