"""What the wire demands and is easily got wrong: bytes, packets, order, errors, and that nothing else ever goes there.

The client checks every message of every test against the protocol's schema, the numbers, and the order of responses and
events; the tests here provoke what it checks.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
from pathlib import Path

import onnx
import onnx.parser
import pytest
from dap_adapters import COMMAND, connected, spawned
from dap_client import MOTIONS, VSCODE, Client, Json, framed
from dap_schema import definitions, kinds, wrong

WIDE = """<ir_version: 10, opset_import: ["" : 18]>
wide (float[2] x) => (float[2] y) { t = Neg (x)  y = Relu (t) }"""
NAME = "größe_张量_😀"

BEFORE = ("launch", "attach", "initialize", "configurationDone", "disconnect", "terminate", "restart")
"""Requests that begin or end a session."""


@pytest.fixture
def wide(tmp_path: Path) -> Json:
    """A launch of a model whose tensor has a name of characters with two, three and four bytes."""
    proto = onnx.parser.parse_model(WIDE)
    proto.graph.node[0].output[0] = proto.graph.node[1].input[0] = NAME
    onnx.save(proto, tmp_path / f"{NAME}.onnx")
    return {"model": str(tmp_path / f"{NAME}.onnx"), "random": 1, "stopOnEntry": True}


def test_what_the_schema_says_is_checked() -> None:
    event: Json = {"seq": 1, "type": "event", "event": "stopped", "body": {"reason": "step"}}
    assert not wrong(event)
    assert wrong({**event, "body": {"reason": "step", "colour": 1}})
    assert wrong({**event, "body": {"reason": 1}})
    assert wrong({**event, "event": "walked"})
    variable: Json = {"name": "x", "value": "1", "variablesReference": 0}
    for change, bad in ({}, False), ({"variablesReference": 1 << 31}, True), ({"indexed": 1}, True):
        body = {"variables": [{**variable, **change}]}
        response = {"seq": 1, "type": "response", "request_seq": 1, "command": "variables", "success": True}
        assert bool(wrong({**response, "body": body})) is bad
    assert "LocationsResponse" in definitions() and len(kinds()) > 100


def test_a_length_counts_bytes(client: Client, wide: Json) -> None:
    client.begin(wide)
    client.move("next")
    quoted = json.dumps(NAME)
    plain = client.evaluate(f'"{NAME}"', "watch")
    assert plain["type"] == "float[2]"
    assert client.evaluate(quoted, "watch")["result"] == plain["result"]
    assert NAME in client.frames()[0]["source"]["path"]
    client.end()


HOSTILE = "\x1b[2J\u202egp\r\n\u2066{n}%s\ud7ff\x07\u0000"


def test_hostile_names_are_harmless_everywhere(client: Client, tmp_path: Path) -> None:
    """Controls of terminals and of text direction, line ends: no message that the client checks has any."""
    proto = onnx.parser.parse_model(WIDE)
    proto.graph.name = HOSTILE
    proto.graph.node[0].name = HOSTILE
    proto.graph.node[0].output[0] = proto.graph.node[1].input[0] = HOSTILE
    onnx.save(proto, tmp_path / "wide.onnx")
    client.begin({"model": str(tmp_path / "wide.onnx"), "random": 1, "stopOnEntry": True})
    client.request("setFunctionBreakpoints", {"breakpoints": [{"name": HOSTILE}, {"name": "Relu"}]})
    client.request("dataBreakpointInfo", {"name": HOSTILE})
    client.move("continue")
    for frame in client.frames():
        for scope in client.scopes(frame["id"]).values():
            for it in client.variables(scope["variablesReference"]).values():
                if it["variablesReference"]:
                    client.variables(it["variablesReference"])
                if "evaluateName" in it:
                    client.evaluate(it["evaluateName"], "watch")
    for text in ("where", "info tensors", "info schedule", "list all", HOSTILE, f"print {HOSTILE}", f"break {HOSTILE}"):
        client.ask("evaluate", {"expression": text, "context": "repl"})
    client.ask("completions", {"text": "print ", "column": 7})
    client.request("loadedSources", {})
    client.request("modules", {})
    client.end()


@pytest.mark.parametrize("seed", range(4))
def test_packets_may_be_split_and_joined_anywhere(client: Client, wide: Json, seed: int) -> None:
    rng = random.Random(seed)
    client.begin(wide)
    asked = [("threads", None), ("evaluate", {"expression": f'"{NAME}"', "context": "hover"})] * 8
    packets = [client.packet(command, arguments) for command, arguments in asked]
    content = b"".join(part for _, part in packets)
    cuts = sorted(rng.sample(range(1, len(content)), rng.choice((0, 1, 3, 40))))
    for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
        client.write(content[start:end])
    answers = [client.answer(seq) for seq, _ in packets]
    assert [it.at for it in answers] == sorted(it.at for it in answers)
    client.end()


def test_bytes_one_at_a_time_are_a_message(client: Client) -> None:
    seq, content = client.packet("initialize", VSCODE)
    for i in range(len(content)):
        client.write(content[i : i + 1])
    assert client.answer(seq).success


def _broken(rng: random.Random) -> bytes:
    """A frame that is no message: one of several kinds of damage."""
    content = framed({"seq": 1, "type": "request", "command": "initialize", "arguments": VSCODE})
    head, _, body = content.partition(b"\r\n\r\n")
    kind = rng.randrange(8)
    if kind == 0:  # some bytes are others
        damaged = bytearray(content)
        for _ in range(rng.randrange(1, 8)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        return bytes(damaged)
    if kind == 1:  # the end is missing
        return content[: rng.randrange(1, len(content))]
    if kind == 2:  # another length
        length = rng.choice(
            (b"-1", b"0", b"1e3", b"99999999999999999999", b"", b"0x10", b"1 2", str(len(body)).encode())
        )
        return b"Content-Length: %b\r\n\r\n%b" % (length, body)
    if kind == 3:  # no JSON, or no object
        text = rng.choice((b"{", b"[]", b"null", b'"x"', b"{}{}", b"NaN", b"\xff\xfe", b"[" * 5000, b'{"seq":1e999}'))
        return b"Content-Length: %d\r\n\r\n%b" % (len(text), text)
    if kind == 4:  # an object that is no request
        fields = {"seq": 1, "type": "request", "command": "threads", "arguments": {}}
        key = rng.choice(list(fields))
        fields[key] = rng.choice((None, [], -1, 1.5, "x", True, {}))  # type: ignore[assignment]
        return framed(fields)
    if kind == 5:  # another header as well
        return head + rng.choice((b"\r\nX: y", b"\r\nContent-Length: 3", b"\n", b"\r\n: ")) + b"\r\n\r\n" + body
    if kind == 6:  # noise
        return rng.randbytes(rng.randrange(1, 4000))
    return b"Content-Length: 2\r\n\r\n{}" * rng.randrange(1, 50)


def test_damaged_frames_end_at_most_their_own_connection(port: int) -> None:
    """Whatever comes, what goes back is well formed and the next client is served."""
    for seed in range(80):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
            link.sendall(_broken(random.Random(seed)))
            link.shutdown(socket.SHUT_WR)
            got = b"".join(iter(lambda: link.recv(1 << 16), b""))
        while got:
            head, _, rest = got.partition(b"\r\n\r\n")
            length = int(head.removeprefix(b"Content-Length: "))
            message = json.loads(rest[:length])
            assert message["type"] == "event" or message["command"] == "initialize" or not message["success"], seed
            got = rest[length:]
    with connected(port) as client:
        assert client.ask("initialize", VSCODE).success


def test_a_message_that_is_no_json_is_survived(client: Client) -> None:
    client.write(b"Content-Length: 5\r\n\r\nhello")
    assert client.ask("initialize", VSCODE).success


def test_what_a_library_prints_never_reaches_the_wire(wide: Json) -> None:
    """Python's print, bytes on file descriptor 1 as native libraries write them, and a child process."""
    program = """
import os, subprocess, sys
import sonnx.semantics.model.loader as loader
import sonnx.semantics.debugger.session.opening as opening
real = opening.load
def loud(*given, **named):
    print("noise", flush=True)
    sys.__stdout__.write("noise"); sys.__stdout__.flush()
    os.write(1, b"noise")
    subprocess.run(["echo", "noise"])
    return real(*given, **named)
opening.load = loud
from sonnx.spec.cli import main
main()
"""
    with spawned(command=(*COMMAND[:2], program, "dap")) as client:
        client.begin(wide)
        client.move("next")
        client.end()
        assert client.errors is not None
        client.errors.seek(0)
        assert client.errors.read().count(b"noise") == 4


def test_nan_and_infinity_are_texts(client: Client, strange: Json) -> None:
    client.begin(strange)
    client.request("continue", {"threadId": 1})
    client.stopped()
    for name, shown in (("b", "inf"), ("c", "nan")):
        found = client.evaluate(f"{name}[0]", "watch")["result"]
        assert isinstance(found, str) and shown in found
        whole = client.evaluate(name, "watch")
        elements = client.variables(whole["variablesReference"], filter="indexed")
        assert all(isinstance(it["value"], str) for it in elements.values())
    client.end()


@pytest.mark.parametrize("motion", sorted(MOTIONS - {"goto", "restartFrame"}))
def test_the_response_to_a_motion_comes_before_stopped(client: Client, nested: Json, motion: str) -> None:
    client.begin(nested)
    client.move("next")
    response = client.ask(motion, {"threadId": 1})
    assert response.success
    client.stopped()
    stopped = [i for i, (_, m) in enumerate(client.log) if m.get("event") == "stopped"]
    assert stopped[-1] > response.at
    client.end()


def test_launch_is_answered_after_the_configuration_is_done(client: Client, nested: Json) -> None:
    assert client.ask("initialize", VSCODE).success
    launched = client.send("launch", nested)
    client.event("initialized")
    source = {"path": str(Path(nested["model"]).with_suffix(".sonnx.lst"))}
    client.request("setBreakpoints", {"source": source, "breakpoints": []})
    client.request("setExceptionBreakpoints", {"filters": []})
    order = [client.send("configurationDone"), launched]
    at = [client.answer(seq).at for seq in order]
    assert at == sorted(at)
    client.stopped()
    client.end()


def test_initialized_comes_after_the_response_to_initialize(client: Client, nested: Json) -> None:
    client.begin(nested)
    said = [m for way, m in client.log if way == "<"]
    kinds_ = [m.get("event") or m.get("command") for m in said]
    assert kinds_.index("initialize") < kinds_.index("initialized") < kinds_.index("configurationDone")
    client.end()


def test_an_unknown_request_gets_an_error_response(client: Client, nested: Json) -> None:
    client.begin(nested)
    assert "disassembleEverything" in client.refused("disassembleEverything", {"a": 1})
    assert "disassemble" in client.refused("disassemble", {"memoryReference": "x", "instructionCount": 1})
    client.request("threads")
    client.end()


VALUES = (None, -1, 0, 1, 2**31, 2**63, 1.5, True, "", "x", [], [1], {}, [[]], {"a": None}, "\x1b[2J\u202e")


@pytest.mark.parametrize("launched", [False, True])
def test_arguments_of_any_kind_get_a_response(client: Client, nested: Json, launched: bool) -> None:
    """Each request with each of its arguments missing or of another type: refused or carried out, never silence."""
    rng = random.Random(7)
    if launched:
        client.begin(nested)
    else:
        client.request("initialize", VSCODE)
    commands = [name for kind, name in kinds() if kind == "request" and name not in BEFORE]
    for command in commands:
        schema = definitions()[kinds()["request", command]]["properties"].get("arguments", {})
        named = definitions().get(schema.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
        tries: list[object] = [{}, [], "x"]
        tries += [{key: rng.choice(VALUES) for key in named} for _ in range(6)]
        for arguments in tries:
            response = client.answer(client.send(command, arguments, check=False))  # type: ignore[arg-type]
            error = response.body.get("error", {}).get("format", "")
            assert "Traceback" not in error and "\n" not in error and not set("\x1b\u202e") & set(error), error
            assert "defect" not in error, (command, arguments, error)
    assert client.ask("threads").success or not launched
    client.check()


def test_a_bad_launch_is_refused_in_one_line_and_another_one_may_follow(client: Client, nested: Json) -> None:
    assert client.ask("initialize", VSCODE).success
    for bad in (
        {},
        {"model": 3},
        {**nested, "modell": "x"},
        {**nested, "model": nested["model"] + "x"},
        {**nested, "schedule": "backwards"},
        {**nested, "stopOnEntry": "yes"},
        {**nested, "historyLimit": -1},
    ):
        text = client.refused("launch", bad)
        assert text and "\n" not in text and "Traceback" not in text
    client.begin_again(nested)
    client.end()


@pytest.mark.parametrize(("sent", "code"), [(b"nonsense\r\n\r\n", 2), (b"Content-Length: 9\r\n\r\n{", 2), (b"", 0)])
def test_a_stream_that_is_none_of_messages_is_no_success(sent: bytes, code: int) -> None:
    got = subprocess.run(COMMAND, input=sent, capture_output=True, timeout=60, check=False)
    assert got.returncode == code and b"Traceback" not in got.stderr
