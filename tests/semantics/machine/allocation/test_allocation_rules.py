"""The written rules of a usable plan and the check that runs before one is used say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from random import Random

from sonnx.semantics.facts.structure import Key, SetTable, Structure, Table, Value, ValueTable
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.machine.allocation.plan import Allocation, AllocationPlan, Lifetime, check
from sonnx.spec.language.syntax import Expr
from sonnx.spec.library import specification
from tables import table

RULES = ("covered", "bounded", "aligned", "disjoint")
PLAN = 0


def tables(plan: AllocationPlan, alive: Sequence[Lifetime]) -> dict[str, Table]:
    """The functions that the text leaves to whoever has a plan."""

    def of_plan(values: dict[int, int]) -> ValueTable:
        rows: dict[Key, Value] = {(PLAN, tensor): value for tensor, value in values.items()}
        return ValueTable(rows)

    places = {place.tensor: place for place in plan.allocations}
    tensors = sorted({*places, *(life.tensor for life in alive)})
    return {
        "all_tensors": SetTable({(): tuple(tensors)}),
        "live": SetTable({life.tensor: tuple(range(life.first, life.last + 1)) for life in alive}),
        "bytes": ValueTable({life.tensor: life.size for life in alive}),
        "placed": SetTable({PLAN: tuple(sorted(places))}),
        "offset": of_plan({t: place.offset for t, place in places.items()}),
        "size": of_plan({t: place.size for t, place in places.items()}),
        "begins": of_plan({t: place.first for t, place in places.items()}),
        "ends": of_plan({t: place.last for t, place in places.items()}),
        "capacity": ValueTable({PLAN: plan.total}),
        "alignment": ValueTable({PLAN: plan.alignment}),
    }


def broken(plan: AllocationPlan, alive: Sequence[Lifetime]) -> set[str]:
    """The rules that the text says the plan breaks."""
    given = tables(plan, alive)
    functions = {
        name: replace(function, kind="fact") if name in given else function
        for name, function in specification().functions.items()
    }
    structure = Structure({name: partial(given.__getitem__, name) for name in given}, lambda _, element: str(element))
    found = set()
    for rule in (*RULES, "usable"):
        value = direct.evaluate(Expr("call", (rule, Expr("var", ("P",)))), {"P": PLAN}, functions, structure)
        if value is False:
            found.add(rule)
        elif value is not True:
            raise AssertionError(value)
    return found


FILES = ("4-allocation.sonnx", "primitives.sonnx")


def test_every_rule_of_the_check_is_a_declaration() -> None:
    declared = {name for name, it in specification().functions.items() if it.span.file in FILES}
    assert {*RULES, "usable", *tables(AllocationPlan((), 0, 1), ())} - {"all_tensors"} <= declared


def agree(plan: AllocationPlan, alive: Sequence[Lifetime]) -> set[str]:
    by_text = broken(plan, alive)
    assert {problem.rule for problem in check(plan, alive)} == by_text - {"usable"}, (plan, alive)
    assert ("usable" in by_text) == bool(by_text - {"usable"})
    return by_text


def test_text_and_check_agree_on_every_plan_of_two_small_tensors() -> None:
    alive = (Lifetime(0, 1, 0, 1), Lifetime(1, 2, 1, 1))
    regions = list(product((-1, 0, 1, 2), (0, 1, 2), (0, 1), (0, 1)))
    seen: set[str] = set()
    for a, b in product(regions[::7], regions):
        for alignment in (1, 2):
            seen |= agree(AllocationPlan((Allocation(0, *a), Allocation(1, *b)), 3, alignment), alive)
    assert seen == {*RULES, "usable"}


@table("seed", range(100))
def test_text_and_check_agree_on_random_plans(seed: int) -> None:
    random = Random(seed)
    count = random.randrange(9)
    alive, places = [], []
    for tensor in range(count):
        size, first = random.randrange(5), random.randrange(-1, 6)
        life = Lifetime(tensor, size, first, first + random.randrange(3))
        alive.append(life)
        offset = random.randrange(0, 40, random.choice((1, 4)))
        place = Allocation(tensor, offset, size, life.first, life.last)
        if random.random() < 0.1:
            place = replace(place, **{random.choice(("size", "first", "last")): random.randrange(4)})
        if random.random() > 0.05:
            places.append(place)
    agree(AllocationPlan(tuple(places), 40, random.choice((1, 4))), alive)
