"""What kernels read of a site and of their inputs, with the type that they expect; KernelError where it is another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model.values import Value
from .kernel import Array, KernelError, Site


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
