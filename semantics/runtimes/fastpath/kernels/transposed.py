"""Transposed convolution (ConvTranspose): one product for each group, laid into the output kernel position by position.

Floats of 16 bits are multiplied and summed in float, and the sum with its bias is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ....model.values import Value
from ..kernel import Allocate, Array, Compute, Kernel, Site
from ..products import widened
from ..reading import integer, integers, optional, require, tensor
from ..rounding import summing
from ..windows import Sizes, Window, checked, part, window_of


@dataclass(frozen=True, slots=True)
class Laid:
    """Where the products fall. reach: the sizes before the paddings are cut off. before: the padding at the beginning,
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
    if version < 11:
        require(not same or strides == (1,) * r, "SAME_UPPER and SAME_LOWER are used with strides of 1")
        require(min(total) >= 0, "the output is not greater than what the kernels reach")
        odd = wanted is None and any(p % 2 for p in total)
        require(not odd, "the padding of SAME_UPPER and SAME_LOWER is even")
    before, after = pads[:r], pads[r:]
    if wanted is not None or same:
        half = tuple(p // 2 for p in total) if upper == (version >= 11) else tuple(p - p // 2 for p in total)
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

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x, w, b = tensor(inputs, 0), tensor(inputs, 1), optional(inputs, 2)
        laid = fitted(x.shape, w.shape, None if b is None else b.shape)
        kind = summing(x.dtype)
        with np.errstate(all="ignore"):
            sums = _sums(widened(x, kind), widened(w, kind), group, laid, allocate)
            out = allocate((x.shape[0], w.shape[1] * group, *laid.count), kind)
            beside = None if b is None else widened(b, kind).reshape(-1, *(1,) * len(laid.count))
            _cut(sums, beside, laid, out)
            return (widened(out, x.dtype),)

    return compute


def _sums(x: Array, w: Array, group: int, laid: Laid, allocate: Allocate) -> Array:
    """What falls on each place that the kernels reach."""
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


KERNELS: Mapping[str, tuple[Kernel, ...]] = {"ConvTranspose": (Kernel(1, 22, _conv_transpose),)}
