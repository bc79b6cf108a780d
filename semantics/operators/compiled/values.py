"""Operations on the values of expressions of whatever sort: componentwise on lists, exact or element arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from sonnx.spec.elaborate.core import Binding
from sonnx.spec.elaborate.formulas import Cores
from sonnx.spec.language.syntax import NOWHERE, Span

from ...errors import InternalError, Unsupported
from ...model.elements import DType, dtype_of, element_of, integer_range, is_float, is_integer
from ...model.graph import ValueType
from ...model.values import Map, Optional, Sequence
from ..reading import Names
from .code import Builder, Frame, read
from .terms import (
    BOOL,
    ELEMENT,
    INT,
    NOTHING,
    RATIONAL,
    TERMS,
    Array,
    IndexFacts,
    Layout,
    NeedStatic,
    Node,
    Operand,
    Tensor,
    Value,
    add,
    assume,
    axes_of,
    bounds,
    compare,
    conjunction,
    disjunction,
    divide,
    fits_table,
    floor_divide,
    greater,
    is_element,
    is_free,
    is_static,
    kind_of,
    modulo,
    multiply,
    negation,
    numerators,
    scaled,
    single,
    smaller,
    stuck,
    table,
    tabulated,
    within,
)
from .terms import negate as negated


@dataclass(frozen=True, slots=True)
class Scope:
    """The context of an expression: the cores of the text, the plan being built, what variables mean, what is known
    of indices.
    """

    cores: Cores
    builder: Builder
    scope: Mapping[Binding | None, Value]
    known: IndexFacts = NOTHING

    def bind(self, names: Names) -> Scope:
        """The scope with more variables."""
        return Scope(self.cores, self.builder, {**self.scope, **names}, self.known)

    def inner(self) -> Scope:
        """The scope of an argument."""
        return self

    def inside(self, _name: str, scope: Mapping[Binding | None, Value]) -> Scope:
        """The scope of the body of a function."""
        return Scope(self.cores, self.builder, scope, self.known)

    def assuming(self, condition: Operand, *, holds: bool = True) -> Scope:
        """The scope where a condition holds, or does not."""
        known = assume(self.known, condition, holds=holds)
        return self if known is self.known else Scope(self.cores, self.builder, self.scope, known)

    def first_type(self) -> DType | None:
        """The first element type."""
        return next((value for value in self.scope.values() if isinstance(value, np.dtype)), None)

    def element_type(self) -> DType:
        """The type of a number that stands for an element: what an empty fold gives is an element of the first type."""
        first = self.first_type()
        if first is None:
            raise InternalError("an element without a type")
        return first


def literal(value: Operand, dtype: DType, scope: Scope) -> Node:
    """A numeral as an element."""
    if isinstance(value, TERMS):
        if isinstance(value, Node) and value.kind == ELEMENT:
            return value
        if isinstance(value, Node) and value.op == "ite":
            test, then, other = value.args
            chosen = ite(test, literal(then, dtype, scope), literal(other, dtype, scope), scope)
            if not is_element(chosen):
                raise InternalError(f"{chosen!r} of two elements")
            return chosen
        if isinstance(value, Node) and value.op == "entry":
            return cast(dtype, value, scope)
        return Node("cast", (value,), value.axes, ELEMENT, dtype)
    return Node("const", (), (), ELEMENT, dtype, data=scope.builder.algebra.constant(dtype, value))


def element(name: str, arguments: tuple[Operand, ...], scope: Scope, kind: str = ELEMENT) -> Node:
    """An operation on elements of one type; numerals among them become elements of it."""
    typed = (a.type for a in arguments if isinstance(a, Node) and a.kind == ELEMENT)
    dtype = next(typed, None) or scope.element_type()
    args = tuple(literal(a, dtype, scope) for a in arguments)
    for argument in args:
        if argument.type != dtype:
            raise InternalError(f"{name} of elements of {dtype} and {argument.type}")
    if name == "mul":
        for one, other in (args, reversed(args)):
            if one.op == "const" and bool(np.all(np.asarray(one.data) == scope.builder.algebra.constant(dtype, 1))):
                return other
    free = any(a.free for a in args)
    return Node("element", args, axes_of(*args), kind, dtype if kind == ELEMENT else None, free=free, data=name)


ARITHMETIC: Final[Mapping[str, Callable[[Operand, Operand, IndexFacts], Operand]]] = {
    "add": add,
    "sub": lambda a, b, known: add(a, b, known, -1),
    "mul": multiply,
    "quotient": divide,
    "div": floor_divide,
    "mod": modulo,
    "min": smaller,
    "max": greater,
}


def binary(name: str, a: Value, b: Value, scope: Scope, span: Span = NOWHERE) -> Value:
    """An arithmetic operation."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return tuple(binary(name, x, y, scope, span) for x, y in pairs(a, b))
    if is_element(a) or is_element(b):
        return element(name, (operand(a), operand(b)), scope)
    try:
        return ARITHMETIC[name](operand(a), operand(b), scope.known)
    except ZeroDivisionError:
        rule = scope.builder.rule
        raise stuck(rule, "divisors are not zero", span, "Division by zero.") from None


def pairs(a: Value, b: Value) -> list[tuple[Value, Value]]:
    """The components of two lists, a number beside a list repeated."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) != len(b):
            raise InternalError(f"lists of {len(a)} and {len(b)} entries componentwise")
        return list(zip(a, b, strict=True))
    if isinstance(a, tuple):
        return [(x, b) for x in a]
    return [(a, y) for y in b] if isinstance(b, tuple) else [(a, b)]


def operand(value: Value) -> Operand:
    """The value as a number, element or truth value."""
    if isinstance(value, (*TERMS, int, Fraction, float)):
        return value
    raise InternalError(f"{type(value).__name__} where a number is needed")


def negate(a: Value, scope: Scope) -> Value:
    """-a."""
    if isinstance(a, tuple):
        return tuple(negate(x, scope) for x in a)
    if is_element(a):
        return element("neg", (operand(a),), scope)
    return negated(operand(a), scope.known)


def relation(a: Value, name: str, b: Value, scope: Scope) -> Operand:
    """a stands in the relation to b; of lists: in every component."""
    if name == "not in":
        return negation(relation(a, "in", b, scope))
    if name == "!=" and (isinstance(a, tuple) or isinstance(b, tuple)):
        return negation(relation(a, "=", b, scope))
    if name == "in":
        return _member(a, b, scope)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) != len(b):
        return False
    if isinstance(a, tuple) or isinstance(b, tuple):
        return conjunction(relation(x, name, y, scope) for x, y in pairs(a, b))
    if isinstance(a, str) and is_element(b):
        return _compared(text(a), name, b, scope)
    if isinstance(b, str) and is_element(a):
        return _compared(a, name, text(b), scope)
    if isinstance(a, (str, np.dtype, ValueType)) or isinstance(b, (str, np.dtype, ValueType)):
        return (a == b) is (name == "=")
    if is_element(a) or is_element(b):
        return _compared(operand(a), name, operand(b), scope)
    return compare(operand(a), name, operand(b), scope.known)


def _compared(a: Operand, name: str, b: Operand, scope: Scope) -> Operand:
    dtype = next(x.type for x in (a, b) if isinstance(x, Node) and x.kind == ELEMENT)
    if dtype is None:
        raise InternalError("an element without a type")
    p, q = literal(a, dtype, scope), literal(b, dtype, scope)
    return Node(name, (p, q), axes_of(p, q), BOOL, free=p.free or q.free)


def _member(a: Value, b: Value, scope: Scope) -> Operand:
    if isinstance(b, tuple) and not isinstance(a, tuple):
        return disjunction(relation(a, "=", x, scope) for x in b)
    if isinstance(a, tuple):
        return conjunction(_member_below(x, y, scope) for x, y in pairs(a, b))
    return _member_below(a, b, scope)


def _member_below(x: Value, size: Value, scope: Scope) -> Operand:
    if isinstance(size, int):
        return (
            within(operand(x), 0, size - 1, scope.known)
            if kind_of(x) == INT
            else conjunction((relation(0, "<=", x, scope), relation(x, "<", size, scope)))
        )
    return conjunction((relation(0, "<=", x, scope), relation(x, "<", size, scope)))


def ite(condition: Operand, then: Value, other: Value, scope: Scope) -> Value:
    """One of two values by a condition that is not static."""
    if not isinstance(condition, TERMS):
        return then if condition else other
    if isinstance(then, tuple) or isinstance(other, tuple):
        return tuple(ite(condition, x, y, scope) for x, y in pairs(then, other))
    if type(then) is type(other) and then == other and not isinstance(then, TERMS):
        return then
    a, b = operand(then), operand(other)
    if is_element(a) or is_element(b):
        dtype = next(x.type for x in (a, b) if isinstance(x, Node) and x.kind == ELEMENT)
        if dtype is None:
            raise InternalError("an element without a type")
        p, q = literal(a, dtype, scope), literal(b, dtype, scope)
        if p.type != q.type:
            raise InternalError(f"branches of {p.type} and {q.type}")
        free = p.free or q.free or (isinstance(condition, Node) and condition.free)
        return Node("ite", (condition, p, q), axes_of(condition, p, q), ELEMENT, dtype, free=free)
    kind = RATIONAL if RATIONAL in (kind_of(a), kind_of(b)) else kind_of(a)
    axes = axes_of(condition, a, b)
    if is_static(condition, a, b) and fits_table(axes) and kind != BOOL:
        mask = tabulated(condition, axes)
        (x, d), (y, e) = numerators(a, axes), numerators(b, axes)
        common = math.lcm(d, e)
        values = np.where(mask, scaled(x, common // d), scaled(y, common // e))
        shape = tuple(axis.size for axis in axes)
        return table(np.broadcast_to(values, shape), axes, kind, common)
    low, high = None, None
    if kind == INT:
        (la, ha), (lb, hb) = (
            bounds(a, assume(scope.known, condition)),
            bounds(b, assume(scope.known, condition, holds=False)),
        )
        low = min(la, lb) if la is not None and lb is not None else None
        high = max(ha, hb) if ha is not None and hb is not None else None
    return Node("ite", (condition, a, b), axes, kind, low=low, high=high, free=is_free(condition, a, b))


def text(value: str) -> Node:
    """A text as an element of type string; bytes that are no UTF-8 are kept."""
    content = value.encode("utf-8", "surrogateescape")
    return Node("const", (), (), ELEMENT, np.dtype(object), data=np.array(content, dtype=object))


def entry_of(items: tuple[Value, ...], position: Operand, dtype: DType, scope: Scope, span: Span) -> Node:
    """The entry of a list of numbers or texts at a position that is not static, as an element of a type."""
    builder = scope.builder
    data = np.empty(len(items), builder.algebra.storage(dtype))
    for k, item in enumerate(items):
        data[k] = cast(dtype, item, scope).data[()]
    slot = builder.slot()

    def put(frame: Frame) -> None:
        frame[slot] = data

    builder.emit(put)
    layout = Layout(slot, len(items), 0, (1,))
    listed_items = Tensor(ELEMENT, dtype, (len(items),), lambda: layout, made=layout)
    return read(listed_items, [position], scope.known, "the list", span, builder.rule)


def cast(dtype: DType, value: Value, scope: Scope) -> Node:
    """A number, truth value, text or element as an element of a type."""
    if isinstance(value, str):
        return text(value)
    item = operand(value)
    if isinstance(item, Node) and item.op == "entry":
        items, span = item.data
        return entry_of(items, item.args[0], dtype, scope, span)
    if isinstance(item, Node) and item.kind == ELEMENT and item.type == dtype:
        return item
    if not isinstance(item, TERMS):
        return Node("const", (), (), ELEMENT, dtype, data=scope.builder.algebra.constant(dtype, item))
    free = isinstance(item, Node) and item.free
    source = item.type if isinstance(item, Node) else None
    if source is not None and is_integer(dtype) and is_float(source):
        free = True
    return Node("cast", (item,), item.axes, ELEMENT, dtype, free=free)


def integer(value: Value) -> Operand:
    """The exact integer that an element of an integer type is."""
    item = operand(value)
    if not isinstance(item, Node) or item.kind != ELEMENT or item.type is None:
        return item
    if item.op == "const" and not item.free:
        return int(single(item.data))
    low, high = integer_range(item.type) if is_integer(item.type) else (0, 1)
    return Node("integer", (item,), item.axes, INT, low=low, high=high, free=item.free)


def tensor_of(value: Value) -> Tensor:
    """The value as a tensor."""
    if isinstance(value, Tensor):
        return value
    raise InternalError(f"{type(value).__name__} where a tensor is needed")


def listed(value: Value) -> tuple[Value, ...]:
    """The value as a list."""
    if isinstance(value, tuple):
        return value
    raise InternalError(f"{type(value).__name__} where a list is needed")


def integers(value: Value) -> tuple[int, ...]:
    """The value as a list of static integers."""
    if isinstance(value, tuple):
        numbers = tuple(x for x in value if isinstance(x, int))
        if len(numbers) == len(value):
            return numbers
    raise InternalError(f"{value!r} is no static list of integers")


def static_int(value: Value) -> int:
    """The value as a static integer."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, TERMS) and value.axes:
        raise NeedStatic(value.axes)
    raise InternalError(f"{value!r} is no static integer")


# Sequences, optionals and maps in a plan: lists that have a type. Their tensors lie in the frame as any others do.


Entry = Array | Sequence | Optional | Map


class Held(tuple[Value, ...]):
    """The entries of a sequence or of an optional; the keys and the values of a map. kind: its type, without shapes."""

    kind: ValueType


@dataclass(frozen=True, slots=True)
class Whole:
    """The place of what is `Held` when a plan has run: its type, and where its entries are."""

    kind: ValueType
    items: tuple[Place, ...]


Place = tuple[Layout, tuple[int, ...]] | Whole | None
"""The place of an output when a plan has run; None for one that is not asked for."""


# ---- types ------------------------------------------------------------------------------------


def plain(kind: ValueType) -> DType | ValueType:
    """A type without shapes; that of a tensor is its element type."""
    return dtype_of(kind.element) if kind.kind == "tensor" else _plain(kind)


def _plain(kind: ValueType) -> ValueType:
    return ValueType(kind.kind, kind.element, None, None if kind.inner is None else _plain(kind.inner))


def type_of(value: Value) -> DType | ValueType:
    """The type of a tensor, a sequence, an optional or a map."""
    if isinstance(value, Tensor) and value.type is not None:
        return value.type
    if isinstance(value, Held):
        return value.kind
    raise InternalError(f"{type(value).__name__} has no type")


def _stated(kind: Value) -> ValueType:
    if isinstance(kind, np.dtype):
        return ValueType("tensor", element_of(kind))
    if isinstance(kind, ValueType):
        return kind
    raise InternalError(f"{kind!r} is no type")


def type_holding(word: str) -> Callable[[Value], ValueType]:
    """The function from a type to that of the sequences or optionals of it."""
    return lambda kind: ValueType(word, inner=_stated(kind))


def map_type(key: Value, kind: Value) -> ValueType:
    """The type of the maps from keys of one type to values of another one."""
    return ValueType("map", _stated(key).element, inner=_stated(kind))


# ---- values -----------------------------------------------------------------------------------


def held(items: tuple[Value, ...], kind: ValueType) -> Held:
    """The entries with their type."""
    sequence = Held(items)
    sequence.kind = kind
    return sequence


def content(value: Value) -> tuple[Value, ...]:
    """The content of a value: the entry of an optional, else the value itself."""
    return tuple(value) if isinstance(value, Held) and value.kind.kind == "optional" else (value,)


def entries(value: object) -> tuple[Entry, ...]:
    """The entries of a sequence or an optional; of a map its keys and its values. Raises Unsupported for one whose
    values are no single elements.
    """
    match value:
        case Map():
            return _columns(value)
        case Sequence(items=items):
            return tuple(_entry(item) for item in items)
        case Optional(item=item):
            return () if item is None else (_entry(item),)
        case _:
            raise InternalError(f"{type(value).__name__} has no entries")


def _entry(value: object) -> Entry:
    if isinstance(value, (np.ndarray, Sequence, Optional, Map)):
        return value
    raise InternalError(f"an entry that is a {type(value).__name__}")


def _columns(value: Map) -> tuple[Array, Array]:
    """The keys of a map, and the values at them."""
    dtype = kind_of_element(value.inner)
    count = len(value.items)
    keys, content = np.empty(count, dtype_of(value.key)), np.empty(count, dtype)
    for k, (key, item) in enumerate(value.items):
        if not isinstance(item, np.ndarray) or item.dtype != dtype or item.size != 1:
            raise Unsupported("a map whose values are no single elements of its type")
        keys[k], content[k] = key, item.reshape(())[()]
    keys.flags.writeable = content.flags.writeable = False
    return keys, content


def kind_of_element(kind: ValueType) -> DType:
    """The element type of a tensor's type. Raises Unsupported for another one."""
    if kind.kind != "tensor" or not kind.element:
        raise Unsupported("a map whose values are no tensors")
    return dtype_of(kind.element)


def kind_of_value(value: object) -> ValueType:
    """The type of a value without shapes: of a sequence or an optional that of its first entry, else the stated one."""
    match value:
        case np.ndarray():
            return ValueType("tensor", element_of(value.dtype))
        case Map(key=key, inner=inner):
            return ValueType("map", key, inner=_plain(inner))
        case Sequence(inner=inner) | Optional(inner=inner):
            word = "optional" if isinstance(value, Optional) else "sequence"
            listed = entries(value)
            return ValueType(word, inner=kind_of_value(listed[0]) if listed else _plain(inner))
        case _:
            raise InternalError(f"{type(value).__name__} is no value")


def enter(value: object, signature: list[Hashable], tensors: list[Array]) -> None:
    """Notes what a plan depends on, and the tensors in their order."""
    if isinstance(value, np.ndarray):
        signature += (value.shape, value.dtype)
        tensors.append(value)
        return
    listed = entries(value)
    signature += (kind_of_value(value), len(listed))
    for item in listed:
        enter(item, signature, tensors)


def bound(value: object, tensors: Iterator[Tensor]) -> Tensor | Held:
    """The value in a plan, its tensors taken in their order."""
    if isinstance(value, np.ndarray):
        return next(tensors)
    return held(tuple(bound(item, tensors) for item in entries(value)), kind_of_value(value))


def place_of(value: Value) -> Place:
    """The place where a value of the plan will be."""
    match value:
        case None:
            return None
        case Tensor():
            return value.layout, value.shape
        case Held():
            return Whole(value.kind, tuple(place_of(item) for item in value))
        case _:
            raise InternalError(f"an output that is a {type(value).__name__}")


def collected(place: Whole, array: Callable[[Layout, tuple[int, ...]], Array]) -> Entry:
    """The sequence, optional or map at a place."""
    inner: Final = place.kind.inner or ValueType("unset")
    if place.kind.kind == "map":
        from .elements.bounds.storage import known  # few models have maps

        keys, content = (array(*_some(p)) for p in place.items if not isinstance(p, Whole))
        last = {key: content[k : k + 1].reshape(()) for k, key in enumerate(known(keys).tolist())}
        return Map(place.kind.element, inner, tuple(sorted(last.items())))
    items = tuple(collected(p, array) if isinstance(p, Whole) else array(*_some(p)) for p in place.items)
    if place.kind.kind == "optional":
        return Optional(inner, items[0] if items else None)
    return Sequence(inner, items)


def _some(place: tuple[Layout, tuple[int, ...]] | None) -> tuple[Layout, tuple[int, ...]]:
    if place is None:
        raise InternalError("an entry without a place")
    return place
