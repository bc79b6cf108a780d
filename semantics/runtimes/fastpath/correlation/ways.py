"""There are four ways to correlate, and sizes decide between them (`sizes.way_of`).

A kernel of one element that visits all data is one product (here); kernels that read one channel each take the shifted
data of the channel (`channels`); few kernels that read many channels are multiplied with all data for each position of
the kernel, and the products are shifted and added (`taps`); all others gather the elements under each position of the
kernel as columns (`columns`).
"""

from __future__ import annotations

import numpy as np

from ..kernel import Allocate, Array
from . import channels, columns, taps
from .sizes import Correlate, Correlation, Finish, way_of


def prepared(how: Correlation, itemsize: int) -> Correlate:
    """What correlates data of these sizes, with elements of so many bytes."""
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
