"""Correlation by positions of the kernel: the product of each with all data, then the sum of the shifted products.

It moves as many elements as there are kernels for each position, and gathers no columns. The padded data are flat, so
that a shift is an offset; the ends of rows compute what nobody reads.
"""

from __future__ import annotations

import math

import numpy as np

from ..kernel import Allocate, Array
from ..padding import fill, phased
from ..windows import part
from ..workers import Work, byte_parts, cuts, shared
from .sizes import Correlate, Correlation, Finish


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """As `ways.prepared`, for strides of 1 and one group."""
    placed, r = how.placed, len(how.placed.data)
    sizes = phased(placed, (1,) * r)
    pitch = [math.prod(placed.padded[k + 1 :]) for k in range(r)]
    size, count = math.prod(placed.padded), placed.count[0]
    first, second, *others = (
        sum(k * t * p for k, t, p in zip(tap, placed.dilations, pitch, strict=True))
        for tap in np.ndindex(*placed.kernel)
    )
    pieces = cuts(how.channels, byte_parts(how.channels * size * itemsize))
    length = sum((o - 1) * p for o, p in zip(placed.count, pitch, strict=True)) + 1
    shown = tuple(slice(0, o) for o in placed.count)
    everything = slice(0, how.kernels), slice(0, how.positions)

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        source = allocate((how.channels, *sizes), x.dtype)
        products = allocate((how.taps, how.kernels, size), x.dtype)
        sums = allocate((how.kernels, count * pitch[0]), x.dtype)
        total = sums[:, :length]

        def pad(image: Array) -> Work:
            return lambda k, _worker: fill(source[pieces[k]], image[pieces[k]], placed, (1,) * r)

        for image in range(how.images):
            shared(len(pieces), pad(x[image]))
            np.matmul(kernels, source.reshape(how.channels, size), out=products.reshape(-1, size))
            np.add(products[0, :, first : first + length], products[1, :, second : second + length], out=total)
            for tap, offset in enumerate(others, 2):
                np.add(total, products[tap, :, offset : offset + length], out=total)
            out[image] = part(sums.reshape(how.kernels, count, *placed.padded[1:]), shown)
            if finish is not None:
                finish(image, *everything)

    return correlate
