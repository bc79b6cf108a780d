"""A model of many nodes: no request needs work for each of them."""

from __future__ import annotations

import time
from pathlib import Path

import onnx
import pytest
from dap_client import Client, Json
from onnx import helper
from sampling import left


def chain(path: Path, size: int) -> None:
    nodes = [onnx.NodeProto(op_type="Neg", input=[f"t{i}"], output=[f"t{i + 1}"]) for i in range(size)]
    ends = [helper.make_tensor_value_info(name, 1, [3]) for name in ("t0", f"t{size}")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


@pytest.mark.parametrize(("size", "budget"), [(30_000, 1.0), left((100_000, 2.0))])
def test_every_request_about_a_position_is_answered_in_time(
    client: Client, tmp_path: Path, size: int, budget: float
) -> None:
    """budget: seconds for a request, the first of its kind included; most take some milliseconds."""
    chain(tmp_path / "big.onnx", size)
    client.begin({"model": str(tmp_path / "big.onnx"), "random": 1, "stopOnEntry": True})
    spent: dict[str, float] = {}

    def timed(command: str, **arguments: object) -> Json:
        started = time.monotonic()
        body = client.request(command, dict(arguments))
        spent[command] = max(spent.get(command, 0), time.monotonic() - started)
        return body

    for _ in range(2):
        frame = client.frames()[0]
        timed("stackTrace", threadId=1)
        scopes = client.request("scopes", {"frameId": frame["id"]})["scopes"]
        timed("scopes", frameId=frame["id"])
        for scope in scopes:
            page = timed("variables", variablesReference=scope["variablesReference"], start=0, count=100)["variables"]
            assert len(page) <= 200
        timed("evaluate", expression="t0", context="hover", frameId=frame["id"])
        timed("completions", text="print t99", column=10, frameId=frame["id"])
        timed("breakpointLocations", source=frame["source"], line=5000, endLine=5100)
        timed("setBreakpoints", source=frame["source"], breakpoints=[{"line": line} for line in range(10, 60)])
        timed("setBreakpoints", source=frame["source"], breakpoints=[])
        timed("dataBreakpointInfo", name="t5")
        timed("gotoTargets", source=frame["source"], line=500)
        timed("stepInTargets", frameId=frame["id"])
        timed("loadedSources")
        timed("modules")
        client.move("next")
    assert not {command: seconds for command, seconds in spent.items() if seconds > budget}
    client.end()
