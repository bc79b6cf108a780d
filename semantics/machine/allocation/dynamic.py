"""Placing tensors while a model runs: an immutable allocator, for sizes that are known only then.

Without reuse it counts upwards. With reuse a released region is taken again, the smallest that is large enough, at the
lowest of equal ones; regions beside each other are joined. Either takes O(log n).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InternalError
from ...resources.persistent import PersistentMap, items, neighbours, put, remove
from ...resources.process import OutOfBudget


@dataclass(frozen=True, slots=True)
class Allocator:
    """budget: N, the bytes that there are. alignment: every offset is a multiple of it, sizes are rounded up to one.

    top: the end of the highest region in use. peak: the highest top so far. holes: released regions below the top, by
    offset; by_size: the same as (size, offset).
    """

    budget: int
    alignment: int
    reuse: bool
    top: int = 0
    peak: int = 0
    holes: PersistentMap[int, int] = PersistentMap()  # noqa: RUF009 - it is immutable
    by_size: PersistentMap[tuple[int, int], None] = PersistentMap()  # noqa: RUF009


def aligned(size: int, alignment: int) -> int:
    """The least multiple of the alignment that is not below the size."""
    return -(-size // alignment) * alignment


def allocate(allocator: Allocator, size: int, purpose: str = "a tensor") -> tuple[Allocator, int] | OutOfBudget:
    """A region of `size` bytes: the allocator that has it in use, and its offset."""
    a = allocator
    size = aligned(size, a.alignment)
    fit = next(items(a.by_size, (size, 0)), None) if a.by_size and size else None
    if fit is not None:
        (found, offset), _ = fit
        holes, by_size = remove(a.holes, offset), remove(a.by_size, (found, offset))
        if found > size:
            holes = put(holes, offset + size, found - size)
            by_size = put(by_size, (found - size, offset + size), None)
        return Allocator(a.budget, a.alignment, a.reuse, a.top, a.peak, holes, by_size), offset
    offset, top = a.top, a.top + size
    if top > a.budget:
        return OutOfBudget(top, a.budget, purpose)
    return Allocator(a.budget, a.alignment, a.reuse, top, max(a.peak, top), a.holes, a.by_size), offset


def release(allocator: Allocator, offset: int, size: int) -> Allocator:
    """The region, which `allocate` gave for this size, is free. Without reuse nothing changes.

    Raises InternalError when a part of it is free already.
    """
    a = allocator
    size = aligned(size, a.alignment)
    if not a.reuse or not size:
        return a
    end = offset + size
    before, above = neighbours(a.holes, offset)
    left = before is not None and before[0] + before[1] == offset
    if end > a.top or (before is not None and before[0] + before[1] > offset) or (above is not None and above < end):
        raise InternalError(f"bytes {offset} to {end} are released, and a part of them is free already")
    holes, by_size = a.holes, a.by_size
    for start in ([before[0]] if before is not None and left else []) + ([above] if above == end else []):
        length = holes[start]
        holes, by_size = remove(holes, start), remove(by_size, (length, start))
        offset, end = min(offset, start), max(end, start + length)
    if end == a.top:
        return Allocator(a.budget, a.alignment, a.reuse, offset, a.peak, holes, by_size)
    holes, by_size = put(holes, offset, end - offset), put(by_size, (end - offset, offset), None)
    return Allocator(a.budget, a.alignment, a.reuse, a.top, a.peak, holes, by_size)
