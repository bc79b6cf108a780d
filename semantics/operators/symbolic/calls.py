"""The smt interpretation of operators, primitives: one table by name, each as its contract in spec/primitives.sonnx.

What a contract requires is demanded; then the value is computed on lists of terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import cast

from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from ...formulas.terms import FALSE, Term
from .cases import entries, fixed_value, number, settle, steady, whole
from .lists import dropped, inserted
from .numbers import Int, at_most, ceiling, choose, either, equal, floor, maximum, minimum, order, within
from .relations import arithmetic, compound, element, elements, merge, negative, pairs_of, relate, softly
from .shapes import SHAPES, Arguments, Primitive, contract, count_of, position_of
from .types import TYPES
from .values import Array, Dead, Element, ElementType, Listed, Open, Scope, Value

Labels = tuple[tuple[tuple[int, ...], ...], int, int]


def call(name: str, arguments: Arguments, span: Span, scope: Scope) -> Value:
    """The value of a primitive."""
    found = PRIMITIVES.get(name)
    if found is None:
        raise InternalError(f"{span}: the smt interpretation has no primitive {name}")
    return found(arguments, span, scope)


# ---- Vectors ----------------------------------------------------------------------------------


def _len(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    (source,) = arguments
    if isinstance(source, Listed):
        return source.length
    if isinstance(source, Open):
        fixed = fixed_value(scope, source.length) if isinstance(source.length, Term) else None
        return source.length if fixed is None else fixed
    return source.shape[0] if isinstance(source, Array) else len(entries(source, scope))


def _range(arguments: Arguments, span: Span, scope: Scope) -> Value:
    return tuple(range(count_of(arguments[0], span, scope, "range")))


def _repeat(arguments: Arguments, span: Span, scope: Scope) -> Value:
    item, count = arguments
    return (item,) * count_of(count, span, scope, "repeat")


def _cut(value: Value, items: tuple[Value, ...], span: Span, scope: Scope, about: str) -> int:
    """How many entries a cut leaves in front; a negative number counts as 0."""
    count = whole(value)
    contract(scope, span, at_most(count, len(items)), about)
    if isinstance(count, Term):
        count = settle(scope, count, range(-len(items), len(items) + 1))
    return max(count, 0)


def _front(arguments: Arguments, span: Span, scope: Scope) -> Value:
    items = entries(arguments[0], scope)
    return items[: _cut(arguments[1], items, span, scope, "front")]


def _back(arguments: Arguments, span: Span, scope: Scope) -> Value:
    items = entries(arguments[0], scope)
    return items[_cut(arguments[1], items, span, scope, "back") :]


def _put(arguments: Arguments, span: Span, scope: Scope) -> Value:
    items = entries(arguments[0], scope)
    position = whole(arguments[1])
    if isinstance(position, Term) and not steady(scope, position):
        contract(scope, span, within(position, len(items)), "put")
        made = [merge(equal(position, k), arguments[2], item, scope) for k, item in enumerate(items)]
        if None not in made:
            return tuple(item for item in made if item is not None)
    place = position_of(position, len(items), span, scope, "put")
    return (*items[:place], arguments[2], *items[place + 1 :])


def _drop(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if isinstance(arguments[0], Listed):
        return dropped(arguments[0], whole(arguments[1]), span, scope)
    items = entries(arguments[0], scope)
    place = position_of(arguments[1], len(items), span, scope, "drop")
    return items[:place] + items[place + 1 :]


def _insert(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if isinstance(arguments[0], Listed):
        return inserted(arguments[0], whole(arguments[1]), arguments[2], span, scope)
    items = entries(arguments[0], scope)
    place = position_of(arguments[1], len(items) + 1, span, scope, "insert")
    return (*items[:place], arguments[2], *items[place:])


def _merge(arguments: Arguments, span: Span, scope: Scope) -> Value:
    places, inner, outer = (entries(argument, scope) for argument in arguments)
    size = len(inner) + len(outer)
    if len(places) != len(inner):
        contract(scope, span, FALSE, "merge")
    at = [position_of(place, size, span, scope, "merge") for place in places]
    if len(set(at)) != len(at):
        contract(scope, span, FALSE, "merge")
    result: list[Value | None] = [None] * size
    for place, item in zip(at, inner, strict=True):
        result[place] = item
    rest = iter(outer)
    return tuple(next(rest) if item is None else item for item in result)


def _reverse(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    return entries(arguments[0], scope)[::-1]


def _sorted(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    items = list(map(whole, entries(arguments[0], scope)))
    for bound in range(len(items) - 1, 0, -1):
        for k in range(bound):
            items[k], items[k + 1] = minimum(items[k], items[k + 1]), maximum(items[k], items[k + 1])
    return tuple(items)


def _find(arguments: Arguments, span: Span, scope: Scope) -> Value:
    item = softly(arguments[0], scope)
    items = [softly(other, scope) for other in entries(arguments[1], scope)]
    same = [relate("=", item, other, scope) for other in items]
    contract(scope, span, either(*same), "find")
    result: Int = len(items) - 1
    for position in reversed(range(len(items) - 1)):
        result = choose(same[position], position, result)
    return result


def _total(arguments: Arguments, span: Span, scope: Scope) -> Value:
    return reduce(lambda a, b: arithmetic("add", a, b, span, scope), entries(arguments[0], scope), cast("Value", 0))


def _product(arguments: Arguments, span: Span, scope: Scope) -> Value:
    return reduce(lambda a, b: arithmetic("mul", a, b, span, scope), entries(arguments[0], scope), cast("Value", 1))


def _extreme(name: str) -> Primitive:
    def found(arguments: Arguments, span: Span, scope: Scope) -> Value:
        items = entries(arguments[0], scope)
        if not items:
            contract(scope, span, FALSE, name)
        return reduce(lambda a, b: _either(name, a, b, scope), items)

    return found


# ---- Shapes and indices -----------------------------------------------------------------------


# ---- From data to shapes ----------------------------------------------------------------------


# ---- Exact arithmetic -------------------------------------------------------------------------


def _either(name: str, left: Value, right: Value, scope: Scope) -> Value:
    """The smaller or greater one; componentwise for lists."""
    least = name in ("minimum", "least")
    if compound(left, right):
        pairs = pairs_of(left, right, scope)
        if pairs is None:
            raise Dead
        return tuple(_either(name, a, b, scope) for a, b in pairs)
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.apply("minimum" if least else "maximum", one.type, (one, other), scope)
    if isinstance(left, int | Term) and isinstance(right, int | Term):
        return minimum(left, right) if least else maximum(left, right)
    found = merge(order("<=" if least else ">=", number(left), number(right)), left, right, scope)
    return 0 if found is None else found


def _minimum(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    return _either("minimum", arguments[0], arguments[1], scope)


def _maximum(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    return _either("maximum", arguments[0], arguments[1], scope)


def _clip(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    item, low, high = arguments
    return _either("minimum", _either("maximum", item, low, scope), high, scope)


def _absolute(arguments: Arguments, span: Span, scope: Scope) -> Value:
    (item,) = arguments
    if compound(item, item):
        return tuple(_absolute((part,), span, scope) for part in entries(item, scope))
    if isinstance(item, Element):
        return scope.run.algebra.apply("absolute", item.type, (item,), scope)
    return _either("maximum", item, negative(item, scope), scope)


# ---- Elements ---------------------------------------------------------------------------------


def _of_type(name: str) -> Primitive:
    """A function whose first argument is the type of the value."""

    def found(arguments: Arguments, _span: Span, scope: Scope) -> Value:
        kind, *rest = arguments
        if not isinstance(kind, ElementType):
            raise InternalError(f"{kind!r} is no element type")
        return scope.run.algebra.apply(name, kind, rest, scope)

    return found


def _of_element(name: str) -> Primitive:
    """A function whose value has the type of its arguments, of which numerals are adapted."""

    def found(arguments: Arguments, _span: Span, scope: Scope) -> Value:
        kind = next((argument.type for argument in arguments if isinstance(argument, Element)), ElementType(""))
        return scope.run.algebra.apply(name, kind, [element(item, kind, scope) for item in arguments], scope)

    return found


def _lifted(sort: str) -> Primitive:
    def found(arguments: Arguments, _span: Span, scope: Scope) -> Value:
        (item,) = arguments
        return scope.run.algebra.lift(sort, item, scope) if isinstance(item, Element) else item

    return found


def _tested(name: str) -> Primitive:
    def found(arguments: Arguments, _span: Span, scope: Scope) -> Value:
        (item,) = arguments
        return scope.run.algebra.test(name, item, scope) if isinstance(item, Element) else FALSE

    return found


def _oneof(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    left, right = arguments
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.apply("oneof", one.type, (one, other), scope)
    return left


# ---- Sorting and text -------------------------------------------------------------------------


PRIMITIVES: Mapping[str, Primitive] = {
    "len": _len, "range": _range, "repeat": _repeat, "front": _front, "back": _back, "put": _put, "drop": _drop,
    "insert": _insert, "merge": _merge, "reverse": _reverse, "sorted": _sorted, "find": _find, "total": _total,
    "product": _product, "least": _extreme("least"), "greatest": _extreme("greatest"),
    **SHAPES,
    "minimum": _minimum, "maximum": _maximum, "clip": _clip, "absolute": _absolute,
    "floor": lambda arguments, _span, _scope: floor(number(arguments[0])),
    "ceiling": lambda arguments, _span, _scope: ceiling(number(arguments[0])),
    **TYPES,
    **{name: _of_type(name) for name in ("cast", "saturate", "nan", "infinity", "arbitrary")},
    "truth": _lifted("Bool"), "integer": _lifted("Int"), "rational": _lifted("Rational"),
    "is_nan": _tested("is_nan"), "is_infinite": _tested("is_infinite"), "oneof": _oneof,
    **{name: _of_element(name) for name in (
        "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
        "atanh", "erf", "power", "remainder", "round_even", "round_down", "round_up", "truncate",
    )},
}  # fmt: skip
"""The primitives by name."""
