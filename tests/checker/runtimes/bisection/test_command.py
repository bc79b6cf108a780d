"""`sonnx bisect` as a user meets it: exit codes, text, JSON, the files that it writes, wrong usage, interrupts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import parser
from optimizing_engines import Fake, Optimizer
from planted_engines import Planted, one_bit
from sonnx.checker.commands.bisect import bisect
from sonnx.semantics.runtimes.engines import registry
from sonnx.semantics.runtimes.engines.protocol import Engine, EngineSession, Failure, Kind, Source, Switches

TEXT = '<ir_version: 10, opset_import: ["" : 21]> g (float[2, N] x) => (float[2, N] y) { a = Abs(x)  y = Neg(a) }'
PASSES = (Optimizer("First"), Optimizer("Second", 2))


class Stopping(Fake):
    """An engine at whose sessions the user gives up."""

    def switched(self, source: Source, switches: Switches, *, apart: bool) -> EngineSession | Failure:
        if len(self.opened) > 4:
            raise KeyboardInterrupt
        return super().switched(source, switches, apart=apart)


ENGINES: dict[str, Engine] = {
    "guilty": Fake(PASSES, {frozenset({"First", "Second"}): ("Neg", one_bit)}),
    "fine": Fake(PASSES),
    "fails": Fake(PASSES, {frozenset({"First"}): Failure(Kind.INVALID, "no tensor \x1b[31m")}),
    "always": Fake(PASSES, {frozenset(): ("Neg", one_bit)}),
    "stopped": Stopping(PASSES, {frozenset({"First", "Second"}): ("Neg", one_bit)}),
    "named": Fake((Optimizer("NoopElimination"),), {frozenset({"NoopElimination"}): ("Add", one_bit)}),
    "plain": Planted({}),
}


@pytest.fixture(autouse=True)
def engines(monkeypatch: pytest.MonkeyPatch) -> None:
    real = registry.engine
    monkeypatch.setattr(registry, "engine", lambda name: ENGINES.get(name) or real(name))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(parser.parse_model(TEXT).SerializeToString())
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(bisect, [str(it) for it in arguments])


def test_the_exit_code_says_right_wrong_usage_or_undecided(model: Path, tmp_path: Path) -> None:
    assert run(model, "--engine", "fine", "--random", 1).exit_code == 0
    assert run(model, "--engine", "guilty", "--random", 1).exit_code == 1
    assert run(model, "--engine", "always", "--random", 1).exit_code == 1
    assert run(model, "--engine", "guilty", "--random", 1, "--timeout", 1e-9).exit_code == 3
    for wrong in (("--engine", "guilty"), ("--engine", "plain", "--random", 1), ("--engine", "machine", "--random", 1)):
        assert run(model, *wrong).exit_code == 2, wrong
    assert run(model, "--engine", "guilty", "--random", 1, "-o", tmp_path / "small.txt").exit_code == 2
    assert "has no optimizers" in run(model, "--engine", "machine", "--random", 1).output


def test_the_text_names_the_optimizers_the_nodes_the_element_and_what_to_do(model: Path) -> None:
    text = run(model, "--engine", "guilty", "--random", 1).output
    assert "decides  what the specification allows" in text
    assert 'seed 1, with size 1 for "N": guilty' in text
    assert "guilty          First with Second" in text
    assert "- y = Neg(a)" in text and "+ y = FusedNeg(a)" in text
    assert "all optimizers  not allowed: output 'y', 1 of 2 elements; element [1, 0]: expected -" in text
    assert "none            allowed" in text
    assert "switch off      off = Second" in text
    assert "smallest        1 node on a float[1, 1]" in text


def test_refuted_rewrites_that_name_the_optimizer_are_told(model: Path) -> None:
    model.write_bytes(parser.parse_model(TEXT.replace("Neg(a)", "Add(a, a)")).SerializeToString())
    assert "named by AddPlusZero, never right: " in run(model, "--engine", "named", "--random", 1).output
    held = json.loads(run(model, "--engine", "named", "--random", 1, "--json").output)
    assert ("AddPlusZero", "never") in [(it["name"], it["claim"]) for it in held["cases"][0]["guilty"][0]["rules"]]


def test_what_an_engine_says_is_shown_inert(model: Path) -> None:
    text = run(model, "--engine", "fails", "--random", 1).output
    assert "all optimizers  no outputs: invalid: no tensor \\x1b[31m" in text
    assert "the engine stores no model that shows what they change" in text


def test_json_holds_the_same_for_machines(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    done = run(model, "--engine", "guilty", "--random", 1, "--json", "--report", target)
    assert (done.exit_code, done.output) == (1, "")
    held = json.loads(target.read_text())
    assert held["schema"] == "sonnx-bisection/1"
    [case] = held["cases"]
    assert case["guilty"][0]["optimizers"] == ["First", "Second"]
    assert case["guilty"][0]["changes"] == [
        {"optimizers": ["First", "Second"], "removed": ["y = Neg(a)"], "added": ["y = FusedNeg(a)"]}
    ]
    assert (case["verdict"], case["level"], case["switch_off"]) == ("guilty", "all", ["Second"])
    assert case["all"]["outputs"][0]["outside"] == 1
    assert case["none"]["answer"] == "allowed"
    assert case["smallest"]["inputs"] == {"a": "float[1, 1]"}
    assert case["smallest"]["nodes"] == ["y = Neg(a)"]


def test_cases_are_drawn_until_one_is_wrong(model: Path) -> None:
    text = run(model, "--engine", "fine", "--random", 1, "--cases", 3).output
    assert text.count("nothing wrong") == 3
    assert run(model, "--engine", "guilty", "--random", 1, "--cases", 3).output.count(": guilty") == 1


def test_the_smallest_case_is_written_and_shows_the_same(model: Path, tmp_path: Path) -> None:
    small = tmp_path / "small.onnx"
    assert run(model, "--engine", "guilty", "--random", 1, "-o", small).exit_code == 1
    assert [node.op_type for node in onnx.load(small).graph.node] == ["Neg"]
    assert np.load(tmp_path / "small.npz")["a"].shape == (1, 1)
    again = run(small, "--engine", "guilty", "--input", tmp_path / "small.npz")
    assert (again.exit_code, "First with Second" in again.output) == (1, True)


def test_bits_are_asked_for_on_request(model: Path) -> None:
    text = run(model, "--engine", "guilty", "--random", 1, "--bits").output
    assert "decides  the outputs without optimizers, bit by bit" in text
    assert "all optimizers  other bits: output 'y'" in text
    assert run(model, "--engine", "always", "--random", 1, "--bits").exit_code == 0


def test_an_interrupt_shows_what_is_known_and_has_its_exit_code(model: Path) -> None:
    done = run(model, "--engine", "stopped", "--random", 1)
    assert done.exit_code == 130
    assert "interrupted: what is known so far is shown" in done.output
    assert "among           First, Second" in done.output
