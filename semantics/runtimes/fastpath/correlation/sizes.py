"""The sizes of a correlation, the way that they decide on, and how the kernels lie for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ..kernel import Allocate, Array
from ..windows import Placed, Sizes

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
