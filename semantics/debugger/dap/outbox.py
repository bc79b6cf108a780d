"""What goes to the client: responses and events, numbered, one at a time whoever sends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

from sonnx.spec.terminal.inert import one_line

from ...machine.trace.format import Json
from .framing import encoded

Send = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Request:
    """arrival: a number of its own, from 1. seq: the client's number, which the response names."""

    arrival: int
    seq: int
    command: str
    arguments: Mapping[str, Json]


class Outbox:
    """Sends messages. A client that has gone away is no error: `gone` says it."""

    def __init__(self, send: Send) -> None:
        self.gone = False
        self._send, self._lock, self._last = send, Lock(), 0

    def response(self, request: Request, body: Mapping[str, Json] | None) -> None:
        """The answer to a request that was carried out. Raises ValueError for a body that is no JSON."""
        self._message({"type": "response", **_of(request), "success": True, **_body(body)})

    def refusal(self, request: Request, number: int, text: str, *, show: bool = False) -> None:
        """The answer to a request that was not. show: whether the client should show it to the person."""
        error: Json = {"id": number, "format": one_line(text), "showUser": show}
        short = "cancelled" if number == CANCELLED else one_line(text)
        self._message(
            {"type": "response", **_of(request), "success": False, "message": short, "body": {"error": error}}
        )

    def event(self, name: str, body: Mapping[str, Json] | None = None) -> None:
        """An event. Raises ValueError for a body that is no JSON."""
        self._message({"type": "event", "event": name, **_body(body)})

    def _message(self, message: Mapping[str, Json]) -> None:
        with self._lock:
            data = encoded({"seq": self._last + 1, **message})
            self._last += 1
            if self.gone:
                return
            try:
                self._send(data)
            except (OSError, ValueError):
                self.gone = True


REFUSED, UNKNOWN, CANCELLED, DEFECT = 1, 2, 3, 4
"""The numbers of errors: not carried out, no such request, cancelled, a defect of sonnx."""


def _of(request: Request) -> dict[str, Json]:
    return {"request_seq": request.seq, "command": request.command}


def _body(body: Mapping[str, Json] | None) -> dict[str, Json]:
    return {} if body is None else {"body": dict(body)}
