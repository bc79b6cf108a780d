"""The allocator never gives a byte twice, joins what is released, and refuses what the budget does not allow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sonnx.semantics.errors import InternalError
from sonnx.semantics.machine.allocation.plan import Allocator, aligned, allocate, release
from sonnx.semantics.resources.persistent import items
from sonnx.semantics.resources.process import OutOfBudget
from tables import table

REQUESTS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50)), max_size=120)


def given_region(allocator: Allocator, size: int) -> tuple[Allocator, int]:
    found = allocate(allocator, size)
    assert not isinstance(found, OutOfBudget)
    return found


@given(REQUESTS, st.sampled_from([1, 64]), st.booleans())
def test_regions_in_use_never_share_a_byte_and_the_rest_is_accounted_for(
    requests: list[tuple[int, int]], alignment: int, reuse: bool
) -> None:
    """A request takes a region, and a second number that is that of a region in use releases it."""
    allocator = Allocator(1 << 40, alignment, reuse)
    used: list[tuple[int, int]] = []
    peak = 0
    for size, victim in requests:
        allocator, offset = given_region(allocator, size)
        assert offset % alignment == 0
        for start, length in used:
            assert offset + size <= start or start + length <= offset or not size or not length
        used.append((offset, size))
        peak = max(peak, allocator.top)
        if victim < len(used):
            start, length = used.pop(victim)
            allocator = release(allocator, start, length)
        if reuse:
            holes = list(items(allocator.holes))
            assert sum(aligned(length, alignment) for _, length in used) + sum(s for _, s in holes) == allocator.top
            ends = [start + size for start, size in holes]
            assert all(end < start for end, (start, _) in zip(ends, holes[1:], strict=False)), "joined"
            assert not ends or ends[-1] < allocator.top
            assert [(size, start) for start, size in sorted(holes, key=lambda hole: hole[::-1])] == list(
                allocator.by_size
            )
    assert allocator.peak == peak


@given(REQUESTS)
def test_nothing_remains_when_all_is_released(requests: list[tuple[int, int]]) -> None:
    allocator = Allocator(1 << 40, 64, reuse=True)
    used = []
    for size, _ in requests:
        allocator, offset = given_region(allocator, size)
        used.append((offset, size))
    for _, (offset, size) in sorted(zip(requests, used, strict=True)):
        allocator = release(allocator, offset, size)
    assert (allocator.top, len(allocator.holes), len(allocator.by_size)) == (0, 0, 0)


def test_the_smallest_hole_that_fits_is_taken_the_lowest_of_equal_ones() -> None:
    allocator = Allocator(1 << 20, 1, reuse=True)
    for size in (300, 1, 100, 1, 200, 1, 100, 1):
        allocator, _ = given_region(allocator, size)
    for offset, size in ((0, 300), (301, 100), (402, 200), (603, 100)):
        allocator = release(allocator, offset, size)
    assert given_region(allocator, 100)[1] == 301
    assert given_region(allocator, 101)[1] == 402
    assert given_region(allocator, 201)[1] == 0
    assert given_region(allocator, 301)[1] == 704
    smaller, offset = given_region(allocator, 90)
    assert offset == 301
    assert given_region(smaller, 10)[1] == 391


def test_without_reuse_offsets_only_grow() -> None:
    allocator = Allocator(1 << 20, 64, reuse=False)
    allocator, first = given_region(allocator, 10)
    assert release(allocator, first, 10) is allocator
    assert given_region(allocator, 10)[1] == 64


def test_the_budget_is_kept_to_the_byte_and_nothing_changes_when_it_is_not() -> None:
    allocator, _ = given_region(Allocator(128, 64, reuse=True), 65)
    assert allocate(allocator, 1, "tensor Y") == OutOfBudget(192, 128, "tensor Y")
    assert given_region(release(allocator, 0, 65), 128)[1] == 0
    assert given_region(Allocator(100, 1, reuse=True), 100)[0].top == 100
    assert isinstance(allocate(Allocator(99, 1, reuse=True), 100), OutOfBudget)


@table(("offset", "size"), [(0, 64), (64, 64), (0, 192), (64, 128), (256, 64), (192, 128)])
def test_releasing_what_is_free_is_a_defect(offset: int, size: int) -> None:
    allocator = Allocator(1 << 20, 64, reuse=True)
    for _ in range(4):
        allocator, _ = given_region(allocator, 64)
    allocator = release(release(allocator, 64, 64), 0, 64)
    with pytest.raises(InternalError, match="free already"):
        release(allocator, offset, size)


def test_an_allocator_is_a_value() -> None:
    one, _ = given_region(Allocator(1 << 20, 64, reuse=True), 64)
    left, right = given_region(one, 64), given_region(one, 128)
    assert left[1] == right[1] == 64
    assert (one.top, left[0].top, right[0].top) == (64, 128, 192)
