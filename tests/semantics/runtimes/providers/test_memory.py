"""Memory that providers bring: where it begins, that it is used again, that another process sees it."""

from __future__ import annotations

from mmap import mmap
from random import Random

import numpy as np
import pytest
from sonnx.semantics.runtimes.providers.memory import Shared, aligned

FLOAT = np.dtype(np.float32)


def test_aligned_memory_begins_at_a_multiple_of_64_bytes() -> None:
    for shape in ((3, 5), (), (1000,)):
        made = aligned(shape, FLOAT)
        assert made.shape == shape and made.dtype == FLOAT and made.ctypes.data % 64 == 0
    assert aligned((2,), np.dtype(object)).tolist() == [None, None]


def test_memory_that_is_shared_is_read_at_its_place_and_free_again_when_no_view_shows_it() -> None:
    shared = Shared()
    first, second = shared.allocate((3,), FLOAT), shared.allocate((1 << 19,), FLOAT)
    first[:], second[-1] = (1, 2, 3), 7
    place = shared.place(first)
    assert place is not None and place % 64 == 0 and shared.place(np.zeros(3)) is None
    whole = mmap(shared.file, shared.size)
    assert np.frombuffer(whole, FLOAT, 3, place).tolist() == [1, 2, 3]
    last = shared.place(second[-1:])
    assert last is not None and np.frombuffer(whole, FLOAT, 1, last).tolist() == [7]
    view = first[1:].reshape(2, 1)
    del first
    shared.allocate((1,), FLOAT)
    assert shared.place(view) == place + 4 and view.tolist() == [[2], [3]]
    del view, second
    assert shared.place(shared.allocate((3,), FLOAT)) == place
    assert shared.peak == 64 + (1 << 21) + 64 and shared.used <= 128


def test_blocks_do_not_overlap_and_what_is_free_is_joined() -> None:
    choose, shared = Random(1), Shared()
    held: list[np.ndarray] = []  # type: ignore[type-arg]
    for number in range(2_000):
        made = shared.allocate((choose.randint(1, 5_000),), FLOAT)
        made[:] = number
        held.append(made)
        if len(held) > 50:
            gone = held.pop(choose.randrange(len(held)))
            assert np.all(gone == gone[0])
    assert len({it[0] for it in held}) == len(held)
    size = shared.size
    del held, made, gone
    shared.allocate((1,), FLOAT)
    assert shared.size == size <= 1 << 22 and shared.used == 64


def test_memory_for_texts_is_not_shared_and_zero_bytes_take_none() -> None:
    shared = Shared()
    assert shared.place(shared.allocate((2,), np.dtype(object))) is None
    assert shared.allocate((0, 3), FLOAT).shape == (0, 3) and shared.used == 0


@pytest.mark.parametrize("count", [1 << 20, 3 << 20])
def test_more_memory_than_there_was_is_another_segment(count: int) -> None:
    shared = Shared()
    small, large = shared.allocate((1,), FLOAT), shared.allocate((count,), FLOAT)
    large[0] = large[-1] = 5
    small[0] = 1
    assert large[0] == large[-1] == 5 and shared.size >= 4 * count
