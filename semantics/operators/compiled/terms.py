"""What an expression of an operator text denotes over an index space, before any data is looked at.

A value is static (a Python number, text, dtype, tuple, tensor, local function) or a term: a function of the axes it
depends on. An index is an affine form of axes as long as possible; what is static but not affine is a table; anything
else is an operation that is evaluated when the definition is applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any, Final, TypeGuard, Union

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.language.syntax import NOWHERE, Expr, Span

from ...errors import InternalError
from ...model.elements import DType
from ...model.graph import ValueType
from ..application import Stuck

Array = NDArray[Any]
"""An array of any dtype: the dtype is data, as the element type of a tensor is."""
INT: Final = "Int"
RATIONAL: Final = "Rational"
BOOL: Final = "Bool"
ELEMENT: Final = "Element"
SMALL_TABLE: Final = 1 << 16
"""What is static is tabulated while its table has at most this many entries."""


class StuckError(Exception):
    """No value: carries what `apply` returns. Never leaves the interpretation."""

    def __init__(self, stuck: Stuck) -> None:
        super().__init__(stuck.message)
        self.stuck = stuck


class NeedStatic(Exception):  # noqa: N818 - a signal
    """An axis on which something depends that has to be known beforehand, such as which tensor of a list is read."""

    def __init__(self, axes: tuple[Axis, ...]) -> None:
        super().__init__("static index needed")
        self.axes = axes


_ids = count()


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """An index variable with the values 0 .. size - 1, size > 1. Axes are ordered by creation."""

    size: int
    id: int = field(default_factory=lambda: next(_ids))


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """const + the sum of coefficient * axis; at least one axis, axes ascending, no coefficient zero."""

    const: int
    terms: tuple[tuple[Axis, int], ...]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes on which it depends."""
        return tuple(axis for axis, _ in self.terms)

    @property
    def kind(self) -> str:
        """An affine form is an integer."""
        return INT


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A static value for each index: `values` has one dimension for each axis. A Rational is values / den."""

    values: Array
    axes: tuple[Axis, ...]
    kind: str
    den: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An operation on terms. type: the element type, for elements. low, high: bounds of an integer where known.
    data: what the operation needs besides, of a type that its module knows.

    free: whether some of its values may be left open by the text.
    """

    op: str
    args: tuple[Operand, ...]
    axes: tuple[Axis, ...]
    kind: str
    type: DType | None = None
    low: int | None = None
    high: int | None = None
    free: bool = False
    data: Any = None


Term = Affine | Table | Node
Limits = tuple[int | None, int | None]
"""The least and the greatest of some integers, None where there is none or it is not known."""
Scalar = int | Fraction | float
Operand = Term | int | Fraction | float
TERMS = (Affine, Table, Node)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a tensor lie: the slot of the frame with a contiguous array of `count` elements; offset and
    strides count elements.
    """

    slot: int
    count: int
    offset: int
    strides: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor as a plan knows it. kind: Element, or what a view holds. type: the element type.

    make: emits what computes it, once, when it is first read. low, high: bounds of the integers in it. free: makes the
    tensor of truth values that says which elements the text leaves open.
    """

    kind: str
    type: DType | None
    shape: tuple[int, ...]
    make: Callable[[], Layout]
    low: int | None = None
    high: int | None = None
    free: Callable[[], Tensor] | None = None
    made: Layout | None = None

    @property
    def layout(self) -> Layout:
        """Where it lies; emits its computation when that has not been done."""
        if self.made is None:
            self.made = self.make()
        return self.made


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A local function: its text and the scope in which it stands."""

    names: tuple[str, ...]
    body: Expr
    scope: object


Value = Union[Operand, str, DType, ValueType, tuple["Value", ...], Tensor, Function, None]  # noqa: UP007 - it names itself


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of indices where an expression is evaluated: the values of axes (inclusive bounds), of sums of axes
    (by their terms, without the constant), and conditions under which it is evaluated.
    """

    ranges: Mapping[Axis, tuple[int, int]] = field(default_factory=dict)
    facts: Mapping[tuple[tuple[Axis, int], ...], tuple[int | None, int | None]] = field(default_factory=dict)
    masks: tuple[Term, ...] = ()


NOTHING: Final = Known()


def row_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous row-major tensor."""
    out, step = [], 1
    for size in reversed(shape):
        out.append(step)
        step *= size
    return tuple(reversed(out))


def axes_of(*operands: object) -> tuple[Axis, ...]:
    """The axes on which at least one of the operands depends, ascending."""
    lists = [operand.axes for operand in operands if isinstance(operand, TERMS)]
    if len(lists) == 1:
        return lists[0]
    found = {axis for axes in lists for axis in axes}
    return tuple(sorted(found, key=lambda axis: axis.id))


def kind_of(value: object) -> str:
    """Int, Rational, Bool or Element of a number or term."""
    if isinstance(value, TERMS):
        return value.kind
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT
    if isinstance(value, (Fraction, float)):
        return RATIONAL
    raise InternalError(f"{value!r} is no number")


def is_element(value: object) -> TypeGuard[Node]:
    """Whether a value is an element of a tensor."""
    return isinstance(value, Node) and value.kind == ELEMENT


def element_type(value: Operand) -> DType:
    """The type of an element."""
    if not isinstance(value, Node) or value.type is None:
        raise InternalError(f"{value!r} is no element of a type")
    return value.type


def is_free(*operands: object) -> bool:
    """Whether the text may leave the value of one of them open."""
    return any(isinstance(operand, Node) and operand.free for operand in operands)


def affine(const: int, terms: Mapping[Axis, int]) -> Affine | int:
    """The affine form; an int when no axis is left."""
    kept = tuple(sorted(((a, c) for a, c in terms.items() if c), key=lambda item: item[0].id))
    return Affine(const, kept) if kept else const


def single(data: Array) -> Any:
    """The number that a constant element is; of a set of elements the one that it is in its own type."""
    found = np.asarray(data)
    if found.dtype.names is not None:
        found = found["least" if "least" in found.dtype.names else "low"]
    return found.item()


def bounds(value: object, known: Known) -> tuple[int | None, int | None]:
    """The least and the greatest value of an integer where that is known."""
    match value:
        case bool() | int():
            return int(value), int(value)
        case Affine(const, terms):
            low = high = const
            for axis, factor in terms:
                first, last = known.ranges.get(axis, (0, axis.size - 1))
                low += factor * (first if factor > 0 else last)
                high += factor * (last if factor > 0 else first)
            fact = known.facts.get(terms)
            if fact is not None:
                low = low if fact[0] is None else max(low, const + fact[0])
                high = high if fact[1] is None else min(high, const + fact[1])
            return low, high
        case Table(values) if value.kind == INT:
            return (int(values.min()), int(values.max())) if values.size else (0, 0)
        case Node():
            return value.low, value.high
        case _:
            return None, None


def tabulated(term: Operand, axes: tuple[Axis, ...], ranges: Mapping[Axis, tuple[int, int]] | None = None) -> Array:
    """The values of a static operand over `axes` (a superset of its own), with size 1 where it does not depend on one.

    ranges: half-open, the whole axis where none is given. Rationals: the numerators.
    """
    if isinstance(term, Affine):
        total: Array = np.asarray(term.const)
        for axis, factor in term.terms:
            first, end = (ranges or {}).get(axis, (0, axis.size))
            line: Array = np.arange(first * factor, end * factor, factor, dtype=np.int64)
            line = line.reshape([-1 if a is axis else 1 for a in axes])
            total = np.add(total, line)
        return total
    if isinstance(term, Table):
        values = term.values
        if ranges:
            values = values[tuple(slice(*ranges[a]) if a in ranges else slice(None) for a in term.axes)]
        sizes = dict(zip(term.axes, values.shape, strict=True))
        kept = [a for a in axes if a in sizes]
        if tuple(kept) != term.axes:
            values = values.transpose([term.axes.index(a) for a in kept])
        return values.reshape([sizes.get(a, 1) for a in axes])
    if isinstance(term, Node):
        raise InternalError("a value that depends on data has no table")
    return np.asarray(term).reshape((1,) * len(axes))


def is_static(*operands: object) -> bool:
    """Whether no operand depends on data."""
    return not any(isinstance(operand, Node) for operand in operands)


def fits_table(axes: tuple[Axis, ...]) -> bool:
    """Whether a table over these axes is small."""
    size = 1
    for axis in axes:
        size *= axis.size
    return size <= SMALL_TABLE


def table(values: Array, axes: tuple[Axis, ...], kind: str, den: int = 1) -> Operand:
    """The table, or a number or affine form when it is one."""
    if not axes:
        item = values.item() if values.shape == () else values.reshape(-1)[0]
        return _scalar(item, kind, den)
    if kind == BOOL and values.size:
        if values.all():
            return True
        if not values.any():
            return False
    return Table(values, axes, kind, den)


def _scalar(item: Any, kind: str, den: int) -> Operand:
    if kind == BOOL:
        return bool(item)
    number = int(item)
    return Fraction(number, den) if kind == RATIONAL else int(number)


def stuck(rule: str, premise: str, span: Span, message: str, suggestion: str = "") -> StuckError:
    """The signal that there is no value."""
    return StuckError(Stuck(rule, premise, span or NOWHERE, message, suggestion))


def limits_of(node: Node) -> Limits:
    """The limits that `within` states."""
    first, last = node.data
    return first, last


def operations(term: Operand) -> Iterator[Node]:
    """The operations in a term, each once."""
    seen: set[int] = set()
    stack: list[object] = [term]
    while stack:
        item = stack.pop()
        if isinstance(item, Node) and id(item) not in seen:
            seen.add(id(item))
            stack += item.args
            yield item
