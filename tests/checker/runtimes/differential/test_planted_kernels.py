"""The harness tested by itself: six faults in a copy of the fast path are found, and located at the right node."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from planted_engines import outside
from planted_kernels import (
    Fault,
    PlantedKernels,
    dropped_tail,
    flush_to_zero,
    half_accumulation,
    softmax_of_opset_13,
    swapped_nan_rule,
    wrong_pad,
)
from sonnx.checker.runtimes.differential.comparison import Verdict, compare
from sonnx.checker.runtimes.differential.outcomes import Case, Class, judge_engines
from sonnx.semantics.runtimes.engines.own import MACHINE, NUMPY
from sonnx.semantics.runtimes.engines.protocol import Values

DRAW = np.random.default_rng(7)
NORMAL = DRAW.standard_normal((2, 3, 7), np.float32)


def net(opset: int, text: str) -> bytes:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}').SerializeToString()


CASES: list[tuple[Fault, str, int, str, Values]] = [
    (
        wrong_pad, "Conv-11", 13,
        """(float[2, 3, 7] x, float[5, 3, 3] w) => (float[2, 5, M] y) {
            a = Relu(x)  b = Conv<pads = [2, 0]>(a, w)  c = Neg(b)  y = Tanh(c) }""",
        {"x": NORMAL, "w": DRAW.standard_normal((5, 3, 3), np.float32)},
    ),
    (
        swapped_nan_rule, "Max-13", 13,
        "(float[4] x, float[4] z) => (float[4] y) { a = Abs(x)  b = Max(a, z)  c = Neg(b)  y = Relu(c) }",
        {"x": np.float32([1, np.nan, 3, -2]), "z": np.float32([2, 2, np.nan, 1])},
    ),
    (
        flush_to_zero, "Mul-14", 14,
        "(float[3] x, float[3] z) => (float[3] y) { a = Neg(x)  b = Mul(a, z)  c = Abs(b)  y = Add(c, c) }",
        {"x": np.float32([1e-20, 2, 1e-30]), "z": np.float32([1e-20, 3, 1e-14])},
    ),
    (
        dropped_tail, "Split-13", 13,
        """(float[2, 3, 7] x) => (float[2, 3, M] y, float[2, 3, K] z) {
            a = Neg(x)  s = Constant<value = int64[2] {3, 4}>()  b, c = Split<axis = 2>(a, s)
            y = Abs(b)  z = Relu(c) }""",
        {"x": NORMAL},
    ),
    (
        softmax_of_opset_13, "Softmax-11", 11,
        "(float[2, 3, 7] x) => (float[2, 3, 7] y) { a = Neg(x)  b = Softmax<axis = 1>(a)  c = Abs(b)  y = Sqrt(c) }",
        {"x": NORMAL},
    ),
    (
        half_accumulation, "MatMul-13", 13,
        "(float[3, 41] x, float[41, 5] w) => (float[3, 5] y) { a = Abs(x)  b = MatMul(a, w)  c = Neg(b)  y = Tanh(c) }",
        {"x": DRAW.standard_normal((3, 41), np.float32), "w": DRAW.standard_normal((41, 5), np.float32)},
    ),
]  # fmt: skip
PARAMETERS = pytest.mark.parametrize(
    ("fault", "operator", "opset", "text", "feeds"), CASES, ids=[fault.__name__ for fault, *_ in CASES]
)


@PARAMETERS
def test_a_fault_of_a_kernel_is_located_at_its_node_and_nowhere_else(
    fault: Fault, operator: str, opset: int, text: str, feeds: Values
) -> None:
    faulty = PlantedKernels({operator.partition("-")[0]: fault})
    (found,) = compare(net(opset, text), (MACHINE, faulty), [("case", feeds)])
    assert found.verdict is Verdict.DIVERGE
    assert outside(found) == [operator]
    assert f"({operator})" in found.reason


@PARAMETERS
def test_a_report_finds_the_fault_and_passes_the_fast_path_as_it_is(
    fault: Fault, operator: str, opset: int, text: str, feeds: Values
) -> None:
    faulty = PlantedKernels({operator.partition("-")[0]: fault})
    right, wrong = judge_engines([NUMPY, faulty], Case("case", net(opset, text), feeds))
    assert right.outcome is Class.PASS, right
    assert (wrong.outcome, wrong.operator) == (Class.MISMATCH, operator)


def test_a_model_that_is_too_large_for_the_machine_is_given_to_no_engine() -> None:
    class Greedy:
        name, version = "greedy", ""

        def open(self, source: object) -> None:
            raise AssertionError("it was asked")

    text = "(int64[1] s) => (float[K] y) { y = ConstantOfShape(s) }"
    case = Case("case", net(13, text), {"s": np.array([1 << 33])})
    machine, greedy = judge_engines([MACHINE, Greedy()], case)  # type: ignore[list-item]
    assert machine.outcome is greedy.outcome is Class.NOT_COMPARED
    assert greedy.kind == "beyond the limits"
