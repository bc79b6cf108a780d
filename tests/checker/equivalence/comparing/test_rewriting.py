"""Rules of the text on both models: what they show to be equal, how strongly, and which of them are asked."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import onnx.parser
import pytest
from command_calls import called
from onnx import numpy_helper
from small_models import proto_of
from sonnx.checker.equivalence.comparing.comparison import Verdict, compare
from sonnx.checker.equivalence.comparing.normalizing import Strength
from sonnx.checker.equivalence.comparing.report import lines, to_data
from sonnx.checker.equivalence.comparing.rewriting import Trusted
from sonnx.semantics import load_proto, run
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Model
from sonnx.spec.library import specification

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
CONV = "g (float[1, 3, 9, 9] x) => (float[1, 4, 9, 9] y) {{ {} }}"
SCALED = CONV.format("c = Conv<pads = [1, 1, 1, 1]>(x, w) y = Mul(c, k)")
FOLDED = CONV.format("y = Conv<pads = [1, 1, 1, 1]>(x, w)")
TWICE = (
    "g (float[2, 3, 4] x) => (float[4, 2, 3] y) { a = Transpose<perm = [1, 2, 0]>(x) "
    "y = Transpose<perm = [1, 2, 0]>(a) }"
)
ONCE = "g (float[2, 3, 4] x) => (float[4, 2, 3] y) { y = Transpose<perm = [2, 0, 1]>(x) }"


def proto(text: str, **stored: np.ndarray) -> onnx.ModelProto:
    made = onnx.parser.parse_model(HEAD + text)
    made.graph.initializer.extend(numpy_helper.from_array(it.astype(np.float32), name) for name, it in stored.items())
    return made


def trusted(*names: str) -> Trusted:
    return Trusted(tuple(specification().rules[name] for name in names))


def pair(left: str, right: str) -> tuple[Model, Model]:
    """A convolution with a factor for each channel, and one with kernels that have it."""
    rng = np.random.default_rng(3)
    w = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    k = rng.uniform(0.5, 1.5, (4, 1, 1)).astype(np.float32)
    return load_proto(proto(left, w=w, k=k)), load_proto(proto(right, w=w * k.reshape(4, 1, 1, 1)))


def test_a_rule_shows_two_transpositions_to_be_one_bit_by_bit() -> None:
    a, b = load_proto(proto(TWICE)), load_proto(proto(ONCE))
    assert compare(a, b, rules=trusted(), seconds=0.0).verdict is Verdict.UNKNOWN
    found = compare(a, b, rules=trusted("TransposeTranspose"))
    assert (found.verdict, found.code) == (Verdict.EQUAL, 0)
    assert [it.rule for it in found.sides.firings.values()] == ["TransposeTranspose"]


def test_folded_weights_are_equal_over_the_reals_and_no_stronger() -> None:
    a, b = pair(SCALED, FOLDED)
    rules = trusted("ConvMul")
    reals = compare(a, b, rules=rules, strength=Strength.REALS)
    assert (reals.verdict, reals.code) == (Verdict.REALS, 0)
    exact = compare(a, b, rules=rules, seconds=1.0)
    assert exact.verdict is Verdict.REALS and exact.witness is not None and exact.code == 1
    image = np.random.default_rng(5).standard_normal((1, 3, 9, 9)).astype(np.float32)
    bounded = compare(a, b, rules=rules, strength=Strength.REALS, inputs={"x": image})
    assert isinstance(bounded.bounds, Mapping) and 0 < bounded.bounds["y"].apart < 1e-3


@pytest.mark.parametrize(("least", "most"), [(-1.0, 1.0), (0.25, 0.25), (-3.0, 0.5)])
def test_what_both_give_for_inputs_in_a_box_lies_within_the_bound(least: float, most: float) -> None:
    a, b = pair(SCALED, FOLDED)
    found = compare(a, b, rules=trusted("ConvMul"), strength=Strength.REALS, box={"x": (least, most)})
    assert isinstance(found.bounds, Mapping)
    bound = found.bounds["y"]
    draw = np.random.default_rng(3)
    for _ in range(20):
        image = draw.choice([least, most, (least + most) / 2], (1, 3, 9, 9)).astype(np.float32)
        for model in (a, b):
            y = run(model, {"x": image}).outputs["y"]
            assert isinstance(y, np.ndarray) and bound.least <= y.min() and y.max() <= bound.most
    assert bound.apart < 1e-3 if least == most else bound.apart > 1
    (told,) = [line for line in lines(found) if line.startswith("bound")]
    assert told.endswith(f"for all inputs with x in [{least:g}, {most:g}]")


@pytest.mark.parametrize(
    ("box", "inputs", "said"),
    [
        ({"z": (0.0, 1.0)}, {}, "the input x has no box"),
        ({"x": (0.0, 1.0), "z": (0.0, 1.0)}, {}, "no input z of floating-point numbers"),
        ({"x": (0.0, 1.0)}, {"x": np.zeros((1, 3, 9, 9), np.float32)}, "a value and a box"),
    ],
)
def test_a_box_that_is_none_is_refused(
    box: dict[str, tuple[float, float]], inputs: dict[str, np.ndarray], said: str
) -> None:
    a, b = pair(SCALED, FOLDED)
    with pytest.raises(ModelError, match=said):
        compare(a, b, rules=trusted("ConvMul"), strength=Strength.REALS, box=box, inputs=inputs)


def pooled(pool: str, sizes: str) -> tuple[Model, Model]:
    """The two models of `pair`, with a pool behind the convolution."""
    texts = (text.replace(" }", f" z = {pool}(y) }}").replace("4, 9, 9] y", f"{sizes}] z") for text in (SCALED, FOLDED))
    return pair(*texts)


def test_the_bound_of_a_greatest_element_is_no_wider_than_that_of_its_elements() -> None:
    bounds = []
    for models in (pair(SCALED, FOLDED), pooled("MaxPool<kernel_shape = [2, 2]>", "4, 8, 8")):
        found = compare(*models, rules=trusted("ConvMul"), strength=Strength.REALS, box={"x": (0.5, 0.75)})
        assert found.verdict is Verdict.REALS and isinstance(found.bounds, Mapping)
        bounds += found.bounds.values()
    assert 0 < bounds[1].apart <= bounds[0].apart


def test_a_bound_that_is_not_known_says_behind_which_node() -> None:
    a, b = pooled("GlobalMaxPool", "4, 1, 1")
    found = compare(a, b, rules=trusted("ConvMul"), strength=Strength.REALS, box={"x": (0.0, 1.0)})
    assert found.verdict is Verdict.REALS and isinstance(found.bounds, str) and "GlobalMaxPool" in found.bounds


def test_what_rounding_may_flip_is_reported_and_not_claimed() -> None:
    sides = (
        text.replace("float[1, 4, 9, 9] y", "int64[1, 1, 9, 9] z").replace(" }", " z = ArgMax<axis = 1>(y) }")
        for text in (SCALED, FOLDED)
    )
    a, b = pair(*sides)
    found = compare(a, b, rules=trusted("ConvMul"), strength=Strength.REALS, seconds=0.1)
    assert found.verdict is Verdict.UNKNOWN
    assert {found.sides.table.applications[n].name for n in found.decisions} == {"ArgMax"}


@pytest.mark.parametrize("html", [False, True])
def test_the_command_says_it_in_text_and_json_and_seals_it(
    tmp_path, capsys: pytest.CaptureFixture[str], html: bool
) -> None:
    text = "g (float[2] x) => (float[2] y) {{ y = {}(x) }}"
    for name, op in (("a", "Relu"), ("b", "Relu"), ("c", "Neg")):
        onnx.save(proto(text.format(op)), tmp_path / f"{name}.onnx")
    a, b, c = (tmp_path / f"{name}.onnx" for name in "abc")
    page = ["--html", tmp_path / "page.html"] if html else []
    if html:
        pytest.importorskip("jinja2")
    code, said, _ = called(capsys, "equiv", a, b, *page, "--certificate", tmp_path / "c.json")
    assert code == 0 and "verdict  EQUAL" in said and "`exact replication`" in said
    sealed = json.loads((tmp_path / "c.json").read_bytes())
    assert [it["name"] for it in sealed["subject"]] == ["A/a.onnx", "B/b.onnx"]
    assert not html or "a.onnx and b.onnx" in (tmp_path / "page.html").read_text(encoding="utf-8")
    code, said, _ = called(capsys, "equiv", a, c, "--format", "json", *page)
    assert code == 1 and json.loads(said)["verdict"] == "differs"
    assert called(capsys, "equiv", a, tmp_path / "none.onnx")[0] == 2


def test_what_a_rule_assumes_of_values_is_said_in_the_verdict() -> None:
    one = np.ones((), np.float32)
    a = load_proto(proto("g (float[2] x, float[2] b) => (float[2] y) { o = Div(one, x) y = Mul(o, b) }", one=one))
    b = load_proto(proto("g (float[2] x, float[2] b) => (float[2] y) { y = Div(b, x) }"))
    found = compare(a, b, rules=trusted("DivMul"), strength=Strength.REALS)
    assert found.verdict is Verdict.REALS
    said = "\n".join(lines(found))
    assert "only where what was assumed of values holds" in said and "of values: No number is divided by 0." in said
    assert to_data(found)["assumed"] == ["No number is divided by 0."]


SHOWN = "g (float[2] x, float[2] b) => (int32[2] y) {{ n = Neg(x) m = Mul({}) y = BitCast<to = 6>(m) }}"


def test_the_digits_of_a_nan_are_not_called_equal_where_a_rule_gave_it() -> None:
    a, b = (load_proto(proto_of(SHOWN.format(order), 26)) for order in ("n, b", "b, n"))
    every = Trusted(tuple(it for it in specification().rules.values() if it.claim == "exact"))
    for pair in ((a, b), (b, a)):
        found = compare(*pair, rules=every, seconds=0.1)
        assert found.verdict is Verdict.ALLOWED and "which NaN" in found.notes[0]
    assert compare(a, a, rules=every).verdict is Verdict.EQUAL
