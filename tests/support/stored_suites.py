"""A small suite of models with stored inputs, as a folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import numpy_helper, parser


def stored(folder: Path, name: str, op: str, value: float) -> None:
    text = f'<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) {{ y = {op}(x) }}'
    target = folder / name / "test_data_set_0"
    target.mkdir(parents=True)
    (folder / name / "model.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    given = np.full(2, value, np.float32)
    (target / "input_0.pb").write_bytes(numpy_helper.from_array(given).SerializeToString())


def small_suite(folder: Path) -> str:
    """Neg, Relu, Abs, and Neg on NaN, as a, b, c, d."""
    for name, op, value in (("a", "Neg", 1), ("b", "Relu", -2), ("c", "Abs", 3), ("d", "Neg", np.nan)):
        stored(folder, name, op, value)
    return str(folder)
