"""The arithmetic of the rechecker over sizes: what it proves holds at every size that is tried."""

from __future__ import annotations

import random
from itertools import product

import pytest
from sampling import seeds
from sonnx.checker.rechecker.operators import formulas as num
from sonnx.checker.rechecker.operators.formulas import (
    Every,
    Formula,
    Int,
    Symbol,
    at_least,
    both,
    either,
    equal,
    opposite,
    poly,
    spelled,
    truth_at,
)
from sonnx.checker.rechecker.operators.proving import bounds, entails
from tables import table

SIZES = (Symbol("H", "size", least=1), Symbol("W", "size", least=1), Symbol("k", "data", least=-2, most=3))
AT = [dict(zip(("H", "W", "k"), values, strict=True)) for values in product(range(1, 8), range(1, 8), range(-2, 4))]
"""Every combination of small values."""


def _number(draw: random.Random, depth: int) -> Int:
    if depth == 0 or draw.random() < 0.2:
        return draw.randint(-4, 4) if draw.random() < 0.3 else poly(draw.choice(SIZES))
    left, right = _number(draw, depth - 1), _number(draw, depth - 1)
    match draw.randrange(7):
        case 0:
            return num.add(left, right)
        case 1:
            return num.subtract(left, right)
        case 2:
            return num.multiply(left, right)
        case 3:
            return num.floor_div(left, draw.randint(1, 4))
        case 4:
            return num.floor_mod(left, draw.randint(1, 4))
        case 5:
            return num.greater(left, right)
        case _:
            return num.chosen(_formula(draw, 0), left, right)


def _formula(draw: random.Random, depth: int) -> Formula:
    if depth == 0 or draw.random() < 0.4:
        make = equal if draw.random() < 0.3 else at_least
        return make(_number(draw, 1), _number(draw, 1))
    parts = [_formula(draw, depth - 1) for _ in range(2)]
    return draw.choice((both(*parts), either(*parts), opposite(parts[0])))


@pytest.mark.parametrize("seeds", seeds(300, 60))
def test_a_normal_form_has_the_value_of_what_it_stands_for(seeds: range) -> None:
    for draw in map(random.Random, seeds):
        a, b = _number(draw, 2), _number(draw, 2)
        by = draw.randint(1, 5)
        for at in draw.sample(AT, 20):
            x, y = num.value_at(a, at), num.value_at(b, at)
            assert num.value_at(num.add(a, b), at) == x + y
            assert num.value_at(num.multiply(a, b), at) == x * y
            assert num.value_at(num.subtract(a, b), at) == x - y
            assert num.value_at(num.floor_div(a, by), at) == x // by
            assert num.value_at(num.floor_div(a, -by), at) == x // -by
            assert num.value_at(num.floor_mod(a, by), at) == x % by
            assert num.value_at(num.greater(a, b), at) == max(x, y)
            exact = num.divided(a, b) if b != 0 else None
            if exact is not None and y != 0:
                assert num.value_at(exact, at) * y == x
            low, high = bounds(a)
            assert low <= x <= high


@pytest.mark.parametrize("seeds", seeds(300, 60))
def test_a_formula_has_the_truth_of_what_it_stands_for(seeds: range) -> None:
    for draw in map(random.Random, seeds):
        a, b, c, d = _number(draw, 2), _number(draw, 2), _formula(draw, 2), _formula(draw, 2)
        for at in draw.sample(AT, 20):
            x, y, p, q = num.value_at(a, at), num.value_at(b, at), truth_at(c, at), truth_at(d, at)
            assert truth_at(at_least(a, b), at) == (x >= y)
            assert truth_at(equal(a, b), at) == (x == y)
            assert truth_at(both(c, d), at) == (p and q)
            assert truth_at(either(c, d), at) == (p or q)
            assert truth_at(opposite(c), at) == (not p)
            assert num.value_at(num.chosen(c, a, b), at) == (x if p else y)


@pytest.mark.parametrize("seeds", seeds(600, 120))
def test_what_is_proved_holds_at_every_size_tried(seeds: range) -> None:
    for draw in map(random.Random, seeds):
        facts = [_formula(draw, draw.randint(0, 2)) for _ in range(draw.randint(0, 3))]
        goal = _formula(draw, 2)
        for claim in (goal, opposite(goal), False):
            if entails(facts, claim):
                wrong = [at for at in AT if all(truth_at(f, at) for f in facts) and not truth_at(claim, at)]
                assert not wrong, (wrong[0], [*map(spelled, facts)], spelled(claim))


H, W = map(poly, SIZES[:2])


@table(
    ("facts", "goal"),
    [
        ([], at_least(num.floor_div(num.add(H, 1), 2), 1)),  # ceil(H / 2) >= 1
        ([at_least(H, 3)], at_least(num.floor_div(num.subtract(H, 1), 2), 1)),
        ([], equal(num.floor_div(num.multiply(2, H), 2), H)),
        ([at_least(H, 7)], at_least(num.floor_div(num.floor_div(num.add(H, -1), 2), 3), 1)),
        ([], at_least(num.multiply(H, W), W)),
        ([equal(num.floor_mod(H, 4), 0)], equal(num.multiply(4, num.floor_div(H, 4)), H)),
        ([], at_least(num.greater(H, W), H)),
        ([at_least(H, W)], equal(num.greater(H, W), H)),
    ],
)
def test_what_convolutions_need_is_proved(facts: list[Formula], goal: Formula) -> None:
    assert entails(facts, goal)


@pytest.mark.parametrize(
    ("facts", "goal"),
    [([], at_least(H, 2)), ([at_least(H, 3)], at_least(num.floor_div(num.add(H, -3), 2), 1)), ([], equal(H, W))],
)
def test_what_does_not_follow_is_not_proved(facts: list[Formula], goal: Formula) -> None:
    assert not entails(facts, goal)


def test_a_range_is_gone_through_at_given_sizes() -> None:
    index = Symbol("i#1", "index", least=0)
    below = Every((index,), (H,), at_least(num.subtract(W, 1), poly(index)))
    assert truth_at(below, {"H": 3, "W": 3})
    assert not truth_at(below, {"H": 4, "W": 3})
    assert truth_at(opposite(below), {"H": 4, "W": 3})
