"""Softmax and LogSoftmax: along one axis from version 13 on, before over all axes from one on.

Sums of floats of 16 bits are computed in float and rounded once; every other operation is rounded in its own type,
exponentials and logarithms from double.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ....model.values import Value
from ..functions import through_double
from ..kernel import Allocate, Array, Compute, Kernel, Site
from ..products import widened
from ..reading import integer, require, tensor
from ..rounding import summing


def _prepared(site: Site, logarithm: bool) -> Compute:
    stated = integer(site, "axis", -1 if site.version >= 13 else 1)

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        x = tensor(inputs, 0)
        require(-x.ndim <= stated < x.ndim, "axis is an axis of the input, counted from either end")
        axis = stated % x.ndim
        out = allocate(x.shape, x.dtype)
        if x.size == 0:
            return (out,)
        data, target = x, out
        if site.version < 13:
            shape = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
            data, target, axis = x.reshape(shape), out.reshape(shape), 1
        with np.errstate(all="ignore"):
            np.subtract(data, np.max(data, axis=axis, keepdims=True), out=target)
            exp, log = through_double(np.exp)(x.dtype), through_double(np.log)(x.dtype)
            if logarithm:
                powers = allocate(target.shape, x.dtype)
                exp(target, powers)
                sums = _sums(powers, axis)
                log(sums, sums)
                np.subtract(target, sums, out=target)
            else:
                exp(target, target)
                np.divide(target, _sums(target, axis), out=target)
        return (out,)

    return compute


def _sums(x: Array, axis: int) -> Array:
    return widened(np.sum(x, axis=axis, dtype=summing(x.dtype), keepdims=True), x.dtype)


def _softmax(site: Site) -> Compute:
    return _prepared(site, False)


def _log_softmax(site: Site) -> Compute:
    return _prepared(site, True)


KERNELS: Mapping[str, tuple[Kernel, ...]] = {
    "Softmax": (Kernel(1, 13, _softmax),),
    "LogSoftmax": (Kernel(1, 13, _log_softmax),),
}
