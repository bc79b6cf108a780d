"""Notation as MathML."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element

from ...pages.markup import e
from ..notation import Math

LARGE = {"Σ": "∑", "∏": "∏", "⋁": "⋁", "⋀": "⋀"}
"""The operators of folds that are drawn large."""
Link = Callable[[str], str | None]
"""From a declared name to the address of its declaration, None without one."""


def to_mathml(math: Math, link: Link = lambda _: None) -> Element:
    """The notation as an inline `math` element; names of declared functions become links."""
    return e("math", _elements(math, link), displaystyle="true")


def _elements(math: Math, link: Link) -> list[Element]:
    """The notation's elements side by side, with a space between a word and what keeps no distance of its own."""
    found: list[Element] = []
    items = math.items if math.kind == "row" else (math,)
    for item, behind in zip(items, (*items[1:], None), strict=True):
        found.append(_element(item, link))
        if behind is not None and "word" in (item.kind, behind.kind) and not _opens(item) and not _closes(behind):
            found.append(e("mspace", width="0.35em"))
    return found


def _opens(math: Math) -> bool:
    return math.kind in ("sign", "separator", "prefix") or (math.kind == "mark" and math.text in "([{⌊")


def _closes(math: Math) -> bool:
    return math.kind in ("sign", "separator") or (math.kind == "mark" and math.text in ")]}⌋")


def _row(math: Math, link: Link) -> Element:
    return e("mrow", _elements(math, link))


def _element(math: Math, link: Link) -> Element:
    text = math.text
    match math.kind:
        case "under":
            operator, below = math.items
            return e("munder", _row(operator, link), _row(below, link))
        case "quotient":
            return e("mfrac", [_row(item, link) for item in math.items[:2]])
        case "number":
            return e("mn", text)
        case "separator":
            return e("mo", text, separator="true", lspace="0", rspace="0.35em")
        case "prefix" if text in LARGE:
            return e("mo", LARGE[text], largeop="true", movablelimits="false", lspace="0.1em", rspace="0.15em")
        case "prefix":
            return e("mo", text, form="prefix", lspace="0.05em", rspace="0.15em")
        case "sign":
            return e("mo", text, form="infix", lspace="0.27em", rspace="0.27em")
        case "mark":
            form = {"⌊": "prefix", "⌋": "postfix"}.get(text)
            return e("mo", text, form=form, stretchy="true" if form else "false", lspace="0", rspace="0")
        case "word":
            return e("mtext", text)
        case "literal":
            return e("mtext", text, class_="literal")
        case "symbol":
            address = link(text)
            return e("mtext", e("a", text, href=address) if address else text)
        case _:
            return _identifier(text)


def _identifier(name: str) -> Element:
    """A variable; its primes and the dots of an index vector stand behind it."""
    bare = name.removesuffix("…")
    base = bare.rstrip("'")
    behind = "′" * (len(bare) - len(base)) + "…" * (len(name) - len(bare))
    made = e("mi", base)
    return e("mrow", made, e("mo", behind, lspace="0", rspace="0")) if behind else made
