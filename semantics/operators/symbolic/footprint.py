"""The footprint interpretation: the input elements that one element of an output reads, data and control apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import Unsupported
from ...formulas.terms import FALSE, TRUE, Term
from ...model.elements import dtype_of, finite_range, has_nan, is_float, is_integer
from ..application import Application
from ..compiled.elements import ieee
from ..compiled.terms import COMPARISONS
from .elements.exact import NAMES
from .numbers import Int, Number
from .statements import Applied, apply, definition, element_at, positions, tensors
from .values import Element, ElementType, Reads, Scope, Value

# The footprint interpretation, elements: a value in its element type, and the input elements that it was computed of.
# What decides which elements are read, comparisons, indices, the losers of a maximum, goes to the run's journal.


Scalar = NDArray[np.generic]
WIDEST: Final = "double"
"""The type of what has none: numbers beside attributes that are a NaN, an infinity or -0.0."""
NO_READS: Reads = frozenset()
OPERATORS: Mapping[str, str] = {"+": "add", "-": "sub", "*": "mul", "/": "quotient"}


@dataclass(frozen=True, slots=True)
class Traced:
    """A scalar of its element type, and the elements of inputs whose values went into it."""

    scalar: Scalar
    reads: Reads


@dataclass(frozen=True, slots=True)
class Tracing:
    """The algebra of elements that remember their reads. tensors: the inputs by name."""

    tensors: Mapping[str, NDArray[np.generic]]

    def literal(self, number: int | Fraction, kind: ElementType, scope: Scope) -> Element:
        """The numeral in the element type."""
        return Element(Traced(constant(number, kind), NO_READS), kind)

    def read(self, name: str, index: tuple[Int, ...], kind: ElementType, scope: Scope) -> Element:
        """An element of an input."""
        at = tuple(i for i in index if isinstance(i, int))
        return Element(Traced(np.asarray(self.tensors[name][at]), frozenset({(name, at)})), kind)

    def arithmetic(self, operator: str, left: Element, right: Element, scope: Scope) -> Element:
        """`+ - * /` in the element type."""
        a, b = traced(left, right.type), traced(right, left.type)
        kind = left.type if left.type.name else right.type
        with np.errstate(all="ignore"):
            value = ieee.operation(OPERATORS[operator], dtype_of(kind.name or WIDEST))(a.scalar, b.scalar)
        return Element(Traced(np.asarray(value), a.reads | b.reads), kind)

    def compare(self, relation: str, left: Element, right: Element, scope: Scope) -> Term:
        """`= != < <= > >=`; what was compared decides."""
        a, b = traced(left, right.type), traced(right, left.type)
        scope.run.journal |= a.reads | b.reads
        x, y = comparable(a.scalar), comparable(b.scalar)
        return TRUE if bool(COMPARISONS[relation](x, y)) else FALSE

    def apply(self, name: str, kind: ElementType, arguments: Sequence[Value], scope: Scope) -> Element:
        """A primitive function."""
        made = [traced(a, kind) if isinstance(a, Element) else None for a in arguments]
        reads = NO_READS.union(*(item.reads for item in made if item is not None))
        with np.errstate(all="ignore"):
            value = self._value(name, kind, arguments, made)
        return Element(Traced(np.asarray(value), reads), kind)

    def _value(self, name: str, kind: ElementType, arguments: Sequence[Value], made: Sequence[Traced | None]) -> Scalar:
        dtype = dtype_of(kind.name or WIDEST)
        match name:
            case "cast":
                first = made[0]
                if first is None:
                    return constant(arguments[0], kind)
                return ieee.cast(first.scalar.dtype, dtype)(first.scalar)
            case "saturate":
                return _saturated(constant_of(made[0], arguments[0]), kind)
            case "reinterpret":
                digits = _present(made[0])
                return ieee.reinterpret(digits.dtype, dtype)(digits)
            case "nan":
                return ieee.constant(dtype, float("nan"))
            case "infinity":
                return ieee.constant(dtype, float("inf"))
            case "arbitrary":
                return ieee.constant(dtype, 0) if kind.name != "string" else np.asarray(b"", dtype=object)
            case "oneof":
                return _present(made[0])
            case _:
                operation = ieee.operation(NAMES.get(name, name), dtype)
                return operation(*(_present(item) for item in made))

    def test(self, name: str, element: Element, scope: Scope) -> Term:
        """is_nan, is_infinite; the element decides."""
        operand = traced(element, element.type)
        scope.run.journal |= operand.reads
        return TRUE if bool(ieee.operation(name, operand.scalar.dtype)(operand.scalar)) else FALSE

    def lift(self, sort: str, element: Element, scope: Scope) -> Number:
        """The exact value; the element decides."""
        operand = traced(element, element.type)
        scope.run.journal |= operand.reads
        if sort == "Bool":
            return TRUE if bool(operand.scalar) else FALSE
        return int(operand.scalar) if sort == "Int" else Fraction(float(operand.scalar))

    def choose(self, condition: Term, left: Element, right: Element, scope: Scope) -> Element:
        """Conditions are constants here."""
        raise Unsupported(f"{condition} is no constant")

    def fold(self, name: str, terms: Sequence[tuple[int, Element]], scope: Scope) -> Element | int:
        """The winner; the others decide. `argmin_first` is argmin with a NaN as the greatest."""
        kind = next((element.type for _, element in terms if element.type.name), ElementType(""))
        made = [(position, traced(element, kind)) for position, element in terms]
        scope.run.journal |= NO_READS.union(*(item.reads for _, item in made))
        greatest = name in ("max", "argmax")
        position, best = reduce(
            lambda a, b: b if _better(b[1].scalar, a[1].scalar, greatest, first=name == "argmin_first") else a, made
        )
        return Element(best, kind) if name in ("max", "min") else position

    def abstract(self, kind: ElementType, scope: Scope) -> Element:
        """Nothing is unknown here."""
        raise Unsupported("an element that nothing determines")


def _better(new: Scalar, old: Scalar, greatest: bool, *, first: bool) -> bool:
    """True if a later term wins: a NaN does, the first of them; for `first` a number wins over a NaN."""
    x, y = comparable(new), comparable(old)
    strange_x, strange_y = bool(x != x), bool(y != y)
    if strange_x or strange_y:
        return strange_y and not strange_x if first else strange_x and not strange_y
    return bool(COMPARISONS[">" if greatest else "<"](x, y))


def comparable(scalar: Scalar) -> Scalar:
    """The same number in a type whose comparison NumPy knows."""
    if scalar.dtype == object or scalar.dtype.num <= 23:
        return scalar
    return scalar.astype(np.float32 if is_float(scalar.dtype) else np.int64)


def traced(element: Element, kind: ElementType) -> Traced:
    """The value of an element; one that had no type, as attributes have none, takes this one."""
    value, dtype = element.value, dtype_of(kind.name or WIDEST)
    if isinstance(value, float):
        return Traced(np.asarray(ieee.constant(dtype, value)), NO_READS)
    if isinstance(value, Traced):
        if element.type.name or not kind.name:
            return value
        return Traced(np.asarray(ieee.cast(value.scalar.dtype, dtype)(value.scalar)), value.reads)
    raise Unsupported(f"an element without a value: {element.value!r} of type {kind.name}")


def constant(value: Value, kind: ElementType) -> Scalar:
    """An exact value, a Bool or a text as an element."""
    if isinstance(value, Term) and value in (TRUE, FALSE):
        value = int(value == TRUE)
    if isinstance(value, str) or kind.name == "string":
        return np.asarray(str(value).encode("utf-8", "surrogateescape"), dtype=object)
    if isinstance(value, int | Fraction):
        return np.asarray(ieee.constant(dtype_of(kind.name or WIDEST), Fraction(value)))
    raise Unsupported(f"{value!r} is no constant")


def constant_of(traced: Traced | None, value: Value) -> float | Fraction:
    """The number that is to be saturated."""
    if traced is None:
        return Fraction(value) if isinstance(value, int | Fraction) else 0.0
    if is_float(traced.scalar.dtype):
        return float(traced.scalar)
    return Fraction(int(traced.scalar))


def _saturated(value: float | Fraction, kind: ElementType) -> Scalar:
    dtype = dtype_of(kind.name)
    low, high = finite_range(dtype)
    if value != value:
        return ieee.constant(dtype, float("nan") if has_nan(dtype) else 0)
    if value in (float("inf"), float("-inf")):
        return ieee.constant(dtype, high if value > 0 else low)
    exact = Fraction(value)
    if is_integer(dtype):
        exact = Fraction(round(exact))
    return ieee.constant(dtype, min(max(exact, low), high))


def _present(traced: Traced | None) -> Scalar:
    if traced is None:
        raise Unsupported("an argument that is no element")
    return traced.scalar


# The footprint interpretation: the input elements that one element of an output reads, data and control apart.
# A data read is an element whose value went into the result; a control read is one that decided what was read: in a
# condition, an index, a shape, or as the loser of a maximum. An element can be both. Views, local functions and
# operators that the text applies are followed to the inputs.


Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Footprint:
    """By position of the input, the indices of the elements that were read."""

    data: Mapping[int, frozenset[Index]]
    control: Mapping[int, frozenset[Index]]


def footprint(application: Application, output: int, index: Index) -> Footprint:
    """The elements of inputs that an element of an output reads. Raises Undefined where the application is stuck,
    Unsupported for meanings that are rules of the machine and for values that are no tensors."""
    return footprints(application)(output, index)


def footprints(application: Application) -> Callable[[int, Index], Footprint]:
    """The same for many elements of one application: shapes and views are shared."""
    operator = definition(application.op_type, application.version)
    applied = apply(application, Tracing(tensors(application, operator)))
    shapes = frozenset(applied.scope.run.journal)
    places = positions(application, operator)
    return lambda output, index: _footprint(applied, output, index, shapes, places)


def _footprint(applied: Applied, output: int, index: Index, shapes: Reads, places: Mapping[str, int]) -> Footprint:
    run = applied.scope.run
    run.journal = set()
    element = element_at(applied, output, index)
    data = element.value.reads if isinstance(element, Element) and isinstance(element.value, Traced) else frozenset()
    return Footprint(_by_input(data, places), _by_input(shapes | run.journal, places))


def _by_input(reads: Reads, places: Mapping[str, int]) -> dict[int, frozenset[Index]]:
    indices: dict[int, set[Index]] = defaultdict(set)
    for name, index in reads:
        if name in places:
            indices[places[name]].add(index)
    return {position: frozenset(indices[position]) for position in sorted(indices)}
