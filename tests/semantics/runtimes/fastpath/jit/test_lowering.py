"""Products are cut into parts that threads can end together."""

from __future__ import annotations

import pytest
from sonnx.semantics.runtimes.fastpath.jit.lowering import _cut, _last
from sonnx.semantics.runtimes.fastpath.jit.processor import LANES

SHAPES = [(each, places) for each in (64, 192, 512, 2048) for places in (49, 55, 169, 209, 755, 811, 3191, 12877)]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_end_at_about_the_same_time(threads: int) -> None:
    for each, places in SHAPES:
        band, block = _cut(each, 8, places, 1, threads)
        assert band % 8 == 0 and block % (3 * LANES) == 0
        rows = [min(band, each - k) for k in range(0, each, band)]
        columns = [-(-min(block, places - k) // LANES) for k in range(0, places, block)]
        parts = [a * b for a in rows for b in columns]
        if each // 8 >= 4 * threads:
            assert _last(parts, threads) <= 1.25 * sum(parts) / threads, (each, places)


def test_parts_are_taken_one_after_the_other() -> None:
    assert _last([3, 3, 3, 1], 2) == 6
    assert _last([2.0] * 100, 3) == 202 / 3
