"""Cross-correlation of data with kernels, as products of matrices: what Conv and its relatives for integers share.

A kernel of one element that visits all data is one product. Kernels that read one channel each take the flat
data of the channel, shifted for each position of the kernel, a block of channels at a time. All others gather the
elements under each position of the kernel as columns, a block of output rows at a time. Both multiply them with the
kernels as matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from .kernel import Allocate, Array
from .windows import Placed, Sizes, part

COLUMN_BYTES: Final = 2 << 20
"""About how many bytes of columns are gathered at a time."""
CHANNEL_BYTES: Final = 512 << 10
"""About how many bytes of shifted channels are gathered at a time: they stay near the processor."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Sizes. images, channels: of the data. group: the channels of a group are channels / group. kernels: in all."""

    images: int
    channels: int
    group: int
    kernels: int
    placed: Placed

    @property
    def shape(self) -> Sizes:
        """The shape of the result."""
        return (self.images, self.kernels, *self.placed.count)


def correlate(x: Array, kernels: Array, bias: Array | None, how: Correlation, out: Array, allocate: Allocate) -> None:
    """Writes the correlation. x, kernels and out have one type, float or double; kernels and out are contiguous."""
    x = np.ascontiguousarray(x)
    if out.size == 0:
        return
    if kernels.size == 0:
        out[...] = 0 if bias is None else _beside(bias, out.ndim)
    elif how.placed.is_same:
        _directly(x, kernels, bias, how, out)
    elif how.channels == how.group and how.group > 1:
        _channel_by_channel(x, kernels, bias, how, out, allocate)
    else:
        _by_columns(x, kernels, bias, how, out, allocate)


def _beside(bias: Array, rank: int) -> Array:
    return bias.reshape(-1, *(1,) * (rank - 2))


def _directly(x: Array, kernels: Array, bias: Array | None, how: Correlation, out: Array) -> None:
    each, read = how.kernels // how.group, how.channels // how.group
    matrices = kernels.reshape(how.group, each, read)
    data = x.reshape(how.images, how.group, read, -1)
    np.matmul(matrices, data, out=out.reshape(how.images, how.group, each, -1))
    if bias is not None:
        np.add(out, _beside(bias, out.ndim), out=out)


# ---- padding and phases -----------------------------------------------------------------------


def phases(x: Array, placed: Placed, split: Sizes, allocate: Allocate) -> Array:
    """The padded data, each spatial axis split by position modulo `split`.

    Shape: images, channels, split..., ceil(padded / split)...; what lies beyond the padded data is 0.
    """
    r = len(split)
    sizes = tuple(-(-p // s) for p, s in zip(placed.padded, split, strict=True))
    found = allocate((*x.shape[:2], *split, *sizes), x.dtype)
    exact = all(p == d for p, d in zip(placed.padded, placed.data, strict=True)) and all(
        p % s == 0 for p, s in zip(placed.padded, split, strict=True)
    )
    if not exact:
        found[...] = 0
    for phase in np.ndindex(*split):
        source: list[slice] = []
        target: list[slice] = []
        for k in range(r):
            first = (phase[k] - placed.before[k]) % split[k]
            start = (first + placed.before[k]) // split[k]
            count = max(0, -(-(placed.data[k] - first) // split[k]))
            source.append(slice(first, None, split[k]))
            target.append(slice(start, start + count))
        part(found, (*phase, *target))[...] = part(x, source)
    return found


# ---- columns ----------------------------------------------------------------------------------


def _by_columns(x: Array, kernels: Array, bias: Array | None, how: Correlation, out: Array, allocate: Allocate) -> None:
    placed, r = how.placed, len(how.placed.data)
    split = (1,) * (r - 1) + (placed.strides[-1] if placed.kernel[-1] > 1 else 1,)
    padded = placed.padded != placed.data
    source = (
        phases(x, placed, split, allocate) if padded or split[-1] > 1 else x.reshape(*x.shape[:2], *split, *x.shape[2:])
    )
    each, read = how.kernels // how.group, how.channels // how.group
    taps = math.prod(placed.kernel)
    matrices = kernels.reshape(how.group, each, read * taps)
    rest = placed.count[1:]
    row = how.channels * taps * math.prod(rest) * x.itemsize
    target = out.reshape(how.images, how.group, each, -1)
    beside = None if bias is None else bias.reshape(how.group, each, 1)
    rows = min(max(1, COLUMN_BYTES // row), placed.count[0])
    several = min(max(1, COLUMN_BYTES // (row * rows)), how.images) if rows == placed.count[0] else 1
    memory = allocate((several * rows * row // x.itemsize,), x.dtype)
    for image, first, count, height in _blocks(how.images, placed.count[0], several, rows):
        shape = (count, how.channels, *placed.kernel, height, *rest)
        columns = memory[: math.prod(shape)].reshape(shape)
        for last in range(placed.kernel[-1]):
            under = _under(source, placed, split[-1], last, image, first, shape)
            part(columns, (last, *(slice(None),) * r))[...] = under
        product = target[image : image + count, :, :, first * math.prod(rest) : (first + height) * math.prod(rest)]
        np.matmul(matrices, columns.reshape(count, how.group, read * taps, -1), out=product)
        if beside is not None:
            np.add(product, beside, out=product)


def _blocks(images: int, height: int, several: int, rows: int) -> Iterator[tuple[int, int, int, int]]:
    for image in range(0, images, several):
        for first in range(0, height, rows):
            yield image, first, min(several, images - image), min(rows, height - first)


def _under(source: Array, placed: Placed, split: int, last: int, image: int, first: int, shape: Sizes) -> Array:
    """The elements under the positions of the kernel with this last index, for a block of images and output rows.

    Shape: images, channels, kernel without its last axis, rows, other output axes.
    """
    r = len(placed.data)
    s, t = placed.strides, placed.dilations
    at = last * t[-1]
    strides = source.strides
    axes = strides[-r:]
    steps = [step * axis for step, axis in zip(s, axes, strict=True)]
    if split > 1:
        steps[-1] = axes[-1]
    offset = image * strides[0] + first * steps[0] + (at % split) * strides[1 + r] + (at // split) * axes[-1]
    taps = [t[k] * axes[k] for k in range(r - 1)]
    return np.ndarray(
        (*shape[:2], *placed.kernel[:-1], *shape[2 + r :]),
        source.dtype,
        buffer=source,
        offset=offset,
        strides=(*strides[:2], *taps, *steps),
    )


# ---- one channel each -------------------------------------------------------------------------


def _channel_by_channel(
    x: Array, kernels: Array, bias: Array | None, how: Correlation, out: Array, allocate: Allocate
) -> None:
    """Each position of the kernel is a shift of the flat padded data; the ends of rows compute what nobody reads."""
    placed, each = how.placed, how.kernels // how.group
    s, taps = placed.strides, math.prod(placed.kernel)
    source = phases(x, placed, s, allocate)
    sizes = source.shape[-len(s) :]
    pitch = [math.prod(sizes[k + 1 :]) for k in range(len(s))]
    length = sum((o - 1) * p for o, p in zip(placed.count, pitch, strict=True)) + 1
    whole = placed.count[0] * pitch[0]
    flat = source.reshape(how.images, how.channels, math.prod(s), -1)
    weights = kernels.reshape(how.channels, each, taps)
    block = min(max(1, CHANNEL_BYTES // ((taps + each) * whole * x.itemsize)), how.channels)
    columns = allocate((block, taps, length), x.dtype)
    sums = allocate((block, each, whole), x.dtype)
    shown = tuple(slice(0, o) for o in placed.count)
    target = out.reshape(how.images, how.channels, each, *placed.count)
    beside = None if bias is None else bias.reshape(how.channels, each, *(1,) * len(s))
    places = [_shift(offset, placed, s, pitch) for offset in np.ndindex(*placed.kernel)]
    for image in range(how.images):
        for first in range(0, how.channels, block):
            data = flat[image, first : first + block]
            count = data.shape[0]
            for tap, (phase, shift) in enumerate(places):
                columns[:count, tap] = data[:, phase, shift : shift + length]
            np.matmul(weights[first : first + block], columns[:count], out=sums[:count, :, :length])
            laid = part(sums[:count].reshape(count, each, placed.count[0], *sizes[1:]), shown)
            added = 0 if beside is None else beside[first : first + block]
            np.add(laid, added, out=target[image, first : first + block])


def _shift(offset: Sizes, placed: Placed, s: Sizes, pitch: list[int]) -> tuple[int, int]:
    """For a position of the kernel the phase it reads and where, both in flat positions."""
    at = [k * t for k, t in zip(offset, placed.dilations, strict=True)]
    phase = 0
    for a, step in zip(at, s, strict=True):
        phase = phase * step + a % step
    return phase, sum(a // step * p for a, step, p in zip(at, s, pitch, strict=True))
