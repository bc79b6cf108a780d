"""Limits: the bound where an element lies beyond it, else the element with its own bits. Blocks, and Erf."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sonnx.semantics.runtimes.fastpath import functions, workers
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


def test_blocks_are_shared_by_threads_with_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(4).standard_normal(9 * functions.BLOCK + 5).astype(np.float32)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(workers, "THREADS", threads)
        out = np.zeros_like(x)
        functions.in_blocks(functions.erf(x.dtype), x, out)
        found.append(out.tobytes())
    assert found[0] == found[1]


def test_the_error_function_is_rounded_from_the_exact_value_of_nearly_every_float() -> None:
    """Where the double next to the exact value lies within 4 units of its last place, so does what is rounded."""
    random = np.random.default_rng(6)
    x = np.concatenate([random.standard_normal(3000) * scale for scale in (1e-6, 0.1, 1, 4)]).astype(np.float32)
    wide = x.astype(np.float64)
    exact = np.array([math.erf(it) for it in wide.tolist()])
    assert np.max(np.abs(functions._erf_of(wide) - exact) / np.spacing(np.abs(exact))) <= 4
