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

import rich_click as click

from ..model.path import quote
from .commands.scripting import following, parts, separate
from .commands.table import completions, execute, lookup
from .display.answers import Answer, Quit, Refusal, Stop
from .display.rendering import lines, prompt, to_json
from .session.session import Outcome, Session, where
from .timeline.history import Refused

GOOD, FINDING, REFUSED = 0, 1, 2
NARROWEST: Final = 40

Write = Callable[[str], object]


@dataclass(slots=True)
class Pause:
    """Set by Ctrl-C while a command runs; the execution then stands still at the next step."""

    asked: bool = False
    running: bool = False


def batch(
    session: Session, script: Iterable[str], write: Write, *, json: bool = False, echo: bool = True, typed: bool = False
) -> tuple[Session, int, bool]:
    """Runs command lines one after the other: the session then, the exit code, and whether `quit` was said.

    typed: a person has typed them, so that `py` runs.
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
        for outcome in outcomes(session, text, typed=typed):
            session = outcome.session
            show(outcome.answer, write, json=json)
            code = max(code, code_of(outcome.answer))
            if isinstance(outcome.answer, Quit):
                return session, code, True
        if code == REFUSED:
            return session, code, False
    return session, code, False


def outcomes(session: Session, line: str, *, typed: bool = False) -> Iterator[Outcome]:
    """The outcomes of the commands of a line, one after the other, and of those that follow the stops which are met;
    none comes after one that was refused or interrupted. typed: a person has typed the line, and so all commands that
    it has as they stand; what an alias or a stop says may come from a file."""
    said = parts(line) if typed else []
    left, allowed = list(separate(session, line)), session.python
    while left:
        text = left.pop(0)
        outcome = execute(replace(session, python=allowed or text in said), text)
        outcome = replace(outcome, session=replace(outcome.session, python=allowed))
        yield outcome
        session = outcome.session
        if isinstance(outcome.answer, Refusal | Quit) or getattr(outcome.answer, "reason", "") == "pause":
            return
        left[:0] = following(session, outcome.answer)


def code_of(answer: Answer) -> int:
    """The exit code that an answer asks for."""
    met = isinstance(answer, Stop) and answer.reason in ("catch", "stuck")
    return REFUSED if isinstance(answer, Refusal) else FINDING if met else GOOD


def settings(session: Session, file: Path, write: Write) -> Session:
    """The session after the lines of a file of settings, which may not be there; a line that is refused is told."""
    try:
        rows = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return session
    except (OSError, UnicodeDecodeError) as error:
        write(f"{quote(str(file))}: cannot be read: {getattr(error, 'strerror', None) or 'it is no text in UTF-8'}\n")
        return session
    for number, line in enumerate(rows, 1):
        if not line.strip() or line.strip().startswith("#"):
            continue
        for outcome in outcomes(session, line.strip()):
            session = outcome.session
            if isinstance(outcome.answer, Refusal):
                write(f"{quote(str(file))}, line {number}: {outcome.answer.message}\n")
    return session


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
            last = text if repeats(current[0], text) else ""
            pause.asked, pause.running = False, True
            before = current[0]
            try:
                for outcome in outcomes(current[0], text, typed=terminal):
                    current[0] = outcome.session
                    show(outcome.answer, write, json=json)
                    if isinstance(outcome.answer, Quit):
                        return code
                    code = code if terminal else max(code, code_of(outcome.answer))
            except KeyboardInterrupt:
                write(f"interrupted{': the position is unchanged' if current[0] is before else ''}\n")
            finally:
                pause.running = False


def show(answer: Answer, write: Write, *, json: bool) -> None:
    """Writes an answer; at a terminal one that is longer goes through the pager."""
    if json:
        write(f"{to_json(answer)}\n")
        return
    text = "".join(f"{line}\n" for line in lines(answer, _width()))
    if sys.stdin.isatty() and sys.stdout.isatty() and text.count("\n") >= get_terminal_size().lines:
        click.echo_via_pager(text)
    else:
        write(text)


def _width() -> int | None:
    """The width of the terminal; None where the answers go elsewhere, and are not folded."""
    return max(get_terminal_size().columns, NARROWEST) if sys.stdout.isatty() else None


def _single(text: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def repeats(session: Session, text: str) -> bool:
    """True where an empty line behind a line does it again."""
    try:
        return all(lookup(it)[0].moves for it in separate(session, text))
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
    offered: list[str] = []

    def complete(text: str, number: int) -> str | None:
        if number == 0:
            front = readline.get_line_buffer()[: readline.get_endidx()]
            offered[:] = completions(current[0], front)
        return offered[number] if number < len(offered) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" ")
    readline.parse_and_bind("tab: complete")
    with _history():
        yield


@contextmanager
def typed_before() -> Iterator[list[str]]:
    """The lines of earlier sessions, the latest one last; what is appended is kept for later sessions."""
    try:
        import readline
    except ImportError:
        yield []
        return
    with _history():
        known = [readline.get_history_item(i + 1) or "" for i in range(readline.get_current_history_length())]
        typed = list(known)
        yield typed
        for line in typed[len(known) :]:
            readline.add_history(line)


@contextmanager
def _history() -> Iterator[None]:
    """The history of readline is that of the file, and is written there at the end."""
    import readline

    file = Path.home() / ".sonnx_history"
    readline.clear_history()
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.set_history_length(1000)
            readline.write_history_file(file)
