"""The contract between a session and the kernels: what a kernel is told of its node, reads of it, and computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...model.values import Value
from ...operators.application import AttributeData

Array = NDArray[Any]

Allocate = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]
"""Uninitialised C-contiguous memory of a shape and dtype, for an output or for intermediate results.

It belongs to the application that asked for it: what is not part of an output is given to others afterwards, so a
kernel never keeps it from one call to the next. A later call with inputs of the same shapes gets the same memory again.
"""
Compute = Callable[[Sequence[Value | None], Allocate], tuple[Value | None, ...]]
"""The outputs by position from the inputs by position, None for those that are absent or not asked for."""


class KernelError(Exception):
    """The operator is not defined on these inputs; the message says which requirement fails."""


@dataclass(frozen=True, slots=True)
class Site:
    """What is known of one node when a session is prepared.

    version: the since_version in force. attributes: those that the node states, completed by the schema's defaults.
    constants: by input position the value where it is known, else None. inputs, outputs: by position, whether it is
    given or named.
    """

    op_type: str
    version: int
    attributes: Mapping[str, AttributeData]
    constants: tuple[Value | None, ...]
    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """How an operator is computed from one since_version to another.

    prepare: reads attributes and packs constant inputs, once for each node. in_place: the operator is applied element
    by element; such a kernel asks `Allocate` for its outputs only, and the memory may be that of an input of the same
    shape and dtype. types: the element types of the first input that are covered, None for all that the schema admits.
    """

    first: int
    last: int
    prepare: Callable[[Site], Compute]
    in_place: bool = False
    types: frozenset[str] | None = None


# ---- Reading --------------------------------------------------------------------------------------


def require(holds: bool, message: str) -> None:
    """Raises KernelError unless the requirement, which the message states, holds."""
    if not holds:
        raise KernelError(message)


def tensor(inputs: Sequence[Value | None], position: int) -> Array:
    """The tensor at a position."""
    found = optional(inputs, position)
    if found is None:
        raise KernelError(f"input {position} is required and absent")
    return found


def optional(inputs: Sequence[Value | None], position: int) -> Array | None:
    """The tensor at a position, None where it is absent."""
    found = inputs[position] if position < len(inputs) else None
    if found is None or isinstance(found, np.ndarray):
        return found
    raise KernelError(f"input {position} is no tensor")


def asked(site: Site, position: int) -> bool:
    """Whether the output at a position is named."""
    return position < len(site.outputs) and site.outputs[position]


def integer(site: Site, name: str, absent: int = 0) -> int:
    """An attribute that is an integer; `absent` where it is neither stated nor has a default."""
    found = site.attributes.get(name, absent)
    if isinstance(found, int):
        return found
    raise KernelError(f"the attribute {name} is no integer")


def number(site: Site, name: str, absent: float = 0.0) -> float:
    """An attribute that is a number."""
    found = site.attributes.get(name, absent)
    if isinstance(found, (int, float)):
        return found
    raise KernelError(f"the attribute {name} is no number")


def text(site: Site, name: str, absent: str = "") -> str:
    """An attribute that is a text."""
    found = site.attributes.get(name, absent)
    if isinstance(found, str):
        return found
    raise KernelError(f"the attribute {name} is no text")


def integers(site: Site, name: str) -> tuple[int, ...] | None:
    """An attribute that is a list of integers, None where it is absent."""
    found = site.attributes.get(name)
    if found is None:
        return None
    entries = tuple(x for x in found if isinstance(x, int)) if isinstance(found, tuple) else ()
    if not isinstance(found, tuple) or len(entries) != len(found):
        raise KernelError(f"the attribute {name} is no list of integers")
    return entries


def numbers(site: Site, name: str) -> tuple[float, ...] | None:
    """An attribute that is a list of numbers, None where it is absent."""
    found = site.attributes.get(name)
    if found is None:
        return None
    entries = tuple(x for x in found if isinstance(x, (int, float))) if isinstance(found, tuple) else ()
    if not isinstance(found, tuple) or len(entries) != len(found):
        raise KernelError(f"the attribute {name} is no list of numbers")
    return entries


def texts(site: Site, name: str) -> tuple[str, ...] | None:
    """An attribute that is a list of texts, None where it is absent."""
    found = site.attributes.get(name)
    if found is None:
        return None
    entries = tuple(x for x in found if isinstance(x, str)) if isinstance(found, tuple) else ()
    if not isinstance(found, tuple) or len(entries) != len(found):
        raise KernelError(f"the attribute {name} is no list of texts")
    return entries
