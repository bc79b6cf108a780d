"""One element of an output with the arithmetic that gave it: the footprint interpretation, remembering the terms too.

Values, reads and decisions are those of the footprint's algebra; this one only notes what was computed of what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ...errors import Unsupported
from ...formulas.terms import Term
from ...operators.application import Application
from ...operators.symbolic.footprint import NO_READS, Footprint, Index, Scalar, Traced, Tracing, traced
from ...operators.symbolic.numbers import Int, Number
from ...operators.symbolic.statements import Applied, apply, definition, element_at, positions, tensors
from ...operators.symbolic.values import Element, ElementType, Reads, Scope, Value


@dataclass(frozen=True, slots=True)
class Leaf:
    """An element of an input of the operator, or of a tensor that is an attribute. position: None for the latter."""

    name: str
    position: int | None
    index: Index
    value: Scalar


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number of the text, or one that depends on shapes and attributes alone."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the element type on terms."""

    name: str
    arguments: tuple[Tree, ...]
    value: Scalar


Tree = Leaf | Numeral | Operation


@dataclass(frozen=True, slots=True)
class Explained:
    """A value with its reads, and the term that it is."""

    traced: Traced
    tree: Tree


@dataclass(frozen=True, slots=True)
class Explanation:
    """One element: the term, what it read, and its value."""

    tree: Tree
    footprint: Footprint


@dataclass(frozen=True, slots=True)
class Explaining:
    """The algebra of elements that remember terms. inner: the one that computes. places: positions of the inputs."""

    inner: Tracing
    places: Mapping[str, int]

    def literal(self, number: int | Fraction, kind: ElementType, scope: Scope) -> Element:
        """A numeral."""
        return _numeral(self.inner.literal(number, kind, scope))

    def read(self, name: str, index: tuple[Int, ...], kind: ElementType, scope: Scope) -> Element:
        """An element of an input: a leaf."""
        found = traced(self.inner.read(name, index, kind, scope), kind)
        at = tuple(i for i in index if isinstance(i, int))
        return Element(Explained(found, Leaf(name, self.places.get(name), at, found.scalar)), kind)

    def arithmetic(self, operator: str, left: Element, right: Element, scope: Scope) -> Element:
        """`+ - * /`."""
        made = self.inner.arithmetic(operator, _plain(left), _plain(right), scope)
        return _term(operator, (left, right), made)

    def compare(self, relation: str, left: Element, right: Element, scope: Scope) -> Term:
        """A comparison."""
        return self.inner.compare(relation, _plain(left), _plain(right), scope)

    def apply(self, name: str, kind: ElementType, arguments: Sequence[Value], scope: Scope) -> Element:
        """A primitive function."""
        plain = [_plain(it) if isinstance(it, Element) else it for it in arguments]
        made = self.inner.apply(name, kind, plain, scope)
        inputs = tuple(it for it in arguments if isinstance(it, Element))
        if name == "cast" and len(inputs) == 1 and _same(_value(inputs[0]), traced(made, kind).scalar):
            return Element(Explained(traced(made, kind), _tree(inputs[0])), made.type)
        return _term(name, inputs, made) if inputs else _numeral(made)

    def test(self, name: str, element: Element, scope: Scope) -> Term:
        """is_nan, is_infinite."""
        return self.inner.test(name, _plain(element), scope)

    def lift(self, sort: str, element: Element, scope: Scope) -> Number:
        """The exact value."""
        return self.inner.lift(sort, _plain(element), scope)

    def choose(self, condition: Term, left: Element, right: Element, scope: Scope) -> Element:
        """Conditions are constants here."""
        return self.inner.choose(condition, _plain(left), _plain(right), scope)

    def fold(self, name: str, terms: Sequence[tuple[int, Element]], scope: Scope) -> Element | int:
        """max and min remember all terms, of which one won."""
        made = self.inner.fold(name, [(position, _plain(it)) for position, it in terms], scope)
        return _term(name, tuple(it for _, it in terms), made) if isinstance(made, Element) else made

    def abstract(self, kind: ElementType, scope: Scope) -> Element:
        """Nothing is unknown here."""
        return self.inner.abstract(kind, scope)


def explanations(application: Application) -> Callable[[int, Index], Explanation]:
    """For any output and index the explanation of the element: shapes and views are shared.

    Raises Undefined where the application is stuck, Unsupported for rules of the machine and for what is no tensor.
    """
    operator = definition(application.op_type, application.version)
    places = positions(application, operator)
    algebra = Explaining(Tracing(tensors(application, operator)), places)
    applied = apply(application, algebra)
    shapes = frozenset(applied.scope.run.journal)
    return lambda output, index: _explanation(applied, output, index, shapes, places)


def _explanation(applied: Applied, output: int, index: Index, shapes: Reads, places: Mapping[str, int]) -> Explanation:
    run = applied.scope.run
    run.journal = set()
    try:
        found = element_at(applied, output, index)
    except RecursionError:
        raise Unsupported("the term is too deep") from None
    if isinstance(found, Element) and isinstance(found.value, Explained):
        tree, data = found.value.tree, found.value.traced.reads
    else:
        tree, data = Numeral(_number(found)), NO_READS
    return Explanation(tree, Footprint(_by_input(data, places), _by_input(shapes | run.journal, places)))


def _by_input(reads: Reads, places: Mapping[str, int]) -> dict[int, frozenset[Index]]:
    found: dict[int, set[Index]] = {}
    for name, index in reads:
        if name in places:
            found.setdefault(places[name], set()).add(index)
    return {position: frozenset(found[position]) for position in sorted(found)}


def _plain(element: Element) -> Element:
    return Element(element.value.traced, element.type) if isinstance(element.value, Explained) else element


def _tree(element: Element) -> Tree:
    if isinstance(element.value, Explained):
        return element.value.tree
    if isinstance(element.value, float):  # an attribute that is no exact number
        return Numeral(traced(element, element.type).scalar)
    raise Unsupported("an element without a term")


def _value(element: Element) -> Scalar:
    return traced(_plain(element), element.type).scalar


def _term(name: str, arguments: tuple[Element, ...], made: Element) -> Element:
    found = traced(made, made.type)
    return Element(Explained(found, Operation(name, tuple(map(_tree, arguments)), found.scalar)), made.type)


def _numeral(made: Element) -> Element:
    found = traced(made, made.type)
    return Element(Explained(found, Numeral(found.scalar)), made.type)


def _same(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _number(found: Value) -> Scalar:
    return (
        np.asarray(found) if isinstance(found, int) else np.asarray(float(found) if isinstance(found, Fraction) else 0)
    )
