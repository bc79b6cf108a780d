"""Where elements come from: exactly what perturbing the inputs confirms; terms that add up to the bits; NaN."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from debugger_models import GIVEN, NESTED, answer, nested, session, text
from onnx import helper, numpy_helper
from random_models import random_model
from sonnx.semantics import load_proto
from sonnx.semantics.debugger.display.answers import Rows
from sonnx.semantics.debugger.queries.explaining import sums
from sonnx.semantics.debugger.queries.sources import Element, Origin, Sources, chain, origin
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.debugger.timeline.names import Instance, value_of_instance
from sonnx.semantics.machine.execution import run
from sonnx.semantics.machine.inputs import random_inputs
from sonnx.semantics.machine.state import tensor_path
from sonnx.semantics.model.loader import load

MODELS = Path(__file__).parents[3] / ".." / "shared" / "models"
NEEDS_MODELS = pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not at ../shared/models")


def found_origin(found: Session, name: str, index: tuple[int, ...], depth: int | None = None) -> Origin:
    found.history.finish()
    t = next(t for t, it in enumerate(found.model.tensors) if it.name == name)
    sources = Sources(found.history, found.history.last)
    return origin(sources, Element(Instance(t, found.model.tensors[t].path), index), depth)


def named(found: Session, parts: Any) -> dict[str, set[tuple[int, ...]]]:
    return {found.model.tensors[part.instance.tensor].name: set(part.elements) for part in parts}


def perturbed(
    loaded: Any, inputs: Mapping[str, Any], output: str, index: tuple[int, ...], change: float = np.nan
) -> dict[str, set[tuple[int, ...]]]:
    """For each input the elements which change the output's element when something is added to them.

    NaN shows all that goes into a result, a number hides what is multiplied by 0: weights at a padding, for example.
    """
    base = run(loaded, inputs, history=False).outputs[output]
    seen: dict[str, set[tuple[int, ...]]] = {}
    for name, value in inputs.items():
        if value.dtype.kind != "f":
            continue
        for at in np.ndindex(value.shape):
            changed = value.copy()
            changed[at] += change
            made = run(loaded, {**inputs, name: changed}, history=False).outputs[output]
            if made[index].tobytes() != base[index].tobytes():  # type: ignore[index,union-attr]
                seen.setdefault(name, set()).add(at)
    return seen


def conv_model() -> tuple[onnx.ModelProto, dict[str, Any]]:
    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 0, 1, 1], strides=[2, 1], dilations=[1, 2], group=2),
        helper.make_node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["t", "shape"], ["y"]),
    ]
    inputs = {
        "x": rng.standard_normal((1, 4, 5, 7)).astype(np.float32),
        "w": rng.standard_normal((2, 2, 3, 2)).astype(np.float32),
        "b": rng.standard_normal(2).astype(np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, 1, value.shape) for name, value in inputs.items()],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(np.array([-1]), "shape")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), inputs


@pytest.mark.parametrize("at", [0, 13, 35])
def test_the_origin_of_an_element_of_a_convolution_is_what_perturbing_the_inputs_confirms(at: int) -> None:
    proto, inputs = conv_model()
    found = session(proto, inputs)
    got = found_origin(found, "y", (at,))
    assert not got.cut and not got.inexact
    assert named(found, got.data) == perturbed(load_proto(proto), inputs, "y", (at,))
    if at == 13:  # its window lies within the image
        assert named(found, got.data) == perturbed(load_proto(proto), inputs, "y", (at,), 0.5)


def lstm_model() -> tuple[onnx.ModelProto, dict[str, Any]]:
    rng = np.random.default_rng(1)
    steps, batch, size, hidden = 3, 2, 2, 2
    shapes = {"x": (steps, batch, size), "w": (1, 4 * hidden, size), "r": (1, 4 * hidden, hidden)}
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y", "h"], hidden_size=hidden)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", 1, None), helper.make_tensor_value_info("h", 1, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), inputs


@pytest.mark.parametrize("at", [(1, 0, 1, 0), (0, 0, 0, 1)])
def test_the_origin_of_an_output_of_an_lstm_is_what_perturbing_the_inputs_confirms(at: tuple[int, ...]) -> None:
    proto, inputs = lstm_model()
    found = session(proto, inputs)
    got = found_origin(found, "y", at)
    assert named(found, got.data) == perturbed(load_proto(proto), inputs, "y", at)


LOOPS = """<ir_version: 10, opset_import: ["" : 18]>
g (float[2, 3] x, float[3] s, int64 n) => (float[3] y, float[k, 3] c, float[2, 3] z) {
  y, c = Loop (n, , s) <body = b (int64 i, bool go, float[3] v) => (bool go2, float[3] v2, float[3] o) {
    go2 = Identity (go)
    o = Mul (v, s)
    v2 = Add (v, o)
  }>
  f, z = Scan <num_scan_inputs = 1, scan_input_directions = [1],
               body = d (float[3] u, float[3] e) => (float[3] u2, float[3] e2) {
    u2 = Add (u, e)
    e2 = Identity (u2)
  }> (s, x)
}"""


@pytest.mark.parametrize(("name", "at"), [("y", (1,)), ("c", (2, 0)), ("z", (0, 1)), ("z", (1, 2))])
def test_origins_go_through_the_runs_of_loops_and_scans(name: str, at: tuple[int, ...]) -> None:
    inputs = {
        "x": np.arange(1, 7, dtype=np.float32).reshape(2, 3),
        "s": np.array([1.5, 2.5, 3.5], np.float32),
        "n": np.array(3),
    }
    found = session(LOOPS, inputs)
    got = found_origin(found, name, at)
    assert not got.inexact
    assert named(found, got.data) == perturbed(load_proto(onnx.parser.parse_model(LOOPS)), inputs, name, at)


@NEEDS_MODELS
def test_the_origin_in_the_shared_scan_model_is_what_perturbation_confirms() -> None:
    loaded = load(MODELS / "control-flow" / "test_scan9_sum" / "model.onnx")
    inputs, _ = random_inputs(loaded, 3)
    from sonnx.semantics.debugger.session.opening import opened_model

    found = opened_model(loaded, inputs)
    name = loaded.tensors[loaded.graphs[0].outputs[1]].name
    got = found_origin(found, name, (1, 1))
    assert named(found, got.data) == perturbed(loaded, inputs, name, (1, 1))


def test_the_terms_of_an_explanation_add_up_to_the_bits_of_the_element() -> None:
    proto, inputs = conv_model()
    found = session(proto, inputs)
    found.history.finish()
    sources = Sources(found.history, found.history.last)
    t = next(t for t, it in enumerate(found.model.tensors) if it.name == "c")
    instance = Instance(t, found.model.tensors[t].path)
    value = value_of_instance(found.history, found.history.last, instance)
    for at in ((0, 0, 1, 1), (0, 1, 2, 5)):
        tree = sources.of(Element(instance, at)).tree
        assert tree is not None
        total = None
        for term, so_far in sums(tree):
            total = term.value if total is None else np.asarray(np.float32(total) + np.float32(term.value))  # type: ignore[arg-type]
            assert np.asarray(total, np.float32).tobytes() == so_far.tobytes()
        assert so_far.tobytes() == value[at].tobytes()  # type: ignore[index,call-overload]


@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_the_value_of_an_explanation_is_the_element_to_the_bit_in_random_models(seed: int) -> None:
    proto, inputs = random_model(seed)
    found = session(proto, inputs)
    last = found.history.finish().index
    sources, explained = Sources(found.history, last), 0
    for index in range(1, last + 1):
        moment = found.history.at(index)
        for t in () if moment.came is None else moment.came.tensors:
            instance = Instance(t, tensor_path(moment.state, t))
            value = value_of_instance(found.history, last, instance)
            if not isinstance(value, np.ndarray) or not value.size:
                continue
            at = tuple(size * 2 // 3 for size in value.shape)
            source = sources.of(Element(instance, at))
            assert not source.whole
            if source.tree is not None and not np.isnan(value[at]):
                assert np.asarray(source.tree.value).tobytes() == np.asarray(value[at]).tobytes(), instance.path
                explained += 1
    assert explained


def test_the_largest_terms_come_first_where_some_are_left_out() -> None:
    proto = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[1, 6] a, float[6, 1] b) => (float[1, 1] y) { y = MatMul (a, b) }"""
    given = {"a": np.array([[3, 1, 3e38, 9, 2, 5]], np.float32), "b": np.array([[1, 1, 3, 1, 1, -7]], np.float32).T}
    found, _ = answer(session(proto, given), "seek end")

    def shown(line: str) -> tuple[list[str], str]:
        got = answer(found, line)[1]
        assert isinstance(got, Rows)
        return [row[0] for row in got.rows], next((it for it in got.notes if "left out" in it), "")

    assert shown("explain y[0, 0] -n 3") == (
        ["2", "5", "3"], "3 terms left out (0 to 1, 4), none larger than 3 in magnitude",
    )  # fmt: skip
    assert shown("explain y[0, 0]") == ([str(i) for i in range(6)], "")
    given = {"a": np.array([[1, 3.4028235e38, 3e31, -1e36, 0, 5]], np.float32), "b": np.ones((6, 1), np.float32)}
    found, _ = answer(session(proto, given), "seek end")
    assert shown("explain y[0, 0] -n 2")[0] == ["2", "1"]  # where the sum overflows, then the largest


def test_long_terms_are_taken_apart_into_parts_with_names() -> None:
    proto, inputs = lstm_model()
    found = session(proto, inputs)
    got = answer(found, "seek end", "explain y[1, 0, 1, 0] -n 40")[1]
    assert isinstance(got, Rows)
    labels = [row[0] for row in got.rows]
    assert labels[0] == "0" and {"s1", "s2"} <= {label.partition(".")[0] for label in labels}
    for label, text_, _, _ in got.rows:
        for name in re.findall(r"\bs[0-9]+\b", text_):
            assert any(it.partition(".")[0] == name for it in labels), (label, name)
    assert any('"r"[0, ' in row[1] for row in got.rows)


def test_explain_shows_the_terms_with_names_and_numbers() -> None:
    proto = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[1, 3] a, float[3, 2] b) => (float[2] y) { m = MatMul (a, b)  y = Squeeze (m) }"""
    given = {"a": np.array([[1, 2, 3]], np.float32), "b": np.array([[1, 10], [2, 20], [4, 40]], np.float32)}
    shown = text(session(proto, given), "seek end", "explain y[1]").splitlines()
    assert shown[0] == '/"m"[0, 1] = MatMul:'
    assert [" ".join(row.split()) for row in shown[2:5]] == [
        '0 "a"[0, 0] * "b"[0, 1] 1.0 * 10.0 = 10.0 10.0',
        '1 "a"[0, 1] * "b"[1, 1] 2.0 * 20.0 = 40.0 50.0',
        '2 "a"[0, 2] * "b"[2, 1] 3.0 * 40.0 = 120.0 170.0',
    ]
    few = answer(session(proto, given), "seek end", "explain y[1] -n 2")[1]
    assert isinstance(few, Rows) and [row[0] for row in few.rows] == ["2", "1"]
    assert few.notes[-2:] == (
        "one term left out (0), none larger than 10 in magnitude",
        "explain -n 8 shows more terms",
    )


# ---- NaN and infinities -----------------------------------------------------------------------

STRANGE = """<ir_version: 10, opset_import: ["" : 18]>
g (float[2] x) => (float[2] y, float[2] k) {
  e = Exp (x)
  d = Sub (e, e)
  r = Identity (d)
  y = Mul (r, x)
  c = Less (d, x)
  z = Sub (x, x)
  k = Where (c, d, z)
}"""


def kinds(found: Session, name: str, at: tuple[int, ...]) -> list[tuple[str, str]]:
    found.history.finish()
    t = next(t for t, it in enumerate(found.model.tensors) if it.name == name)
    links = chain(Sources(found.history, found.history.last), Element(Instance(t, found.model.tensors[t].path), at))
    return [(link.kind, found.model.tensors[link.element.instance.tensor].name) for link in links]


def test_a_nan_is_followed_over_copies_to_where_it_was_generated() -> None:
    found = session(STRANGE, {"x": np.array([1.0, 1000.0], np.float32)})
    assert kinds(found, "y", (1,)) == [("Propagated", "y"), ("Copied", "r"), ("Generated", "d")]
    assert "inf - inf = nan" in text(found, "seek end", "why-nan y[1]")
    assert kinds(found, "e", (1,)) == [("Generated", "e")]
    assert "exp(1000.0) = inf" in text(found, "seek end", "why-nan e[1]")


def test_a_nan_that_goes_into_no_result_is_said_to_be_killed() -> None:
    found = session(STRANGE, {"x": np.array([1.0, 1000.0], np.float32)})
    assert ("Killed", "c") in kinds(found, "k", (1,))
    assert kinds(found, "k", (0,)) == []
    assert "is a number" in text(found, "seek end", "why-nan k[0]")


def test_a_nan_of_an_input_was_given() -> None:
    found = session(STRANGE, {"x": np.array([np.nan, 1.0], np.float32)})
    assert kinds(found, "y", (0,))[-1] == ("Given", "x")


def test_a_nan_is_followed_out_of_the_runs_of_a_loop() -> None:
    found = session(NESTED, {**GIVEN, "x": np.array([np.inf, 1.0], np.float32)})
    links = kinds(found, "h", (2, 0))
    assert links[0] == ("Copied", "h") and links[-1][0] == "Generated"


# ---- Who, when, why not -----------------------------------------------------------------------


def test_the_last_write_of_a_tensor_and_of_a_byte_are_the_same() -> None:
    found, _ = answer(nested(), "seek end")
    place = found.history.at(4).came.places[0]  # type: ignore[union-attr]
    assert "seek 4 is right after" in text(found, f"last-write {place.offset + 3}")
    assert "seek 4 is right after" not in text(found, "seek 3", f"last-write {place.offset + 3}")
    assert "from the start" in text(found, "last-write x")


def test_who_reads_names_nodes_and_elements() -> None:
    shown = text(nested(), "seek end", "who-reads a[1]")
    assert "step 2" in shown and shown.rstrip().endswith("[1]")


def test_what_a_node_waits_for_is_said_down_to_what_is_enabled() -> None:
    shown = text(nested(), "seek 1", "why-not-ready op:If").splitlines()
    assert '/"d"' in shown[2] and shown[-1].endswith("is enabled")
    assert "is enabled" in text(nested(), "why-not-ready /0:Add")
    assert "has fired" in text(nested(), "seek 2", "why-not-ready /0:Add")
    assert "does not run here" in text(nested(), "why-not-ready /4:Loop.body/1:Add")


def test_the_condition_of_a_branch_and_of_a_run_is_shown() -> None:
    assert "false" in text(nested(), "seek 6", "why-branch")
    assert "Step/loop-next" in text(nested(), "seek 16", "why-branch")
    assert "has not begun" in text(nested(), "why-branch op:If")


def test_memory_over_time_and_bytes_are_shown() -> None:
    rows = answer(nested(), "seek end", "memory")[1]
    assert isinstance(rows, Rows) and len(rows.rows) == 26
    found, _ = answer(nested(), "step")
    place = found.history.at(1).came.places[0]  # type: ignore[union-attr]
    assert text(found, f"x {place.offset} 8").splitlines()[-1].endswith("00 00 00 40 00 00 80 c0")


def test_an_attribute_that_is_not_finite_is_no_obstacle() -> None:
    node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=float("nan"))
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in ("x", "y")]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    found = session(proto, {"x": np.array([-1.0, 1.0], np.float32)})
    assert 'Generated  /"y"[0]  nan    1     /0:LeakyRelu  an attribute of the node is nan' in text(
        found, "step", "why-nan y[0]"
    )
    assert "not exact" not in text(found, "step", "origin y[0]")


def test_a_search_that_is_cut_off_says_so_and_shows_how_far_it_came() -> None:
    proto, inputs = conv_model()
    found = session(proto, inputs)
    found.history.finish()
    t = next(t for t, it in enumerate(found.model.tensors) if it.name == "y")
    sources = Sources(found.history, found.history.last)
    asked = iter([False] * 3 + [True] * 9)
    got = origin(sources, Element(Instance(t, found.model.tensors[t].path), (13,)), None, lambda: next(asked))
    assert got.cut == "time" and got.data and got.followed == 3 and got.left
    assert got.beyond is not None
    ends = {found.model.tensors[it.instance.tensor].name for it in (*got.beyond, *got.data, *got.control)}
    full = origin(sources, Element(Instance(t, found.model.tensors[t].path), (13,)))
    exact = {found.model.tensors[it.instance.tensor].name for it in (*full.data, *full.control)}
    assert exact <= ends and not full.cut and full.left == 0 and full.beyond == ()


def test_a_search_that_is_cut_off_names_its_limit_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    proto, inputs = conv_model()
    monkeypatch.setattr("sonnx.semantics.debugger.queries.sources.LIMIT", 3)
    shown = text(session(proto, inputs), "seek end", "origin y[13]")
    assert "cut off after 3 elements" in shown and "-t SECONDS" not in shown and "-d N" in shown
    assert "tensor by tensor, that comes from no more than" in shown


def test_what_lost_a_comparison_is_shown_with_its_value() -> None:
    proto = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2] x) => (float[2] y) { y = Relu (x) }"""
    shown = text(session(proto, {"x": np.array([-3.0, 3.0], np.float32)}), "seek end", "explain y[0]")
    assert 'decided by /"x"[0] = -3.0' in shown


def test_a_maximum_or_a_branch_that_lets_a_value_through_is_no_copy() -> None:
    proto = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2] x) => (float[2] y) { a = Neg (x)  b = Relu (a)  y = Identity (b) }"""
    found = session(proto, {"x": np.array([-3.0, 3.0], np.float32)})
    shown = text(found, "seek end", "explain y[0]").splitlines()
    assert shown[0] == '/"b"[0] = Relu' + ":"
    assert [link for link, _ in kinds(session(proto, {"x": np.array([np.nan, 1], np.float32)}), "y", (0,))] == [
        "Copied", "Propagated", "Propagated", "Given",
    ]  # fmt: skip


def test_a_search_for_what_was_killed_that_is_cut_off_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    proto, inputs = conv_model()
    assert "so is all that it was computed of" in text(session(proto, inputs), "seek end", "why-nan y[13]")
    monkeypatch.setattr("sonnx.semantics.debugger.queries.sources._LOOKED", 3)
    shown = text(session(proto, inputs), "seek end", "why-nan y[13]")
    assert "so is all" not in shown and "cut off here after 3 elements" in shown


def test_what_is_made_of_sizes_is_no_element_that_was_not_followed() -> None:
    proto = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[4] x) => (int64[2] y) { p = NonZero (x)  y = Shape (p) }"""
    shown = text(session(proto, {"x": np.array([1, 0, 1, 1], np.float32)}), "seek end", "origin y[1]")
    assert '/"y"    sizes' in shown and "sizes: made of the sizes of tensors" in shown and "  computed  " not in shown
