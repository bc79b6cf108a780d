"""The adapter's own parts: interruption by arrival, references, arguments, the launch model, the queue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from sonnx.semantics.debugger.dap.adapter import Adapter, Interruption, References, capabilities
from sonnx.semantics.debugger.dap.launch import ATTACH, LAUNCH, OPTIONS, launch_of, schema
from sonnx.semantics.debugger.dap.messages import LARGEST, Arguments, Outbox, Request, messages
from sonnx.semantics.debugger.dap.stopping import ended
from sonnx.semantics.debugger.dap.worker import HANDLERS, serve
from sonnx.semantics.debugger.timeline.history import Refused
from tables import table


def spoken(*requests: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the adapter answers to requests that arrive at once."""
    data = [
        b"".join(
            b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            for body in (json.dumps(request).encode() for request in requests)
        )
    ]
    sent: list[bytes] = []
    serve(lambda _count: data.pop() if data else b"", sent.append)
    stream = [b"".join(sent)]
    return [it for it in messages(lambda _count: stream.pop() if stream else b"") if isinstance(it, dict)]


def request(seq: int, command: str, **arguments: object) -> dict[str, object]:
    return {"seq": seq, "type": "request", "command": command, "arguments": arguments}


# ---- Interruption -----------------------------------------------------------------------------


def test_a_pause_ends_what_arrived_before_it_and_nothing_later() -> None:
    found = Interruption()
    found.begin(3)
    assert not found.asked()
    found.pause(5)
    assert found.asked() and found.is_over()
    found.begin(4)
    assert found.asked()
    found.begin(6)
    assert not found.asked()


def test_a_cancelled_request_ends_alone() -> None:
    found = Interruption()
    found.cancel(4)
    found.begin(3)
    assert not found.asked()
    found.begin(4)
    assert found.asked() and found.is_cancelled(4)


def test_room_is_made_by_what_can_go_on_only() -> None:
    found = Interruption()
    found.begin(3)
    found.make_room(5)
    assert not found.asked()
    found.resumable = True
    assert found.asked() and not found.is_over()
    found.has_room(4)
    assert found.asked()
    found.has_room(5)
    assert not found.asked()


# ---- References and arguments -----------------------------------------------------------------


def test_references_die_and_are_never_given_again() -> None:
    found = References()
    one = found.to("a")
    assert found.to("a") == one and found.get(one, str, "text") == "a"
    found.forget()
    with pytest.raises(Refused, match="has moved since"):
        found.get(one, str, "text")
    assert found.to("a") > one
    with pytest.raises(Refused, match=r"there is no text 99$"):
        found.get(99, str, "text")
    with pytest.raises(Refused):
        found.get(found.to("a"), int, "number")


@table("value", [-1, LARGEST + 1, "3", True, None, 1.5, [1]])
def test_an_integer_of_the_wrong_kind_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(Refused, match=r'^next: "threadId" (must be an integer from 0 to|is missing)') as refused:
        Arguments({"threadId": value}, "next").whole("threadId")  # type: ignore[dict-item]
    assert "\n" not in refused.value.message


def test_an_integer_written_as_a_float_is_taken() -> None:
    assert Arguments({"n": 3.0}).whole("n") == 3


# ---- The launch model -------------------------------------------------------------------------


def launched(**given: object) -> object:
    return launch_of(LAUNCH, Arguments(given, "launch"))  # type: ignore[arg-type]


def test_what_clients_add_is_passed_over_and_what_is_misspelt_is_not() -> None:
    launched(model="m.onnx", type="sonnx", request="launch", name="x", __sessionId="1", console="none")
    with pytest.raises(Refused, match='did you mean "stopOnEntry"'):
        launched(model="m.onnx", stoponEntry=True)
    with pytest.raises(Refused, match='"trace" is an option of attach'):
        launched(model="m.onnx", trace="t")


def test_every_option_has_a_schema_that_its_default_meets() -> None:
    import jsonschema

    for kind in (LAUNCH, ATTACH):
        found = schema(kind)
        jsonschema.Draft7Validator.check_schema(found)
        assert found["required"] == ["model"]
    for option in OPTIONS:
        if "default" in option.schema:
            jsonschema.validate(option.schema["default"], option.schema)


def test_attach_wants_a_trace_or_a_session() -> None:
    for given in ({"model": "m"}, {"model": "m", "trace": "t", "session": "s"}):
        with pytest.raises(Refused, match="attach needs either"):
            launch_of(ATTACH, Arguments(given))  # type: ignore[arg-type]


# ---- Sending and answering --------------------------------------------------------------------


def test_a_client_that_is_gone_is_no_error() -> None:
    def send(_data: bytes) -> None:
        raise BrokenPipeError

    found = Outbox(send)
    found.event("output", {"output": "x"})
    found.response(Request(1, 1, "threads", {}), None)
    assert found.gone


def test_every_request_has_one_response_and_messages_are_numbered() -> None:
    found = spoken(
        request(1, "initialize", adapterID="x"),
        request(2, "nonsense\x1b[31m"),
        request(3, "next", threadId=1),
        {"seq": 4, "type": "request", "command": "threads", "arguments": 3},
        request(5, "threads"),
        request(6, "disconnect"),
    )
    assert [it["seq"] for it in found] == list(range(1, len(found) + 1))
    answers = {it["request_seq"]: it for it in found if it["type"] == "response"}
    assert {seq: it["success"] for seq, it in answers.items()} == {
        1: True, 2: False, 3: False, 4: False, 5: True, 6: True
    }  # fmt: skip
    assert "\x1b" not in answers[2]["message"]
    assert "launch or attach first" in answers[3]["message"]


def test_what_goes_wrong_ends_the_run_that_made_room_for_it() -> None:
    sent: list[bytes] = []
    adapter = Adapter(Outbox(sent.append), Interruption())
    adapter.resume = None, lambda: None
    ended(adapter, "goto: it cannot be done")
    assert adapter.resume is None and b"it cannot be done" in sent[0]


def test_what_is_no_request_is_said_and_the_next_one_answered() -> None:
    found = spoken({"seq": 1, "type": "response"}, {"type": "request", "command": "threads"}, request(2, "threads"))
    assert [it.get("event") or it["command"] for it in found] == ["output", "output", "threads"]


def test_capabilities_are_those_of_the_handlers() -> None:
    (first, *_) = spoken(request(1, "initialize", adapterID="any name"))
    assert first["body"] == capabilities(HANDLERS)
    assert len({handler.request for handler in HANDLERS}) == len(HANDLERS)
