"""The smt interpretation of operators, attributes: the values that ONNX's schemas state for absent ones."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from ..schemas import schema
from .symbolic_values import Value


@cache
def default_of(operator: str, version: int, name: str) -> Value | None:
    """The schema's default; None without one. A float is the float32 that the schema means."""
    found = schema("", operator, version)
    stated = None if found is None or name not in found.attributes else found.attributes[name].default
    return None if stated is None else constant(stated.value)


def constant(value: object) -> Value | None:
    """An attribute's value as the text sees it."""
    match value:
        case int():
            return value
        case float():
            return Fraction(float(np.float32(value)))
        case bytes():
            return value.decode("utf-8", "replace")
        case str():
            return value
        case tuple() | list():
            return tuple(item for part in value if (item := constant(part)) is not None)
        case _:
            return None
