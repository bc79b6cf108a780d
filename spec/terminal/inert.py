"""Text of unknown origin, made harmless for terminals, logs and pages."""

from __future__ import annotations


def inert(text: str) -> str:
    """The text with every character that a terminal could act on written as an escape; line breaks are kept."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """The same on one line: line breaks are written as escapes too."""
    return inert(text).replace("\n", "\\n")
