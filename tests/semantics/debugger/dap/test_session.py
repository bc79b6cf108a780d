"""A session from launch or attach to its end, restarts included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from dap_client import VSCODE, Client, Json
from dap_listing import at, breaks, line_of
from debugger_models import GIVEN
from sonnx.spec import cli


def test_a_session_begins_and_ends(client: Client, nested: Json) -> None:
    stopped = client.begin(nested)
    assert (stopped["reason"], stopped["allThreadsStopped"]) == ("entry", True)
    assert client.event("process")["name"] == "nested.onnx"
    client.end()
    assert client.events("terminated") and client.events("exited") == [{"exitCode": 0}]


def test_requests_keep_to_the_order_of_the_protocol(client: Client, nested: Json) -> None:
    assert "initialize first" in client.refused("threads")
    assert "initialize first" in client.refused("launch", nested)
    client.begin(nested)
    assert "sent once" in client.refused("initialize", VSCODE)
    assert "sent once" in client.refused("configurationDone")
    assert "already" in client.refused("launch", nested)
    client.end()


def test_inputs_may_be_one_text(client: Client, nested: Json, tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", **GIVEN)
    client.begin({**nested, "inputs": str(tmp_path / "all.npz")})
    assert client.evaluate("x", "hover")["result"] == "float[2] [1.0, -2.0]"
    client.end()


def test_sizes_of_inputs_that_are_drawn_may_be_said(client: Client, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[N, 2] x) => (float[N, 2] y) { y = Neg (x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "g.onnx")
    client.begin({"model": str(tmp_path / "g.onnx"), "random": 1, "sizes": {"N": 3}, "stopOnEntry": True})
    assert client.evaluate("x", "hover")["type"] == "float[3, 2]"
    client.end()


def test_without_a_stop_at_the_entry_it_runs_to_the_end_and_stays(client: Client, nested: Json) -> None:
    client.begin({**nested, "stopOnEntry": False})
    assert line_of(client).startswith("return")
    assert not client.events("terminated")
    client.move("reverseContinue")
    assert line_of(client).startswith('"a" = Add')
    client.end()


def test_without_debugging_it_runs_and_ends(client: Client, nested: Json) -> None:
    client.begin({**nested, "noDebug": True, "stopOnEntry": False}, starts=False)
    client.event("terminated")
    client.end()


def test_a_recorded_run_can_be_looked_at(client: Client, nested: Json, tmp_path: Path) -> None:
    inputs = [part for name, file in nested["inputs"].items() for part in ("--input", f"{name}={file}")]
    trace = tmp_path / "run.trace"
    assert cli.run(["run", nested["model"], *inputs, "--trace", str(trace)]) == 0
    client.begin({"model": nested["model"], "trace": str(trace)}, how="attach")
    assert line_of(client).startswith("return")
    assert client.evaluate("y", "watch")["result"].endswith("[-5.0, -22.0]")
    client.move("reverseContinue")
    assert line_of(client).startswith('"a" = Add')
    client.end()


def test_a_model_that_gets_stuck_stops_there_and_is_no_success(client: Client, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    stuck (float[2] x) => (float[k] y) { i = Constant <value = int64[1] {7}> ()  t = Neg (x)  y = Gather (t, i) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "stuck.onnx")
    stopped = client.begin({"model": str(tmp_path / "stuck.onnx"), "random": 1})
    assert stopped["reason"] == "exception" and "Gather" in line_of(client)
    info = client.request("exceptionInfo", {"threadId": 1})
    assert info["exceptionId"] and info["description"] and info["breakMode"] in ("always", "unhandled")
    client.end()
    assert client.events("exited") == [{"exitCode": 1}]


def test_an_operator_without_a_meaning_is_an_exception_that_a_typed_command_goes_past(
    client: Client, tmp_path: Path
) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "com.acme" : 1]>
    foreign (float[2] x) => (float[2] z) <float[2] y> { y = com.acme.Foo (x)  z = Neg (y) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "foreign.onnx")
    launch = {"model": str(tmp_path / "foreign.onnx"), "random": 1, "allowEdits": True}
    stopped = client.begin(launch)
    assert stopped["reason"] == "exception" and "no meaning to com.acme::Foo" in stopped["text"]
    assert "`supply`" in client.request("exceptionInfo", {"threadId": 1})["details"]["stackTrace"]
    assert "supplied as 2" in client.evaluate("supply y=2")["result"]
    assert client.stopped()["reason"] == "step"
    assert client.move("continue")["reason"] == "end"
    assert client.evaluate("z", "watch")["result"] == "float[2] [-2.0, -2.0]"
    client.end()


def test_values_from_outside_need_leave_in_the_launch(client: Client, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "com.acme" : 1]>
    foreign (float[2] x) => (float[2] z) <float[2] y> { y = com.acme.Foo (x)  z = Neg (y) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "foreign.onnx")
    client.begin({"model": str(tmp_path / "foreign.onnx"), "random": 1})
    for line in ("supply y=2", "supply every y=2", "through reference"):
        assert "allowEdits" in client.refused("evaluate", {"expression": line, "context": "repl"})
    client.end()


def test_restart_goes_to_the_start_and_restart_frame_to_where_the_frame_began(client: Client, nested: Json) -> None:
    client.begin(nested)
    first = client.frames()
    breaks(client, at(client, '"s2" = Add'))
    client.move("continue")
    client.move("continue")
    inner = client.frames()
    assert inner[0]["canRestart"]
    client.request("restartFrame", {"frameId": inner[0]["id"]})
    client.stopped()
    assert client.frames()[0]["name"] == inner[0]["name"]
    assert line_of(client).startswith('"go2" = Identity')
    client.request("restartFrame", {"frameId": client.frames()[-1]["id"]})
    client.stopped()
    assert client.line() == first[0]["line"]
    client.move("continue")
    client.request("restart", {})
    assert client.stopped()["reason"] == "entry"
    assert client.line() == first[0]["line"]
    client.end()
