"""A layered layout: rows, the order in a row, positions along it. Deterministic, and about linear in the edges."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isqrt
from typing import Final

Edge = tuple[int, int]

GAP: Final = 22
"""Pixels between two boxes of a row."""
BEND: Final = 10
"""Pixels that an edge takes in a row which it crosses."""
SPAN: Final = 8
"""An edge across more rows than this is not led around boxes."""
READERS: Final = 32
"""Of a box that more edges leave than this, none is led around boxes."""
_SWEEPS: Final = 4
_LEAST: Final = 10
_AROUND, _FAR = 25, 600  # rows, pixels
_THROUGH: Final = 500  # the weight of a box that edges lead to and from: where others move aside


@dataclass(frozen=True, slots=True)
class Layout:
    """row, middle: of each box, in pixels along the row. bends: for each edge where it crosses the rows between its
    ends; none for an edge to the next row, one that leads back, one across too many rows, and one of too many."""

    row: tuple[int, ...]
    middle: tuple[int, ...]
    bends: tuple[tuple[int, ...], ...]


def layered(widths: Sequence[int], edges: Sequence[Edge]) -> Layout:
    """The layout of boxes with these widths. An edge that closes a cycle counts for nothing."""
    position = _order(len(widths), edges)
    forward = [(a, b) for a, b in edges if position[a] < position[b]]
    row = _rows(len(widths), forward, position)
    chains, owner = _chains(row, edges)
    size = [*widths, *([BEND] * len(owner))]
    rows: list[list[int]] = [[] for _ in range(max(row, default=-1) + 1)]
    for box in sorted(range(len(widths)), key=lambda it: position[it]):
        rows[row[box]].append(box)
    place = [*row, *owner]
    for bend, at in enumerate(owner, len(widths)):
        rows[at].append(bend)
    links = [link for chain in chains for link in pairwise(chain)]
    above: list[list[int]] = [[] for _ in place]
    below: list[list[int]] = [[] for _ in place]
    for a, b in links:
        above[b].append(a)
        below[a].append(b)
    _sort(rows, above, below)
    middle = _spread(rows, size, above, below)
    least = min((middle[it] - size[it] / 2 for it in range(len(size))), default=0.0)
    along = [round(x - least) for x in middle]
    routed = {(chain[0], chain[-1]): tuple(along[it] for it in chain[1:-1]) for chain in chains}
    return Layout(tuple(row), tuple(along[: len(widths)]), tuple(routed.get(edge, ()) for edge in edges))


def _order(count: int, edges: Sequence[Edge]) -> list[int]:
    """The position of each box behind all that lead to it, as far as there is no cycle; else the first in the list."""
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for a, b in edges:
        if a != b:
            after[a].append(b)
            waits[b] += 1
    ready = [it for it in range(count) if not waits[it]]
    position = [-1] * count
    done = first = 0
    while done < count:
        if not ready:
            while position[first] >= 0:
                first += 1
            ready = [first]
        box = heapq.heappop(ready)
        if position[box] >= 0:
            continue
        position[box], done = done, done + 1
        for b in after[box]:
            waits[b] -= 1
            if not waits[b] and position[b] < 0:
                heapq.heappush(ready, b)
    return position


def _rows(count: int, forward: Sequence[Edge], position: Sequence[int]) -> list[int]:
    """Each box below all that lead to it, in the first row with room, then as far down as no edges get longer by it."""
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for a, b in forward:
        before[b].append(a)
        after[a].append(b)
    most = max(_LEAST, isqrt(count))
    taken: dict[int, int] = {}
    free: dict[int, int] = {}

    def with_room(at: int) -> int:
        passed = []
        while at in free:
            passed.append(at)
            at = free[at]
        for it in passed:
            free[it] = at
        return at

    def take(box: int, at: int) -> None:
        row[box] = at
        taken[at] = taken.get(at, 0) + 1
        if taken[at] >= most:
            free[at] = at + 1

    row = [-1] * count
    order = sorted(range(count), key=lambda it: position[it])
    for box in order:
        if before[box] or not after[box]:
            take(box, with_room(max((row[a] + 1 for a in before[box] if row[a] >= 0), default=int(bool(before[box])))))
    for box in reversed(order):
        if after[box] and len(before[box]) <= len(after[box]):
            wanted = min(row[b] for b in after[box]) - 1
            while wanted > max(row[box], 0) and taken.get(wanted, 0) >= most:
                wanted -= 1
            if wanted > row[box]:
                taken[row[box]] = taken.get(row[box], 0) - 1
                taken[wanted] = taken.get(wanted, 0) + 1
                row[box] = wanted
    used = {at: number for number, at in enumerate(sorted(set(row)))}
    return [used[at] for at in row]


def _chains(row: Sequence[int], edges: Sequence[Edge]) -> tuple[list[list[int]], list[int]]:
    """The edges that are followed, each with the bends between its ends, and the row of each bend."""
    readers = Counter(a for a, _ in edges)
    few = [(a, b) for a, b in edges if readers[a] <= READERS]
    longest = SPAN
    while longest > 1 and sum(row[b] - row[a] - 1 for a, b in few if 1 < row[b] - row[a] <= longest) > 4 * len(row):
        longest //= 2
    chains: list[list[int]] = []
    owner: list[int] = []
    for a, b in edges:
        if 1 <= row[b] - row[a] <= (longest if readers[a] <= READERS else 1):
            chain = [a]
            for at in range(row[a] + 1, row[b]):
                chain.append(len(row) + len(owner))
                owner.append(at)
            chains.append([*chain, b])
    return chains, owner


def _sort(rows: list[list[int]], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> None:
    """Fewer crossings: each row in the order of the middle of its neighbours in the row before, down and up."""
    index = [0] * len(above)
    for members in rows:
        for number, it in enumerate(members):
            index[it] = number
    for sweep in range(2 * _SWEEPS):
        near, course = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        for members in course:
            if len(members) < 2:
                continue
            weight = {it: sum(index[o] for o in near[it]) / len(near[it]) if near[it] else index[it] for it in members}
            members.sort(key=weight.__getitem__)
            for number, it in enumerate(members):
                index[it] = number


def _spread(
    rows: Sequence[Sequence[int]], size: Sequence[int], above: Sequence[Sequence[int]], below: Sequence[Sequence[int]]
) -> list[float]:
    """Positions along the rows, near those of the neighbours."""
    at = [0.0] * len(size)
    for members in rows:
        total = sum(size[it] + GAP for it in members)
        left = -total / 2
        for it in members:
            at[it] = left + (size[it] + GAP) / 2
            left += size[it] + GAP
    weight = [_THROUGH if above[it] and below[it] else 1 for it in range(len(size))]
    for sweep in range(2 * _SWEEPS):
        near, course = (above, rows) if sweep % 2 == 0 else (below, rows[::-1])
        leading = [[it for it in row if weight[it] > 1] or row for row in near]
        for members in course:
            wanted = [sum(at[o] for o in leading[it]) / len(leading[it]) if near[it] else at[it] for it in members]
            places = separated(wanted, [size[it] for it in members], [weight[it] for it in members])
            for it, x in zip(members, places, strict=True):
                at[it] = x
    for members, shift in zip(rows, _drift([_mean(at, weight, members) for members in rows]), strict=True):
        for it in members:
            at[it] -= shift
    return at


def _mean(at: Sequence[float], weight: Sequence[int], members: Sequence[int]) -> float:
    return sum(at[it] * weight[it] for it in members) / max(sum(weight[it] for it in members), 1)


def _drift(middles: Sequence[float]) -> list[float]:
    """By how much each row is to be moved back where the rows wander far aside: the mean of those around it."""
    sums = [0.0, *accumulate(middles)]
    count = len(middles)
    spans = [(max(at - _AROUND, 0), min(at + _AROUND + 1, count)) for at in range(count)]
    means = [(sums[end] - sums[start]) / (end - start) for start, end in spans]
    return means if means and max(means) - min(means) > _FAR else [0.0] * count


def separated(wanted: Sequence[float], size: Sequence[int], weight: Sequence[int]) -> list[float]:
    """The positions closest to the wanted ones (least squares) at which no two boxes of a row come nearer than the gap:
    isotonic regression, by pooling neighbours that are in each other's way."""
    offset, offsets = 0.0, []
    for number, width in enumerate(size):
        offset += (width + size[number - 1]) / 2 + GAP if number else 0
        offsets.append(offset)
    pools: list[tuple[float, int, int]] = []
    for x, shift, heavy in zip(wanted, offsets, weight, strict=True):
        total, mass, count = (x - shift) * heavy, heavy, 1
        while pools and pools[-1][0] / pools[-1][1] >= total / mass:
            other, more, members = pools.pop()
            total, mass, count = total + other, mass + more, count + members
        pools.append((total, mass, count))
    flat = [total / mass for total, mass, count in pools for _ in range(count)]
    return [x + shift for x, shift in zip(flat, offsets, strict=True)]
