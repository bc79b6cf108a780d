"""Scales and zero points of quantized tensors: whether they fit, and how they stand beside the data."""

from __future__ import annotations

import numpy as np

from .functions import DOUBLE, SINGLE, DType, converted, greatest, integer_range, is_integer, narrow
from .kernel import Array
from .reading import require
from .windows import Sizes


def is_one(shape: Sizes) -> bool:
    """True where a tensor counts as a scalar: it has one element and at most one axis."""
    return len(shape) <= 1 and all(n == 1 for n in shape)


def require_fit(scale: Sizes, zero: Sizes | None, data: Sizes, axis: int, block: int) -> None:
    """The scales are one, one for each position of the axis, or one for each block of positions; so are zero points."""
    along = 0 <= axis < len(data)
    if not is_one(scale):
        require(along, "the scales fit the data: axis is an axis of them")
        wanted = (data[axis],) if block == 0 else (*data[:axis], -(-data[axis] // block), *data[axis + 1 :])
        require(scale == wanted, "the scales fit the data")
    if zero is not None:
        require(zero == scale or (is_one(zero) and is_one(scale)), "scale and zero point have the same shape")


def beside(scale: Array, data: Sizes, axis: int, block: int) -> Array:
    """Scales or zero points, shaped so that they broadcast with the data."""
    if is_one(scale.shape):
        return scale.reshape(())
    if block == 0:
        return scale.reshape(-1, *(1,) * (len(data) - 1 - axis))
    return np.repeat(scale, block, axis=axis)[(*(slice(None),) * axis, slice(0, data[axis]))]


def quantized(quotient: Array, zero: Array | None, target: DType, bounded: bool) -> Array:
    """The quotient and the zero point, added and limited to the target type; the quotient may be overwritten.

    For integers the quotient is rounded first, to nearest, ties to even, and a NaN gives some element; for floats the
    sum is rounded to the target, and where bounded limited to its largest number.
    """
    if not is_integer(target):
        return _as_float(quotient, zero, target, bounded)
    low, high = integer_range(target)
    wide = quotient if quotient.dtype in (SINGLE, DOUBLE) else quotient.astype(np.float32)
    wide = np.asarray(np.rint(wide, out=wide) if wide.flags.writeable and wide.ndim else np.rint(wide))
    if zero is not None:
        # The sum is exact below 2**23, and beyond that it is limited whatever its last bits are.
        wide = np.asarray(np.add(wide, zero.astype(np.int32).astype(wide.dtype)))
    wide = np.asarray(np.minimum(np.maximum(wide, low), high))
    whole = np.asarray(np.where(np.isnan(wide), 0, wide) if np.isnan(np.sum(wide)) else wide)
    narrow_type = target if target.kind in "iu" else np.dtype(np.int8 if low < 0 else np.uint8)
    return whole.astype(narrow_type).astype(target, copy=False)


def _as_float(quotient: Array, zero: Array | None, target: DType, bounded: bool) -> Array:
    kind = quotient.dtype
    added = quotient if zero is None else np.asarray(np.add(quotient, converted(zero, kind)))
    if bounded:
        most = greatest(target)
        added = np.asarray(np.minimum(np.maximum(added, kind.type(-most)), kind.type(most)))
    return narrow(added, target) if kind == DOUBLE else added.astype(target)
