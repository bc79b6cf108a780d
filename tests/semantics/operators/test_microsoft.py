"""The operators of com.microsoft: their texts against onnxruntime, their authority, and whole models of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_calls import ENGINES, agrees, owed
from microsoft_cases import CASES, GUESTS, Case, cases, given, model, name_of, verdict
from onnx import TensorProto, helper, numpy_helper
from sampling import CAMPAIGN
from sonnx.checker.certification.certifier import certify
from sonnx.checker.certification.report import RuleVerdict, Verdict
from sonnx.semantics.machine.judging import Standing
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled.ieee import apply
from sonnx.spec.cli import run
from sonnx.spec.library import specification
from sonnx.spec.project import Waiver

QUANTIZED = Path(__file__).parents[3] / ".." / "shared" / "models" / "quantized" / "micro_kws"
KNOWN = {
    "QLinearAveragePool": "onnxruntime: RuntimeException",
    "QLinearGlobalAveragePool": "onnxruntime: RuntimeException",
    "QuickGelu": Standing.OUTSIDE.name,
    "FusedMatMul": Standing.OUTSIDE.name,
    "FusedConv": f"{Standing.OUTSIDE.name} Sigmoid",
}
"""What onnxruntime refuses, a mean whose scale is 256 or more, and what the ledger says of its sigmoid and its sums."""
PAIRS = ("QGemm", "DynamicQuantizeMatMul")
"""Sums of two products are limited on some processors (ledger: QGemm-1/pairs, DynamicQuantizeMatMul-1/pairs)."""


@cache
def outcomes(count: int) -> Mapping[str, Counter[str]]:
    """How onnxruntime stands to the text in the first cases of each operator, counted."""
    every = [(operator, case) for operator in CASES for case in cases(operator, count)]
    counted: dict[str, Counter[str]] = {operator: Counter() for operator in CASES}
    for (operator, case), outcome in zip(every, given(every), strict=True):
        found = verdict(operator, case, outcome)
        counted[operator].update([found] if isinstance(found, str) else (_named(it.standing, case) for it in found))
    return counted


def _named(standing: Standing, case: Case) -> str:
    """The name of the standing, with the activation of the case where the two differ, and where sums of two products
    of an unsigned and a signed factor may."""
    if standing is Standing.OUTSIDE:
        return " ".join(filter(None, (standing.name, case[1].get("activation", ""), _signed(case))))
    return " ".join(filter(None, (standing.name, _signed(case)))) if standing is Standing.UNDECIDED else standing.name


def _signed(case: Case) -> str:
    """`signed` where an input has signed integers of 8 bits."""
    return "signed" if any(it is not None and it.dtype == np.int8 for it in case[0]) else ""


@pytest.mark.parametrize("operator", CASES)
@pytest.mark.parametrize("count", [pytest.param(3, id="sample"), pytest.param(300, id="all", marks=CAMPAIGN)])
def test_onnxruntime_gives_what_the_text_allows(operator: str, count: int) -> None:
    pytest.importorskip("onnxruntime")
    known = {Standing.EXACT.name, Standing.WITHIN.name, Standing.FREE.name, KNOWN.get(operator)}
    if operator in PAIRS:
        known |= {f"{it.name} signed" for it in (Standing.OUTSIDE, Standing.UNDECIDED)}
    counted = outcomes(count)[operator]
    assert set(counted) <= known, counted
    assert counted[Standing.EXACT.name] + counted[Standing.WITHIN.name] > 0


def test_every_operator_that_onnxruntime_adds_is_held_against_it() -> None:
    defined = {name for name in specification().operators if name.startswith(("com.microsoft::", "ai.onnx::"))}
    assert set(map(name_of, CASES)) == defined


def test_the_zero_point_of_a_sum_and_of_a_product_is_added_before_a_tie_is_rounded() -> None:
    one, zero = np.array(1, np.uint8), np.array(0, np.uint8)
    half, whole = np.array(0.5, np.float32), np.array(1, np.float32)
    x, y = (np.array([1], np.uint8), half, zero), (whole, one)
    for operator, inputs, expected in (
        ("QLinearAdd", (*x, np.array([0], np.uint8), whole, zero, *y), 2),
        ("QLinearMul", (*x, np.array([1], np.uint8), whole, zero, *y), 2),
        ("QLinearLeakyRelu", (*x, *y), 1),
    ):
        done = apply(Application(f"com.microsoft::{operator}", 1, inputs, {}, (True,)))
        assert isinstance(done, Outputs)
        assert np.asarray(done.values[0]).tolist() == [expected], operator


# ---- Whole models -------------------------------------------------------------------------------


@CAMPAIGN
@pytest.mark.skipif(not QUANTIZED.is_dir(), reason="the shared models are not at ../shared/models")
def test_a_quantized_network_of_these_operators_conforms_and_its_certificate_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owed(capsys, QUANTIZED / "micro_kws_m_static_qoperator.onnx", tmp_path / "c.json")


@pytest.mark.skipif(not QUANTIZED.is_dir(), reason="the shared models are not at ../shared/models")
@ENGINES
def test_a_quantized_network_runs_as_the_text_allows(engine: str) -> None:
    assert agrees(engine, QUANTIZED / "micro_kws_m_static_qoperator.onnx", "--random", "1")


def encoder() -> Any:
    """A layer of BERT as onnxruntime's transformer optimizer writes it, for lines of four tokens with a mask."""
    rng = np.random.default_rng(20261123)
    hidden, inner, words = 8, 12, 11
    stored: dict[str, Any] = {
        "words": rng.normal(0, 1, (words, hidden)),
        "positions": rng.normal(0, 1, (6, hidden)),
        "segments": rng.normal(0, 1, (2, hidden)),
        **{f"gamma{k}": rng.normal(1, 0.1, hidden) for k in range(3)},
        **{f"beta{k}": rng.normal(0, 0.1, hidden) for k in range(3)},
        "qkv": rng.normal(0, 0.4, (hidden, 3 * hidden)),
        "qkv_bias": rng.normal(0, 0.1, 3 * hidden),
        "out": rng.normal(0, 0.4, (hidden, hidden)),
        "out_bias": rng.normal(0, 0.1, hidden),
        "up": rng.normal(0, 0.4, (hidden, inner)),
        "up_bias": rng.normal(0, 0.1, inner),
        "down": rng.normal(0, 0.4, (inner, hidden)),
        "down_bias": rng.normal(0, 0.1, hidden),
    }

    def fused(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
        return helper.make_node(operator, inputs, outputs, outputs[0], domain="com.microsoft", **attributes)

    embedded = ["input_ids", "segment_ids", "words", "positions", "segments", "gamma0", "beta0", "mask"]
    nodes = [
        fused("EmbedLayerNormalization", embedded, ["x", "lengths"], epsilon=1e-12),
        fused("Attention", ["x", "qkv", "qkv_bias", "mask"], ["context"], num_heads=2),
        helper.make_node("MatMul", ["context", "out"], ["projected"], "projected"),
        fused("SkipLayerNormalization", ["projected", "x", "gamma1", "beta1", "out_bias"], ["y"], epsilon=1e-12),
        helper.make_node("MatMul", ["y", "up"], ["wide"], "wide"),
        fused("BiasGelu", ["wide", "up_bias"], ["active"]),
        helper.make_node("MatMul", ["active", "down"], ["narrow"], "narrow"),
        fused("SkipLayerNormalization", ["narrow", "y", "gamma2", "beta2", "down_bias"], ["z"], epsilon=1e-12),
    ]
    tokens = ("input_ids", "segment_ids", "mask")
    ids = [helper.make_tensor_value_info(it, TensorProto.INT32, ["N", 4]) for it in tokens]
    result = [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["N", 4, hidden])]
    kept = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "encoder", ids, result, kept)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    """The folder of the model and of inputs for it."""
    onnx.save(encoder(), tmp_path / "encoder.onnx")
    ids = np.array([[3, 1, 10, 0], [7, 7, 2, 0]], np.int32)
    segments = np.array([[0, 0, 1, 1], [0, 1, 1, 0]], np.int32)
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], np.int32)
    np.savez(tmp_path / "inputs.npz", input_ids=ids, segment_ids=segments, mask=mask)
    return tmp_path


@ENGINES
def test_a_fused_layer_of_bert_runs_as_the_text_allows(engine: str, layer: Path) -> None:
    assert agrees(engine, layer / "encoder.onnx", "--input", layer / "inputs.npz")


def test_a_fused_layer_of_bert_conforms_but_for_what_its_data_owe(
    layer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [f"com.microsoft::EmbedLayerNormalization-1/{it}_in_range" for it in ("words", "segments")]
    assert owed(capsys, layer / "encoder.onnx", layer / "c.json") == ids


# ---- Inputs in groups ---------------------------------------------------------------------------

TENSOR, SCALE, ZERO, SIGNED = (3, np.uint8), (0, np.float32), (0, np.uint8), (0, np.int8)
"""Entries of a group by their number of elements, 0 for a scalar, and their type."""
GROUPS = {
    "right": ([TENSOR, SCALE, ZERO, TENSOR, SCALE, ZERO], []),
    "swapped": ([(3, np.float32), ZERO, ZERO], ["type/admitted", "type/variable"]),
    "of two types": ([TENSOR, SCALE, SIGNED], ["type/variable"]),
    "cut off": ([TENSOR, SCALE, ZERO, TENSOR], ["com.microsoft::QLinearConcat-1/groups"]),
    "too few": ([TENSOR, SCALE], ["arity", "com.microsoft::QLinearConcat-1/groups"]),
    "with a gap": ([TENSOR, None, ZERO], ["required", "com.microsoft::QLinearConcat-1/groups"]),
}


@pytest.mark.parametrize(
    "case", [it if it in ("right", "of two types") else pytest.param(it, marks=CAMPAIGN) for it in GROUPS]
)
def test_the_entries_of_a_group_are_judged_by_their_own_types(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries, broken = GROUPS[case]
    fed = {
        f"x{k}": np.ones([it[0]] if it[0] else [], it[1])
        for k, it in enumerate([SCALE, ZERO, *entries])
        if it is not None
    }
    names = [f"x{k}" if it is not None else "" for k, it in enumerate([SCALE, ZERO, *entries])]
    node = helper.make_node("QLinearConcat", names, ["y"], domain="com.microsoft", axis=0)
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in fed.items()}
    inputs = [helper.make_tensor_value_info(name, kind, fed[name].shape) for name, kind in kinds.items()]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.UINT8, ["N"])])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path, certificate = str(tmp_path / "m.onnx"), str(tmp_path / "c.json")
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    np.savez(tmp_path / "inputs.npz", **fed)
    run(["certify", path, "--certificate", certificate, "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert [it["id"] for it in report["rules"] if it["verdict"] != "holds"] == broken
    assert run(["recheck", certificate, path]) == 0
    assert capsys.readouterr().out.startswith("CONFIRMED")
    assert run(["run", path, "--input", str(tmp_path / "inputs.npz")]) == (1 if broken else 0)


# ---- A guest of ONNX's domain -------------------------------------------------------------------


def guest(tmp_path: Path, domain: str = "") -> str:
    """A model of one SimplifiedLayerNormalization."""
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "s"], ["y"], domain=domain, axis=-1, epsilon=1e-6)
    values = [helper.make_tensor_value_info(it, TensorProto.FLOAT, ["N", 4]) for it in "xy"]
    stored = numpy_helper.from_array(np.array([1, 2, 3, 4], np.float32), "s")
    graph = helper.make_graph([node], "g", values[:1], values[1:], [stored])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, 21)], ir_version=10)
    onnx.save(model, tmp_path / "guest.onnx")
    return str(tmp_path / "guest.onnx")


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_an_operator_that_a_runtime_registers_in_onnx_s_domain_runs_and_is_said_not_to_be_onnx(
    domain: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, certificate = guest(tmp_path, domain), str(tmp_path / "c.json")
    assert run(["certify", path, "--rules", "sonnx", "--certificate", certificate, "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [it["id"] for it in report["rules"] if it["verdict"] != "holds"] == ["operator/own"]
    assert run(["recheck", certificate, path]) == 0
    assert capsys.readouterr().out.startswith("CONFIRMED")
    np.save(tmp_path / "x.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    assert run(["compare", path, "--engine", "numpy", "--input", f"x={tmp_path / 'x.npy'}"]) == 0


def test_who_accepts_such_an_operator_has_the_rest_judged(tmp_path: Path) -> None:
    waiver = Waiver("onnx operator/own", "/0:*", "our runtime is onnxruntime", "A. Engineer", "2999-12-31")
    report = certify(guest(tmp_path), waivers=[waiver], today=date(2026, 11, 24))
    assert (report.verdict, report.applied) == (Verdict.CONFORMS, (waiver,))


def test_a_function_that_applies_such_an_operator_is_told_of_before_anything_calls_it(tmp_path: Path) -> None:
    model = onnx.load(guest(tmp_path))
    imports = [helper.make_opsetid("", 21)]
    inner = helper.make_node("SimplifiedLayerNormalization", ["a", "b"], ["c"])
    model.functions.append(helper.make_function("own", "f", ["a", "b"], ["c"], [inner], imports))
    del model.graph.node[:]
    model.graph.node.append(helper.make_node("Mul", ["x", "s"], ["y"]))
    onnx.save(model, tmp_path / "function.onnx")
    report = certify(tmp_path / "function.onnx")
    assert [it.id for it in report.rules if it.verdict is RuleVerdict.VIOLATED] == ["function/operators"]


# ---- One node of each ---------------------------------------------------------------------------

OWED = {
    "GroupQueryAttention": {"cache_length", "lengths_in_range", "cache_shape", "bias_shape"},
    "EmbedLayerNormalization": {"words_in_range", "segments_in_range", "positions_in_range"},
    "RotaryEmbedding": {"positions_in_range"},
    "DequantizeLinear": {"int32_zero_point"},
}
"""The requirements on data, which no model of a node without stored values can meet by itself."""


@pytest.mark.parametrize(
    "operator",
    [it if it == "GroupQueryAttention" else pytest.param(it, marks=CAMPAIGN) for it in CASES if it not in GUESTS],
)
def test_a_model_of_one_node_conforms_but_for_what_its_data_owe(
    operator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, certificate = str(tmp_path / "m.onnx"), str(tmp_path / "c.json")
    for case in cases(operator, 2):
        inputs, attributes, outputs = case
        done = apply(Application(name_of(operator), 1, inputs, attributes, (True,) * outputs))
        assert isinstance(done, Outputs)
        made = onnx.ModelProto.FromString(model(operator, case)[0])
        for value, array in zip(made.graph.output, done.values, strict=True):
            result = np.asarray(array)
            sizes = [f"{value.name}{axis}" for axis in range(result.ndim)]
            kind = helper.np_dtype_to_tensor_dtype(result.dtype)
            value.CopyFrom(helper.make_tensor_value_info(value.name, kind, sizes))
        onnx.save(made, path)
        assert run(["certify", path, "--certificate", certificate, "--format", "json"]) == 0
        report = json.loads(capsys.readouterr().out)
        owed = {it["id"].rpartition("/")[2] for it in report["rules"] if it["verdict"] == "obligation"}
        assert owed <= OWED.get(operator, set())
        assert run(["recheck", certificate, path]) == 0
        assert capsys.readouterr().out.startswith("CONFIRMED")
