"""Containers and their references: the same one for the same thing, dead once the execution moves, names told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.parser
import pytest
from dap_client import Client, Json
from onnx import TensorProto


def test_the_same_container_has_the_same_reference_until_the_execution_moves(client: Client, nested: Json) -> None:
    client.begin(nested)
    scopes = [{name: it["variablesReference"] for name, it in client.scopes().items()} for _ in range(2)]
    assert scopes[0] == scopes[1] and len(set(scopes[0].values())) == len(scopes[0])
    x = [client.variables(scopes[0]["Tensors"])["x"]["variablesReference"] for _ in range(2)]
    assert x[0] == x[1]
    client.move("stepIn")
    for reference in (x[0], scopes[0]["Tensors"]):
        assert "has moved" in client.refused("variables", {"variablesReference": reference})
    assert {client.scopes()["Tensors"]["variablesReference"] for _ in range(2)}.isdisjoint(scopes[0].values())
    client.end()


def test_a_step_and_a_step_back_show_the_same_variables(client: Client, nested: Json) -> None:
    client.begin(nested)

    def everything() -> list[tuple[str, str, str]]:
        return [
            (scope, name, it["value"])
            for scope, found in client.scopes().items()
            for name, it in client.variables(found["variablesReference"]).items()
        ]

    before: list[list[tuple[str, str, str]]] = []
    for _ in range(12):
        before.append(everything())
        client.move("stepIn")
    for _ in range(12):
        client.request("evaluate", {"expression": "reverse-step", "context": "repl"})
        client.stopped()
        assert everything() == before.pop()
    client.end()


def test_ranges_of_a_page_are_those_that_are_asked_for(client: Client, models: Path, tmp_path: Path) -> None:
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Neg", ["x"], ["y"])], "g",
        [value("x", TensorProto.FLOAT, [5000])], [value("y", TensorProto.FLOAT, [5000])],
    )  # fmt: skip
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(proto, tmp_path / "page.onnx")
    client.begin({"model": str(tmp_path / "page.onnx"), "random": 1, "stopOnEntry": True})
    reference = client.evaluate("x", "watch")["variablesReference"]
    told = client.variables(reference, filter="named")
    assert "statistics" in told and "[0]" not in told
    assert list(client.variables(reference, filter="named", start=1, count=2)) == list(told)[1:3]
    assert len(client.variables(reference, filter="indexed", start=0, count=5000)) == 1000
    assert list(client.variables(reference, filter="indexed", start=4990)) == [f"[{i}]" for i in range(4990, 5000)]
    assert client.variables(reference, filter="indexed", start=6000, count=3) == {}
    assert len(client.variables(reference, filter="indexed")) == 50
    assert list(client.variables(reference, start=7, count=2)) == ["[7]", "[8]"]
    assert "filter" in client.refused("variables", {"variablesReference": reference, "filter": "odd"})
    client.end()


@pytest.mark.parametrize(
    "name", ["plain", "with blank", 'quo"te', "a[0]", "c\x1b[2J\u202ed", "größe", "nan", "x=y", "`b`"]
)
def test_names_of_any_kind_are_shown_harmlessly_and_can_be_evaluated(client: Client, tmp_path: Path, name: str) -> None:
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Neg", [name], ["out"])], "g",
        [value(name, TensorProto.FLOAT, [2])], [value("out", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(proto, tmp_path / "odd.onnx")
    client.begin({"model": str(tmp_path / "odd.onnx"), "random": 1, "stopOnEntry": True, "allowEdits": True})
    (shown,) = client.variables(client.scopes()["Tensors"]["variablesReference"]).values()
    assert shown["name"].isprintable() and shown["value"].isprintable()
    again = client.evaluate(shown["evaluateName"], "watch")
    assert again["result"] == shown["value"]
    element = client.variables(again["variablesReference"], filter="indexed")["[1]"]
    assert client.evaluate(element["evaluateName"], "hover")["result"] == element["value"]
    changed = {"variablesReference": again["variablesReference"], "name": "[1]", "value": "0.25"}
    assert client.request("setVariable", changed)["value"] == "0.25"
    assert client.evaluate(shown["evaluateName"], "watch")["result"].endswith(", 0.25]")
    client.end()


def test_a_lazy_value_is_made_when_it_is_asked_for(client: Client, nested: Json) -> None:
    client.begin(nested)
    machine = client.variables(client.scopes()["Machine"]["variablesReference"])
    lazy = {name: it for name, it in machine.items() if it["presentationHint"].get("lazy")}
    assert set(lazy) == {"live", "digest"}
    (digest,) = client.variables(lazy["digest"]["variablesReference"]).values()
    assert digest["value"].startswith("sha256 ")
    client.end()


def test_the_next_node_leads_to_its_line_and_to_its_definition(client: Client, nested: Json) -> None:
    client.begin(nested)
    shown = client.variables(client.scopes()["Machine"]["variablesReference"])["next node"]
    line = client.request("locations", {"locationReference": shown["declarationLocationReference"]})
    assert line["line"] == client.line()
    defined = client.request("locations", {"locationReference": shown["valueLocationReference"]})
    text = Path(defined["source"]["path"]).read_text(encoding="utf-8").splitlines()[defined["line"] - 1]
    assert "operator Add" in text
    content = client.request("source", {"source": defined["source"], "sourceReference": 0})["content"]
    assert text in content.splitlines()
    client.end()


def test_a_client_that_counts_from_zero_gets_lines_and_columns_from_zero(client: Client, nested: Json) -> None:
    client.begin(nested, says={"linesStartAt1": False, "columnsStartAt1": False})
    shown = client.variables(client.scopes()["Tensors"]["variablesReference"])["x"]
    place = client.request("locations", {"locationReference": shown["declarationLocationReference"]})
    text = Path(place["source"]["path"]).read_text(encoding="ascii").splitlines()[place["line"]]
    assert text[place["column"] : place["endColumn"]] == '"x"'
    client.end()


def test_files_that_are_no_sources_are_not_read(client: Client, nested: Json) -> None:
    client.begin(nested)
    for path in ("/etc/passwd", nested["model"], str(Path(__file__))):
        assert client.refused("source", {"source": {"path": path}, "sourceReference": 0})
    client.end()


def test_changed_values_run_on(client: Client, nested: Json) -> None:
    client.begin({**nested, "allowEdits": True})
    scope = client.scopes()["Node inputs"]["variablesReference"]
    x = client.variables(scope)["x"]
    for value in ("7", "-0.5", "inf", "2 * 3"):
        found = client.request(
            "setVariable", {"variablesReference": x["variablesReference"], "name": "[0]", "value": value}
        )
        assert client.variables(x["variablesReference"], filter="indexed")["[0]"]["value"] == found["value"]
    for value in ("", "no number", "x", "1; step"):
        assert client.refused(
            "setVariable", {"variablesReference": x["variablesReference"], "name": "[0]", "value": value}
        )
    assert client.refused("setVariable", {"variablesReference": scope, "name": "x", "value": "1"})
    assert client.refused("setVariable", {"variablesReference": x["variablesReference"], "name": "[9]", "value": "1"})
    client.move("next")
    a = client.variables(client.scopes(client.frames()[1]["id"])["Tensors"]["variablesReference"])["a"]
    assert a["value"] == "float[2] [12.0, -4.0]"
    client.end()


def test_large_values_are_not_looked_at_for_their_line(client: Client, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[3000000] x) => (float[3000000] y) { y = Neg (x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "large.onnx")
    np.save(tmp_path / "x.npy", np.zeros(3000000, np.float32))
    client.begin({"model": str(tmp_path / "large.onnx"), "inputs": [f"x={tmp_path / 'x.npy'}"], "stopOnEntry": True})
    x = client.variables(client.scopes()["Tensors"]["variablesReference"])["x"]
    assert x["value"] == "float[3000000]" and x["indexedVariables"] == 3000000
    told = client.variables(x["variablesReference"], filter="named")
    assert told["digest"]["presentationHint"]["lazy"]
    numbers = client.variables(told["statistics"]["variablesReference"])
    assert numbers["zero"]["value"] == "3000000"
    client.end()
