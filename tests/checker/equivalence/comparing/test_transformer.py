"""A layer of a transformer is the same, over the reals, as what an optimizer makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from sampling import sampled
from sonnx.checker.equivalence.comparing.comparison import Comparison, Verdict, compare
from sonnx.checker.equivalence.comparing.normalizing import Strength
from sonnx.checker.equivalence.optimizing.optimizer import optimize
from sonnx.semantics import load_proto
from sonnx.semantics.model.writing import model_proto
from transformer_layer import GELU, transformer_layer

EARLIEST, NEWEST = 17, 23
"""Operator sets: with LayerNormalization, and with RMSNormalization too."""


def by_onnxruntime(level: str, layer: onnx.ModelProto, folder: Path) -> Comparison:
    """The comparison of a layer with what onnxruntime makes of it."""
    ort = pytest.importorskip("onnxruntime")
    onnx.save(layer, folder / "model.onnx")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    ort.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    return compare(folder / "model.onnx", folder / "optimized.onnx", strength=Strength.REALS, seconds=0.01)


@pytest.mark.parametrize("opset", [EARLIEST, pytest.param(18, marks=pytest.mark.campaign)])
def test_the_basic_level_of_onnxruntime_is_equal_over_the_reals(opset: int, tmp_path: Path) -> None:
    found = by_onnxruntime("ORT_ENABLE_BASIC", transformer_layer(opset), tmp_path)
    assert found.verdict is Verdict.REALS and len(found.models[1].nodes) < len(found.models[0].nodes)


@pytest.mark.parametrize("opset", [EARLIEST, pytest.param(18, marks=pytest.mark.campaign)])
def test_the_extended_level_of_onnxruntime_is_equal_over_the_reals_but_for_gelu(opset: int, tmp_path: Path) -> None:
    """With Relu in its place nothing else is in the way."""
    layer = transformer_layer(opset, "  e = Relu(i1)")
    found = by_onnxruntime("ORT_ENABLE_EXTENDED", layer, tmp_path)
    fused = {node.op_type for node in found.models[1].nodes}
    assert found.verdict is Verdict.REALS and {"SkipLayerNormalization", "FusedMatMul"} <= fused


@pytest.mark.parametrize(
    ("activation", "heads", "rule", "said"),
    [
        (GELU, 2, "GeluOfProductBias", "it does not hold: The one multiplies by 0.70710677"),
        ("  e = Relu(i1)", 1, "MatMulQuotient", "about 0.3535534, is no float and would be rounded"),
    ],
)
def test_what_the_extended_level_of_onnxruntime_rounds_is_told(
    activation: str, heads: int, rule: str, said: str, tmp_path: Path
) -> None:
    found = by_onnxruntime("ORT_ENABLE_EXTENDED", transformer_layer(activation=activation, heads=heads), tmp_path)
    assert found.verdict is Verdict.UNKNOWN
    assert [(name, said in why) for name, why in found.near.values()] == [(rule, True)]


@pytest.mark.parametrize(
    ("strength", "verdict", "nodes"), [("exact", Verdict.ALLOWED, 35), ("reals", Verdict.REALS, 29)]
)
def test_our_own_optimizer(strength: str, verdict: Verdict, nodes: int) -> None:
    """Exactly: but for what a mean of no elements is, of which the text says nothing."""
    model = load_proto(transformer_layer(NEWEST))
    done = optimize(model, strength=strength)
    made = load_proto(model_proto(done.model))
    asked = Strength.REALS if strength == "reals" else Strength.ALLOWED
    found = compare(model, made, strength=asked, seconds=0.01)
    assert (found.verdict, done.after) == (verdict, nodes)


@pytest.mark.parametrize(
    ("name", "value"),
    sampled([
        ("eps", 1e-6),
        ("two", 3.0),
        ("root", 1.4142),
        ("half", 0.25),
        ("one", 0.5),
        ("scale", 3.0),
        ("bq", 0.0),
        ("g2", 2.0),
    ], 3),
)  # fmt: skip
def test_a_layer_with_another_stored_value_is_not(name: str, value: float) -> None:
    proto = transformer_layer(NEWEST)
    made = load_proto(model_proto(optimize(load_proto(proto), strength="reals").model))
    it = next(it for it in proto.graph.initializer if it.name == name)
    it.CopyFrom(numpy_helper.from_array(np.full_like(numpy_helper.to_array(it), value), name))
    found = compare(load_proto(proto), made, strength=Strength.REALS, seconds=0.1)
    assert found.verdict in (Verdict.UNKNOWN, Verdict.DIFFERS)
