"""The specification as a document: every declaration as text, Markdown, or HTML with MathML."""

from __future__ import annotations

from collections.abc import Sequence

from .cards import card
from .notation import notation
from .render_html import anchor, html_index, html_page
from .render_markdown import card_text, markdown_index, markdown_page
from .render_math import WIDTH, broken, to_text
from .syntax import Declaration, Expr, File, Operator

SUFFIXES = {"html": ".html", "markdown": ".md"}


def formula_text(expr: Expr) -> str:
    """The formula on one line of Unicode text."""
    return to_text(notation(expr))


def formula_block(expr: Expr, width: int = WIDTH) -> str:
    """The formula as Unicode text, broken at its outermost connectives where it is wider than `width`."""
    return "\n".join("  " * line.indent + to_text(line.math) for line in broken(expr, width=width))


def render_text(declaration: Declaration) -> str:
    """The declaration as plain text: sentence, formula, clauses."""
    return card_text(card(declaration))


def documents(files: Sequence[File], form: str) -> dict[str, str]:
    """The pages by file name: one for each specification file, and an index. `form` is html or markdown."""
    suffix = SUFFIXES[form]
    names = {file.name: file.name.removesuffix(".sonnx").replace("/", "-") + suffix for file in files}
    pages = [(file.name, names[file.name], tuple(card(d) for d in file.declarations)) for file in files]
    addresses = {c.name: f"{page}#{anchor(c.name)}" for _, page, cards in pages for c in cards}
    for operator in (d for file in files for d in file.declarations if isinstance(d, Operator)):
        own = addresses[f"{operator.name}-{operator.first}"]
        addresses |= {f"{operator.name}-{version}": own for version in range(operator.first, operator.last + 1)}
    if form == "markdown":
        made = {page: markdown_page(file, cards) for file, page, cards in pages}
        return {f"index{suffix}": markdown_index(pages), **made}
    made = {page: html_page(file, cards, addresses.get) for file, page, cards in pages}
    return {f"index{suffix}": html_index(pages), **made}
