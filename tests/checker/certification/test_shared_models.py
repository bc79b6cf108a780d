"""Verdicts on real models made by others; skipped where the folder of shared models is absent."""

import random
from functools import cache
from pathlib import Path

import pytest
from sampling import left, sampled
from sonnx.checker import Report, RuleResult, RuleSetResult, RuleVerdict, Verdict, certify

SHARED = Path(__file__).parents[3] / ".." / "shared" / "models"

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared models are not at ../shared/models")

GROUP = "safety/sonnx-wg"
EXAMPLES = "sonnx-examples/models"


@cache
def report(name: str) -> Report:
    return certify((SHARED / name).resolve(), ("all",))


def rule(name: str, rule_set: str, rule_id: str) -> RuleResult:
    return next(r for r in report(name).rules if (r.rule_set, r.id) == (rule_set, rule_id))


def verdict(name: str, rule_set: str) -> Verdict:
    return next(s.verdict for s in report(name).rule_sets if s.name == rule_set)


def by_default(name: str) -> RuleSetResult:
    return next(s for s in report(name).rule_sets if s.name == "sonnx")


def violated(name: str, rule_set: str) -> set[str]:
    counted = (r for r in report(name).rules if r.rule_set == rule_set and r.counted)
    return {r.id for r in counted if r.verdict is RuleVerdict.VIOLATED}


def places(name: str, rule_set: str, rule_id: str) -> list[str]:
    return [finding.where for finding in rule(name, rule_set, rule_id).findings]


SHAPELESS = [
    f"{GROUP}/graph_example_div.onnx",
    f"{EXAMPLES}/graph_md_example_dead_mul.onnx",
    *(f"{GROUP}/{n}.onnx" for n in ("flatten", "shape", "log", "tanh", "reshape", "leakyrelu")),
    *(f"{GROUP}/leakyrelu_alpha{n}.onnx" for n in ("001", "01", "nan", "inf")),
]


@pytest.mark.parametrize("name", sampled(SHAPELESS, 4))
def test_models_without_dimensions_violate_explicit_shapes(name: str) -> None:
    assert "REQ-GR-000" in {rule_id.split("/")[0] for rule_id in violated(name, "sonnx-operators")}


def test_unsqueeze_has_explicit_shapes() -> None:
    found = violated(f"{GROUP}/unsqueeze.onnx", "sonnx-operators")
    assert "REQ-GR-000" not in {rule_id.split("/")[0] for rule_id in found}
    assert verdict(f"{GROUP}/unsqueeze.onnx", "sonnx-2025-05") is Verdict.CONFORMS


def test_div_violates_input_usage_only() -> None:
    assert violated(f"{GROUP}/graph_example_div.onnx", "sonnx-2025-05") == {"C2"}
    assert places(f"{GROUP}/graph_example_div.onnx", "sonnx-2025-05", "C2") == ['/"I2"']


def test_the_dead_mul_violates_both_wordings_of_r1_and_the_current_r2() -> None:
    name = f"{EXAMPLES}/graph_md_example_dead_mul.onnx"
    assert violated(name, "sonnx-2025-05") == {"R1/per-output", "R1/per-node"}
    assert violated(name, "sonnx-2025-10") == {"R2"}
    (where,) = places(name, "sonnx-2025-10", "R2")
    assert where.startswith("/3:Mul")


@pytest.mark.parametrize("name", ["graph_md_if_example", "graph_md_if_capture_outer_scope"])
def test_control_flow_is_outside_the_profile_and_captures_count_as_inputs(name: str) -> None:
    model = f"{EXAMPLES}/{name}.onnx"
    assert verdict(model, "sonnx-2025-05") is Verdict.CONFORMS
    assert rule(model, "sonnx-operators", "ControlFlow").verdict is RuleVerdict.VIOLATED
    assert [p.split("(")[0] for p in places(model, "sonnx-operators", "ControlFlow")] == ["/0:If"]


def test_lenet_conforms_to_the_graph_rules_and_violates_the_operator_rules() -> None:
    name = f"{GROUP}/LeNet5.onnx"
    assert verdict(name, "sonnx-2025-05") is Verdict.CONFORMS
    assert verdict(name, "sonnx-operators") is Verdict.VIOLATES
    subset = places(name, "sonnx-operators", "REQ-OP-000")
    assert len(subset) == 2 and all(":AveragePool" in place for place in subset)
    defaults: dict[str, list[str]] = {}
    for finding in rule(name, "sonnx-operators", "GR4").findings:
        operator = finding.where.split(":")[1].split("(")[0]
        defaults.setdefault(f"{operator}.{finding.witness['a']}", []).append(finding.where)
    assert {key: len(found) for key, found in defaults.items() if key.startswith("Conv.")} == {
        "Conv.auto_pad": 3,
        "Conv.pads": 2,
    }
    assert {key: len(found) for key, found in defaults.items() if not key.startswith("Conv.")} == {
        "Softmax.axis": 1,
        "Reshape.allowzero": 2,
        "AveragePool.auto_pad": 2,
        "AveragePool.ceil_mode": 2,
        "AveragePool.count_include_pad": 2,
        "AveragePool.pads": 2,
        "Gemm.alpha": 2,
        "Gemm.beta": 2,
    }


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("decision_tree", "MatMul"),
        ("gradient_boosted_trees", "MatMul"),
        ("nanoGPT", "Equal"),
        ("self_attention", "Equal"),
    ],
)
def test_latent_type_errors_are_found_at_the_right_node(name: str, operator: str) -> None:
    model = f"latent-errors/{name}/network.onnx"
    assert verdict(model, "onnx") is Verdict.VIOLATES
    found = [
        finding.where
        for r in report(model).rules
        if r.rule_set == "onnx" and r.counted and r.verdict is RuleVerdict.VIOLATED
        for finding in r.findings
    ]
    assert any(f":{operator}" in where for where in found)


def test_nodes_out_of_order_violate_onnx_and_not_the_graph_rules() -> None:
    model = "latent-errors/nodes_out_of_order/model.onnx"
    assert verdict(model, "onnx") is Verdict.VIOLATES
    assert verdict(model, "sonnx-2025-05") is Verdict.CONFORMS


VALID = sorted(
    str(path.relative_to(SHARED))
    for folder in ("acasxu", "control-flow", "quantized", "recurrent", "safety", "sonnx-examples", "zoo")
    for path in (SHARED / folder).rglob("*")
    if path.suffix in (".onnx", ".pb") and "test_data_set" not in str(path)
)


REJECTED = {"control-flow/nested_local_function.onnx": {"interface-type", "operator", "function/operators"}}
"""Models of these folders that onnx.checker rejects too: operators that opset 11 lacks, an output without a shape."""
VIOLATING = {
    "control-flow/nested_local_function.onnx": {"onnx interface-type", "onnx operator", "onnx function/operators"},
    f"{GROUP}/graph_example_div.onnx": {"sonnx C2"},
    f"{EXAMPLES}/graph_md_example_dead_mul.onnx": {"sonnx R1/per-node"},
}
"""Models of these folders that violate by default, and what: the first one is no valid ONNX."""
FUSED = "quantized/micro_kws/micro_kws_m_static_qoperator.onnx"
"""A model of operators of com.microsoft."""
SAMPLE = {*random.Random(3).sample(VALID, len(VALID) // 6), *REJECTED, *VIOLATING, FUSED}
SOME = [name if name in SAMPLE else left(name) for name in VALID]
"""Those of a sample, and those that are named; the others in the campaign."""


@pytest.mark.parametrize("name", SOME)
def test_a_valid_model_violates_no_rule_of_onnx(name: str) -> None:
    assert violated(name, "onnx") == REJECTED.get(name, set())


@pytest.mark.parametrize("name", SOME)
def test_a_valid_model_is_decided_by_default(name: str) -> None:
    found = by_default(name)
    broken = {f"{rule_set} {rule}" for rule_set in ("sonnx", "onnx", "domain") for rule in violated(name, rule_set)}
    assert broken == VIOLATING.get(name, set())
    assert found.verdict is (Verdict.VIOLATES if broken else Verdict.CONFORMS)
