"""Breakpoints on lines, functions, faults and data; log points."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from dap_adapters import connected
from dap_client import VSCODE, Client, Json
from dap_listing import at, breaks, line_of, listed, source
from onnx import numpy_helper


def test_breakpoints_replace_those_of_the_source_in_order(client: Client, nested: Json) -> None:
    client.begin(nested)
    loop, branch, inside = at(client, "= Loop("), at(client, "= If("), at(client, '"s2" = Add')
    answered = breaks(client, loop, branch, 1, 10_000, {"line": inside, "condition": "nonsense ("})
    assert [it["verified"] for it in answered] == [True, True, True, False, False]
    assert [it.get("line") for it in answered[:2]] == [loop, branch]
    assert answered[3]["message"] and answered[4]["message"] and answered[4]["reason"] == "failed"
    assert len({it["id"] for it in answered}) == 5
    answered = breaks(client, {"line": inside, "condition": "i == 1"}, branch)
    stopped = client.move("continue")
    assert stopped["reason"] == "breakpoint" and stopped["hitBreakpointIds"] == [answered[1]["id"]]
    assert client.line() == branch
    stopped = client.move("continue")
    assert client.line() == inside and stopped["hitBreakpointIds"] == [answered[0]["id"]]
    assert client.evaluate("i", "watch")["result"].endswith("1")
    breaks(client, {"line": inside, "hitCondition": "3"})
    client.request("restart", {})
    client.stopped()
    client.move("continue")
    assert client.evaluate("i", "watch")["result"].endswith("2")
    client.move("reverseContinue")
    assert client.line() != inside  # a hit is a property of the position: going back does not count
    assert breaks(client) == []
    client.move("continue")
    assert line_of(client).startswith("return")
    client.end()


def test_breakpoints_set_before_the_model_is_loaded_are_verified_then(nested: Json, port: int) -> None:
    """A client may send them as soon as it hears `initialized`; the listing is there from an earlier session."""
    with connected(port) as earlier:
        earlier.begin(nested)
        path, number = source(earlier), at(earlier, "= If(")
        earlier.end()
    with connected(port) as client:
        client.request("initialize", VSCODE)
        client.event("initialized")
        asked = {"source": path, "breakpoints": [{"line": number}, {"line": 10_000}]}
        first, second = client.request("setBreakpoints", asked)["breakpoints"]
        assert (first["verified"], first["reason"]) == (False, "pending") and first["message"]
        launched = client.send("launch", {**nested, "stopOnEntry": False})
        changed = client.event("breakpoint", reason="changed")["breakpoint"]
        assert (changed["id"], changed["verified"], changed["line"]) == (first["id"], True, number)
        failed = client.event("breakpoint", reason="changed")["breakpoint"]
        assert (failed["id"], failed["verified"]) == (second["id"], False)
        client.request("configurationDone")
        assert client.answer(launched).success
        assert client.stopped()["hitBreakpointIds"] == [first["id"]]
        assert client.line() == number
        client.end()


def test_breakpoints_may_stand_on_the_lines_of_nodes(client: Client, nested: Json) -> None:
    client.begin(nested)
    text = listed(client)
    wanted = {"source": source(client), "line": 1, "endLine": len(text)}
    found = client.request("breakpointLocations", wanted)["breakpoints"]
    nodes = [i for i, line in enumerate(text, 1) if "  # " in line]
    calls = [i for i, line in enumerate(text, 1) if line.strip().startswith("call ")]
    returns = [i for i, line in enumerate(text, 1) if line.strip().startswith("return ")]
    assert sorted({it["line"] for it in found}) == sorted([*nodes, *calls, *returns])
    one = client.request("breakpointLocations", {"source": source(client), "line": 1})
    assert one["breakpoints"] == []
    client.end()


def test_a_log_point_says_something_and_does_not_stop(client: Client, nested: Json) -> None:
    client.begin(nested)
    breaks(client, {"line": at(client, '"s2" = Add'), "logMessage": "run {i}: {s}"})
    client.move("continue")
    assert line_of(client).startswith("return")
    said = [it["output"] for it in client.events("output") if it["output"].startswith("run ")]
    assert [it.split(":")[0] for it in said] == ["run 0", "run 1", "run 2"]
    placed = [it["line"] for it in client.events("output") if it["output"].startswith("run ")]
    assert placed == [at(client, '"s2" = Add')] * 3
    client.end()


def test_function_breakpoints_stop_at_operators_names_globs_and_functions(client: Client, nested: Json) -> None:
    client.begin(nested)
    for name, first in (("If", "If("), ("local::Twice", "Add("), ("Id*", "Identity("), ("Loop", "Loop(")):
        answered = client.request("setFunctionBreakpoints", {"breakpoints": [{"name": name}]})["breakpoints"]
        assert [it["verified"] for it in answered] == [True]
        client.request("restart", {})
        client.stopped()
        assert client.move("continue")["reason"] == "function breakpoint", name
        assert first in line_of(client), name
    (bad,) = client.request("setFunctionBreakpoints", {"breakpoints": [{"name": "Conv"}]})["breakpoints"]
    assert not bad["verified"] and bad["message"]
    client.end()


def test_a_breakpoint_on_a_return_line_stays_in_its_branch(client: Client, nested: Json) -> None:
    client.begin(nested)
    text = listed(client)
    then, other = (i for i, line in enumerate(text, 1) if line.strip() in ('return "te"', 'return "ee"'))
    answered = breaks(client, then, other)
    assert [(it["verified"], it["line"]) for it in answered] == [(True, then), (True, other)]
    assert client.move("continue")["hitBreakpointIds"] == [answered[1]["id"]] and client.line() == other
    client.end()


def test_data_that_no_step_writes_is_watched_where_it_is_read(client: Client, nested: Json) -> None:
    client.begin(nested)
    info = client.request("dataBreakpointInfo", {"name": "x"})
    assert info["accessTypes"] == ["read"]
    wanted = [{"dataId": info["dataId"], "accessType": it} for it in ("write", "read")]
    written, read = client.request("setDataBreakpoints", {"breakpoints": wanted})["breakpoints"]
    assert not written["verified"] and "no step writes it" in written["message"] and read["verified"]
    assert client.move("continue")["hitBreakpointIds"] == [read["id"]]
    client.end()


def test_exceptions_are_faults_of_values(client: Client, strange: Json) -> None:
    client.begin(strange)
    filters = {it["filter"]: it for it in client.capabilities["exceptionBreakpointFilters"]}
    assert {"nan", "inf", "overflow", "subnormal", "undefined", "divergence"} <= set(filters)
    client.request("setExceptionBreakpoints", {"filters": ["nan"]})
    stopped = client.move("continue")
    assert stopped["reason"] == "exception" and "c" in stopped["text"]
    info = client.request("exceptionInfo", {"threadId": 1})
    assert info["exceptionId"] and "nan" in info["description"] and "0" in info["description"]
    client.request("restart", {})
    client.stopped()
    only = [{"filterId": "inf", "condition": "$op == 'Add'"}]
    answered = client.request("setExceptionBreakpoints", {"filters": [], "filterOptions": only})
    assert [it["verified"] for it in answered["breakpoints"]] == [True]
    client.move("continue")
    assert line_of(client).startswith("return")
    client.request("restart", {})
    client.stopped()
    client.request("setExceptionBreakpoints", {"filters": [], "filterOptions": [{"filterId": "overflow"}]})
    assert client.move("continue")["reason"] == "exception"
    assert '/"b"[0] = inf' in client.request("exceptionInfo", {"threadId": 1})["description"]
    client.end()


def test_data_breakpoints_watch_a_tensor_or_an_element(client: Client, nested: Json) -> None:
    client.begin(nested)
    info = client.request("dataBreakpointInfo", {"name": "d"})
    assert info["dataId"] and set(info["accessTypes"]) == {"read", "write", "readWrite"} and info["description"]
    wanted = [{"dataId": info["dataId"], "accessType": "write"}]
    (answered,) = client.request("setDataBreakpoints", {"breakpoints": wanted})["breakpoints"]
    assert answered["verified"]
    stopped = client.move("continue")
    assert stopped["reason"] == "data breakpoint" and stopped["hitBreakpointIds"] == [answered["id"]]
    scope = client.scopes(client.frames()[-1]["id"])["Tensors"]["variablesReference"]
    inside = client.request("dataBreakpointInfo", {"name": "d", "variablesReference": scope})
    assert inside["dataId"]
    wanted = [{"dataId": inside["dataId"], "accessType": "read"}]
    client.request("setDataBreakpoints", {"breakpoints": wanted})
    assert client.move("continue")["reason"] == "data breakpoint"
    tensor = client.tensors()["x"]["variablesReference"]
    element = client.request("dataBreakpointInfo", {"name": "[1]", "variablesReference": tensor})
    assert element["dataId"] and "1" in element["description"]
    nothing = client.request("dataBreakpointInfo", {"name": "no such tensor"})
    assert nothing["dataId"] is None and nothing["description"]
    client.request("setDataBreakpoints", {"breakpoints": []})
    client.move("continue")
    client.request("setDataBreakpoints", {"breakpoints": [{"dataId": info["dataId"], "accessType": "write"}]})
    assert client.move("reverseContinue")["reason"] == "data breakpoint"  # set at the end, met on the way back
    client.end()


def test_the_filter_of_divergence_serves_what_the_session_is_against(
    client: Client, strange: Json, tmp_path: Path
) -> None:
    proto = onnx.load(str(strange["model"]))
    constant = next(it for it in proto.graph.node if it.output[0] == "ten")
    constant.attribute[0].t.CopyFrom(numpy_helper.from_array(np.array([20], np.float32)))
    onnx.save(proto, tmp_path / "other.onnx")
    client.begin({**strange, "commands": [f"against {tmp_path / 'other.onnx'}"]})
    answered = client.request("setExceptionBreakpoints", {"filters": ["divergence"]})
    assert [it["verified"] for it in answered["breakpoints"]] == [True]
    stopped = client.move("continue")
    assert stopped["reason"] == "exception" and "outside the bound" in stopped["text"]
    client.end()


def ranged(client: Client, name: str, **more: Json) -> Json:
    answered: Json = client.request("dataBreakpointInfo", {"name": name, **more})
    return answered


def test_data_breakpoints_watch_bytes_of_memory(client: Client, nested: Json) -> None:
    client.begin(nested)
    assert client.capabilities["supportsDataBreakpointBytes"]
    client.move("next")
    tensor = client.request("evaluate", {"expression": "a"})
    address = client.request("readMemory", {"memoryReference": tensor["memoryReference"], "count": 1})["address"]
    four = ranged(client, hex(int(address, 16) + 4), asAddress=True, bytes=4)
    assert four["accessTypes"] == ["write", "read", "readWrite"] and not four["canPersist"]
    assert four == ranged(client, str(int(address, 16) + 4), asAddress=True, bytes=4) == ranged(client, "a[1]", bytes=4)
    assert ranged(client, "a", bytes=8)["dataId"] == f"@{address}:8"
    assert ranged(client, address, asAddress=True)["dataId"] == f"@{address}:1"
    beyond = ranged(client, "0x4000", asAddress=True, bytes=64)
    assert beyond["dataId"] and "grows" in beyond["description"]
    client.request("restart", {})
    client.stopped()
    for access, lines in (("write", ['"t" =']), ("read", ['"b" =']), ("readWrite", ['"t" =', '"b" ='])):
        wanted = [{"dataId": four["dataId"], "accessType": access}]
        (made,) = client.request("setDataBreakpoints", {"breakpoints": wanted})["breakpoints"]
        assert made["verified"], made
        for line in lines:
            stopped = client.move("continue")
            assert stopped["reason"] == "data breakpoint" and stopped["hitBreakpointIds"] == [made["id"]]
            assert line in line_of(client)
        client.request("restart", {})
        client.stopped()
    client.end()


def test_bytes_can_be_watched_before_there_is_a_session(client: Client, nested: Json) -> None:
    """As a client does that has kept an address."""
    client.capabilities = client.request("initialize", {"adapterID": "sonnx"})
    kept = ranged(client, "0xc0", asAddress=True, bytes=2)
    assert "nothing is debugged yet" in client.refused("dataBreakpointInfo", {"name": "a"})
    (pending,) = client.request("setDataBreakpoints", {"breakpoints": [{"dataId": kept["dataId"]}]})["breakpoints"]
    assert not pending["verified"]
    client.begin_again(nested)
    assert client.event("breakpoint")["breakpoint"] == {"id": pending["id"], "verified": True, "message": "@0xc0:2"}
    assert client.move("continue")["hitBreakpointIds"] == [pending["id"]]
    assert '"t" = Add("a"' in line_of(client)
    client.end()


def test_a_tensor_without_bytes_in_memory_has_none_to_watch(client: Client, nested: Json) -> None:
    client.begin(nested)
    for name, why in (("y", "no bytes in M here"), ("nothing", "no tensor"), ("x[7]", "no position 7")):
        answered = ranged(client, name, bytes=4)
        assert answered["dataId"] is None and why in answered["description"], answered
    client.end()


MALFORMED: Json = {
    "no address": {"name": "here", "asAddress": True},
    "negative": {"name": "-4", "asAddress": True},
    "a fraction": {"name": "4.5", "asAddress": True},
    "not ASCII": {"name": "\u0664", "asAddress": True},
    "too many digits": {"name": "9" * 400, "asAddress": True},
    "bytes as text": {"name": "0", "asAddress": True, "bytes": "4"},
    "no bytes": {"name": "0", "asAddress": True, "bytes": 0},
    "fewer": {"name": "x", "bytes": -1},
    "half a byte": {"name": "x", "bytes": 0.5},
    "far too many": {"name": "x", "bytes": 1 << 70},
    "no flag": {"name": "0", "asAddress": 1},
}


def test_a_malformed_range_is_refused_in_one_line_and_the_adapter_goes_on(client: Client, nested: Json) -> None:
    client.begin({**nested, "maxMemory": 1 << 20})
    for what, given in MALFORMED.items():
        said = client.refused("dataBreakpointInfo", given)
        assert "must be" in said and "\n" not in said and len(said) < 600, (what, said)
    far = ranged(client, "0xfffff", asAddress=True, bytes=2)
    assert far["dataId"] is None and "never has more than 0x100000 bytes" in far["description"]
    assert ranged(client, "0", asAddress=True, bytes=1 << 52)["dataId"] is None
    ids = ["@", "@0:0", "@-1:4", "@0x10:", f"@{'9' * 99}:1", "@0x10:4\nquit", "@0x10:4 hit 0", "@1e3:4"]
    made = client.request("setDataBreakpoints", {"breakpoints": [{"dataId": it} for it in ids]})["breakpoints"]
    assert [(it["verified"], "\n" in it["message"]) for it in made] == [(False, False)] * len(ids)
    client.move("continue")
    client.end()
