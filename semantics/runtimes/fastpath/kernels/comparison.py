"""Comparisons and truth values, the choice between two tensors, and the greatest, least, sum and mean of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from ..functions import BLOCK, scalar, select
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site, unprepared
from ..reading import require, tensor
from .elementwise import broadcast

BOOL: Final = np.dtype(np.bool_)


def _truth(function: np.ufunc) -> Callable[[Site], Compute]:
    """A kernel for a function of two tensors whose values are truth values."""

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        a, b = tensor(inputs, 0), tensor(inputs, 1)
        out = allocate(a.shape if a.shape == b.shape else broadcast(a.shape, b.shape), BOOL)
        function(a, b, out=out)
        return (out,)

    return lambda _site: compute


@unprepared
def _not(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    x = tensor(inputs, 0)
    out = allocate(x.shape, BOOL)
    np.logical_not(x, out=out)
    return (out,)


@unprepared
def _where(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    condition, x, y = tensor(inputs, 0), tensor(inputs, 1), tensor(inputs, 2)
    out = allocate(broadcast(condition.shape, broadcast(x.shape, y.shape)), x.dtype)
    if all(it.shape == out.shape and it.flags.c_contiguous for it in (condition, x, y)):
        flat = [it.reshape(-1) for it in (condition, x, y, out)]
        for start in range(0, out.size, BLOCK):
            select(*(it[start : start + BLOCK] for it in flat))
    else:
        select(condition, x, y, out)
    return (out,)


# ---- several tensors --------------------------------------------------------------------------


def _folded(function: np.ufunc, inputs: Inputs, same_shape: bool, allocate: Allocate) -> Array:
    """The fold of a function over the inputs, in their order."""
    tensors = [tensor(inputs, position) for position in range(len(inputs))]
    require(bool(tensors), "there is an input")
    shapes = [x.shape for x in tensors]
    require(not same_shape or all(s == shapes[0] for s in shapes), "all inputs have the same shape")
    out = allocate(broadcast(*shapes), tensors[0].dtype)
    if len(tensors) == 1:
        np.copyto(out, tensors[0])
        return out
    rest = [x.copy() if np.may_share_memory(x, out) else x for x in tensors[2:]]
    function(tensors[0], tensors[1], out=out)
    for x in rest:
        function(out, x, out=out)
    return out


def _fold(function: np.ufunc) -> Callable[[Site], Compute]:
    def prepare(site: Site) -> Compute:
        def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
            return (_folded(function, inputs, site.version < 8, allocate),)

        return compute

    return prepare


@unprepared
def _mean(site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    out = _folded(np.add, inputs, site.version < 8, allocate)
    np.divide(out, scalar(len(inputs), out.dtype), out=out)
    return (out,)


def _relation(first: int, last: int, function: np.ufunc) -> tuple[Kernel]:
    return (Kernel(first, last, _truth(function), in_place=True),)


def _several(function: np.ufunc) -> tuple[Kernel]:
    return (Kernel(1, 13, _fold(function), in_place=True),)


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "Equal": _relation(7, 19, np.equal),
    "Less": _relation(7, 13, np.less),
    "Greater": _relation(7, 13, np.greater),
    "LessOrEqual": _relation(12, 16, np.less_equal),
    "GreaterOrEqual": _relation(12, 16, np.greater_equal),
    "And": _relation(7, 7, np.logical_and),
    "Or": _relation(7, 7, np.logical_or),
    "Xor": _relation(7, 7, np.logical_xor),
    "Not": (Kernel(1, 1, _not, in_place=True),),
    "Where": (Kernel(9, 16, _where),),
    "Max": _several(np.maximum),
    "Min": _several(np.minimum),
    "Sum": _several(np.add),
    "Mean": (Kernel(1, 13, _mean, in_place=True),),
}
