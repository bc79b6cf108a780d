"""`sonnx compare` and `sonnx fuzz` as a user meets them: exit codes, formats, stored findings, wrong usage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from debugger_models import NESTED
from onnx import parser
from picture_models import column, page_data, unfolded
from planted_engines import Planted, one_bit
from sonnx.checker.commands.compare import compare
from sonnx.checker.commands.fuzz import fuzz
from sonnx.semantics.errors import ModelError
from sonnx.semantics.runtimes.engines import onnxruntime_engine, registry
from sonnx.semantics.runtimes.engines.protocol import Engine

TEXT = '<ir_version: 10, opset_import: ["" : 21]> g (float[2, N] x) => (float[2, N] y) { a = Abs(x)  y = Neg(a) }'


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.engine

    def found(name: str) -> Engine:
        return {"planted": Planted({"Neg": one_bit}), "fine": Planted({}, "fine")}.get(name) or real(name)

    monkeypatch.setattr(registry, "engine", found)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(parser.parse_model(TEXT).SerializeToString())
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(compare, [str(it) for it in arguments])


def test_the_exit_code_says_agree_diverge_or_not_compared(model: Path) -> None:
    assert run(model, "--engine", "machine", "--engine", "fine", "--random", 1).exit_code == 0
    assert run(model, "--engine", "machine", "--engine", "planted", "--random", 1).exit_code == 1
    assert run(model, "--engine", "backend:no_such_module", "--random", 1).exit_code == 3


def test_the_text_names_node_element_values_distance_and_origin(model: Path) -> None:
    text = run(model, "--engine", "planted", "--random", 1).output
    assert "first divergence: planted at /1:Neg (Neg-13), tensor 'y'" in text
    assert "element [1, 0]: expected -" in text
    assert "1 ULP, inf times the bound" in text
    assert "computed by 1 element of a [1, 0]" in text
    assert 'with size 1 for "N"' in text


def test_inputs_are_drawn_with_the_sizes_that_are_given(model: Path, tmp_path: Path) -> None:
    fine = ("--engine", "fine", "--random", 1, "--format", "json")
    report = json.loads(run(model, *fine, "--size", "N=5", "--cases", 2).output)
    assert "with size 1" not in json.dumps(report)
    assert "first element" in run(model, "--engine", "planted", "--random", 1, "--size", "N=5").output
    with pytest.raises(ModelError, match='no input that is drawn has a size "M"'):
        CliRunner().invoke(compare, [str(model), *map(str, fine), "--size", "M=5"], catch_exceptions=False)
    assert "give --random SEED" in run(model, "--engine", "fine", "--size", "N=5").output
    two = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x, float[N] w) => (float[N] y) { y = Add(x, w) }'
    (tmp_path / "two.onnx").write_bytes(parser.parse_model(two).SerializeToString())
    np.save(tmp_path / "x.npy", np.zeros(4, np.float32))
    given = ["--input", f"x={tmp_path / 'x.npy'}", "--size", "N=5"]
    with pytest.raises(ModelError, match="which is called"):
        CliRunner().invoke(compare, [str(tmp_path / "two.onnx"), *map(str, fine), *given], catch_exceptions=False)


def test_every_second_drawn_case_has_special_values(model: Path) -> None:
    text = run(model, "--engine", "fine", "--random", 5, "--cases", 3).output
    assert text.count("agree") == 3
    assert text.count("special values") == 1


def test_the_json_has_no_number_of_a_tensor(model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.array([[np.nan, 1], [np.inf, -0.0]], np.float32))
    done = run(model, "--engine", "planted", "--inputs", tmp_path / "in.npz", "--format", "json")
    assert done.exit_code == 1
    data = json.loads(done.output, parse_constant=lambda it: pytest.fail(f"{it} in JSON"))
    (case,) = data["cases"]
    wrong = case["sides"][1]["nodes"][1]["outputs"][0]
    assert (wrong["tensor"], wrong["outside"], wrong["first"]["index"]) == ("y", 1, [1, 1])
    assert wrong["first"]["expected"] == {"decimal": "-0", "hex": "80000000"}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--engine", "machine", "--engine", "fine", "--engine", "planted"),
        ("--engine", "fine", "--cases", 2),
        ("--engine", "fine", "--output", "/no/such/folder/file"),
    ],
)
def test_wrong_usage_is_said(model: Path, arguments: tuple[object, ...]) -> None:
    assert run(model, *arguments).exit_code == 2


def test_a_finding_is_stored_and_replayed(tmp_path: Path) -> None:
    options = ["--engine", "planted", "--cases", "6", "--operator", "Neg", "--output", str(tmp_path / "found")]
    done = CliRunner().invoke(fuzz, options)
    assert done.exit_code == 1, done.output
    assert "mismatch: Neg-" in done.output
    folder = next((tmp_path / "found").iterdir())
    data = json.loads((folder / "finding.json").read_text())
    assert data["class"] == "mismatch"
    assert run(folder, "--engine", "planted").exit_code == 1
    assert run(folder, "--engine", "fine").exit_code == 0


def test_a_campaign_that_finds_nothing_ends_well(tmp_path: Path) -> None:
    options = ["--engine", "fine", "--cases", "4", "--operator", "Add", "--output", str(tmp_path / "found")]
    done = CliRunner().invoke(fuzz, options)
    assert done.exit_code == 0, done.output
    assert "0 findings" in done.output
    assert CliRunner().invoke(fuzz, ["--engine", "fine", "--operator", "NoSuchThing"]).exit_code == 2


def test_inputs_that_are_not_given_are_asked_for_before_anything_runs(model: Path) -> None:
    done = run(model, "--engine", "fine")
    assert done.exit_code == 2
    assert 'no value is given for "x": name a file with --input, or --random SEED' in done.output


def test_an_engine_that_cannot_be_used_is_said_before_a_campaign_and_what_to_install() -> None:
    with pytest.raises(ModelError, match=r"ModuleNotFoundError: No module named 'no_such_module'$"):
        registry.started("backend:no_such_module")
    done = CliRunner().invoke(fuzz, ["--engine", "backend:no_such_module", "--seconds", "1"])
    assert isinstance(done.exception, ModelError)
    assert registry.started("machine").name == "machine"


def test_an_engine_that_is_not_installed_names_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SONNX_ONNXRUNTIME", raising=False)
    monkeypatch.setattr(onnxruntime_engine, "find_spec", lambda _: None)
    assert "sonnx[ort]" in onnxruntime_engine.onnxruntime("onnxruntime", "all").unusable()


def test_the_graph_shows_the_standing_of_every_node(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "nodes.html"
    done = run(model, "--engine", "planted", "--engine", "fine", "--random", 1, "--graph", path)
    assert done.exit_code == 1
    data = page_data(path.read_text())
    names = [mark[0] for mark in data["marks"]]
    marked = [names[bits.bit_length() - 1] for bits in unfolded(data["marked"]) if bits]
    assert marked == ["exact", "outside"]
    assert any("planted" in line and "1 ULP" in line for line in data["texts"]["line"]["rest"])
    assert {"float[2, 1]"} <= set(column(data, "type", "type"))
    assert run(model, "--engine", "fine", "--random", 1, "--graph", tmp_path).exit_code == 2


def test_nodes_of_calls_and_bodies_have_their_places_in_the_graph(tmp_path: Path) -> None:
    path, page = tmp_path / "net.onnx", tmp_path / "nodes.html"
    path.write_bytes(parser.parse_model(NESTED).SerializeToString())
    assert run(path, "--engine", "fine", "--random", 1, "--graph", page).exit_code == 0
    data = page_data(page.read_text())
    names = [mark[0] for mark in data["marks"]]
    marked = [names[bits.bit_length() - 1] for bits in unfolded(data["marked"]) if bits]
    assert marked.count("exact") == 7 and marked.count("unjudged") == len(marked) - 7 > 0
