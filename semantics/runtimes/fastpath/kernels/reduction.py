"""Reductions along axes: sums, products, norms, extremes, positions, and running sums.

Sums and products of floats of 16 bits are computed in float and rounded once; NumPy chooses the order of summation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np

from ..functions import DOUBLE, finite_range, is_float, narrow, scalar, summing, through_double
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site
from ..reading import integer, integers, require, tensor
from .shape import INT64, Shape, axes_of, axis_of, listed, vector

Reduce = Callable[[Array, Shape, Array], None]
"""Reduces the first array along axes into the last one, which keeps them with the size 1."""


def _reducing(reduce: Reduce, last_attribute: int = 13) -> Callable[[Site], Compute]:
    """A kernel for a reduction whose axes are an attribute up to a version, then an input."""

    def prepare(site: Site) -> Compute:
        attribute, given = integers(site, "axes"), vector(site, 1)
        keep, noop = integer(site, "keepdims", 1), integer(site, "noop_with_empty_axes", 0)
        require(keep in (0, 1), "keepdims is 0 or 1")
        require(noop in (0, 1), "noop_with_empty_axes is 0 or 1")

        def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
            x = tensor(inputs, 0)
            stated = attribute if site.version <= last_attribute else given(inputs)
            axes = axes_of(stated, x.ndim) if stated else () if noop else tuple(range(x.ndim))
            kept = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
            out = allocate(kept if keep else tuple(n for k, n in enumerate(x.shape) if k not in axes), x.dtype)
            reduce(x, axes, out.reshape(kept))
            return (out,)

        return compute

    return prepare


def total(x: Array, axes: Shape) -> Array:
    """The sum along axes, which keep the size 1: 0 of no elements, -0.0 only where all of them are."""
    kind = summing(x.dtype) if is_float(x.dtype) else x.dtype
    if kind == x.dtype and not is_float(kind):
        return np.asarray(np.add.reduce(x, axis=axes, dtype=kind, keepdims=True))
    start = -0.0 if _count(x, axes) else 0.0
    return np.asarray(np.add.reduce(x, axis=axes, dtype=kind, keepdims=True, initial=start)).astype(x.dtype, copy=False)


def _sum(x: Array, axes: Shape, out: Array) -> None:
    np.copyto(out, total(x, axes) if axes else x)


def _product(x: Array, axes: Shape, out: Array) -> None:
    kind = summing(x.dtype) if is_float(x.dtype) else x.dtype
    np.copyto(out, np.multiply.reduce(x, axis=axes, dtype=kind, keepdims=True) if axes else x, casting="unsafe")


def _count(x: Array, axes: Shape) -> int:
    return math.prod(x.shape[axis] for axis in axes)


def _mean(x: Array, axes: Shape, out: Array) -> None:
    count = _count(x, axes)
    if is_float(x.dtype):
        _sum(x, axes, out)
        if count:
            np.divide(out, narrow(np.asarray(float(count)), x.dtype), out=out)
    elif count:  # of no elements any value is allowed
        exact = _exact_sum(x, axes)
        np.copyto(out, np.where(exact < 0, -(-exact // count), exact // count), casting="unsafe")


def _exact_sum(x: Array, axes: Shape) -> Array:
    """The sum of integers, which do not wrap around: int64 for those below 64 bits, else Python's integers."""
    if x.dtype.itemsize < 8:
        return np.asarray(np.add.reduce(x, axis=axes, dtype=np.int64, keepdims=True))
    high, low = (np.add.reduce(part, axis=axes, keepdims=True) for part in (x >> 32, x & np.array(2**32 - 1, x.dtype)))
    total: Array = np.asarray(high).astype(object) * 2**32 + np.asarray(low).astype(object)
    return total


def _sum_of_squares(x: Array, axes: Shape, out: Array) -> None:
    _sum(np.multiply(x, x), axes, out)


def _function_of_sum(reduce: Reduce, function: np.ufunc) -> Reduce:
    """A function of the sum; of integers in double, truncated."""

    def reduced(x: Array, axes: Shape, out: Array) -> None:
        reduce(x, axes, out)
        if is_float(x.dtype):
            through_double(function)(x.dtype)(out, out)
        else:
            np.copyto(out, function(out.astype(np.float64)), casting="unsafe")

    return reduced


def _l1(x: Array, axes: Shape, out: Array) -> None:
    _sum(np.absolute(x), axes, out)


def _log_sum_exp(x: Array, axes: Shape, out: Array) -> None:
    """The greatest element, unless it is an infinity, is subtracted before and added after."""
    inner = x.dtype if is_float(x.dtype) else DOUBLE
    data = x if inner == x.dtype else x.astype(inner)
    top = np.empty(out.shape, inner)
    _extreme(np.maximum, data, axes, top)
    np.copyto(top, scalar(0, inner), where=np.isinf(top))
    terms = np.asarray(np.subtract(data, top))
    through_double(np.exp)(inner)(terms, terms)
    sums = np.empty(out.shape, inner)
    _sum(terms, axes, sums)
    through_double(np.log)(inner)(sums, sums)
    np.copyto(out, np.add(top, sums), casting="unsafe")


# ---- extremes ---------------------------------------------------------------------------------


def _extreme(function: np.ufunc, x: Array, axes: Shape, out: Array) -> None:
    """The greatest or least element: a NaN wins, of two zeros that of the better sign; a limit of the type for none."""
    greatest = function is np.maximum
    if not axes:
        np.copyto(out, x)
    elif x.dtype == np.bool_:
        (np.logical_or if greatest else np.logical_and).reduce(x, axis=axes, out=out, keepdims=True)
    elif not is_float(x.dtype):
        low, high = finite_range(x.dtype)
        function.reduce(x, axis=axes, out=out, keepdims=True, initial=low if greatest else high)
    elif x.dtype.kind == "f":
        function.reduce(x, axis=axes, out=out, keepdims=True, initial=-np.inf if greatest else np.inf)
        zeros = out == 0
        if zeros.any():
            wins = np.logical_and(x == 0, np.signbit(x) != greatest).any(axis=axes, keepdims=True)
            signed = np.where(wins, 0.0 if greatest else -0.0, -0.0 if greatest else 0.0)
            np.copyto(out, signed.astype(x.dtype), where=zeros)
    else:
        wide = np.empty(out.shape, np.float32)
        _extreme(function, x.astype(np.float32), axes, wide)
        np.copyto(out, wide, casting="unsafe")


def _position(find: Callable[..., Array]) -> Callable[[Site], Compute]:
    """A kernel for the position of the greatest or the least element along an axis."""

    def prepare(site: Site) -> Compute:
        stated, keep = integer(site, "axis", 0), integer(site, "keepdims", 1)
        last = integer(site, "select_last_index", 0)
        require(keep in (0, 1), "keepdims is 0 or 1")
        require(last in (0, 1), "select_last_index is 0 or 1")

        def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
            x = tensor(inputs, 0)
            axis = axis_of(stated, x.ndim)
            require(x.shape[axis] > 0, "the axis has elements")
            require(site.version != 11 or x.size > 0, "the input is not empty")
            before, behind = x.shape[:axis], x.shape[axis + 1 :]
            out = allocate((*before, 1, *behind) if keep else (*before, *behind), INT64)
            data = x.astype(np.float32) if x.dtype.kind not in "fiu" else x
            find(np.flip(data, axis) if last else data, axis, out=out, keepdims=bool(keep))
            if last:
                np.subtract(x.shape[axis] - 1, out, out=out)
            return (out,)

        return compute

    return prepare


# ---- running sums -----------------------------------------------------------------------------


def _cumsum(site: Site) -> Compute:
    backwards, exclusive = integer(site, "reverse", 0), integer(site, "exclusive", 0)
    require(backwards in (0, 1) and exclusive in (0, 1), "reverse and exclusive are 0 or 1")
    where = listed(site, 1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, stated = tensor(inputs, 0), where(inputs) or ()
        require(len(stated) == 1, "axis is a scalar")
        axis = axis_of(stated[0], x.ndim)
        out = allocate(x.shape, x.dtype)
        data, sums = (np.moveaxis(it, axis, 0)[:: -1 if backwards else 1] for it in (x, out))
        if exclusive and len(sums):
            sums[0] = 0
            data, sums = data[:-1], sums[1:]
        if len(sums):
            np.add.accumulate(data, axis=0, dtype=x.dtype, out=sums)
        return (out,)

    return compute


def _by_axes(last: int, reduce: Reduce, last_attribute: int = 13) -> tuple[Kernel]:
    return (Kernel(1, last, _reducing(reduce, last_attribute)),)


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "ReduceSum": _by_axes(13, _sum, 11),
    "ReduceMean": _by_axes(18, _mean),
    "ReduceProd": _by_axes(18, _product),
    "ReduceMax": _by_axes(20, partial(_extreme, np.maximum)),
    "ReduceMin": _by_axes(20, partial(_extreme, np.minimum)),
    "ReduceL1": _by_axes(18, _l1),
    "ReduceL2": _by_axes(18, _function_of_sum(_sum_of_squares, np.sqrt)),
    "ReduceSumSquare": _by_axes(18, _sum_of_squares),
    "ReduceLogSum": _by_axes(28, _function_of_sum(_sum, np.log)),
    "ReduceLogSumExp": _by_axes(28, _log_sum_exp),
    "ArgMax": (Kernel(1, 13, _position(np.argmax)),),
    "ArgMin": (Kernel(1, 13, _position(np.argmin)),),
    "CumSum": (Kernel(11, 14, _cumsum),),
}
