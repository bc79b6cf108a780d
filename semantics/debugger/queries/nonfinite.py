"""Why an element is not a number, or infinite: where it was generated, its way from there, and where it is killed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...model.elements import is_float
from ...model.values import Array
from ..display.texts import element_text
from .explaining import Operation, Tree, operation_text
from .sources import Element, Source, Sources

_LONGEST: Final = 100_000
_LOOKED: Final = 5000


@dataclass(frozen=True, slots=True)
class Link:
    """One element on the way. kind: Generated, Propagated, Copied, Killed, Given.

    at: the moment to which its write led. why: the operation, with its operands.
    """

    kind: str
    element: Element
    value: str
    at: int | None
    node: str
    why: str = ""


def nonfinite_kind(value: Array | None) -> str:
    """nan, inf, or "" for other elements."""
    if value is None or not (is_float(value.dtype) or value.dtype.kind == "c"):
        return ""
    wide = value.astype(np.complex128)
    return "nan" if bool(np.isnan(wide)) else "inf" if bool(np.isinf(wide)) else ""


def chain(sources: Sources, start: Element, interrupted: Callable[[], bool] = lambda: False) -> tuple[Link, ...]:
    """From an element that is nan or infinite back to where that was generated, or to what was given.

    For any other element: what is not finite among all that it was computed of, and the node that killed it.
    """
    what = nonfinite_kind(_scalar(sources, start))
    return tuple(_back(sources, start, what) if what else _killed(sources, start, interrupted))


def _back(sources: Sources, element: Element, what: str) -> Iterator[Link]:
    for _ in range(_LONGEST):
        found = sources.of(element)
        value = _scalar(sources, element)
        shown = "" if value is None else element_text(value)
        node = _node(sources, found)
        if found.at is None:
            yield Link("Given", element, shown, None, "", "it was there from the start")
            return
        before = [it for it in found.data if nonfinite_kind(_scalar(sources, it)) == what]
        if not before:
            yield Link("Generated", element, shown, found.at, node, _generated(found, what))
            return
        rest = f", and {len(before) - 1} more" if len(before) > 1 else ""
        kind = "Copied" if found.copied else "Propagated"
        yield Link(kind, element, shown, found.at, node, f"from {text_of(before[0])}{rest}")
        element = before[0]


def _generated(found: Source, what: str) -> str:
    """The operation whose operands are not strange in this way."""
    if found.whole or found.tree is None:
        return found.whole
    tree = _first(found.tree, what)
    if not isinstance(tree, Operation):
        return f"an attribute of the node is {what}"
    operands = [element_text(it.value) for it in tree.arguments]
    return f"{operation_text(tree.name, operands)} = {element_text(tree.value)}"


def _first(tree: Tree, what: str) -> Tree | None:
    """The deepest operation that gives what its operands are not, the one that is carried out first."""
    found: Tree | None = None
    stack = [tree]
    while stack:
        item = stack.pop()
        if nonfinite_kind(item.value) != what or not isinstance(item, Operation):
            continue
        inner = [it for it in item.arguments if nonfinite_kind(it.value) == what]
        if not inner:
            found = item
        else:
            stack.append(inner[0])
    return found


def _killed(sources: Sources, start: Element, interrupted: Callable[[], bool]) -> Iterator[Link]:
    seen: set[Element] = set()
    work = deque((start,))
    while work and len(seen) < _LOOKED and not interrupted():
        element = work.popleft()
        if element in seen:
            continue
        seen.add(element)
        found = sources.of(element)
        for read in (*found.data, *found.control):
            what = nonfinite_kind(_scalar(sources, read))
            if not what:
                work.append(read)
                continue
            value, own = _scalar(sources, read), _scalar(sources, element)
            how = "it decided only" if read not in found.data else "its value went into the result"
            why = f"{text_of(read)} = {'' if value is None else element_text(value)} was read: {how}"
            yield Link(
                "Killed", element, "" if own is None else element_text(own), found.at, _node(sources, found), why
            )


def _scalar(sources: Sources, element: Element) -> Array | None:
    value = sources.value(element.instance)
    if element.index is None or not isinstance(value, np.ndarray):
        return None
    return np.asarray(value[element.index], value.dtype)


def _node(sources: Sources, found: Source) -> str:
    came = None if found.at is None else sources.history.at(found.at).came
    return "" if came is None else came.path


def text_of(element: Element) -> str:
    """An element as people write it."""
    return element.instance.path + ("" if element.index is None else str(list(element.index)))
