"""What an adapter knows about its client and the session that is debugged; one for each connection.

Handlers change it, on the worker's thread alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ...machine.trace.format import Json
from ..display.answers import Stop
from ..session.session import Session
from ..timeline.positions import Place, places
from ..timeline.refused import Refused
from .breakpoint_ids import BreakpointIds
from .interruption import Interruption
from .launch import Launch
from .listing_file import ListingFile
from .outbox import Outbox, Request
from .references import References


@dataclass(frozen=True, slots=True)
class Client:
    """What the client said of itself in `initialize`."""

    lines_start_at: int = 1
    columns_start_at: int = 1
    paging: bool = False
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

    held: the launch request, answered when the client has said that its configuration is done. over: whether
    `terminated` was sent. done: whether nothing more is to be read. resume: what goes on, and for which request, when
    the requests that it made room for are answered.
    """

    outbox: Outbox
    interruption: Interruption
    client: Client = Client()
    launch: Launch | None = None
    file: ListingFile | None = None
    current: Session | None = None
    last: Stop | None = None
    request: Request | None = None
    held: Request | None = None
    hold: bool = False
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
        """What is to be done after the response, in order; nothing is left of it here."""
        found, self._after = self._after, []
        return found

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

    def frames(self) -> tuple[Place, ...]:
        """The stack frames, innermost first."""
        moment = self.session.moment
        return tuple(reversed(places(moment.state, moment.next)))

    def looking(self, frame: int | None) -> Session:
        """The session, looking at the frame that a client refers to; None: the innermost. Raises Refused."""
        if frame is None:
            return replace(self.session, frame=0)
        return replace(self.session, frame=self.references.get(frame, FrameOf, "stack frame").number)
