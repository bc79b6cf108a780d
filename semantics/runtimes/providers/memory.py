"""Memory that execution providers bring: aligned, or shared with a worker."""

from __future__ import annotations

import ctypes
import os
import tempfile
import weakref
from bisect import insort
from collections import deque
from dataclasses import dataclass
from math import prod
from mmap import mmap
from threading import Lock
from typing import Any, Final

import numpy as np

from ...model.values import Array

ALIGNMENT: Final = 64
"""Bytes: the length of a line of the processor's cache, and of the widest vector."""
_LEAST: Final = 1 << 20
"""Bytes of the first segment of memory that is shared; each further one is as large as all before it."""


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """New memory that begins at a multiple of 64 bytes."""
    if dtype.hasobject:
        return np.empty(shape, dtype)
    size = prod(shape) * dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the file, mapped. first: its place in the file; address: where it is in this process."""

    first: int
    size: int
    address: int
    mapping: mmap


class Shared:
    """An arena in a file that another process maps too. What an array lies in is free again when nothing shows it.

    peak: the greatest number of bytes that were in use. Several threads may ask for memory at once.
    """

    def __init__(self) -> None:
        self.file: Final = _anonymous()
        self.peak = self.used = 0
        self._segments: list[Segment] = []
        self._free: list[tuple[int, int]] = []  # place and size, in order, no two beside each other in one segment
        self._ended: deque[tuple[int, int]] = deque()  # filled by whoever lets go of memory, which may be anywhere
        self._lock = Lock()
        weakref.finalize(self, os.close, self.file).atexit = False

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return sum(it.size for it in self._segments)

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Memory in the file; of the process alone for texts, and for what takes none."""
        count = prod(shape) * dtype.itemsize
        if dtype.hasobject or not count:
            return np.empty(shape, dtype)
        size = -(-count // ALIGNMENT) * ALIGNMENT
        with self._lock:
            self._collect()
            place = self._taken(size)
            if place is None:
                self._grow(size)
                place = self._taken(size)
            if place is None:
                raise MemoryError(f"no {size} bytes in the memory that a worker shares")
            self.used += size
            self.peak = max(self.peak, self.used)
            segment = next(it for it in self._segments if it.first <= place < it.first + it.size)
        block = (ctypes.c_char * count).from_buffer(segment.mapping, place - segment.first)
        weakref.finalize(block, self._ended.append, (place, size)).atexit = False
        return np.ndarray(shape, dtype, memoryview(block).cast("B"))

    def place(self, array: Array) -> int | None:
        """The place in the file of an array in C order that lies there; None for another."""
        address = array.ctypes.data
        for it in self._segments:
            if it.address <= address and address + array.nbytes <= it.address + it.size:
                return it.first + address - it.address
        return None

    def _taken(self, size: int) -> int | None:
        for at, (place, there) in enumerate(self._free):
            if there >= size:
                self._free[at : at + 1] = [(place + size, there - size)] if there > size else []
                return place
        return None

    def _collect(self) -> None:
        """Joins what has become free with what is free beside it."""
        starts = {it.first for it in self._segments}
        while self._ended:
            block = self._ended.popleft()
            self.used -= block[1]
            insort(self._free, block)
            at = self._free.index(block)
            for left in (at, at - 1):
                if 0 <= left < len(self._free) - 1:
                    (place, size), (following, more) = self._free[left : left + 2]
                    if place + size == following and following not in starts:
                        self._free[left : left + 2] = [(place, size + more)]

    def _grow(self, size: int) -> None:
        first = self.size
        page = 1 << 16  # a multiple of the granularity of mappings everywhere
        more = -(-max(size, first, _LEAST) // page) * page
        os.ftruncate(self.file, first + more)
        mapping = mmap(self.file, more, offset=first)
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        self._segments.append(Segment(first, more, address, mapping))
        self._free.append((first, more))


def _anonymous() -> int:
    """A file without a name: in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("sonnx")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
