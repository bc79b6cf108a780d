"""Progress of what takes long, for clients that show it; it can be cancelled there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ...machine.trace.format import Json
from .adapter import Adapter

_AFTER: Final = 0.5
"""Seconds after which it is shown."""
_EVERY: Final = 0.25
"""Seconds between two updates."""


@contextmanager
def progress(adapter: Adapter, title: str) -> Iterator[None]:
    """Shows how far an execution is that lasts longer than a moment. Its number is that of the request's arrival."""
    request = adapter.request
    if not adapter.client.progress or request is None or adapter.current is None:
        yield
        return
    number, session = str(request.arrival), adapter.current
    begun, shown = time.monotonic(), 0.0

    def tick() -> None:
        nonlocal shown
        now = time.monotonic()
        if now - begun < _AFTER or now - shown < _EVERY:
            return
        first, shown = not shown, now
        message = f"step {session.history.last}"
        body: dict[str, Json] = {"progressId": number, "message": message}
        if first:
            body |= {"title": title, "requestId": request.seq, "cancellable": True}
        adapter.event("progressStart" if first else "progressUpdate", body)

    adapter.interruption.tick = tick
    try:
        yield
    finally:
        adapter.interruption.tick = None
        if shown:
            adapter.event("progressEnd", {"progressId": number})
