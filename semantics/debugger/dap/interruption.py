"""What stands an execution still from another thread: pause, cancel, the end of the connection.

Requests are numbered as they arrive, so a pause stops what arrived before it and nothing that comes later.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock


class Interruption:
    """Whether the request at hand is to come to its end. The reader sets it, the worker asks between two steps."""

    def __init__(self) -> None:
        self.closing = False
        """Whether the connection ends, so that nothing is worth going on."""
        self.tick: Callable[[], None] | None = None
        """Called by the worker between two steps."""
        self.resumable = False
        """Whether the worker can go on later with what it does, so that it may make room for other requests."""
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
        """Whether a request was cancelled."""
        with self._lock:
            return arrival in self._cancelled

    def is_over(self) -> bool:
        """Whether the request at hand is to come to its end, and not only to make room."""
        return self.closing or self._at_hand < self._until or self._at_hand in self._cancelled

    def asked(self) -> bool:
        """Whether the execution is to stand still; asked by the engine between two steps."""
        if self.tick is not None:
            self.tick()
        return self.is_over() or (self.resumable and self._at_hand < self._room)

    def has_room(self, arrival: int) -> None:
        """All that asked for room before that number has had it."""
        with self._lock:
            self._room = 0 if self._room <= arrival else self._room
