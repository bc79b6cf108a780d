"""The specification as Markdown; formulas are Unicode text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from ..language.syntax import File
from .cards import Card, Formula, card
from .math import MathLine, to_text


def markdown(files: Sequence[File]) -> dict[str, str]:
    """The pages by file name: one for each specification file, and an index."""
    names = {file.name: file.name.removesuffix(".sonnx").replace("/", "-") + ".md" for file in files}
    pages = [(file.name, names[file.name], tuple(card(d) for d in file.declarations)) for file in files]
    return {"index.md": _index(pages), **{page: markdown_page(file, cards) for file, page, cards in pages}}


def formula_lines(formula: Formula) -> list[str]:
    """The formula as lines of text: premises, a bar and the conclusion where it is an inference rule."""

    def shown(lines: Iterable[MathLine]) -> list[str]:
        return ["  " * line.indent + to_text(line.math) for line in lines]

    conclusion = shown(formula.lines)
    if formula.premises is None:
        return conclusion
    premises = shown(formula.premises)
    return [*premises, "─" * max(map(len, premises + conclusion)), *conclusion]


# ---- Markdown ---------------------------------------------------------------------------------


def inline(text: str) -> str:
    """The text with everything that Markdown or HTML would act on escaped."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    text = re.sub(r"([\\`*_\[\]|~$#@])", r"\\\1", text)
    return re.sub(r"^(\d*)([.)+=-])", r"\1\\\2", text)


def _code(lines: Sequence[str]) -> str:
    """The lines as a block of code, fenced with more backticks than they contain."""
    safe = ["".join(c if c.isprintable() else " " for c in line) for line in lines]
    fence = "`" * max(3, *(len(run) + 1 for line in safe for run in re.findall("`+", line)), 3)
    return "\n".join([f"{fence}text", *safe, fence])


def markdown_page(title: str, cards: Sequence[Card]) -> str:
    """The page of one file."""
    return "\n\n".join([f"# {inline(title)}", "[Index](index.md)", *(_markdown(card) for card in cards)]) + "\n"


def _markdown(card: Card) -> str:
    parts = [f"## {inline(card.title)}", f"*{inline(card.kind)}.* {inline(card.sentence)}"]
    for formula in card.formulas:
        parts.append(_code(formula_lines(formula)))
        remarks = [f"`{formula.id}`: {inline(formula.remark)}"] if formula.id else []
        remarks += [_note(*note) for note in formula.notes]
        if remarks:
            parts.append("\n".join(f"- {remark}" for remark in remarks))
    if card.notes:
        parts.append("\n".join(f"- {_note(*note)}" for note in card.notes))
    if card.table is not None:
        parts.append(_table(card))
    return "\n\n".join(parts)


def _note(label: str, text: str) -> str:
    return f"**{inline(label)}:** {inline(text)}"


def _table(card: Card) -> str:
    lines = ["| Rule | Title | Demands | Status | Text |", "|---|---|---|---|---|"]
    for row in card.table or ():
        notes = "<br>".join(_note(*note) for note in row.notes)
        cells = [*map(inline, (row.id, row.title, row.constraint, row.status)), notes]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _index(pages: Sequence[tuple[str, str, Sequence[Card]]]) -> str:
    """The index of (file name, page name, cards)."""
    lines = ["# Specification", ""]
    for file, page, cards in pages:
        lines.append(f"- [{inline(file)}]({quote(page)}): {', '.join(inline(card.name) for card in cards)}")
    return "\n".join(lines) + "\n"
