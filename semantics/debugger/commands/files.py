"""Commands that write files: the listing, the graph with the position, and the session, a script of commands."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from sonnx.spec.pages import MissingExtraError

from ...errors import ModelError
from ...machine.memory import Uninitialised, read
from ...machine.state import region_of
from ...model.path import quote
from ...picture.page import to_html
from ...runtimes.engines.registry import BACKEND, KERNELS
from ..display.answers import Answer, Note, Refusal, Stop
from ..display.listing import check_listing, write_listing
from ..session.picture import annotated, dot, svg
from ..session.session import Command, Outcome, Session, answered, begin, unquoted, where, words
from ..timeline.history import Refused

_HEAD: Final = "# sonnx session 1"
_LONGEST: Final = 1 << 24
_KEEPING: Final = ("alias", "commands")
_PY: Final = re.compile(r"(?<![\w.$])py(?![\w.])")
_PLACING: Final = ("timeline", "seek", "stepi", "up")


def _path(text: str) -> Path:
    text = text.strip()
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        text = text[1:-1]
    if not text:
        raise Refused("give the name of a file")
    return Path(text)


def _written(path: Path, text: str, what: str) -> Answer:
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise Refused(f"{quote(str(path))} is there already: give another name") from None
    except OSError as error:
        raise Refused(f"{quote(str(path))}: {error.strerror}") from None
    return Note((f"{quote(str(path))}: {what}",))


# ---- The listing and the graph ----------------------------------------------------------------


def _listing(session: Session, text: str) -> Answer:
    path = _path(text)
    try:
        if path.exists():
            check_listing(session.listing, path)
            return Note((f"{quote(str(path))} is the listing of this model",))
        write_listing(session.listing, path)
    except OSError as error:
        raise Refused(f"{quote(str(path))}: {error.strerror}") from None
    except ModelError as error:
        raise Refused(str(error)) from None
    return Note((f"{quote(str(path))}: {len(session.listing.lines)} lines",))


def _graph(session: Session, text: str) -> Answer:
    path = _path(text)
    if path.suffix not in GRAPHS:
        raise Refused(f"the file's name ends with {', '.join(GRAPHS)}")
    make, what = GRAPHS[path.suffix]
    return _written(path, make(session), what)


def _page(session: Session) -> str:
    try:
        return to_html(session.model, annotated(session))
    except MissingExtraError as error:
        raise Refused(str(error)) from None


_PART: Final = "the graph that runs, with the position"
GRAPHS: Final[Mapping[str, tuple[Callable[[Session], str], str]]] = {
    ".html": (_page, "the model with the values of this step, for a browser"),
    ".svg": (svg, _PART),
    ".dot": (dot, _PART),
}
"""By the end of the file's name: what makes the picture, and what it shows."""


# ---- Sessions ---------------------------------------------------------------------------------


def heading(session: Session) -> tuple[str, str]:
    """The lines that say which model and inputs a session is of."""
    state = session.timelines[0].at(0).state
    hashed = hashlib.sha256()
    for t in state.program.model.graphs[0].inputs:
        where = region_of(state, t)
        data = b"" if where is None else read(state.store.memory, where.offset, where.length)
        hashed.update(repr(None if where is None else where.type).encode())
        hashed.update(b"" if isinstance(data, Uninitialised) else data)
    return f"# model {session.listing.digest}", f"# inputs {hashed.hexdigest()}, schedule {state.schedule}"


def _save(session: Session, text: str) -> Answer:
    script = [_HEAD, *heading(session)]
    for it in session.log:
        script += [f"timeline {it.timeline}"] if len(session.timelines) > 1 else []
        script.append(f"seek {it.index}")
        script += [f"up {it.frame}"] if it.frame else []
        script.append(it.line)
    there = {it.number for it in session.stops}
    deleted = {number for it in session.log if it.line.startswith("delete ") for number in it.line.split()[1:]}
    spent = [str(it) for it in range(1, session.number) if it not in there and str(it) not in deleted]
    script += [f"delete {' '.join(spent)}"] if spent else []
    script += [f"timeline {session.timelines.index(session.history)}", f"seek {session.index}"]
    script += [f"stepi {session.phase}"] if session.phase else []
    script += [f"up {session.frame}"] if session.frame else []
    return _written(_path(text), "".join(f"{line}\n" for line in script), f"{len(script)} lines: load runs them again")


Execute = Callable[[Session, str], Outcome]
Lookup = Callable[[str], tuple[Command, str]]


def load(execute: Execute, lookup: Lookup) -> Command:
    """The command that runs the lines of a saved session again, by the table that it stands in."""

    def run(session: Session, text: str) -> Outcome:
        return _load(session, _path(text), execute, lookup)

    summary, examples = "Go on with a saved session.", ("load bug.session",)
    return Command("load", run, summary, "FILE", (), examples, "file")


def _load(session: Session, path: Path, execute: Execute, lookup: Lookup) -> Outcome:
    try:
        if path.stat().st_size > _LONGEST:
            raise Refused(f"{quote(str(path))} is too large for a session")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise Refused(f"{quote(str(path))}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Refused(f"{quote(str(path))} is no saved session") from None
    if lines[:1] != [_HEAD]:
        raise Refused(f"{quote(str(path))} is no saved session")
    if tuple(lines[1:3]) != heading(session):
        raise Refused(f"{quote(str(path))} is a session on another model, other inputs or another schedule")
    first = session.timelines[0]
    again = begin(first.at(0).state, kept=first.kept, limit=first.limit)
    again = replace(again, interrupted=session.interrupted, source=session.source)
    for number, line in enumerate(lines[3:], 4):
        there = f"{quote(str(path))}, line {number}"
        try:
            command = lookup(line)[0]
        except Refused as refused:
            raise Refused(f"{there}: {refused.message}") from None
        if not command.keeps and command.name not in _PLACING:
            raise Refused(f"{there}: {quote(line)} is no line of a saved session")
        if _names_code(command, line) or (session.python and command.name in _KEEPING and _PY.search(line)):
            raise Refused(f"{there}: {quote(line)} has Python code of somebody run: a file does not do that, type it")
        outcome = execute(again, line)
        if isinstance(outcome.answer, Refusal):
            raise Refused(f"{there}: {quote(line)}: {outcome.answer.message}")
        again = outcome.session
    again = replace(again, python=session.python)
    return Outcome(again, Stop("phase" if again.phase else "seek", where(again)))


def _names_code(command: Command, line: str) -> bool:
    """True where a line names an engine that is somebody's Python code; a line that keeps others may do so anywhere."""
    if command.name in _KEEPING:
        return BACKEND in line or KERNELS in line
    return any(unquoted(it).startswith((BACKEND, KERNELS)) for it in words(line))


COMMANDS = (
    Command("listing", answered(_listing), "Write the listing to a new file, or compare an old one.", "FILE", (),
            ("listing net.sonnx.lst",), "file"),
    Command("graph", answered(_graph), "Draw the model as a page with values, or the graph that runs.",
            "FILE.html|FILE.svg|FILE.dot", (), ("graph here.html", "graph here.svg"), "file"),
    Command("save", answered(_save), "Save the session: stops, bookmarks, timelines, position, frame.", "FILE", (),
            ("save bug.session",), "file"),
)  # fmt: skip
