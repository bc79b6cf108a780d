"""The terminal face: reads lines, gives them to the command table, writes what it answers.

It holds no debugging logic: an empty line repeats the last move, Ctrl-C stops what runs or drops the
line, and that is all.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import get_terminal_size
from types import FrameType
from typing import Final

from .commands.table import completions, execute, lookup
from .display.answers import Answer, Quit, Refusal, Stop
from .display.rendering import lines, prompt, to_json
from .session.session import Session, where
from .timeline.history import Refused

GOOD, FINDING, REFUSED = 0, 1, 2
_NARROWEST: Final = 40

Write = Callable[[str], object]


@dataclass(slots=True)
class Pause:
    """Set by Ctrl-C while a command runs; the execution then stands still at the next step."""

    asked: bool = False
    running: bool = False


def batch(
    session: Session, script: Iterable[str], write: Write, *, json: bool = False, echo: bool = True
) -> tuple[Session, int, bool]:
    """Runs command lines one after the other: the session then, the exit code, and whether `quit` was said.

    The code is 0, or 1 when a catch was met or the run got stuck, or 2 at the first command that was refused, which
    ends the script. Empty lines and those that begin with # are passed over.
    """
    code = GOOD
    for line in script:
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if echo and not json:
            write(f"{prompt(where(session))}{_single(text)}\n")
        outcome = execute(session, text)
        session = outcome.session
        show(outcome.answer, write, json=json)
        if isinstance(outcome.answer, Quit):
            return session, code, True
        if isinstance(outcome.answer, Refusal):
            return session, REFUSED, False
        if isinstance(outcome.answer, Stop) and outcome.answer.reason in ("catch", "stuck"):
            code = FINDING
    return session, code, False


def interactive(session: Session, write: Write, *, json: bool = False) -> int:
    """Reads lines from standard input until it ends or `quit` is said; a pipe gives no prompts."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    pause = Pause()
    session = replace(session, interrupted=lambda: pause.asked)
    current = [session]
    code, last = GOOD, ""
    with _terminal(current, terminal), _interrupts(pause):
        while True:
            try:
                line = input(prompt(where(current[0])) if terminal and not json else "")
            except EOFError:
                write("\n" if terminal and not json else "")
                return code
            except KeyboardInterrupt:  # no empty line: nothing is repeated, by the next one neither
                write("\n")
                last = ""
                continue
            text = line.strip() or last
            if not text or text.startswith("#"):
                continue
            last = text if _repeats(text) else ""
            pause.asked, pause.running = False, True
            try:
                outcome = execute(current[0], text)
            except KeyboardInterrupt:
                write("interrupted: the position is unchanged\n")
                continue
            finally:
                pause.running = False
            current[0] = outcome.session
            show(outcome.answer, write, json=json)
            if isinstance(outcome.answer, Quit):
                return code
            if not terminal:
                answer = outcome.answer
                met = isinstance(answer, Stop) and answer.reason in ("catch", "stuck")
                code = max(code, REFUSED if isinstance(answer, Refusal) else FINDING if met else GOOD)


def show(answer: Answer, write: Write, *, json: bool) -> None:
    """Writes an answer."""
    if json:
        write(f"{to_json(answer)}\n")
    else:
        for line in lines(answer, _width()):
            write(f"{line}\n")


def _width() -> int | None:
    """The width of the terminal; None where the answers go elsewhere, and are not folded."""
    return max(get_terminal_size().columns, _NARROWEST) if sys.stdout.isatty() else None


def _single(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _repeats(text: str) -> bool:
    try:
        return lookup(text)[0].moves
    except Refused:
        return False


@contextmanager
def _interrupts(pause: Pause) -> Iterator[None]:
    """The first Ctrl-C lets the execution stand still after the step at hand, the second one ends the command."""

    def asked(number: int, frame: FrameType | None) -> None:
        if not pause.running or pause.asked:
            signal.default_int_handler(number, frame)
        pause.asked = True

    try:
        before = signal.signal(signal.SIGINT, asked)
    except ValueError:  # no main thread: whoever runs this handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _terminal(current: list[Session], terminal: bool) -> Iterator[None]:
    """Completion and history of lines, where there is a terminal and the system has readline."""
    try:
        import readline
    except ImportError:
        terminal = False
    if not terminal:
        yield
        return
    file = Path.home() / ".sonnx_history"
    offered: list[str] = []

    def complete(text: str, number: int) -> str | None:
        if number == 0:
            front = readline.get_line_buffer()[: readline.get_endidx()]
            offered[:] = completions(current[0], front)
        return offered[number] if number < len(offered) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.set_history_length(1000)
            readline.write_history_file(file)
