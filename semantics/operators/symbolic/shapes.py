"""The smt interpretation of operators, primitives about tensors: shapes, indices, data as shapes, order, equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import cast

from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Term
from ..compiled.primitives import einsum_parse
from .cases import LENGTHS, decide, entries, settle, settle_text, whole
from .lists import content, type_of
from .numbers import Int, add, at_most, both, choose, either, equal, floor_div, floor_mod, multiply, within
from .relations import elements
from .values import Array, Element, ElementType, Refused, Scope, Value, applied, axiom, demand, remembered

Arguments = Sequence[Value]


Primitive = Callable[[Arguments, Span, Scope], Value]


def contract(scope: Scope, span: Span, goal: Term, about: str) -> None:
    """What a contract requires."""
    demand(scope, "contract", span, goal, about)


def count_of(value: Value, span: Span, scope: Scope, about: str) -> int:
    """A number of entries, settled; not negative."""
    count = whole(value)
    contract(scope, span, at_most(0, count), about)
    return settle(scope, count, LENGTHS)


def position_of(value: Value, size: int, span: Span, scope: Scope, about: str) -> int:
    """A position below a size, settled."""
    position = whole(value)
    contract(scope, span, within(position, size), about)
    return settle(scope, position, range(size))


Labels = tuple[tuple[tuple[int, ...], ...], int, int]


def _shape(arguments: Arguments, _span: Span, _scope: Scope) -> Value:
    return _array(arguments[0]).shape


def _array(value: Value) -> Array:
    if isinstance(value, Array):
        return value
    raise InternalError(f"{value!r} is no tensor")


def _broadcast(arguments: Arguments, span: Span, scope: Scope) -> Value:
    a, b = (tuple(map(whole, entries(argument, scope))) for argument in arguments)
    size = max(len(a), len(b))
    a, b = (1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b
    found: list[Value] = []
    for x, y in zip(a, b, strict=True):
        contract(scope, span, either(equal(x, y), equal(x, 1), equal(y, 1)), "broadcast")
        found.append(x if y == 1 else choose(equal(x, 1), y, x))
    return tuple(found)


def _align(arguments: Arguments, span: Span, scope: Scope) -> Value:
    index, shape = (list(map(whole, entries(argument, scope))) for argument in arguments)
    if len(index) < len(shape):
        contract(scope, span, FALSE, "align")
    last = index[len(index) - len(shape) :]
    return tuple(choose(equal(size, 1), 0, i) for i, size in zip(last, shape, strict=True))


def _flatten(arguments: Arguments, span: Span, scope: Scope) -> Value:
    index, shape = (list(map(whole, entries(argument, scope))) for argument in arguments)
    if len(index) != len(shape):
        contract(scope, span, FALSE, "flatten")
    contract(scope, span, both(*(within(i, n) for i, n in zip(index, shape, strict=True))), "flatten")
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
        contract(scope, span, equal(reduce(multiply, cast("tuple[Int, ...]", sizes)), _size(shape)), "unflatten")
    else:
        contract(scope, span, within(position, _size(shape)), "unflatten")
    if scope.run.whole:
        found: list[Value] = []
        for size in reversed(shape):
            found.append(floor_mod(position, size))
            position = floor_div(position, size)
        return tuple(reversed(found))
    parts = tuple(Term("unflat", (k, position, *shape)) for k in range(len(shape)))
    axiom(scope, both(*(within(p, n) for p, n in zip(parts, shape, strict=True))), assumed=True)
    return parts


def _size(shape: Sequence[Int]) -> Int:
    return reduce(multiply, shape, cast("Int", 1))


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


def _order(arguments: Arguments, span: Span, scope: Scope) -> Value:
    source, axis, largest = _array(arguments[0]), whole(arguments[1]), arguments[2]
    place = position_of(axis, len(source.shape), span, scope, "order")
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

    kept = remembered(sort)

    def entry(index: tuple[Int, ...], here: Scope) -> Value:
        positions = entries(kept((*index[:axis], *index[axis + 1 :]), here), here)
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
                contract(scope, span, FALSE, "einsum")
            raise Refused from None  # the primitive itself refuses the equation; the text need not
        operands = [position_of(position, len(ranks), span, scope, "einsum_term") for position in arguments[2:]]
        return part(labels, operands)

    return found


def _type_of(value: Value) -> ElementType:
    """The type of a tensor; of a sequence or optional one that its entries give."""
    if type(value) is tuple:
        return ElementType("_".join(("list", *(_type_of(item).name for item in value))))
    return type_of(value)


def _content(arguments: Arguments, _span: Span, _scope: Scope) -> Value:
    (value,) = arguments
    return value if type(value) is tuple else content(value)


def _type_holding(word: str) -> Primitive:
    def found(arguments: Arguments, _span: Span, _scope: Scope) -> Value:
        (kind,) = arguments
        if not isinstance(kind, ElementType):
            raise InternalError(f"{kind!r} is no type")
        return ElementType(f"{word}_{kind.name}")

    return found


SHAPES: Mapping[str, Primitive] = {
    "shape": _shape, "broadcast": _broadcast, "align": _align, "flatten": _flatten, "unflatten": _unflatten,
    "values": _values, "rationals": _rationals, "type_of": lambda arguments, _span, _scope: _type_of(arguments[0]),
    "content": _content, "sequence_of": _type_holding("sequence"), "optional_of": _type_holding("optional"),
    "order": _order, "lower": _lower,
    "einsum_labels": _einsum(lambda labels, _operands: labels[2]),
    "einsum_outputs": _einsum(lambda labels, _operands: labels[1]),
    "einsum_term": _einsum(lambda labels, operands: labels[0][operands[0]]),
}  # fmt: skip
"""The primitives of this file."""
