"""The smt interpretation of operators, primitives: one table by name, each as its contract in spec/primitives.sonnx."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import cast

from sonnx.spec.language.syntax import NOWHERE, Span

from ...errors import InternalError, Unsupported
from ...formulas.terms import FALSE, TRUE, Term
from ...model.elements import BITS, CODES, ELEMENT_TYPES, FLOATS, INTEGERS, limits
from ..reading import OF_STRINGS
from . import rows, selections
from .numbers import (
    Int,
    Real,
    add,
    at_most,
    both,
    choose,
    either,
    equal,
    floor,
    floor_div,
    floor_mod,
    less,
    maximum,
    minimum,
    multiply,
    order,
    subtract,
    within,
)
from .values import (
    LENGTHS,
    Array,
    Bounded,
    Dead,
    Element,
    ElementType,
    Field,
    Listed,
    Open,
    Refused,
    Row,
    Scope,
    TextSymbol,
    Value,
    applied,
    arithmetic,
    axiom,
    branch,
    compound,
    content,
    decide,
    demand,
    dropped,
    element,
    elements,
    entries,
    fixed_value,
    fresh,
    inserted,
    merge,
    negative,
    number,
    pairs_of,
    remembered,
    settle,
    settle_text,
    steady,
    type_of,
    whole,
)

# ---- Element types: what is known of one by its name, symbols where it is open ------------------


def is_signed(name: str) -> bool:
    """True if a known type has numbers below 0."""
    return (limits(name) or (Fraction(0),))[0] < 0


Primitive = Callable[[Sequence[Value], Span, Scope], Value]


def _kind(arguments: Sequence[Value]) -> str:
    (kind,) = arguments
    if not isinstance(kind, ElementType):
        raise InternalError(f"{kind!r} is no element type")
    return kind.name


def _symbol(scope: Scope, base: str, name: str, sort: str) -> Term:
    """The symbol of a property of an open type."""
    symbol = f"{base}.{name}"
    scope.run.symbols[symbol] = (0, sort)
    return Term(symbol)


def _property(base: str, holds: Callable[[str], bool]) -> Primitive:
    def found(arguments: Sequence[Value], _span: Span, scope: Scope) -> Value:
        name = _kind(arguments)
        answers = {holds(kind) for kind in scope.run.types_of(name)}
        if len(answers) == 1:
            return TRUE if answers.pop() else FALSE
        return _symbol(scope, base, name, "Bool")

    return found


def _bits(arguments: Sequence[Value], _span: Span, scope: Scope) -> Value:
    name = _kind(arguments)
    answers = {ELEMENT_TYPES[kind].bits for kind in scope.run.types_of(name)}
    if len(answers) == 1:
        return answers.pop()
    symbol = _symbol(scope, "bits", name, "Int")
    axiom(scope, both(at_most(1, symbol), at_most(symbol, 128)))
    return symbol


def _limit(side: int) -> Primitive:
    def found(arguments: Sequence[Value], span: Span, scope: Scope) -> Value:
        name = _kind(arguments)
        answers = {limits(kind) for kind in scope.run.types_of(name)}
        if answers == {None}:
            demand(scope, "contract", span, FALSE, "lowest, highest")
            raise Dead
        if None in answers:
            raise Bounded(f"some of the types of {name} have limits, and some have none")
        if len(answers) == 1 and (known := answers.pop()) is not None:
            return known[side]
        low, high = (Real(_symbol(scope, base, name, "Real")) for base in ("lowest", "highest"))
        axiom(scope, both(order("<=", low, 1), order("<=", 1, high)))
        return (low, high)[side]

    return found


def _data_type(arguments: Sequence[Value], span: Span, scope: Scope) -> Value:
    code = whole(arguments[0])
    demand(scope, "contract", span, either(*(equal(code, known) for known in CODES)), "data_type")
    if not isinstance(code, int):
        return (
            ElementType(f"data_type.{code.op}") if not scope.run.whole else ElementType(CODES[settle(scope, code, ())])
        )
    return ElementType(CODES[code])


PROPERTIES: Mapping[str, Callable[[str], bool]] = {
    "is_float": FLOATS.__contains__,
    "is_integer": INTEGERS.__contains__,
    "is_signed": is_signed,
}
"""What is true or false of an element type."""

TYPES: Mapping[str, Primitive] = {
    **{name: _property(name, holds) for name, holds in PROPERTIES.items()},
    "bits": _bits,
    "lowest": _limit(0),
    "highest": _limit(1),
    "data_type": _data_type,
}
"""The primitives about element types."""


# ---- Tensors: shapes, indices, data as shapes, order, equations ---------------------------------

Arguments = Sequence[Value]


def contract(scope: Scope, span: Span, goal: Term, about: str) -> None:
    """The condition of a contract."""
    demand(scope, "contract", span, goal, about)


def count_of(value: Value, span: Span, scope: Scope, about: str) -> int:
    """A number of entries, settled; not negative."""
    count = whole(value)
    contract(scope, span, at_most(0, count), about)
    return settle(scope, count, LENGTHS)


def position_of(value: Value, size: int, span: Span, scope: Scope, about: str) -> int:
    """A position below a size, settled. Raises Dead for one that is not, as an obligation says."""
    position = whole(value)
    contract(scope, span, within(position, size), about)
    place = settle(scope, position, range(size))
    if not 0 <= place < size:
        raise Dead
    return place


Labels = tuple[tuple[tuple[int, ...], ...], int, int]


def _shape(arguments: Arguments, _span: Span, _scope: Scope) -> Value:
    if isinstance(arguments[0], Field):
        return arguments[0].shape
    return _array(arguments[0]).shape


def _array(value: Value) -> Array:
    if isinstance(value, Array):
        return value
    raise InternalError(f"{value!r} is no tensor")


def _broadcast(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if any(isinstance(argument, Row) for argument in arguments):
        return _broadcast_rows(rows.row_of(arguments[0], scope), rows.row_of(arguments[1], scope), span, scope)
    a, b = (tuple(map(whole, entries(argument, scope))) for argument in arguments)
    size = max(len(a), len(b))
    a, b = (1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b
    sizes: list[Value] = []
    for x, y in zip(a, b, strict=True):
        contract(scope, span, either(equal(x, y), equal(x, 1), equal(y, 1)), "broadcast")
        sizes.append(x if y == 1 else choose(equal(x, 1), y, x))
    return tuple(sizes)


def _broadcast_rows(a: Row, b: Row, span: Span, scope: Scope) -> Row:
    """Counted from the end, since that is where they are aligned; a missing entry counts as 1."""
    lengths = rows.length_of(a), rows.length_of(b)
    if lengths[0] == lengths[1]:
        size = lengths[0]
    elif steady(scope, lengths[0]) and steady(scope, lengths[1]):
        size = lengths[0] if decide(scope, at_most(lengths[1], lengths[0])) else lengths[1]
    else:
        size = maximum(*lengths)

    def padded(row: Row, length: Int) -> Callable[[Int, Scope], Value]:
        first = subtract(size, length)
        return lambda k, here: branch(
            less(k, first), lambda _: 1, lambda inner: rows.entry(row, subtract(k, first), inner), here
        )

    left, right = padded(a, lengths[0]), padded(b, lengths[1])

    def both_of(k: Int, here: Scope) -> Value:
        x, y = whole(left(k, here)), whole(right(k, here))
        contract(here, span, either(equal(x, y), equal(x, 1), equal(y, 1)), "broadcast")
        return x if y == 1 else choose(equal(x, 1), y, x)

    return rows.generic(size, both_of, scope)


def _flatten(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if any(isinstance(argument, Row) for argument in arguments):
        at, sizes = (rows.row_of(argument, scope) for argument in arguments)
        rows.demand_inside(at, sizes, "contract", span, scope, "flatten")
        return rows.flat(rows.linked(at, scope), sizes, scope)
    index, shape = (list(map(whole, entries(argument, scope))) for argument in arguments)
    if len(index) != len(shape):
        contract(scope, span, FALSE, "flatten")
    contract(scope, span, both(*(within(i, n) for i, n in zip(index, shape, strict=True))), "flatten")
    if scope.run.whole:
        return reduce(
            lambda a, part: add(multiply(a, part[1]), part[0]), zip(index, shape, strict=True), cast("Int", 0)
        )
    if scope.run.folded is not None:
        from . import digits  # elements are seldom terms

        known = digits.flattened(index, shape)
        if known is not None:
            scope.run.positions["inverse"] = None
            return known
    return Term("flat", (*index, *shape)) if index else 0


def _unflatten(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if isinstance(arguments[1], Row):
        return _unflatten_row(whole(arguments[0]), arguments[1], span, scope)
    position, shape = whole(arguments[0]), list(map(whole, entries(arguments[1], scope)))
    if isinstance(position, Term) and position.op == "flat" and len(position.args) >= 2:
        half = len(position.args) // 2
        index, sizes = cast("tuple[Int, ...]", position.args[:half]), position.args[half:]
        if list(sizes) == shape:
            scope.run.positions["inverse"] = None
            return index
        as_many = equal(reduce(multiply, cast("tuple[Int, ...]", sizes)), _size(shape))
        if scope.run.folded is not None and scope.knows(as_many):
            from . import digits

            # That an index is read says that no size is 0.
            known = scope.under(*(at_most(1, n) for n in (*sizes, *shape) if not isinstance(n, str)))
            scope.run.positions["converted"] = None
            return digits.converted(
                index, cast("tuple[Int, ...]", sizes), shape, lambda a, b: a == b or known.knows(equal(a, b))
            )
        contract(scope, span, as_many, "unflatten")
    else:
        contract(scope, span, within(position, _size(shape)), "unflatten")
    if scope.run.whole:
        return _place_of(position, shape)
    parts = tuple(Term("unflat", (k, position, *shape)) for k in range(len(shape)))
    axiom(scope, both(*(within(p, n) for p, n in zip(parts, shape, strict=True))), assumed=True)
    return parts


def _unflatten_row(position: Int, shape: Row, span: Span, scope: Scope) -> Value:
    size = rows.product_of(shape, scope)
    match position:
        case Term("place", (Term() as code, own)) if own == rows.code_of(shape, scope):
            return rows.coded(code, rows.length_of(shape))
        case Term("place", (_, Term() as other)) if other in scope.run.products:
            contract(scope, span, equal(scope.run.products[other], size), "unflatten")
        case Term("flat", args):
            sizes = cast("tuple[Int, ...]", args[len(args) // 2 :])
            contract(scope, span, equal(reduce(multiply, sizes, cast("Int", 1)), size), "unflatten")
        case _:
            contract(scope, span, within(position, size), "unflatten")
    index = rows.unflat(position, shape, scope)
    return rows.coded(index, rows.length_of(shape))


def _size(shape: Sequence[Int]) -> Int:
    return reduce(multiply, shape, cast("Int", 1))


def _entries_of(source: Array, sort: str, scope: Scope) -> tuple[Value, ...]:
    """The elements, row-major; the number of them is settled, dimension by dimension."""
    sizes = [settle(scope, size, LENGTHS) for size in source.shape]
    entries: list[Value] = []
    for flat in range(cast("int", _size(sizes))):
        index: list[int] = []
        rest = flat
        for size in reversed(sizes):
            index.insert(0, rest % size)
            rest //= size
        item = source.read(tuple(index), scope)
        entries.append(scope.run.algebra.lift(sort, item, scope) if isinstance(item, Element) else item)
    return tuple(entries)


def _listed_row(source: Value, sort: str, scope: Scope) -> Row | None:
    """The elements as a list, of a tensor with an open number of elements where ranks are open."""
    size: Int
    read: rows.Entry
    if isinstance(source, Array) and scope.run.every and any(isinstance(extent, Term) for extent in source.shape):
        array, size = source, _size(source.shape)
        read = lambda k, here: array.read(_place_of(k, array.shape), here)  # noqa: E731
    elif isinstance(source, Field):
        field, axes = source, rows.length_of(source.shape)
        size = rows.product_of(field.shape, scope)
        read = lambda k, here: field.read(rows.coded(rows.unflat(k, field.shape, here), axes), here)  # noqa: E731
    else:
        return None

    def lifted(k: Int, here: Scope) -> Value:
        item = read(k, here)
        return here.run.algebra.lift(sort, item, here) if isinstance(item, Element) else item

    return Row((rows.block(size, lifted, scope),))


def _place_of(position: Int, shape: Sequence[Int]) -> tuple[Int, ...]:
    """The index at a position among all, row-major."""
    inner: list[Int] = []
    for size in reversed(shape[1:]):
        inner.append(floor_mod(position, size))
        position = floor_div(position, size)
    return (position, *reversed(inner)) if shape else ()


def _values(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    if row := _listed_row(arguments[0], "Int", scope):
        return row
    return _entries_of(_array(arguments[0]), "Int", scope)


def _rationals(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    if row := _listed_row(arguments[0], "Rational", scope):
        return row
    return _entries_of(_array(arguments[0]), "Rational", scope)


def _by_name_alone(name: str, span: Span, scope: Scope) -> None:
    """Raises Bounded where elements are terms: the name of a tensor does not say which tensor it is."""
    if scope.run.folded is not None:
        raise Bounded(f"{span}: {name} is no term")


def _order_field(source: Field, axis: Int, span: Span, scope: Scope) -> Field:
    contract(scope, span, within(axis, rows.length_of(source.shape)), "order")
    name = f"order.{span.line}.{span.column}.{source.name}"
    size = whole(rows.entry(source.shape, axis, scope))

    def entry(index: Row, here: Scope) -> Value:
        code = rows.linked(index, here)
        position = applied(here, name, (code,), "Int")
        axiom(here, within(position, size), assumed=True)  # for an index below the shape, as is demanded
        return position

    return Field(name, source.shape, entry, ElementType("int64"))


def _order(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if isinstance(arguments[0], Field):
        return _order_field(arguments[0], whole(arguments[1]), span, scope)
    _by_name_alone("order", span, scope)
    source, axis, largest = _array(arguments[0]), whole(arguments[1]), arguments[2]
    place = position_of(axis, len(source.shape), span, scope, "order")
    if scope.run.whole:
        return _sorting(source, place, largest == TRUE, scope)
    name = f"order.{source.name}.{place}.{'down' if decide(scope, cast('Term', largest)) else 'up'}"

    def entry(index: tuple[Int, ...], here: Scope) -> Value:
        position = applied(here, name, index, "Int")
        there = both(*(within(i, n) for i, n in zip(index, source.shape, strict=True)))
        axiom(here.under(there), within(position, source.shape[place]))
        return position

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
        order: list[int] = []
        while items:
            best = fold(name, list(items.items()), here)
            if not isinstance(best, int):
                raise InternalError("a position that is no number")
            order.append(best)
            del items[best]
        return tuple(order)

    kept = remembered(sort)

    def entry(index: tuple[Int, ...], here: Scope) -> Value:
        positions = entries(kept((*index[:axis], *index[axis + 1 :]), here), here)
        return positions[settle(here, index[axis], ())]

    return Array("order", source.shape, entry, ElementType("int64"), "Int")


def _drawn(name: str) -> Primitive:
    """Numbers of which only the type is known; on concrete shapes 0, which is one of them."""

    def found(arguments: Arguments, span: Span, scope: Scope) -> Value:
        _by_name_alone(name, span, scope)
        kind = ElementType("double")
        if isinstance(arguments[0], Row):
            return Field(name, arguments[0], lambda _index, here: here.run.algebra.abstract(kind, here), kind)
        shape = tuple(map(whole, entries(arguments[0], scope)))

        def entry(_index: tuple[Int, ...], here: Scope) -> Value:
            return here.run.algebra.apply("arbitrary", kind, [], here)

        return Array(name, shape, entry, kind)

    return found


def _outcomes_field(source: Field, count: Int, span: Span, scope: Scope) -> Field:
    last = subtract(rows.length_of(source.shape), 1)
    contract(scope, span, both(at_most(0, count), at_most(0, last)), "outcomes")
    name = f"outcomes.{span.line}.{span.column}.{source.name}"
    size = whole(rows.entry(source.shape, last, scope))

    def entry(index: Row, here: Scope) -> Value:
        outcome = applied(here, name, (rows.linked(index, here),), "Int")
        axiom(here, within(outcome, size), assumed=True)  # for an index below the shape, as is demanded
        return outcome

    shape = rows.joined(rows.cut(source.shape, 0, last, scope), Row((rows.unit(count),)))
    return Field(name, shape, entry, ElementType("int64"))


def _outcomes(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if isinstance(arguments[0], Field):
        return _outcomes_field(arguments[0], whole(arguments[1]), span, scope)
    source, count = _array(arguments[0]), whole(arguments[1])
    contract(scope, span, at_most(0, count), "outcomes")
    last = len(source.shape) - 1
    name = f"outcomes.{span.line}.{span.column}.{source.name}"

    def entry(index: tuple[Int, ...], here: Scope) -> Value:
        _by_name_alone("outcomes", span, here)
        if here.run.whole:
            return _likeliest(source, index[:last], here)
        outcome = applied(here, name, index, "Int")
        there = both(*(within(i, n) for i, n in zip(index, (*source.shape[:last], count), strict=True)))
        axiom(here.under(there), within(outcome, source.shape[last]))
        return outcome

    return Array(name, (*source.shape[:last], count), entry, ElementType("int64"), "Int")


def _likeliest(source: Array, row: tuple[Int, ...], here: Scope) -> Value:
    """On concrete shapes: the first position of the greatest element, which is one of the outcomes."""
    count = settle(here, source.shape[-1], ())
    items = [(k, source.read((*row, k), here)) for k in range(count)]
    likeliest = here.run.algebra.fold("argmax", [(k, elements(item, item, here)[0]) for k, item in items], here)
    if not isinstance(likeliest, int):
        raise InternalError("a position that is no number")
    return likeliest


def _lower(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    (item,) = arguments
    if isinstance(item, TextSymbol) and item.code is not None:
        scope.run.symbols["lower"] = (1, "Int")
        return TextSymbol(f"lower {item.name}", Term("lower", (item.code,)))
    text = settle_text(scope, item)
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def _is_pattern(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    """Either way for a text that is not known, or that is not handled."""
    from ..compiled.elements.patterns import is_pattern

    text = arguments[0]
    try:
        if isinstance(text, str):
            return TRUE if is_pattern(text) else FALSE
    except Unsupported:
        pass
    return fresh(scope, "is_pattern", "Bool")


def _einsum(part: Callable[[Labels, list[int]], Value]) -> Primitive:
    """A function of the labels of an equation; the last argument, where there is one, is an operand."""

    def found(arguments: Arguments, span: Span, scope: Scope) -> Value:
        from ..compiled.primitives import einsum_parse

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


def _type_of(value: Value, scope: Scope) -> ElementType:
    """The type of a tensor; of a sequence or optional one that its entries give."""
    if type(value) is tuple:
        return ElementType("_".join(("list", *(_type_of(item, scope).name for item in value))))
    if isinstance(value, Row):
        parts = (part.entry(rows.PROBE, scope) if part.value is None else part.value for part in value.parts)
        return ElementType("_".join(("list", *(_type_of(item, scope).name for item in parts))))
    return type_of(value)


def _content(arguments: Arguments, _span: Span, _scope: Scope) -> Value:
    (value,) = arguments
    return value if type(value) is tuple or isinstance(value, Row) else content(value)


def _type_holding(word: str) -> Primitive:
    def found(arguments: Arguments, _span: Span, _scope: Scope) -> Value:
        (kind,) = arguments
        if not isinstance(kind, ElementType):
            raise InternalError(f"{kind!r} is no type")
        return ElementType(f"{word}_{kind.name}")

    return found


def _map_of(arguments: Arguments, _span: Span, _scope: Scope) -> Value:
    key, kind = (it.name for it in arguments if isinstance(it, ElementType))
    return ElementType(f"map_{key}_{kind}")


SHAPES: Mapping[str, Primitive] = {
    "shape": _shape, "broadcast": _broadcast, "flatten": _flatten, "unflatten": _unflatten,
    "values": _values, "rationals": _rationals,
    "type_of": lambda arguments, _span, scope: _type_of(arguments[0], scope),
    "content": _content, "sequence_of": _type_holding("sequence"), "optional_of": _type_holding("optional"),
    "map_of": _map_of,
    "order": _order, "uniform": _drawn("uniform"), "normal": _drawn("normal"), "outcomes": _outcomes, "lower": _lower,
    "is_pattern": _is_pattern, "einsum_labels": _einsum(lambda labels, _operands: labels[2]),
    "einsum_outputs": _einsum(lambda labels, _operands: labels[1]),
    "einsum_term": _einsum(lambda labels, operands: labels[0][operands[0]]),
}  # fmt: skip
"""The primitives about tensors."""


def call(name: str, arguments: Arguments, span: Span, scope: Scope) -> Value:
    """The value of a primitive."""
    primitive = PRIMITIVES.get(name)
    if primitive is None:
        raise InternalError(f"{span}: the smt interpretation has no primitive {name}")
    return primitive(arguments, span, scope)


# ---- Vectors ----------------------------------------------------------------------------------


def _len(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    (source,) = arguments
    if isinstance(source, Listed):
        return source.length
    if isinstance(source, Open):
        fixed = fixed_value(scope, source.length) if isinstance(source.length, Term) else None
        return source.length if fixed is None else fixed
    if isinstance(source, Row):
        return rows.length_of(source)
    return source.shape[0] if isinstance(source, Array) else len(entries(source, scope))


def _repeat(arguments: Arguments, span: Span, scope: Scope) -> Value:
    item, count = arguments
    if scope.run.every and isinstance(count, Term):
        contract(scope, span, at_most(0, count), "repeat")
        return Row((rows.block(count, lambda _k, _here: item, scope, sizes=item in (0, 1)),))
    return (item,) * count_of(count, span, scope, "repeat")


def _cut(value: Value, items: tuple[Value, ...], span: Span, scope: Scope, about: str) -> int:
    """The number of entries that a cut leaves in front; a negative number counts as 0."""
    count = whole(value)
    contract(scope, span, at_most(count, len(items)), about)
    if isinstance(count, Term):
        count = settle(scope, count, range(-len(items), len(items) + 1))
    return max(count, 0)


def _bounds(arguments: Arguments, span: Span, scope: Scope, about: str) -> tuple[Row, Int, Int, Scope] | None:
    """Where ranks are open: the list, where it is cut, its length, and the scope in which that is a place in it."""
    if not scope.run.every or not (isinstance(arguments[0], Row) or isinstance(arguments[1], Term)):
        return None
    row, count = rows.row_of(arguments[0], scope), whole(arguments[1])
    length = rows.length_of(row)
    contract(scope, span, at_most(count, length), about)
    count = rows.not_negative(count, scope)
    return row, count, length, scope.under(at_most(0, count), at_most(count, length))


def _front(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if found := _bounds(arguments, span, scope, "front"):
        row, count, _, inner = found
        return rows.cut(row, 0, count, inner)
    items = entries(arguments[0], scope)
    return items[: _cut(arguments[1], items, span, scope, "front")]


def _back(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if found := _bounds(arguments, span, scope, "back"):
        return rows.cut(*found)
    items = entries(arguments[0], scope)
    return items[_cut(arguments[1], items, span, scope, "back") :]


def _around(
    arguments: Arguments, span: Span, scope: Scope, about: str, *, behind: int, last: int
) -> tuple[Row, Row] | None:
    """Where ranks are open: the entries before a position, and those from the one so many `behind` it on. last: how
    many positions more than entries there are.
    """
    if not scope.run.every or not (isinstance(arguments[0], Row) or isinstance(arguments[1], Term)):
        return None
    row, position = rows.row_of(arguments[0], scope), whole(arguments[1])
    length = rows.length_of(row)
    there = within(position, add(length, last))
    contract(scope, span, there, about)
    inner = scope.under(there)
    return rows.cut(row, 0, position, inner), rows.cut(row, add(position, behind), length, inner)


def _put(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if parts := _around(arguments, span, scope, "put", behind=1, last=0):
        return rows.joined(parts[0], Row((rows.unit(arguments[2]),)), parts[1])
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
    if parts := _around(arguments, span, scope, "drop", behind=1, last=0):
        return rows.joined(*parts)
    items = entries(arguments[0], scope)
    place = position_of(arguments[1], len(items), span, scope, "drop")
    return items[:place] + items[place + 1 :]


def _insert(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if isinstance(arguments[0], Listed):
        return inserted(arguments[0], whole(arguments[1]), arguments[2], span, scope)
    if parts := _around(arguments, span, scope, "insert", behind=0, last=1):
        return rows.joined(parts[0], Row((rows.unit(arguments[2]),)), parts[1])
    items = entries(arguments[0], scope)
    place = position_of(arguments[1], len(items) + 1, span, scope, "insert")
    return (*items[:place], arguments[2], *items[place:])


def _merge(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if any(isinstance(argument, Row) for argument in arguments):
        places, inner, outer = (rows.row_of(argument, scope) for argument in arguments)
        return selections.merge(places, inner, outer, span, scope)
    listed, first, others = (entries(argument, scope) for argument in arguments)
    size = len(first) + len(others)
    if len(listed) != len(first):
        contract(scope, span, FALSE, "merge")
    at = [position_of(place, size, span, scope, "merge") for place in listed]
    if len(set(at)) != len(at):
        contract(scope, span, FALSE, "merge")
    result: list[Value | None] = [None] * size
    for place, item in zip(at, first, strict=True):
        result[place] = item
    rest = iter(others)
    return tuple(next(rest) if item is None else item for item in result)


def _product(arguments: Arguments, span: Span, scope: Scope) -> Value:
    if isinstance(arguments[0], Row):
        return rows.product_of(arguments[0], scope)
    return reduce(lambda a, b: arithmetic("mul", a, b, span, scope), entries(arguments[0], scope), cast("Value", 1))


def _reverse(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    if isinstance(arguments[0], Row):
        return rows.reverse(arguments[0], scope)
    return entries(arguments[0], scope)[::-1]


def _sorted(arguments: Arguments, _span: Span, scope: Scope) -> Value:
    if isinstance(arguments[0], Row):
        return selections.ordered(arguments[0], scope)
    items = list(map(whole, entries(arguments[0], scope)))
    for bound in range(len(items) - 1, 0, -1):
        for k in range(bound):
            items[k], items[k + 1] = minimum(items[k], items[k + 1]), maximum(items[k], items[k + 1])
    return tuple(items)


# ---- Exact arithmetic -------------------------------------------------------------------------


def _either(name: str, left: Value, right: Value, scope: Scope, span: Span = NOWHERE) -> Value:
    """The smaller or greater one, `minimum` or `maximum`; componentwise for lists."""
    least = name == "minimum"
    if isinstance(left, Row) or isinstance(right, Row):
        return rows.componentwise(lambda a, b, here: _either(name, a, b, here), left, right, span, scope)
    if compound(left, right):
        pairs = pairs_of(left, right, scope)
        if pairs is None:
            raise Dead
        return tuple(_either(name, a, b, scope) for a, b in pairs)
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.apply(name, one.type, (one, other), scope)
    if isinstance(left, int | Term) and isinstance(right, int | Term):
        return minimum(left, right) if least else maximum(left, right)
    chosen = merge(order("<=" if least else ">=", number(left), number(right)), left, right, scope)
    return 0 if chosen is None else chosen


def _minimum(arguments: Arguments, span: Span, scope: Scope) -> Value:
    return _either("minimum", arguments[0], arguments[1], scope, span)


def _maximum(arguments: Arguments, span: Span, scope: Scope) -> Value:
    return _either("maximum", arguments[0], arguments[1], scope, span)


def _clip(arguments: Arguments, span: Span, scope: Scope) -> Value:
    item, low, high = arguments
    return _either("minimum", _either("maximum", item, low, scope, span), high, scope, span)


def _absolute(arguments: Arguments, span: Span, scope: Scope) -> Value:
    (item,) = arguments
    if isinstance(item, Row):
        return rows.each(lambda part, here: _absolute((part,), span, here), item, scope)
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


def _reinterpreted(arguments: Arguments, span: Span, scope: Scope) -> Value:
    """The digits of an element as one of another type, which has as many wherever both types are known."""
    kind, item = arguments
    if isinstance(kind, ElementType) and isinstance(item, Element):
        digits = BITS.get(kind.name), BITS.get(item.type.name)
        if None not in digits and digits[0] != digits[1]:
            demand(scope, "contract", span, FALSE, "reinterpret")
    return _of_type("reinterpret")(arguments, span, scope)


def _of_element(name: str) -> Primitive:
    """A function whose value has the type of its arguments, of which numerals are adapted."""

    def found(arguments: Arguments, _span: Span, scope: Scope) -> Value:
        kind = next((argument.type for argument in arguments if isinstance(argument, Element)), ElementType(""))
        return scope.run.algebra.apply(name, kind, [element(item, kind, scope) for item in arguments], scope)

    return found


def _of_strings(name: str, kind: str) -> Primitive:
    """A function of strings; kind: the type of its value."""

    def found(arguments: Arguments, _span: Span, scope: Scope) -> Value:
        return scope.run.algebra.apply(name, ElementType(kind), arguments, scope)

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


PRIMITIVES: Mapping[str, Primitive] = {
    "len": _len, "repeat": _repeat, "front": _front, "back": _back, "put": _put, "drop": _drop,
    "insert": _insert, "merge": _merge, "reverse": _reverse, "sorted": _sorted, "product": _product,
    **SHAPES,
    "minimum": _minimum, "maximum": _maximum, "clip": _clip, "absolute": _absolute,
    "floor": lambda arguments, _span, _scope: floor(number(arguments[0])),
    **TYPES,
    **{name: _of_type(name) for name in ("cast", "saturate", "nan", "infinity", "arbitrary")},
    "reinterpret": _reinterpreted,
    "truth": _lifted("Bool"), "integer": _lifted("Int"), "rational": _lifted("Rational"),
    "is_nan": _tested("is_nan"), "is_infinite": _tested("is_infinite"), "oneof": _oneof,
    **{name: _of_element(name) for name in (
        "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
        "atanh", "erf", "power", "remainder", "bit_and", "round_even", "round_down", "round_up",
    )},
    **{name: _of_strings(name, kind) for name, kind in OF_STRINGS.items()},
}  # fmt: skip
"""The primitives by name."""
