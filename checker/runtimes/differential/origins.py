"""Where an element comes from: its footprint in a few words, as evidence beside a divergence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.operators.application import Application
from sonnx.semantics.operators.symbolic.footprint import Index, footprint
from sonnx.semantics.operators.symbolic.values import Undefined

LARGEST: Final = 1 << 16
"""Elements of all inputs together; of a larger application no footprint is taken."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What an element reads of one input. control: the reads decide, they are no part of the value.

    low, high: the least and the greatest index along each axis.
    """

    input: int
    control: bool
    count: int
    low: Index
    high: Index


def origins(application: Application, output: int, index: Index) -> tuple[Origin, ...]:
    """The footprint of an element by input; nothing where the interpretation does not tell it or it takes too long."""
    sizes = [getattr(value, "size", LARGEST + 1) for value in application.inputs if value is not None]
    if sum(sizes) > LARGEST:
        return ()
    try:
        found = footprint(application, output, index)
    except (Undefined, Unsupported, InternalError, RecursionError, ValueError, TypeError, KeyError):
        return ()
    made = [_origin(at, False, reads) for at, reads in found.data.items()]
    return (*made, *(_origin(at, True, reads) for at, reads in found.control.items()))


def _origin(at: int, control: bool, reads: Iterable[Index]) -> Origin:
    indices = tuple(reads)
    axes = tuple(zip(*indices, strict=True))
    return Origin(at, control, len(indices), tuple(map(min, axes)), tuple(map(max, axes)))
