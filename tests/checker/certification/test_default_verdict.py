"""The verdict that a user gets who names no rule set: graph rules, valid ONNX, and operators inside their domains."""

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper, parser
from sonnx.checker import Report, RuleVerdict, Verdict, certify

SHARED = Path(__file__).parents[3] / ".." / "shared"

HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.example" : 1]>'
VIOLATING = {
    "matrices that do not fit": (
        "g (float[2,3] x, float[4,5] w) => (float[2,5] y) { y = MatMul(x, w) }",
        {"domain MatMul-1/inner_dimensions", "onnx inference/operator"},
    ),
    "batches of matrices that do not fit": (
        "g (float[N,2,3] x, float[4,5] w) => (float[a,b,c] y) { y = MatMul(x, w) }",
        {"domain MatMul-1/inner_dimensions", "onnx inference/operator"},
    ),
    "floats and integers": (
        "g (float[2] x, int64[2] n) => (float[2] y) { y = Add(x, n) }",
        {"onnx type/variable"},
    ),
    "a type that the operator does not take": (
        "g (bool[2] x) => (bool[2] y) { y = Relu(x) }",
        {"onnx type/admitted"},
    ),
    "an attribute that the operator lacks": (
        "g (float[2] x) => (float[2] y) { y = Relu<alpha = 0.1>(x) }",
        {"onnx attribute/known"},
    ),
    "an attribute of another kind": (
        "g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis = 1.5>(x) }",
        {"onnx attribute/kind"},
    ),
    "too many inputs": (
        "g (float[2] x, float[2] z) => (float[2] y) { y = Relu(x, z) }",
        {"onnx arity"},
    ),
    "too many outputs": (
        "g (float[2] x) => (float[2] y, float[2] z) { y, z = Relu(x) }",
        {"onnx arity"},
    ),
    "an axis outside the rank": (
        "g (float[2,3] x) => (float[2,3] y) { y = Softmax<axis = 2>(x) }",
        {"domain Softmax-13/axis_in_range"},
    ),
    "a declared shape that is not computed": (
        "g (float[2,3] x) => (float[3,2] y) { y = Relu(x) }",
        {"domain shapes"},
    ),
    "conditions on sizes that exclude each other": (
        "g (float[N,3] x, float[2,4] a, float[3,4] b) => (float[k,4] y, float[l,4] z) {"
        " t = Transpose(x) y = MatMul(x, b) u = MatMul(t, a) v = MatMul(t, b) z = Add(u, v) }",
        {"domain MatMul-1/inner_dimensions"},
    ),
    "a node that nothing needs": (
        "g (float[2] x) => (float[2] y) { y = Relu(x) z = Neg(x) }",
        {"R1/per-node"},
    ),
    "violated and undecided at once": (
        "g (float[2] x, float[2] idle) => (float[2] y) { y = com.example.Own(x) }",
        {"C2"},
    ),
}
"""Models that conformed by default, or did not for another reason than they should; the rules that they violate."""


def judged(text: str, **options: Any) -> Report:
    return certify(parser.parse_model(f"{HEADER}\n{text}"), **options)


def violated(report: Report) -> set[str]:
    """The counted rules that are violated, those of included rule sets with the name of the set."""
    return {
        rule.id if rule.rule_set == "sonnx" else f"{rule.rule_set} {rule.id}"
        for rule in report.rules
        if rule.counted and rule.verdict == "violated"
    }


@pytest.mark.parametrize("name", VIOLATING)
def test_what_cannot_run_or_is_no_valid_onnx_violates(name: str) -> None:
    text, rules = VIOLATING[name]
    report = judged(text)
    assert report.verdict is Verdict.VIOLATES
    assert rules <= violated(report)


CONFORMING = {
    "all sizes": ("g (float[N] x) => (float[N] y) { y = Relu(x) }", (), 0),
    "some sizes": (
        "g (float[1,1,H,W] x, float[1,1,3,3] k) => (float[1,1,a,b] y) { y = Conv(x, k) }",
        ("H >= 3", "W >= 3"),
        0,
    ),
    "two names for one size": ("g (float[N,M] x) => (float[N,M] y) { y = Transpose(x) }", ("N = M",), 0),
    "an index that is an input": ("g (float[5] x, int64[1] i) => (float[1] y) { y = Gather(x, i) }", (), 1),
    "both": (
        "g (float[H] x, int64[1] i) => (float[k] y, float[1] z) {"
        " c = Constant<value = float[3] {1, 2, 3}>() y = Add(x, c) z = Gather(x, i) }",
        ("H = 3 or H = 1",),
        1,
    ),
    "an output that nothing reads": (
        "g (float[1,1,4,4] x) => (float[1,1,2,2] y) { y, i = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }",
        (),
        0,
    ),
}


@pytest.mark.parametrize("name", CONFORMING)
def test_what_sizes_and_data_decide_leaves_conforms_and_is_told(name: str) -> None:
    text, conditions, obligations = CONFORMING[name]
    report = judged(text)
    assert (report.verdict, report.conditions, report.obligations) == (Verdict.CONFORMS, conditions, obligations)
    left = (RuleVerdict.CONDITIONAL, RuleVerdict.OBLIGATION)
    told = [finding for rule in report.rules for verdict in left for finding in rule.left_to(verdict)]
    assert all(finding.where.startswith("/") and finding.condition for finding in told)
    assert bool(told) == bool(conditions or obligations)


def test_a_rule_with_conditions_and_obligations_tells_both() -> None:
    """The first Gather reads an index that the caller gives, the second one a position that only some sizes have."""
    report = judged(
        "g (float[H] x, int64[1] i) => (float[1] y, float[1] z) {"
        " c = Constant<value = int64[1] {4}>() y = Gather(x, i) z = Gather(x, c) }"
    )
    assert (report.verdict, report.conditions, report.obligations) == (Verdict.CONFORMS, ("H >= 5",), 1)
    (rule,) = [rule for rule in report.rules if rule.verdict == "conditional"]
    assert [finding.where for finding in rule.findings] == ["/2:Gather"]
    assert [finding.where for finding in rule.besides[RuleVerdict.OBLIGATION]] == ["/1:Gather"]
    assert judged("g (float[2] x) => (float[2] y) { y = Relu(x) }").verdict is Verdict.CONFORMS


def test_strict_judges_for_all_sizes_and_all_data() -> None:
    sizes, data = CONFORMING["some sizes"][0], CONFORMING["an index that is an input"][0]
    assert judged(sizes, strict=True).verdict is Verdict.VIOLATES
    assert judged(data, strict=True).verdict is Verdict.UNDECIDED
    assert judged(CONFORMING["an output that nothing reads"][0], strict=True).verdict is Verdict.VIOLATES
    assert judged(CONFORMING["all sizes"][0], strict=True).verdict is Verdict.CONFORMS


@pytest.mark.parametrize("element", [TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2])
def test_a_cast_to_a_type_of_six_bits_is_decided(element: int) -> None:
    """They are the newest types of ONNX: a table that ends before them leaves `to` outside the domain."""
    cast = helper.make_node("Cast", ["x"], ["y"], to=element)
    ports = [
        helper.make_tensor_value_info(name, kind, [3]) for name, kind in (("x", TensorProto.FLOAT), ("y", element))
    ]
    graph = helper.make_graph([cast], "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=13)
    assert certify(model, rules=("domain",)).verdict is Verdict.CONFORMS


def test_an_operator_without_meaning_is_undecided_and_named() -> None:
    report = judged("g (float[2] x) => (float[2] y) { y = com.example.Own(x) }")
    assert report.verdict is Verdict.UNDECIDED
    assert report.domain is not None
    assert report.domain.without_meaning == ("com.example::Own",)


def test_included_rule_sets_enter_the_verdict_and_others_are_not_judged() -> None:
    report = judged("g (float[2] x) => (float[2] y) { y = Relu<alpha = 0.1>(x) }")
    verdicts = {r.name: (r.verdict, r.asked, r.included_by) for r in report.rule_sets}
    assert verdicts == {
        "sonnx": (Verdict.VIOLATES, True, ()),
        "onnx": (Verdict.VIOLATES, True, ("sonnx",)),
        "domain": (Verdict.CONFORMS, True, ("sonnx",)),
    }


# ---- Models whose verdict was wrong, and real models ------------------------------------------

MISJUDGED = {
    "bad_attr": {"onnx attribute/known"},
    "bn9_5out_nomean": {"R2"},
    "bn9_train": {"R2"},
    "bn9_var_only": {"R2"},
    "branch_out_same_as_outer": set(),
    "concat_sym": {"domain shapes"},
    "cycfn": {"Acyclic"},
    "dropout_train_ratio0": set(),
    "id2": {"onnx arity"},
    "if2": {"C3", "If/branches", "Bodies/arity"},
    "if_count2": {"If/branches", "Bodies/arity"},
    "if_declared_same_really_differ": {"If/branches"},
    "ifsparse": {"If/branches"},
    "many_inputs": {"onnx arity"},
    "softmax_axis": {"domain Softmax-13/axis_in_range"},
    "transpose_sym": set(),
    "wrong_decl": {"domain shapes"},
    "wrong_shape": {"domain MatMul-1/inner_dimensions"},
    "wrong_type": {"onnx type/variable"},
}


@pytest.mark.skipif(not (SHARED / "misjudged").is_dir(), reason="the misjudged models are not at ../shared/misjudged")
@pytest.mark.parametrize("name", MISJUDGED)
def test_a_model_that_was_misjudged_is_judged_rightly(name: str) -> None:
    report = certify((SHARED / "misjudged" / f"{name}.onnx").resolve())
    assert report.verdict is (Verdict.VIOLATES if MISJUDGED[name] else Verdict.CONFORMS)
    assert MISJUDGED[name] <= violated(report)


@pytest.mark.skipif(not (SHARED / "misjudged").is_dir(), reason="the misjudged models are not at ../shared/misjudged")
def test_every_misjudged_model_has_a_verdict_here() -> None:
    assert {path.stem for path in (SHARED / "misjudged").glob("*.onnx")} == MISJUDGED.keys()


@pytest.mark.skipif(not (SHARED / "models").is_dir(), reason="the shared models are not at ../shared/models")
@pytest.mark.parametrize(
    "name",
    [
        "control-flow/loop.onnx",
        "quantized/qlstm_3-2-3_T3_S1/model.onnx",
        "recurrent/byte_sb_bidi_lstm/model.onnx",
        "recurrent/infineon_lstm_small.onnx",
    ],
)
def test_an_output_that_nothing_reads_is_reported_and_not_counted(name: str) -> None:
    report = certify((SHARED / "models" / name).resolve())
    assert report.verdict is Verdict.CONFORMS
    (rule,) = [rule for rule in report.rules if (rule.rule_set, rule.id) == ("sonnx", "R1/per-output")]
    assert (rule.verdict, rule.status, rule.counted) == ("violated", "reported", False)
