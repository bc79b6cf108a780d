"""What can be seen as a tree: an item says what it is in one line, its parts are made when they are asked for.

Items name what they show, they do not hold it: the parts of an item are those that a session has where it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sonnx.spec.terminal.inert import one_line

from ...model.path import quote
from ..session.session import Session
from ..timeline.names import Instance

WIDTH: Final = 100
"""So many parts are shown side by side; more are put into ranges."""
EFFORT: Final = 1 << 21
"""So many elements are looked at for the items of one page."""
NONE: Final = "\u22a5"
"""What has no value."""
SMALL: Final = 8
"""So many elements, or names, are shown one by one."""
_NAME: Final = 200
_DIGITS: Final = 20
_RESERVED: Final = frozenset(("nan", "inf", "true", "false", "and", "or", "not"))


@dataclass(frozen=True, slots=True)
class View:
    """How items are shown. hexadecimal: whole numbers as bits, floats as hexadecimal floats. effort: how many elements
    one item may look at."""

    hexadecimal: bool = False
    effort: int = EFFORT


@dataclass(frozen=True, slots=True)
class Item:
    """name, value, type: texts. expression: which asks for the same, "" where none does. kind: data for what the model
    has, virtual for what is told about it. tensor: the tensor that it is. line: of the listing, where it gets its value
    or stands. about: of the listing, what its value points to. operator: name and version, where it is one.
    bytes: it is a tensor that has a value. memory: it is M. lazy: the value was not made: it is the one part.
    editable: `set` can change it. inside: its parts.
    """

    name: str
    value: str
    type: str = ""
    expression: str = ""
    kind: str = "data"
    tensor: Instance | None = None
    line: int | None = None
    about: int | None = None
    operator: tuple[str, int] | None = None
    bytes: bool = False
    memory: bool = False
    lazy: bool = False
    editable: bool = False
    inside: Parts | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """named: the parts that have names, few. count: how many numbered ones there are. numbered: some of those, from a
    position on."""

    named: Callable[[Session, View], tuple[Item, ...]]
    count: int = 0
    numbered: Callable[[Session, View, int, int], tuple[Item, ...]] = lambda *_: ()


def page(session: Session, parts: Parts, view: View, start: int, count: int) -> tuple[Item, ...]:
    """Numbered parts from a position on, not more than there are; what they may cost is shared among them."""
    start, count = max(start, 0), max(min(count, parts.count - start), 0)
    shared = View(view.hexadecimal, max(view.effort // max(count, 1), SMALL))
    return parts.numbered(session, shared, start, count) if count else ()


def grouped(session: Session, parts: Parts, view: View) -> tuple[Item, ...]:
    """All numbered parts for who asks for all: themselves, or ranges of them."""
    return _ranges(session, parts, view, 0, parts.count)


def ranges(first: int, count: int) -> tuple[tuple[int, int], ...]:
    """At most 100 ranges (first, count) of as many as 100 to some power, that make up a range of more than 100."""
    size = WIDTH
    while size * WIDTH < count:
        size *= WIDTH
    return tuple((at, min(size, first + count - at)) for at in range(first, first + count, size))


def _ranges(session: Session, parts: Parts, view: View, first: int, count: int) -> tuple[Item, ...]:
    if count <= WIDTH:
        return page(session, parts, view, first, count)
    return tuple(
        Item(f"[{at}..{at + size - 1}]", "", kind="virtual", inside=_within(parts, at, size))
        for at, size in ranges(first, count)
    )


def _within(parts: Parts, first: int, count: int) -> Parts:
    return Parts(lambda session, view: _ranges(session, parts, view, first, count))


def many(
    session: Session,
    numbers: Sequence[int],
    make: Callable[[Session, int, View], Item | None],
    label: Callable[[Session, int], str],
    view: View,
    kept: Callable[[Session, Sequence[int]], bool] = lambda *_: True,
    first: int = 0,
) -> tuple[Item, ...]:
    """An item for each number that has one, or ranges of them. kept: whether a range has anything to show."""
    if len(numbers) <= WIDTH:
        shared = View(view.hexadecimal, max(view.effort // max(len(numbers), 1), SMALL))
        return tuple(item for it in numbers if (item := make(session, it, shared)) is not None)

    def within(part: Sequence[int], at: int) -> Parts:
        return Parts(lambda now, how: many(now, part, make, label, how, kept, at))

    found = []
    for at, size in ranges(first, len(numbers)):
        part = numbers[at - first : at - first + size]
        if kept(session, part):
            text = f"{shown_name(label(session, part[0]))} .. {shown_name(label(session, part[-1]))}"
            found.append(Item(f"[{at}..{at + size - 1}]", text, kind="virtual", inside=within(part, at)))
    return tuple(found)


# ---- Names ------------------------------------------------------------------------------------


def shown_name(name: str) -> str:
    """A name of a model on one line, harmless and not too long."""
    text = one_line(name)
    return text if len(text) <= _NAME else f"{text[:_NAME]}... {len(text) - _NAME} more"


def said(name: str) -> str:
    """The name of a tensor in the language of expressions."""
    plain = name.isascii() and name.isidentifier() and name not in _RESERVED
    return name if plain else quote(name)


def distinct(items: Iterable[Item]) -> tuple[Item, ...]:
    """The items, those with a name that was there before under another one."""
    seen: set[str] = set()
    found = []
    for item in items:
        name, number = item.name, 1
        if name in seen and item.tensor is not None:
            name = f"{item.name} ({item.tensor.path})"
        while name in seen:
            number += 1
            name = f"{item.name} ({number})"
        seen.add(name)
        found.append(item if name == item.name else replace(item, name=name))
    return tuple(found)


def part_named(session: Session, parts: Parts, name: str) -> Item | None:
    """The part of that name, of those that are shown side by side with it."""
    for item in distinct(parts.named(session, View(effort=SMALL))):
        if item.name == name:
            return item
    if name[:1] == "[" and name[-1:] == "]" and name[1:-1].isdecimal() and len(name) < _DIGITS:
        found = page(session, parts, View(), int(name[1:-1]), 1)
        return next((item for item in found if item.name == name), None)
    return None
