"""What onnxruntime makes of a model at its levels is shown to be equal to it, bit by bit or over the reals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from light_models import light_model
from onnx import numpy_helper
from sonnx.checker.equivalence.comparing.comparison import Comparison, Verdict, compare
from sonnx.checker.equivalence.comparing.normalizing import Strength

ort = pytest.importorskip("onnxruntime")
EXACT = ("bvlc_alexnet", "inception_v1", "squeezenet", "vgg19", "zfnet512")
REALS = ("densenet121", "inception_v2", "resnet50", "shufflenet")
LEVELS = ("ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED")
SMALL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 2, 5, 5] x) => (float[1, 3, 3, 3] y) {
  c = Conv(x, w, b)
  k = Mul(c, f)
  a = Add(p, k)
  y = Relu(a)
}"""


def small() -> onnx.ModelProto:
    proto = onnx.parser.parse_model(SMALL)
    rng = np.random.default_rng(0)
    for name, shape in {"w": (3, 2, 3, 3), "b": (3,), "f": (3, 1, 1), "p": (3, 1, 1)}.items():
        proto.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name))
    return proto


def compared(proto: onnx.ModelProto, level: str, folder: Path) -> Comparison:
    """The comparison of a model with what onnxruntime makes of it."""
    onnx.save(proto, folder / "model.onnx")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    ort.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
    return compare(folder / "model.onnx", folder / "optimized.onnx", strength=Strength.REALS, seconds=0.01)


@pytest.mark.parametrize("level", LEVELS)
def test_a_convolution_and_what_follows_it(level: str, tmp_path: Path) -> None:
    found = compared(small(), level, tmp_path)
    assert found.verdict is Verdict.REALS and len(found.models[1].nodes) < len(found.models[0].nodes)


@pytest.mark.campaign
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", EXACT + REALS)
def test_light_nets(name: str, level: str, tmp_path: Path) -> None:
    assert compared(light_model(name), level, tmp_path).verdict is (Verdict.EQUAL if name in EXACT else Verdict.REALS)
