"""Correlation of kernels that read one channel each: every position of the kernel is a shift of the flat padded data.

A block of channels is padded, shifted and multiplied at a time, so that it stays near the processor. The ends of rows
compute what nobody reads.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from ..kernel import Allocate, Array
from ..padding import fill, phased
from ..windows import Placed, Sizes, part
from ..workers import alone, byte_parts, shared
from .sizes import Correlate, Correlation, Finish

CHANNEL_BYTES: Final = 4 << 20
"""About how many bytes of shifted channels are gathered at a time."""


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """As `ways.prepared`, for as many groups as channels."""
    placed, each, taps = how.placed, how.each, how.taps
    s = placed.strides
    shape = phased(placed, s)
    sizes = shape[len(s) :]
    pitch = [math.prod(sizes[k + 1 :]) for k in range(len(s))]
    length = sum((o - 1) * p for o, p in zip(placed.count, pitch, strict=True)) + 1
    whole = placed.count[0] * pitch[0]
    row = (taps + each) * whole * itemsize
    parts = byte_parts(how.channels * row // 4)
    wanted = max(parts, -(-how.channels * row // CHANNEL_BYTES))
    block = -(-how.channels // min(how.channels, -(-wanted // parts) * parts))
    shown = tuple(slice(0, o) for o in placed.count)
    steps = tuple(t * p * itemsize for t, p in zip(placed.dilations, pitch, strict=True))
    places = [_shift(offset, placed, s, pitch) for offset in np.ndindex(*placed.kernel)]
    blocks = -(-how.channels // block)
    split, everything = math.prod(s), slice(0, how.positions)
    run = shared if parts > 1 else alone

    def correlate(x: Array, kernels: Array, out: Array, allocate: Allocate, finish: Finish | None) -> None:
        padded = allocate((parts, block, math.prod(shape)), x.dtype)
        columns = allocate((parts, block, taps, length), x.dtype)
        sums = allocate((parts, block, each, whole), x.dtype)
        weights = kernels.reshape(how.channels, each, taps)
        target = out.reshape(how.images, how.channels, each, *placed.count)

        def work(number: int, worker: int) -> None:
            image, first = number // blocks, number % blocks * block
            count = min(block, how.channels - first)
            source = padded[worker, :count]
            fill(source.reshape(count, *shape), x[image, first : first + count], placed, s)
            data = source.reshape(count, split, -1)
            gathered, found = columns[worker, :count], sums[worker, :count]
            if split == 1:
                strides = (source.strides[0], *steps, itemsize)
                gathered.reshape(count, *placed.kernel, length)[...] = np.ndarray(
                    (count, *placed.kernel, length), x.dtype, source, 0, strides
                )
            else:
                for tap, (phase, shift) in enumerate(places):
                    gathered[:, tap] = data[:, phase, shift : shift + length]
            np.matmul(weights[first : first + count], gathered, out=found[:, :, :length])
            target[image, first : first + count] = part(found.reshape(count, each, placed.count[0], *sizes[1:]), shown)
            if finish is not None:
                finish(image, slice(first * each, (first + count) * each), everything)

        run(how.images * blocks, work)

    return correlate


def _shift(offset: Sizes, placed: Placed, s: Sizes, pitch: list[int]) -> tuple[int, int]:
    """For a position of the kernel the phase it reads and where, both in flat positions."""
    at = [k * t for k, t in zip(offset, placed.dilations, strict=True)]
    phase = 0
    for a, step in zip(at, s, strict=True):
        phase = phase * step + a % step
    return phase, sum(a // step * p for a, step, p in zip(at, s, pitch, strict=True))
