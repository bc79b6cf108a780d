"""Correlation by positions of the kernel: the product of each with all data, then the sum of the shifted products.

It moves as many elements as there are kernels for each position, and gathers no columns. The padded data are flat, so
that a shift is an offset; the ends of rows compute what nobody reads. Each thread has output rows of its own; the rows
of the data that two of them need are multiplied twice.
"""

from __future__ import annotations

import math

import numpy as np

from .correlation import Correlate, Correlation, Finish
from .kernel import Allocate, Array
from .padding import fill, phased
from .windows import part
from .workers import byte_parts, cuts, multiplied, product_parts, shared


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """As `correlation.prepared`, for strides of 1 and one group."""
    placed, r = how.placed, len(how.placed.data)
    sizes = phased(placed, (1,) * r)
    pitch = [math.prod(placed.padded[k + 1 :]) for k in range(r)]
    size = math.prod(placed.padded)
    first, second, *others = (
        sum(k * t * p for k, t, p in zip(tap, placed.dilations, pitch, strict=True))
        for tap in np.ndindex(*placed.kernel)
    )
    channels = cuts(how.channels, byte_parts(how.channels * size * itemsize))
    rows = cuts(placed.count[0], product_parts(how.multiplications))
    most = max(it.stop - it.start for it in rows)
    beyond = (placed.extent[0] - 1) * pitch[0]
    read = sum((o - 1) * p for o, p in zip(placed.count[1:], pitch[1:], strict=True)) + 1  # of the last row
    shown = tuple(slice(0, o) for o in placed.count[1:])
    rest = math.prod(placed.count[1:])

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        source = allocate((how.channels, *sizes), x.dtype)
        flat = source.reshape(how.channels, size)
        memory = allocate((len(rows), how.taps * how.kernels * (most * pitch[0] + beyond)), x.dtype)
        totals = allocate((len(rows), how.kernels * most * pitch[0]), x.dtype)

        def one(image: int) -> None:
            def pad(number: int, _worker: int) -> None:
                fill(source[channels[number]], x[image, channels[number]], placed, (1,) * r)

            def work(number: int, worker: int) -> None:
                these = rows[number]
                count = these.stop - these.start
                whole = count * pitch[0]
                products = memory[worker, : how.taps * how.kernels * (whole + beyond)].reshape(len(kernels), -1)
                start = these.start * pitch[0]
                np.matmul(kernels, flat[:, start : start + whole + beyond], out=products)
                parts = products.reshape(how.taps, how.kernels, -1)
                sums = totals[worker, : how.kernels * whole].reshape(how.kernels, whole)
                length = whole - pitch[0] + read
                total = sums[:, :length]
                np.add(parts[0, :, first : first + length], parts[1, :, second : second + length], out=total)
                for tap, offset in enumerate(others, 2):
                    np.add(total, parts[tap, :, offset : offset + length], out=total)
                out[image, :, these] = part(sums.reshape(how.kernels, count, *placed.padded[1:]), shown)
                if finish is not None:
                    finish(image, slice(0, how.kernels), slice(these.start * rest, these.stop * rest))

            shared(len(channels), pad)
            multiplied(len(rows), work)

        for image in range(how.images):
            one(image)

    return correlate
