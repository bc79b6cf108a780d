"""What a rule set forbids of an operator is defined all the same: the machine does not look at `restrict`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sonnx.spec.library import specification

F = np.float32
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]


def test_the_least_integer_has_an_absolute_value_by_wrapping(run: Run, same: Check) -> None:
    same(run("Abs", 13, np.array([-128, -5], np.int8)), np.array([-128, 5], np.int8))


def test_a_negative_epsilon_and_a_negative_variance_are_computed_with(run: Run, same: Check) -> None:
    one, zero = np.ones(1, F), np.zeros(1, F)
    x = np.array([[1], [-2]], F)
    for version in (9, 14, 15):
        mode = {"training_mode": 0} if version > 9 else {}
        found = run("BatchNormalization", version, x, one, zero, zero, np.array([5], F), epsilon=-1.0, **mode)
        same(found, np.array([[0.5], [-1]], F))
        same(run("BatchNormalization", version, x, one, zero, zero, -one, epsilon=2.0, **mode), x)
    same(run("BatchNormalization", 7, x[..., None], one, zero, zero, -one, epsilon=2.0), x[..., None])


def test_a_slice_is_limited_to_its_axis_and_may_be_empty(run: Run, same: Check) -> None:
    x = np.arange(4, dtype=F)
    for start, end, expected in ((-9, 2**63 - 1, x), (7, 9, x[:0])):
        same(run("Slice", 13, x, *(np.array([n], np.int64) for n in (start, end, 0, 1))), expected)


def test_the_restrictions_are_those_of_four_operators() -> None:
    restricted = {
        name: {text.first for text in texts if any(s.kind == "restrict" for s in text.statements)}
        for name, texts in specification().operators.items()
    }
    assert {name: first for name, first in restricted.items() if first} == {
        "Abs": {6},
        "BatchNormalization": {1, 6, 7, 9, 14, 15},
        "Constant": {11, 12},
        "Slice": {10},
    }
