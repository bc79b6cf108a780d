"""The smt interpretation of operators, primitives: one table by name, each as its contract in spec/primitives.sonnx.

What a contract requires is demanded; then the value is computed on lists of terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import cast

from sonnx.spec.syntax import Span

from ..errors import InternalError
from ..terms import FALSE, TRUE, Term
from .ieee_text import einsum_parse
from .symbolic_numbers import (
    Int,
    add,
    at_most,
    both,
    ceiling,
    choose,
    either,
    equal,
    floor,
    floor_div,
    floor_mod,
    maximum,
    minimum,
    multiply,
    order,
    within,
)
from .symbolic_relations import (
    arithmetic,
    compound,
    elements,
    merge,
    negative,
    pairs_of,
    relate,
    softly,
)
from .symbolic_types import TYPES
from .symbolic_values import (
    LENGTHS,
    Array,
    Dead,
    Element,
    ElementType,
    Open,
    Scope,
    Value,
    applied,
    axiom,
    decide,
    demand,
    entries,
    fixed_value,
    number,
    remembered,
    settle,
    settle_text,
    steady,
    whole,
)

Arguments = Sequence[Value]
Labels = tuple[tuple[tuple[int, ...], ...], int, int]
Primitive = Callable[[Arguments, Span, Scope], Value]


def call(name: str, arguments: Arguments, span: Span, scope: Scope) -> Value:
    """The value of a primitive."""
    found = PRIMITIVES.get(name)
    if found is None:
        raise InternalError(f"{span}: the smt interpretation has no primitive {name}")
    return found(arguments, span, scope)


def _require(scope: Scope, span: Span, goal: Term, about: str) -> None:
    demand(scope, "contract", span, goal, about)


# ---- Vectors ----------------------------------------------------------------------------------


def _len(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    (source,) = arguments
    if isinstance(source, Open):
        fixed = fixed_value(scope, source.length) if isinstance(source.length, Term) else None
        return source.length if fixed is None else fixed
    return source.shape[0] if isinstance(source, Array) else len(entries(source, scope))


def _count(value: Value, span: Span, scope: Scope, about: str) -> int:
    """A number of entries, settled; not negative."""
    count = whole(value)
    _require(scope, span, at_most(0, count), about)
    return settle(scope, count, LENGTHS)


def _range(arguments: Arguments, span: Span, scope: Scope) -> Value:
    return tuple(range(_count(arguments[0], span, scope, "range")))


def _repeat(arguments: Arguments, span: Span, scope: Scope) -> Value:
    item, count = arguments
    return (item,) * _count(count, span, scope, "repeat")


def _cut(value: Value, items: tuple[Value, ...], span: Span, scope: Scope, about: str) -> int:
    """How many entries a cut leaves in front; a negative number counts as 0."""
    count = whole(value)
    _require(scope, span, at_most(count, len(items)), about)
    if isinstance(count, Term):
        count = settle(scope, count, range(-len(items), len(items) + 1))
    return max(count, 0)


def _front(arguments: Arguments, span: Span, scope: Scope) -> Value:
    items = entries(arguments[0], scope)
    return items[: _cut(arguments[1], items, span, scope, "front")]


def _back(arguments: Arguments, span: Span, scope: Scope) -> Value:
    items = entries(arguments[0], scope)
    return items[_cut(arguments[1], items, span, scope, "back") :]


def _place(value: Value, size: int, span: Span, scope: Scope, about: str) -> int:
    position = whole(value)
    _require(scope, span, within(position, size), about)
    return settle(scope, position, range(size))


def _put(arguments: Arguments, span: Span, scope: Scope) -> Value:
    items = entries(arguments[0], scope)
    position = whole(arguments[1])
    if isinstance(position, Term) and not steady(scope, position):
        _require(scope, span, within(position, len(items)), "put")
        made = [merge(equal(position, k), arguments[2], item, scope) for k, item in enumerate(items)]
        if None not in made:
            return tuple(item for item in made if item is not None)
    place = _place(position, len(items), span, scope, "put")
    return (*items[:place], arguments[2], *items[place + 1 :])


def _drop(arguments: Arguments, span: Span, scope: Scope) -> Value:
    items = entries(arguments[0], scope)
    place = _place(arguments[1], len(items), span, scope, "drop")
    return items[:place] + items[place + 1 :]


def _insert(arguments: Arguments, span: Span, scope: Scope) -> Value:
    items = entries(arguments[0], scope)
    place = _place(arguments[1], len(items) + 1, span, scope, "insert")
    return (*items[:place], arguments[2], *items[place:])


def _merge(arguments: Arguments, span: Span, scope: Scope) -> Value:
    places, inner, outer = (entries(argument, scope) for argument in arguments)
    size = len(inner) + len(outer)
    if len(places) != len(inner):
        _require(scope, span, FALSE, "merge")
    at = [_place(place, size, span, scope, "merge") for place in places]
    if len(set(at)) != len(at):
        _require(scope, span, FALSE, "merge")
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
    _require(scope, span, either(*same), "find")
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
            _require(scope, span, FALSE, name)
        return reduce(lambda a, b: _either(name, a, b, scope), items)

    return found


# ---- Shapes and indices -----------------------------------------------------------------------


def _shape(arguments: Arguments, _span: Span, _scope: Scope) -> Value:
    return _array(arguments[0]).shape


def _array(value: Value) -> Array:
    if isinstance(value, Array):
        return value
    raise InternalError(f"{value!r} is no tensor")


def _broadcast(arguments: Arguments, span: Span, scope: Scope) -> Value:
    a, b = (list(map(whole, entries(argument, scope))) for argument in arguments)
    size = max(len(a), len(b))
    a, b = [1] * (size - len(a)) + a, [1] * (size - len(b)) + b
    found: list[Value] = []
    for x, y in zip(a, b, strict=True):
        _require(scope, span, either(equal(x, y), equal(x, 1), equal(y, 1)), "broadcast")
        found.append(choose(equal(x, 1), y, x))
    return tuple(found)


def _align(arguments: Arguments, span: Span, scope: Scope) -> Value:
    index, shape = (list(map(whole, entries(argument, scope))) for argument in arguments)
    if len(index) < len(shape):
        _require(scope, span, FALSE, "align")
    last = index[len(index) - len(shape) :]
    return tuple(choose(equal(size, 1), 0, i) for i, size in zip(last, shape, strict=True))


def _flatten(arguments: Arguments, span: Span, scope: Scope) -> Value:
    index, shape = (list(map(whole, entries(argument, scope))) for argument in arguments)
    if len(index) != len(shape):
        _require(scope, span, FALSE, "flatten")
    _require(scope, span, both(*(within(i, n) for i, n in zip(index, shape, strict=True))), "flatten")
    if scope.run.whole:
        return reduce(
            lambda a, part: add(multiply(a, part[1]), part[0]), zip(index, shape, strict=True), cast("Int", 0)
        )
    return Term("flat", (*index, *shape)) if index else 0


def _unflatten(arguments: Arguments, span: Span, scope: Scope) -> Value:
    position, shape = whole(arguments[0]), list(map(whole, entries(arguments[1], scope)))
    if isinstance(position, Term) and position.op == "flat" and len(position.args) >= 2:
        half = len(position.args) // 2
        index, sizes = cast("tuple[Int, ...]", position.args[:half]), position.args[half:]
        if list(sizes) == shape:
            return index
        _require(scope, span, equal(reduce(multiply, cast("tuple[Int, ...]", sizes)), _size(shape)), "unflatten")
    else:
        _require(scope, span, within(position, _size(shape)), "unflatten")
    if scope.run.whole:
        found: list[Value] = []
        for size in reversed(shape):
            found.append(floor_mod(position, size))
            position = floor_div(position, size)
        return tuple(reversed(found))
    parts = tuple(Term("unflat", (k, position, *shape)) for k in range(len(shape)))
    axiom(scope, both(*(within(p, n) for p, n in zip(parts, shape, strict=True))))
    return parts


def _size(shape: Sequence[Int]) -> Int:
    return reduce(multiply, shape, cast("Int", 1))


# ---- From data to shapes ----------------------------------------------------------------------


def _entries_of(source: Array, sort: str, scope: Scope) -> tuple[Value, ...]:
    """The elements, row-major; the number of them is settled, dimension by dimension."""
    sizes = [settle(scope, size, LENGTHS) for size in source.shape]
    found: list[Value] = []
    for flat in range(cast("int", _size(sizes))):
        index: list[int] = []
        rest = flat
        for size in reversed(sizes):
            index.insert(0, rest % size)
            rest //= size
        item = source.read(tuple(index), scope)
        found.append(scope.run.algebra.lift(sort, item, scope) if isinstance(item, Element) else item)
    return tuple(found)


def _values(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    return _entries_of(_array(arguments[0]), "Int", scope)


def _rationals(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    return _entries_of(_array(arguments[0]), "Rational", scope)


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
    """A function whose value has the type of its first argument."""

    def found(arguments: Arguments, _span: Span, scope: Scope) -> Value:
        first = next((argument for argument in arguments if isinstance(argument, Element)), None)
        if first is None:
            raise InternalError(f"{name} of no element")
        made = elements(arguments[0], first, scope)[:1] if len(arguments) == 1 else elements(*arguments[:2], scope)
        return scope.run.algebra.apply(name, first.type, made, scope)

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


def _order(arguments: Arguments, span: Span, scope: Scope) -> Value:
    source, axis, largest = _array(arguments[0]), whole(arguments[1]), arguments[2]
    place = _place(axis, len(source.shape), span, scope, "order")
    if scope.run.whole:
        return _sorting(source, place, largest == TRUE, scope)
    name = f"order.{source.name}.{place}.{'down' if decide(scope, cast('Term', largest)) else 'up'}"

    def entry(index: tuple[Int, ...], here: Scope) -> Value:
        found = applied(here, name, index, "Int")
        there = both(*(within(i, n) for i, n in zip(index, source.shape, strict=True)))
        axiom(here.under(there), within(found, source.shape[place]))
        return found

    return Array(name, source.shape, entry, ElementType("int64"), "Int")


def _sorting(source: Array, axis: int, largest: bool, scope: Scope) -> Array:
    """On concrete shapes: the best of those that are left, one after the other, so that equal elements keep order."""
    fold = scope.run.algebra.fold
    name = "argmax" if largest else "argmin_first"

    def sort(line: tuple[Int, ...], here: Scope) -> Value:
        items: dict[int, Element] = {}
        for k in range(settle(here, source.shape[axis], ())):
            item = source.read((*line[:axis], k, *line[axis:]), here)
            items[k] = elements(item, item, here)[0]
        found: list[int] = []
        while items:
            best = fold(name, list(items.items()), here)
            if not isinstance(best, int):
                raise InternalError("a position that is no number")
            found.append(best)
            del items[best]
        return tuple(found)

    sort = remembered(sort)

    def entry(index: tuple[Int, ...], here: Scope) -> Value:
        positions = entries(sort((*index[:axis], *index[axis + 1 :]), here), here)
        return positions[settle(here, index[axis], ())]

    return Array("order", source.shape, entry, ElementType("int64"), "Int")


def _lower(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    text = settle_text(scope, arguments[0])
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def _einsum(part: Callable[[Labels, list[int]], Value]) -> Primitive:
    """A function of the labels of an equation; the last argument, where there is one, is an operand."""

    def found(arguments: Arguments, span: Span, scope: Scope) -> Value:
        text = settle_text(scope, arguments[0])
        ranks = tuple(settle(scope, whole(rank), LENGTHS) for rank in entries(arguments[1], scope))
        try:
            labels = einsum_parse(text, ranks)
        except ValueError:
            if scope.run.whole:
                _require(scope, span, FALSE, "einsum")
            raise Dead from None  # the primitive itself refuses the equation; the text need not
        operands = [_place(position, len(ranks), span, scope, "einsum_term") for position in arguments[2:]]
        return part(labels, operands)

    return found


PRIMITIVES: Mapping[str, Primitive] = {
    "len": _len, "range": _range, "repeat": _repeat, "front": _front, "back": _back, "put": _put, "drop": _drop,
    "insert": _insert, "merge": _merge, "reverse": _reverse, "sorted": _sorted, "find": _find, "total": _total,
    "product": _product, "least": _extreme("least"), "greatest": _extreme("greatest"),
    "shape": _shape, "broadcast": _broadcast, "align": _align, "flatten": _flatten, "unflatten": _unflatten,
    "values": _values, "rationals": _rationals,
    "minimum": _minimum, "maximum": _maximum, "clip": _clip, "absolute": _absolute,
    "floor": lambda arguments, _span, _scope: floor(number(arguments[0])),
    "ceiling": lambda arguments, _span, _scope: ceiling(number(arguments[0])),
    "type_of": lambda arguments, _span, _scope: _array(arguments[0]).type,
    **TYPES,
    **{name: _of_type(name) for name in ("cast", "saturate", "nan", "infinity", "arbitrary")},
    "truth": _lifted("Bool"), "integer": _lifted("Int"), "rational": _lifted("Rational"),
    "is_nan": _tested("is_nan"), "is_infinite": _tested("is_infinite"), "oneof": _oneof,
    **{name: _of_element(name) for name in (
        "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
        "atanh", "erf", "power", "remainder", "round_even", "round_down", "round_up", "truncate",
    )},
    "order": _order, "lower": _lower,
    "einsum_labels": _einsum(lambda labels, _operands: labels[2]),
    "einsum_outputs": _einsum(lambda labels, _operands: labels[1]),
    "einsum_term": _einsum(lambda labels, operands: labels[0][operands[0]]),
}  # fmt: skip
"""The primitives by name."""
