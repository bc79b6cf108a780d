"""What is known of a tensor before a model runs: its element type, its sizes, and elements that follow from those."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...formulas.terms import Term
from ...model.elements import element_of
from ..symbolic.elements.known import Number, number_of
from ..symbolic.elements.opaque import Read
from ..symbolic.numbers import Int
from ..symbolic.substitution import substitute_term
from ..symbolic.values import Array, Element, ElementType, Listed, Scope, Unranked, Value

Data = NDArray[np.generic]

HERE = -1
"""Stands for the node that is examined, in what is said of several nodes at once."""
SMALL = 64
"""Tensors with at most so many elements are known element by element: shapes, axes, bounds and the like."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of a sequence or an optional. length: the number of entries. entries: in order, where they are told
    apart; else `like`: each entry is like one of these, a size VARIES being any number.
    """

    length: Int
    entries: tuple[Content, ...] | None
    like: tuple[Content, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """A tensor, or a sequence or optional: then `held` says what is in it, element is its type, and the rest is absent.

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
    held: Held | None = None
    dead: bool = False

    @property
    def size(self) -> int | None:
        """The number of elements, where all sizes are numbers."""
        if self.shape is None or any(isinstance(n, Term) for n in self.shape):
            return None
        return prod(n for n in self.shape if isinstance(n, int))

    @property
    def known(self) -> bool:
        """Whether every element is."""
        return self.data is not None or (self.entries is not None and None not in self.entries)


def value(content: Content, stem: str) -> Value:
    """The tensor, sequence or optional as the interpretation reads it. stem: as in `array`."""
    held = content.held
    if held is None:
        kind = ElementType(content.element or stem)
        return Unranked(kind) if content.shape is None else array(content, stem)
    forms = held.like if held.entries is None else held.entries
    made = tuple(value(form, f"{stem}.{k}") for k, form in enumerate(forms))
    return Listed(ElementType(content.element or stem), held.length, made, held.entries is not None)


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


def array(content: Content, stem: str) -> Array:
    """The tensor as the interpretation reads it. stem: stands for its elements instead of its own name."""
    shape = content.shape or ()
    kind = ElementType(content.element or stem)
    entries, data, law = content.entries, content.data, content.law
    if entries is None and data is None and law is None:
        return Array(stem, shape, lambda index, here: here.run.algebra.read(stem, index, kind, here), kind)

    def read(index: tuple[Int, ...], here: Scope) -> Value:
        places = tuple(i for i in index if isinstance(i, int))
        if len(places) == len(index):
            found = _entry(content, places)
            if found is not None:
                return Element(found, kind)
        return here.run.algebra.read(stem, index, kind, here) if law is None else Element(_instance(*law, index), kind)

    return Array(stem, shape, read, kind)


def _instance(variables: tuple[str, ...], term: Int | Read, index: tuple[Int, ...]) -> Int | Read:
    """What a law says of one index."""
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
