"""Messages of the Debug Adapter Protocol on a stream of bytes: `Content-Length: N`, an empty line, N bytes of JSON.

What arrives may be split anywhere; N counts bytes. What cannot be read is data (`Malformed`), no exception.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from ...machine.trace.format import Json

Read = Callable[[int], bytes]
"""At most so many bytes, at least one unless the stream has ended."""

_LONGEST_HEAD: Final = 1 << 12
_LONGEST_BODY: Final = 1 << 27
_AT_ONCE: Final = 1 << 16
_LENGTH: Final = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,12})[ \t]*", re.IGNORECASE)
_FIELD: Final = re.compile(rb"[!-9;-~]+[ \t]*:[^\r\n]*")


@dataclass(frozen=True, slots=True)
class Malformed:
    """What arrived is no message. last: where the next one begins is not known, so nothing more is read."""

    reason: str
    last: bool = False


def encoded(message: Mapping[str, Json]) -> bytes:
    """A message as it goes over the wire, ASCII. Raises ValueError for NaN and infinities, which JSON does not have."""
    body = json.dumps(message, allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def messages(read: Read) -> Iterator[dict[str, Json] | Malformed]:
    """What arrives until the stream ends, or until it cannot be taken apart any more."""
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
    lengths = [int(found[1]) for field in fields if (found := _LENGTH.fullmatch(field))]
    if end > _LONGEST_HEAD or len(lengths) != 1 or not all(_FIELD.fullmatch(field) for field in fields):
        return Malformed("a header does not say Content-Length: N, once", last=True)
    if lengths[0] > _LONGEST_BODY:
        return Malformed(f"a message of {lengths[0]} bytes is longer than {_LONGEST_BODY}", last=True)
    return lengths[0]


def _parsed(body: bytes) -> dict[str, Json] | Malformed:
    try:
        found: Json = json.loads(body.decode("utf-8"), parse_constant=_refused)
    except UnicodeDecodeError:
        return Malformed("a message is not in UTF-8")
    except (ValueError, RecursionError):
        return Malformed("a message is no JSON")
    return found if isinstance(found, dict) else Malformed("a message is no JSON object")


def _refused(name: str) -> NoReturn:
    raise ValueError(name)
