"""The footprint interpretation: the input elements that one element of an output reads, data and control apart.

A data read is an element whose value went into the result; a control read is one that decided what was read: in a
condition, an index, a shape, or as the loser of a maximum. An element can be both. Views, local functions and operators
that the text applies are followed to the inputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..application import Application
from .application import Applied, apply, element_at, positions, tensors
from .composition import definition
from .elements.footprint import Traced, Tracing
from .values import Element, Reads

Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Footprint:
    """By position of the input, the indices of the elements that were read."""

    data: Mapping[int, frozenset[Index]]
    control: Mapping[int, frozenset[Index]]


def footprint(application: Application, output: int, index: Index) -> Footprint:
    """What an element of an output reads. Raises Undefined where the application is stuck, Unsupported for meanings
    that are rules of the machine and for values that are no tensors.
    """
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
    found = element_at(applied, output, index)
    data = found.value.reads if isinstance(found, Element) and isinstance(found.value, Traced) else frozenset()
    return Footprint(_by_input(data, places), _by_input(shapes | run.journal, places))


def _by_input(reads: Reads, places: Mapping[str, int]) -> dict[int, frozenset[Index]]:
    found: dict[int, set[Index]] = defaultdict(set)
    for name, index in reads:
        if name in places:
            found[places[name]].add(index)
    return {position: frozenset(found[position]) for position in sorted(found)}
