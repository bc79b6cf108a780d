"""The adapter of one connection: its client, the session that is debugged, references, breakpoints, interruptions.

Handlers change it, on the worker's thread alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TypeVar

from ...machine.trace.format import Json
from ..display.answers import Stop
from ..session.session import Session
from ..timeline.history import CallFrame, Refused, call_frames
from .launch import Launch, ListingFile
from .messages import LARGEST, Arguments, Outbox, Request


class Interruption:
    """True where the request at hand is to come to its end. The reader sets it, the worker asks between two steps."""

    def __init__(self) -> None:
        self.closing = False
        """True where the connection ends, so that nothing is worth going on."""
        self.tick: Callable[[], None] | None = None
        """Called by the worker between two steps."""
        self.resumable = False
        """True where the worker can go on later with what it does, so that it may make room for other requests."""
        self._lock = Lock()
        self._until = 0
        self._room = 0
        self._cancelled: set[int] = set()
        self._at_hand = 0

    def begin(self, arrival: int) -> None:
        """The worker turns to a request."""
        self._at_hand = arrival

    def pause(self, arrival: int) -> None:
        """Ends what arrived before that number."""
        with self._lock:
            self._until = max(self._until, arrival)

    def make_room(self, arrival: int) -> None:
        """Lets what arrived before that number wait, where it can."""
        with self._lock:
            self._room = max(self._room, arrival)

    def cancel(self, arrival: int) -> None:
        """Ends one request, or keeps it from beginning."""
        with self._lock:
            self._cancelled.add(arrival)

    def is_cancelled(self, arrival: int) -> bool:
        """True where a request was cancelled."""
        with self._lock:
            return arrival in self._cancelled

    def is_over(self) -> bool:
        """True where the request at hand is to come to its end, and not only to make room."""
        return self.closing or self._at_hand < self._until or self._at_hand in self._cancelled

    def asked(self) -> bool:
        """True where the execution is to stand still; asked by the engine between two steps."""
        if self.tick is not None:
            self.tick()
        return self.is_over() or (self.resumable and self._at_hand < self._room)

    def has_room(self, arrival: int) -> None:
        """All that asked for room before that number has had it."""
        with self._lock:
            self._room = 0 if self._room <= arrival else self._room


# ---- References -----------------------------------------------------------------------------------

Kind = TypeVar("Kind")


class References:
    """Numbers from 1 to 2**31 - 1 for what is referred to at this position."""

    def __init__(self) -> None:
        self._last = 0
        self._known: dict[int, Hashable] = {}
        self._numbers: dict[Hashable, int] = {}

    def to(self, thing: Hashable) -> int:
        """The number of a thing; equal things have the same one until the execution moves."""
        number = self._numbers.get(thing)
        if number is None:
            if self._last >= LARGEST:
                raise Refused("all references are used up: restart the session")
            self._last = number = self._last + 1
            self._known[number], self._numbers[thing] = thing, number
        return number

    def get(self, number: int, kind: type[Kind], what: str) -> Kind:
        """The referent of a number. Raises Refused when it is none of that kind, or from before the last move."""
        thing = self._known.get(number)
        if not isinstance(thing, kind):
            late = number <= self._last and number not in self._known
            raise Refused(f"there is no {what} {number}{': the execution has moved since, ask again' if late else ''}")
        return thing

    def forget(self) -> None:
        """Ends the life of all references given so far."""
        self._known.clear()
        self._numbers.clear()


# ---- Numbers of breakpoints -----------------------------------------------------------------------

SOURCE, FUNCTION, EXCEPTION, DATA, TYPED = "source", "function", "exception", "data", "typed"
"""The groups by what sets them; `typed`: commands of the debug console."""


@dataclass(slots=True)
class BreakpointIds:
    """numbers: the client's number of a stop by the session's. group: of each stop of the session.

    asked: the last request of each group, of lines for each source. pending: the numbers that were given for it before
    there was a session.
    """

    numbers: dict[int, int] = field(default_factory=dict)
    group: dict[int, str] = field(default_factory=dict)
    asked: dict[tuple[str, str], Arguments] = field(default_factory=dict)
    pending: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    last: int = 0

    def new(self) -> int:
        """A number that was not given before."""
        self.last += 1
        return self.last

    def tie(self, stop: int, group: str, number: int | None = None) -> int:
        """Ties a stop of the session to a number of the client, a new one where none is given."""
        given = self.new() if number is None else number
        self.numbers[stop], self.group[stop] = given, group
        return given

    def untie(self, stops: Iterable[int]) -> None:
        """Forgets stops."""
        for stop in stops:
            self.numbers.pop(stop, None)
            self.group.pop(stop, None)

    def of_group(self, group: str) -> tuple[int, ...]:
        """The stops of a group."""
        return tuple(stop for stop, own in self.group.items() if own == group)


# ---- The adapter ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Client:
    """A client as it describes itself in `initialize`."""

    lines_start_at: int = 1
    columns_start_at: int = 1
    types: bool = False
    memory_references: bool = False
    progress: bool = False
    invalidated: bool = False
    memory_event: bool = False

    def line(self, number: int) -> int:
        """A line of the listing, as the client counts."""
        return number - 1 + self.lines_start_at

    def column(self, number: int) -> int:
        """A column of the listing, as the client counts. The listing is ASCII: UTF-16 code units are characters."""
        return number - 1 + self.columns_start_at

    def own_line(self, number: int) -> int:
        """A line as the client counts, as the listing does."""
        return number + 1 - self.lines_start_at

    def own_column(self, number: int) -> int:
        """A column as the client counts, as the listing does."""
        return number + 1 - self.columns_start_at


@dataclass(frozen=True, slots=True)
class FrameOf:
    """A stack frame that a client was told of: its number from the innermost one, 0."""

    number: int


@dataclass(slots=True)
class Adapter:
    """session: what is debugged, None before the launch. last: how the execution came to stand still.

    waiting: the launch request, answered when the client has said that its configuration is done. initialized,
    configured: whether these requests were answered. over: whether `terminated` was sent. done: whether nothing more is
    to be read. resume: what goes on, and for which request, when the requests that it made room for are answered.
    """

    outbox: Outbox
    interruption: Interruption
    client: Client = Client()
    launch: Launch | None = None
    file: ListingFile | None = None
    current: Session | None = None
    last: Stop | None = None
    request: Request | None = None
    waiting: Request | None = None
    hold: bool = False
    initialized: bool = False
    configured: bool = False
    started: bool = False
    over: bool = False
    done: bool = False
    resume: tuple[Request | None, Callable[[], None]] | None = None
    references: References = field(default_factory=References)
    ids: BreakpointIds = field(default_factory=BreakpointIds)
    _after: list[Callable[[], None]] = field(default_factory=list)

    @property
    def session(self) -> Session:
        """The session. Raises Refused before the launch."""
        if self.current is None:
            raise Refused("nothing is debugged yet: send launch or attach first")
        return self.current

    # ---- What handlers do -------------------------------------------------------------------------

    def event(self, name: str, body: Mapping[str, Json] | None = None) -> None:
        """Sends an event now, before the response to the request at hand."""
        self.outbox.event(name, body)

    def after(self, action: Callable[[], None]) -> None:
        """Does something once the response to the request at hand is sent: later events, or what takes time."""
        self._after.append(action)

    def later(self, name: str, body: Mapping[str, Json] | None = None) -> None:
        """Sends an event once the response to the request at hand is sent."""
        self.after(lambda: self.outbox.event(name, body))

    def take_after(self) -> list[Callable[[], None]]:
        """Actions to be done after the response, in order; nothing is left of it here."""
        actions, self._after = self._after, []
        return actions

    def become(self, session: Session) -> None:
        """The session after a command. References die where the position or the timeline is another one."""
        before = self.current
        self.current = session
        if (
            before is None
            or before.history is not session.history
            or (before.index, before.phase) != (session.index, session.phase)
        ):
            self.references.forget()

    # ---- Frames -------------------------------------------------------------------------------------

    def frames(self) -> tuple[CallFrame, ...]:
        """The stack frames, innermost first."""
        moment = self.session.moment
        return tuple(reversed(call_frames(moment.state, moment.next)))

    def looking(self, frame: int | None) -> Session:
        """The session, looking at the frame that a client refers to; None: the innermost. Raises Refused."""
        if frame is None:
            return replace(self.session, frame=0)
        return replace(self.session, frame=self.references.get(frame, FrameOf, "stack frame").number)


# ---- Handlers -------------------------------------------------------------------------------------

Body = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Handler:
    """request: the `command` that it answers. run: gives the body of the response, None for no body, or raises Refused.

    capabilities: what `initialize` says because of this handler. early: whether it answers before a model is launched.
    """

    request: str
    run: Callable[[Adapter, Arguments], Body | None]
    capabilities: Mapping[str, Json] = field(default_factory=dict)
    early: bool = False


def capabilities(handlers: Iterable[Handler]) -> dict[str, Json]:
    """The capabilities of an adapter that has these handlers."""
    return {name: value for handler in handlers for name, value in handler.capabilities.items()}
