"""Models written to make the default verdict wrong: called CONFORMS though invalid, or though a run gets stuck."""

import numpy as np
import pytest
from onnx import parser
from sonnx.checker import Report, Verdict, certify
from sonnx.checker.report import RuleVerdict
from sonnx.semantics import load_proto, run

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


def judged(text: str) -> Report:
    return certify(parser.parse_model(text))


OUTSIDE = {
    "a float beyond int64": ("1e30", "s = Cast<to = 7>(z) i = Identity(s)", "/3:Gather"),
    "a negative float beyond int64": ("-1e30", "s = Cast<to = 7>(z) i = Identity(s)", "/3:Gather"),
    "a negative float as uint8": ("-5", "s = Cast<to = 2>(z) i = Cast<to = 7>(s)", "/3:Gather"),
    "a float beyond uint8": ("300", "s = Cast<to = 2>(z) i = Cast<to = 7>(s)", "/3:Gather"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_float_cast_outside_its_type_may_be_any_index(name: str) -> None:
    """Cast allows any value there; that the number wraps around was taken for granted, and no obligation was listed."""
    number, casts, where = OUTSIDE[name]
    text = f"{HEADER} g (float[3] x) => (float[1] y) {{ z = Constant<value = float[1] {{{number}}}>() {casts}"
    model = parser.parse_model(f"{text} y = Gather(x, i) }}")
    report = certify(model)
    assert (report.verdict, report.conditions, report.obligations) == (Verdict.CONFORMS, (), 1)
    (finding,) = [it for rule in report.rules for it in rule.left_to(RuleVerdict.OBLIGATION)]
    assert finding.where == where
    ended = run(load_proto(model), {"x": np.zeros(3, np.float32)})
    assert ended.stuck is None or ended.stuck.at == where


@pytest.mark.parametrize("number, needed", [("2.9", "N >= 3"), ("-0.5", "N >= 1"), ("-2.5", "N >= 2")])
def test_a_float_cast_inside_its_type_is_cut_off(number: str, needed: str) -> None:
    report = judged(
        f"{HEADER} g (float[N] x) => (float[1] y) {{ z = Constant<value = float[1] {{{number}}}>()"
        " i = Cast<to = 7>(z) y = Gather(x, i) }"
    )
    assert report.verdict is Verdict.CONFORMS
    assert report.conditions == (() if needed == "N >= 1" else (needed,))


def test_integers_wrap_around() -> None:
    report = judged(
        f"{HEADER} g (float[N] x) => (float[1] y) {{ z = Constant<value = int32[1] {{300}}>()"
        " s = Cast<to = 2>(z) i = Cast<to = 7>(s) y = Gather(x, i) }"
    )
    assert (report.verdict, report.conditions) == (Verdict.CONFORMS, ("N >= 45",))


@pytest.mark.parametrize("version, conforms", [(1, False), (2, False), (3, True)])
def test_before_ir_version_3_a_model_imports_no_operator_sets(version: int, conforms: bool) -> None:
    model = parser.parse_model(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Relu(x) }}")
    model.ir_version = version
    report = certify(model)
    assert (report.verdict is Verdict.CONFORMS) == conforms
    assert ("opset-import" in [rule.id for rule in report.rules if rule.verdict == "violated"]) != conforms
