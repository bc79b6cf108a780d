"""Correlation by columns: the elements under each position of the kernel, gathered, are multiplied with the kernels.

Large results are computed a block of rows at a time, so that the columns stay near the processor. For small ones all
columns are gathered first, and the product is cut by kernels.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from .correlation import Correlate, Correlation, Finish
from .kernel import Allocate, Array
from .padding import fill, phased
from .windows import Placed, Sizes, part
from .workers import SHARES_PRODUCTS, THREADS, cuts, multiplied, product_parts, shared

COLUMN_BYTES: Final = 1 << 20
"""About how many bytes of columns are gathered at a time."""
GATHERED: Final = 1 << 15
"""Fewer elements than this are gathered by one thread."""


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """As `correlation.prepared`."""
    placed, r = how.placed, len(how.placed.data)
    split = (1,) * (r - 1) + (placed.strides[-1] if placed.kernel[-1] > 1 else 1,)
    copies = placed.padded != placed.data or split[-1] > 1
    shape = phased(placed, split)
    pieces = cuts(how.channels, THREADS if how.channels * math.prod(placed.data) > GATHERED else 1)
    row = how.channels * how.taps * math.prod(placed.count[1:]) * itemsize
    rows = min(max(1, COLUMN_BYTES // row), placed.count[0])
    at_once = rows * THREADS >= placed.count[0]
    run = _at_once(how, split[-1]) if at_once else _by_rows(how, split[-1], rows)

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        if not copies:
            run(x.reshape(*x.shape[:2], *split, *x.shape[2:]), kernels, out, allocate, finish)
            return
        source = allocate((*x.shape[:2], *shape), x.dtype)
        shared(len(pieces), lambda k, _: fill(source[:, pieces[k]], x[:, pieces[k]], placed, split))
        run(source, kernels, out, allocate, finish)

    return correlate


def _by_rows(how: Correlation, split: int, rows: int) -> Correlate:
    placed = how.placed
    rest = math.prod(placed.count[1:])
    depth = how.channels * how.taps * rest
    blocks = -(-placed.count[0] // rows)
    everything = slice(0, how.channels)

    def correlate(source: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        matrices = kernels.reshape(how.group, how.each, how.read * how.taps)
        memory = allocate((THREADS if SHARES_PRODUCTS else 1, rows * depth), source.dtype)
        target = out.reshape(how.images, how.group, how.each, how.positions)

        def work(number: int, worker: int) -> None:
            image, first = number // blocks, number % blocks * rows
            height = min(rows, placed.count[0] - first)
            columns = memory[worker, : height * depth].reshape(how.channels, *placed.kernel, height, *placed.count[1:])
            _gather(columns, source, how, split, image, everything, first)
            places = slice(first * rest, (first + height) * rest)
            data = columns.reshape(how.group, how.read * how.taps, -1)
            np.matmul(matrices, data, out=target[image, :, :, places])
            if finish is not None:
                finish(image, slice(0, how.kernels), places)

        multiplied(how.images * blocks, work)

    return correlate


def _at_once(how: Correlation, split: int) -> Correlate:
    placed, each, positions = how.placed, how.each, how.positions
    shape = (how.channels, *placed.kernel, *placed.count)
    pieces = cuts(how.channels, THREADS if math.prod(shape) > GATHERED else 1)
    parts = product_parts(how.multiplications)
    wide = how.group == 1 and positions > each
    groups = cuts(how.group, min(parts, how.group))
    inner = cuts(positions if wide else each, 1 if how.group > 1 else parts)
    todo = [(g, k) for g in groups for k in inner]

    def correlate(source: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        matrices = kernels.reshape(how.group, each, how.read * how.taps)
        columns = allocate(shape, source.dtype)
        data = columns.reshape(how.group, how.read * how.taps, positions)
        target = out.reshape(how.images, how.group, each, positions)

        def one(image: int) -> None:
            def gather(number: int, _worker: int) -> None:
                channels = pieces[number]
                _gather(columns[channels], source, how, split, image, channels, 0)

            def multiply(number: int, _worker: int) -> None:
                g, k = todo[number]
                rows, places = (slice(0, each), k) if wide else (k, slice(0, positions))
                np.matmul(matrices[g, rows], data[g, :, places], out=target[image, g, rows, places])
                if finish is not None:
                    finish(image, rows if how.group == 1 else slice(g.start * each, g.stop * each), places)

            shared(len(pieces), gather)
            multiplied(len(todo), multiply)

        for image in range(how.images):
            one(image)

    return correlate


def _gather(
    columns: Array, source: Array, how: Correlation, split: int, image: int, channels: slice, first: int
) -> None:
    """Copies the elements under the kernel, at output rows from the first on, for some channels."""
    r = len(how.placed.data)
    for last in range(how.placed.kernel[-1]):
        under = _under(source, how.placed, split, last, image, channels.start, first, columns.shape)
        part(columns, (last, *(slice(None),) * r))[...] = under


def _under(
    source: Array, placed: Placed, split: int, last: int, image: int, channel: int, first: int, shape: Sizes
) -> Array:
    """The elements under the positions of the kernel with this last index, from a channel and an output row on.

    Shape: channels, kernel without its last axis, rows, other output axes.
    """
    r = len(placed.data)
    s, t = placed.strides, placed.dilations
    at = last * t[-1]
    strides = source.strides
    axes = strides[-r:]
    steps = [step * axis for step, axis in zip(s, axes, strict=True)]
    if split > 1:
        steps[-1] = axes[-1]
    offset = image * strides[0] + channel * strides[1] + first * steps[0]
    offset += (at % split) * strides[1 + r] + (at // split) * axes[-1]
    taps = [t[k] * axes[k] for k in range(r - 1)]
    return np.ndarray(
        (shape[0], *placed.kernel[:-1], *shape[1 + r :]),
        source.dtype,
        buffer=source,
        offset=offset,
        strides=(strides[1], *taps, *steps),
    )
