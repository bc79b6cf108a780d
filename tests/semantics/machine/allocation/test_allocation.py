"""Plans: each tensor has its bytes while it is live, and the check finds every flaw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product

from hypothesis import given
from hypothesis import strategies as st
from onnx import parser
from planned_lifetimes import lifetimes
from sonnx.semantics.machine.allocation.plan import (
    BEFORE,
    Allocation,
    AllocationPlan,
    Lifetime,
    aligned,
    arena,
    check,
    lower_bound,
    simple,
)
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.resources.process import OutOfBudget
from tables import table

LIVES = st.lists(
    st.tuples(st.integers(0, 300), st.integers(-1, 20), st.integers(0, 6)),
    max_size=40,
).map(lambda found: tuple(Lifetime(i, size, first, first + more) for i, (size, first, more) in enumerate(found)))
ALIGNMENTS = st.sampled_from([1, 8, 64])


def plan(found: AllocationPlan | OutOfBudget) -> AllocationPlan:
    assert isinstance(found, AllocationPlan)
    return found


def sound(found: AllocationPlan, alive: tuple[Lifetime, ...]) -> bool:
    """The definition, as slow as it is plain: every byte at every step has one user."""
    users: set[tuple[int, int]] = set()
    for place in found.allocations:
        if place.offset % found.alignment or place.offset < 0 or place.offset + place.size > found.total:
            return False
        for use in product(range(place.first, place.last + 1), range(place.offset, place.offset + place.size)):
            if use in users:
                return False
            users.add(use)
    return all(
        any(
            p.tensor == life.tensor and p.size >= life.size and p.first <= life.first and p.last >= life.last
            for p in found.allocations
        )
        for life in alive
    )


@given(LIVES, ALIGNMENTS)
def test_both_plans_are_sound_and_not_below_the_lower_bound(alive: tuple[Lifetime, ...], alignment: int) -> None:
    straight, reused = plan(simple(alive, alignment)), plan(arena(alive, alignment))
    for found in (straight, reused):
        assert sound(found, alive)
        assert check(found, alive) == ()
        assert [place.tensor for place in found.allocations] == [life.tensor for life in alive]
        ends = [place.offset + aligned(place.size, alignment) for place in found.allocations]
        assert lower_bound(alive) <= found.total == max(ends, default=0)
    assert reused.total <= straight.total


@given(LIVES)
def test_the_lower_bound_is_the_largest_sum_over_a_step(alive: tuple[Lifetime, ...]) -> None:
    sums = [sum(life.size for life in alive if life.first <= step <= life.last) for step in range(-2, 30)]
    assert lower_bound(alive) == max(sums)


def small_plans() -> Iterator[AllocationPlan]:
    """All plans of two regions at few addresses and steps, and of a third beside them."""
    regions = [
        Allocation(0, offset, size, first, last)
        for offset, size, first, last in product((0, 1, 2), (0, 1, 2), (0, 1), (0, 1))
        if first <= last
    ]
    for a, b in product(regions, regions):
        yield AllocationPlan((a, replace(b, tensor=1)), 3, 1)
        yield AllocationPlan((Allocation(2, 0, 3, 2, 2), a, replace(b, tensor=1)), 4, 2)


def test_the_check_agrees_with_the_definition_on_every_small_plan() -> None:
    found = {True: 0, False: 0}
    for candidate in small_plans():
        good = sound(candidate, ())
        assert (check(candidate) == ()) == good, candidate
        found[good] += 1
    assert min(found.values()) > 100


@given(
    st.lists(
        st.builds(
            lambda offset, size, first, more: Allocation(0, offset, size, first, first + more),
            st.integers(0, 30),
            st.integers(0, 6),
            st.integers(-1, 9),
            st.integers(0, 4),
        ),
        max_size=12,
    )
)
def test_the_check_agrees_with_the_definition_on_crowded_plans(places: list[Allocation]) -> None:
    candidate = AllocationPlan(tuple(replace(place, tensor=i) for i, place in enumerate(places)), 36, 1)
    assert (check(candidate) == ()) == sound(candidate, ())


ALIVE = (Lifetime(7, 64, 0, 2), Lifetime(8, 100, 1, 2), Lifetime(9, 64, 3, 3))
GOOD = AllocationPlan((Allocation(7, 0, 64, 0, 2), Allocation(8, 64, 100, 1, 2), Allocation(9, 0, 64, 3, 3)), 164, 64)


@table(
    ("which", "change", "rule", "message"),
    [
        (1, {"offset": 0}, "disjoint", "tensors 7 and 8 share bytes 0 to 64 at steps 1 to 2"),
        (2, {"first": 2}, "disjoint", "tensors 7 and 9 share bytes 0 to 64 at steps 2 to 2"),
        (1, {"offset": 128}, "bounded", "tensor 8 lies at bytes 128 to 228, outside of the 164 bytes of M"),
        (0, {"offset": -64}, "bounded", "tensor 7 lies at bytes -64 to 0, outside of the 164 bytes of M"),
        (2, {"offset": 8}, "aligned", "tensor 9 lies at bytes 8 to 72, which do not start at a multiple of 64"),
        (1, {"size": 99}, "covered", "tensor 8 has no region of 100 bytes at steps 1 to 2"),
        (1, {"first": 2}, "covered", "tensor 8 has no region of 100 bytes at steps 1 to 2"),
        (1, {"last": 1}, "covered", "tensor 8 has no region of 100 bytes at steps 1 to 2"),
        (1, {"tensor": 3}, "covered", "tensor 8 has no region of 100 bytes at steps 1 to 2"),
    ],
)
def test_each_flaw_of_a_plan_is_named(which: int, change: dict[str, int], rule: str, message: str) -> None:
    assert check(GOOD, ALIVE) == ()
    places = list(GOOD.allocations)
    places[which] = replace(places[which], **change)
    problems = check(replace(GOOD, allocations=tuple(places)), ALIVE)
    assert [(problem.rule, problem.message) for problem in problems] == [(rule, message)]


def test_tensors_that_touch_in_time_or_space_do_not_overlap() -> None:
    beside = AllocationPlan((Allocation(0, 0, 8, 0, 5), Allocation(1, 8, 8, 0, 5)), 16, 8)
    after = AllocationPlan((Allocation(0, 0, 8, 0, 5), Allocation(1, 0, 8, 6, 9)), 8, 8)
    assert check(beside) == check(after) == ()


def test_more_than_the_budget_is_refused_with_what_it_would_take() -> None:
    assert simple(ALIVE, 64, 255) == OutOfBudget(256, 255, "tensor 9")
    assert arena(ALIVE, 64, 191) == OutOfBudget(192, 191, "the arena")
    assert plan(arena(ALIVE, 64, 192)).total == 192
    assert isinstance(simple((Lifetime(0, 1 << 70, 0, 0),)), OutOfBudget)


def test_a_chain_needs_two_buffers_and_the_plan_is_made_in_time() -> None:
    chain = tuple(Lifetime(i, 1000, i, i + 1) for i in range(20_000))
    found = plan(arena(chain))
    assert lower_bound(chain) == 2000
    assert found.total == 2048
    assert check(found, chain) == ()


def test_the_arena_reaches_the_lower_bound_where_order_by_size_is_needed() -> None:
    """In order of time the small tensor lands at the bottom and splits the space that the large one needs later."""
    alive = (Lifetime(0, 64, 0, 1), Lifetime(1, 64, 1, 3), Lifetime(2, 128, 2, 3))
    assert plan(arena(alive)).total == lower_bound(alive) == 192


def test_no_order_of_small_tensors_breaks_a_plan() -> None:
    for sizes in permutations((0, 1, 63, 64)):
        for firsts in combinations(range(6), 4):
            alive = tuple(Lifetime(i, s, f, f + s % 3) for i, (s, f) in enumerate(zip(sizes, firsts, strict=True)))
            assert sound(plan(arena(alive)), alive)


TEXT = """
<ir_version: 10, opset_import: ["": 18]>
m (float[2] x, float[2] unused, bool c) => (float[2] y, float[2] x) <float[2] w = {1, 2}> {
    a = Add (x, w)
    b = Relu (a)
    d = Neg (b)
    y = If (c) <then_branch = t () => (float[2] u) { u = Add (a, b) },
                else_branch = e () => (float[2] v) { v = Neg (b) }>
}
"""


def numbered(model: Model) -> dict[str, int]:
    return {tensor.name: t for t, tensor in enumerate(model.tensors)}


def test_lifetimes_run_from_the_writer_to_the_last_reader() -> None:
    model = load_proto(parser.parse_model(TEXT))
    t = numbered(model)
    schedule = model.graphs[0].nodes
    found = {life.tensor: (life.first, life.last) for life in lifetimes(model, schedule, dict.fromkeys(t.values(), 8))}
    end = len(schedule)
    assert found == {
        t["x"]: (BEFORE, end),
        t["unused"]: (BEFORE, BEFORE),
        t["c"]: (BEFORE, 3),
        t["w"]: (BEFORE, end),
        t["a"]: (0, 3),
        t["b"]: (1, 3),
        t["d"]: (2, 2),
        t["y"]: (3, end),
    }


def test_only_tensors_whose_size_is_known_have_a_lifetime() -> None:
    model = load_proto(parser.parse_model(TEXT))
    t = numbered(model)
    found = lifetimes(model, model.graphs[0].nodes, {t["a"]: 5, t["b"]: 0})
    assert found == (Lifetime(t["a"], 5, 0, 3), Lifetime(t["b"], 0, 1, 3))
