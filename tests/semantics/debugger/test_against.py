"""A run held against values recorded elsewhere, a trace, an engine, or another model: the step where they part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from debugger_models import GIVEN, NESTED, answer, model, session, stopped, text
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sonnx.semantics.debugger.display.answers import Note, Refusal, Rows, cell_text
from sonnx.semantics.debugger.session.opening import opened
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.machine.schedule import Schedule
from sonnx.semantics.runtimes.engines.own import MACHINE
from sonnx.semantics.runtimes.engines.protocol import TappedSession
from sonnx.spec import cli
from tables import table

LENET = Path(__file__).parents[3] / ".." / "shared" / "models" / "zoo" / "planet-mnist-lenet" / "lenet.onnx"
F = np.float32


def dense(wrong: float | None = None, between: str = "Sigmoid") -> onnx.ModelProto:
    """Three layers; a wrong one has another weight in the second."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype(F) for shape in ((4, 5), (5, 5), (5, 3))]
    if wrong is not None:
        weights[1][2, 3] = wrong
    nodes = [
        helper.make_node("MatMul", ["x", "W0"], ["m0"]),
        helper.make_node(between, ["m0"], ["s0"]),
        helper.make_node("MatMul", ["s0", "W1"], ["m1"]),
        helper.make_node(between, ["m1"], ["s1"]),
        helper.make_node("MatMul", ["s1", "W2"], ["m2"]),
        helper.make_node("Softmax", ["m2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [numpy_helper.from_array(it, f"W{i}") for i, it in enumerate(weights)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


X = np.random.default_rng(1).standard_normal((2, 4)).astype(F)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(dense(), "healthy.onnx")
    onnx.save(dense(7.0), "wrong.onnx")
    np.save("x.npy", X)
    return tmp_path


def wrong() -> Session:
    return session(dense(7.0), {"x": X})


def healthy(*names: str) -> dict[str, NDArray[Any]]:
    """Values of a healthy run, computed in another order, so that some differ in the last place."""
    w0, w1, w2 = (numpy_helper.to_array(it).astype(np.float64) for it in dense().graph.initializer)
    m0 = X @ w0
    s0 = 1 / (1 + np.exp(-m0))
    m1 = s0.astype(F) @ w1
    s1 = 1 / (1 + np.exp(-m1))
    m2 = s1.astype(F) @ w2
    values = {"m0": m0, "s0": s0, "m1": m1, "s1": s1, "m2": m2}
    return {name: it.astype(F) for name, it in values.items() if not names or name in names}


def verdicts(found: Session, *commands: str) -> dict[str, str]:
    got = answer(found, *commands)[1]
    assert isinstance(got, Rows), got
    return {str(row[got.headings.index("tensor")]): cell_text(row[got.headings.index("verdict")]) for row in got.rows}


# ---- A wrong weight ---------------------------------------------------------------------------


def test_a_wrong_weight_is_found_in_two_commands(capsys: pytest.CaptureFixture[str]) -> None:
    script = ("--input", "x=x.npy", "--against", "healthy.onnx", "-e", "first-diff", "-e", "diff", "--batch")
    assert cli.run(["debug", "wrong.onnx", *script]) == 1
    shown = capsys.readouterr().out
    assert 'the stored /"W1" is another one in the reference: 1 of 25 elements' in shown
    assert '(sonnx 0) first-diff\ncatch: /2:MatMul writes /"m1"[' in shown and "outside the bound" in shown
    assert "compared in 6 steps: 2 same, 3 as defined, 1 outside the bound" in shown


@pytest.mark.skipif(not LENET.is_file(), reason="the shared models are not at ../shared/models")
def test_a_wrong_weight_of_a_net_is_found_in_two_commands(folder: Path) -> None:
    proto = onnx.load(LENET)
    weight = next(it for it in proto.graph.initializer if it.name == "Gemm_2.b")
    changed = numpy_helper.to_array(weight).copy()
    changed[0, 7] += F(1)
    weight.CopyFrom(numpy_helper.from_array(changed, weight.name))
    image = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(F)
    found, got = stopped(session(proto, {"Input_1": image}), f"against {LENET}", "first-diff")
    (hit,) = got.hits
    assert (hit.tensor, hit.element) == ('/"Gemm_2"', (0, 7)) and found.index == 4
    assert set(verdicts(found, "diff").values()) == {"outside the bound", "as defined"}


def test_a_catch_stops_at_the_divergence_in_both_directions() -> None:
    found = answer(wrong(), "against healthy.onnx", "catch divergence")[0]
    found, got = stopped(found, "continue")
    assert (got.reason, found.index, got.hits[0].tensor) == ("catch", 3, '/"m1"')
    assert stopped(found, "continue")[1].reason == "end"
    found, got = stopped(found, "seek end", "reverse-continue")
    assert (got.reason, found.index) == ("catch", 2)


def test_a_run_that_was_repaired_is_judged_on_its_timeline() -> None:
    w1 = numpy_helper.to_array(dense().graph.initializer[1])
    found = answer(wrong(), "against healthy.onnx", f"set W1[2, 3] = {w1[2, 3]}")[0]
    got = answer(found, "first-diff")[1]
    assert isinstance(got, Note) and "no step is outside of what is allowed" in got.lines
    assert stopped(found, "timeline 0", "first-diff")[0].index == 3


# ---- Where values come from -------------------------------------------------------------------


def test_recorded_values_are_judged_by_the_bound_where_their_inputs_are_recorded() -> None:
    np.savez("all.npz", **healthy())
    found, got = stopped(wrong(), "against all.npz", "first-diff")
    assert found.index == 3 and "outside the bound" in got.hits[0].text
    good = session(dense(), {"x": X})
    assert set(verdicts(good, "against all.npz", "diff").values()) <= {"within the bound", "as defined"}
    assert 'not in the reference, and taken to be the same: the input /"x"' in text(good, "against all.npz")


def test_without_recorded_inputs_bits_are_compared_or_a_tolerance_holds() -> None:
    opened_machine = MACHINE.open(dense().SerializeToString())
    assert isinstance(opened_machine, TappedSession)
    m1 = opened_machine.run_tapped({"x": X})["m1"]  # type: ignore[index]
    np.savez("part.npz", m1=np.nextafter(m1, F(9)))
    good = session(dense(), {"x": X})
    found, got = stopped(good, "against part.npz", "first-diff")
    assert "differs" in got.hits[0].text and 'the reference has no /"s0"' in got.hits[0].text and found.index == 3
    for tolerance in ("1ulp", "1e-6", "0.0001%"):
        assert verdicts(good, f"against part.npz tolerance {tolerance}", "diff") == {'/"m1"': "within the tolerance"}
    for tolerance in ("0ulp", "1e-9", "0", "1e-9%"):
        assert verdicts(good, f"against part.npz tolerance {tolerance}", "diff") == {'/"m1"': "outside the tolerance"}


def test_a_tolerance_admits_no_nan_and_no_infinity_in_place_of_a_number() -> None:
    for special in (np.nan, np.inf):
        values = healthy("m1")["m1"]
        values[1, 2] = special
        np.savez(f"{special}.npz", m1=values)
        got = stopped(session(dense(), {"x": X}), f"against {special}.npz tolerance 100%", "first-diff")[1]
        assert got.hits[0].element == (1, 2), special


@table("said", ["map layer=m1", "map names.txt", "map 'layer=/\"m1\"'"])
def test_names_are_mapped(said: str, folder: Path) -> None:
    (folder / "names.txt").write_text("layer = m1\n\n")
    np.savez("other.npz", layer=healthy("m1")["m1"], more=X)
    found, got = stopped(wrong(), f"against other.npz {said} tolerance 1e-3", "first-diff")
    assert (found.index, got.hits[0].tensor) == (3, '/"m1"')
    assert "1 of its tensors match none here: more" in text(wrong(), f"against other.npz {said}")


def test_a_name_that_is_mapped_is_taken_from_no_other_tensor() -> None:
    np.savez("both.npz", m1=X, layer=healthy("m1")["m1"])
    found = answer(session(dense(), {"x": X}), "against both.npz map layer=m1 tolerance 1e-3")[0]
    assert verdicts(found, "diff all") == {'/"m1"': "within the tolerance"}
    assert "1 of its tensors match none here: m1" in text(found, "diff")


def traced(proto: onnx.ModelProto, name: str, given: Mapping[str, Any] = GIVEN) -> None:
    onnx.save(proto, f"{name}.onnx")
    np.savez(f"{name}.npz", **given)
    assert cli.run(["run", f"{name}.onnx", "--input", f"{name}.npz", "--trace", f"{name}.trace"]) == 0


SUB = NESTED.replace("s2 = Add (s, x)", "s2 = Sub (s, x)")
MORE = NESTED.replace("a = Add (x, x)", "aa = Identity (x)\n  a = Add (aa, x)")


@table("kind", ["trace", "onnx"])
def test_runs_of_bodies_are_held_against_those_of_a_trace_and_of_another_model(kind: str) -> None:
    traced(model(SUB), "other")
    found, got = stopped(session(NESTED, GIVEN), f"against other.{kind}", "first-diff")
    assert got.hits[0].tensor == '/4:Loop.body@0/"s2"'
    wrong_steps = {it for it, verdict in verdicts(found, "diff").items() if verdict == "outside the bound"}
    assert wrong_steps == {f'/4:Loop.body@{run}/"s2"' for run in range(3)}


def test_what_a_loop_passes_on_is_judged_by_its_rule_on_the_values_of_the_reference() -> None:
    traced(model(SUB), "other")
    found = answer(session(NESTED, GIVEN), "against other.trace")[0]
    passed = {it: verdict for it, verdict in verdicts(found, "diff").items() if "@" not in it or it.endswith('/"s"')}
    assert passed == {f'/4:Loop.body@{run}/"s"': "as defined" for run in (1, 2)} | {
        '/"y"': "as defined",
        '/"h"': "as defined",
    }
    watched = found.against
    assert watched is not None
    shown = {path: watched.reference.value(path) for path in watched.reference.values}
    for wrong in ('/"y"', '/"h"', '/4:Loop.body@1/"s"'):
        np.savez("wrong.npz", **{**shown, wrong: shown[wrong] + F(1)})
        table_ = answer(session(NESTED, GIVEN), "against wrong.npz", "diff")[1]
        assert isinstance(table_, Rows)
        row = next(it for it in table_.rows if cell_text(it[2]) == wrong)
        assert cell_text(row[8]) == "outside the bound" and "gives another value" in cell_text(row[9])


@table("n", [2, 4])
def test_a_reference_with_another_number_of_runs_is_not_judged_by_the_runs_here(n: int) -> None:
    traced(model(SUB), "runs", {**GIVEN, "n": np.array(n)})
    found = answer(session(NESTED, GIVEN), "against runs.trace")[0]
    assert {verdicts(found, "diff all")[it] for it in ('/"y"', '/"h"')} <= {"undecided", "another type or shape"}


@table("kind", ["trace", "onnx"])
def test_bodies_and_calls_are_found_where_a_node_more_has_moved_them(kind: str) -> None:
    traced(model(MORE), "more")
    found = answer(session(NESTED, GIVEN), f"against more.{kind}")[0]
    got = answer(found, "first-diff")[1]
    assert isinstance(got, Note) and "compared in 25 steps: 31 same" in got.lines
    assert '1 of its tensors match none here: /"aa"' in got.lines


def test_a_name_is_not_mapped_to_a_tensor_of_which_each_run_has_one() -> None:
    np.savez("body.npz", z=np.ones(2, F), d=np.ones(2, F))
    for ours in ("s2", '/4:Loop.body/"s2"'):
        got = answer(session(NESTED, GIVEN), f"against body.npz map 'z={ours}'")[1]
        assert isinstance(got, Refusal) and "of which there is only one" in got.message
    got = answer(session(NESTED, GIVEN), "against body.npz map z=e1")[1]
    assert isinstance(got, Note) and got.lines[0] == '"body.npz" has 2 of the 15 tensors that nodes write'


def test_another_number_of_runs_is_said() -> None:
    traced(model(NESTED), "two", {**GIVEN, "n": np.array(2)})
    shown = text(session(NESTED, GIVEN), "against two.trace", "diff")
    assert "/4:Loop.body ran 3 times here, 2 times in the reference" in shown
    assert 'the input /"n" is another one in the reference' in text(session(NESTED, GIVEN), "against two.trace")


@table("engine", ["numpy", "onnxruntime"])
def test_an_engine_shows_its_values_and_they_are_judged(engine: str) -> None:
    if engine == "onnxruntime":
        pytest.importorskip("onnxruntime")
    onnx.save(dense(between="Relu"), "relu.onnx")
    found = opened(Path("relu.onnx"), ("x=x.npy",), None, Schedule())
    got = answer(found, f"against {engine}", "first-diff")[1]
    assert isinstance(got, Note) and got.lines[0] == "no step is outside of what is allowed"
    assert len(verdicts(found, f"against {engine}", "diff all")) == 6


def test_a_loop_whose_body_an_engine_does_not_show_is_not_passed_over() -> None:
    values = {"y": np.array([9.0, 9.0], F)}
    np.savez("loop.npz", **values)
    _, got = stopped(session(NESTED, GIVEN), "against loop.npz", "first-diff")
    assert "no bound is known of a node with a body" in got.hits[0].text


def test_a_value_of_another_type_or_shape_is_a_difference_with_both_types() -> None:
    np.savez("odd.npz", m0=np.ones((2, 6), F), s0=np.ones((2, 5)))
    found = answer(wrong(), "against odd.npz")[0]
    assert "float[2, 5] here, float[2, 6] in the reference" in text(found, "first-diff")
    assert set(verdicts(found, "diff").values()) == {"another type or shape"}


def test_values_that_no_step_writes_compare_nothing_and_say_so() -> None:
    np.savez("inputs.npz", x=X + 1)
    found = answer(wrong(), "against inputs.npz")[0]
    assert 'the input /"x" is another one in the reference: 8 of 8 elements' in text(wrong(), "against inputs.npz")
    assert text(found, "first-diff").startswith("nothing was compared\ncompared in 6 steps: nothing\n6 that the run")


# ---- What is refused --------------------------------------------------------------------------


@table(
    ("line", "why"),
    [
        ("against nothing", "No such file or directory; the engines are machine, numba, numpy"),
        ("against strange.npz", 'no tensor of "strange.npz" is one of this model: it has "zz"'),
        ("against strange.npz map zz=nosuch", 'this model has no tensor "nosuch"'),
        ("against strange.npz map 'zz='", 'map "zz=": write THEIRS=OURS'),
        ("against strange.npz map zz=m1 map a=m1", 'map names "a", which "strange.npz" does not have'),
        ("against strange.npz map zz=m1 tolerance little", '"little" is no tolerance'),
        ("against strange.npz map nofile", 'map "nofile": No such file'),
        ("against strange.npz map bad.txt", 'map "zz": write THEIRS=OURS'),
        ("against strange.npz map", "map needs a value behind it"),
        ("against two files", "One engine, or one file"),
        ("against", "One engine, or one file"),
        ("against broken.npz", "broken.npz"),
        ("against lone.trace", 'the trace has no values beside it: keep "lone.trace.values" in the same folder'),
        ("against two.onnx", 'no value is given for the inputs "c"'),
        ("against bad.txt", "the text is neither"),
        ("first-diff", "say against"),
        ("diff", "say against"),
        ("catch divergence", "or say against first"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(line: str, why: str, folder: Path) -> None:
    np.savez("strange.npz", zz=np.ones(3, F))
    (folder / "bad.txt").write_text("zz\n")
    (folder / "broken.npz").write_bytes(b"PK\x03\x04 no archive")
    onnx.save(model(NESTED), "two.onnx")
    if "lone" in line:
        traced(dense(), "lone", {"x": X})
        (folder / "lone.trace.values").unlink()
    before = wrong()
    after, got = answer(before, line)
    assert isinstance(got, Refusal) and why.lower() in got.message.lower() and "\n" not in got.message, got
    assert after is before


def test_map_and_tolerance_want_a_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["debug", "wrong.onnx", "--input", "x=x.npy", "--tolerance", "1e-3"]) == 2
    assert "--against" in capsys.readouterr().err


def test_json_has_numbers_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    script = ("--input", "x=x.npy", "--against", "healthy.onnx", "-e", "diff", "--batch", "--json")
    assert cli.run(["debug", "wrong.onnx", *script]) == 0
    _, shown = map(json.loads, capsys.readouterr().out.splitlines())
    first = shown["rows"][0]
    assert (first["step"], first["tensor"], first["verdict"]) == (3, '/"m1"', "outside the bound")
    assert isinstance(first["ulp"], int) and first["of the bound"] > 1 and len(first["worst"]) == 2


@table("reference", ["healthy.onnx", "numpy"])
def test_a_saved_session_has_the_reference(reference: str) -> None:
    begun = opened(Path("wrong.onnx"), ("x=x.npy",), None, Schedule())
    Path("s").unlink(missing_ok=True)
    found = answer(begun, f"against {reference}", "catch divergence", "save s")[0]
    again = answer(begun, "load s")[0]
    assert again.against is not None and again.stops[0].what == "divergence"  # type: ignore[union-attr]
    assert stopped(again, "continue")[0].index == stopped(found, "continue")[0].index
