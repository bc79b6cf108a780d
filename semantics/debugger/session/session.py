"""A debugging session as a value: the timeline, the position on it, and what was set. Commands make new ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ...machine.phases import Select
from ...machine.state import State, node_path
from ...model.graph import Model, NodeId
from ...model.path import quote
from ...operators.application import Stuck
from ..against.judging import Comparison
from ..display.answers import Answer, Where
from ..display.listing import Listing, listing
from ..expressions import Context, Expression, Name, parse
from ..stops import Stop
from ..timeline.history import (
    History,
    Moment,
    Refused,
    base,
    call_frames,
    first_ready,
    is_end_of_body,
    levels,
    next_path,
)
from ..timeline.names import nodes_meant, tensors_by_name

Interrupted = Callable[[], bool]
"""True where whoever waits wants the execution to stand still."""


@dataclass(frozen=True, slots=True)
class Said:
    """A command line, and where it was said: the number of the timeline, the index, the frame that was looked at."""

    timeline: int
    index: int
    frame: int
    line: str


@dataclass(frozen=True, slots=True)
class Session:
    """history: the timeline. index, phase: the position, the phases of the next transition that are over.

    frame: which frame is looked at, counted from the innermost. stops: breakpoints, watches and catches. number: of
    the next one. bookmarks: timeline and index by name. timelines: all of them, the one of the model's execution first.
    listed: the line at which `list` goes on, 0 where it begins at the position. displays: expressions that are shown at
    each stop, by number. follows: command lines that follow a stop, by its number. aliases: command lines by the name
    that stands for them. log: what a session that is saved has to do again. interrupted: whether the execution is to
    stand still. source: the file of the model, where there is one. against: the reference to compare with, and what is
    tolerated. python: whether `py` runs Python.
    """

    history: History
    listing: Listing
    timelines: tuple[History, ...]
    index: int = 0
    phase: int = 0
    frame: int = 0
    stops: tuple[Stop, ...] = ()
    number: int = 1
    bookmarks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    listed: int = 0
    displays: tuple[tuple[int, str], ...] = ()
    follows: Mapping[int, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    log: tuple[Said, ...] = ()
    interrupted: Interrupted = lambda: False
    source: Path | None = None
    against: Comparison | None = None
    python: bool = False

    @property
    def moment(self) -> Moment:
        """The moment at which the session stands."""
        return self.history.at(self.index)

    @property
    def state(self) -> State:
        """The state there."""
        return self.moment.state

    @property
    def model(self) -> Model:
        """The model."""
        return self.state.program.model


@dataclass(frozen=True, slots=True)
class Outcome:
    """The session after a command, and what it answers. again: the line that does the same later, where that is
    another one than was said."""

    session: Session
    answer: Answer
    again: str = ""


def begin(state: State, *, kept: int | None = None, limit: int | None = None) -> Session:
    """A session at the first state of a run."""
    history = History(state, limit=limit) if kept is None else History(state, kept=kept, limit=limit)
    return Session(history, listing(state.program.model), (history,))


def moved(session: Session, index: int, phase: int = 0) -> Session:
    """The session at another position; the innermost frame is looked at."""
    return replace(session, index=index, phase=phase, frame=0, listed=0)


def where(session: Session) -> Where:
    """The position of a session as data."""
    moment, listing = session.moment, session.listing
    if moment.next is None or is_end_of_body(moment):
        line = listing.of_return.get(moment.state.frame.graph, 0)
    else:
        line = listing.of_node.get(moment.next, 0)
    text = listing.lines[line - 1].text.strip() if line else ""
    rule = ""
    if session.phase:
        first = session.history.phases(session.index)[0]
        rule = first.rule if isinstance(first, Select | Stuck) else ""
    ended = moment.next is None or (session.history.ended and session.index == session.history.last)
    around, now = base(session.history, session.index), call_frames(moment.state, moment.next)
    call = now[len(around)].path if len(now) > len(around) else ""
    return Where(moment.index, session.phase, next_path(moment), rule, line, text, ended, call, session.history.label)


# ---- What may come next ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """node: the one that comes next then. label: in words. command: what makes it come next, "" where it does."""

    node: NodeId
    label: str
    command: str = ""


def choices(session: Session, most: int) -> tuple[Choice, ...]:
    """The next node first, then others, at most so many and only those near the position in the order of the graph."""
    moment = session.moment
    if moment.next is None:
        return ()
    others = () if is_end_of_body(moment) else first_ready(moment.state, most)
    return (
        Choice(moment.next, _into(session, moment.next)),
        *(
            Choice(
                n,
                f"let {node_path(moment.state, n)} come next, and fire it",
                f"choose {session.model.nodes[n].path}",
            )
            for n in others
            if n != moment.next
        ),
    )


def _into(session: Session, n: NodeId) -> str:
    """The next step in words."""
    moment, node = session.moment, session.model.nodes[n]
    around = levels(moment.state, n)
    within = f" in the call {around[-1]}" if isinstance(around[-1], str) else ""
    if is_end_of_body(moment):
        return f"end this run of the body: {node.op_type} goes on"
    if node.bodies:
        bodies = " or ".join(quote(session.model.graphs[body].name) for _, body in node.bodies)
        return f"into {node.op_type}: {bodies}{within}"
    return f"fire {node.op_type}{within}"


def line_meant(session: Session, text: str) -> int:
    """The line that a number or a node means. Raises Refused."""
    listing = session.listing
    if text.isdecimal():
        number = int(text)
        if not 1 <= number <= len(listing.lines):
            raise Refused(f"the listing has the lines 1 to {len(listing.lines)}")
        return number
    nodes = nodes_meant(session.model, text).nodes
    if not nodes:
        raise Refused("give a line or a node")
    return min(listing.of_node[n] for n in nodes)


# ---- Commands and their arguments -----------------------------------------------------------------

_WORD: Final = re.compile(r"""(?:[^\s"'`]|"(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`)+""")
_LARGEST: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Command:
    """name: as typed, with blanks where it has two words. aliases: other names, exact. usage: the arguments.

    summary: one sentence. examples: command lines. completes: what its arguments name: tensor, node, file, fault, stop,
    or nothing.
    moves: whether the execution moves, so that an empty line repeats it. keeps: whether a session that is saved has to
    do it again: it sets something, or makes a timeline.
    """

    name: str
    run: Callable[[Session, str], Outcome]
    summary: str
    usage: str = ""
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    completes: str = ""
    moves: bool = False
    keeps: bool = False


def answered(run: Callable[[Session, str], Answer]) -> Callable[[Session, str], Outcome]:
    """A command that only answers."""
    return lambda session, text: Outcome(session, run(session, text))


def words(text: str) -> list[str]:
    """The words of a text; what stands in quotes is not taken apart."""
    return _WORD.findall(text)


def option(text: str, name: str) -> tuple[str, str | None]:
    """The text without the word `name` and the one behind it, and that one."""
    parts = words(text)
    if name not in parts:
        return text, None
    at = parts.index(name)
    if at + 1 == len(parts):
        raise Refused(f"{name} needs a value behind it")
    return " ".join(parts[:at] + parts[at + 2 :]), parts[at + 1]


def unquoted(text: str) -> str:
    """A text without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0] else text


def whole(text: str, default: int | None = None, *, least: int = 0) -> int:
    """One whole number, in decimal or hexadecimal (0x). Raises Refused."""
    text = text.strip()
    if not text and default is not None:
        return default
    try:
        number = int(text, 0) if text.lower().startswith("0x") else int(text)
    except ValueError:
        raise Refused(f"give a whole number in place of {quote(text)}") from None
    if not least <= number <= _LARGEST:
        raise Refused(f"the number is at least {least} and below 2**53")
    return number


def none(text: str) -> None:
    """Refuses arguments."""
    if text.strip():
        raise Refused(f"this command takes no {quote(text.strip())}")


def context(session: Session) -> Context:
    """The position at which expressions of the session are evaluated."""
    return Context(session.history, session.index, session.frame)


def expression(session: Session, text: str) -> Expression:
    """The expression that a text says; the name of a tensor as it is, with a slice or without, needs no quotes."""
    text = text.strip()
    if not text:
        raise Refused("give an expression, such as the name of a tensor")
    front = text.partition("[")[0].rstrip()
    known = tensors_by_name(session.state.program)
    if text in known:
        return Name(text, quoted=True)
    if front in known:
        return parse(text, front)
    return parse(text)
