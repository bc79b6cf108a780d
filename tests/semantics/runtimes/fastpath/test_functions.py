"""Limits: the bound where an element lies beyond it, else the element with its own bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sonnx.semantics.runtimes.fastpath import functions
from tables import table

SPECIAL = [np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-45, -1.5, 2.0, 1.0]
SHAPES = [(0,), (1,), (7,), (2 * functions._ROW + 5,), (3, 63), (3, 64), (5, 1000), (2, 3, 200), (0, 100)]


def _laid(shape: tuple[int, ...], dtype: Any) -> list[Any]:
    """Special values, contiguous and as a part of something larger."""
    x = np.random.default_rng(1).choice(SPECIAL, shape).astype(dtype)
    larger = np.zeros((*shape[:-1], 2 * shape[-1] + 3), dtype)
    apart = larger[..., 1 : 1 + shape[-1]]
    apart[...] = x
    spread = larger[..., : 2 * shape[-1] : 2]
    second = spread.copy()
    return [x, apart.copy()[..., ::-1], apart, np.broadcast_to(second, shape)]


@table("dtype", [np.float32, np.float64, np.float16])
@table("bound", [0.0, -0.0, 1.0, np.inf, np.nan])
def test_a_limit_keeps_the_bits_of_what_it_does_not_replace(bound: float, dtype: Any) -> None:
    limit = np.asarray(bound, dtype)
    with np.errstate(all="ignore"):
        for shape in SHAPES:
            for x in _laid(shape, dtype):
                for function, beyond in ((functions.at_least, np.less), (functions.at_most, np.greater)):
                    wanted = np.where(beyond(x, limit), limit, x)
                    outs = [np.empty(shape, dtype), np.empty((*shape[:-1], shape[-1] + 2), dtype)[..., : shape[-1]]]
                    for out in outs:
                        function(x, limit, out)
                        assert np.ascontiguousarray(out).tobytes() == wanted.tobytes(), (shape, x.strides, out.strides)


def test_a_limit_is_computed_in_place() -> None:
    x = np.random.default_rng(2).standard_normal((9, 700)).astype(np.float32)
    for data in (x.copy(), np.hstack([x, x])[:, 3:703]):
        wanted = np.maximum(data, np.float32(0))
        functions.at_least(data, np.zeros((), np.float32), data)
        assert (data == wanted).all()
