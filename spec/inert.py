"""Text of unknown origin, made harmless for terminals, logs and pages."""

from __future__ import annotations


def inert(text: str) -> str:
    """The text with every character that a terminal could act on written as an escape; line breaks are kept."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
