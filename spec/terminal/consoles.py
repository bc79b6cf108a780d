"""Where commands print: a terminal as it is; a pipe or a file with one width and without colours, so that its text is
stable."""

from __future__ import annotations

import sys
from typing import IO, Final

from rich.console import Console
from rich.text import Text

PIPE_WIDTH: Final = 110


def output_console(file: IO[str] | None = None) -> Console:
    """For a file, or for standard output."""
    if file is None and sys.stdout.isatty():
        return Console(highlight=False)
    return Console(file=file, width=PIPE_WIDTH, highlight=False, no_color=True)


def error_console() -> Console:
    """For standard error."""
    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else PIPE_WIDTH)


def print_line(console: Console, text: str | Text) -> None:
    """One line, never wrapped, so that a path can be copied and searched for. It is printed as it stands: pass what
    comes from a model through `inert`."""
    console.print(text if isinstance(text, Text) else Text(text), soft_wrap=True)
