from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F, I8, U8, I32 = np.float32, np.int8, np.uint8, np.int32
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(17)


def _drawn(dtype: Any, *shape: int) -> Any:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("types", [(U8, U8), (I8, U8), (U8, I8), (I8, I8)])
def test_conv_integer_is_the_convolution_less_the_zero_points(types: Any, run: Run, same: Check) -> None:
    x, w = _drawn(types[0], 2, 4, 5, 6), _drawn(types[1], 6, 2, 2, 3)
    zx, zw = _drawn(types[0]), _drawn(types[1], 6)
    named = {"group": 2, "pads": (1, 0, 0, 2), "strides": (2, 1), "dilations": (1, 2)}
    found = run("ConvInteger", 10, x, w, zx, zw, **named)
    exact = (x.astype(np.float64) - zx, w.astype(np.float64) - zw.reshape(6, 1, 1, 1))
    same(found, run("Conv", 11, *exact, **named).astype(I32))


def test_the_padding_of_conv_integer_is_the_zero_point(run: Run, same: Check) -> None:
    x, w = np.full((1, 1, 1), 7, U8), np.ones((1, 1, 3), U8)
    same(run("ConvInteger", 10, x, w, np.array([7], U8), pads=(1, 1)), np.zeros((1, 1, 1), I32))
    same(run("ConvInteger", 10, x, w, pads=(1, 1)), np.full((1, 1, 1), 7, I32))


def test_conv_integer_refuses_unfit_zero_points(refused: Run) -> None:
    x, w = _drawn(U8, 1, 2, 3), _drawn(U8, 4, 2, 1)
    assert "x_zero_point" in refused("ConvInteger", 10, x, w, _drawn(U8, 2))
    assert "w_zero_point" in refused("ConvInteger", 10, x, w, None, _drawn(U8, 3))
    assert "positive" in refused("ConvInteger", 10, x, w, group=0)
    assert "Strides" in refused("ConvInteger", 10, x, w, strides=(0,))


def test_products_wrap_around_in_32_bits(run: Run) -> None:
    k = 70_000
    a, b = np.full((1, k), -128, I8), np.full((k, 1), -128, I8)
    assert run("MatMulInteger", 10, a, b, np.array(127, I8), np.array(127, I8)).item() == (255 * 255 * k) - 2**32


@table(
    ("a", "b"),
    [((3, 4), (4, 2)), ((2, 3, 4), (4, 2)), ((4,), (4, 2)), ((2, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2))],
)
def test_mat_mul_integer_is_that_of_numpy(a: Any, b: Any, run: Run, same: Check) -> None:
    x, y, zx, zy = _drawn(U8, *a), _drawn(I8, *b), _drawn(U8), _drawn(I8, 1)
    found = run("MatMulInteger", 10, x, y, zx, zy)
    same(found, np.matmul(x.astype(I32) - zx, y.astype(I32) - zy[0]))
    same(run("MatMulInteger", 10, x, y), np.matmul(x.astype(I32), y.astype(I32)))


def test_zero_points_of_rows_and_columns(run: Run, refused: Run, same: Check) -> None:
    x, y = _drawn(U8, 5, 3, 4), _drawn(U8, 5, 4, 2)
    rows, columns = _drawn(U8, 3), _drawn(U8, 2)
    expected = np.matmul(x.astype(I32) - rows[:, None], y.astype(I32) - columns)
    same(run("MatMulInteger", 10, x, y, rows, columns), expected)
    each, all_ = _drawn(U8, 5, 3, 1), _drawn(U8, 5, 1, 2)
    same(run("MatMulInteger", 10, x, y, each, all_), np.matmul(x.astype(I32) - each, y.astype(I32) - all_))
    assert "a_zero_point" in refused("MatMulInteger", 10, x, y, _drawn(U8, 4))
    assert "b_zero_point" in refused("MatMulInteger", 10, x, y, None, _drawn(U8, 3))


def _quantized(x: Any, zero: Any, dtype: Any) -> Any:
    info = np.iinfo(dtype)
    return np.clip(np.rint(x).astype(np.float64) + int(zero), info.min, info.max).astype(dtype)


@pytest.mark.parametrize("version", [10, 21])
@pytest.mark.parametrize("dtype", [U8, I8])
def test_q_linear_mat_mul_rounds_the_scaled_product(
    version: int, dtype: Any, run: Run, refused: Run, same: Check
) -> None:
    a, b = _drawn(dtype, 2, 3, 4), _drawn(dtype, 4, 5)
    za, zb, zy = _drawn(dtype), _drawn(dtype), _drawn(dtype)
    sa, sb, sy = (np.array(v, F) for v in (0.0625, 0.03125, 0.5))
    found = run("QLinearMatMul", version, a, sa, za, b, sb, zb, sy, zy)
    exact = np.matmul(a.astype(I32) - za, b.astype(I32) - zb)
    same(found, _quantized(exact.astype(F) * (sa * sb / sy), zy, dtype))
    rows, columns = np.array([0.5, 1, 2], F), np.array([1, 2, 4, 8, 16], F) / 64
    zr, zc = _drawn(dtype, 3), _drawn(dtype, 5)
    found = run("QLinearMatMul", version, a, rows, zr, b, columns, zc, np.array([8], F), np.array([3], dtype))
    exact = np.matmul(a.astype(I32) - zr[:, None], b.astype(I32) - zc)
    same(found, _quantized(exact.astype(F) * (rows[:, None] * columns / 8), 3, dtype))
    assert "same shape" in refused("QLinearMatMul", version, a, rows, za, b, sb, zb, sy, zy)
    assert "scalars" in refused("QLinearMatMul", version, a, sa, za, b, sb, zb, np.ones(3, F), np.ones(3, dtype))


def test_q_linear_mat_mul_takes_vectors(run: Run, same: Check) -> None:
    a, b, one, zero = _drawn(I8, 4), _drawn(I8, 4), np.array(1, F), np.array(0, I8)
    found = run("QLinearMatMul", 10, a, one, zero, b, one, zero, np.array(1024, F), zero)
    same(found, _quantized(np.matmul(a.astype(I32), b.astype(I32)).astype(F) / 1024, 0, I8))


def _great(dtype: Any) -> tuple[Any, ...]:
    """Operands whose sum, 102,400, is no number of float16, and whose scales make 100 of it."""
    a, b, zero = np.full((1, 10), 128, U8), np.full((10, 1), 80, U8), np.array(0, U8)
    scales = (np.array(v, dtype) for v in (0.03125, 0.03125, 1))
    a_scale, b_scale, y_scale = scales
    return a, a_scale, zero, b, b_scale, zero, y_scale, zero


def test_q_linear_mat_mul_21_has_other_scales_and_float8(run: Run, refused: Run, same: Check) -> None:
    f8, half = ml_dtypes.float8_e4m3fn, np.float16
    a, b = np.array([[1, -2]], F).astype(f8), np.array([[3], [0.5]], F).astype(f8)
    one, zero = np.array(1, half), np.array(0, f8)
    same(run("QLinearMatMul", 21, a, one, zero, b, one, zero, one, zero), np.array([[2]], F).astype(f8))
    same(run("QLinearMatMul", 21, *_great(half)), np.array([[100]], U8))
    assert "T1" in refused("QLinearMatMul", 10, a, one, zero, b, one, zero, one, zero)
    other = np.array(0, I8)
    assert "neither" in refused("QLinearMatMul", 21, a, one, zero, b.astype(F).astype(I8), one, other, one, zero)


def test_dynamic_quantization_covers_the_range_and_0(run: Run, free: Run, refused: Run, same: Check) -> None:
    for x in ([0, 2, -3, -2.5, 1.34, 0.5], [-1, -2.1, -1.3, -2.5, -3.34, -4], [1, 2.1, 1.3, 2.5, 3.34, 4]):
        v = np.array(x, F)
        y, scale, zero = run("DynamicQuantizeLinear", 11, v, count=3)
        expected = (np.maximum(v.max(), F(0)) - np.minimum(v.min(), F(0))) / F(255)
        same(scale, expected)
        same(zero, np.clip(np.rint(F(0) - np.minimum(v.min(), F(0)) / expected), 0, 255).astype(U8))
        same(y, _quantized(v / expected, zero, U8))
    assert run("DynamicQuantizeLinear", 11, np.zeros(3, F), count=3)[1] == 0
    assert free("DynamicQuantizeLinear", 11, np.zeros(3, F)).all()
    assert "an element" in refused("DynamicQuantizeLinear", 11, np.zeros(0, F))
