"""One element of an output with the arithmetic that gave it, by the footprint interpretation; the terms as texts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...errors import Unsupported
from ...formulas.terms import Term
from ...model.elements import is_float
from ...operators.application import Application
from ...operators.symbolic.footprint import NO_READS, Footprint, Index, Scalar, Traced, Tracing, traced
from ...operators.symbolic.numbers import Int, Number
from ...operators.symbolic.statements import Applied, apply, definition, element_at, positions, tensors
from ...operators.symbolic.values import Element, ElementType, Reads, Scope, Value
from ..display.texts import element_text


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
        element = traced(self.inner.read(name, index, kind, scope), kind)
        at = tuple(i for i in index if isinstance(i, int))
        return Element(Explained(element, Leaf(name, self.places.get(name), at, element.scalar)), kind)

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
        element = element_at(applied, output, index)
    except RecursionError:
        raise Unsupported("the term is too deep") from None
    if isinstance(element, Element) and isinstance(element.value, Explained):
        tree, data = element.value.tree, element.value.traced.reads
    else:
        tree, data = Numeral(_number(element)), NO_READS
    return Explanation(tree, Footprint(_by_input(data, places), _by_input(shapes | run.journal, places)))


def _by_input(reads: Reads, places: Mapping[str, int]) -> dict[int, frozenset[Index]]:
    by_input: dict[int, set[Index]] = {}
    for name, index in reads:
        if name in places:
            by_input.setdefault(places[name], set()).add(index)
    return {position: frozenset(by_input[position]) for position in sorted(by_input)}


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
    element = traced(made, made.type)
    return Element(Explained(element, Operation(name, tuple(map(_tree, arguments)), element.scalar)), made.type)


def _numeral(made: Element) -> Element:
    element = traced(made, made.type)
    return Element(Explained(element, Numeral(element.scalar)), made.type)


def _same(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _number(value: Value) -> Scalar:
    return (
        np.asarray(value) if isinstance(value, int) else np.asarray(float(value) if isinstance(value, Fraction) else 0)
    )


# ---- Terms as texts -------------------------------------------------------------------------------

_DEPTH: Final = 4  # operations inside of each other in one text
_LONG: Final = 3  # a sum of so many terms, or an operation on more operands, is a part of its own


def operation_text(name: str, operands: list[str]) -> str:
    """An operation with its operands."""
    if name in "+-*/" and len(operands) == 2:
        return f"{operands[0]} {name} {operands[1]}"
    return f"{name}({', '.join(operands)})"


def tree_text(
    tree: Tree, inputs: Mapping[int, str], parts: Mapping[int, str], *, whole: bool, numbers: bool = False
) -> str:
    """A term with the names of the inputs, or with the numbers in place of all names.

    parts: names of what is explained elsewhere, by id. What lies deeper than one text goes is given as its value.
    whole: the term is a part with one row, so that it is not given by its name.
    """
    return _text(tree, inputs, parts, _DEPTH, whole=whole, numbers=numbers)


def _text(
    tree: Tree, inputs: Mapping[int, str], parts: Mapping[int, str], depth: int, *, whole: bool, numbers: bool
) -> str:
    if isinstance(tree, Numeral) or (numbers and isinstance(tree, Leaf)):
        return element_text(tree.value)
    if isinstance(tree, Leaf):
        name = inputs.get(tree.position, tree.name) if tree.position is not None else tree.name
        return f"{name}{list(tree.index)}"
    if not whole and _is_part(tree, depth):
        name = parts.get(id(tree), "")
        return name if name and not numbers else element_text(tree.value)
    words = []
    for argument in tree.arguments:
        text = _text(argument, inputs, parts, depth - 1, whole=False, numbers=numbers)
        infix = isinstance(argument, Operation) and argument.name in "+-*/" and len(argument.arguments) == 2
        cut = isinstance(argument, Operation) and _is_part(argument, depth - 1)
        words.append(f"({text})" if tree.name in "+-*/" and infix and not cut else text)
    return operation_text(tree.name, words)


# ---- Parts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A term of a part. number: its position in the sum, None where the part is one term. so_far: the sum to it."""

    tree: Tree
    number: int | None
    so_far: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A term taken apart. name: "" for the whole. rows: those that are shown, the ones that matter most first where
    some are left out. left: the numbers of the others."""

    name: str
    tree: Tree
    rows: tuple[Row, ...]
    left: tuple[Row, ...]


def parts(tree: Tree, limit: int) -> tuple[Part, ...]:
    """A term in parts of at most `limit` rows in all: itself, then the sums and deep terms in it, nearest first."""
    taken: list[Part] = []
    names: dict[int, str] = {}
    work: deque[Tree] = deque((tree,))
    seen = {id(tree)}
    room = limit
    while work and room > 0:
        item = work.popleft()
        rows = rows_of(item)
        shown, left = _chosen(rows, max(room, 1))
        name = "" if item is tree else f"s{len(names)}"
        names[id(item)] = name
        taken.append(Part(name, item, shown, left))
        room -= len(shown)
        for row in shown:
            for part in _cut(row.tree, _DEPTH, whole=row.tree is item):
                if id(part) not in seen:
                    seen.add(id(part))
                    work.append(part)
    return tuple(taken)


def rows_of(tree: Tree) -> tuple[Row, ...]:
    """The terms of a sum in the order in which they are added, each with the sum so far, or the operands of a long
    operation; the tree alone where it is neither."""
    if isinstance(tree, Operation) and len(tree.arguments) > _LONG:
        return tuple(Row(it, number) for number, it in enumerate(tree.arguments))
    terms = sums(tree)
    if len(terms) == 1:
        return (Row(tree, None, tree.value),)
    return tuple(Row(term, number, so_far) for number, (term, so_far) in enumerate(terms))


def sums(tree: Tree) -> tuple[tuple[Tree, Scalar], ...]:
    """The terms of a sum in the order in which they are added, each with the sum so far; the tree alone where it is
    none."""
    partial_sums: list[tuple[Tree, Scalar]] = []
    while isinstance(tree, Operation) and tree.name == "+" and len(tree.arguments) == 2:
        partial_sums.append((tree.arguments[1], tree.value))
        tree = tree.arguments[0]
    return ((tree, tree.value), *reversed(partial_sums))


def _is_part(tree: Operation, depth: int) -> bool:
    """True where a term inside of another one is taken out of its text."""
    return depth <= 0 or len(tree.arguments) > _LONG or (tree.name == "+" and len(sums(tree)) >= _LONG)


def _cut(tree: Tree, depth: int, *, whole: bool = False) -> Iterator[Operation]:
    """The parts that are taken out of the text of a term."""
    if not isinstance(tree, Operation):
        return
    if not whole and _is_part(tree, depth):
        yield tree
        return
    for argument in tree.arguments:
        yield from _cut(argument, depth - 1)


def _chosen(rows: tuple[Row, ...], room: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """All rows, or those that matter most: where the sum ceases to be finite, what is not finite, then the largest."""
    if len(rows) <= room:
        return rows, ()
    wide = [_magnitude(row.tree.value) for row in rows]
    breaks = next((i for i, row in enumerate(rows) if row.so_far is not None and not _finite(row.so_far)), -1)
    order = sorted(range(len(rows)), key=lambda i: (i != breaks, np.isfinite(wide[i]), -wide[i], i))
    return tuple(rows[i] for i in order[:room]), tuple(rows[i] for i in sorted(order[room:]))


def _finite(value: Scalar) -> bool:
    return bool(np.isfinite(_magnitude(value)))


def _magnitude(value: Scalar) -> float:
    """The magnitude; infinite where it is no number."""
    if value.dtype == object or not (is_float(value.dtype) or value.dtype.kind in "iubc"):
        return 0.0
    wide = abs(complex(value.astype(np.complex128)))
    return float("inf") if np.isnan(wide) else float(wide)


def left_out(part: Part) -> str:
    """Which rows are left out, and how large the largest of them is; "" where none is."""
    if not part.left:
        return ""
    spans: list[list[int]] = []
    for row in part.left:
        number = row.number or 0
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in spans]
    some = ", ".join(texts[:8]) + (" ..." if len(texts) > 8 else "")
    largest = max(_magnitude(row.tree.value) for row in part.left)
    count = "one term" if len(part.left) == 1 else f"{len(part.left)} terms"
    of = f" of {part.name}" if part.name else ""
    return f"{count}{of} left out ({some}), none larger than {largest:.4g} in magnitude"
