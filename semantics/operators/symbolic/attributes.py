"""The smt interpretation of operators, attributes: the values that ONNX's schemas state for absent ones."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import copysign, isfinite

import numpy as np

from ...formulas.terms import Term
from ...model.graph import ValueType
from ...model.schemas import schema
from .values import Element, ElementType, Value


@cache
def default_of(operator: str, version: int, name: str) -> Value | None:
    """The schema's default; None without one. A float is the float32 that the schema means."""
    found = schema("", operator, version)
    stated = None if found is None or name not in found.attributes else found.attributes[name].default
    return None if stated is None else constant(stated.value)


def type_name(stated: ValueType) -> str:
    """A type as the text writes it: float, sequence_float, optional_sequence_float; "" where it is open."""
    if stated.kind not in ("sequence", "optional") or stated.inner is None:
        return stated.element if stated.kind == "tensor" else ""
    inner = type_name(stated.inner)
    return f"{stated.kind}_{inner}" if inner else ""


def constant(value: object) -> Value | None:
    """An attribute's value as the text sees it; what is no exact number, a NaN, an infinity, -0.0, is an element of the
    type that it meets."""
    match value:
        case int() | Term():
            return value
        case float():
            rounded = float(np.float32(value))
            exact = isfinite(rounded) and not (rounded == 0 and copysign(1, rounded) < 0)
            return Fraction(rounded) if exact else Element(rounded, ElementType(""))
        case bytes():
            return value.decode("utf-8", "replace")
        case str():
            return value
        case ValueType():
            return ElementType(type_name(value))
        case tuple() | list():
            return tuple(item for part in value if (item := constant(part)) is not None)
        case _:
            return None
