"""Transitive origins: the elements that one element was computed from, what is merely moved passed over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ...model.graph import TensorId
from ...model.values import Value
from ..timeline.names import Instance, stored_place
from .sources import Element, Index, Source, Sources

LIMIT: Final = 20_000
_COPIES: Final = 10_000
"""So many elements are followed at most."""


@dataclass(frozen=True, slots=True)
class Part:
    """Elements of one tensor. kind: input, stored, constant or computed. whole: all of it, as far as is known."""

    instance: Instance
    kind: str
    elements: tuple[Index, ...]
    shape: tuple[int, ...] | None
    whole: bool = False

    @property
    def box(self) -> tuple[tuple[int, int], ...]:
        """For each axis the least and the greatest position."""
        return tuple((min(axis), max(axis)) for axis in zip(*self.elements, strict=True))


@dataclass(frozen=True, slots=True)
class Origin:
    """data: by tensor, what values went into the element; control: what decided. steps: the moments on the way.

    cut: whether the search ended before all were
    followed: the elements reached are among the parts. inexact: for which nodes all inputs were taken, and why.
    """

    data: tuple[Part, ...]
    control: tuple[Part, ...]
    steps: tuple[int, ...]
    cut: bool
    inexact: tuple[str, ...]


Interrupted = Callable[[], bool]


def origin(
    sources: Sources, start: Element, depth: int | None = None, interrupted: Interrupted = lambda: False
) -> Origin:
    """The origin of an element, back to what was there from the start, or through so many computing nodes.

    What decided is followed too: it decides about all that comes after it.
    """
    ends: dict[bool, set[Element]] = {True: set(), False: set()}
    inexact: dict[str, None] = {}
    steps: set[int] = set()
    seen: dict[tuple[Element, bool], int] = {}
    work = deque([(start, True, 0)])
    cut = False
    while work:
        element, is_data, level = work.popleft()
        known = seen.get((element, is_data))
        if known is not None and known <= level:
            continue
        if len(seen) >= LIMIT or interrupted():
            cut = True
            ends[is_data].add(element)
            for left, was_data, _ in work:
                ends[was_data].add(left)
            break
        seen[element, is_data] = level
        found = sources.of(element)
        alone = not found.data and not found.control
        if found.at is None or alone or (depth is not None and level >= depth and not found.copied):
            ends[is_data].add(element)
            continue
        steps.add(found.at)
        if found.whole:
            came = sources.history.at(found.at).came
            inexact[f"{came.path if came is not None else ''}: {found.whole}"] = None
        after = level if found.copied else level + 1
        work.extend((it, is_data, after) for it in found.data)
        work.extend((it, False, after) for it in found.control)
    return Origin(_parts(sources, ends[True]), _parts(sources, ends[False]), tuple(sorted(steps)), cut, tuple(inexact))


def _parts(sources: Sources, elements: Iterable[Element]) -> tuple[Part, ...]:
    found: dict[Instance, set[Index | None]] = {}
    first, tensors = sources.history.at(0).state, sources.history.model.tensors
    for element in elements:
        instance = element.instance
        if stored_place(first, instance.tensor) is not None:  # the same in all runs of its graph
            instance = Instance(instance.tensor, tensors[instance.tensor].path)
        found.setdefault(instance, set()).add(element.index)
    return tuple(_part(sources, instance, found[instance]) for instance in sorted(found, key=lambda it: it.path))


def _part(sources: Sources, instance: Instance, indices: set[Index | None]) -> Part:
    value = sources.value(instance)
    shape = getattr(value, "shape", None)
    elements = tuple(sorted(it for it in indices if it is not None))
    whole = None in indices or (shape is not None and len(elements) == _size(value))
    return Part(instance, _kind(sources, instance.tensor, instance), elements, shape, whole)


def _kind(sources: Sources, t: TensorId, instance: Instance) -> str:
    at = sources.written(instance)
    came = None if at is None else sources.history.at(at).came
    if came is not None:
        return "computed" if sources.history.model.nodes[came.node].inputs else "constant"
    model = sources.history.model
    graph = model.graphs[model.tensors[t].graph]
    return "input" if t in graph.inputs and graph.holder is None else "stored"


def _size(value: Value | None) -> int:
    return int(getattr(value, "size", -1))


def through_copies(sources: Sources, element: Element) -> tuple[Element, Source]:
    """The element that one is a copy of, and the source of that: copies on the way are passed over."""
    for _ in range(_COPIES):
        found = sources.of(element)
        if not found.copied:
            return element, found
        element = found.data[0]
    return element, sources.of(element)
