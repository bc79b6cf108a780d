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
from .workers import byte_parts, cuts, multiplied, product_parts, product_workers, shared

COLUMN_BYTES: Final = 1 << 20
"""About how many bytes of columns are gathered at a time; `_MORE` times as many where products would be narrow."""
_MORE, _NARROW = 6, 256


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """As `correlation.prepared`."""
    placed, r = how.placed, len(how.placed.data)
    split = (1,) * (r - 1) + (placed.strides[-1] if placed.kernel[-1] > 1 else 1,)
    copies = placed.padded != placed.data or split[-1] > 1
    shape = phased(placed, split)
    parts = product_parts(how.multiplications)
    if parts > 1 and (how.positions <= how.each or how.positions < parts * _NARROW // 4):
        return _at_once(how, split, shape if copies else None, itemsize)
    pieces = cuts(how.channels, byte_parts(how.channels * math.prod(placed.data) * itemsize))
    run = _by_rows(how, split[-1], _rows(how, parts, itemsize))

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        if not copies:
            run(_split(x, split), kernels, out, allocate, finish)
            return
        source = allocate((*x.shape[:2], *shape), x.dtype)
        shared(len(pieces), lambda k, _: fill(source[:, pieces[k]], x[:, pieces[k]], placed, split))
        run(source, kernels, out, allocate, finish)

    return correlate


def _split(x: Array, split: Sizes) -> Array:
    """Data that need no copy, in the shape of `phased`."""
    return x.reshape(*x.shape[:2], *split, *x.shape[2:])


def _rows(how: Correlation, parts: int, itemsize: int) -> int:
    """How many output rows are computed at a time: few enough that their columns stay near the processor, enough that
    products are not narrow, and such that each thread has as many."""
    rest = math.prod(how.placed.count[1:])
    row = how.channels * how.taps * rest * itemsize
    wide = min(_MORE * COLUMN_BYTES // row, -(-_NARROW // rest))
    height = how.placed.count[0]
    blocks = -(-height // min(max(1, COLUMN_BYTES // row, wide), height))
    return -(-height // min(-(-blocks // parts) * parts, height))


def _by_rows(how: Correlation, split: int, rows: int) -> Correlate:
    placed = how.placed
    rest = math.prod(placed.count[1:])
    depth = how.channels * how.taps * rest
    blocks = -(-placed.count[0] // rows)
    everything = slice(0, how.channels)
    memories = product_workers(how.images * blocks)

    def correlate(source: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        matrices = kernels.reshape(how.group, how.each, how.read * how.taps)
        memory = allocate((memories, rows * depth), source.dtype)
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


def _at_once(how: Correlation, split: Sizes, copied: Sizes | None, itemsize: int) -> Correlate:
    """The columns of all positions, then the product, cut by kernels. copied: the shape of `phased` where the data are
    copied."""
    placed, each, positions = how.placed, how.each, how.positions
    shape = (how.channels, *placed.kernel, *placed.count)
    pieces = cuts(how.channels, byte_parts(math.prod(shape) * itemsize))
    parts = product_parts(how.multiplications)
    groups = cuts(how.group, min(parts, how.group))
    rows = cuts(each, 1 if how.group > 1 else parts)
    todo = [(g, k) for g in groups for k in rows]

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        matrices = kernels.reshape(how.group, each, how.read * how.taps)
        source = _split(x, split) if copied is None else allocate((*x.shape[:2], *copied), x.dtype)
        columns = allocate(shape, x.dtype)
        data = columns.reshape(how.group, how.read * how.taps, positions)
        target = out.reshape(how.images, how.group, each, positions)

        def one(image: int) -> None:
            def gather(number: int, _worker: int) -> None:
                channels = pieces[number]
                if copied is not None:
                    fill(source[image, channels], x[image, channels], placed, split)
                _gather(columns[channels], source, how, split[-1], image, channels, 0)

            def multiply(number: int, _worker: int) -> None:
                g, k = todo[number]
                np.matmul(matrices[g, k], data[g], out=target[image, g, k])
                if finish is not None:
                    kernels = k if how.group == 1 else slice(g.start * each, g.stop * each)
                    finish(image, kernels, slice(0, positions))

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
    if split == 1:
        columns[...] = _under(source, how.placed, split, None, image, channels.start, first, columns.shape)
        return
    for last in range(how.placed.kernel[-1]):
        under = _under(source, how.placed, split, last, image, channels.start, first, columns.shape)
        part(columns, (last, *(slice(None),) * r))[...] = under


def _under(
    source: Array, placed: Placed, split: int, last: int | None, image: int, channel: int, first: int, shape: Sizes
) -> Array:
    """The elements under the positions of the kernel with this last index, from a channel and an output row on.

    Shape: channels, kernel without its last axis, rows, other output axes. Without a last index: the whole kernel.
    """
    r = len(placed.data)
    s, t = placed.strides, placed.dilations
    at = 0 if last is None else last * t[-1]
    inner = r if last is None else r - 1
    strides = source.strides
    axes = strides[-r:]
    steps = [step * axis for step, axis in zip(s, axes, strict=True)]
    if split > 1:
        steps[-1] = axes[-1]
    offset = image * strides[0] + channel * strides[1] + first * steps[0]
    offset += (at % split) * strides[1 + r] + (at // split) * axes[-1]
    taps = [t[k] * axes[k] for k in range(inner)]
    return np.ndarray(
        (shape[0], *placed.kernel[:inner], *shape[1 + r :]),
        source.dtype,
        buffer=source,
        offset=offset,
        strides=(strides[1], *taps, *steps),
    )
