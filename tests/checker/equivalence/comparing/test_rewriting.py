"""Rules of the text on both models: what they show to be equal, how strongly, and which of them are asked."""

from __future__ import annotations

import json

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
from sonnx.semantics import load_proto
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
    assert bounded.bounds is not None and 0 < bounded.bounds["y"] < 1e-3


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
