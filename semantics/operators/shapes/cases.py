"""One of several: what is known of a tensor that is one thing or another, by cases that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...formulas.terms import Term
from ..symbolic.elements.known import Number
from ..symbolic.numbers import Int, choose
from .contents import HERE, Content, Held, entries_of

Simplify = Callable[[Int, str], Int]
"""A size or entry as a small term; the text says which one it is."""


def joined(cases: Sequence[tuple[Term, Content]], simplify: Simplify) -> Content:
    """What is known of the content that is the one whose condition holds; one of them does.

    Sizes and entries become alternatives. Where the cases differ in the number of axes, that is open, and data decide
    it at the node that is examined.
    """
    cases = [(condition, content) for condition, content in cases if not content.dead] or cases[:1]
    contents = [content for _, content in cases]
    first = contents[0]
    if all(_same(first, other) for other in contents[1:]):
        return first
    element = first.element if len({content.element for content in contents}) == 1 else ""
    if any(content.held is not None for content in contents):
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
    return Content("", element, shape, _entries(cases, simplify))


def _same(left: Content, right: Content) -> bool:
    return (
        left.shape == right.shape
        and left.element == right.element
        and left.entries == right.entries
        and left.data is right.data
        and left.law == right.law
        and left.made == right.made
        and left.reason == right.reason
        and left.held == right.held
    )


def _lists(cases: Sequence[tuple[Term, Content]], simplify: Simplify) -> Content:
    """One sequence or optional or another; a value that is no optional counts as one that holds it beside optionals."""
    contents = [content for _, content in cases]
    optional = next((content.element for content in contents if content.element.startswith("optional_")), "")
    if optional:
        contents = [c if c.element.startswith("optional_") else held_one(c, optional) for c in contents]
    rows = [content.held for content in contents if content.held is not None]
    if len(rows) < len(contents) or len({content.element for content in contents}) > 1:
        return Content("", "", None, reason="it has one type or another")
    length = simplify(_alternative([(c, row.length) for (c, _), row in zip(cases, rows, strict=True)]), "length")
    forms = dict.fromkeys(form for row in rows for form in (row.like if row.entries is None else row.entries))
    return Content("", contents[0].element, None, held=Held(length, None, tuple(forms)))


def held_one(content: Content, kind: str) -> Content:
    """The optional of this type that holds a value."""
    return Content(content.name, kind, None, held=Held(1, (replace(content, entries=None, data=None, law=None),)))


def _alternative(cases: Sequence[tuple[Term, Int]]) -> Int:
    """The number of the case whose condition holds."""
    *front, (_, number) = cases
    for condition, other in reversed(front):
        number = choose(condition, other, number)
    return number


def _entries(cases: Sequence[tuple[Term, Content]], simplify: Simplify) -> tuple[Number | None, ...] | None:
    rows = [entries_of(content) for _, content in cases]
    known = [row for row in rows if row is not None]
    if len(known) < len(rows) or len({len(row) for row in known}) > 1:
        return None
    truths = any(content.element == "bool" for _, content in cases)
    found: list[Number | None] = []
    for k, items in enumerate(zip(*known, strict=True)):
        numbers = [item for item in items if isinstance(item, int | Term)]
        if len(numbers) < len(items) or truths:
            found.append(items[0] if all(item == items[0] for item in items) else None)
        else:
            conditions = [condition for condition, _ in cases]
            found.append(simplify(_alternative(list(zip(conditions, numbers, strict=True))), f"entry.{k}"))
    return tuple(found) if any(item is not None for item in found) else None
