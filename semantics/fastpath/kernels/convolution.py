"""Convolutions of floats and of integers (Conv, ConvInteger).

Floats of 16 bits are multiplied and summed in float, and the sum with its bias is rounded once. Sums of integers are
exact in float or double where none of them can leave the integers that are exact there, and wrap around in 32 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ...values import Value
from ..correlation import Correlation, correlate
from ..kernel import Allocate, Array, Compute, Kernel, Site
from ..products import largest, sum_limit, widened
from ..reading import integer, optional, require, tensor
from ..rounding import DOUBLE, INT32, SINGLE, DType, summing
from ..scales import is_one
from ..windows import Sizes, Window, place, window_of


def correlation(window: Window, group: int, x: Sizes, w: Sizes, bias: Sizes | None, unit_same: bool) -> Correlation:
    """The sizes of a convolution of data of shape x with kernels of shape w. Raises KernelError if they do not fit."""
    require(len(x) >= 2 and len(w) >= 2, "data and kernels have two axes before the spatial ones")
    placed = place(window, x[2:], w[2:], unit_same=unit_same)
    require(group > 0, "the number of groups is positive")
    require(x[1] == w[1] * group, "each kernel reads the channels of its group")
    require(w[0] % group == 0, "the groups divide the kernels")
    require(bias is None or bias == w[:1], "there is a bias for each kernel")
    return Correlation(x[0], x[1], group, w[0], placed)


def packed(constants: Sequence[Value | None], position: int) -> Array | None:
    """A constant input as correlate takes its kernels, None where it is not known or no tensor of floats."""
    known = constants[position] if position < len(constants) else None
    return np.ascontiguousarray(widened(known, summing(known.dtype))) if isinstance(known, np.ndarray) else None


def _conv(site: Site) -> Compute:
    window, group = window_of(site), integer(site, "group", 1)
    kernels, bias = packed(site.constants, 1), packed(site.constants, 2)

    @lru_cache(maxsize=8)
    def fitted(x: Sizes, w: Sizes, b: Sizes | None) -> Correlation:
        return correlation(window, group, x, w, b, site.version < 11)

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x, w, b = tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2)
        how = fitted(x.shape, w.shape, None if b is None else b.shape)
        kind = summing(x.dtype)
        out = allocate(how.shape, kind)
        w = np.ascontiguousarray(widened(w, kind)) if kernels is None else kernels
        if b is not None:
            b = widened(b, kind) if bias is None else bias
        with np.errstate(all="ignore"):
            correlate(widened(x, kind), w, b, how, out, allocate)
            return (widened(out, x.dtype),)

    return compute


# ---- integers ---------------------------------------------------------------------------------


def sum_type(kernels: Array, greatest: int) -> DType:
    """The type in which the products of kernels with data up to an absolute value are summed exactly."""
    terms = int(np.max(np.sum(np.abs(kernels), axis=tuple(range(1, kernels.ndim)), dtype=np.int64), initial=0))
    return SINGLE if terms * greatest < sum_limit(SINGLE) else DOUBLE


def centred(x: Array, zero: Array | None) -> Array:
    """Bytes less their zero point, of one element or one for each entry of the first axis, as integers."""
    wide = x.astype(np.int16)
    if zero is None:
        return wide
    beside = () if is_one(zero.shape) else (*zero.shape, *(1,) * (x.ndim - 1))
    found: Array = np.subtract(wide, zero.astype(np.int16).reshape(beside))
    return found


def summed(x: Array, kernels: Array, bias: Array | None, how: Correlation, allocate: Allocate) -> Array:
    """The sums of products of integers less than 2**9 in absolute value, with a bias of int32, exactly.

    They are whole numbers of the type float or double.
    """
    greatest = largest(x)
    kind = sum_type(kernels, greatest)
    if bias is not None:
        kind = DOUBLE
    out = allocate(how.shape, kind)
    correlate(x.astype(kind), kernels.astype(kind), None if bias is None else bias.astype(kind), how, out, allocate)
    return out


def wrapped(sums: Array) -> Array:
    """Whole numbers as elements of int32, wrapped around."""
    return sums.astype(np.int64).astype(np.int32) if sums.dtype == DOUBLE else sums.astype(np.int32)


def _conv_integer(site: Site) -> Compute:
    window, group = window_of(site), integer(site, "group", 1)

    @lru_cache(maxsize=8)
    def fitted(x: Sizes, w: Sizes) -> Correlation:
        return correlation(window, group, x, w, None, False)

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x, w = tensor(inputs, 0), tensor(inputs, 1)
        zero_x, zero_w = optional(inputs, 2), optional(inputs, 3)
        how = fitted(x.shape, w.shape)
        require(zero_x is None or is_one(zero_x.shape), "x_zero_point is a scalar")
        require(
            zero_w is None or is_one(zero_w.shape) or zero_w.shape == w.shape[:1],
            "w_zero_point is a scalar, or has an entry for each kernel",
        )
        sums = summed(centred(x, zero_x), centred(w, zero_w), None, how, allocate)
        out = allocate(how.shape, INT32)
        np.copyto(out, wrapped(sums))
        return (out,)

    return compute


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "Conv": (Kernel(1, 22, _conv),),
    "ConvInteger": (Kernel(10, 10, _conv_integer),),
}
