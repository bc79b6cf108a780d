"""The specification as Markdown, and a formula as text. As a site of HTML: `site`."""

from __future__ import annotations

from collections.abc import Sequence

from ..language.syntax import Expr, File
from .cards import card
from .markdown import markdown_index, markdown_page
from .math import to_text
from .notation import notation


def formula_text(expr: Expr) -> str:
    """The formula on one line of Unicode text."""
    return to_text(notation(expr))


def markdown(files: Sequence[File]) -> dict[str, str]:
    """The pages by file name: one for each specification file, and an index."""
    names = {file.name: file.name.removesuffix(".sonnx").replace("/", "-") + ".md" for file in files}
    pages = [(file.name, names[file.name], tuple(card(d) for d in file.declarations)) for file in files]
    return {"index.md": markdown_index(pages), **{page: markdown_page(file, cards) for file, page, cards in pages}}
