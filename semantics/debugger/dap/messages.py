"""Messages of the protocol: framed on a stream of bytes, sent in order, and the arguments of a request by type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, NoReturn

from sonnx.spec.terminal import one_line

from ...machine.trace.format import Json
from ...model.path import quote
from ..timeline.history import Refused

Read = Callable[[int], bytes]
"""At most so many bytes, at least one unless the stream has ended."""

_LONGEST_HEAD: Final = 1 << 12
_LONGEST_BODY: Final = 1 << 27
_AT_ONCE: Final = 1 << 16
_LENGTH: Final = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,12})[ \t]*", re.IGNORECASE)
_FIELD: Final = re.compile(rb"[!-9;-~]+[ \t]*:[^\r\n]*")


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that are no message. last: where the next one begins is not known, so nothing more is read."""

    reason: str
    last: bool = False


def encoded(message: Mapping[str, Json]) -> bytes:
    """A message as it goes over the wire, ASCII. Raises ValueError for NaN and infinities, which JSON does not have."""
    body = json.dumps(message, allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def messages(read: Read) -> Iterator[dict[str, Json] | Malformed]:
    """The messages that arrive until the stream ends, or until it cannot be taken apart any more."""
    buffer = bytearray()
    while True:
        head = _head(read, buffer)
        if head is None:
            return
        if isinstance(head, Malformed):
            yield head
            return
        while len(buffer) < head:
            more = read(_AT_ONCE)
            if not more:
                yield Malformed(f"the stream ended after {len(buffer)} of {head} bytes of a message", last=True)
                return
            buffer += more
        body = bytes(buffer[:head])
        del buffer[:head]
        yield _parsed(body)


def _head(read: Read, buffer: bytearray) -> int | Malformed | None:
    """Takes the header off the buffer and gives the length that it says; None at the end of the stream."""
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        if len(buffer) > _LONGEST_HEAD:
            return Malformed(f"a header has more than {_LONGEST_HEAD} bytes", last=True)
        more = read(_AT_ONCE)
        if not more:
            return Malformed("the stream ended within a header", last=True) if buffer.strip() else None
        buffer += more
    fields = bytes(buffer[:end]).split(b"\r\n")
    del buffer[: end + 4]
    lengths = [int(match[1]) for field in fields if (match := _LENGTH.fullmatch(field))]
    if end > _LONGEST_HEAD or len(lengths) != 1 or not all(_FIELD.fullmatch(field) for field in fields):
        return Malformed("a header does not say Content-Length: N, once", last=True)
    if lengths[0] > _LONGEST_BODY:
        return Malformed(f"a message of {lengths[0]} bytes is longer than {_LONGEST_BODY}", last=True)
    return lengths[0]


def _parsed(body: bytes) -> dict[str, Json] | Malformed:
    try:
        message: Json = json.loads(body.decode("utf-8"), parse_constant=_refused)
    except UnicodeDecodeError:
        return Malformed("a message is not in UTF-8")
    except (ValueError, RecursionError):
        return Malformed("a message is no JSON")
    return message if isinstance(message, dict) else Malformed("a message is no JSON object")


def _refused(name: str) -> NoReturn:
    raise ValueError(name)


# ---- Responses and events -------------------------------------------------------------------------

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


# ---- Arguments of a request -----------------------------------------------------------------------

LARGEST: Final = (1 << 31) - 1
"""The greatest integer that the protocol's clients keep exactly."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The object `arguments` of a request, or one inside of it. what: how messages call it."""

    fields: Mapping[str, Json]
    what: str = "arguments"

    def has(self, name: str) -> bool:
        """True where it is given, and not null."""
        return self.fields.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """A string; the default where it is not given. Raises Refused."""
        value = self._value(name, default)
        if not isinstance(value, str):
            raise self._refused(name, "a string")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false. Raises Refused."""
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self._refused(name, "true or false")
        return value

    def whole(self, name: str, default: int | None = None, *, least: int = 0, most: int = LARGEST) -> int:
        """An integer. Raises Refused."""
        value = self._value(name, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._refused(name, f"an integer from {least} to {most}")
        return value

    def maybe_whole(self, name: str, *, most: int = LARGEST) -> int | None:
        """An integer, None where it is not given. Raises Refused."""
        return self.whole(name, most=most) if self.has(name) else None

    def part(self, name: str) -> Arguments:
        """An object; an empty one where it is not given. Raises Refused."""
        value = self.fields.get(name)
        if value is None:
            return Arguments({}, name)
        if not isinstance(value, dict):
            raise self._refused(name, "an object")
        return Arguments(value, name)

    def parts(self, name: str) -> tuple[Arguments, ...]:
        """The objects of an array; none where it is not given. Raises Refused."""
        return tuple(self._part(name, i, value) for i, value in enumerate(self._items(name)))

    def texts(self, name: str) -> tuple[str, ...]:
        """The strings of an array; none where it is not given. Raises Refused."""
        items = self._items(name)
        if not all(isinstance(it, str) for it in items):
            raise self._refused(name, "an array of strings")
        return tuple(it for it in items if isinstance(it, str))

    def _items(self, name: str) -> list[Json]:
        value = self.fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._refused(name, "an array")
        return value

    def _part(self, name: str, i: int, value: Json) -> Arguments:
        if not isinstance(value, dict):
            raise self._refused(f"{name}[{i}]", "an object")
        return Arguments(value, f"{name}[{i}]")

    def _value(self, name: str, default: Json) -> Json:
        value = self.fields.get(name)
        value = default if value is None else value
        if value is None:
            raise Refused(f"{self.what}: {quote(name)} is missing: give it")
        return value

    def _refused(self, name: str, wanted: str) -> Refused:
        return Refused(f"{self.what}: {quote(name)} must be {wanted}")
