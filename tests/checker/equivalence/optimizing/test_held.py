"""A stored value stands for an operator without inputs on the left side of a rewrite, where the two are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from sonnx.checker.equivalence.optimizing.certificate import NotOffered, of_optimized
from sonnx.checker.equivalence.optimizing.optimizer import optimize
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.writing import model_proto

WRITTEN = """<ir_version: 10, opset_import: ["" : 23]>
g (float[2, 3, 4] x) => (float[2, 3, 4] y) {
  p = Pow(x, two)
  m = ReduceMean(p, axes)
  e = Add(m, eps)
  r = Sqrt(e)
  n = Div(x, r)
  y = Mul(n, s)
}"""
STORED = {
    "two": np.array(2, np.float32),
    "axes": np.array([-1], np.int64),
    "eps": np.array(1e-5, np.float32),
    "s": np.arange(4, dtype=np.float32),
}
OTHER = {
    "other exponent": {"two": np.array(4, np.float32)},
    "exponent with an axis": {"two": np.array([2], np.float32)},
    "exponent of another type": {"two": np.array(2, np.int64)},
    "epsilon with an axis": {"eps": np.array([1e-5], np.float32)},
    "negative zero": {"eps": np.array(-0.0, np.float32)},
    "no number": {"eps": np.array(np.nan, np.float32)},
    "other axis": {"axes": np.array([1], np.int64)},
    "two axes": {"axes": np.array([-1, -2], np.int64)},
}


def written(folder: Path, **other: np.ndarray) -> Model:
    proto = onnx.parser.parse_model(WRITTEN)
    proto.graph.initializer.extend(numpy_helper.from_array(it, name) for name, it in (STORED | other).items())
    onnx.save(proto, folder / "model.onnx")
    return load(folder / "model.onnx")


def test_a_stored_value_is_the_result_of_a_constant(tmp_path: Path) -> None:
    done = optimize(written(tmp_path))
    assert [it.op_type for it in done.model.nodes if it.op_type] == ["RMSNormalization"]
    made = model_proto(done.model).graph.node[0].attribute
    assert {it.name: it.f for it in made}["epsilon"] == float(np.float32(1e-5))


@pytest.mark.parametrize("case", OTHER)
def test_another_stored_value_is_not(case: str, tmp_path: Path) -> None:
    done = optimize(written(tmp_path, **OTHER[case]))
    assert "RMSNormalization" not in {it.op_type for it in done.model.nodes}


def test_there_is_no_certificate_of_it(tmp_path: Path) -> None:
    model = written(tmp_path)
    done = optimize(model)
    onnx.save(model_proto(done.model), tmp_path / "made.onnx")
    with pytest.raises(NotOffered, match="RmsNormalizationWritten was applied where a stored value stands"):
        of_optimized(model, tmp_path / "made.onnx", done, fixed=False)
