"""Threads, frames and scopes, and the references to them."""

from __future__ import annotations

from dap_client import Client, Json
from dap_listing import at, breaks, listed, source


def test_frames_are_the_graphs_and_calls_that_run(client: Client, nested: Json) -> None:
    client.begin(nested)
    assert [it["id"] for it in client.request("threads")["threads"]] == [1]
    inside = at(client, '"s2" = Add')
    breaks(client, {"line": inside, "hitCondition": "2"})
    client.move("continue")
    frames = client.frames()
    assert [it["line"] for it in frames] == [inside, at(client, "= Loop(")]
    assert "Loop" in frames[0]["name"] and "1" in frames[0]["name"] and len({it["id"] for it in frames}) == 2
    body = client.request("stackTrace", {"threadId": 1, "startFrame": 1, "levels": 1})
    assert (body["stackFrames"], body["totalFrames"]) == ([frames[1]], 2)
    assert client.request("stackTrace", {"threadId": 1, "startFrame": 9})["stackFrames"] == []
    client.end()


def test_scopes_come_in_order_and_hold_what_the_frame_has(client: Client, nested: Json) -> None:
    client.begin(nested)
    breaks(client, at(client, '"s2" = Add'))
    client.move("continue")
    scopes = client.scopes()
    names = list(scopes)
    assert names[0] == "Node inputs" and scopes["Node inputs"]["presentationHint"] == "arguments"
    order = ["Node inputs", "Tensors", "Captured", "Initializers", "Ready nodes", "Machine", "Uninitialised"]
    assert [it for it in names if it in order] == order
    assert [name for name, it in scopes.items() if it["expensive"]] == ["Initializers", "Uninitialised"]
    inputs = client.variables(scopes["Node inputs"]["variablesReference"])
    assert [it for it in inputs if not it.startswith("[")][:2] == ["s", "x"]
    assert inputs["x"]["type"] == "float[2]" and inputs["x"]["evaluateName"]
    captured = client.variables(scopes["Captured"]["variablesReference"])
    assert "x" in captured
    outer = client.scopes(client.frames()[1]["id"])
    tensors = client.variables(outer["Tensors"]["variablesReference"])
    assert {"x", "c", "n", "a", "b", "d", "e"} <= set(tensors)
    missing = client.variables(outer["Uninitialised"]["variablesReference"])
    assert "y" in missing and "y" not in tensors
    client.end()


def test_references_die_when_the_execution_moves(client: Client, nested: Json) -> None:
    client.begin(nested)
    client.move("next")
    frame = client.frames()[0]["id"]
    scope = client.scopes()["Captured"]["variablesReference"]
    child = client.variables(scope)["a"]["variablesReference"]
    client.variables(child)
    client.move("next")
    for command, arguments in (
        ("variables", {"variablesReference": scope}),
        ("variables", {"variablesReference": child}),
        ("scopes", {"frameId": frame}),
        ("evaluate", {"expression": "a", "frameId": frame}),
    ):
        assert client.refused(command, arguments)
    client.end()


def test_lines_and_columns_count_as_the_client_does(client: Client, nested: Json) -> None:
    client.begin(nested, says={"linesStartAt1": False, "columnsStartAt1": False})
    frame = client.frames()[0]
    text = listed(client)
    line = text[frame["line"]]
    assert line[frame["column"] :].startswith('"a" = Add') and line[: frame["column"]].isspace()
    assert (frame["endLine"], frame["endColumn"]) == (frame["line"], len(line))
    wanted = next(i for i, line in enumerate(text) if "= If(" in line)
    assert [it["line"] for it in breaks(client, wanted)] == [wanted]
    found = client.request("breakpointLocations", {"source": source(client), "line": 0, "endLine": len(text)})
    assert wanted in [it["line"] for it in found["breakpoints"]]
    client.move("continue")
    assert client.line() == wanted
    client.end()
