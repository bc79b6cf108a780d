"""Parts of several pages: formulas, notes, prose in which names are links, lists of references."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element

from ...pages.markup import Piece, e
from ..cards import GROUNDS, LABELS, Formula
from ..math import MathLine
from ..notation import Math
from .places import Places
from .references import Reference

# ---- Notation as MathML -------------------------------------------------------------------------


LARGE = {"Σ": "∑", "∏": "∏", "⋁": "⋁", "⋀": "⋀"}
"""The operators of folds that are drawn large."""
Link = Callable[[str], str | None]
"""From a declared name to the address of its declaration, None without one."""


def _elements(math: Math, link: Link) -> list[Element]:
    """The notation's elements side by side, with a space between a word and what keeps no distance of its own."""
    elements: list[Element] = []
    items = math.items if math.kind == "row" else (math,)
    for item, behind in zip(items, (*items[1:], None), strict=True):
        elements.append(_element(item, link))
        if behind is not None and "word" in (item.kind, behind.kind) and not _opens(item) and not _closes(behind):
            elements.append(e("mspace", width="0.35em"))
    return elements


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


# ---- Formulas -----------------------------------------------------------------------------------


DEEPEST = 6
"""The deepest indentation that the style knows."""
SHORT = 12
"""A longer list of references is folded."""


def formula(shown: Formula, link: Link) -> Element:
    """The formula in a box that scrolls when it is wider than the page."""
    lines = _lines(shown.lines, link)
    if shown.premises is not None:
        lines = [e("div", _lines(shown.premises, link), e("hr"), lines, class_="rule")]
    return e("div", lines, class_="formula", tabindex="0")


def _lines(lines: Iterable[MathLine], link: Link) -> list[Element]:
    return [
        e("div", e("math", _elements(line.math, link), displaystyle="true"), class_=f"i{min(line.indent, DEEPEST)}")
        for line in lines
    ]


def demand(shown: Formula, identifier: str, where: Places, link: Link) -> Element:
    """A `require` or `restrict`: its id within the definition, its sentence, the formula, who demands it."""
    sentence = e("p", e("span", f"{shown.id}: ", class_="quiet"), prose(shown.remark, where))
    return e("div", sentence, formula(shown, link), notes(shown.notes, where), class_="demand", id=identifier)


def notes(rows: Sequence[tuple[str, str]], where: Places) -> Element | None:
    """The clauses of a declaration, each with its label; None without any."""

    def content(label: str, text: str) -> list[Piece]:
        if label in GROUNDS.values():
            return _named(text, where)
        return [e("a", text, href=where.demand(text))] if label == LABELS["demanded"] else prose(text, where)

    pairs = [(e("dt", label), e("dd", content(label, text))) for label, text in rows]
    return e("dl", [element for pair in pairs for element in pair]) if pairs else None


def _named(text: str, where: Places) -> list[Piece]:
    """Names with commas between them, each a link."""
    links = [(name, where.of(name)) for name in text.split(", ")]
    names: list[Piece] = [e("a", name, href=address) if address else name for name, address in links]
    return [piece for name in names for piece in (", ", name)][1:]


def prose(text: str, where: Places) -> list[Piece]:
    """The text; what names a version of an operator or a rule of execution becomes a link, and code what stands between
    backticks."""

    def pieces() -> Iterator[Piece]:
        for word in re.split(r"(`[^`]+`|\b[A-Z][A-Za-z0-9]*[-/][A-Za-z0-9][A-Za-z0-9-]*\b)", text):
            address = where.of(word) if re.fullmatch(r"[A-Z]\w*(-\d+|/[\w-]+)", word) else None
            if re.fullmatch(r"`[^`]+`", word):
                yield e("code", word.strip("`"))
            else:
                yield e("a", word, href=address) if address else word

    return list(pieces())


def listed(label: str, references: Sequence[Reference]) -> Element | None:
    """The references behind a label; a long list is folded. None without any."""
    if not references:
        return None
    names = e("ul", [e("li", e("a", r.title, href=r.address)) for r in references], class_="names")
    if len(references) > SHORT:
        return e("details", e("summary", f"{label} ({len(references)})"), names)
    return e("div", e("span", label, class_="quiet"), names)
