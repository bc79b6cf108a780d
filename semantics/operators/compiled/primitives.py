"""Equations of Einsum (ONNX Operators.md, Einsum): the labels of each operand as numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Final

import numpy as np
from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from ...model.elements import DTYPES, DType, bits, finite_range, has_infinity, has_nan, is_float, is_integer
from ...model.schemas import element_types
from ..reading import OF_STRINGS
from .code import Builder, Frame, strided
from .terms import (
    BOOL,
    ELEMENT,
    INT,
    RATIONAL,
    TERMS,
    Array,
    Layout,
    Node,
    Operand,
    Tensor,
    Value,
    axes_of,
    floor_divide,
    is_element,
    kind_of,
    modulo,
    row_strides,
    single,
    stuck,
    to_floor,
)
from .values import (
    Scope,
    binary,
    cast,
    content,
    element,
    integer,
    integers,
    ite,
    literal,
    map_type,
    negate,
    operand,
    relation,
    static_int,
    tensor_of,
    type_holding,
    type_of,
)


def einsum_parse(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], ...], int, int]:
    """The label numbers of the axes of each operand, how many labels the output has, how many there are.

    Output labels are numbered in the order of the output, the others follow in alphabetical order. Raises ValueError
    when the equation does not fit.
    """
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{equation!r} has {len(terms)} terms for {len(ranks)} operands.")
    spans = {rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks, strict=True) if "..." in t}
    if len(spans) > 1:
        raise ValueError(f"Dots stand for {' and for '.join(map(str, sorted(spans)))} axes in {equation!r}.")
    dotted = max(spans, default=0)
    axes = [_axes(term, rank, equation) for term, rank in zip(terms, ranks, strict=True)]
    dots = [f".{k}" for k in range(dotted)]
    if arrow:
        if right.count("...") > 1:
            raise ValueError(f"{equation!r} has dots twice in the output.")
        head, ellipsis, tail = right.partition("...")
        output = [*head, *(dots if ellipsis else []), *tail]
    else:
        counts = Counter(label for term in axes for label in set(term))
        occurrences = Counter(label for term in axes for label in term)
        output = [*dots, *sorted(x for x in counts if occurrences[x] == 1 and not x.startswith("."))]
    every = {label for term in axes for label in term}
    if len(set(output)) != len(output) or not set(output) <= every | set(dots):
        raise ValueError(f"{equation!r} has an output that repeats a label or has one of its own.")
    order = [*output, *sorted(every - set(output))]
    number = {label: position for position, label in enumerate(order)}
    return tuple(tuple(number[label] for label in term) for term in axes), len(output), len(order)


def _axes(term: str, rank: int, equation: str) -> list[str]:
    head, ellipsis, tail = term.partition("...")
    if "." in head + tail or not all(c.isalpha() for c in head + tail):
        raise ValueError(f"{equation!r} has a term {term!r}.")
    dots = range(rank - len(head) - len(tail)) if ellipsis else ()
    labels = [*head, *(f".{k}" for k in dots), *tail]
    if len(labels) != rank:
        raise ValueError(f"The term {term!r} of {equation!r} is for {len(labels)} axes, the operand has {rank}.")
    return labels


# Primitives that look at data: `values`, `rationals` and `order`. What shapes depend on is remembered.


def contiguous(tensor: Tensor, builder: Builder) -> Layout:
    """The layout of the tensor's elements one after the other, copied when they do not lie so."""
    layout = tensor.layout
    slot = builder.slot()
    shape = tensor.shape

    def copy(frame: Frame) -> None:
        frame[slot] = np.ascontiguousarray(strided(frame[layout.slot], shape, layout.offset, layout.strides))

    builder.emit(copy)
    count = 1
    for size in shape:
        count *= size
    return Layout(slot, count, 0, row_strides(shape))


def _values(args: list[Value], scope: Scope, _span: Span) -> Value:
    tensor = tensor_of(args[0])
    elements = scope.builder.data(tensor).reshape(-1)
    if tensor.kind == ELEMENT and tensor.type is not None and (is_integer(tensor.type) or tensor.type == np.bool_):
        return tuple(int(x) for x in elements)
    if tensor.kind == BOOL:
        return tuple(bool(x) for x in elements)
    if tensor.kind == INT:
        return tuple(int(x) for x in elements)
    raise InternalError(f"values of a tensor of {tensor.type}")


def _rationals(args: list[Value], scope: Scope, span: Span) -> Value:
    elements = scope.builder.data(tensor_of(args[0])).reshape(-1)
    if elements.dtype == object:
        return tuple(_exact(x) for x in elements)
    wide = elements.astype(np.float64) if elements.dtype.kind not in "iub" else elements
    if not np.isfinite(wide).all():
        raise stuck(
            scope.builder.rule, "all are numbers", span, "A NaN or an infinity where an exact number is needed."
        )
    return tuple(_exact(x) for x in wide.tolist())


def _exact(x: float | Fraction) -> int | Fraction:
    value = Fraction(x)
    return int(value) if value.denominator == 1 else value


def _order(args: list[Value], scope: Scope, _span: Span) -> Value:
    tensor, axis = tensor_of(args[0]), static_int(args[1])
    largest = args[2]
    if isinstance(largest, TERMS):
        raise InternalError("order by a condition that is not static")
    layout, shape, slot = tensor.layout, tensor.shape, scope.builder.slot()

    def sort(frame: Frame) -> None:
        x = scope.builder.algebra.known(strided(frame[layout.slot], shape, layout.offset, layout.strides))
        frame[slot] = np.ascontiguousarray(stable_order(x, axis, largest=bool(largest)))

    scope.builder.emit(sort)
    count = 1
    for size in shape:
        count *= size
    made = Layout(slot, count, 0, row_strides(shape))
    return Tensor(INT, None, shape, lambda: made, 0, max(shape[axis] - 1, 0))


def stable_order(x: Array, axis: int, *, largest: bool) -> Array:
    """The stable permutation that sorts along an axis, a NaN as the greatest."""
    if x.dtype.num > 23:
        x = x.astype(np.float32) if np.dtype(x.dtype).name.startswith(("bfloat", "float")) else x.astype(np.int64)
    if not largest:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.flip(x, axis)
    order = np.argsort(turned, axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - order, axis)


PRIMITIVES_OF_DATA: Final[Mapping[str, Callable[[list[Value], Scope, Span], Value]]] = {
    "values": _values,
    "rationals": _rationals,
    "order": _order,
}


# The primitive functions of the language, one table. Contracts: spec/primitives.sonnx.


Primitive = Callable[[list[Value], Scope, Span], Value]


class Unflattened(tuple[Value, ...]):
    """An index by its position `form` among the indices of shape `dims`; a read of a tensor of that shape uses it."""

    form: Operand
    dims: tuple[int, ...]


def flat_tensor(tensor: Tensor, first: int, count: int, scope: Scope) -> Tensor:
    """The tensor with `count` dimensions from `first` on as one."""
    merged = tensor.shape[first : first + count]
    shape = (*tensor.shape[:first], math.prod(merged), *tensor.shape[first + count :])

    def make() -> Layout:
        layout = tensor.layout
        part = layout.strides[first : first + count]
        if any(part[k] != part[k + 1] * merged[k + 1] for k in range(count - 1)):
            layout = contiguous(tensor, scope.builder)
            part = layout.strides[first : first + count]
        strides = (*layout.strides[:first], part[-1], *layout.strides[first + count :])
        return Layout(layout.slot, layout.count, layout.offset, strides)

    inner = tensor.free
    free = None if inner is None else lambda: flat_tensor(inner(), first, count, scope)
    return Tensor(tensor.kind, tensor.type, shape, make, tensor.low, tensor.high, free)


def _list(value: Value) -> tuple[Value, ...]:
    if isinstance(value, tuple):
        return value
    raise InternalError(f"{type(value).__name__} where a list is needed")


def _type(value: Value) -> DType:
    if isinstance(value, np.dtype):
        return value
    raise InternalError(f"{value!r} is no element type")


# ---- vectors ----------------------------------------------------------------------------------


def _front(args: list[Value], _scope: Scope, _span: Span) -> Value:
    return _list(args[0])[: max(0, static_int(args[1]))]


def _back(args: list[Value], _scope: Scope, _span: Span) -> Value:
    return _list(args[0])[max(0, static_int(args[1])) :]


def _put(args: list[Value], scope: Scope, span: Span) -> Value:
    v, k = _list(args[0]), args[1]
    if isinstance(k, int):
        if not 0 <= k < len(v):
            raise stuck(scope.builder.rule, "0 <= k < len(v)", span, f"Position {k} of a list of {len(v)} entries.")
        return (*v[:k], args[2], *v[k + 1 :])
    return tuple(ite(relation(k, "=", p, scope), args[2], x, scope) for p, x in enumerate(v))


def _drop(args: list[Value], _scope: Scope, _span: Span) -> Value:
    v, k = _list(args[0]), static_int(args[1])
    return (*v[:k], *v[k + 1 :])


def _insert(args: list[Value], _scope: Scope, _span: Span) -> Value:
    v, k = _list(args[0]), static_int(args[1])
    return (*v[:k], args[2], *v[k:])


def _merge(args: list[Value], _scope: Scope, _span: Span) -> Value:
    places, given = integers(args[0]), list(_list(args[1]))
    rest = iter(_list(args[2]))
    size = len(given) + len(_list(args[2]))
    at = dict(zip(places, given, strict=True))
    return tuple(at[p] if p in at else next(rest) for p in range(size))


def _product(args: list[Value], scope: Scope, span: Span) -> Value:
    return reduce(lambda total, item: binary("mul", total, item, scope, span), _list(args[0]) or (1,))


def _broadcast(args: list[Value], scope: Scope, span: Span) -> Value:
    a, b = integers(args[0]), integers(args[1])
    size = max(len(a), len(b))
    p, q = (1,) * (size - len(a)) + a, (1,) * (size - len(b)) + b
    for x, y in zip(p, q, strict=True):
        if x != y and 1 not in (x, y):
            message = f"The shapes {list(a)} and {list(b)} do not broadcast."
            raise stuck(scope.builder.rule, "the shapes broadcast", span, message)
    return tuple(y if x == 1 else x for x, y in zip(p, q, strict=True))


def _flatten(args: list[Value], scope: Scope, _span: Span) -> Value:
    i, d = _list(args[0]), integers(args[1])
    if isinstance(args[0], Unflattened) and args[0].dims == d:
        return args[0].form
    total: Value = 0
    for x, stride in zip(i, row_strides(d), strict=True):
        total = binary("add", total, binary("mul", stride, x, scope), scope)
    return total


def _unflatten(args: list[Value], scope: Scope, _span: Span) -> Value:
    form, d = operand(args[0]), integers(args[1])
    indices: list[Value] = []
    for position, (size, stride) in enumerate(zip(d, row_strides(d), strict=True)):
        if size <= 1:
            indices.append(0)
            continue
        high = form if stride == 1 else floor_divide(form, stride, scope.known)
        indices.append(high if position == 0 else modulo(high, size, scope.known))
    result = Unflattened(indices)
    result.form, result.dims = form, d
    return result


# ---- numbers ----------------------------------------------------------------------------------


def _binary(name: str) -> Primitive:
    return lambda args, scope, span: binary(name, args[0], args[1], scope, span)


def _clip(args: list[Value], scope: Scope, span: Span) -> Value:
    return binary("min", binary("max", args[0], args[1], scope, span), args[2], scope, span)


def _absolute(args: list[Value], scope: Scope, span: Span) -> Value:
    (x,) = args
    if isinstance(x, tuple):
        return tuple(_absolute([item], scope, span) for item in x)
    if is_element(x):
        return element("absolute", (operand(x),), scope)
    return binary("max", x, negate(x, scope), scope, span)


# ---- element types and elements ---------------------------------------------------------------


def _range_of(position: int) -> Primitive:
    def primitive(args: list[Value], _scope: Scope, _span: Span) -> Value:
        limit = finite_range(_type(args[0]))[position]
        return int(limit) if limit.denominator == 1 else limit

    return primitive


def _special(value: float, possible: Callable[[DType], bool]) -> Primitive:
    def primitive(args: list[Value], scope: Scope, span: Span) -> Value:
        dtype = _type(args[0])
        if not possible(dtype):
            raise stuck(scope.builder.rule, "the type has the value", span, f"{dtype} has no {value}.")
        return Node("const", (), (), ELEMENT, dtype, data=scope.builder.algebra.constant(dtype, value))

    return primitive


def _unary(name: str, kind: str = ELEMENT) -> Primitive:
    return lambda args, scope, _span: element(name, (operand(args[0]),), scope, kind)


def _pairwise(name: str) -> Primitive:
    return lambda args, scope, _span: element(name, (operand(args[0]), operand(args[1])), scope)


def _is_pattern(args: list[Value], _scope: Scope, _span: Span) -> Value:
    if not isinstance(args[0], str):
        raise InternalError("a pattern that is no text")
    from .elements.patterns import is_pattern

    return is_pattern(args[0])


def _of_strings(name: str, kind: str) -> Primitive:
    """An operation on elements the first of which is a string; kind: the type of the result."""

    def primitive(args: list[Value], _scope: Scope, _span: Span) -> Value:
        items = tuple(operand(it) for it in args)
        free = any(isinstance(it, Node) and it.free for it in items)
        return Node("element", items, axes_of(*items), ELEMENT, DTYPES[kind], free=free, data=name)

    return primitive


def _power(args: list[Value], scope: Scope, _span: Span) -> Value:
    a, b = operand(args[0]), operand(args[1])
    if isinstance(a, Node) and isinstance(b, Node) and a.type != b.type:
        return Node("power", (a, b), axes_of(a, b), ELEMENT, a.type, free=a.free or b.free)
    return element("power", (a, b), scope)


def _reinterpret(args: list[Value], scope: Scope, span: Span) -> Value:
    dtype, value = _type(args[0]), operand(args[1])
    if not isinstance(value, Node) or value.type is None or bits(value.type) != bits(dtype):
        raise stuck(scope.builder.rule, "the types have equally many digits", span, f"{dtype} has others.")
    return Node("reinterpret", (value,), value.axes, ELEMENT, dtype, free=value.free)


def _saturate(args: list[Value], scope: Scope, _span: Span) -> Value:
    dtype, value = _type(args[0]), operand(args[1])
    if not isinstance(value, TERMS):
        low, high = finite_range(dtype)
        if isinstance(value, float) and not math.isfinite(value):
            return cast(dtype, value if math.isnan(value) else high if value > 0 else low, scope)
        limited = min(max(round(Fraction(value)) if is_integer(dtype) else Fraction(value), low), high)
        return cast(dtype, limited, scope)
    free = isinstance(value, Node) and (value.free or (value.kind == ELEMENT and not has_nan(dtype)))
    return Node("saturate", (value,), value.axes, ELEMENT, dtype, free=free)


def _arbitrary(args: list[Value], scope: Scope, _span: Span) -> Value:
    dtype = _type(args[0])
    return Node("const", (), (), ELEMENT, dtype, free=True, data=scope.builder.algebra.constant(dtype, 0))


def _oneof(args: list[Value], scope: Scope, _span: Span) -> Value:
    a, b = operand(args[0]), operand(args[1])
    dtype = next((x.type for x in (a, b) if isinstance(x, Node) and x.kind == ELEMENT), None)
    if dtype is None:
        return a
    p, q = literal(a, dtype, scope), literal(b, dtype, scope)
    return Node("oneof", (p, q), axes_of(p, q), ELEMENT, dtype, free=True)


def _rational(args: list[Value], _scope: Scope, _span: Span) -> Value:
    item = operand(args[0])
    if not isinstance(item, Node) or item.kind != ELEMENT:
        return item
    if item.op == "const" and not item.free:
        return _plain(item)
    return Node("rational", (item,), item.axes, RATIONAL, free=item.free)


def _plain(item: Node) -> Operand:
    """The exact value of a constant element."""
    value = single(item.data)
    exact_value = Fraction(value if isinstance(value, (int, float, Fraction)) else float(value))
    return int(exact_value) if exact_value.denominator == 1 else exact_value


def _truth(args: list[Value], _scope: Scope, _span: Span) -> Value:
    item = operand(args[0])
    if kind_of(item) == BOOL or not isinstance(item, Node):
        return item
    return Node("truth", (item,), item.axes, BOOL, free=item.free)


def _data_type(args: list[Value], scope: Scope, span: Span) -> Value:
    code = static_int(args[0])
    dtype = DTYPES.get(element_types().get(code, ""))
    if dtype is None:
        raise stuck(
            scope.builder.rule, "the code is that of an element type", span, f"No element type has the code {code}."
        )
    return dtype


def _text_ranks(args: list[Value]) -> tuple[str, tuple[int, ...]]:
    if not isinstance(args[0], str):
        raise InternalError("an equation that is no text")
    return args[0], integers(args[1])


def _einsum(choose: Callable[[tuple[tuple[tuple[int, ...], ...], int, int], list[Value]], Value]) -> Primitive:
    def primitive(args: list[Value], scope: Scope, span: Span) -> Value:
        equation, ranks = _text_ranks(args)
        try:
            return choose(einsum_parse(equation, ranks), args)
        except ValueError as error:
            raise stuck(scope.builder.rule, "the equation fits the operands", span, str(error)) from None

    return primitive


_FUNCTIONS: Final = (
    "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "erf", "round_even", "round_down", "round_up",
)  # fmt: skip

PRIMITIVES: Final[Mapping[str, Primitive]] = {
    "len": lambda args, _scope, _span: len(_list(args[0])),
    "repeat": lambda args, _scope, _span: (args[0],) * max(0, static_int(args[1])),
    "front": _front,
    "back": _back,
    "put": _put,
    "drop": _drop,
    "insert": _insert,
    "merge": _merge,
    "reverse": lambda args, _scope, _span: _list(args[0])[::-1],
    "product": _product,
    "sorted": lambda args, _scope, _span: tuple(sorted(integers(args[0]))),
    "shape": lambda args, _scope, _span: tensor_of(args[0]).shape,
    "rank": lambda args, _scope, _span: len(tensor_of(args[0]).shape),
    "broadcast": _broadcast,
    "flatten": _flatten,
    "unflatten": _unflatten,
    "minimum": _binary("min"),
    "maximum": _binary("max"),
    "clip": _clip,
    "absolute": _absolute,
    "floor": lambda args, _scope, _span: to_floor(operand(args[0])),
    "data_type": _data_type,
    "content": lambda args, _scope, _span: content(args[0]),
    "type_of": lambda args, _scope, _span: type_of(args[0]),
    "sequence_of": lambda args, _scope, _span: type_holding("sequence")(args[0]),
    "optional_of": lambda args, _scope, _span: type_holding("optional")(args[0]),
    "map_of": lambda args, _scope, _span: map_type(*args),
    "is_float": lambda args, _scope, _span: is_float(_type(args[0])),
    "is_integer": lambda args, _scope, _span: is_integer(_type(args[0])),
    "is_signed": lambda args, _scope, _span: finite_range(_type(args[0]))[0] < 0,
    "bits": lambda args, _scope, _span: bits(_type(args[0])),
    "lowest": _range_of(0),
    "highest": _range_of(1),
    "cast": lambda args, scope, _span: cast(_type(args[0]), args[1], scope),
    "saturate": _saturate,
    "reinterpret": _reinterpret,
    "truth": _truth,
    "integer": lambda args, _scope, _span: integer(args[0]),
    "rational": _rational,
    "nan": _special(math.nan, has_nan),
    "infinity": _special(math.inf, has_infinity),
    "is_nan": _unary("is_nan", BOOL),
    "is_infinite": _unary("is_infinite", BOOL),
    "arbitrary": _arbitrary,
    "oneof": _oneof,
    "power": _power,
    **{name: _pairwise(name) for name in ("remainder", "bit_and")},
    **{name: _unary(name) for name in _FUNCTIONS},
    **{name: _of_strings(name, kind) for name, kind in OF_STRINGS.items()},
    "lower": lambda args, _scope, _span: "".join(c.lower() if "A" <= c <= "Z" else c for c in str(args[0])),
    "is_pattern": _is_pattern,
    "einsum_labels": _einsum(lambda parsed, _: parsed[2]),
    "einsum_outputs": _einsum(lambda parsed, _: parsed[1]),
    "einsum_term": _einsum(lambda parsed, args: parsed[0][static_int(args[2])]),
    **PRIMITIVES_OF_DATA,
}
"""For each primitive that does not draw its value what it gives for values."""
