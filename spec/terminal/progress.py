"""The progress bar of long work: on the terminal's standard error, nothing on a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]
"""Called with what is being done, the number of steps done and the number of steps in all, 0 where it is not known."""

PAUSE = 0.05
"""Seconds between two pictures of the bar, unless what is being done changes."""


@contextmanager
def progress_bar(*, counted: bool = False) -> Iterator[Progress | None]:
    """A bar that lasts as long as the work, None where there is no terminal. counted: with the number of steps done."""
    if not sys.stderr.isatty():
        yield None
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
