"""Up to an operator without a meaning, and past it with values from outside, which every answer names as such."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_calls import called
from debugger_models import answer, model, session, stopped, text
from sonnx.semantics.debugger.commands.table import execute
from sonnx.semantics.debugger.display.answers import Refusal, Rows, cell_text
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.machine.state import value_of

FOREIGN = """<ir_version: 10, opset_import: ["" : 21, "com.acme" : 1]>
foreign (float[3] x) => (float[3] z) <float[3] y> {
  a = Relu (x)
  y = com.acme.Foo (a)
  z = Add (y, a)
}"""
LOOP = """<ir_version: 10, opset_import: ["" : 21, "com.acme" : 1]>
loop (float[3] x, int64 n) => (float[3] z) {
  z = Loop (n, , x) <body = body (int64 i, bool c, float[3] xi) => (bool d, float[3] xo) {
    d = Identity (c)
    t = com.acme.Foo (xi)
    xo = Add (t, xi)
  }>
}"""
CALL = """<ir_version: 10, opset_import: ["" : 21, "com.acme" : 1, "my" : 1]>
call (float[3] x) => (float[3] z) { z = my.F (x) }
<domain: "my", opset_import: ["" : 21, "com.acme" : 1]>
F (x) => (z) { t = com.acme.Foo (x)
  z = Add (t, x) }"""
BRANCH = """<ir_version: 10, opset_import: ["" : 21, "com.acme" : 1]>
branch (float[3] x, bool c) => (float[3] z) {
  z = If (c) <then_branch = yes () => (float[3] t) { t = com.acme.Foo (x) },
              else_branch = no () => (float[3] e) { e = Neg (x) }>
}"""
HOLDER = """<ir_version: 10, opset_import: ["" : 21, "com.acme" : 1]>
holder (float[3] x) => (float[3] z) { y = com.acme.Each (x) <body = b () => (float[3] t) { t = Neg (x) }>
  z = Neg (y) }"""
GRADIENT = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>
gradient (float[3] x) => (float[3] g) { y = Neg (x)
  g = ai.onnx.preview.training.Gradient <xs = ["x"], y = "y"> (x) }"""
INVERSE = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
inverse (float[2, 2] x) => (float[2, 2] z) { y = com.microsoft.Inverse (x)
  z = MatMul (x, y) }"""
X = {"x": np.array([1, -2, 3], np.float32)}


def foreign(inputs: Mapping[str, Any] = X, source: str = FOREIGN) -> Session:
    return session(source, inputs)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    np.save(tmp_path / "y.npy", np.array([1, np.nan, 3], np.float32))
    np.save(tmp_path / "double.npy", np.zeros(3))
    np.save(tmp_path / "four.npy", np.zeros(4, np.float32))
    onnx.save(model(FOREIGN), tmp_path / "foreign.onnx")
    np.save(tmp_path / "x.npy", X["x"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(found: Session, line: str) -> str:
    outcome = execute(found, line)
    assert isinstance(outcome.answer, Refusal), outcome.answer
    assert outcome.session is found
    return outcome.answer.message


# ---- Up to it -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "inputs", "at", "said"),
    [
        (FOREIGN, X, 1, "/1:com.acme::Foo: the specification gives no meaning to com.acme::Foo"),
        (CALL, X, 0, "/0:my::F!0:com.acme::Foo: the specification gives no meaning to com.acme::Foo"),
        (GRADIENT, X, 1, "this specification gives operators no derivatives"),
        (LOOP, {**X, "n": np.array(2)}, 2, "/0:Loop.body@0/1:com.acme::Foo: the specification gives no meaning"),
        (BRANCH, {**X, "c": np.array(True)}, 1, "the specification gives no meaning to com.acme::Foo"),
        (HOLDER, X, 0, "holds a body, and no rule runs one for com.acme::Each"),
    ],
)
def test_the_step_is_stuck_at_a_premise_of_its_rule_and_says_what_to_do(
    source: str, inputs: Mapping[str, Any], at: int, said: str
) -> None:
    found, stop = stopped(session(source, inputs), "continue")
    assert (stop.reason, found.index) == ("stuck", at)
    assert said in stop.notes[0]
    assert "rule Step/fire" in stop.notes[1] and ("W in gives(n, M)" in stop.notes[1] or "bodies(n)" in stop.notes[1])
    assert "`supply`" in stop.notes[2] and "`through ENGINE`" in stop.notes[2]


def test_a_branch_that_is_not_taken_needs_no_meaning() -> None:
    _, stop = stopped(session(BRANCH, {**X, "c": np.array(False)}), "continue")
    assert stop.reason == "end" and not any("outside" in it for it in stop.notes)


def test_a_run_is_refused_and_names_the_debugger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = called(capsys, "run", "foreign.onnx", "--input", "x=x.npy")
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "com.acme::Foo" in err and "`sonnx debug`" in err


# ---- Past it --------------------------------------------------------------------------------------


def test_values_that_are_supplied_go_on_and_every_answer_names_them(folder: Path) -> None:
    found, stop = stopped(foreign(), "continue", "supply y=y.npy")
    assert found.index == 2 and "this is no execution of the model" in stop.notes[0]
    found, stop = stopped(found, "continue")
    assert stop.reason == "end" and stop.where.edited == '/"y" supplied from "y.npy" at 2'
    assert stop.notes[-1] == (
        'no execution of the model: values came from outside for /1:com.acme::Foo at step 2 from "y.npy"'
    )
    z = value_of(found.state, found.model.graphs[0].outputs[0])
    assert isinstance(z, np.ndarray) and np.array_equal(z, [2, np.nan, 6], equal_nan=True)
    told = 'supplied from "y.npy" at step 2, by no definition here'
    way = answer(found, "why-nan z[1]")[1]
    assert isinstance(way, Rows)
    assert tuple(map(cell_text, way.rows[-1])) == ("Supplied", '/"y"[1]', "nan", "2", "/1:com.acme::Foo", told)
    origin = answer(found, "origin z[0]")[1]
    assert isinstance(origin, Rows) and f'/"y": {told}' in origin.notes
    assert ("data", '/"y"', "supplied") in [tuple(map(cell_text, it[:3])) for it in origin.rows]
    assert text(found, "explain y[0]") == f'/"y"[0] was {told}'
    assert told in text(found, "last-write y")
    assert "not known" in text(found, "who-reads a[0]")
    assert 'no: /"y" supplied' in text(found, "info schedule")
    assert text(found, "timeline").splitlines()[2].endswith("the model's execution")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("supply y=four.npy", 'the value supplied for "y" has size 4 along axis 0, expected 3: float[3], given [4]'),
        ("supply y=double.npy", 'the value supplied for "y" is double[3], expected float[3]'),
        ("supply y=missing.npy", '"missing.npy": No such file or directory'),
        ("supply z=2", '/"z" is no output of /1:com.acme::Foo'),
        ("supply every x=y.npy", '/"x" is the output of no node'),
        ("supply nope=2", 'there is no tensor "nope"'),
        ("supply y=1 y=2", "a tensor is given twice"),
        ("supply y", "say supply NAME=FILE"),
        ("supply", "say supply NAME=FILE"),
        ("supply y='text", "this cannot be read"),
        ("through nonsense", 'no engine "nonsense"'),
        ("through", "One engine"),
        ("through reference", "reference does not take /1:com.acme::Foo: unsupported"),
        ("through numpy", "numpy does not take /1:com.acme::Foo"),
    ],
)
def test_what_cannot_be_supplied_is_one_line_and_changes_nothing(folder: Path, line: str, why: str) -> None:
    found = answer(foreign(), "continue")[0]
    said = refused(found, line)
    assert why in said and "\n" not in said


def test_all_outputs_are_supplied_at_once() -> None:
    source = FOREIGN.replace("y = com.acme.Foo", "y, u = com.acme.Foo")
    found = answer(foreign(source=source), "continue")[0]
    assert 'gives "u" too' in refused(found, "supply y=1")
    assert 'gives "u" too' in refused(found, "supply every y=1")
    assert stopped(found, "supply y=2 * x u=a")[0].index == 2


@pytest.mark.parametrize(
    ("value", "wanted"), [("2", [2, 2, 2]), ("2 * a", [2, 0, 6]), ("a", [1, 0, 3]), ("a[0] >= a", [1, 1, 0])]
)
def test_an_expression_is_taken_in_the_declared_type(value: str, wanted: list[float]) -> None:
    found, _ = stopped(foreign(), "continue", f"supply y={value}")
    assert text(found, "print y") == f'/"y": float[3] = {" ".join(f"{it:.1f}" for it in wanted)}'


def test_each_run_of_a_body_stops_and_every_passes_all_of_them() -> None:
    found = session(LOOP, {**X, "n": np.array(2)})
    found, _ = stopped(found, "continue", "supply t=xi")
    found, stop = stopped(found, "continue")
    assert stop.reason == "stuck" and "body@1" in stop.where.node
    found, stop = stopped(found, "supply t=xi", "continue")
    assert stop.reason == "end" and text(found, "print z").endswith("= 4.0 -8.0 12.0")
    found, stop = stopped(session(LOOP, {**X, "n": np.array(2)}), "supply every t=xi", "continue")
    assert stop.reason == "end" and text(found, "print z").endswith("= 4.0 -8.0 12.0")
    assert "at step 3" in stop.notes[-1] and "at step 7" in stop.notes[-1]
    one = session(LOOP, {**X, "n": np.array(2)})
    one, stop = stopped(one, 'supply every `/0:Loop.body@1/"t"`=xi', "continue")
    assert stop.reason == "stuck" and "body@0" in stop.where.node


def test_a_holder_of_a_body_without_a_rule_is_passed_as_a_whole() -> None:
    found, stop = stopped(session(HOLDER, X), "continue", "supply y=x", "continue")
    assert stop.reason == "end" and text(found, "print z").endswith("= -1.0 2.0 -3.0")


def test_a_node_with_one_output_stands_for_it() -> None:
    found, stop = stopped(session(CALL, X), "supply every /0:my::F!0:com.acme::Foo=x", "continue")
    assert stop.reason == "end" and text(found, "print z").endswith("= 2.0 -4.0 6.0")


def test_another_timeline_from_before_goes_without_the_values() -> None:
    found, _ = stopped(foreign(), "continue", "supply y=1", "reverse-step")
    found, _ = answer(found, "set a[0] = 7")
    assert found.history.label == '/"a"[0] set to 7.0 at 1'
    assert stopped(found, "continue")[1].reason == "stuck"


def test_dropped_states_are_made_again_with_the_same_values() -> None:
    found = session(LOOP, {**X, "n": np.array(20)}, kept=4)
    found, _ = stopped(found, "supply every t=xi", "seek end")
    first = text(found, "seek 30", "print xi")
    assert first == text(found, "seek 5", "seek end", "seek 30", "print xi")


def test_what_is_supplied_is_judged_by_no_definition(folder: Path) -> None:
    np.savez("there.npz", y=np.zeros(3, np.float32), z=np.zeros(3, np.float32))
    found, _ = stopped(foreign(), "supply every y=1", "continue")
    found, _ = answer(found, "against there.npz")
    table = answer(found, "diff")[1]
    assert isinstance(table, Rows)
    row = next(it for it in table.rows if cell_text(it[2]) == '/"y"')
    assert cell_text(row[8]) == "undecided" and "by no definition" in cell_text(row[9])


def test_a_saved_session_supplies_the_same_values_again(folder: Path) -> None:
    found, _ = stopped(foreign(), "continue", "supply y=y.npy", "continue")
    answer(found, "save bug.session")
    again, _ = stopped(foreign(), "load bug.session")
    assert again.index == 3 and again.history.label == found.history.label
    np.save("y.npy", np.zeros(3, np.float32))
    assert "is not the file that was read then" in refused(foreign(), "load bug.session")


def test_a_saved_session_runs_no_code_of_somebody(folder: Path) -> None:
    found = foreign()
    answer(found, "bookmark here", "save bug.session")
    lines = Path("bug.session").read_text("utf-8").splitlines()
    for line in (
        "through every backend:planted",
        "against backend:planted",
        "through 'numpy:planted.py'",
        'commands 1 "where; through backend:planted"',
        "alias next = \"through 'numpy:planted.py'\"",
        "alias next = \"against 'backend:planted'\"",
    ):
        Path("handed.session").write_text("\n".join([*lines[:3], line, ""]), "utf-8")
        assert "code" in refused(found, "load handed.session")


# ---- Through an engine ----------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_an_engine_computes_the_one_node() -> None:
    given = {"x": np.array([[2, 0], [0, 4]], np.float32)}
    found, stop = stopped(session(INVERSE, given), "continue", "through onnxruntime")
    assert found.index == 1 and "computed by onnxruntime" in stop.notes[0]
    found, stop = stopped(found, "continue")
    assert text(found, "print z[1, :]").endswith("= 0.0 1.0") and "by onnxruntime" in stop.notes[-1]
    assert "computed by onnxruntime" in text(found, "explain y[0, 0]")


def test_a_backend_computes_each_node_without_a_meaning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("double.py").write_text(
        "import numpy as np\n"
        "class Rep:\n"
        "    def run(self, inputs, **_): return [np.asarray(inputs[0]) * np.float32(2)]\n"
        "def prepare(model, device='CPU', **_):\n"
        "    assert [it.op_type for it in model.graph.node] == ['Foo']\n"
        "    return Rep()\n"
        "def supports_device(_): return True\n",
        "utf-8",
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    found, stop = stopped(session(LOOP, {**X, "n": np.array(2)}), "through every backend:double", "continue")
    assert stop.reason == "end" and text(found, "print z").endswith("= 9.0 -18.0 27.0")
    assert "backend:double" in stop.where.edited


# ---- On the command line --------------------------------------------------------------------------


def test_the_options_supply_values_without_a_person(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("debug", "foreign.onnx", "--input", "x=x.npy", "--batch", "-e", "continue")
    code, out, _ = called(capsys, *given, "--supply", "y=y.npy", "-e", "print z")
    assert code == 0 and "2.0 nan 6.0" in out and "values came from outside" in out
    assert called(capsys, *given)[0] == 1
    code, out, _ = called(capsys, *given, "--supply", "nope=3")
    assert code == 2 and 'there is no tensor "nope"' in out
    code, out, _ = called(capsys, *given, "--through", "reference")
    assert code == 1 and "reference does not take /1:com.acme::Foo" in out
