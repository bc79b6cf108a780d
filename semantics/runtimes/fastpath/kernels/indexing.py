"""Elements and slices gathered from the places that indices name, and updates written to them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from ..functions import is_float
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site
from ..reading import integer, require, tensor, text
from .shape import Shape, axis_of, part, shown


def check_places(indices: Array, size: int) -> None:
    """Raises KernelError unless all indices are positions along an axis of this size, counted from either end."""
    if indices.size:
        inside = -size <= int(indices.min()) and int(indices.max()) < size
        require(inside, "the indices are positions along the axis, counted from either end")


def linear(indices: Array, sizes: Shape) -> Array:
    """The positions that tuples along the last axis of `indices` name among those of a tensor of these sizes."""
    places = np.zeros(indices.shape[:-1], np.intp)
    for k, size in enumerate(sizes):
        place = indices[..., k]
        check_places(place, size)
        places *= size
        places += np.where(place < 0, place + size, place)
    return places


def _gather(site: Site) -> Compute:
    stated = integer(site, "axis", 0)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, indices = tensor(inputs, 0), tensor(inputs, 1)
        axis = axis_of(stated, x.ndim)
        check_places(indices, x.shape[axis])
        if indices.ndim == 0:
            at = int(indices) % x.shape[axis]
            taken = part(x, [*(slice(None),) * axis, slice(at, at + 1)])
            return (shown(taken.squeeze(axis)),)
        out = allocate((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
        if out.size:
            np.take(x, indices, axis, out=out, mode="wrap")
        return (out,)

    return compute


def _gather_elements(site: Site) -> Compute:
    stated = integer(site, "axis", 0)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
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

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
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


# ---- Scattering -----------------------------------------------------------------------------------

_COMBINING: Final = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _reduction(site: Site) -> str:
    """The combination of an element and its update."""
    word = text(site, "reduction", "none") if site.version >= 16 else "none"
    words = ("none", "add", "mul", *(("max", "min") if site.version >= 18 else ()))
    require(word in words, f"reduction is one of {', '.join(words)}")
    return word


def _check_type(word: str, x: Array) -> None:
    if word != "none":
        require(x.dtype.kind not in "Ob", "numbers are added, multiplied and compared")
        require(word in ("add", "mul") or x.dtype.kind != "c", "complex numbers have no order")


def _scattered(rows: Array, places: Array, updates: Array, word: str) -> None:
    """Updates of rows of a matrix at places, each row of `updates` for one place."""
    if word == "none":
        taken = np.zeros(len(rows), bool)
        taken[places] = True
        require(int(np.count_nonzero(taken)) == places.size, "no place is replaced twice")
        rows[places] = updates
        return
    function = _COMBINING[word]
    before = rows.copy() if word in ("max", "min") and is_float(rows.dtype) else None
    if before is None or rows.dtype.kind == "f":
        function.at(rows, places, updates)
    else:
        wide = rows.astype(np.float32)
        function.at(wide, places, updates.astype(np.float32))
        np.copyto(rows, wide, casting="unsafe")
    if before is not None:
        _sign_zeros(rows, before, places, updates, word == "max")


def _sign_zeros(rows: Array, before: Array, places: Array, updates: Array, greatest: bool) -> None:
    """Zeros get the sign of the better one: 0.0 where the greatest is taken and there was one, and so on."""
    zeros = rows == 0
    if not np.any(zeros):
        return
    wins = np.logical_and(before == 0, np.signbit(before) != greatest)
    np.logical_or.at(wins, places, np.logical_and(updates == 0, np.signbit(updates) != greatest))
    signed = np.where(wins, 0.0 if greatest else -0.0, -0.0 if greatest else 0.0)
    np.copyto(rows, signed.astype(rows.dtype), where=zeros)


def _scatter_elements(site: Site) -> Compute:
    stated, word = integer(site, "axis", 0), _reduction(site)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, indices, updates = (tensor(inputs, position) for position in range(3))
        axis = axis_of(stated, x.ndim)
        require(indices.shape == updates.shape, "there is an index for each update")
        check_beside(x, indices, axis)
        _check_type(word, x)
        out = allocate(x.shape, x.dtype)
        np.copyto(out, x)
        if updates.size:
            places = np.zeros(updates.shape, np.intp)
            for k, size in enumerate(x.shape):
                along = np.arange(updates.shape[k]).reshape(-1, *(1,) * (x.ndim - 1 - k))
                places *= size
                places += np.where(indices < 0, indices + size, indices) if k == axis else along
            _scattered(out.reshape(-1), places.reshape(-1), updates.reshape(-1), word)
        return (out,)

    return compute


def _scatter_nd(site: Site) -> Compute:
    word = _reduction(site)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x, indices, updates = (tensor(inputs, position) for position in range(3))
        require(indices.ndim > 0, "indices is no scalar")
        width = indices.shape[-1]
        require(x.ndim > 0 and width <= x.ndim, "an index tuple addresses axes of the data")
        named, rest = x.shape[:width], x.shape[width:]
        require(updates.shape == (*indices.shape[:-1], *rest), "there is an update for each tuple")
        _check_type(word, x)
        places = linear(indices, named).reshape(-1)
        out = allocate(x.shape, x.dtype)
        np.copyto(out, x)
        if places.size:
            size = math.prod(rest)
            rows = out.reshape(math.prod(named), size)
            _scattered(rows, places, updates.reshape(places.size, size), word)
        return (out,)

    return compute


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Gather": (Kernel(1, 13, _gather),),
    "GatherElements": (Kernel(11, 13, _gather_elements),),
    "GatherND": (Kernel(11, 13, _gather_nd),),
    "Scatter": (Kernel(9, 11, _scatter_elements),),
    "ScatterElements": (Kernel(11, 18, _scatter_elements),),
    "ScatterND": (Kernel(11, 18, _scatter_nd),),
}
