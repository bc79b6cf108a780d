"""The smt interpretation of operators, statements: a definition runs over ports that are bound to tensors.

Sizes are terms or numbers, so the same run yields the obligations of a definition for arbitrary shapes and, on concrete
shapes, the value of each element of the outputs as a term over the elements of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sonnx.spec.language.syntax import Expr, Operator, Port, Range, Span, Statement

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Term
from .cases import entries
from .expressions import evaluate, outputs_of, truth
from .numbers import Int, equal
from .ranges import Axis, anywhere, at, axes, demand_sizes
from .relations import element
from .values import (
    Array,
    Body,
    Dead,
    Element,
    ElementType,
    Function,
    Listed,
    Scope,
    Unranked,
    Value,
    demand,
    remembered,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A definition with what its statements have given so far.

    outputs: tensors, and for a list of outputs, a sequence or an optional the tuple of them.
    assume: a `require` is taken for granted; elsewhere it is an obligation at the place of use.
    dimensions: the sizes of the inputs' axes.
    """

    operator: Operator
    outputs: Mapping[str, Value]
    assume: bool
    dimensions: frozenset[Term]
    use: Span | None = None


def opening(
    operator: Operator, inputs: Mapping[str, Value | None], attributes: Mapping[str, Value | None]
) -> dict[str, Value]:
    """The names that a definition starts with: ports and attributes, each with whether it is given."""
    env: dict[str, Value] = {}
    for name, value in (*attributes.items(), *inputs.items()):
        env[f"given {name}"] = FALSE if value is None else TRUE
        if value is not None:
            env[name] = value
    return env


def asked(operator: Operator, outputs: Sequence[bool]) -> dict[str, Value]:
    """The names of outputs that a definition starts with: whether each is asked for, and of a list how many are."""
    env: dict[str, Value] = {}
    for position, port in enumerate(operator.outputs):
        if port.mark == "*":
            env[port.name] = (0,) * (len(outputs) - position)
        env[f"given {port.name}"] = TRUE if any(outputs[position : position + 1]) else FALSE
    return env


def bind_shapes(operator: Operator, scope: Scope, span: Span) -> Scope:
    """The names of dimensions, read off the ports' tensors. Names that occur twice and numerals must agree."""
    for port in operator.inputs:
        source = scope.env.get(port.name)
        if port.shape is None or not isinstance(source, Array):
            continue
        for name, size in _dimensions(port, source, scope, span):
            if isinstance(name, int):
                demand(scope, "contract", span, equal(name, size if isinstance(size, int | Term) else -1), port.name)
            elif name not in scope.env:
                scope = scope.bind({name: size})
            else:
                known = scope.env[name]
                left = known if type(known) is tuple else (known,)
                right = size if type(size) is tuple else (size,)
                if len(left) != len(right):
                    demand(scope, "contract", span, FALSE, port.name)
                for a, b in zip(left, right, strict=True):
                    if isinstance(a, int | Term) and isinstance(b, int | Term):
                        demand(scope, "contract", span, equal(a, b), port.name)
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


def perform(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """One statement: the scope behind it, with the facts that hold from then on."""
    return KINDS[statement.kind](statement, scope, meaning)


def _let(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    names = statement.names
    if len(names) == 1:
        return scope.bind({names[0]: evaluate(statement.expr, scope)}), meaning
    if statement.expr.head == "apply":
        return scope.bind(dict(zip(names, outputs_of(statement.expr, scope), strict=False))), meaning
    values = entries(evaluate(statement.expr, scope), scope)
    if len(values) != len(names):
        demand(scope, "length", statement.span, FALSE)
        raise Dead
    return scope.bind(dict(zip(names, values, strict=True))), meaning


def _function(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    name = statement.names[0]
    return scope.bind({name: Function(name, statement.parameters, statement.expr, scope.env)}), meaning


def _require(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    journal = set(scope.run.journal)
    found = truth(statement.expr, scope)
    scope.run.journal = journal  # what a requirement reads decides whether there is a value, not which
    if not meaning.assume:
        kind = "require" if meaning.use is None else "contract"
        demand(scope, kind, meaning.use or statement.span, found, meaning.operator.name)
    return scope.under(found), meaning


def _restrict(_statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """What a rule set forbids has a meaning all the same."""
    return scope, meaning


def _type(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    return scope.bind({statement.names[0]: evaluate(statement.expr, scope)}), meaning


def _view(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    found = tensor(statement.names[0], statement.ranges, statement.expr, scope, meaning)
    return scope.bind({found.name: found}), meaning


def _equation(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    name = statement.names[0]
    found = tensor(name, statement.ranges, statement.expr, scope, meaning, _element_type(name, scope, meaning))
    return scope, replace(meaning, outputs={**meaning.outputs, name: found})


def _each(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    name, position = statement.names
    kind = _element_type(name, scope, meaning)
    found = tuple(
        tensor(f"{name}.{k}", statement.ranges, statement.expr, scope.bind({position: k}), meaning, kind)
        for k in range(len(entries(scope.env[name], scope)))
    )
    return scope, replace(meaning, outputs={**meaning.outputs, name: found})


def _element_type(name: str, scope: Scope, meaning: Meaning) -> ElementType:
    """The element type of an output."""
    kind = scope.env.get(_port(meaning.operator, name).type)
    return kind if isinstance(kind, ElementType) else ElementType(_port(meaning.operator, name).type)


def _port(operator: Operator, name: str) -> Port:
    return next(port for port in operator.outputs if port.name == name)


def _result(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    found = evaluate(statement.expr, scope)
    if not isinstance(found, Array | Listed | Unranked) and type(found) is not tuple:
        raise InternalError(f"{statement.span}: no tensor, sequence or optional")
    return scope, replace(meaning, outputs={**meaning.outputs, statement.names[0]: found})


def _rule(_statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    return scope, meaning


def tensor(
    name: str, ranges: Sequence[Range], expr: Expr, scope: Scope, meaning: Meaning, kind: ElementType | None = None
) -> Array:
    """The tensor that ranges and an expression over them define. kind: of an output, whose elements have it."""
    found = axes(ranges, scope, evaluate)
    shape = demand_sizes(found, scope, meaning.dimensions)
    if scope.run.whole or scope.run.lazy:
        return Array(name, shape, remembered(_by_name(expr, found, scope.env, kind)), kind or ElementType(""))
    value = _anywhere(expr, found, scope)
    if value is None or isinstance(value, Element):
        typed = kind or (value.type if isinstance(value, Element) else ElementType(""))
        return Array(name, shape, opaque(name, typed), typed)
    return Array(name, shape, _by_name(expr, found, scope.env, kind), kind or ElementType(""))


def _anywhere(expr: Expr, found: Sequence[Axis], scope: Scope) -> Value | None:
    """The value at any index, for its obligations; None where there is none."""
    inner, _, in_range = anywhere(found, scope)
    try:
        return evaluate(expr, inner.under(in_range))
    except Dead:
        return None


def opaque(name: str, kind: ElementType) -> Body:
    """Elements of which only their place is known."""
    return lambda index, here: here.run.algebra.read(name, index, kind, here)


def _by_name(expr: Expr, found: Sequence[Axis], env: Mapping[str, Value], kind: ElementType | None) -> Body:
    """The expression evaluated at an index. Its obligations were those of any index."""

    def read(index: tuple[Int, ...], here: Scope) -> Value:
        here.run.quiet += 1
        try:
            value = evaluate(expr, replace(here, env={**env, **at(found, index)}))
        finally:
            here.run.quiet -= 1
        return value if kind is None or type(value) is tuple else element(value, kind, here)

    return read


def _along(statement: Statement, scope: Scope, meaning: Meaning) -> tuple[Scope, Meaning]:
    """Views that read each other at earlier steps. Their shapes come first, since each may read each."""
    env = dict(scope.env)
    inner = replace(scope, env=env)
    views = [(view, axes(view.ranges, scope, evaluate)) for view in statement.body]
    for view, found in views:
        shape = demand_sizes(found, scope, meaning.dimensions)
        name = view.names[0]
        given = scope.run.whole or scope.run.lazy
        read = remembered(_by_name(view.expr, found, env, None)) if given else opaque(name, ElementType(""))
        env[name] = Array(name, shape, read, ElementType(""))
    if not (scope.run.whole or scope.run.lazy):
        for view, found in views:
            _anywhere(view.expr, found, inner)
    return inner, meaning


KINDS: Mapping[str, Callable[[Statement, Scope, Meaning], tuple[Scope, Meaning]]] = {
    "let": _let,
    "function": _function,
    "require": _require,
    "restrict": _restrict,
    "type": _type,
    "view": _view,
    "along": _along,
    "equation": _equation,
    "each": _each,
    "result": _result,
    "rule": _rule,
}
"""For each kind of statement what it does."""
