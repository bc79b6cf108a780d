"""Cases that tell versions apart: arithmetic, reductions, conversions, quantization."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from version_cases import FOREIGN, Free, Stuck, case, f32, i64

INF = np.inf
FNUZ = ml_dtypes.float8_e4m3fnuz
SAME_SHAPE = Stuck("All inputs have the same shape.")


def half(content: Any) -> Any:
    return np.array(content, np.float16)


def u8(content: Any) -> Any:
    return np.array(content, np.uint8)


def fnuz(content: Any) -> Any:
    return np.array(content, np.float32).astype(FNUZ)


ARITHMETIC = (
    *(
        case(op_type, (f32([1, 3]), f32([2])), {6: SAME_SHAPE, 8: f32(result)})
        for op_type, result in (("Max", [2, 3]), ("Min", [1, 2]), ("Mean", [1.5, 2.5]), ("Sum", [3, 5]))
    ),
    case("Mod", (f32([-5]), f32([3])), {10: Stuck("fmod is 1 for floating-point numbers."), 28: f32([1])}),
    case("BitShift", (u8([3]), u8([8])), {11: Free(np.uint8, (1,)), 28: u8([0])}, direction="LEFT"),
    case("Pow", (f32([2]), i64([3])), {7: FOREIGN, 12: f32([8])}),
    case("Erf", np.array([1, 2], np.int32), {9: Free(np.int32, (2,)), 13: FOREIGN}),
    case("Gemm", (f32([[1, 2]]), f32([[3], [4]])), {7: FOREIGN, 11: f32([[11]])}),
    case("Range", (half(0), half(3), half(1)), {11: FOREIGN, 27: half([0, 1, 2])}),
)

NEWEST = {"ReduceSum": (13,), "ReduceLogSum": (18, 28), "ReduceLogSumExp": (18, 28)}
"""The meanings of a reduction whose axes are an input, where they are not version 18 alone."""
NEWEST |= dict.fromkeys(("ReduceMax", "ReduceMin"), (18, 20))
ROWS = {
    "ReduceL1": ([3, 4], 7, [3, 4]),
    "ReduceL2": ([3, 4], 5, [3, 4]),
    "ReduceLogSum": ([1, 0], 0, [0, -INF]),
    "ReduceLogSumExp": ([0, -INF], 0, [0, -INF]),
    "ReduceMax": ([3, 4], 4, [3, 4]),
    "ReduceMean": ([3, 4], 3.5, [3, 4]),
    "ReduceMin": ([3, 4], 3, [3, 4]),
    "ReduceProd": ([3, 4], 12, [3, 4]),
    "ReduceSum": ([3, 4], 7, [3, 4]),
    "ReduceSumSquare": ([3, 4], 25, [9, 16]),
}
"""A row, what it is reduced to, and what each of its elements is reduced to alone."""


def reduction(op_type: str) -> Any:
    row, whole, alone = ROWS[op_type]
    newest = NEWEST.get(op_type, (18,))
    yield case(op_type, f32([row]), {1: f32([[whole]])} | dict.fromkeys(newest, FOREIGN), axes=(1,))
    noop = {1: FOREIGN} | dict.fromkeys(newest, f32([alone]))
    yield case(op_type, (f32([row]), i64([])), noop, noop_with_empty_axes=1)


REDUCTIONS = (
    *(one for op_type in ROWS for one in reduction(op_type)),
    case("ReduceLogSum", np.array([1, 0], np.int32), {18: np.array(0, np.int32), 28: FOREIGN}, keepdims=0),
    case("ReduceLogSumExp", np.array([0], np.int32), {18: np.array(0, np.int32), 28: FOREIGN}, keepdims=0),
    case("ReduceMax", np.array([True, False]), {1: FOREIGN, 18: FOREIGN, 20: np.array(True)}, keepdims=0),
    case("ReduceMin", np.array([True, False]), {1: FOREIGN, 18: FOREIGN, 20: np.array(False)}, keepdims=0),
    *(
        case(
            op_type,
            np.zeros((2, 0), np.float32),
            {1: i64(np.zeros((1, 0))), 11: Stuck("The input is not empty."), 12: i64(np.zeros((1, 0)))},
            axis=0,
        )
        for op_type in ("ArgMax", "ArgMin")
    ),
    case("ArgMax", f32([1, 3, 3, 1]), {1: FOREIGN, 11: FOREIGN, 12: i64([2])}, axis=0, select_last_index=1),
    case("ArgMin", f32([1, 3, 3, 1]), {1: FOREIGN, 11: FOREIGN, 12: i64([3])}, axis=0, select_last_index=1),
)

CONVERSIONS = (
    case("Cast", f32([1]), {6: FOREIGN, 19: f32([1]), 24: f32([1])}, to=1, saturate=0),
    # an infinity that is limited to the finite numbers is NaN in the fnuz types before version 24
    case("Cast", f32([INF]), {19: fnuz([np.nan]), 24: fnuz([240])}, to=18),
    case("CastLike", (f32([1]), f32([0])), {15: FOREIGN, 19: f32([1]), 24: f32([1])}, saturate=0),
    case("CastLike", (f32([INF]), fnuz([0])), {15: FOREIGN, 19: fnuz([np.nan]), 24: fnuz([240])}),
)

MATMUL = (u8([[3]]), f32(1), u8(1), u8([[5]]), f32(2), u8(0), f32(4), u8(1))
SCALES = (13, 19, 21, 23)


def quantization(op_type: str, x: Any, y: Any, scalar: str, **newest: int) -> Any:
    """x, a row of two elements, with the scales 2 and 4 becomes y; with the scale 2 alone what y[:1] begins."""
    yield case(op_type, (x, f32([2, 4])), {10: Stuck(scalar)} | dict.fromkeys(SCALES, y))
    one, first = x[0, :1], y[0, :1]
    typed = half(one) if x.dtype == np.float32 else one
    scaled = first if x.dtype == np.float32 else half(first)
    yield case(op_type, (typed, half(2)), {10: FOREIGN, 13: FOREIGN} | dict.fromkeys((19, 21, 23), scaled))
    blocks = {13: FOREIGN, 19: FOREIGN, 21: first, 23: first}
    yield case(op_type, (one, f32([2])), blocks, axis=0, block_size=1)
    yield case(op_type, (one, f32(2)), {21: FOREIGN, 23: first}, **newest)


QUANTIZATION = (
    *quantization("DequantizeLinear", u8([[1, 2]]), f32([[2, 8]]), "x_scale is a scalar.", output_dtype=1),
    *quantization("QuantizeLinear", f32([[2, 8]]), u8([[1, 2]]), "y_scale is a scalar.", precision=1),
    case(
        "QLinearMatMul",
        tuple(half(x) if x.dtype == np.float32 else x for x in MATMUL),
        {10: FOREIGN, 21: u8([[6]])},
    ),
)

CASES = (*ARITHMETIC, *REDUCTIONS, *CONVERSIONS, *QUANTIZATION)
