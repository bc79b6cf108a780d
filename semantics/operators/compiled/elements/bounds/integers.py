"""Sets of integers and truth values: exact where the elements are known, else from the ends, or everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from .....model.elements import DType, integer_range, is_integer
from ...terms import Array
from .. import ieee
from ..ieee import Operation
from .storage import everything, lift

_SMALL: Final = 1 << 30
_BY_ENDS: Final = frozenset({"add", "sub", "mul", "neg", "min", "max", "absolute"})


def operation(name: str, dtype: DType) -> Operation:
    """The operation on elements of a type that is not one of floating-point numbers."""
    plain, raised = ieee.operation(name, dtype), lift(dtype)

    def run(*arguments: Array) -> Array:
        sets = [raised(x) for x in arguments]
        known = raised(np.asarray(plain(*(s["low"].astype(dtype) for s in sets))))
        loose = [s["low"] != s["high"] for s in sets]
        if not any(mask.any() for mask in loose):
            return known
        where = np.broadcast_to(np.logical_or.reduce(np.broadcast_arrays(*loose)), known.shape)
        open_sets = [np.broadcast_to(s, known.shape)[where] for s in sets]
        known[where] = _of_intervals(name, dtype, plain, open_sets)
        return known

    return run


def _of_intervals(name: str, dtype: DType, plain: Callable[..., Array], sets: list[Array]) -> Array:
    out = everything(sets[0].shape, dtype)
    if name not in _BY_ENDS or not is_integer(dtype):
        return out
    ends = [(s["low"].astype(np.float64), s["high"].astype(np.float64)) for s in sets]
    small = np.logical_and.reduce([(np.abs(lo) < _SMALL) & (np.abs(hi) < _SMALL) for lo, hi in ends])
    function = ieee.operation(name, np.dtype(np.float64))
    if len(ends) == 1:
        corners = [function(z) for z in ends[0]]
        if name == "absolute":
            corners.append(np.where((ends[0][0] <= 0) & (ends[0][1] >= 0), 0.0, corners[0]))
    else:
        corners = [function(p, q) for p in ends[0] for q in ends[1]]
    least, most = np.minimum.reduce(corners), np.maximum.reduce(corners)
    low, high = integer_range(dtype)
    inside = small & (least >= low) & (most <= high)
    out["low"][inside], out["high"][inside] = least[inside], most[inside]
    return out
