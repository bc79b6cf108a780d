"""The greatest elements, those that are not zero, and one of many as a vector."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from ..functions import is_float, is_integer
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site, unprepared
from ..reading import integer, require, tensor
from .shape import INT64, axis_of, vector

_FEW: Final = 8
"""If fewer than one of so many elements are wanted, they are selected before they are sorted."""
_SHORT: Final = 256


# ---- the greatest -----------------------------------------------------------------------------


def _keys(x: Array, largest: bool) -> Array:
    """Integers that ascend as the elements do in the order that is wanted, the same for equal elements."""
    if x.dtype.kind not in "iu":
        wide = x if x.dtype == np.float64 else x.astype(np.float32)
        bits = np.int64 if wide.dtype == np.float64 else np.int32
        codes = np.add(wide, 0.0, dtype=wide.dtype).view(bits)  # -0.0 becomes 0.0
        x = np.where(codes < 0, codes ^ np.iinfo(bits).max, codes)
        x[np.isnan(wide)] = np.iinfo(bits).max
    return ~x if largest else x


def _first(keys: Array, count: int) -> Array:
    """The positions of the `count` least keys of each row in ascending order, of equal ones the first."""
    size = keys.shape[-1]
    if size < _SHORT or count * _FEW > size:
        return np.argsort(keys, axis=-1, kind="stable")[:, :count]
    last = np.partition(keys, count - 1, axis=-1)[:, count - 1 : count]
    below, equal = keys < last, keys == last
    missing = count - np.count_nonzero(below, axis=-1, keepdims=True)
    chosen = below | (equal & (np.cumsum(equal, axis=-1) <= missing))
    places = np.nonzero(chosen)[1].reshape(len(keys), count)
    order = np.argsort(np.take_along_axis(keys, places, -1), axis=-1, kind="stable")
    return np.take_along_axis(places, order, -1)


def _top_k(site: Site) -> Compute:
    stated, largest, given = integer(site, "axis", -1), integer(site, "largest", 1) != 0, vector(site, 1)
    attribute = integer(site, "k") if site.version < 10 else 0

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        axis = axis_of(stated, x.ndim)
        count = attribute
        if site.version >= 10:
            listed = given(inputs) or ()
            require(len(listed) == 1, "K holds one element")
            count = listed[0]
        require(count >= (site.version < 10), "K is not negative, up to version 9 positive")
        require(count <= x.shape[axis], "the axis has K elements")
        shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
        values, indices = allocate(shape, x.dtype), allocate(shape, INT64)
        if values.size:
            rows = np.moveaxis(x, axis, -1)
            keys = np.ascontiguousarray(_keys(rows, largest)).reshape(-1, x.shape[axis])
            places = _first(keys, count).reshape(*rows.shape[:-1], count)
            np.copyto(np.moveaxis(indices, axis, -1), places)
            np.copyto(np.moveaxis(values, axis, -1), np.take_along_axis(rows, places, -1))
        return values, indices

    return compute


# ---- others -----------------------------------------------------------------------------------


@unprepared
def _non_zero(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x = tensor(inputs, 0)
    places = np.nonzero(x.reshape(1) if x.ndim == 0 else x)
    out = allocate((x.ndim, len(places[0])), INT64)
    for k in range(x.ndim):
        out[k] = places[k]
    return (out,)


def _whole(indices: Array) -> Array:
    """Numbers as integers of 64 bits, of rank 1 at least: truncated, limited; 0 for a NaN."""
    x = np.atleast_1d(indices)
    if x.dtype == np.uint64:
        x = np.minimum(x, np.uint64(2**62))
    elif not is_integer(x.dtype):
        x = np.clip(np.nan_to_num(x.astype(np.float64)), -(2.0**62), 2.0**62)
    return x.astype(np.int64)


def _one_hot(site: Site) -> Compute:
    stated = integer(site, "axis", -1)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        indices, depth, values = (tensor(inputs, position) for position in range(3))
        require(depth.shape in ((), (1,)), "depth is a scalar, or a vector of one element")
        require(values.shape == (2,), "values has two elements")
        if is_float(depth.dtype):
            require(math.isfinite(float(depth.reshape(()))), "depth is a number")
        n = int(depth.reshape(()))
        require(n >= 0, "depth is not negative")
        rank = indices.ndim + 1
        least = -rank if site.version >= 11 else -1
        require(least <= stated < rank, "axis is an axis of the output")
        axis = stated % rank
        out = allocate((*indices.shape[:axis], n, *indices.shape[axis:]), values.dtype)
        np.copyto(out, values[0:1].reshape(()))
        places = _whole(indices)
        if site.version >= 11:
            places = np.where((places < 0) & (places >= -n), places + n, places)
        named = np.nonzero((places >= 0) & (places < n))
        rows = np.moveaxis(out, axis, -1) if indices.ndim else out.reshape(1, n)
        rows[(*named, places[named])] = values[1]
        return (out,)

    return compute


# ---- each value once --------------------------------------------------------------------------


def _sortable(x: Array) -> Array:
    """Elements of a type that NumPy sorts by itself, in the order of the given ones: of strings their ranks."""
    if x.dtype == object:
        return np.unique(x.reshape(-1), return_inverse=True)[1].reshape(x.shape)
    return x if x.dtype.isbuiltin == 1 else x.astype(np.int64 if is_integer(x.dtype) else np.float32)


def _classes(rows: Array, in_order: bool) -> tuple[Array, Array]:
    """Of equal rows the first one, and for each row which of them it equals; ascending, or as they come."""
    order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    first, number = order[begins], np.empty(len(rows), np.int64)
    number[order] = np.cumsum(begins) - 1
    if in_order:
        return first, number
    came = np.argsort(first)
    places = np.empty_like(came)
    places[came] = np.arange(len(came))
    return first[came], places[number]


def _unique(site: Site) -> Compute:
    stated = integer(site, "axis") if site.attributes.get("axis") is not None else None
    in_order = integer(site, "sorted", 1)
    require(in_order in (0, 1), "sorted is 0 or 1")

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        axis = 0 if stated is None else axis_of(stated, x.ndim)
        along = x.reshape(-1) if stated is None else np.moveaxis(x, axis, 0)
        require(in_order == 0 or x.dtype.kind != "c", "complex numbers have no order")
        require(x.dtype == object or not (x != x).any(), "no element is a NaN")
        width = math.prod(along.shape[1:])
        first, number = _classes(_sortable(along).reshape(len(along), width), in_order == 1)
        values = allocate((*along.shape[1 : axis + 1], len(first), *along.shape[axis + 1 :]), x.dtype)
        np.copyto(np.moveaxis(values, axis, 0), along[first])
        results = first, number, np.bincount(number, minlength=len(first))
        made = [allocate(it.shape, INT64) for it in results]
        for out, it in zip(made, results, strict=True):
            np.copyto(out, it)
        return values, *made

    return compute


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "TopK": (Kernel(1, 24, _top_k),),
    "NonZero": (Kernel(9, 13, _non_zero),),
    "OneHot": (Kernel(9, 28, _one_hot),),
    "Unique": (Kernel(11, 28, _unique),),
}
