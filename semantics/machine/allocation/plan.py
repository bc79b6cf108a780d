"""Allocation: where in M each tensor lies and when it is live, as a plan that is checked before it is used.

An immutable allocator finds offsets, for plans made ahead and for sizes that are known only while a model runs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np

from ...errors import InternalError
from ...model.graph import TensorId
from ...resources import quick
from ...resources.persistent import PersistentMap, items, neighbours, put, remove
from ...resources.process import OutOfBudget


@quick
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
    fit = next(items(a.by_size, (size, 0)), None) if a.by_size.size and size else None
    if fit is not None:
        (length, offset), _ = fit
        holes, by_size = remove(a.holes, offset), remove(a.by_size, (length, offset))
        if length > size:
            holes = put(holes, offset + size, length - size)
            by_size = put(by_size, (length - size, offset + size), None)
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


# ---- Plans ----------------------------------------------------------------------------------------

ALIGNMENT: Final = 64
"""Bytes. No element type needs more than 16; vector instructions are best on a cache line."""

BEFORE: Final = -1
"""The step before the first: inputs and initializers are written then."""

_BY_SIZE_UP_TO: Final = 4096  # tensors: the order by size takes quadratic time
_UNLIMITED: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A tensor of `size` bytes is live from step `first` to step `last`, both included."""

    tensor: TensorId
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Allocation:
    """A tensor has the bytes from `offset` to `offset + size` from step `first` to step `last`, both included."""

    tensor: TensorId
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class AllocationPlan:
    """total: N, the bytes of M. alignment: every offset is a multiple of it."""

    allocations: tuple[Allocation, ...]
    total: int
    alignment: int


def lower_bound(alive: Iterable[Lifetime]) -> int:
    """The largest sum of the bytes that are live at one step: no plan can do with less."""
    change: dict[int, int] = {}
    for life in alive:
        change[life.first] = change.get(life.first, 0) + life.size
        change[life.last + 1] = change.get(life.last + 1, 0) - life.size
    most = now = 0
    for step in sorted(change):
        now += change[step]
        most = max(most, now)
    return most


def simple(
    alive: Sequence[Lifetime], alignment: int = ALIGNMENT, budget: int = _UNLIMITED
) -> AllocationPlan | OutOfBudget:
    """One tensor after the other, no byte used twice."""
    return _in_time_order(alive, Allocator(budget, alignment, reuse=False))


def arena(
    alive: Sequence[Lifetime], alignment: int = ALIGNMENT, budget: int = _UNLIMITED
) -> AllocationPlan | OutOfBudget:
    """Bytes are used again after the last use of a tensor.

    The smaller of two plans: in order of time with the best fit, as the machine places tensors while it runs, and, for
    up to 4096 tensors, in order of size, the largest first, each at the best fit among those that live beside it.
    """
    in_time = _in_time_order(alive, Allocator(_UNLIMITED, alignment, reuse=True))
    if isinstance(in_time, OutOfBudget):
        return in_time
    best = in_time
    if len(alive) <= _BY_SIZE_UP_TO:
        by_size = _in_size_order(alive, alignment)
        best = by_size if by_size.total < best.total else best
    return best if best.total <= budget else OutOfBudget(best.total, budget, "the arena")


def _in_time_order(alive: Sequence[Lifetime], allocator: Allocator) -> AllocationPlan | OutOfBudget:
    ending: list[tuple[int, int, int]] = []
    offsets = [0] * len(alive)
    for i in sorted(range(len(alive)), key=lambda i: alive[i].first):
        life = alive[i]
        while ending and ending[0][0] < life.first:
            _, offset, size = heappop(ending)
            allocator = release(allocator, offset, size)
        placed = allocate(allocator, life.size, f"tensor {life.tensor}")
        if isinstance(placed, OutOfBudget):
            return placed
        allocator, offsets[i] = placed
        heappush(ending, (life.last, offsets[i], life.size))
    return _plan(alive, offsets, allocator.peak, allocator.alignment)


def _in_size_order(alive: Sequence[Lifetime], alignment: int) -> AllocationPlan:
    order = sorted(range(len(alive)), key=lambda i: (-alive[i].size, alive[i].first))
    first, last, start, end = np.zeros((4, len(alive)), np.int64)
    offsets = [0] * len(alive)
    total = 0
    for placed, i in enumerate(order):
        life, size = alive[i], aligned(alive[i].size, alignment)
        beside = (first[:placed] <= life.last) & (last[:placed] >= life.first)
        offset = _best_fit(
            sorted(zip(start[:placed][beside].tolist(), end[:placed][beside].tolist(), strict=True)), size
        )
        first[placed], last[placed], start[placed], end[placed] = life.first, life.last, offset, offset + size
        offsets[i] = offset
        total = max(total, offset + size)
    return _plan(alive, offsets, total, alignment)


def _best_fit(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap between regions, ordered by start, that has the size; else the end of the last."""
    best = reached = 0
    smallest = _UNLIMITED
    for start, end in taken:
        if size <= start - reached < smallest:
            best, smallest = reached, start - reached
        reached = max(reached, end)
    return best if smallest < _UNLIMITED else reached


def _plan(alive: Sequence[Lifetime], offsets: Sequence[int], total: int, alignment: int) -> AllocationPlan:
    allocations = tuple(
        Allocation(life.tensor, offset, life.size, life.first, life.last)
        for life, offset in zip(alive, offsets, strict=True)
    )
    return AllocationPlan(allocations, total, alignment)


# ---- Checks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a plan may not be used. rule: its name in spec/4-allocation.sonnx; tensors: the one or two that break it."""

    rule: str
    tensors: tuple[TensorId, ...]
    message: str


def check(plan: AllocationPlan, alive: Iterable[Lifetime] = ()) -> tuple[Problem, ...]:
    """The faults of a plan for these lifetimes; none when it may be used. It takes O(n log n).

    A tensor that shares bytes with several others is reported with one of them at least.
    """
    return (
        *_uncovered(plan, alive),
        *(p for place in plan.allocations for p in _misplaced(plan, place)),
        *_shared(plan),
    )


def _uncovered(plan: AllocationPlan, alive: Iterable[Lifetime]) -> Iterable[Problem]:
    placed: dict[TensorId, list[Allocation]] = {}
    for place in plan.allocations:
        placed.setdefault(place.tensor, []).append(place)
    for life in alive:
        if not any(
            place.size >= life.size and place.first <= life.first and place.last >= life.last
            for place in placed.get(life.tensor, ())
        ):
            when = f"steps {life.first} to {life.last}"
            yield Problem(
                "covered", (life.tensor,), f"tensor {life.tensor} has no region of {life.size} bytes at {when}"
            )


def _misplaced(plan: AllocationPlan, place: Allocation) -> Iterable[Problem]:
    end = place.offset + place.size
    region = f"tensor {place.tensor} lies at bytes {place.offset} to {end}"
    if place.offset < 0 or place.size < 0 or end > plan.total:
        yield Problem("bounded", (place.tensor,), f"{region}, outside of the {plan.total} bytes of M")
    if place.offset % plan.alignment:
        yield Problem("aligned", (place.tensor,), f"{region}, which do not start at a multiple of {plan.alignment}")


def _shared(plan: AllocationPlan) -> Iterable[Problem]:
    """Sweep over the steps with the regions in use, which are disjoint: one that meets them is reported, not added."""
    ending: list[tuple[int, int]] = []
    starts: list[int] = []
    users: dict[int, Allocation] = {}
    for place in sorted(plan.allocations, key=lambda place: place.first):
        if place.size <= 0 or place.last < place.first:
            continue
        while ending and ending[0][0] < place.first:
            _, start = heappop(ending)
            del starts[bisect_left(starts, start)]
            del users[start]
        i = bisect_left(starts, place.offset)
        beside = [users[start] for start in starts[max(i - 1, 0) : i + 1]]
        other = next((it for it in beside if _meet(place, it)), None)
        if other is not None:
            low, high = max(place.offset, other.offset), min(place.offset + place.size, other.offset + other.size)
            steps = f"steps {place.first} to {min(place.last, other.last)}"
            message = f"tensors {other.tensor} and {place.tensor} share bytes {low} to {high} at {steps}"
            yield Problem("disjoint", (other.tensor, place.tensor), message)
            continue
        insort(starts, place.offset)
        users[place.offset] = place
        heappush(ending, (place.last, place.offset))


def _meet(a: Allocation, b: Allocation) -> bool:
    return a.offset < b.offset + b.size and b.offset < a.offset + a.size
