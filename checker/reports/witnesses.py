"""How the values of a witness are shown to a person."""

from __future__ import annotations

from ..report import Json

SHOWN = 10
"""How many nodes of a cycle are shown."""


def spelled(value: Json) -> str:
    """A value on one line; a cycle as a chain of paths that ends where it begins, a long one shortened."""
    if not isinstance(value, list):
        return str(value)
    shown = [str(item) for item in value[:SHOWN]]
    rest = [f"... {len(value) - SHOWN} more nodes ..."] if len(value) > SHOWN else []
    return " -> ".join([*shown, *rest, *shown[:1]])
