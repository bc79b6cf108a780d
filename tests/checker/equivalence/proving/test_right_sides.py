"""What the right side of a rewrite needs is owed in each case: none is left out since what is owed excludes it."""

from __future__ import annotations

import pytest
from sonnx.checker.equivalence.proving.judging import judge
from sonnx.checker.equivalence.proving.rules import PROVED, Rule
from sonnx.spec.library import extended, own_specification

WRONG = {
    "an axis is named twice": (
        "(X: T[], a!: int64[1], b!: int64[1]) -> Y: T",
        "from Y = Unsqueeze@25(Unsqueeze@25(X, a), b) to Y = Unsqueeze@25(X, Concat@13(a, b; axis = 0))",
    ),
    "an axis is out of range": (
        "(X: T[d...]) -> Y: int64",
        "from Y = ArgMax@13(X; axis = k, keepdims = l, select_last_index = s)"
        " to Y = ArgMax@13(X; axis = k + len(d), keepdims = l, select_last_index = s)",
    ),
    "two element types are added": (
        "(X: float[d...]) -> Y: float",
        "from Y = Cast@13(Sub@14(X, X); to = 1)"
        " to Y = Cast@13(Sub@14(Add@14(Cast@13(X; to = 11), X), Add@14(Cast@13(X; to = 11), X)); to = 1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", WRONG)
def test_a_right_side_that_may_be_stuck_is_not_proved(why: str) -> None:
    heading, sides = WRONG[why]
    text = f'rewrite Wrong {heading} "A sentence." source "a test" {sides} exactly'
    it = extended(own_specification(), {"wrong.sonnx": text}).rules["Wrong"]
    found = judge(Rule(it.name, it.claim, it.left, it.right, it.stored, it.doc), most=1, search=False)
    assert found.verdict != PROVED


HEADINGS = {
    "one type": "(X: float[n], c: float[]) -> Y: float {}",
    "types that are left open": "(X: T[n], c: T[]) -> Y: T {} types T = float, double",
    "types among which some are no numbers": "(X: T[n], c: T[]) -> Y: T {}",
    "types without the number": "(X: T[n], c: T[]) -> Y: T {} types T = uint8, uint16",
}
CONDITIONS = {
    "n = 0 and n = 1": list(HEADINGS),
    "c[] > 1 and c[] < 0": list(HEADINGS),
    "c[] < 0": ["types without the number"],
}


@pytest.mark.parametrize(("condition", "which"), [(c, name) for c, names in CONDITIONS.items() for name in names])
def test_a_rule_whose_conditions_contradict_each_other_is_not_proved(condition: str, which: str) -> None:
    heading = HEADINGS[which].format('"A sentence." source "a test"')
    side = "Where@9(Equal@19(X, X), X, c)" if "some" in which else "Max@13(X, c)"
    text = f'rewrite Empty {heading} from Y = {side} to Y = X when {condition} "Never." exactly'
    it = extended(own_specification(), {"empty.sonnx": text}).rules["Empty"]
    found = judge(Rule(it.name, it.claim, it.left, it.right, it.stored, it.doc), most=1, search=False)
    assert found.verdict != PROVED
