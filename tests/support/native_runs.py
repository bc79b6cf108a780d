"""Runs of native code in memory that is watched: what it writes lies between guards, and what it is given ends where
memory ends."""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from sonnx.semantics.runtimes.fastpath import Session
from sonnx.semantics.runtimes.fastpath.jit import provider

NAME = "NumbaExecutionProvider"
_ZONE = 1 << 12
_NOTHING = 0


@contextlib.contextmanager
def guards(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Within it native code runs in watched memory, in which each float is a NaN before, and it is checked that no byte
    beside that is written. A byte read behind that, or behind an input, ends the process. Gives a list that has an
    entry for each run."""
    ran: list[int] = []

    def guarded(listed: Any, given: Any, _allocate: Any, run: Any = provider._run) -> Any:
        zones: list[Any] = []

        def allocate(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
            size = math.prod(shape) * dtype.itemsize
            memory = at_the_end(np.full(_ZONE + -(-size // 64) * 64, 0xFF, np.uint8))
            zones.extend((memory[:_ZONE], memory[_ZONE + size :]))
            return np.ndarray(shape, dtype, memory.data, _ZONE)

        found = run(listed, [at_the_end(it) for it in given], allocate)
        assert all((zone == 0xFF).all() for zone in zones), "bytes beside the memory were written"
        ran.append(1)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(provider, "_run", guarded)
        yield ran


def guarded_run(model: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, **inputs: Any) -> list[Any]:
    """The outputs of native code, twice the same, in watched memory; it is checked that it ran."""
    with guards(monkeypatch) as ran:
        session = Session(model, [NAME])
        first, second = session.run(None, inputs), session.run(None, inputs)
    assert len(ran) == 2
    assert [bits(it) for it in first] == [bits(it) for it in second]
    assert session.partitioning.refusals == ()
    assert {it.provider for it in session.partitioning.assignments} <= {"", NAME}
    return first


def at_the_end(value: Any) -> Any:
    """A copy of an array that ends where memory ends: none behind it can be read."""
    if os.name != "posix" or not isinstance(value, np.ndarray):
        return value
    page = mmap.PAGESIZE
    pages = -(-value.nbytes // page)
    memory = mmap.mmap(-1, (pages + 1) * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    assert protect(base + pages * page, page, _NOTHING) == 0
    placed: Any = np.ndarray(value.shape, value.dtype, memory, pages * page - value.nbytes)
    placed[...] = value
    return placed


def bits(value: Any) -> tuple[Any, ...]:
    """What is equal where all bits are, those of a NaN aside."""
    return value.dtype, value.shape, np.where(np.isnan(value), np.float32(np.nan), value).tobytes()
