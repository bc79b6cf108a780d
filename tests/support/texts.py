"""A part of the texts that is a specification too: where any one will do, it is read in a fraction of the time."""

from __future__ import annotations

from sonnx.spec.parsed import read_texts

OPERATORS = ("activation", "convolution", "elementwise", "linear", "lists")
"""Texts of operators; they need no others."""


def few() -> dict[str, str]:
    """The texts of parts 1 to 4 and of some operators, as in the package."""
    names = {f"5-operators/{name}.sonnx" for name in OPERATORS}
    return {name: text for name, text in read_texts().items() if "/" not in name or name in names}
