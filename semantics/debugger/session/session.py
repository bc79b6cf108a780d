"""A debugging session as a value: the timeline, the position on it, and what was set. Commands make new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ...machine.phases import Select
from ...machine.state import State
from ...model.graph import Model
from ...operators.application import Stuck
from ..display.answers import Answer, Where
from ..display.listing import Listing, listing
from ..stops.stops import Stop
from ..timeline.history import History, Moment, next_path
from ..timeline.positions import base, is_end_of_body, levels

Interrupted = Callable[[], bool]
"""Whether whoever waits wants the execution to stand still."""


@dataclass(frozen=True, slots=True)
class Session:
    """history: the timeline. index, phase: the position, the phases of the next transition that are over.

    frame: which frame is looked at, counted from the innermost. stops: breakpoints, watches and catches. number: of
    the next one. bookmarks: timeline and index by name. timelines: all of them, the one of the model's execution first.
    listed: the line at which `list` goes on, 0 where it begins at the position. log: what a session that is saved has
    to do again, each with the index at which it was said. interrupted: whether the execution is to stand still.
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
    log: tuple[tuple[int, str], ...] = ()
    interrupted: Interrupted = lambda: False

    @property
    def moment(self) -> Moment:
        """Where the session stands."""
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
    """The session after a command, and what it answers."""

    session: Session
    answer: Answer


def begin(state: State, *, kept: int | None = None, limit: int | None = None) -> Session:
    """A session at the first state of a run."""
    history = History(state, limit=limit) if kept is None else History(state, kept=kept, limit=limit)
    return Session(history, listing(state.program.model), (history,))


def moved(session: Session, index: int, phase: int = 0) -> Session:
    """The session at another position; the innermost frame is looked at."""
    return replace(session, index=index, phase=phase, frame=0, listed=0)


def where(session: Session) -> Where:
    """The position of a session as data."""
    moment, found = session.moment, session.listing
    if moment.next is None or is_end_of_body(moment):
        line = found.of_return.get(moment.state.frame.graph, 0)
    else:
        line = found.of_node.get(moment.next, 0)
    text = found.lines[line - 1].text.strip() if line else ""
    rule = ""
    if session.phase:
        first = session.history.phases(session.index)[0]
        rule = first.rule if isinstance(first, Select | Stuck) else ""
    ended = moment.next is None or (session.history.ended and session.index == session.history.last)
    around, now = base(session.history, session.index), levels(moment.state, moment.next)
    call = str(now[len(around)]) if len(now) > len(around) else ""
    return Where(moment.index, session.phase, next_path(moment), rule, line, text, ended, call, session.history.label)
