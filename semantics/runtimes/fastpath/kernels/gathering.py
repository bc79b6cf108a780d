"""Elements and slices gathered from the places that indices name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ....model.values import Value
from ..kernel import Allocate, Array, Compute, Kernel, Site
from ..reading import integer, require, tensor
from .shape import Shape, axis_of, part, shown


def check_places(indices: Array, size: int) -> None:
    """Raises KernelError unless all indices are positions along an axis of this size, counted from either end."""
    if indices.size:
        inside = -size <= int(indices.min()) and int(indices.max()) < size
        require(inside, "the indices are positions along the axis, counted from either end")


def linear(indices: Array, sizes: Shape) -> Array:
    """The positions that tuples along the last axis of `indices` name among those of a tensor of these sizes."""
    found = np.zeros(indices.shape[:-1], np.intp)
    for k, size in enumerate(sizes):
        place = indices[..., k]
        check_places(place, size)
        found *= size
        found += np.where(place < 0, place + size, place)
    return found


def _gather(site: Site) -> Compute:
    stated = integer(site, "axis", 0)

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x, indices = tensor(inputs, 0), tensor(inputs, 1)
        axis = axis_of(stated, x.ndim)
        check_places(indices, x.shape[axis])
        if indices.ndim == 0:
            at = int(indices) % x.shape[axis]
            found = part(x, [*(slice(None),) * axis, slice(at, at + 1)])
            return (shown(found.squeeze(axis)),)
        out = allocate((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
        if out.size:
            np.take(x, indices, axis, out=out, mode="wrap")
        return (out,)

    return compute


def _gather_elements(site: Site) -> Compute:
    stated = integer(site, "axis", 0)

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x, indices = tensor(inputs, 0), tensor(inputs, 1)
        axis = axis_of(stated, x.ndim)
        check_beside(x, indices, axis)
        out = allocate(indices.shape, x.dtype)
        if out.size:
            beside = [slice(None) if k == axis else slice(n) for k, n in enumerate(indices.shape)]
            np.copyto(out, np.take_along_axis(part(x, beside), indices, axis))
        return (out,)

    return compute


def check_beside(x: Array, indices: Array, axis: int) -> None:
    """Raises KernelError unless each index has a place in x beside the axis and names one along it."""
    require(indices.ndim == x.ndim, "data and indices have the same number of axes")
    fits = all(k == axis or n <= x.shape[k] for k, n in enumerate(indices.shape))
    require(fits, "indices is not longer than data along the other axes")
    check_places(indices, x.shape[axis])


def _gather_nd(site: Site) -> Compute:
    batch = integer(site, "batch_dims", 0)

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x, indices = tensor(inputs, 0), tensor(inputs, 1)
        behind = 0 <= batch < indices.ndim and batch < x.ndim
        require(behind, "both inputs have an axis behind the batch axes")
        head = x.shape[:batch]
        require(indices.shape[:batch] == head, "both inputs have the same batch axes")
        width = indices.shape[-1]
        require(1 <= width <= x.ndim - batch, "a tuple names axes of data behind the batch axes")
        named, rest = x.shape[batch : batch + width], x.shape[batch + width :]
        places = linear(indices, named)
        out = allocate((*indices.shape[:-1], *rest), x.dtype)
        if out.size:
            count, each = math.prod(head), math.prod(named)
            rows = places.reshape(count, -1) + np.arange(count)[:, None] * each
            data = x.reshape(count * each, math.prod(rest))
            np.take(data, rows.reshape(-1), 0, out=out.reshape(-1, data.shape[1]), mode="wrap")
        return (out,)

    return compute


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Gather": (Kernel(1, 13, _gather),),
    "GatherElements": (Kernel(11, 13, _gather_elements),),
    "GatherND": (Kernel(11, 13, _gather_nd),),
}
