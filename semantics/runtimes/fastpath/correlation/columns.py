"""Correlation by columns: the elements under each position of the kernel, gathered, are multiplied with the kernels.

The result is computed a block of rows at a time, so that the columns stay near the processor.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ..kernel import Allocate, Array
from ..padding import fill, phased
from ..windows import Placed, Sizes, part
from ..workers import byte_parts, cuts, shared
from .sizes import Correlate, Correlation, Finish

COLUMN_BYTES: Final = 2 << 20
"""About how many bytes of columns are gathered at a time; `_MORE` times as many where products would be narrow."""
_MORE, _NARROW = 3, 256


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """As `ways.prepared`."""
    placed, r = how.placed, len(how.placed.data)
    split = (1,) * (r - 1) + (placed.strides[-1] if placed.kernel[-1] > 1 else 1,)
    copies = placed.padded != placed.data or split[-1] > 1
    shape = phased(placed, split)
    pieces = cuts(how.channels, byte_parts(how.channels * math.prod(placed.data) * itemsize))
    run = _by_rows(how, split[-1], _rows(how, itemsize))

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        if copies:
            source = allocate((*x.shape[:2], *shape), x.dtype)
            shared(len(pieces), lambda k, _: fill(source[:, pieces[k]], x[:, pieces[k]], placed, split))
        else:
            source = x.reshape(*x.shape[:2], *split, *x.shape[2:])
        run(source, kernels, out, allocate, finish)

    return correlate


def _rows(how: Correlation, itemsize: int) -> int:
    """How many output rows are computed at a time: few enough that their columns stay near the processor, enough that
    products are not narrow."""
    rest = math.prod(how.placed.count[1:])
    row = how.channels * how.taps * rest * itemsize
    wide = min(_MORE * COLUMN_BYTES // row, -(-_NARROW // rest))
    height = how.placed.count[0]
    blocks = -(-height // min(max(1, COLUMN_BYTES // row, wide), height))
    return -(-height // blocks)


def _by_rows(how: Correlation, split: int, rows: int) -> Correlate:
    placed = how.placed
    rest = math.prod(placed.count[1:])
    depth = how.channels * how.taps * rest
    everything = slice(0, how.kernels)

    def correlate(source: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        matrices = kernels.reshape(how.group, how.each, how.read * how.taps)
        memory = allocate((rows * depth,), source.dtype)
        target = out.reshape(how.images, how.group, how.each, how.positions)
        for image in range(how.images):
            for first in range(0, placed.count[0], rows):
                height = min(rows, placed.count[0] - first)
                columns = memory[: height * depth].reshape(how.channels, *placed.kernel, height, *placed.count[1:])
                _gather(columns, source[image], how, split, first)
                places = slice(first * rest, (first + height) * rest)
                data = columns.reshape(how.group, how.read * how.taps, -1)
                np.matmul(matrices, data, out=target[image, :, :, places])
                if finish is not None:
                    finish(image, everything, places)

    return correlate


def _gather(columns: Array, source: Array, how: Correlation, split: int, first: int) -> None:
    """Copies the elements of an image under the kernel, at output rows from the first on."""
    r = len(how.placed.data)
    if split == 1:
        columns[...] = _under(source, how.placed, split, None, first, columns.shape)
        return
    for last in range(how.placed.kernel[-1]):
        under = _under(source, how.placed, split, last, first, columns.shape)
        part(columns, (last, *(slice(None),) * r))[...] = under


def _under(source: Array, placed: Placed, split: int, last: int | None, first: int, shape: Sizes) -> Array:
    """The elements under the positions of the kernel with this last index, from an output row on.

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
    offset = first * steps[0] + (at % split) * strides[r] + (at // split) * axes[-1]
    taps = [t[k] * axes[k] for k in range(inner)]
    return np.ndarray(
        (shape[0], *placed.kernel[:inner], *shape[1 + r :]),
        source.dtype,
        buffer=source,
        offset=offset,
        strides=(strides[0], *taps, *steps),
    )
