"""Allocation: where in M each tensor lies and when it is live, as a plan that is checked before it is used.

A step is a position in a schedule. A tensor is live from the step that writes it to the last one that reads it, both
included: the outputs of a node never lie on its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

import numpy as np

from ...model.graph import Model, NodeId, TensorId
from ...resources.process import OutOfBudget
from .dynamic import Allocator, aligned, allocate, release

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
class Placement:
    """A tensor has the bytes from `offset` to `offset + size` from step `first` to step `last`, both included."""

    tensor: TensorId
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class AllocationPlan:
    """total: N, the bytes of M. alignment: every offset is a multiple of it."""

    placements: tuple[Placement, ...]
    total: int
    alignment: int


def lifetimes(model: Model, schedule: Sequence[NodeId], sizes: Mapping[TensorId, int]) -> tuple[Lifetime, ...]:
    """When the tensors of `sizes` are live under a schedule, in the order in which they are written.

    Inputs and initializers are there before the first step. Initializers, which the next run needs again, and the
    outputs of the main graph stay to the end. A tensor that no step writes has no lifetime.
    """
    first: dict[TensorId, int] = {}
    last: dict[TensorId, int] = {}
    main = model.graphs[0]
    stored = [tensor for tensor, _ in (*main.initializers, *main.sparse_initializers)]
    for tensor in (*main.inputs, *stored):
        first.setdefault(tensor, BEFORE)
    for step, number in enumerate(schedule):
        node = model.nodes[number]
        for read in (*node.inputs, *node.captures):
            if read is not None:
                last[read] = step
        for written in node.outputs:
            if written is not None:
                first.setdefault(written, step)
    last.update(dict.fromkeys((*stored, *main.outputs), len(schedule)))
    return tuple(
        Lifetime(tensor, sizes[tensor], step, max(step, last.get(tensor, step)))
        for tensor, step in first.items()
        if tensor in sizes
    )


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
        found = allocate(allocator, life.size, f"tensor {life.tensor}")
        if isinstance(found, OutOfBudget):
            return found
        allocator, offsets[i] = found
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
    placements = tuple(
        Placement(life.tensor, offset, life.size, life.first, life.last)
        for life, offset in zip(alive, offsets, strict=True)
    )
    return AllocationPlan(placements, total, alignment)
