"""Quantization (QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear) and products of quantized tensors
(QLinearConv, QLinearMatMul), whose sums are exact and wrap around in 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from ....errors import Unsupported
from ....model.elements import dtype_of
from ....model.schemas import element_types
from ..correlation import Correlation
from ..functions import BYTE, DOUBLE, INT32, SINGLE, DType, converted, is_float, is_integer
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, KernelError, Outputs, Site, unprepared
from ..products import exact_product, widened
from ..reading import integer, optional, require, tensor
from ..scales import beside, is_one, quantized, require_fit
from ..windows import Sizes, window_of
from .casting import LIMITED
from .convolution import centred, correlation, summed, wrapped
from .matrix import by_lines, less_zero, lines_fit, require_matrices


def _numbered(code: int) -> DType:
    """The element type with a number of ONNX's."""
    try:
        return dtype_of(element_types().get(code, ""))
    except Unsupported:
        raise KernelError(f"{code} is the number of no element type") from None


def _axis(site: Site, rank: int) -> int:
    axis = integer(site, "axis", 1)
    return axis + rank if axis < 0 else axis


# ---- QuantizeLinear ---------------------------------------------------------------------------


def _quotient_type(site: Site, x: DType, scale: DType) -> DType:
    """The type in which x is divided by the scale."""
    if site.version < 19:
        return SINGLE
    if site.version < 23:
        return x if is_float(x) else DOUBLE
    stated = integer(site, "precision")
    if stated:
        target = _numbered(stated)
        require(is_float(target), "precision is a floating-point type")
        return target
    require(is_float(scale) or x == scale, "a scale of integers divides integers")
    if not is_float(scale):
        return DOUBLE
    if scale.name != "float8_e8m0fnu":
        return scale
    return x if is_float(x) else SINGLE


def _target(site: Site, zero: Array | None) -> DType:
    """The type of the output of QuantizeLinear."""
    stated = integer(site, "output_dtype")
    if stated == 0:
        return BYTE if zero is None else zero.dtype
    target = _numbered(stated)
    require(zero is None or zero.dtype == target, "output_dtype is the type of the zero point")
    return target


def _blocks(site: Site, x: Array, scale: Array, zero: Array | None, name: str) -> tuple[int, int]:
    """The size of a block and its axis, for a scale and a zero point that fit the data."""
    block, axis = integer(site, "block_size"), _axis(site, x.ndim)
    require(block >= 0, "block_size is not negative")
    if site.version < 13:
        require(is_one(scale.shape), f"{name}_scale is a scalar")
        require(zero is None or is_one(zero.shape), f"{name}_zero_point is a scalar")
    else:
        require_fit(scale.shape, None if zero is None else zero.shape, x.shape, axis, block)
    return block, axis


def _quantize(site: Site) -> Compute:
    bounded = integer(site, "saturate", 1) != 0

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, scale, zero = tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2)
        block, axis = _blocks(site, x, scale, zero, "y")
        require(not 19 <= site.version < 23 or scale.dtype == x.dtype, "the scale has the type of x")
        target, kind = _target(site, zero), _quotient_type(site, x.dtype, scale.dtype)
        powers = scale.dtype.name == "float8_e8m0fnu"
        require(powers or bool(np.all(scale != np.zeros((), scale.dtype))), "no scale is 0")
        by = beside(converted(scale, kind), x.shape, axis, block)
        quotient = allocate(x.shape, kind)
        np.divide(converted(x, kind), by, out=quotient)
        at = None if zero is None else beside(zero, x.shape, axis, block)
        limited = bounded or target in LIMITED
        return (quantized(quotient, at, target, limited),)

    return compute


# ---- DequantizeLinear -------------------------------------------------------------------------


@unprepared
def _dequantize(site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x, scale, zero = tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2)
    block, axis = _blocks(site, x, scale, zero, "x")
    if zero is not None and x.dtype == INT32:
        require(not np.any(zero), "elements of int32 have the zero point 0")
    stated = integer(site, "output_dtype")
    target = _numbered(stated) if stated else scale.dtype
    at = None if zero is None else beside(zero, x.shape, axis, block)
    by = beside(converted(scale, target), x.shape, axis, block)
    out = allocate(x.shape, target)
    np.multiply(_difference(x, at, target), by, out=out)
    return (out,)


def _difference(x: Array, zero: Array | None, target: DType) -> Array:
    """x minus the zero point: exact and then rounded for integers, rounded in the target type for floats."""
    if not is_integer(x.dtype):
        difference = converted(x, target)
        return np.asarray(np.subtract(difference, converted(zero, target))) if zero is not None else difference
    if zero is None or x.dtype == INT32:
        return converted(x, target)
    if target == SINGLE:
        return np.asarray(np.subtract(x.astype(np.float32), zero.astype(np.float32)))
    return converted(np.asarray(np.subtract(x.astype(np.int32), zero.astype(np.int32))), target)


# ---- DynamicQuantizeLinear --------------------------------------------------------------------


@unprepared
def _dynamic_quantize(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x = tensor(inputs, 0)
    require(x.size > 0, "x has an element")
    least = np.minimum(np.min(x), np.float32(0))
    scale = np.asarray((np.maximum(np.max(x), np.float32(0)) - least) / np.float32(255))
    zero = quantized(np.asarray(np.float32(0) - least / scale), None, BYTE, True)
    quotient = allocate(x.shape, SINGLE)
    np.divide(x, scale, out=quotient)
    return (quantized(quotient, zero, BYTE, True), scale, zero)


# ---- products ---------------------------------------------------------------------------------


def _qlinear_conv(site: Site) -> Compute:
    window, group = window_of(site), integer(site, "group", 1)

    @lru_cache(maxsize=8)
    def fitted(x: Sizes, w: Sizes, b: Sizes | None) -> Correlation:
        return correlation(window, group, x, w, b)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (tensor(inputs, k) for k in range(8))
        bias = optional(inputs, 8)
        how = fitted(x.shape, w.shape, None if bias is None else bias.shape)
        scalars = (x_scale, x_zero, y_scale, y_zero)
        require(all(is_one(v.shape) for v in scalars), "scales and zero points of x and y are scalars")
        fits = all(is_one(v.shape) or v.shape == w.shape[:1] for v in (w_scale, w_zero))
        require(fits, "w_scale and w_zero_point are scalars, or have an entry for each kernel")
        sums = summed(centred(x, x_zero), centred(w, w_zero), bias, how, allocate)
        factor = x_scale.reshape(()) * w_scale.reshape(-1, *(1,) * len(how.placed.count)) / y_scale.reshape(())
        real = sums if sums.dtype == SINGLE else wrapped(sums).astype(np.float32)
        np.multiply(real, factor, out=real)
        return (quantized(real, y_zero.reshape(()), y_zero.dtype, True),)

    return compute


@unprepared
def _qlinear_matmul(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (tensor(inputs, k) for k in range(8))
    require_matrices(a.shape, b.shape)
    require(lines_fit(a_zero.shape, a.shape, True), "a_zero_point is a scalar, or has an entry for each row")
    require(lines_fit(b_zero.shape, b.shape, False), "b_zero_point is a scalar, or has an entry for each column")
    ones = all(is_one(v.shape) for v in (a_scale, a_zero, b_scale, b_zero))
    same = a_scale.shape == a_zero.shape and b_scale.shape == b_zero.shape
    require(same or ones, "scale and zero point have the same shape")
    require(is_one(y_scale.shape) and is_one(y_zero.shape), "y_scale and y_zero_point are scalars")
    exact = is_integer(a.dtype)
    require(exact == is_integer(b.dtype), "both inputs are integers, or neither is")
    if exact:
        sums = exact_product(less_zero(a, a_zero, True), less_zero(b, b_zero, False))
    else:
        sums = np.asarray(np.matmul(_less(a, a_zero, True), _less(b, b_zero, False)))
    whole = sums.astype(np.int64).astype(np.int32) if exact and sums.dtype != SINGLE else sums
    scales = converted(a_scale, SINGLE), converted(b_scale, SINGLE)
    factor = _factors(*scales, a.ndim == 1, b.ndim == 1) / converted(y_scale, SINGLE).reshape(())
    real = np.asarray(converted(whole, SINGLE) * factor)
    return (quantized(real, y_zero.reshape(()), y_zero.dtype, True),)


def _less(x: Array, zero: Array, row: bool) -> Array:
    difference: Array = np.subtract(widened(x, SINGLE), by_lines(widened(zero, SINGLE), row))
    return difference


def _factors(a: Array, b: Array, vector_a: bool, vector_b: bool) -> Array:
    """The products of the scales, for a result whose axis of rows or columns is missing where a or b is a vector."""
    rows, columns = by_lines(a, True), by_lines(b, False)
    if vector_b and rows.ndim:
        rows = rows[..., 0]
    if vector_a and columns.ndim > 1:
        columns = columns[..., 0, :]
    return np.asarray(rows * columns)


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "QuantizeLinear": (Kernel(10, 28, _quantize),),
    "DequantizeLinear": (Kernel(10, 28, _dequantize),),
    "DynamicQuantizeLinear": (Kernel(11, 11, _dynamic_quantize),),
    "QLinearConv": (Kernel(10, 10, _qlinear_conv),),
    "QLinearMatMul": (Kernel(10, 21, _qlinear_matmul),),
}
