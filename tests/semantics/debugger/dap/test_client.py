"""The test client finds what an adapter does wrong; without this its silence would mean nothing."""

from __future__ import annotations

import io
import json
import threading

import pytest
from dap_client import Client, Json, ProtocolError, framed
from tables import table


def response(seq: int, of: int, command: str, **more: object) -> Json:
    return {"seq": seq, "type": "response", "request_seq": of, "command": command, "success": True, **more}


STOPPED: Json = {"seq": 1, "type": "event", "event": "stopped", "body": {"reason": "step"}}
THREADS = response(1, 1, "threads", body={"threads": []})
WIDE = json.dumps({**THREADS, "message": "größe"}, ensure_ascii=False)
WRONG = {
    "a number is left out": ("number 2 instead of 1", [framed({**THREADS, "seq": 2})]),
    "a number comes twice": ("number 1 instead of 2", [framed(THREADS), framed(STOPPED)]),
    "stopped before the response": ("stopped before", [framed(STOPPED)]),
    "launch before configurationDone": ("before configurationDone", [framed(response(1, 3, "launch"))]),
    "two answers": ("an answer to no request", [framed(THREADS), framed({**THREADS, "seq": 2})]),
    "an answer to another request": ("an answer to no request", [framed(response(1, 2, "next2"))]),
    "another header": ("no header of the protocol", [b"Content-Type: x\r\n\r\n{}"]),
    "a length in characters": ("DecodeError", [b"Content-Length: %d\r\n\r\n%b" % (len(WIDE), WIDE.encode())]),
    "NaN": ("NaN is no JSON", [b"Content-Length: 10\r\n\r\n" + json.dumps({"a": float("nan")}).encode()]),
    "no object": ("no object", [b"Content-Length: 2\r\n\r\n[]"]),
    "an unknown key": ("colour", [framed({**THREADS, "colour": 1})]),
    "a key in the body that is unknown": ("colour", [framed(response(1, 1, "threads", body={"colour": 1}))]),
    "a body that is missing a key": ("required", [framed(response(1, 1, "threads", body={}))]),
    "an unknown event": ("no event", [framed({"seq": 1, "type": "event", "event": "walked"})]),
    "a control character": ("not harmless", [framed({**THREADS, "message": "\x1b[2J"})]),
    "a reference too large": (
        "variablesReference is",
        [framed({**response(1, 4, "setVariable"), "body": {"value": "", "variablesReference": 1 << 31}})],
    ),
    "the end within a message": ("ends within", [framed(THREADS)[:-3]]),
    "the end within a header": ("ends within", [b"Content-Le"]),
}


@table(("said", "content"), WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_is_raised(said: str, content: list[bytes]) -> None:
    stream, ready = io.BytesIO(b"".join(content)), threading.Event()

    def read(count: int) -> bytes:
        ready.wait(10)
        return stream.read(count)

    client = Client(lambda _: None, read, lambda: None)
    for command in ("threads", "next", "launch", "setVariable"):
        client.send(command, check=False)
    ready.set()
    with pytest.raises(ProtocolError, match=said):
        client.answer(99, 5)


def test_what_is_right_is_not_raised() -> None:
    stream, ready = io.BytesIO(framed(THREADS) + framed({**STOPPED, "seq": 2})), threading.Event()

    def read(count: int) -> bytes:
        ready.wait(10)
        return stream.read(count)

    client = Client(lambda _: None, read, lambda: None)
    seq = client.send("threads")
    ready.set()
    assert client.answer(seq).body == {"threads": []}
    assert client.stopped()["reason"] == "step"
    client.check()


def test_the_client_sends_nothing_wrong_by_mistake() -> None:
    client = Client(lambda _: None, lambda _: b"", lambda: None)
    with pytest.raises(ProtocolError, match="the client itself"):
        client.send("next", {"thread": 1})
