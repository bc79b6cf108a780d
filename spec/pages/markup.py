"""Elements of pages: made by one function, so that every text is escaped and every tag is closed."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

Piece = Element | str | None
Content = Piece | Iterable[Piece]

BLOCKS = frozenset((
    "article", "body", "dd", "details", "div", "dl", "dt", "figure", "footer", "h1", "h2", "h3", "head", "header",
    "hr", "li", "main", "meta", "nav", "p", "pre", "section", "style", "summary", "table", "tbody", "thead", "title",
    "tr", "ul",
))  # fmt: skip
"""The elements that end with a line break."""


def e(tag: str, *content: Content, **attributes: str | None) -> Element:
    """An element. An underscore at the end of an attribute's name is dropped, another one becomes a hyphen; an
    attribute that is None is left out. Characters that cannot be printed become spaces."""
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            made.set(name.removesuffix("_").replace("_", "-"), printable(value))
    for item in content:
        for piece in (item,) if isinstance(item, str | Element) else item or ():
            _append(made, piece)
    if tag in BLOCKS:
        made.tail = "\n"
    return made


def _append(to: Element, piece: Piece) -> None:
    if isinstance(piece, Element):
        to.append(piece)
    elif piece and len(to):
        to[-1].tail = (to[-1].tail or "") + printable(piece)
    elif piece:
        to.text = (to.text or "") + printable(piece)


def printable(text: str) -> str:
    """The text with a space in place of every character that cannot be printed, line breaks excepted."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def serialize(root: Element) -> str:
    """The element as HTML."""
    return tostring(root, encoding="unicode", method="html")
