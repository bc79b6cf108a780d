"""Reads of a site and of the inputs of a kernel, with the type that they expect; KernelError where it is another."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import Array, Inputs, KernelError, Site


def require(holds: bool, message: str) -> None:
    """Raises KernelError unless the requirement, which the message states, holds."""
    if not holds:
        raise KernelError(message)


def tensor(inputs: Inputs, position: int) -> Array:
    """The tensor at a position."""
    value = optional(inputs, position)
    if value is None:
        raise KernelError(f"input {position} is required and absent")
    return value


def optional(inputs: Inputs, position: int) -> Array | None:
    """The tensor at a position, None where it is absent."""
    value = inputs[position] if position < len(inputs) else None
    if value is None or isinstance(value, np.ndarray):
        return value
    raise KernelError(f"input {position} is no tensor")


def asked(site: Site, position: int) -> bool:
    """True where the output at a position is named."""
    return position < len(site.outputs) and site.outputs[position]


def integer(site: Site, name: str, absent: int = 0) -> int:
    """An attribute that is an integer; `absent` where it is neither stated nor has a default."""
    value = site.attributes.get(name, absent)
    if isinstance(value, int):
        return value
    raise KernelError(f"the attribute {name} is no integer")


def number(site: Site, name: str, absent: float = 0.0) -> float:
    """An attribute that is a number."""
    value = site.attributes.get(name, absent)
    if isinstance(value, (int, float)):
        return value
    raise KernelError(f"the attribute {name} is no number")


def text(site: Site, name: str, absent: str = "") -> str:
    """An attribute that is a text."""
    value = site.attributes.get(name, absent)
    if isinstance(value, str):
        return value
    raise KernelError(f"the attribute {name} is no text")


def _listed(site: Site, name: str, kinds: tuple[type, ...], what: str) -> tuple[Any, ...] | None:
    value = site.attributes.get(name)
    if value is not None and not (isinstance(value, tuple) and all(isinstance(x, kinds) for x in value)):
        raise KernelError(f"the attribute {name} is no list of {what}")
    return value


def integers(site: Site, name: str) -> tuple[int, ...] | None:
    """An attribute that is a list of integers, None where it is absent."""
    return _listed(site, name, (int,), "integers")


def numbers(site: Site, name: str) -> tuple[float, ...] | None:
    """An attribute that is a list of numbers, None where it is absent."""
    return _listed(site, name, (int, float), "numbers")


def texts(site: Site, name: str) -> tuple[str, ...] | None:
    """An attribute that is a list of texts, None where it is absent."""
    return _listed(site, name, (str,), "texts")
