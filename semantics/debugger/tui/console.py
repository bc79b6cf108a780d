"""The console: what was said and answered, and the line that is typed, with history and completion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
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
    """The line that is typed. Completion asks for the words that its last word may become."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "earlier(-1)", show=False),
        Binding("down", "earlier(1)", show=False),
        Binding("tab", "complete", "complete"),
        Binding("escape", "leave", "leave the line"),
    ]

    class Said(Message):
        """A line was entered."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class Offered(Message):
        """Words that may stand there."""

        def __init__(self, words: tuple[str, ...]) -> None:
            super().__init__()
            self.words = words

    class Left(Message):
        """Keys are to go elsewhere: onward to the next pane, or back."""

        def __init__(self, *, onward: bool) -> None:
            super().__init__()
            self.onward = onward

    def __init__(self, typed: list[str], complete: Callable[[str], Awaitable[tuple[str, ...]]]) -> None:
        super().__init__(id="prompt", compact=True, select_on_focus=False)
        self.typed, self._complete = typed, complete
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

    async def action_complete(self) -> None:
        """Complete the word before the cursor; an empty line is left instead."""
        if not self.value:
            self.post_message(self.Left(onward=True))
            return
        front, rest = self.value[: self.cursor_position], self.value[self.cursor_position :]
        words = await self._complete(front)
        if front != self.value[: self.cursor_position] or not words:
            return
        head = front[: len(front) - len(front.rpartition(" ")[2])]
        least, greatest = min(words), max(words)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(least, greatest, strict=False))
        word = "".join(letter for letter, _ in same)
        if len(words) == 1 and not word.endswith("/"):
            word += " "
        if head + word == front:
            self.post_message(self.Offered(words))
        self.value = f"{head}{word}{rest}"
        self.cursor_position = len(head + word)

    def action_leave(self) -> None:
        """Keys go to the panes again."""
        self.post_message(self.Left(onward=False))


class Console(Vertical):
    """The output above the line."""

    def __init__(self, typed: list[str], complete: Callable[[str], Awaitable[tuple[str, ...]]]) -> None:
        super().__init__(id="console")
        self.output, self.line = Output("output"), Prompt(typed, complete)
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
