"""Comparisons: a fault is found at its node, another order of summation is none, and what was not compared is said."""

from __future__ import annotations

import numpy as np
from onnx import parser
from planted_engines import Fault, Planted, dropped_term, one_bit, other_order, outside
from sonnx.checker.runtimes.differential.chaining import Chained, chained
from sonnx.checker.runtimes.differential.comparison import CaseComparison, Verdict, compare
from sonnx.semantics.machine.judging import Standing
from sonnx.semantics.operators.compiled.elements.bounds.spellings import allowed_texts
from sonnx.semantics.runtimes.engines.own import MACHINE
from sonnx.semantics.runtimes.engines.protocol import Engine, Failure, Kind, Source, Values
from sonnx.semantics.runtimes.engines.sources import model_of

NET = """<ir_version: 10, opset_import: ["" : 21]>
net (float[5, 7] x, float[7, 3] w) => (float[5, 3] y) {
    a = MatMul(x, w)  b = Relu(a)  y = Neg(b)
}"""
LOOP = """<ir_version: 10, opset_import: ["" : 21]>
net (float[3, 3] x, int64 n) => (float[3, 3] y, float[k, 3, 3] s) {
    y, s = Loop <body = b (int64 i, bool c, float[3, 3] v) => (bool c2, float[3, 3] v2, float[3, 3] o) {
        v2 = MatMul(v, x)  o = Tanh(v2)  c2 = Identity(c)
    }> (n, , x)
}"""


SCAN = """<ir_version: 10, opset_import: ["" : 21]>
net (float[3, 3] x, float[3, 2, 5] z, float[5, 2] s) => (float[5, 2] y, float[5, K, 2] o) {
    y, o = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1], scan_output_directions = [1],
        body = b (float[5, 2] v, float[2, 5] w) => (float[5, 2] v2, float[5, 2] o2) {
        p = MatMul(w, v)  q = MatMul(v, p)  v2 = Tanh(q)  o2 = Neg(v2)
    }> (s, z)
}"""


def case(text: str, second: Engine, feeds: Values, first: Engine = MACHINE) -> CaseComparison:
    (found,) = compare(parser.parse_model(text).SerializeToString(), (first, second), [("case", feeds)])
    return found


def feeds() -> Values:
    draw = np.random.default_rng(0)
    return {"x": draw.standard_normal((5, 7), np.float32), "w": draw.standard_normal((7, 3), np.float32)}


def test_an_engine_that_computes_the_definition_agrees() -> None:
    found = case(NET, Planted({}), feeds())
    assert (found.verdict, found.reason) == (Verdict.AGREE, "bit-identical")
    assert [node.operator for node in found.sides[1].nodes] == ["MatMul-13", "Relu-14", "Neg-13"]


def test_a_fault_is_found_at_its_node_and_not_at_those_that_it_reaches() -> None:
    found = case(NET, Planted({"MatMul": dropped_term}), feeds())
    assert found.verdict is Verdict.DIVERGE
    assert outside(found) == ["MatMul-13"]
    assert {name for _, name, _ in found.propagated} >= {"a", "y"}


def test_another_order_of_summation_is_within_the_bound() -> None:
    found = case(NET, Planted({"MatMul": other_order}), feeds())
    assert found.verdict is Verdict.AGREE
    (matmul, relu, neg) = (node.outputs[0][1] for node in found.sides[1].nodes)
    assert matmul.within > 0
    assert matmul.ratio is not None
    assert 0 < matmul.ratio <= 1
    assert relu.standing is neg.standing is Standing.EXACT


def test_one_wrong_bit_of_an_operation_that_rounds_nothing_is_found() -> None:
    found = case(NET, Planted({"Relu": one_bit}), feeds())
    assert found.verdict is Verdict.DIVERGE
    node, tensor, judged = found.sides[1].divergence() or (None, "", None)
    assert node is not None
    assert judged is not None
    assert (node.operator, tensor, judged.outside, judged.ulps) == ("Relu-14", "b", 1, 1)
    assert judged.first is not None
    assert judged.first.index == (4, 2)
    assert judged.first.expected.hex != judged.first.found.hex


def test_the_steps_of_a_loop_are_bounded_too() -> None:
    draw = np.random.default_rng(1)
    given = {"x": draw.standard_normal((3, 3), np.float32), "n": np.array(3)}
    assert case(LOOP, Planted({"MatMul": other_order}), given).verdict is Verdict.AGREE
    wrong = case(LOOP, Planted({"MatMul": dropped_term}), given)
    assert wrong.verdict is Verdict.DIVERGE
    assert "Loop-21" in wrong.reason


def test_the_steps_of_a_scan_are_bounded_too_whatever_its_axes_and_directions() -> None:
    draw = np.random.default_rng(2)
    shapes = {"x": (3, 3), "z": (3, 2, 5), "s": (5, 2)}
    given = {name: draw.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    fine = case(SCAN, Planted({"MatMul": other_order}), given)
    assert fine.verdict is Verdict.AGREE
    assert fine.sides[1].nodes[0].outputs[1][1].within > 0
    wrong = case(SCAN, Planted({"MatMul": dropped_term}), given)
    assert wrong.verdict is Verdict.DIVERGE
    assert "Scan-21" in wrong.reason


def test_an_engine_that_fuses_is_judged_by_the_model_as_a_whole() -> None:
    """The values that it shows are right; the model as it is, it computes wrongly."""

    class Fusing(Planted):
        def open(self, source: Source):  # type: ignore[no-untyped-def]
            shows = len(model_outputs(source)) > 1
            return Planted({} if shows else self.faults).open(source)

    found = case(NET, Fusing({"MatMul": dropped_term}), feeds())
    assert found.sides[1].perturbed
    assert found.sides[1].divergence() is None
    assert found.verdict is Verdict.DIVERGE
    assert "'y' of the model as it is" in found.reason
    fine = case(NET, Fusing({"MatMul": other_order}), feeds())
    assert fine.sides[1].perturbed
    assert fine.verdict is Verdict.AGREE


def model_outputs(source: Source) -> tuple[int, ...]:
    return model_of(source).graphs[0].outputs


def test_what_an_engine_refuses_is_not_compared() -> None:
    class Refusing:
        name, version = "refusing", ""

        def open(self, source: Source) -> Failure:
            return Failure(Kind.UNSUPPORTED, "not today")

    found = case(NET, Refusing(), feeds())
    assert found.verdict is Verdict.NOT_COMPARED
    assert "not today" in found.reason


def test_two_engines_that_both_conform_agree_though_their_bits_differ() -> None:
    found = case(NET, Planted({"MatMul": other_order}), feeds(), first=Planted({}))
    assert found.verdict is Verdict.AGREE
    assert any(judged.standing is not Standing.EXACT for _, judged in found.outputs)


def test_inputs_outside_the_domain_are_not_compared() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]>
    net (float[4] x, int64[1] s) => (float[k] y) { y = Reshape(x, s) }"""
    found = case(text, Planted({}), {"x": np.zeros(4, np.float32), "s": np.array([3])})
    assert found.verdict is Verdict.NOT_COMPARED
    assert "outside the domain" in found.reason


WRITTEN = """<ir_version: 10, opset_import: ["" : 21]>
net (double[3] x) => (string[3] y) { a = Cast <to = 8> (x)  y = StringConcat(a, a) }"""


def _written(*texts: str) -> Fault:
    words = np.empty(len(texts), object)
    words[:] = [text.encode() for text in texts]
    return lambda application, done: (words,)


def test_another_spelling_of_a_number_is_within_what_is_allowed_and_what_follows_from_it_is_judged_by_it() -> None:
    given = {"x": np.array([0.1, 1e20, np.nan])}
    fine = case(WRITTEN, Planted({"Cast": _written("1e-1", "1e+20", "nan")}), given)
    assert fine.verdict is Verdict.AGREE
    assert [judged.within for node in fine.sides[1].nodes for _, judged in node.outputs] == [3, 0]
    wrong = case(WRITTEN, Planted({"Cast": _written("0.2", "1e+20", "nan")}), given)
    assert wrong.verdict is Verdict.DIVERGE
    assert outside(wrong) == ["Cast-21"]
    joined = case(WRITTEN, Planted({"StringConcat": _written("0.1", "", "")}), given)
    assert outside(joined) == ["StringConcat-20"]


def test_what_follows_from_an_open_spelling_is_not_judged_for_the_model_as_a_whole() -> None:
    found = chained(model_of(parser.parse_model(WRITTEN).SerializeToString()), {"x": np.array([0.1, 1e20, np.nan])})
    assert isinstance(found, Chained)
    assert found.allowed("y") is None
    spelled = found.allowed("a")
    assert isinstance(spelled, np.ndarray)
    assert allowed_texts(spelled, np.array([b"1e-1", b"1E20", b"0"], object)).tolist() == [True, True, False]
