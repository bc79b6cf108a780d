"""The console: what was said and answered, and the line that is typed, with history and completion."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import ClassVar, Final

from sonnx.spec.terminal import one_line
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from .panes import Lines, Piece

_MOST: Final = 10_000
_OFFERED: Final = 100


class Output(Lines):
    """What was said and answered, the latest at the bottom."""

    label = "5 console"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._lines: list[Piece] = []

    def count(self) -> int:
        """The lines that are kept."""
        return len(self._lines)

    def line(self, number: int, width: int) -> Sequence[Piece]:
        """One of them."""
        return (self._lines[number],)

    def write(self, lines: Sequence[str], how: str = "") -> None:
        """More lines, which come into sight."""
        self._lines = [*self._lines, *((one_line(it), how) for it in lines)][-_MOST:]
        self.changed()
        self.to(len(self._lines) - 1)


class Prompt(Input):
    """The line that is typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "earlier(-1)"),
        Binding("down", "earlier(1)"),
        Binding("tab", "complete"),
        Binding("escape", "leave"),
    ]

    class Said(Message):
        """A line was entered."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class Wanted(Message):
        """The words are wanted that the last word of a text may become."""

        def __init__(self, front: str) -> None:
            super().__init__()
            self.front = front

    class Left(Message):
        """Keys are to go elsewhere: onward to the next pane, or back."""

        def __init__(self, *, onward: bool) -> None:
            super().__init__()
            self.onward = onward

    def __init__(self, typed: list[str]) -> None:
        super().__init__(id="prompt", compact=True, select_on_focus=False)
        self.typed = typed
        self._at = len(typed)
        self._draft = ""

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Give the line, which is kept."""
        event.stop()
        self.post_message(self.Said(self.value))

    def taken(self) -> None:
        """The line is being done: the next one is typed."""
        line = self.value.strip()
        if line and self.typed[-1:] != [line]:
            self.typed.append(line)
        self._at, self._draft, self.value = len(self.typed), "", ""

    def action_earlier(self, by: int) -> None:
        """An earlier line, or a later one."""
        if self._at == len(self.typed):
            self._draft = self.value
        self._at = max(min(self._at + by, len(self.typed)), 0)
        self.value = self._draft if self._at == len(self.typed) else self.typed[self._at]
        self.cursor_position = len(self.value)

    def action_complete(self) -> None:
        """Complete the word before the cursor; an empty line is left instead."""
        if self.value:
            self.post_message(self.Wanted(self.value[: self.cursor_position]))
        else:
            self.post_message(self.Left(onward=True))

    def completed(self, front: str, words: tuple[str, ...]) -> bool:
        """Completes the line as far as all words agree that its last word may become, where it still begins with
        `front`; False where that is not further."""
        if front != self.value[: self.cursor_position] or not words:
            return True
        rest = self.value[self.cursor_position :]
        head = front[: len(front) - len(front.rpartition(" ")[2])]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(min(words), max(words), strict=False))
        word = "".join(letter for letter, _ in same)
        if len(words) == 1 and not word.endswith("/"):
            word += " "
        self.value = f"{head}{word}{rest}"
        self.cursor_position = len(head + word)
        return head + word != front

    def action_leave(self) -> None:
        """Keys go to the panes again."""
        self.post_message(self.Left(onward=False))


class Console(Vertical):
    """The output above the line."""

    def __init__(self, typed: list[str]) -> None:
        super().__init__(id="console")
        self.output, self.line = Output("output"), Prompt(typed)
        self.lead = Static("", id="lead", markup=False)

    def compose(self) -> ComposeResult:
        """Its parts."""
        yield self.output
        with Horizontal(id="entry"):
            yield self.lead
            yield self.line

    def offer(self, words: tuple[str, ...]) -> None:
        """Words side by side, as many as fit."""
        shown = words[:_OFFERED]
        width = max(self.output.content_size.width, 20)
        room = max(map(len, shown)) + 2
        columns = max(width // room, 1)
        rows = [
            "".join(f"{it:<{room}}" for it in shown[i : i + columns]).rstrip() for i in range(0, len(shown), columns)
        ]
        more = [f"... {len(words) - len(shown)} more"] if len(words) > len(shown) else []
        self.output.write([*rows, *more], "dim")
