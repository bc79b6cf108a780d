"""M: linear, byte-addressable memory of N bytes as an immutable value.

M is kept as the segments that were written, ordered by address. A write shares them with the memory before it and
costs what it writes, never N; every memory of a run can be kept. A segment holds the bytes it was given, so what comes
from a mapped file stays in the file until it is read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..errors import InternalError
from ..model.elements import Buffer, owner_of
from ..resources.persistent import PersistentMap, items, neighbours, put, remove

_COPIED_BELOW: Final = 256


@dataclass(frozen=True, slots=True)
class Memory:
    """size: N. segments: what was written, by its first address; segments never overlap and none is empty."""

    size: int
    segments: PersistentMap[int, Buffer] = PersistentMap()  # noqa: RUF009 - it is immutable


@dataclass(frozen=True, slots=True)
class Uninitialised:
    """A read that is refused: nothing was ever written at `address`, which it needs."""

    address: int


def write(M: Memory, offset: int, data: Buffer) -> Memory:
    """M with `data` at `offset`.

    A read-only buffer is taken over without a copy: nobody may change it from then on. A writable one is copied.
    Raises InternalError when the range leaves M: whoever places tensors checks that.
    """
    end = offset + len(data)
    if offset < 0 or end > M.size:
        raise InternalError(f"bytes {offset} to {end} are outside a memory of {M.size} bytes")
    if not data:
        return M
    if not isinstance(data, bytes) and not data.readonly:
        data = bytes(data)
    segments = M.segments
    before, after = neighbours(segments, offset)
    behind = after is not None and after < end
    if before is not None and not behind:
        reach = before[0] + len(before[1])
        behind = reach > end if before[0] == offset else reach > offset
    if behind:
        segments = _cleared(segments, offset, end)
    return Memory(M.size, put(segments, offset, data))


def read(M: Memory, offset: int, length: int) -> Buffer | Uninitialised:
    """The bytes of a range: a view when one segment holds them all, joined from several otherwise.

    Raises InternalError when the range leaves M.
    """
    end = offset + length
    if offset < 0 or length < 0 or end > M.size:
        raise InternalError(f"bytes {offset} to {end} are outside a memory of {M.size} bytes")
    if not length:
        return b""
    before, _ = neighbours(M.segments, offset)
    if before is None:
        return Uninitialised(offset)
    first, data = before
    if first + len(data) >= end:
        return data if len(data) == length else _part(data, offset - first, end - first)
    parts = []
    reached = offset
    for start, data in items(M.segments, first):
        if start >= end:
            break
        if start > reached:
            return Uninitialised(reached)
        if start + len(data) > reached:
            parts.append(_part(data, reached - start, min(end - start, len(data))))
            reached = start + min(end - start, len(data))
    return b"".join(parts) if reached == end else Uninitialised(reached)


def gap(M: Memory, offset: int, length: int) -> Uninitialised | None:
    """The first byte of a range that was never written; None when there is none."""
    before, _ = neighbours(M.segments, offset)
    reached = offset
    for start, data in items(M.segments, None if before is None else before[0]):
        if start > reached or reached >= offset + length:
            break
        reached = max(reached, start + len(data))
    return Uninitialised(reached) if reached < offset + length else None


def erase(M: Memory, offset: int, length: int) -> Memory:
    """M without what was written in a range: reading it is refused from then on."""
    return Memory(M.size, _cleared(M.segments, offset, offset + length)) if length > 0 else M


def resize(M: Memory, size: int) -> Memory:
    """M with another N. Raises InternalError when something was written beyond it."""
    last, _ = neighbours(M.segments, M.size) if size < M.size else (None, None)
    if last is not None and last[0] + len(last[1]) > size:
        raise InternalError(f"a memory of {size} bytes cannot hold what was written at {last[0]}")
    return Memory(size, M.segments)


def history_bytes(memories: Iterable[Memory]) -> int:
    """The bytes that keeping all these memories costs: buffers and the nodes of the maps, each counted once.

    A buffer counts with all the memory that it keeps alive, a mapped file only with the object that stands for it.
    """
    seen: set[int] = set()
    total = 0
    stack: list[object] = [memory.segments.root for memory in memories]
    while stack:
        found = stack.pop()
        if isinstance(found, memoryview):
            total += 0 if id(found) in seen else sys.getsizeof(found)
            seen.add(id(found))
            found = owner_of(found)
        if id(found) in seen:
            continue
        seen.add(id(found))
        total += found.nbytes if isinstance(found, np.ndarray) else sys.getsizeof(found)
        if isinstance(found, tuple):
            stack.extend(found)
    return total


def _cleared(segments: PersistentMap[int, Buffer], start: int, end: int) -> PersistentMap[int, Buffer]:
    """The segments without start:end; those that reach over an end of it are cut."""
    before, _ = neighbours(segments, start)
    hit = [before] if before is not None and before[0] < start < before[0] + len(before[1]) else []
    for segment in items(segments, start):
        if segment[0] >= end:
            break
        hit.append(segment)
    for first, data in hit:
        segments = put(segments, first, _part(data, 0, start - first)) if first < start else remove(segments, first)
        if first + len(data) > end:
            segments = put(segments, end, _part(data, end - first, len(data)))
    return segments


def _part(data: Buffer, start: int, stop: int) -> Buffer:
    """A part of a buffer: a copy of few bytes, which a view would outweigh, a view otherwise."""
    if start == 0 and stop == len(data):
        return data
    part = memoryview(data)[start:stop]
    return bytes(part) if stop - start < _COPIED_BELOW else part
