"""Padded data for kernels that move over them, split by the strides."""

from __future__ import annotations

import numpy as np

from .kernel import Array
from .windows import Placed, Sizes, part


def phased(placed: Placed, split: Sizes) -> Sizes:
    """The shape of one channel of `fill`: split..., ceil(padded / split)..."""
    return (*split, *(-(-p // s) for p, s in zip(placed.padded, split, strict=True)))


def fill(found: Array, x: Array, placed: Placed, split: Sizes) -> None:
    """Writes the padded data, each spatial axis split by position modulo `split`; what lies beyond them is 0.

    The shapes: channels..., then those of the data, and of `phased`.
    """
    r = len(split)
    exact = all(p == d and p % s == 0 for p, d, s in zip(placed.padded, placed.data, split, strict=True))
    if not exact:
        found[...] = 0
    for phase in np.ndindex(*split):
        source: list[slice] = []
        target: list[slice] = []
        for k in range(r):
            first = (phase[k] - placed.before[k]) % split[k]
            start = (first + placed.before[k]) // split[k]
            count = max(0, -(-(placed.data[k] - first) // split[k]))
            source.append(slice(first, None, split[k]))
            target.append(slice(start, start + count))
        part(found, (*phase, *target))[...] = part(x, source)
