"""What is shown of values: expressions, pages, bits, bytes, where they come from; edits."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from dap_adapters import connected
from dap_client import VSCODE, Client, Json
from dap_listing import listed, source


def test_each_context_evaluates(client: Client, nested: Json) -> None:
    client.begin(nested)
    client.move("next")
    shown = {context: client.evaluate("a", context) for context in ("watch", "hover", "variables", "clipboard")}
    assert {it["type"] for it in shown.values()} == {"float[2]"}
    assert "2" in shown["clipboard"]["result"] and "-4" in shown["clipboard"]["result"]
    assert shown["watch"]["variablesReference"] and shown["watch"]["memoryReference"]
    assert client.evaluate("a[1] + 1", "watch")["result"].startswith("-3")
    assert "float[2]" in client.evaluate("print a", "repl")["result"]
    for context in ("watch", "hover", "repl"):
        arguments = {"expression": "no_such_tensor", "context": context, "frameId": client.frames()[0]["id"]}
        assert "no_such_tensor" in client.refused("evaluate", arguments)
    client.end()


def test_completions_are_those_of_the_terminal(client: Client, nested: Json) -> None:
    client.begin(nested)
    frame = client.frames()[0]["id"]
    for text, column, wanted in (("rev", 4, "reverse-next"), ("break op:I", 6, ""), ("print ", 7, "a")):
        found = client.request("completions", {"frameId": frame, "text": text, "column": column})["targets"]
        labels = [it["label"] for it in found]
        assert not wanted or wanted in labels
    client.end()


def test_elements_come_in_pages(client: Client, models: Path, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    wide (float[100000] x, float[3, 1000] m) => (float[100000] y, float[3, 1000] z) { y = Neg (x)  z = Neg (m) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "wide.onnx")
    np.save(tmp_path / "x.npy", np.arange(100000, dtype=np.float32))
    launch = {"model": str(tmp_path / "wide.onnx"), "inputs": [f"x={tmp_path / 'x.npy'}"], "random": 1}
    client.begin({**launch, "stopOnEntry": True})
    x = client.evaluate("x", "watch")
    assert x["indexedVariables"] == 100000
    page = client.variables(x["variablesReference"], filter="indexed", start=99990, count=5)
    assert list(page) == [f"[{i}]" for i in range(99990, 99995)]
    assert [float(it["value"]) for it in page.values()] == [float(i) for i in range(99990, 99995)]
    named = client.variables(x["variablesReference"], filter="named")
    assert named and not any(name.startswith("[9") for name in named)
    bounded = client.variables(x["variablesReference"])
    assert len(bounded) <= 1500
    m = client.evaluate("m", "watch")
    assert m["indexedVariables"] == 3
    row = client.variables(m["variablesReference"], filter="indexed")["[2]"]
    assert row["indexedVariables"] == 1000 and row["evaluateName"]
    client.end()


def test_a_client_that_does_not_page_gets_ranges(client: Client, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]>
    wide (float[100000] x) => (float[100000] y) { y = Neg (x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "wide.onnx")
    says = {"supportsVariablePaging": False}
    client.begin({"model": str(tmp_path / "wide.onnx"), "random": 1, "stopOnEntry": True}, says=says)
    seen, reference = [], client.evaluate("x", "watch")["variablesReference"]
    for _ in range(8):
        found = client.variables(reference)
        seen.append(len(found))
        ranges = {name: it for name, it in found.items() if it["variablesReference"] and name.startswith("[")}
        if not ranges:
            break
        reference = list(ranges.values())[-1]["variablesReference"]
    assert max(seen) <= 200 and "[99999]" in found
    client.end()


def test_numbers_can_be_shown_as_bits(client: Client, nested: Json) -> None:
    client.begin(nested)
    x = client.evaluate("x", "watch")["variablesReference"]
    plain = client.variables(x, filter="indexed")
    bits = client.variables(x, filter="indexed", format={"hex": True})
    assert [float(it["value"]) for it in plain.values()] == [1.0, -2.0]
    assert [float.fromhex(it["value"].split()[0]) for it in bits.values()] == [1.0, -2.0]
    assert "0x" in client.evaluate("x[1]", "watch", format={"hex": True})["result"]
    client.end()


def test_memory_is_the_bytes_of_a_tensor(client: Client, nested: Json) -> None:
    client.begin(nested)
    reference = client.evaluate("x", "watch")["memoryReference"]
    content = np.array([1, -2], "<f4").tobytes()

    def read(offset: int, count: int) -> tuple[bytes, int]:
        body = client.request("readMemory", {"memoryReference": reference, "offset": offset, "count": count})
        return base64.b64decode(body.get("data", ""), validate=True), body.get("unreadableBytes", 0)

    assert read(0, 8) == (content, 0)
    assert read(5, 2) == (content[5:7], 0)
    assert read(4, 100)[0] == content[4:]
    assert read(8, 4)[0] == b"" and read(0, 0)[0] == b""
    assert read(-4, 4)[0] == b"" and read(1 << 30, 4)[0] == b""
    assert client.refused("readMemory", {"memoryReference": "0xnothing", "count": 4})
    client.end()


def test_a_variable_leads_to_the_line_that_makes_it(client: Client, nested: Json) -> None:
    client.begin(nested)
    client.move("next")
    for name, wanted in (("a", '"a" = Add'), ("x", 'input "x"')):
        reference = client.tensors()[name]["declarationLocationReference"]
        place = client.request("locations", {"locationReference": reference})
        text = listed(client)[place["line"] - 1]
        assert wanted in text and place["source"]["path"] == source(client)["path"]
        assert text[place["column"] - 1 :].startswith(f'"{name}"')
    assert client.refused("locations", {"locationReference": 2**31 - 1})
    client.end()


def test_sources_are_the_listing_and_what_the_operators_mean(client: Client, nested: Json) -> None:
    client.begin(nested)
    first = client.frames()[0]["source"]
    assert first["checksums"][0]["algorithm"] == "SHA256"
    content = client.request("source", {"source": first, "sourceReference": 0})["content"]
    assert content.splitlines() == listed(client)
    sources = client.request("loadedSources", {})["sources"]
    assert first["path"] in [it.get("path") for it in sources]
    others = [it for it in sources if it.get("sourceReference")]
    assert others
    for other in others:
        asked = {"source": other, "sourceReference": other["sourceReference"]}
        assert client.request("source", asked)["content"].strip()
    assert client.refused("source", {"sourceReference": 2**31 - 1})
    client.end()


def test_edits_are_refused_unless_they_are_allowed(client: Client, nested: Json) -> None:
    client.begin(nested)
    x = client.tensors()["x"]
    set_ = {"variablesReference": x["variablesReference"], "name": "[0]", "value": "7"}
    write = {"memoryReference": x["memoryReference"], "data": base64.b64encode(b"\0" * 4).decode()}
    for command, arguments in (
        ("setVariable", set_),
        ("setExpression", {"expression": "x[0]", "value": "7", "frameId": client.frames()[0]["id"]}),
        ("writeMemory", write),
    ):
        assert "allowEdits" in client.refused(command, arguments)
    assert client.evaluate("x[0]", "watch")["result"].startswith("1")
    client.end()


def test_commands_and_saved_sessions_edit_nothing_where_edits_are_not_allowed(
    port: int, nested: Json, tmp_path: Path
) -> None:
    with connected(port) as client:
        client.begin({**nested, "allowEdits": True, "commands": ["set x[0] = 9"]})
        assert client.evaluate("x[0]", "watch")["result"].startswith("9")
        client.evaluate(f"save '{tmp_path / 'edited.session'}'")
        client.end()
    for more in ({"commands": ["set x[0] = 9"]}, {"commands": [f"load '{tmp_path / 'edited.session'}'"]}):
        with connected(port) as client:
            client.request("initialize", VSCODE)
            assert "allowEdits" in client.refused("launch", {**nested, **more})
    with connected(port) as client:
        client.begin(nested)
        load = {"expression": f"load '{tmp_path / 'edited.session'}'", "context": "repl"}
        assert "allowEdits" in client.refused("evaluate", load)
        assert client.evaluate("x[0]", "watch")["result"].startswith("1")
        client.end()


def test_an_edit_makes_a_timeline_that_says_so(client: Client, nested: Json) -> None:
    client.begin({**nested, "allowEdits": True})
    x = client.tensors()["x"]["variablesReference"]
    found = client.request("setVariable", {"variablesReference": x, "name": "[0]", "value": "7"})
    assert float(found["value"]) == 7
    assert client.event("invalidated")
    assert client.evaluate("x[0]", "watch")["result"].startswith("7")
    assert "edit" in client.frames()[0]["name"] or "edit" in client.evaluate("when")["result"]
    client.move("next")
    assert client.evaluate("a[0]", "watch")["result"].startswith("14")
    client.end()


def test_what_a_variable_says_to_evaluate_gives_its_value_and_its_references_lead_somewhere(
    client: Client, nested: Json
) -> None:
    client.begin(nested)
    tried = 0
    for _ in range(12):
        client.move("stepIn")
        for frame in client.frames():
            for scope in client.scopes(frame["id"]).values():
                for name, it in client.variables(scope["variablesReference"]).items():
                    if "evaluateName" in it:
                        found = client.evaluate(it["evaluateName"], "watch", frameId=frame["id"])
                        assert found["result"] == it["value"], name
                        tried += 1
                    if "memoryReference" in it:
                        client.request("readMemory", {"memoryReference": it["memoryReference"], "count": 4})
                    for key in ("declarationLocationReference", "valueLocationReference"):
                        if key in it:
                            client.request("locations", {"locationReference": it[key]})
    assert tried > 50
    client.end()
