"""Correlation by positions of the kernel: the product of each with all data, then the sum of the shifted products.

It moves as many elements as there are kernels for each position, and gathers no columns. The padded data are flat, so
that a shift is an offset; the ends of rows compute what nobody reads.
"""

from __future__ import annotations

import math

import numpy as np

from .correlation import Correlate, Correlation, Finish
from .kernel import Allocate, Array
from .padding import fill, phased
from .windows import part
from .workers import THREADS, cuts, multiplied, product_parts, shared


def prepared(how: Correlation, _itemsize: int) -> Correlate:
    """As `correlation.prepared`, for strides of 1 and one group."""
    placed, r = how.placed, len(how.placed.data)
    sizes = phased(placed, (1,) * r)
    pitch = [math.prod(placed.padded[k + 1 :]) for k in range(r)]
    whole, size = placed.count[0] * pitch[0], math.prod(placed.padded)
    length = sum((o - 1) * p for o, p in zip(placed.count, pitch, strict=True)) + 1
    first, second, *others = (
        sum(k * t * p for k, t, p in zip(tap, placed.dilations, pitch, strict=True))
        for tap in np.ndindex(*placed.kernel)
    )
    channels, rows = cuts(how.channels, THREADS), cuts(how.kernels, THREADS)
    places = cuts(size, product_parts(how.multiplications))
    shown = tuple(slice(0, o) for o in placed.count)

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        source = allocate((how.channels, *sizes), x.dtype)
        flat = source.reshape(how.channels, size)
        products = allocate((how.taps * how.kernels, size), x.dtype)
        shifted = products.reshape(how.taps, how.kernels, size)
        sums = allocate((how.kernels, whole), x.dtype)

        def one(image: int) -> None:
            def pad(number: int, _worker: int) -> None:
                fill(source[channels[number]], x[image, channels[number]], placed, (1,) * r)

            def multiply(number: int, _worker: int) -> None:
                np.matmul(kernels, flat[:, places[number]], out=products[:, places[number]])

            def add(number: int, _worker: int) -> None:
                these = rows[number]
                total, parts = sums[these, :length], shifted[:, these]
                np.add(parts[0, :, first : first + length], parts[1, :, second : second + length], out=total)
                for tap, offset in enumerate(others, 2):
                    np.add(total, parts[tap, :, offset : offset + length], out=total)
                out[image, these] = part(sums[these].reshape(-1, placed.count[0], *placed.padded[1:]), shown)
                if finish is not None:
                    finish(image, these, slice(0, how.positions))

            shared(len(channels), pad)
            multiplied(len(places), multiply)
            shared(len(rows), add)

        for image in range(how.images):
            one(image)

    return correlate
