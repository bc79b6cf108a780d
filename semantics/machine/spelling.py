"""Attributes, constants and types of a model as one line of printable ASCII."""

from __future__ import annotations

from typing import Final

from sonnx.spec.terminal import inert

from ..model.graph import Attribute, Constant, ValueType
from ..model.path import quote
from .inputs import type_text

_ITEMS: Final = 16  # of a list of numbers
_TEXT: Final = 80  # characters of a text


def single(text: str) -> str:
    """Text of a model on one line of printable ASCII."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if " " <= c <= "~" else ascii(c)[1:-1] for c in inert(text))


def stated_type(stated: ValueType | None) -> str:
    """The type that a model states."""
    return single(type_text(stated))


def constant_text(constant: Constant) -> str:
    """The type of a stored tensor."""
    if not constant.element:
        return "elided"
    sparse = "sparse " if constant.sparse else ""
    return f"{sparse}{constant.element}[{', '.join(map(str, constant.dims))}]"


def attribute_name(name: str) -> str:
    """The name of an attribute, in quotes where it is no identifier."""
    return name if name.isascii() and name.isidentifier() else quote(name)


def attribute_text(attribute: Attribute) -> str:
    """The value of an attribute that is no graph; a long one is cut short, which is said."""
    value = attribute.value
    if isinstance(value, tuple):
        shown = [_one(item) for item in value[:_ITEMS]]
        more = [f"... {len(value) - _ITEMS} more"] if len(value) > _ITEMS else []
        return f"[{', '.join([*shown, *more])}]"
    return "elided" if value is None else _one(value)


def _one(value: object) -> str:
    match value:
        case bytes():
            text = value.decode("utf-8", "backslashreplace")
            return quote(text) if len(text) <= _TEXT else f"{quote(text[:_TEXT])}... {len(text) - _TEXT} more"
        case Constant():
            return f"tensor {constant_text(value)}"
        case ValueType():
            return f"type {stated_type(value)}"
        case _:
            return single(str(value))
