"""Cross-correlation of data with kernels, as products of matrices: what Conv and its relatives for integers share.

There are four ways, and sizes decide between them (`way_of`): a kernel of one element that visits all data is one
product (here); kernels that read one channel each take the shifted data of the channel (`channels`); few kernels that
read many channels are multiplied with all data for each position of the kernel, and the products are shifted and added
(`taps`); all others gather the elements under each position of the kernel as columns (`columns`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from .kernel import Allocate, Array
from .windows import Placed, Sizes

Way = Literal["directly", "channels", "taps", "columns"]
Finish = Callable[[int, slice, slice], None]
"""What is done with a part of the result when it has been written: an image, kernels, positions in row-major order."""
Correlate = Callable[[Array, Array, Array, Allocate, "Finish | None"], None]
"""Writes the correlation of data with kernels (`laid`) to the third array. All have one type, float or double, and are
contiguous. The last argument: called once for each part of the result."""

TAPS_ELEMENTS: Final = 4 << 20
"""Products of all positions of the kernel are kept up to so many elements."""


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

    @property
    def each(self) -> int:
        """How many kernels a group has."""
        return self.kernels // self.group

    @property
    def read(self) -> int:
        """How many channels a kernel reads."""
        return self.channels // self.group

    @property
    def taps(self) -> int:
        """How many positions a kernel has."""
        return math.prod(self.placed.kernel)

    @property
    def positions(self) -> int:
        """How many positions a kernel visits in an image."""
        return math.prod(self.placed.count)

    @property
    def multiplications(self) -> int:
        """For one image."""
        return self.kernels * self.read * self.taps * self.positions


def way_of(how: Correlation) -> Way:
    """The way that moves the fewest elements."""
    placed = how.placed
    if placed.is_same:
        return "directly"
    if how.channels == how.group and how.group > 1:
        return "channels"
    steps_by_one = placed.strides == (1,) * len(placed.strides)
    few = how.group == 1 and how.taps > 1 and 3 * how.kernels <= 2 * how.channels
    if steps_by_one and few and how.taps * how.kernels * math.prod(placed.padded) <= TAPS_ELEMENTS:
        return "taps"
    return "columns"


def laid(kernels: Array, how: Correlation) -> Array:
    """The kernels as `Correlate` takes them: contiguous, for some ways in an order of their own."""
    if way_of(how) == "taps":
        rows = kernels.reshape(how.kernels, how.channels, how.taps).transpose(2, 0, 1)
        return np.ascontiguousarray(rows).reshape(how.taps * how.kernels, how.channels)
    return np.ascontiguousarray(kernels)


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """What correlates data of these sizes, with elements of so many bytes."""
    from . import channels, columns, taps

    ways = {"directly": directly, "channels": channels.prepared, "taps": taps.prepared, "columns": columns.prepared}
    nothing = 0 in how.shape or 0 in (how.read, how.taps)
    return _zeros(how) if nothing else ways[way_of(how)](how, itemsize)


def _zeros(how: Correlation) -> Correlate:
    def correlate(_x: Array, _kernels: Array, out: Array, _allocate: Allocate, finish: Finish | None) -> None:
        out[...] = 0
        for image in range(how.images if finish is not None and out.size else 0):
            if finish is not None:
                finish(image, slice(0, how.kernels), slice(0, how.positions))

    return correlate


def directly(how: Correlation, _itemsize: int) -> Correlate:
    """One product for each group and image."""
    everything = slice(0, how.kernels), slice(0, how.positions)

    def correlate(x: Array, kernels: Array, out: Array, _allocate: Allocate, finish: Finish | None) -> None:
        matrices = kernels.reshape(how.group, how.each, how.read)
        data = x.reshape(how.images, how.group, how.read, how.positions)
        target = out.reshape(how.images, how.group, how.each, how.positions)
        for image in range(how.images):
            np.matmul(matrices, data[image], out=target[image])
            if finish is not None:
                finish(image, *everything)

    return correlate
