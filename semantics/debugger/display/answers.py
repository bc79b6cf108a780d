"""The answers of commands, as data: a face renders it, the JSON form is made of the same fields."""

from __future__ import annotations

from dataclasses import dataclass

from ...machine.trace.format import Json


@dataclass(frozen=True, slots=True)
class Where:
    """A position. index: steps taken. phase: phases of the next step that are over, 0 to 4. node: the path of the next
    node, "" at the end. line: in the listing, with its text. call: the path of the call that begins here, which `next`
    takes as a whole. edited: how the timeline differs from an execution of the model."""

    index: int
    phase: int
    node: str
    rule: str
    line: int
    text: str
    ended: bool
    call: str = ""
    edited: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A stop that was met: the number of the stop (0: none), its kind, what happened in a sentence.

    tensor, element: of which one. old, new: its values, where it changed.
    """

    number: int
    kind: str
    text: str
    tensor: str = ""
    element: tuple[int, ...] | None = None
    old: str = ""
    new: str = ""


@dataclass(frozen=True, slots=True)
class Logged:
    """What a log point said, at a step, on a line of the listing (0: none)."""

    text: str
    step: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """The execution stands still. reason: step, breakpoint, watch, catch, end, start, stuck, pause, seek, phase.

    logged: what log points said on the way. displayed: what is shown at each stop.
    """

    reason: str
    where: Where
    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()
    logged: tuple[Logged, ...] = ()
    displayed: tuple[Shown, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """Sentences."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table whose value is no text. text: for a person."""

    text: str
    value: Json


def cell_text(cell: str | Cell) -> str:
    """A cell for a person."""
    return cell.text if isinstance(cell, Cell) else cell


def count(number: int | None, text: str | None = None) -> Cell:
    """A whole number as a cell; nothing where there is none. text: where it is shown by another one."""
    return Cell(("" if number is None else str(number)) if text is None else text, number)


@dataclass(frozen=True, slots=True)
class Rows:
    """A table. rows: cells, one for each heading. notes: sentences below it."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedLine:
    """A line of the listing. current: the execution stands there. stop: the numbers of breakpoints on it."""

    number: int
    text: str
    current: bool
    stops: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """Lines of the listing."""

    lines: tuple[ListedLine, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A value. name: what was asked for. type: as `float[2, 3]`. lines: the elements. statistics: by name.

    shape: of a tensor. elements: those that are shown, of a tensor in row-major order. more: how many are left out.
    """

    name: str
    type: str
    lines: tuple[str, ...]
    statistics: tuple[tuple[str, str], ...] = ()
    shape: tuple[int, ...] | None = None
    elements: tuple[Json, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """The command was not carried out. candidates: what may have been meant."""

    message: str
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quit:
    """The session is over."""


Answer = Stop | Note | Rows | Listed | Shown | Refusal | Quit
