"""The arithmetic of sets of elements holds what an implementation may keep in its registers, in whatever wider type."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from any_order import BFLOAT, DOUBLE, FLOAT, HALF, TYPES, exact, rounded
from sonnx.semantics.operators.compiled.elements.bound import operation
from sonnx.semantics.operators.compiled.elements.bounds.conversions import constant
from sonnx.semantics.operators.compiled.elements.bounds.factors import reordered
from sonnx.semantics.operators.compiled.elements.bounds.rounding import limits
from sonnx.semantics.operators.compiled.elements.bounds.storage import everything, hull, known, lift, packed

OPERATIONS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "quotient": operator.truediv}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """NumPy's warnings are switched off, as the evaluator does it."""
    with np.errstate(all="ignore"):
        yield


def _numbers(dtype: Any, count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(count) * 2.0 ** rng.integers(-4, 5, count)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_set_holds_the_exact_result_and_its_rounding_to_every_wider_type(name: str, dtype: Any) -> None:
    a, b = _numbers(dtype, 60, 1), _numbers(dtype, 60, 2)
    sets = operation(name, dtype)(lift(dtype)(a), lift(dtype)(b))
    for x, y, found in zip(a, b, sets, strict=True):
        result = OPERATIONS[name](exact(x), exact(y))
        for wider in (dtype, *(w for w in (FLOAT, DOUBLE) if w.itemsize > dtype.itemsize), None):
            value = rounded(result, wider)
            assert Fraction(float(found["low"])) <= value <= Fraction(float(found["high"])), wider
        assert found["least"] == found["most"] == float(rounded(result, dtype))
        if rounded(result, dtype) != result:
            assert found["low"] < found["high"], "what is rounded is not known"


@pytest.mark.parametrize("dtype", [HALF, BFLOAT, FLOAT], ids=str)
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_set_of_sets_holds_the_results_of_their_members(name: str, dtype: Any) -> None:
    first, second = _numbers(dtype, 40, 3).astype(float), _numbers(dtype, 40, 4).astype(float)
    spread = np.abs(_numbers(DOUBLE, 40, 5)) / 8
    a, b = (packed(x - spread, x + spread, x - spread, x + spread, None, None) for x in (first, second))
    sets = operation(name, dtype)(a, b)
    rng = np.random.default_rng(6)
    for k in range(40):
        if name == "quotient" and abs(second[k]) <= spread[k]:
            assert sets[k]["least"] == -np.inf and sets[k]["most"] == np.inf
            continue
        for p, q in (*rng.uniform(-1, 1, (10, 2)), (1, 1), (-1, 1), (1, -1), (-1, -1)):
            x, y = first[k] + p * spread[k], second[k] + q * spread[k]
            result = OPERATIONS[name](Fraction(x), Fraction(y))
            assert Fraction(float(sets[k]["low"])) <= rounded(result, FLOAT) <= Fraction(float(sets[k]["high"]))
            assert sets[k]["least"] <= float(rounded(result, dtype)) <= sets[k]["most"]


def test_a_zero_of_either_sign_stays_one_beside_a_nan() -> None:
    low, high, nan = np.array([-0.0, 0.0]), np.array([0.0, 0.0]), np.array([False, True])
    sets = operation("mul", FLOAT)(packed(low, high, low, high, nan, nan), lift(FLOAT)(np.ones(2, np.float32)))
    assert np.isnan(sets["least"]).tolist() == [False, True]
    assert np.signbit(sets["least"][0]) and not np.signbit(sets["most"][0])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_number_that_the_type_lacks_may_be_kept_in_a_wider_type(dtype: Any) -> None:
    third = constant(dtype, Fraction(1, 3))
    for wider in (FLOAT, DOUBLE, None):
        if wider is None or wider.itemsize >= dtype.itemsize:
            assert Fraction(float(third["low"])) <= rounded(Fraction(1, 3), wider) <= Fraction(float(third["high"]))
    assert third["least"] == third["most"] == float(rounded(Fraction(1, 3), dtype))
    half = constant(dtype, Fraction(1, 2))
    assert half["low"] == half["high"] == 0.5


@pytest.mark.parametrize("dtype", [HALF, BFLOAT, FLOAT], ids=str)
def test_three_factors_may_be_multiplied_in_any_order_and_divided_by_an_inverse(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    x, y, z = (rng.choice([-1, 1], (3, 60)) * rng.uniform(0.5, 2, (3, 60))).astype(dtype)
    times, over = operation("mul", dtype), operation("quotient", dtype)
    sets = [lift(dtype)(v) for v in (x, y, z)]
    allowed = reordered(over(times(sets[0], sets[1]), sets[2]), (sets[0], sets[1]), (sets[2],), dtype)
    for k in range(60):
        factors = [exact(x[k]), exact(y[k]), 1 / exact(z[k])]
        for inverse in (factors[2], rounded(factors[2], dtype)):
            for first, second, third in permutations([*factors[:2], inverse]):
                value = rounded(rounded(first * second, dtype) * third, dtype)
                assert allowed[k]["least"] <= float(value) <= allowed[k]["most"]
    assert (allowed["most"] - allowed["least"] <= 12 * limits(dtype)[0] * np.abs(allowed["most"])).all()


def test_a_factor_that_may_overflow_in_another_order_leaves_the_written_one() -> None:
    x = lift(HALF)(np.asarray([200.0], HALF))
    small = lift(HALF)(np.asarray([0.001], HALF))
    times = operation("mul", HALF)
    written = times(times(x, small), times(x, x))
    assert reordered(written, (x, small, x, x), (), HALF) == written


def test_what_may_be_a_nan_is_anything_afterwards() -> None:
    maybe = hull(lift(FLOAT)(np.asarray([1.0], FLOAT)), lift(FLOAT)(np.asarray([np.nan], FLOAT)))
    assert np.isnan(maybe["low"][0]) and maybe["least"][0] == 1.0
    total = operation("add", FLOAT)(maybe, lift(FLOAT)(np.asarray([1.0], FLOAT)))
    assert np.isnan(total["low"][0]) and (total["least"][0], total["most"][0]) == (-np.inf, np.inf)
    sure = operation("mul", FLOAT)(lift(FLOAT)(np.asarray([np.nan], FLOAT)), maybe)
    assert np.isnan(sure["least"][0])


def test_plain_elements_become_sets_of_one_value_and_back() -> None:
    for dtype in (*TYPES, np.dtype(np.int64), np.dtype(np.uint8), np.dtype(bool)):
        values = np.asarray([0, 1, 1]).astype(dtype)
        assert known(lift(dtype)(values)).astype(dtype).tolist() == values.tolist()
    assert everything((2,), np.dtype(np.int8)).tolist() == [(-128, 127)] * 2
