"""Convolutions of floats and of integers (Conv, ConvInteger), and transposed ones (ConvTranspose)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from ....model.values import Value
from ..correlation import Correlate, Correlation, Finish, laid, nothing_more, prepared
from ..functions import DOUBLE, INT32, SINGLE, DType, summing
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site
from ..products import largest, widened
from ..reading import integer, integers, optional, require, tensor
from ..repeating import Call, Ready, Repeatable
from ..scales import is_one
from ..windows import Sizes, Window, checked, part, place, window_of


def correlation(window: Window, group: int, x: Sizes, w: Sizes, bias: Sizes | None) -> Correlation:
    """The sizes of a convolution of data of shape x with kernels of shape w. Raises KernelError if they do not fit."""
    require(len(x) >= 2 and len(w) >= 2, "data and kernels have two axes before the spatial ones")
    placed = place(window, x[2:], w[2:])
    require(group > 0, "the number of groups is positive")
    require(x[1] == w[1] * group, "each kernel reads the channels of its group")
    require(w[0] % group == 0, "the groups divide the kernels")
    require(bias is None or bias == w[:1], "there is a bias for each kernel")
    return Correlation(x[0], x[1], group, w[0], placed)


def beside(bias: Array, out: Array) -> Finish:
    """Adds the bias of each kernel to a part of the result."""
    target = out.reshape(*out.shape[:2], math.prod(out.shape[2:]))
    column = bias.reshape(-1, 1)

    def finish(image: int, kernels: slice, places: slice) -> list[Call]:
        part = target[image, kernels, places]
        return [partial(np.add, part, column[kernels], out=part)]

    return finish


def _known(constants: Sequence[Value | None], position: int) -> Array | None:
    """A constant input as convolutions sum, None where it is not known or no tensor of floats."""
    known = constants[position] if position < len(constants) else None
    return widened(known, summing(known.dtype)) if isinstance(known, np.ndarray) else None


class Convolve(NamedTuple):
    """The convolution of a node. shape: that of the result for data, kernels and bias of these shapes; raises
    KernelError. ready: to convolve data with kernels and a bias; its last argument: what is done with the parts of the
    result."""

    shape: Callable[[Sizes, Sizes, Sizes | None], Sizes]
    ready: Callable[[Array, Array, Array | None, Allocate, Callable[[Array], Finish] | None], Ready]


def convolution(site: Site) -> Convolve:
    """The convolution of a node, with its known kernels laid out when it first runs."""
    window, group = window_of(site), integer(site, "group", 1)
    kernels, known_bias = _known(site.constants, 1), _known(site.constants, 2)

    @lru_cache(maxsize=8)
    def fitted(x: Sizes, w: Sizes, b: Sizes | None, itemsize: int) -> tuple[Correlation, Correlate, Array | None]:
        how = correlation(window, group, x, w, b)
        return how, prepared(how, itemsize), None if kernels is None else laid(kernels, how)

    def ready(
        x: Array, w: Array, b: Array | None, allocate: Allocate, finishing: Callable[[Array], Finish] | None
    ) -> Ready:
        kind = summing(x.dtype)
        how, correlate, matrices = fitted(x.shape, w.shape, None if b is None else b.shape, kind.itemsize)
        out = allocate(how.shape, kind)
        if matrices is None:
            matrices = laid(widened(w, kind), how)
        finish = nothing_more if finishing is None else finishing(out)
        if b is not None:
            finish = _both(beside(widened(b, kind) if known_bias is None else known_bias, out), finish)
        data = np.ascontiguousarray(widened(x, kind))
        again = data is x and kernels is not None and (b is None or known_bias is not None or b.dtype == kind)
        return Ready((out,), correlate(data, matrices, out, allocate, finish), again)

    def shape(x: Sizes, w: Sizes, b: Sizes | None) -> Sizes:
        return correlation(window, group, x, w, b).shape

    return Convolve(shape, ready)


def _both(first: Finish, second: Finish) -> Finish:
    def finish(image: int, kernels: slice, places: slice) -> list[Call]:
        return [*first(image, kernels, places), *second(image, kernels, places)]

    return finish


def _conv(site: Site) -> Compute:
    convolve = convolution(site).ready

    def ready(inputs: Inputs, allocate: Allocate) -> Ready:
        x, w, b = tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2)
        outputs, phases, again = convolve(x, w, b, allocate, None)
        if summing(x.dtype) == x.dtype:
            return Ready(outputs, phases, again)
        for phase in phases:
            phase.run()
        return Ready(tuple(it.astype(x.dtype) for it in outputs if isinstance(it, np.ndarray)), (), False)

    return Repeatable(ready)


# ---- integers ---------------------------------------------------------------------------------


def sum_type(kernels: Array, greatest: int) -> DType:
    """The type in which the products of kernels with data up to an absolute value are summed exactly."""
    terms = int(np.max(np.sum(np.abs(kernels), axis=tuple(range(1, kernels.ndim)), dtype=np.int64), initial=0))
    return SINGLE if terms * greatest < 2**24 else DOUBLE


def centred(x: Array, zero: Array | None) -> Array:
    """Bytes minus their zero point, of one element or one for each entry of the first axis, as integers."""
    wide = x.astype(np.int16)
    if zero is None:
        return wide
    beside = () if is_one(zero.shape) else (*zero.shape, *(1,) * (x.ndim - 1))
    difference: Array = np.subtract(wide, zero.astype(np.int16).reshape(beside))
    return difference


def summed(x: Array, kernels: Array, bias: Array | None, how: Correlation, allocate: Allocate) -> Array:
    """The sums of products of integers less than 2**9 in absolute value, with a bias of int32, exactly.

    They are whole numbers of the type float or double.
    """
    greatest = largest(x)
    kind = sum_type(kernels, greatest)
    if bias is not None:
        kind = DOUBLE
    out = allocate(how.shape, kind)
    finish = nothing_more if bias is None else beside(bias.astype(kind), out)
    data = np.ascontiguousarray(x.astype(kind))
    for phase in prepared(how, kind.itemsize)(data, laid(kernels.astype(kind), how), out, allocate, finish):
        phase.run()
    return out


def wrapped(sums: Array) -> Array:
    """Whole numbers as elements of int32, wrapped around."""
    return sums.astype(np.int64).astype(np.int32) if sums.dtype == DOUBLE else sums.astype(np.int32)


def _conv_integer(site: Site) -> Compute:
    window, group = window_of(site), integer(site, "group", 1)

    @lru_cache(maxsize=8)
    def fitted(x: Sizes, w: Sizes) -> Correlation:
        return correlation(window, group, x, w, None)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
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


# ---- Transposed convolution -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Laid:
    """Layout of the products. reach: the sizes before the paddings are cut off. before: the padding at the beginning,
    negative where places are added. count: the sizes of the output.
    """

    strides: Sizes
    dilations: Sizes
    kernel: Sizes
    reach: Sizes
    before: Sizes
    count: Sizes


def _laid(window: Window, more: Sizes | None, wanted: Sizes | None, data: Sizes, kernel: Sizes, version: int) -> Laid:
    r = len(data)
    strides, dilations, pads = checked(window, data, kernel)
    more = (0,) * r if more is None else more
    require(len(more) == r, "there is one output padding for each spatial axis")
    require(
        all(p >= 0 and (p < s or p < t) for p, s, t in zip(more, strides, dilations, strict=True)),
        "output paddings are not negative, and smaller than stride or dilation",
    )
    require(wanted is None or len(wanted) == r, "output_shape has a size for each spatial axis")
    extent = [(k - 1) * t + 1 for k, t in zip(kernel, dilations, strict=True)]
    full = tuple((d - 1) * s + m + e for d, s, m, e in zip(data, strides, more, extent, strict=True))
    same, upper = window.auto_pad.startswith("SAME"), window.auto_pad == "SAME_UPPER"
    total = (0,) * r
    if wanted is not None:
        total = tuple(f - o for f, o in zip(full, wanted, strict=True))
    elif same:
        total = tuple(f - d * s for f, d, s in zip(full, data, strides, strict=True))
    before, after = pads[:r], pads[r:]
    if wanted is not None or same:
        swapped = version < 11 and wanted is not None
        half = tuple(p // 2 for p in total) if upper != swapped else tuple(p - p // 2 for p in total)
        before, after = half, tuple(p - b for p, b in zip(total, half, strict=True))
    count = tuple(f - b - a for f, b, a in zip(full, before, after, strict=True))
    require(min(count) >= 0, "the paddings leave an output")
    return Laid(strides, dilations, kernel, full, before, count)


def _conv_transpose(site: Site) -> Compute:
    window, group = window_of(site), integer(site, "group", 1)
    more, wanted = integers(site, "output_padding"), integers(site, "output_shape")

    @lru_cache(maxsize=8)
    def fitted(x: Sizes, w: Sizes, b: Sizes | None) -> Laid:
        require(len(x) >= 2 and len(w) >= 2, "data and kernels have two axes before the spatial ones")
        require(group > 0, "the number of groups is positive")
        require(x[1] == w[0], "there is a kernel for each channel of X")
        require(x[1] % group == 0, "the groups divide the channels of X")
        require(b is None or b == (w[1] * group,), "there is a bias for each channel of the output")
        return _laid(window, more, wanted, x[2:], w[2:], site.version)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, w, b = tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2)
        laid = fitted(x.shape, w.shape, None if b is None else b.shape)
        kind = summing(x.dtype)
        sums = _sums(widened(x, kind), widened(w, kind), group, laid, allocate)
        out = allocate((x.shape[0], w.shape[1] * group, *laid.count), kind)
        beside = None if b is None else widened(b, kind).reshape(-1, *(1,) * len(laid.count))
        _cut(sums, beside, laid, out)
        return (widened(out, x.dtype),)

    return compute


def _sums(x: Array, w: Array, group: int, laid: Laid, allocate: Allocate) -> Array:
    """The sum of what falls on each place that the kernels reach."""
    images, channels, *data = x.shape
    each, taps = w.shape[1], math.prod(laid.kernel)
    sums = allocate((images, group * each, *laid.reach), x.dtype)
    sums[...] = 0
    if 0 in x.shape or 0 in w.shape:
        return sums
    matrices = np.ascontiguousarray(w).reshape(group, channels // group, each * taps).swapaxes(1, 2)
    places = np.ascontiguousarray(x).reshape(images, group, channels // group, -1)
    products = allocate((group, each * taps, places.shape[-1]), x.dtype)
    for image in range(images):
        np.matmul(matrices, places[image], out=products)
        shown = products.reshape(group * each, taps, *data)
        for number, tap in enumerate(np.ndindex(*laid.kernel)):
            where = tuple(
                slice(k * t, k * t + (d - 1) * s + 1, s)
                for k, t, d, s in zip(tap, laid.dilations, data, laid.strides, strict=True)
            )
            goal = part(sums[image], where)
            np.add(goal, shown[:, number], out=goal)
    return sums


def _cut(sums: Array, bias: Array | None, laid: Laid, out: Array) -> None:
    """Cuts the paddings off, adds places where they are negative, and the bias."""
    source: list[slice] = []
    target: list[slice] = []
    for before, count, reach in zip(laid.before, laid.count, laid.reach, strict=True):
        first, last = max(before, 0), min(before + count, reach)
        source.append(slice(first, max(first, last)))
        target.append(slice(first - before, max(first, last) - before))
    if any(t.stop - t.start < n for t, n in zip(target, laid.count, strict=True)):
        out[...] = 0 if bias is None else bias
    np.add(part(sums, source), 0 if bias is None else bias, out=part(out, target))


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "Conv": (Kernel(1, 22, _conv),),
    "ConvInteger": (Kernel(10, 10, _conv_integer),),
    "ConvTranspose": (Kernel(1, 22, _conv_transpose),),
}
