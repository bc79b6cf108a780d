"""Requirements of operators, judged before a model runs: for all sizes, or with the sizes and data that they need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from node_tests import node_cases
from onnx import checker, parser
from sonnx.checker.certification.certifier import certify
from sonnx.checker.certification.explain import explanation
from sonnx.checker.certification.formats import render
from sonnx.checker.certification.preconditions import decide_preconditions
from sonnx.checker.certification.report import Report, RuleResult
from sonnx.checker.certification.requirements import earlier_ids, find
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.loader import load_proto
from sonnx.spec.library import specification
from tables import table

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
MODELS = Path(__file__).parents[3] / ".." / "shared" / "models"


def judged(text: str, **options: Any) -> Report:
    model = parser.parse_model(HEADER + text)
    return certify(model, ["domain", "sonnx-constraints"], others=False, **options)


def open_rules(report: Report) -> dict[str, RuleResult]:
    """The rules that do not hold, by id."""
    return {rule.id: rule for rule in report.rules if rule.verdict.value != "holds"}


# ---- Models that the official tools accept ----------------------------------------------------

STATIC = {
    "kernel_shape": (
        "Conv-11/kernel_shape_value", "(float[1,1,8,8] x, float[1,1,3,3] w)", "Conv<kernel_shape=[5,5]>(x, w)",
    ),
    "groups": ("Conv-11/channels_of_group", "(float[1,4,8,8] x, float[3,1,3,3] w)", "Conv<group=3>(x, w)"),
    "channels": ("Conv-11/channels_of_group", "(float[1,4,8,8] x, float[3,3,3,3] w)", "Conv(x, w)"),
    "pads and auto_pad": (
        "Conv-11/pads_or_auto_pad",
        "(float[1,1,8,8] x, float[1,1,3,3] w)", 'Conv<auto_pad="SAME_UPPER", pads=[1,1,1,1]>(x, w)',
    ),
    "auto_pad": ("Conv-11/auto_pad_value", "(float[1,1,8,8] x, float[1,1,3,3] w)", 'Conv<auto_pad="BOGUS">(x, w)'),
    "large kernel": ("Conv-11/kernel_fits", "(float[1,1,2,2] x, float[1,1,3,3] w)", "Conv(x, w)"),
    "resize mode": ("Resize-19/mode_value", "(float[1,1,2,2] x, float[4] s)", 'Resize<mode="bogus">(x, , s)'),
    "epsilon": (
        "BatchNormalization-15/positive_epsilon",
        "(float[1,2,2,2] x, float[2] s, float[2] b, float[2] m)",
        "BatchNormalization<epsilon=-0.5>(x, s, b, m, v)",
    ),
}  # fmt: skip


@table("name", STATIC)
def test_ill_formed_models_that_onnx_accepts_are_refused_at_their_node(name: str) -> None:
    """The eight of the comparison of tools that can be decided before a run (onnx 1.23.2 accepts all of them)."""
    rule, inputs, call = STATIC[name]
    text = f"g {inputs} => (float[a,b,c,d] y) <float[2] v = {{1, 1}}> {{ y = {call} }}"
    checker.check_model(parser.parse_model(HEADER + text), full_check=True)
    found = open_rules(judged(text))
    assert list(found) == [rule]
    assert found[rule].verdict == "violated"
    assert [finding.where[:3] for finding in found[rule].findings] == ["/0:"]


DATA = {
    "reshape": (
        "Reshape-14/one_inferred_size",
        "(float[2,3] x, int64[2] s) => (float[a,b] y) { y = Reshape(x, s) }", "s[1] = -1",
    ),
    "split": (
        "Split-18/split_total",
        "(float[6] x, int64[2] s) => (float[a] y, float[b] z) { y, z = Split(x, s) }", "s[0] + s[1] = 6",
    ),
    "gather": (
        "GatherElements-11/indices_in_range",
        "(float[3] x, int64[2] i) => (float[2] y) { y = GatherElements(x, i) }", "i[1] <= 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_what_the_data_decide_is_an_obligation_with_its_condition(name: str) -> None:
    rule, text, condition = DATA[name]
    report = judged(f"g {text}")
    found = open_rules(report)
    assert {r.verdict.value for r in found.values()} == {"obligation"}
    assert condition in found[rule].findings[0].message
    assert report.verdict == "CONFORMS"
    assert report.obligations >= 1
    assert judged(f"g {text}", strict=True).verdict == "UNDECIDED"


@pytest.mark.parametrize(
    ("name", "text"),
    {
        "reshape": "(float[2,3] x) => (float[a,b] y) <int64[2] s = {-1,-1}> { y = Reshape(x, s) }",
        "split": "(float[6] x) => (float[a] y, float[b] z) <int64[2] s = {2,3}> { y, z = Split(x, s) }",
        "gather": "(float[3] x) => (float[2] y) <int64[2] i = {0,7}> { y = GatherElements(x, i) }",
    }.items(),
)
def test_the_same_with_stored_data_is_violated(name: str, text: str) -> None:
    found = open_rules(judged(f"g {text}"))
    assert found[DATA[name][0]].verdict == "violated"


# ---- Symbolic sizes ---------------------------------------------------------------------------

CHAIN = "g (float[N,1,H,W] x, float[4,1,3,3] w) => (float[a,b,c,d] y) { y = Conv<strides=[2,2]>(x, w) }"


def test_a_requirement_on_sizes_fails_with_the_least_sizes_as_witness() -> None:
    found = open_rules(judged(CHAIN))["Conv-11/kernel_fits"]
    assert found.verdict == "conditional"
    assert judged(CHAIN).verdict == "CONFORMS"
    assert judged(CHAIN, strict=True).verdict == "VIOLATES"
    witness = dict(found.findings[0].witness)
    assert witness.pop("n") == "/0:Conv"
    assert witness.pop("condition")
    sizes = witness.pop("sizes")
    assert not witness
    assert sizes["H"] < 3 or sizes["W"] < 3  # type: ignore


def test_the_report_says_for_which_sizes_the_model_is_well_formed() -> None:
    domain = judged(CHAIN).domain
    assert domain is not None
    assert domain.sizes == (("N", 1, None), ("H", 1, None), ("W", 1, None))
    assert domain.conditions == ("H >= 3", "W >= 3")


def test_sizes_that_a_caller_bounds_are_taken_as_bounded() -> None:
    report = judged(CHAIN, sizes={"H": (3, None), "W": (8, 8)})
    assert not open_rules(report)
    assert report.domain is not None
    assert report.domain.conditions == ()


def test_a_bound_on_a_size_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ModelError, match='no symbolic size "B"; they have: N, H, W'):
        judged(CHAIN, sizes={"B": (1, 1)})


@pytest.mark.parametrize(
    ("shape", "condition"),
    [("{1,-1}", ()), ("{1,36}", ("N = 1",)), ("{0,36}", ()), ("{-1,72}", ("N mod 2 = 0",))],
)
def test_a_reshape_says_for_which_batches_it_is_defined(shape: str, condition: tuple[str, ...]) -> None:
    report = judged(f"g (float[N,4,9] x) => (float[a,b] y) <int64[2] s = {shape}> {{ y = Reshape(x, s) }}")
    assert report.domain is not None
    assert report.domain.conditions == condition


def test_shapes_follow_through_shape_arithmetic() -> None:
    text = """g (float[N,4,9] x) => (float[a,b] y) <int64[1] m = {-1}, int64[1] k = {0}, int64 two = {2}> {
        s = Shape(x) b = Gather(s, k) d = Div(b, two) t = Mul(d, two) l = Concat<axis=0>(t, m) y = Reshape(x, l) }"""
    report = judged(text)
    assert report.domain is not None
    assert not [rule for rule in open_rules(report).values() if rule.verdict == "unknown"]


def test_sizes_of_two_inputs_that_must_agree_give_a_condition_on_both() -> None:
    report = judged("g (float[A,B] x, float[C,D] z) => (float[a,b] y) { y = MatMul(x, z) }")
    assert report.domain is not None
    assert report.domain.conditions == ("B = C",)


def test_declared_shapes_are_compared_with_those_that_the_texts_give() -> None:
    found = open_rules(judged("g (float[2,3] x) => (float[2,3] y) { y = Transpose(x) }"))
    assert found["shapes"].verdict == "violated"
    assert "gives y: [3, 2]" in found["shapes"].findings[0].message


# ---- Control flow -----------------------------------------------------------------------------

BRANCH = """g (float[2,3] x, {condition}) => (float[a,b] y) {{
    {prelude}
    y = If (c) <then_branch = one () => (float[a,b] u) <int64[2] s = {{3,2}}> {{ u = Reshape(x, s) }},
                else_branch = two () => (float[a,b] v) <int64[2] t = {{4,2}}> {{ v = Reshape(x, t) }}> }}"""


def test_a_branch_that_may_be_taken_leaves_its_requirements_to_the_condition() -> None:
    found = open_rules(judged(BRANCH.format(condition="bool c", prelude="")))
    assert found["Reshape-14/same_element_count"].verdict == "obligation"
    assert found["Reshape-14/same_element_count"].findings[0].where == "/0:If.else_branch/0:Reshape"


def test_a_branch_that_is_always_taken_is_judged_alone() -> None:
    prelude = "k = Constant<value = bool[1] {{ {} }}>() c = Squeeze(k)"
    taken = BRANCH.format(condition="float[1] z", prelude=prelude.format(1).replace("{{", "{").replace("}}", "}"))
    other = BRANCH.format(condition="float[1] z", prelude=prelude.format(0).replace("{{", "{").replace("}}", "}"))
    assert "Reshape-14/same_element_count" not in open_rules(judged(taken))
    assert open_rules(judged(other))["Reshape-14/same_element_count"].verdict == "violated"


LOOP = """g (float[2,N] x) => (float[a,b] y) <int64 m = {{ {trips} }}, bool go = {{1}}> {{
    y = Loop (m, go, x) <body = b (int64 i, bool c, float[p,q] h) => (bool d, float[r,s] k) {{
        d = Identity(c)
        k = {step} }}> }}"""


def test_what_a_loop_carries_unchanged_keeps_its_shape() -> None:
    report = judged(LOOP.format(trips=3, step="Add(h, x)"))
    assert not open_rules(report)


def test_a_size_that_changes_from_run_to_run_is_open_in_the_body() -> None:
    text = LOOP.format(trips=300, step="Concat<axis=1>(h, x)").replace("Identity(c)", "Identity(c) z = Add(h, x)")
    found = open_rules(judged(text))
    assert found["Add-7/shapes_broadcast"].verdict == "conditional"
    assert "N = 1" in found["Add-7/shapes_broadcast"].findings[0].message


def test_a_body_that_never_runs_breaks_no_proof_outside() -> None:
    text = LOOP.format(trips=0, step="Add(h, x)").replace("}> }", "}> z = MatMul(y, y) }")
    found = open_rules(judged(text))
    assert any(rule.startswith("MatMul") and found[rule].verdict == "conditional" for rule in found)


# ---- What is not known ------------------------------------------------------------------------


def test_an_operator_without_definition_leaves_the_domain_undecided() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21, "x.y" : 1]>\ng (float[2] a) => (float[2] b) { b = x.y.Own(a) }'
    report = certify(parser.parse_model(text), ["domain"], others=False)
    assert report.verdict == "UNDECIDED"
    assert open_rules(report)["defined"].findings[0].message == "the specification does not define x.y::Own"


def test_an_initializer_that_a_caller_may_replace_is_data() -> None:
    text = "g (float[2,3] x, int64[2] s = {3,2}) => (float[a,b] y) { y = Reshape(x, s) }"
    report = judged(text)
    assert report.rule_sets[0].verdict == "CONFORMS"
    assert {rule.verdict.value for rule in open_rules(report).values()} == {"obligation"}


def test_stored_indices_of_any_number_are_one_question() -> None:
    model = parser.parse_model(HEADER + "g (float[9] x) => (float[a] y) { y = Gather(x, i) }")
    for top, verdict in ((8, "CONFORMS"), (9, "VIOLATES")):
        values = onnx.numpy_helper.from_array(np.arange(5000) % (top + 1), "i")
        del model.graph.initializer[:]
        model.graph.initializer.append(values)
        assert certify(model, ["domain"], others=False).verdict == verdict


def test_the_json_report_states_the_domain() -> None:
    found = json.loads(render(judged(CHAIN), "json"))["domain"]
    assert found["sizes"][0] == {"name": "N", "least": 1, "most": None}
    assert found["conditions"] == ["H >= 3", "W >= 3"]
    assert found["requirements"]["violated"] == 0
    assert found["requirements"]["conditional"] == 1
    assert found["terms"] == [["<=", 3, "H"], ["<=", 3, "W"]]


def test_positions_that_argmax_gives_are_in_range_wherever_they_are_used() -> None:
    text = """g (float[N,7] x, float[7,3] w) => (float[a,b] y) {
        i = ArgMax<axis=1, keepdims=0>(x) y = Gather<axis=0>(w, i) }"""
    assert not open_rules(judged(text))
    found = open_rules(judged(text.replace("float[7,3] w", "float[6,3] w")))
    assert next(iter(found.values())).verdict == "obligation"


# ---- Shapes against those that ONNX states ----------------------------------------------------


def model_of(case: Any) -> onnx.ModelProto:
    return onnx.load(Path(case.model_dir) / "model.onnx") if case.model_dir else case.model


def shape_faults(case: Any) -> list[str]:
    """What is wrong with the shapes that the texts give for a node test: requirements that fail, other sizes."""
    decisions = decide_preconditions(load_proto(model_of(case)))
    found = decisions.examination
    faults = [
        f"{found.model.nodes[it.instance.node].path}: requirement {it.instance.position} fails"
        for it in decisions.open
        if it.verdict == "violated" and it.instance.required
    ]
    for t, declared in zip(found.model.graphs[0].outputs, found.model.graphs[0].output_types, strict=True):
        content = found.contents.get(t)
        if declared is None or declared.kind != "tensor" or declared.shape is None:
            continue
        if content is None or content.shape is None or len(content.shape) != len(declared.shape):
            faults.append(f"{found.model.tensors[t].name}: {content and content.shape}, stated {declared.shape}")
        elif any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(content.shape, declared.shape)):  # noqa: B905
            faults.append(f"{found.model.tensors[t].name}: {content.shape}, stated {declared.shape}")
    return faults


def defined(case: Any) -> bool:
    return all(node.op_type in specification().operators for node in model_of(case).graph.node)


def test_the_texts_give_the_shapes_of_the_node_tests() -> None:
    cases = [case for case in node_cases() if defined(case)][::48]
    assert len(cases) > 25
    assert {case.name: faults for case in cases if (faults := shape_faults(case))} == {}


@pytest.mark.campaign
def test_the_texts_give_the_shapes_of_all_node_tests() -> None:
    cases = [case for case in node_cases() if defined(case)]
    assert {case.name: faults for case in cases if (faults := shape_faults(case))} == {}


# ---- Explanations -----------------------------------------------------------------------------


def test_a_requirement_can_be_explained() -> None:
    text = explanation("Conv-11/kernel_fits")
    assert "The kernel, dilated, fits into the padded data." in text
    assert "require    e ≤ padded" in text


def test_the_ids_of_version_0_2_are_resolved() -> None:
    assert explanation("Conv-11/16") == explanation("Conv-11/kernel_fits")
    assert explanation("Slice-10/Slice-S-C2") == explanation("Slice-10/starts_in_range")


def test_each_earlier_id_names_one_requirement_and_none_is_named_twice() -> None:
    operators = specification().operators
    resolved = [find(operators, before) for before in earlier_ids()]
    assert None not in resolved
    assert len({(it[0].name, it[0].first, it[1]) for it in resolved if it is not None}) == len(resolved) == 830
