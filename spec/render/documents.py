"""The specification as a document: every declaration as text or Markdown. As a site of HTML: `site`."""

from __future__ import annotations

from collections.abc import Sequence

from ..language.syntax import Declaration, Expr, File
from .cards import card
from .markdown import card_text, markdown_index, markdown_page
from .math import WIDTH, broken, to_text
from .notation import notation


def formula_text(expr: Expr) -> str:
    """The formula on one line of Unicode text."""
    return to_text(notation(expr))


def formula_block(expr: Expr, width: int = WIDTH) -> str:
    """The formula as Unicode text, broken at its outermost connectives where it is wider than `width`."""
    return "\n".join("  " * line.indent + to_text(line.math) for line in broken(expr, width=width))


def render_text(declaration: Declaration) -> str:
    """The declaration as plain text: sentence, formula, clauses."""
    return card_text(card(declaration))


def markdown(files: Sequence[File]) -> dict[str, str]:
    """The pages by file name: one for each specification file, and an index."""
    names = {file.name: file.name.removesuffix(".sonnx").replace("/", "-") + ".md" for file in files}
    pages = [(file.name, names[file.name], tuple(card(d) for d in file.declarations)) for file in files]
    return {"index.md": markdown_index(pages), **{page: markdown_page(file, cards) for file, page, cards in pages}}
