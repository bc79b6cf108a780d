"""The places where two tensors of one type differ, bit by bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .values import Array

Mask = NDArray[np.bool_]


def unequal(one: Array, other: Array) -> Mask:
    """For each element of two tensors of one shape and type whether it differs in a bit."""
    if one.dtype.hasobject:
        return np.asarray(one != other, np.bool_)
    size = one.dtype.itemsize
    bits = [np.ascontiguousarray(it).reshape(-1).view(np.uint8).reshape(*it.shape, size) for it in (one, other)]
    return np.asarray((bits[0] != bits[1]).any(axis=-1))


def first_of(mask: Mask) -> tuple[int, ...]:
    """The first element, in row-major order, for which a mask holds."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
