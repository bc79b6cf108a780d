"""Needed names are found by halves, whatever the sets are with which something happens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest
from sonnx.checker.runtimes.bisection.halving import least, needed

NAMES = ("a", "b", "c", "d")
SETS = [frozenset(it) for size in range(len(NAMES) + 1) for it in combinations(NAMES, size)]


def every_predicate(names: int) -> Iterator[frozenset[frozenset[str]]]:
    """The sets with which it happens, for all ways that this can be: not with none, and with all."""
    inner = [it for it in SETS if 0 < len(it) < names and it <= set(NAMES[:names])]
    for bits in range(1 << len(inner)):
        yield frozenset((*(it for at, it in enumerate(inner) if bits >> at & 1), frozenset(NAMES[:names])))


@pytest.mark.parametrize("names", [1, 2, 3, 4])
def test_it_happens_with_what_is_needed_and_with_nothing_left_out(names: int) -> None:
    for holds in every_predicate(names):
        found = frozenset(needed(NAMES[:names], holds.__contains__))
        assert found in holds
        assert not any(found - {it} in holds for it in found)


def test_nothing_is_needed_where_it_happens_with_none() -> None:
    assert needed(NAMES, lambda _: True) == ()


def test_few_of_many_take_few_questions() -> None:
    many = [f"n{at}" for at in range(10_000)]
    for wanted in (["n0"], ["n9999"], ["n4321"], ["n17", "n9000"], ["n1", "n2", "n3"]):
        asked = 0

        def happens(names: frozenset[str], wanted: frozenset[str] = frozenset(wanted)) -> bool:
            nonlocal asked
            asked += 1
            return wanted <= names

        assert needed(many, happens) == tuple(wanted)
        assert asked <= len(wanted) * 17 + 2


def test_the_least_names_come_in_their_order() -> None:
    assert least(("d", "b", "a"), lambda names: {"b", "d"} <= names) == ("d", "b")
