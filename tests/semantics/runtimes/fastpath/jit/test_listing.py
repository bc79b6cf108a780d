"""The memory of results of native code: given out again when nobody can read it any more."""

from __future__ import annotations

from typing import Any

import numpy as np
from sonnx.semantics.runtimes.fastpath.jit.listing import Returned

LARGE, SMALL = (3, 50_000), (3, 5)


def _place(array: object) -> int:
    assert isinstance(array, np.ndarray)
    return int(array.__array_interface__["data"][0])


def test_memory_of_a_large_result_is_given_out_again_when_no_view_is_left() -> None:
    returned = Returned([LARGE], [True])
    (first,) = returned.arrays(np.empty)
    place, view = _place(first), first[1:2, 7:].T.view(np.int32)
    del first
    (second,) = returned.arrays(np.empty)
    assert _place(second) != place
    del view
    (third,) = returned.arrays(np.empty)
    assert _place(third) == place
    assert (third.shape, third.dtype, third.flags.writeable) == (LARGE, np.float32, True)


def test_other_memory_is_allocated() -> None:
    asked = []

    def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        asked.append(shape)
        return np.empty(shape, dtype)

    found = Returned([LARGE, SMALL, LARGE], [False, True, True]).arrays(allocate)
    assert [it.shape for it in found] == [LARGE, SMALL, LARGE]
    assert asked == [LARGE, SMALL]
