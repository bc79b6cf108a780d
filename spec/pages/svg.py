"""SVG pictures: shapes as elements, so that every text is escaped, in a picture that loads nothing."""

from __future__ import annotations

from xml.etree.ElementTree import Element, tostring

from .markup import Content, e

Attribute = str | float | None


def shape(tag: str, *content: Content, **attributes: Attribute) -> Element:
    """An element of a picture; numbers are rounded to hundredths, an attribute that is None is left out."""
    return e(tag, *content, **{name: _spelled(value) for name, value in attributes.items()})


def text(x: float, y: float, words: str, **attributes: Attribute) -> Element:
    """Words that begin, or with `text_anchor` end or have their middle, at a point of their base line."""
    return shape("text", words, x=x, y=y, **attributes)


def rectangle(x: float, y: float, width: float, height: float, *content: Content, **attributes: Attribute) -> Element:
    """A rectangle by its left upper corner."""
    return shape("rect", *content, x=x, y=y, width=width, height=height, **attributes)


def arrow(course: str, **attributes: Attribute) -> Element:
    """A line that ends in the head of an arrow. course: the data of a path."""
    attributes = {"fill": "none", "stroke": "currentColor", **attributes}
    return shape("path", d=course, marker_end="url(#head)", **attributes)


def arrow_head() -> Element:
    """The head of all arrows of a picture, in which it has to stand."""
    triangle = shape("path", d="M0,0 L8,4 L0,8 z", fill="currentColor")
    marker = e(
        "marker", triangle, id="head", viewBox="0 0 8 8", refX="8", refY="4", markerWidth="7", markerHeight="7",
        orient="auto",
    )  # fmt: skip
    return e("defs", marker)


def drawing(
    width: float, height: float, *shapes: Content, title: str = "", fixed: bool = True, **attributes: Attribute
) -> str:
    """The picture as an `<svg>` element. title: what it shows, for who cannot see it. fixed: has its size in pixels."""
    sizes = {"width": width, "height": height} if fixed else {}
    name = {"role": "img", "aria_label": title} if title else {}
    root = shape(
        "svg",
        e("title", title) if title and fixed else None,
        *shapes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_spelled(width)} {_spelled(height)}",
        **{**name, **sizes, **attributes},
    )
    for element in root.iter():
        element.tail = None
    return tostring(root, encoding="unicode")


def _spelled(value: Attribute) -> str | None:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return value if value is None or isinstance(value, str) else str(value)
