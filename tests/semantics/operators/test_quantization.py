from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
VERSIONS = [10, 13, 19, 21, 23, 24, 25, 28]
RANGES = {np.uint8: (0, 255), np.int8: (-128, 127), np.uint16: (0, 65535), np.int16: (-32768, 32767),
          ml_dtypes.uint4: (0, 15), ml_dtypes.int4: (-8, 7), ml_dtypes.uint2: (0, 3),
          ml_dtypes.int2: (-2, 1)}  # fmt: skip


def _since(version: int) -> list[Any]:
    """The integer types that a version quantizes to."""
    return list(RANGES)[: 2 if version < 21 else 6 if version < 25 else 8]


@table("version", VERSIONS)
def test_the_quotient_is_rounded_to_even_before_the_zero_point_is_added(version: int, run: Run, same: Run) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 3.0, 3.4], F)
    for dtype in _since(version)[:2]:
        found = run("QuantizeLinear", version, x, np.array(1, F), np.array(1, dtype))
        same(found, np.array([1, 3, 3, 1, -1 if dtype == np.int8 else 0, 4, 4], dtype))


@table("version", VERSIONS)
def test_the_sum_is_limited_to_the_type(version: int, run: Run, same: Run) -> None:
    x = np.array([1e9, -1e9, INF, -INF, 1e-9], F)
    for dtype in _since(version):
        low, high = RANGES[dtype]
        for zero in (low, 1, high):
            found = run("QuantizeLinear", version, x, np.array(0.5, F), np.array(zero, dtype))
            same(found, np.array([high, low, high, low, zero], dtype))


@table("version", VERSIONS)
def test_a_nan_gives_any_integer(version: int, free: Run) -> None:
    x = np.array([NAN, 1], F)
    assert free("QuantizeLinear", version, x, np.array(1, F), np.array(0, np.uint8)).tolist() == [True, False]


@table("version", VERSIONS)
def test_without_a_zero_point_the_type_is_uint8(version: int, run: Run, same: Run) -> None:
    same(run("QuantizeLinear", version, np.array([-3, 3.5], F), np.array(0.5, F)), np.array([0, 7], np.uint8))
    same(run("QuantizeLinear", version, np.array(4, F), np.array([2], F)), np.array(2, np.uint8))


@table("version", VERSIONS)
def test_a_scale_of_0_is_refused(version: int, refused: Run) -> None:
    assert "No scale is 0" in refused("QuantizeLinear", version, np.ones(2, F), np.array(0, F))


@table("version", VERSIONS[1:])
@table("axis", [0, 1, -1])
def test_each_position_of_an_axis_may_have_its_scale(version: int, axis: int, run: Run, same: Run) -> None:
    x = np.random.default_rng(1).normal(size=(3, 4, 5)).astype(F) * F(50)
    size = x.shape[axis]
    scale, zero = np.arange(1, size + 1).astype(F), np.arange(size).astype(np.int8)
    at = tuple(slice(None) if j == axis % 3 else None for j in range(3))
    expected = np.clip(np.rint(x / scale[at]) + zero[at], -128, 127).astype(np.int8)
    same(run("QuantizeLinear", version, x, scale, zero, axis=axis), expected)
    back = run("DequantizeLinear", version, expected, scale, zero, axis=axis)
    same(back, (expected.astype(F) - zero[at]) * scale[at])


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_each_block_of_an_axis_may_have_its_scale(version: int, run: Run, refused: Run, same: Run) -> None:
    x = np.random.default_rng(2).normal(size=(2, 5, 3)).astype(F) * F(30)
    scale, zero = np.arange(1, 13).reshape(2, 2, 3).astype(F), np.arange(12).reshape(2, 2, 3).astype(np.int8)
    wide = [np.repeat(v, 3, axis=1)[:, :5] for v in (scale, zero)]
    expected = np.clip(np.rint(x / wide[0]) + wide[1], -128, 127).astype(np.int8)
    for axis in (1, -2):
        same(run("QuantizeLinear", version, x, scale, zero, axis=axis, block_size=3), expected)
        back = run("DequantizeLinear", version, expected, scale, zero, axis=axis, block_size=3)
        same(back, (expected.astype(F) - wide[1]) * wide[0])
    for block in (2, 6):
        assert "fit" in refused("QuantizeLinear", version, x, scale, zero, block_size=block)
    assert "negative" in refused("QuantizeLinear", version, x, scale, zero, block_size=-1)


@pytest.mark.parametrize("version", VERSIONS[3:])
def test_output_dtype_gives_the_type(version: int, run: Run, refused: Run, same: Run) -> None:
    x, scale = np.array([1, 300], F), np.array(1, F)
    same(run("QuantizeLinear", version, x, scale, output_dtype=5), np.array([1, 300], np.int16))
    same(run("QuantizeLinear", version, x, scale, np.array(0, np.int16), output_dtype=5), np.array([1, 300], np.int16))
    assert "output_dtype" in refused("QuantizeLinear", version, x, scale, np.array(0, np.int8), output_dtype=5)


@table("version", VERSIONS[2:])
def test_float8_is_limited_where_saturate_is_set(version: int, run: Run, same: Run) -> None:
    x = np.array([1, 1e6, -INF, NAN, 0.3], F)
    for dtype, high, over in (
        (ml_dtypes.float8_e4m3fn, 448, NAN),
        (ml_dtypes.float8_e5m2, 57344, INF),
        (ml_dtypes.float8_e4m3fnuz, 240, NAN),
        (ml_dtypes.float8_e5m2fnuz, 57344, NAN),
    ):
        zero = np.array(0, dtype)
        limited = run("QuantizeLinear", version, x, np.array(1, F), zero)
        same(limited, np.array([1, high, -high, NAN, 0.3], F).astype(dtype))
        open_ = run("QuantizeLinear", version, x, np.array(1, F), zero, saturate=0)
        same(open_, np.array([1, over, -over, NAN, 0.3], F).astype(dtype))


@pytest.mark.parametrize("version", VERSIONS[4:])
def test_float4_is_always_limited(version: int, run: Run, same: Run) -> None:
    x = np.array([0.2, 0.25, 0.75, 5, 7, -100], F)
    for saturate in (0, 1):
        found = run("QuantizeLinear", version, x, np.array(1, F), output_dtype=23, saturate=saturate)
        same(found, np.array([0, 0, 1, 4, 6, -6], F).astype(ml_dtypes.float4_e2m1fn))


@pytest.mark.parametrize("version", [19, 21])
def test_the_division_is_that_of_the_type(version: int, run: Run, same: Run) -> None:
    x, scale = np.array([2049.0], np.float16), np.array(1, np.float16)
    same(run("QuantizeLinear", version, np.array([3], np.int32), np.array(2, np.int32)), np.array([2], np.uint8))
    same(run("QuantizeLinear", version, x / np.float16(16), scale), np.array([128], np.uint8))
    big = np.array([2**31 - 1], np.int32)
    same(run("QuantizeLinear", version, big, np.array(2**24, np.int32)), np.array([128], np.uint8))


@pytest.mark.parametrize("version", VERSIONS[4:])
def test_precision_is_the_type_of_the_division(version: int, run: Run, refused: Run, same: Run) -> None:
    x, scale = np.array([1.0], F), np.array(2**-8 + 2**-20, F)
    wide = run("QuantizeLinear", version, x * F(1.9999), scale, output_dtype=4)
    narrow = run("QuantizeLinear", version, x * F(1.9999), scale, output_dtype=4, precision=10)
    assert (int(wide[0]), int(narrow[0])) == (512, 512)
    coarse = run("QuantizeLinear", version, np.array([1000], F), np.array(1, F), output_dtype=4, precision=16)
    same(coarse, np.array([1000], np.uint16))
    coarse = run("QuantizeLinear", version, np.array([1001], F), np.array(1, F), output_dtype=4, precision=16)
    same(coarse, np.array([1000], np.uint16))
    assert "precision" in refused("QuantizeLinear", version, x, scale, precision=6)
    assert "integers" in refused("QuantizeLinear", version, x, np.array(2, np.int32))


@pytest.mark.parametrize("version", VERSIONS[5:])
def test_a_scale_that_is_a_power_of_two_divides_in_the_type_of_the_data(version: int, run: Run, same: Run) -> None:
    scale = np.array(4, ml_dtypes.float8_e8m0fnu)
    same(run("QuantizeLinear", version, np.array([-9, 10, 11], F), scale, np.array(0, np.int8)),
         np.array([-2, 2, 3], np.int8))  # fmt: skip
    same(run("DequantizeLinear", version, np.array([-2, 3], np.int8), scale, output_dtype=1), np.array([-8, 12], F))


@table("version", VERSIONS)
def test_dequantizing_subtracts_exactly_and_multiplies(version: int, run: Run, same: Run) -> None:
    for dtype in _since(version):
        low, high = RANGES[dtype]
        x = np.array([low, high, 1], dtype)
        for zero in (low, high):
            expected = (np.array([low, high, 1], F) - F(zero)) * F(0.1)
            same(run("DequantizeLinear", version, x, np.array(0.1, F), np.array(zero, dtype)), expected)
    same(run("DequantizeLinear", version, np.array([7], np.uint8), np.array(0.5, F)), np.array([3.5], F))
    x = np.array([2**24 + 1, -(2**31)], np.int32)
    same(run("DequantizeLinear", version, x, np.array(2, F)), np.array([2**25, -(2.0**32)], F))


@table("version", VERSIONS)
def test_int32_has_the_zero_point_0(version: int, run: Run, refused: Run, same: Run) -> None:
    x, scale = np.array([5], np.int32), np.array(2, F)
    same(run("DequantizeLinear", version, x, scale, np.array(0, np.int32)), np.array([10], F))
    assert "zero point 0" in refused("DequantizeLinear", version, x, scale, np.array(1, np.int32))


@table("version", VERSIONS[2:])
def test_the_type_of_the_scale_is_that_of_the_result(version: int, run: Run, same: Run) -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        found = run("DequantizeLinear", version, np.array([3, 255], np.uint8), np.array(0.5, dtype))
        same(found, np.array([1.5, 127.5], dtype))
    x = np.array([1.5, -448, NAN], ml_dtypes.float8_e4m3fn)
    same(run("DequantizeLinear", version, x, np.array(2, F)), np.array([3, -896, NAN], F))


@table("version", VERSIONS)
def test_unfit_scales_and_zero_points_are_refused(version: int, refused: Run) -> None:
    x, scale, zero = np.ones((2, 3), F), np.ones(4, F), np.zeros(4, np.uint8)
    sentence = "scalar" if version == 10 else "fit"
    assert sentence in refused("QuantizeLinear", version, x, scale, zero)
    assert sentence in refused("DequantizeLinear", version, zero, scale[:2], zero[:2])
    if version > 10:
        assert "same shape" in refused("QuantizeLinear", version, x, scale[:3], zero[:2])
        data = np.zeros((1, 3), np.uint8)
        assert "same shape" in refused("DequantizeLinear", version, data, scale[:3], zero[:2])


def _qlinear_conv(x: Any, w: Any, zeros: Any, scales: Any, bias: Any, pads: int, group: int = 1) -> Any:
    """One spatial axis, sums in integers of Python."""
    xz, wz, yz = zeros
    padded = np.pad(x.astype(np.int64) - int(xz), ((0, 0), (0, 0), (pads, pads)))
    kernels = w.astype(np.int64) - np.asarray(wz, np.int64).reshape(-1, 1, 1)
    n, _, size = padded.shape
    m, cg, k = kernels.shape
    result = np.zeros((n, m, size - k + 1), np.int64)
    for o in range(m):
        first = o // (m // group) * cg
        for y in range(result.shape[2]):
            result[:, o, y] = (padded[:, first : first + cg, y : y + k] * kernels[o]).sum((1, 2)) + (
                0 if bias is None else int(bias[o])
            )
    factor = (F(scales[0]) * np.asarray(scales[1], F) / F(scales[2])).reshape(-1, 1)
    info = np.iinfo(yz.dtype)
    return np.clip(np.rint(result.astype(F) * factor) + int(yz), info.min, info.max).astype(yz.dtype)


@table("group", [1, 2])
@table("per_channel", [False, True])
@table("types", [(np.uint8, np.uint8, np.uint8), (np.uint8, np.int8, np.int8), (np.int8,) * 3])
def test_a_quantized_convolution_sums_integers_and_requantizes(
    group: int, per_channel: bool, types: tuple[Any, ...], run: Run, same: Run
) -> None:
    rng = np.random.default_rng(group)
    low = [np.iinfo(t).min for t in types]
    x = rng.integers(low[0], low[0] + 256, (2, 4, 9)).astype(types[0])
    w = rng.integers(low[1], low[1] + 256, (6, 4 // group, 3)).astype(types[1])
    xz, yz = np.array(low[0] + 100, types[0]), np.array(low[2] + 77, types[2])
    wz = rng.integers(low[1], low[1] + 256, 6).astype(types[1]) if per_channel else np.array(low[1] + 9, types[1])
    ws = rng.uniform(0.001, 0.01, 6).astype(F) if per_channel else np.array(0.003, F)
    bias = rng.integers(-1000, 1000, 6).astype(np.int32)
    xs, ys = np.array(0.7, F), np.array(1.3, F)
    for b in (None, bias):
        found = run("QLinearConv", 10, x, xs, xz, w, ws, wz, ys, yz, b, pads=(1, 1), group=group)
        same(found, _qlinear_conv(x, w, (xz, wz, yz), (xs, ws, ys), b, 1, group))


def test_the_padding_of_a_quantized_convolution_is_the_zero_point(run: Run, same: Run) -> None:
    x, w = np.full((1, 1, 2), 9, np.uint8), np.ones((1, 1, 3), np.uint8)
    one, nothing = np.array(1, F), np.array(0, np.uint8)
    found = run("QLinearConv", 10, x, one, np.array(4, np.uint8), w, one, nothing, one, nothing, pads=(1, 1))
    same(found, np.array([[[10, 10]]], np.uint8))


def test_a_quantized_convolution_rounds_before_it_adds_the_zero_point(run: Run, same: Run) -> None:
    x, w = np.array([[[1, 3, 5]]], np.uint8), np.ones((1, 1, 1), np.uint8)
    one, two, nothing = np.array(1, F), np.array([2], F), np.array([0], np.uint8)
    found = run("QLinearConv", 10, x, one, nothing, w, one, nothing, two, np.array(1, np.uint8))
    same(found, np.array([[[1, 3, 3]]], np.uint8))


def test_the_sums_of_a_quantized_convolution_are_of_32_bits(run: Run, same: Run) -> None:
    x, w = np.full((1, 40000, 1), 255, np.uint8), np.full((1, 40000, 1), 255, np.uint8)
    one, nothing = np.array(1, F), np.array(0, np.uint8)
    found = run("QLinearConv", 10, x, one, nothing, w, one, nothing, one, np.array(0, np.int8))
    same(found, np.array([[[-128]]], np.int8))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn"])
def test_a_type_without_infinity_is_limited_whatever_saturate_is(name: str, saturate: int, run: Run, same: Run) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    most = float(ml_dtypes.finfo(dtype).max)
    found = run(
        "QuantizeLinear", 28, np.array([100, -100, 1], F), np.array(1, F), np.array(0, dtype), saturate=saturate
    )
    same(found, np.array([most, -most, 1], dtype))
