"""Sums over the reals: squared differences from a mean are taken apart, and steps are counted."""

from __future__ import annotations

import pytest
from sonnx.checker.equivalence.proving import axioms
from sonnx.checker.equivalence.proving.judging import judge
from sonnx.checker.equivalence.proving.rules import PROVED, Rule
from sonnx.spec.library import own_specification


@pytest.mark.parametrize("name", ["VarianceOfSquares", "SkipLayerNormalizationSum"])
def test_a_variance_by_squares_is_that_by_differences(name: str) -> None:
    it = own_specification().rules[name]
    found = judge(Rule(it.name, it.claim, it.left, it.right, it.stored, it.doc), search=False)
    assert (found.verdict, found.strength) == (PROVED, "reals")
    assert {axioms.COUNTED, axioms.LINEAR} <= set(found.axioms)
