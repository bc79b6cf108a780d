"""Mistakes that a review of the operators found, one row for each: they stay mended.

What has tests of its own beside its operator is not repeated: single windows of MaxPool and ConvTranspose, dots and
diagonals of Einsum, SAME with strides in Conv-1 and ConvTranspose-1, means of integers, sums of float16 within the
bound, larger outputs of ConvTranspose, defaults of Affine.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

Run = Callable[..., Any]
F = np.float32
ONE, TWO = np.array(1, F), np.ones(2, F)
BYTES, F8 = np.ones(2, np.uint8), np.ones(2, ml_dtypes.float8_e4m3fn)
E8, F6 = np.array(1, ml_dtypes.float8_e8m0fnu), ml_dtypes.float6_e2m3fn
BFLOAT16, INT4, FLOAT8 = 16, 22, 17


@table(
    ("op_type", "versions", "inputs", "attributes", "output"),
    [
        ("Cast", (9,), [TWO], {"to": BFLOAT16}, "output"),
        ("Cast", (13,), [TWO], {"to": INT4}, "output"),
        ("Cast", (13,), [TWO], {"to": FLOAT8}, "output"),
        ("ConstantOfShape", (9,), [np.array([2])], {"value": np.ones(1, ml_dtypes.bfloat16)}, "output"),
        ("QuantizeLinear", (21, 23), [TWO, ONE], {"output_dtype": 1}, "y"),
        ("DequantizeLinear", (23,), [BYTES, ONE], {"output_dtype": 6}, "y"),
        ("DequantizeLinear", (23,), [BYTES, ONE], {"output_dtype": 11}, "y"),
        ("DequantizeLinear", (24, 25, 28), [F8, E8], {}, "y"),
    ],
)
def test_an_output_of_a_type_that_the_schema_does_not_admit_is_refused(
    op_type: str, versions: tuple[int, ...], inputs: list[Any], attributes: dict[str, Any], output: str, refused: Run
) -> None:
    for version in versions:
        assert refused(op_type, version, *inputs, **attributes).startswith(f"{output}: ")


def test_a_scale_of_float8e8m0_serves_where_the_output_has_a_type_that_is_admitted(run: Run, same: Run) -> None:
    for version in (24, 25, 28):
        same(run("DequantizeLinear", version, F8, E8, output_dtype=1), TWO)


def test_the_float6_types_are_quantized_to_from_version_28_on(run: Run, refused: Run, same: Run) -> None:
    x, zero = np.array([1, 2.5, -9], F), np.array(0, F6)
    quantized = np.array([1, 2.5, -7.5]).astype(F6)
    same(run("QuantizeLinear", 28, x, ONE, zero), quantized)
    same(run("DequantizeLinear", 28, quantized, ONE), np.array([1, 2.5, -7.5], F))


@table(("op_type", "versions"), [("Concat", (4, 11, 13)), ("Cast", (1, 6, 9, 13, 24))])
def test_an_attribute_that_is_required_and_absent_is_a_refusal(
    op_type: str, versions: tuple[int, ...], refused: Run
) -> None:
    for version in versions:
        assert "attributes that its operator requires" in refused(op_type, version, TWO)


@table("version", [10, 11, 24])
def test_no_greatest_elements_are_empty_outputs(version: int, run: Run) -> None:
    values, positions = run("TopK", version, np.ones((2, 3), F), np.array([0]), count=2)
    assert (values.shape, positions.shape) == ((2, 0), (2, 0))


HANGS = """
import numpy, onnxruntime
from onnx import parser
head = '<ir_version: 8, opset_import: ["" : 13]> g (float[1, 1] X) => (float[1, 1] Y) '
text = head + '{ Y = Einsum <equation="EQUATION"> (X) }'
session = onnxruntime.InferenceSession(parser.parse_model(text).SerializeToString(), providers=["CPUExecutionProvider"])
print(session.run(None, {"X": numpy.ones((1, 1), numpy.float32)})[0].tolist())
"""


def test_a_dot_alone_in_an_equation_is_refused(refused: Run) -> None:
    assert "equation" in refused("Einsum", 12, np.ones((1, 1), F), equation=".ij->ij")


@pytest.mark.campaign
@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_onnxruntime_does_not_come_back_from_a_dot_alone() -> None:
    """No case of the ledger: a runtime that hangs would hold up everyone who runs it."""

    def asked(equation: str) -> str:
        program = HANGS.replace("EQUATION", equation)
        return subprocess.run([sys.executable, "-c", program], timeout=30, capture_output=True, text=True).stdout

    assert asked("ij->ij") == "[[1.0]]\n"
    with pytest.raises(subprocess.TimeoutExpired):
        asked(".ij->ij")
