"""Contents: what is known of a tensor before a model runs: element type, sizes, and elements that follow from those."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.elaborate.core import Core, CoreOperator

from ...formulas.terms import Term
from ...model.elements import element_of
from ...model.graph import NodeId, TensorId
from ..application import AttributeData
from ..symbolic import values
from ..symbolic.elements.known import Number, number_of
from ..symbolic.elements.opaque import Read
from ..symbolic.numbers import Int, Real, choose, substitute_term

Data = NDArray[np.generic]


HERE = -1
"""Stands for the node that is examined, in what is said of several nodes at once."""


SMALL = 64
"""Tensors with at most so many elements are known element by element: shapes, axes, bounds and the like."""


@dataclass(frozen=True, slots=True)
class Items:
    """The knowledge of a sequence or an optional. length: the number of entries. entries: in order, where they are told
    apart; else `like`: each entry is like one of these, a size VARIES being any number.
    """

    length: Int
    entries: tuple[Content, ...] | None
    like: tuple[Content, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """A tensor, or a sequence or optional: then `items` says what is in it, element is its type, the rest is absent.

    name: stands for its elements in formulas. element: "" where it is open. shape: None where the rank is.

    entries: the elements, row-major, None for one that is not known. data: all of them, of a constant. law: what stands
    at any index, as variables for the index and a term, or the element of another tensor. reason: why the shape is
    open. made: where data decide the number of axes, the node that gives the tensor; None where it is open for another
    reason. dead: no run gets so far that it has a value.
    """

    name: str
    element: str
    shape: tuple[Int, ...] | None
    entries: tuple[Number | None, ...] | None = None
    data: Data | None = None
    law: tuple[tuple[str, ...], Int | Read] | None = None
    reason: str = ""
    made: int | None = None
    items: Items | None = None
    dead: bool = False

    @property
    def size(self) -> int | None:
        """The number of elements, where all sizes are numbers."""
        if self.shape is None or any(isinstance(n, Term) for n in self.shape):
            return None
        return prod(n for n in self.shape if isinstance(n, int))

    @property
    def known(self) -> bool:
        """True if every element is."""
        return self.data is not None or (self.entries is not None and None not in self.entries)


def value(content: Content, stem: str) -> values.Value:
    """The tensor, sequence or optional as the interpretation reads it. stem: as in `array`."""
    items = content.items
    if items is None:
        kind = values.ElementType(content.element or stem)
        return values.Unranked(kind) if content.shape is None else array(content, stem)
    forms = items.like if items.entries is None else items.entries
    made = tuple(value(form, f"{stem}.{k}") for k, form in enumerate(forms))
    return values.Listed(values.ElementType(content.element or stem), items.length, made, items.entries is not None)


def constant(name: str, data: Data) -> Content:
    """A tensor whose elements are there."""
    return Content(name, element_of(data.dtype), data.shape, None, data)


def entries_of(content: Content) -> tuple[Number | None, ...] | None:
    """The elements of a small tensor of integers or truth values, where they are known."""
    data = content.data
    if data is None:
        return content.entries
    if data.size > SMALL or data.dtype.kind not in "iub":
        return None
    return tuple(int(item) for item in data.reshape(-1))


def array(content: Content, stem: str) -> values.Array:
    """The tensor as the interpretation reads it. stem: stands for its elements instead of its own name."""
    shape = content.shape or ()
    kind = values.ElementType(content.element or stem)
    entries, data, law = content.entries, content.data, content.law
    if entries is None and data is None and law is None:
        return values.Array(stem, shape, lambda index, here: here.run.algebra.read(stem, index, kind, here), kind)

    def read(index: tuple[Int, ...], here: values.Scope) -> values.Value:
        places = tuple(i for i in index if isinstance(i, int))
        if len(places) == len(index):
            entry = _entry(content, places)
            if entry is not None:
                return values.Element(entry, kind)
        return (
            here.run.algebra.read(stem, index, kind, here)
            if law is None
            else values.Element(_instance(*law, index), kind)
        )

    return values.Array(stem, shape, read, kind)


def _instance(variables: tuple[str, ...], term: Int | Read, index: tuple[Int, ...]) -> Int | Read:
    """The word of a law on one index."""
    if isinstance(term, Read):
        return Read(term.name, tuple(cast("Int", _instance(variables, place, index)) for place in term.index))
    for variable, position in zip(variables, index, strict=True):
        term = substitute_term(term, Term(variable), position)
    return term


def _entry(content: Content, index: tuple[int, ...]) -> Number | float | None:
    shape = [n for n in content.shape or () if isinstance(n, int)]
    if len(shape) != len(index) or not all(0 <= i < n for i, n in zip(index, shape, strict=True)):
        return None
    if content.data is not None:
        return number_of(content.data[index], content.element)
    place = 0
    for i, n in zip(index, shape, strict=True):
        place = place * n + i
    return None if content.entries is None else content.entries[place]


def places(shape: tuple[Int, ...]) -> list[tuple[int, ...]]:
    """Every index of a shape of numbers, row-major."""
    return list(product(*(range(n) for n in shape if isinstance(n, int))))


# What is known while one node is examined, and what comes of it.

HEADER = -1
"""The position of what the header says of the inputs' shapes, before the first statement."""


DECLARED = -2
"""The position of the rule that outputs have the shapes which the model declares."""


TYPED = -3
"""The position of the rule that outputs have the element types which the model declares."""


SIZED = -5
"""The position of the rule that sizes are as small as everything here takes them to be."""


STEP = -4
"""The position of what the rule of part 3 asks of a node that holds graphs."""


FOLDED = 1 << 20
"""Constants with at most so many elements are computed where all inputs are constants."""


Symbols = Mapping[str, tuple[int, str]]


Facts = tuple[Term, ...]


Possible = Callable[[Facts, Symbols], bool]
"""True if facts can hold together; true where that is not known."""


OPEN = "open"
"""The decision of a split where it need not be decided."""


LARGE = 16
"""A size of more operations than this, or one with alternatives, gets a symbol that a fact defines."""


@dataclass(frozen=True, slots=True)
class Site:
    """A node with what is known of its inputs, by position; None for one that is absent. attributes: numbers may be
    symbols."""

    operator: CoreOperator
    version: int
    inputs: tuple[Content | None, ...]
    attributes: Mapping[str, AttributeData | Term | tuple[Term, ...]]
    outputs: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Demand:
    """A requirement at a node. position: of the statement in the text, or HEADER. goal: None where it could not be
    brought into a formula, for a reason, which may be about a term; made: the node where data decide that, None where
    it is for another reason. facts: what holds when the requirement is asked.
    """

    position: int
    goal: Term | None
    facts: Facts = ()
    reason: str = ""
    about: Term | None = None
    made: int | None = None


@dataclass(frozen=True, slots=True)
class Examined:
    """The text's word on a site. facts: what holds behind it. symbols: that it introduces."""

    demands: tuple[Demand, ...]
    outputs: tuple[Content | None, ...]
    facts: Facts
    symbols: Symbols


@dataclass(slots=True)
class Examining:
    """An examination under way: what is in scope, and what holds by now.

    without_value: what the text names has no value for these very sizes and attributes. observe: is told each
    requirement that was evaluated, by position, before anything follows from it.
    """

    site: Site
    run: values.Evaluation
    env: values.Env
    facts: Facts
    possible: Possible
    demands: list[Demand] = field(default_factory=list)
    violated: bool = False
    about: Term | None = None
    made: int | None = None
    without_value: bool = False
    observe: Callable[[int, Core, Examining], None] | None = None


def learn(walk: Examining, *terms: Term) -> None:
    """Add what holds from here on."""
    known = set(walk.facts)
    new = [part for term in terms for part in values.conjuncts(term) if part not in known]
    if new:
        walk.facts = (*walk.facts, *dict.fromkeys(new))
        walk.run.path = walk.facts


# From the names within a definition to those within the model: `indices.Int(0)` at a node is `t7.Int(0)` anywhere.

ELEMENT = re.compile(r"t\d+\.(Int|Real|Bool)$")
"""The symbol of the elements of a tensor, which are the same wherever it is read."""


def tensors(site: Site) -> Mapping[str, str]:
    """The name in the model of each input, by its name in the definition."""
    stems: dict[str, str] = {}
    for position, port in enumerate(site.operator.inputs):
        if port.mark == "*":
            actual = [content for content in site.inputs[position:] if content is not None]
            stems |= {f"{port.name}.{k}": content.name for k, content in enumerate(actual)}
        elif position < len(site.inputs):
            content = site.inputs[position]
            stems |= {port.name: content.name} if content is not None else {}
    return stems


def names(n: NodeId, outputs: Sequence[TensorId | None], site: Site, examined: Examined) -> Mapping[str, str]:
    """The name in the model of each symbol that the examination of node n, with these outputs, has introduced."""
    symbols = examined.symbols
    if not symbols:
        return {}
    stems, given = tensors(site), {}
    ports = site.operator.outputs
    for position, t in enumerate(outputs):
        if ports and t is not None:
            port, number = ports[min(position, len(ports) - 1)], position - len(ports) + 1
            given[f"{port.name}.{number}" if port.mark == "*" else port.name] = f"t{t}"
    spellings: dict[str, str] = {}
    for t, content in zip(outputs, examined.outputs, strict=True):
        for axis, size in enumerate((content.shape if content is not None else None) or ()):
            if t is not None and isinstance(size, Term) and not size.args and size.op in symbols:
                spellings.setdefault(size.op, f"t{t}.size.{axis}")  # what data decide is called by the size that it is
    for symbol in symbols.keys() - spellings.keys():
        if ELEMENT.match(symbol):
            continue
        stem, _, sort = symbol.rpartition(".")
        part = re.fullmatch(r"(.+)\.(size|entry)\.(\d+)", symbol)
        if part is not None and part[1] in given:
            spellings[symbol] = f"{given[part[1]]}.{part[2]}.{part[3]}"
        else:
            spellings[symbol] = f"{stems[stem]}.{sort}" if stem in stems else f"n{n}.{symbol}"
    return spellings


def renamed(examined: Examined, new: Mapping[str, str], stems: Mapping[str, str] | None = None) -> Examined:
    """The same with other names of symbols. stems: of tensors whose elements are spoken of."""
    stems = stems or {}
    if not new and not stems:
        return examined
    return Examined(
        tuple(
            replace(
                d,
                goal=None if d.goal is None else _term(d.goal, new),
                facts=tuple(_term(f, new) for f in d.facts),
                about=None if d.about is None else _term(d.about, new),
            )
            for d in examined.demands
        )
        if new
        else examined.demands,
        tuple(None if content is None else _content(content, new, stems) for content in examined.outputs),
        tuple(_term(fact, new) for fact in examined.facts),
        {new.get(name, name): signature for name, signature in examined.symbols.items()},
    )


def plain(content: Content | None) -> bool:
    """What is known of a tensor mentions the elements of none."""
    return content is None or (content.entries is None and content.law is None and content.items is None)


def _content(content: Content, new: Mapping[str, str], stems: Mapping[str, str]) -> Content:
    shape, entries = content.shape, content.entries
    if not new and plain(content):
        return content
    if shape is not None:
        shape = tuple(_term(n, new) if isinstance(n, Term) else n for n in shape)
    if entries is not None:
        entries = tuple(_number(item, new, stems) for item in entries)
    law = content.law
    if law is not None:
        variables, term = law
        law = tuple(new.get(v, v) for v in variables), cast("Int | Read", _number(term, new, stems))
    items = content.items
    if items is not None:
        told = None if items.entries is None else tuple(_content(entry, new, stems) for entry in items.entries)
        length = _term(items.length, new) if isinstance(items.length, Term) else items.length
        items = Items(length, told, tuple(_content(form, new, stems) for form in items.like))
    return replace(content, shape=shape, entries=entries, law=law, items=items)


def _number(item: Number | None, new: Mapping[str, str], stems: Mapping[str, str]) -> Number | None:
    match item:
        case Read(name, index):
            return Read(stems.get(name, name), tuple(_term(i, new) if isinstance(i, Term) else i for i in index))
        case Term():
            return _term(item, new)
        case Real(inner):
            return Real(_term(inner, new))
        case _:
            return item


def _term(term: Term, new: Mapping[str, str]) -> Term:
    """A term with other symbols, bound ones included: they are named as they stand."""
    args = tuple(
        _term(part, new) if isinstance(part, Term) else new.get(part, part) if isinstance(part, str) else part
        for part in term.args
    )
    op = new.get(term.op, term.op)
    return term if op == term.op and args == term.args else Term(op, args)


def mentioned(term: Term) -> frozenset[str]:
    """The operators and symbols of a term."""
    mentions = {term.op}
    for part in term.args:
        if isinstance(part, Term):
            mentions |= mentioned(part)
        elif isinstance(part, str):
            mentions.add(part)
    return frozenset(mentions)


# One of several: what is known of a tensor that is one thing or another, by cases that exclude each other.

Simplify = Callable[[Int, str], Int]
"""A size or entry as a small term; the text says which one it is."""


def joined(cases: Sequence[tuple[Term, Content]], simplify: Simplify) -> Content:
    """The knowledge of the content that is the one whose condition holds; one of them does.

    Sizes and entries become alternatives. Where the cases differ in the number of axes, that is open, and data decide
    it at the node that is examined.
    """
    cases = [(condition, content) for condition, content in cases if not content.dead] or cases[:1]
    contents = [content for _, content in cases]
    first = contents[0]
    if all(_same(first, other) for other in contents[1:]):
        return first
    element = first.element if len({content.element for content in contents}) == 1 else ""
    if any(content.items is not None for content in contents):
        return _lists(cases, simplify)
    shapes = [content.shape for content in contents if content.shape is not None]
    if len(shapes) < len(contents):
        unranked = [content for content in contents if content.shape is None]
        worst = next((content for content in unranked if content.made is None), unranked[0])
        return Content("", element, None, reason=worst.reason, made=worst.made)
    if len({len(shape) for shape in shapes}) > 1:
        return Content("", element, None, reason="data decide the number of axes", made=HERE)
    shape = tuple(
        simplify(_alternative([(c, sizes[k]) for k, (c, _) in enumerate(cases)]), f"size.{axis}")
        for axis, sizes in enumerate(zip(*shapes, strict=True))
    )
    return Content("", element, shape, _common_entries(cases, simplify))


def _same(left: Content, right: Content) -> bool:
    return (
        left.shape == right.shape
        and left.element == right.element
        and left.entries == right.entries
        and left.data is right.data
        and left.law == right.law
        and left.made == right.made
        and left.reason == right.reason
        and left.items == right.items
    )


def _lists(cases: Sequence[tuple[Term, Content]], simplify: Simplify) -> Content:
    """One sequence or optional or another; a value that is no optional counts as one that holds it beside optionals."""
    contents = [content for _, content in cases]
    optional = next((content.element for content in contents if content.element.startswith("optional_")), "")
    if optional:
        contents = [c if c.element.startswith("optional_") else held_one(c, optional) for c in contents]
    rows = [content.items for content in contents if content.items is not None]
    unknown = next((content for content in contents if content.items is None and content.reason), None)
    if unknown is not None:
        return Content("", "", None, reason=unknown.reason, made=unknown.made)
    if len(rows) < len(contents) or len({content.element for content in contents}) > 1:
        return Content("", "", None, reason="it has one type or another")
    length = simplify(_alternative([(c, row.length) for (c, _), row in zip(cases, rows, strict=True)]), "length")
    forms = dict.fromkeys(form for row in rows for form in (row.like if row.entries is None else row.entries))
    return Content("", contents[0].element, None, items=Items(length, None, tuple(forms)))


def held_one(content: Content, kind: str) -> Content:
    """The optional of this type that holds a value."""
    return Content(content.name, kind, None, items=Items(1, (replace(content, entries=None, data=None, law=None),)))


def _alternative(cases: Sequence[tuple[Term, Int]]) -> Int:
    """The number of the case whose condition holds."""
    *front, (_, number) = cases
    for condition, other in reversed(front):
        number = choose(condition, other, number)
    return number


def _common_entries(cases: Sequence[tuple[Term, Content]], simplify: Simplify) -> tuple[Number | None, ...] | None:
    rows = [entries_of(content) for _, content in cases]
    known = [row for row in rows if row is not None]
    if len(known) < len(rows) or len({len(row) for row in known}) > 1:
        return None
    truths = any(content.element == "bool" for _, content in cases)
    common: list[Number | None] = []
    for k, items in enumerate(zip(*known, strict=True)):
        numbers = [item for item in items if isinstance(item, int | Term)]
        if len(numbers) < len(items) or truths:
            common.append(items[0] if all(item == items[0] for item in items) else None)
        else:
            conditions = [condition for condition, _ in cases]
            common.append(simplify(_alternative(list(zip(conditions, numbers, strict=True))), f"entry.{k}"))
    return tuple(common) if any(item is not None for item in common) else None
