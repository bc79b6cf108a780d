"""Whether a plan may be used: each tensor has its bytes while it is live, and nobody else has them then."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from ...model.graph import TensorId
from .plan import AllocationPlan, Lifetime, Placement


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a plan may not be used. rule: its name in spec/4-allocation.sonnx; tensors: the one or two that break it."""

    rule: str
    tensors: tuple[TensorId, ...]
    message: str


def check(plan: AllocationPlan, alive: Iterable[Lifetime] = ()) -> tuple[Problem, ...]:
    """What is wrong with a plan for these lifetimes; nothing when it may be used. It takes O(n log n).

    A tensor that shares bytes with several others is reported with one of them at least.
    """
    return (
        *_uncovered(plan, alive),
        *(p for place in plan.placements for p in _misplaced(plan, place)),
        *_shared(plan),
    )


def _uncovered(plan: AllocationPlan, alive: Iterable[Lifetime]) -> Iterable[Problem]:
    placed: dict[TensorId, list[Placement]] = {}
    for place in plan.placements:
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


def _misplaced(plan: AllocationPlan, place: Placement) -> Iterable[Problem]:
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
    users: dict[int, Placement] = {}
    for place in sorted(plan.placements, key=lambda place: place.first):
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


def _meet(a: Placement, b: Placement) -> bool:
    return a.offset < b.offset + b.size and b.offset < a.offset + a.size
