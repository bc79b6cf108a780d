"""Terms: the meaning of an expression over an index space, before any data is looked at.

A value is static (a Python number, text, dtype, tuple, tensor, local function) or a term: a function of the axes it
depends on. An index is an affine form of axes as long as possible; what is static but not affine is a table; anything
else is an operation that is evaluated when the definition is applied.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any, Final, TypeGuard, Union

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.language.syntax import NOWHERE, Span

from ...errors import InternalError, Unsupported
from ...model.elements import DType
from ...model.graph import ValueType
from ..application import Stuck
from ..reading import Function

Array = NDArray[Any]
"""An array of any dtype: the dtype is data, as the element type of a tensor is."""
INT: Final = "Int"
RATIONAL: Final = "Rational"
BOOL: Final = "Bool"
ELEMENT: Final = "Element"
STRINGS: Final[DType] = np.dtype(object)
"""The dtype of arrays of strings."""
SMALL_TABLE: Final = 1 << 16
"""The most entries of a table of what is static."""


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
    """The place of the elements of a tensor: the slot of the frame with a contiguous array of `count` elements; offset
    and strides count elements."""

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
        """The place where it lies; emits its computation when that has not been done."""
        if self.made is None:
            self.made = self.make()
        return self.made


Value = Union[Operand, str, DType, ValueType, tuple["Value", ...], Tensor, Function, None]  # noqa: UP007 - it names itself


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """The knowledge of indices where an expression is evaluated: the values of axes (inclusive bounds), of sums of axes
    (by their terms, without the constant), and conditions under which it is evaluated.
    """

    ranges: Mapping[Axis, tuple[int, int]] = field(default_factory=dict)
    facts: Mapping[tuple[tuple[Axis, int], ...], tuple[int | None, int | None]] = field(default_factory=dict)
    masks: tuple[Term, ...] = ()


NOTHING: Final = IndexFacts()


@lru_cache(maxsize=4096)  # asked for the outputs of every application
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
    distinct = {axis for axes in lists for axis in axes}
    return tuple(sorted(distinct, key=lambda axis: axis.id))


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
    """True if a value is an element of a tensor."""
    return isinstance(value, Node) and value.kind == ELEMENT


def element_type(value: Operand) -> DType:
    """The type of an element."""
    if not isinstance(value, Node) or value.type is None:
        raise InternalError(f"{value!r} is no element of a type")
    return value.type


def is_free(*operands: object) -> bool:
    """True if the text may leave the value of one of them open."""
    return any(isinstance(operand, Node) and operand.free for operand in operands)


def affine(const: int, terms: Mapping[Axis, int]) -> Affine | int:
    """The affine form; an int when no axis is left."""
    kept = tuple(sorted(((a, c) for a, c in terms.items() if c), key=lambda item: item[0].id))
    return Affine(const, kept) if kept else const


def single(data: Array) -> Any:
    """The number that a constant element is; of a set of elements the one that it is in its own type."""
    entry = np.asarray(data)
    if entry.dtype.names is not None:
        entry = entry["least" if "least" in entry.dtype.names else "low"]
    return entry.item()


def bounds(value: object, known: IndexFacts) -> tuple[int | None, int | None]:
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
        dtype = np.dtype(np.int64 if fits_int64(*bounds(term, NOTHING)) else object)
        total: Array = np.asarray(term.const, dtype)
        for axis, factor in term.terms:
            first, end = (ranges or {}).get(axis, (0, axis.size))
            line: Array = np.arange(first, end).astype(dtype) * factor
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
    wide = isinstance(term, int) and not fits_int64(term, term)
    return np.asarray(term, dtype=object if wide else None).reshape((1,) * len(axes))


def fits_int64(low: int | None, high: int | None) -> bool:
    """True if integers between these bounds are known to be computed in int64."""
    return low is not None and high is not None and low > -LIMIT and high < LIMIT


def is_static(*operands: object) -> bool:
    """True if no operand depends on data."""
    return not any(isinstance(operand, Node) for operand in operands)


def fits_table(axes: tuple[Axis, ...]) -> bool:
    """True if a table over these axes is small."""
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


# Exact integers and rationals of operator texts: arithmetic on numbers, affine forms, tables and terms.
# `div` and `mod` are floor operations. A float is an attribute that is no exact number: a NaN, an infinity or -0.0.


LIMIT: Final = 1 << 62
"""Tables of numbers up to this are int64, beyond it of Python's integers."""


def add(a: Operand, b: Operand, known: IndexFacts, sign: int = 1) -> Operand:
    """a + sign * b."""
    if isinstance(a, (int, Affine)) and isinstance(b, (int, Affine)):
        (p, s), (q, t) = _form(a), _form(b)
        terms = dict(s)
        for axis, factor in t:
            terms[axis] = terms.get(axis, 0) + sign * factor
        return affine(p + sign * q, terms)
    if not isinstance(a, Term) and not isinstance(b, Term):
        return _plain(a + sign * b) if exact(a, b) else _special("add" if sign > 0 else "sub", a, b)
    return _general("add" if sign > 0 else "sub", a, b, known)


def multiply(a: Operand, b: Operand, known: IndexFacts) -> Operand:
    """a * b."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, int) and isinstance(other, Affine):
            return affine(one * other.const, {axis: one * factor for axis, factor in other.terms})
        if isinstance(one, int) and one == 1:
            return other
    if not isinstance(a, Term) and not isinstance(b, Term):
        return _plain(a * b) if exact(a, b) else _special("mul", a, b)
    return _general("mul", a, b, known)


def divide(a: Operand, b: Operand, known: IndexFacts) -> Operand:
    """The exact quotient of two numbers."""
    if not isinstance(a, Term) and not isinstance(b, Term):
        return Fraction(a) / Fraction(b) if exact(a, b) else _special("quotient", a, b)
    if isinstance(b, (int, Fraction)) and b:
        return _general("mul", a, 1 / Fraction(b), known)
    return _general("quotient", a, b, known)


def floor_divide(a: Operand, b: Operand, known: IndexFacts) -> Operand:
    """a div b."""
    return _split(a, b, known)[0]


def modulo(a: Operand, b: Operand, known: IndexFacts) -> Operand:
    """a mod b."""
    return _split(a, b, known)[1]


def _split(a: Operand, b: Operand, known: IndexFacts) -> tuple[Operand, Operand]:
    """a div b and a mod b: affine where a = b * g + r with affine g and r in 0 .. b - 1."""
    if isinstance(a, int) and isinstance(b, int):
        return divmod(a, b)
    if isinstance(b, int) and b > 0:
        low, high = bounds(a, known)
        if low is not None and high is not None and low // b == high // b:
            return low // b, add(a, -(low // b) * b, known)
    if isinstance(b, int) and b > 0 and isinstance(a, Affine):
        quotient = affine(a.const // b, {x: c // b for x, c in a.terms if c % b == 0})
        rest = affine(a.const % b, {x: c for x, c in a.terms if c % b})
        low, high = bounds(rest, known)
        if low is not None and high is not None and low // b == high // b:
            return add(quotient, low // b, known), add(rest, -(low // b) * b, known)
    return _general("div", a, b, known), _general("mod", a, b, known)


def negate(a: Operand, known: IndexFacts) -> Operand:
    """-a."""
    return multiply(-1, a, known)


def smaller(a: Operand, b: Operand, known: IndexFacts) -> Operand:
    """The smaller of two numbers."""
    return _extreme("min", a, b, known)


def greater(a: Operand, b: Operand, known: IndexFacts) -> Operand:
    """The greater of two numbers."""
    return _extreme("max", a, b, known)


def _extreme(op: str, a: Operand, b: Operand, known: IndexFacts) -> Operand:
    if not isinstance(a, Term) and not isinstance(b, Term):
        return min(a, b) if op == "min" else max(a, b)
    (la, ha), (lb, hb) = bounds(a, known), bounds(b, known)
    if ha is not None and lb is not None and ha <= lb:
        return a if op == "min" else b
    if hb is not None and la is not None and hb <= la:
        return b if op == "min" else a
    return _general(op, a, b, known)


def to_floor(a: Operand) -> Operand:
    """The greatest integer at most a."""
    if isinstance(a, (int, Fraction)):
        return math.floor(a)
    if isinstance(a, float):
        return math.nan if a else 0  # what is no number equals no integer
    if kind_of(a) == INT:
        return a
    if isinstance(a, Table):
        return table(a.values // a.den, a.axes, INT)
    if isinstance(a, Node):
        return Node("floor", (a,), a.axes, INT)
    raise InternalError(f"{a!r} has no floor")


def _form(a: int | Affine) -> tuple[int, tuple[tuple[Axis, int], ...]]:
    return (a.const, a.terms) if isinstance(a, Affine) else (int(a), ())


def exact(*values: Operand) -> bool:
    """True if all are exact numbers or terms."""
    return not any(isinstance(value, float) for value in values)


def _special(op: str, a: Scalar, b: Scalar) -> Operand:
    """Arithmetic with a NaN, an infinity or -0.0, as in IEEE 754: of a number the sign decides; beside a zero it is the
    sum."""
    one, other = _sign(a), _sign(b)
    if op in ("add", "sub") and bool(one) != bool(other):
        return a if one else -b if op == "sub" else b
    with np.errstate(all="ignore"):
        result = float(_IEEE[op](one, other))
    return result if not math.isfinite(result) or (result == 0 and math.copysign(1, result) < 0) else int(result)


def _sign(value: Scalar) -> float:
    return value if isinstance(value, float) else float((value > 0) - (value < 0))


_IEEE: Final[Mapping[str, np.ufunc]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "quotient": np.divide,
}  # fmt: skip


def _plain(value: int | Fraction | float) -> Operand:
    return int(value) if isinstance(value, bool) else value


def _general(op: str, a: Operand, b: Operand, known: IndexFacts) -> Operand:
    axes = axes_of(a, b)
    rational = op == "quotient" or RATIONAL in (kind_of(a), kind_of(b))
    if is_static(a, b) and fits_table(axes):
        if rational:
            return _rational_table(op, a, b, axes)
        p, q = safe(op, tabulated(a, axes), tabulated(b, axes))
        if op in ("div", "mod") and not q.all():
            if not known.masks:
                raise ZeroDivisionError(op)
            q = np.where(q == 0, 1, q)
        full = np.broadcast_shapes(p.shape, q.shape, tuple(axis.size for axis in axes))
        return table(np.broadcast_to(FUNCTIONS[op](p, q), full), axes, INT)
    low, high = interval(op, bounds(a, known), bounds(b, known)) if not rational else (None, None)
    return Node(op, (a, b), axes, RATIONAL if rational else INT, low=low, high=high, free=is_free(a, b))


def interval(
    op: str, a: tuple[int | None, int | None], b: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """Bounds of the result from bounds of the operands, None where there is none."""
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        if op == "mod" and b[0] is not None and b[0] > 0 and b[1] is not None:
            return 0, b[1] - 1
        if op == "max":
            return max((x for x in (a[0], b[0]) if x is not None), default=None), None
        if op == "min":
            return None, min((x for x in (a[1], b[1]) if x is not None), default=None)
        return None, None
    match op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            corners = [x * y for x in (a[0], a[1]) for y in (b[0], b[1])]
            return min(corners), max(corners)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "mod" if b[0] > 0:
            return 0, b[1] - 1
        case "div" if b[0] > 0:
            corners = [x // y for x in (a[0], a[1]) for y in (b[0], b[1])]
            return min(corners), max(corners)
        case _:
            return None, None


FUNCTIONS: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.floor_divide,
    "mod": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
}
"""Integer operations; on objects they are Python's."""


def safe(op: str, p: Array, q: Array) -> tuple[Array, Array]:
    """The operands as Python integers where int64 might not hold the result."""
    if p.dtype == object or q.dtype == object or not p.size or not q.size:
        return p, q
    most_p, most_q = (max(abs(int(x.min())), abs(int(x.max()))) for x in (p, q))
    if (most_p * most_q if op == "mul" else most_p + most_q) >= LIMIT:
        return p.astype(object), q.astype(object)
    return p, q


def _rational_table(op: str, a: Operand, b: Operand, axes: tuple[Axis, ...]) -> Operand:
    (p, d), (q, e) = numerators(a, axes), numerators(b, axes)
    full = tuple(axis.size for axis in axes)
    if op == "mul":
        p, q = safe("mul", p, q)
        return _reduced(np.broadcast_to(p * q, full), d * e, axes)
    if op == "quotient":
        flat = [Fraction(int(x) * e, int(y) * d) if y else Fraction(0) for x, y in np.broadcast(p, q)]
        shape = np.broadcast_shapes(p.shape, q.shape)
        common = math.lcm(*(x.denominator for x in flat)) if flat else 1
        values = np.array([x.numerator * (common // x.denominator) for x in flat], dtype=object).reshape(shape)
        return _reduced(np.broadcast_to(values, full), common, axes)
    common = math.lcm(d, e)
    p, q = scaled(p, common // d), scaled(q, common // e)
    p, q = safe(op, p, q)
    return _reduced(np.broadcast_to(FUNCTIONS[op](p, q), full), common, axes)


def scaled(p: Array, factor: int) -> Array:
    """A multiple of integers, of Python's where int64 might not hold it."""
    if factor == 1:
        return p
    p, q = safe("mul", p, np.asarray(factor, dtype=object if abs(factor) >= LIMIT else np.int64))
    return np.multiply(p, q)


def _reduced(values: Array, den: int, axes: tuple[Axis, ...]) -> Operand:
    """The table in lowest terms, in int64 where it fits."""
    if values.size and den > 1:
        if values.dtype == object:
            common = math.gcd(den, *(int(x) for x in values.reshape(-1)))
        else:
            common = math.gcd(den, int(np.gcd.reduce(values.reshape(-1))))
        values, den = values // common, den // common
    if values.dtype == object and values.size and max(abs(int(x)) for x in values.reshape(-1)) < LIMIT:
        values = values.astype(np.int64)
    return table(values, axes, RATIONAL, den)


def numerators(a: Operand, axes: tuple[Axis, ...]) -> tuple[Array, int]:
    """A static exact number over axes as integers and their common denominator."""
    if isinstance(a, Fraction):
        big = abs(a.numerator) >= LIMIT
        return np.asarray(a.numerator, dtype=object if big else np.int64).reshape((1,) * len(axes)), a.denominator
    if isinstance(a, float):
        if a:
            raise Unsupported("an attribute that is a NaN or an infinity, where an exact number is needed")
        a = 0
    return tabulated(a, axes), a.den if isinstance(a, Table) else 1


def fractions(values: Array, den: int) -> Array:
    """Integers over a denominator as an object array of Fractions."""
    out = np.empty(values.shape, dtype=object)
    flat = out.reshape(-1)
    for position, value in enumerate(values.reshape(-1)):
        flat[position] = Fraction(int(value), den)
    return out


# Truth values of operator texts: comparison of exact numbers, connectives, and what a condition tells of indices.


def compare(a: Operand, relation: str, b: Operand, known: IndexFacts) -> Operand:
    """True if a stands in the relation to b, for integers, rationals and truth values."""
    if not isinstance(a, Term) and not isinstance(b, Term):
        return COMPARISONS_PLAIN[relation](a, b)
    if INT == kind_of(a) == kind_of(b):
        if relation == "!=":
            return negation(compare(a, "=", b, known))
        static = isinstance(a, (int, Affine)) and isinstance(b, (int, Affine))
        difference = add(a, b, known, -1) if static else None
        if difference is not None:
            return within(difference, *WITHIN[relation], known)
        low, high = interval("sub", bounds(a, known), bounds(b, known))
        decided = decide(low, high, *WITHIN[relation])
        if decided is not None:
            return decided
    axes = axes_of(a, b)
    if is_static(a, b) and fits_table(axes):
        (p, d), (q, e) = numerators(a, axes), numerators(b, axes)
        p, q = scaled(p, e), scaled(q, d)
        full = tuple(axis.size for axis in axes)
        return table(np.broadcast_to(COMPARISONS[relation](p, q).astype(bool), full), axes, BOOL)
    return Node(relation, (a, b), axes, BOOL, free=is_free(a, b))


def decide(low: int | None, high: int | None, first: int | None, last: int | None) -> bool | None:
    """True if a number in low .. high is in first .. last, None when that is open."""
    if (first is None or (low is not None and low >= first)) and (last is None or (high is not None and high <= last)):
        return True
    if (first is not None and high is not None and high < first) or (
        last is not None and low is not None and low > last
    ):
        return False
    return None


def within(form: Operand, first: int | None, last: int | None, known: IndexFacts) -> Operand:
    """True if an integer lies in first .. last (None: no limit)."""
    decided = decide(*bounds(form, known), first, last)
    if decided is not None:
        return decided
    if isinstance(form, Affine):
        return Node("within", (form,), form.axes, BOOL, data=(first, last))
    conditions = []
    if first is not None:
        conditions.append(compare(form, ">=", first, known))
    if last is not None:
        conditions.append(compare(form, "<=", last, known))
    return conjunction(conditions)


WITHIN: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "=": (0, 0),
    "<": (None, -1),
    "<=": (None, 0),
    ">": (1, None),
    ">=": (0, None),
}
"""For a relation between integers, where their difference lies."""


COMPARISONS: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


COMPARISONS_PLAIN: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def conjunction(parts: Iterable[Operand]) -> Operand:
    """All of them."""
    return _connective("and", parts, True)


def disjunction(parts: Iterable[Operand]) -> Operand:
    """One of them at least."""
    return _connective("or", parts, False)


def _connective(op: str, parts: Iterable[Operand], neutral: bool) -> Operand:
    kept: list[Operand] = []
    for part in parts:
        if isinstance(part, Node) and part.op == op:
            kept += part.args
        elif not isinstance(part, Term):
            if bool(part) is not neutral:
                return not neutral
        else:
            kept.append(part)
    if len(kept) <= 1:
        return kept[0] if kept else neutral
    return Node(op, tuple(kept), axes_of(*kept), BOOL, free=is_free(*kept))


def negation(a: Operand) -> Operand:
    """Not a."""
    if isinstance(a, Table):
        return Table(~a.values, a.axes, BOOL)
    if isinstance(a, Node):
        return a.args[0] if a.op == "not" else Node("not", (a,), a.axes, BOOL, free=a.free)
    return not a


def conjuncts(condition: Term) -> tuple[Operand, ...]:
    """The conditions of which a condition is the conjunction."""
    return condition.args if isinstance(condition, Node) and condition.op == "and" else (condition,)


def assume(known: IndexFacts, condition: Operand, *, holds: bool = True) -> IndexFacts:
    """The knowledge where the condition holds (or does not)."""
    if not isinstance(condition, Term):
        return known
    mask = condition if holds else negation(condition)
    if not isinstance(mask, Term):
        return known
    masked = replace(known, masks=(*known.masks, mask))
    parts = conjuncts(condition) if holds else ((condition,) if len(conjuncts(condition)) == 1 else ())
    for part in parts:
        if isinstance(part, Node) and part.op == "not":
            (part,), truth = part.args, not holds
        else:
            truth = holds
        if isinstance(part, Node) and part.op == "within":
            masked = _narrow(masked, part, truth)
    return masked


def _narrow(known: IndexFacts, part: Node, holds: bool) -> IndexFacts:
    (form,) = part.args
    first, last = limits_of(part)
    if not isinstance(form, Affine):
        return known
    if not holds:
        low, high = bounds(form, known)
        if last is not None and (first is None or (low is not None and low >= first)):
            first, last = last + 1, None
        elif first is not None and (last is None or (high is not None and high <= last)):
            last, first = first - 1, None
        else:
            return known
    first = None if first is None else first - form.const
    last = None if last is None else last - form.const
    if len(form.terms) == 1:
        axis, factor = form.terms[0]
        low, high = known.ranges.get(axis, (0, axis.size - 1))
        if factor < 0:
            first, last = (None if last is None else -last), (None if first is None else -first)
        size = abs(factor)
        low = low if first is None else max(low, -(-first // size))
        high = high if last is None else min(high, last // size)
        return replace(known, ranges={**known.ranges, axis: (low, max(high, low))})
    old = known.facts.get(form.terms, (None, None))
    first = old[0] if first is None else first if old[0] is None else max(first, old[0])
    last = old[1] if last is None else last if old[1] is None else min(last, old[1])
    return replace(known, facts={**known.facts, form.terms: (first, last)})
