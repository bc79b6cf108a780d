"""The parts that every command shares on a terminal: text made harmless, the console's width, the progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def inert(text: str) -> str:
    """The text with every character that a terminal could act on written as an escape; line breaks are kept."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """The same on one line: line breaks are written as escapes too."""
    return inert(text).replace("\n", "\\n")


def few(names: Sequence[str], most: int) -> str:
    """The names in a row, the first ones where there are more than so many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


PIPE_WIDTH: Final = 110
"""A terminal is printed to as it is; a pipe or a file in one width, without colours: its text is stable."""


def output_console(file: IO[str] | None = None) -> Console:
    """For a file, or for standard output."""
    from rich.console import Console as Rich

    class Console(Rich):
        def on_broken_pipe(self) -> None:  # rich would end with exit code 1, a finding
            raise BrokenPipeError

    if file is None and sys.stdout.isatty():
        return Console(highlight=False)
    return Console(file=file, width=PIPE_WIDTH, highlight=False, no_color=True)


def error_console() -> Console:
    """For standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else PIPE_WIDTH)


def print_line(console: Console, text: str | Text) -> None:
    """One line, never wrapped, so that a path can be copied and searched for. It is printed as it stands: pass what
    comes from a model through `inert`."""
    from rich.text import Text

    console.print(text if isinstance(text, Text) else Text(text), soft_wrap=True)


Progress = Callable[[str, int, int], None]
"""Called with what is being done, the number of steps done and the number of steps in all, 0 where it is not known."""

PAUSE: Final = 0.05
"""Seconds between two pictures of the bar, unless what is being done changes."""
LINE: Final = 10.0
"""Seconds between two lines about the work where there is no terminal; the first one comes after as many."""


@contextmanager
def progress_bar(*, counted: bool = False) -> Iterator[Progress]:
    """A bar that lasts as long as the work; where there is no terminal, a line from time to time, so that the log of
    work that is soon done has none. counted: with the number of steps done."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    count = (MofNCompleteColumn(),) if counted else ()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *count, TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        last, shown = "", 0.0

        def show(what: str, done: int, total: int) -> None:
            nonlocal last, shown
            now = time.monotonic()
            if what != last or now - shown > PAUSE or done >= total:
                last, shown = what, now
                bar.update(task, description=what, completed=done, total=max(done, total) or None)

        yield show


def _lines() -> Progress:
    begun = shown = time.monotonic()

    def show(what: str, done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= LINE:
            shown = now
            count = f" {done} of {total}" if total else f" {done}" if done else ""
            print_line(error_console(), f"{one_line(what)}{count}, {now - begun:.0f} s")

    return show
