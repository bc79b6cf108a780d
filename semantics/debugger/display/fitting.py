"""Tables and sentences in the width of a terminal: what does not fit goes on in the next line, nothing is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Final

_GAP: Final = "  "
_LEAST: Final = 6  # characters to which a column is narrowed
_WIDEST: Final = 60  # beyond it a cell shifts those behind it, where there is no width to keep to


def table(rows: Sequence[tuple[str, ...]], width: int | None) -> tuple[str, ...]:
    """Rows of cells as lines with the columns below each other."""
    natural = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    if width is None or sum(natural) + len(_GAP) * (len(natural) - 1) <= width:
        widths = natural if width is not None else [min(it, _WIDEST) for it in natural]
        return tuple(_joined(row, widths) for row in rows)
    widths = _narrowed(natural, width)
    found: list[str] = []
    for row in rows:
        cells = [_pieces(cell, columns) for cell, columns in zip(row, widths, strict=True)]
        for i in range(max(len(it) for it in cells)):
            found.append(_joined(tuple(it[i] if i < len(it) else "" for it in cells), widths))
    return tuple(found)


def sentence(text: str, width: int | None) -> tuple[str, ...]:
    """A line, or several of which all but the first are indented."""
    if width is None or len(text) <= width:
        return (text,)
    return tuple(wrap(text, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)) or (text,)


def _joined(cells: tuple[str, ...], widths: Sequence[int]) -> str:
    return _GAP.join(cell.ljust(columns) for cell, columns in zip(cells, widths, strict=True)).rstrip()


def _narrowed(widths: Sequence[int], width: int) -> list[int]:
    """Widths that fit: the widest column gives way first, none becomes narrower than it has to."""
    found = list(widths)
    room = width - len(_GAP) * (len(found) - 1)
    while sum(found) > room:
        widest = max(range(len(found)), key=lambda i: found[i])
        if found[widest] <= _LEAST:
            break
        found[widest] -= 1
    return found


def _pieces(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    return wrap(cell, width, subsequent_indent=" ", break_on_hyphens=False, drop_whitespace=True) or [""]
