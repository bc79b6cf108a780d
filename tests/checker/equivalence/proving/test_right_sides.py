"""What the right side of a rewrite needs is owed in each case: none is left out since what is owed excludes it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sonnx.checker.equivalence.proving import sides
from sonnx.checker.equivalence.proving.judging import judge
from sonnx.checker.equivalence.proving.rules import PROVED, Rule
from sonnx.checker.equivalence.proving.sides import Choices, Side
from sonnx.semantics.formulas.terms import Term
from sonnx.semantics.operators.symbolic.numbers import equal
from sonnx.semantics.operators.symbolic.values import Bounded, Evaluation, Name, Scope, Value
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.library import extended, own_specification

SIZE = Term("dim.n")

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
    "a schema admits no bool": (
        "(X: float[d...], Z: float[d...]) -> Y: bool",
        "from Y = Equal@19(X, Z) to Y = Dropout@13(Equal@19(X, Z))",
    ),
    "a schema admits no int32": (
        "(X: float[d...]) -> Y: int32",
        "from Y = Cast@13(X; to = 6) to Y = Dropout@13(Cast@13(X; to = 6))",
    ),
    "a variadic input admits no bool": (
        "(X: int8[d...], Z: int8[d...]) -> Y: bool",
        "from Y = Equal@19(X, Z) to Y = Max@13(Equal@19(X, Z))",
    ),
    "a schema does not admit each type that an attribute may name": (
        "(X: float[d...]) -> Y: int64",
        "from Y = Shape@25(Cast@13(X; to = t)) to Y = Shape@25(Dropout@13(Cast@13(X; to = t)))",
    ),
    "another application on the left side admits more types": (
        "(X: float[d...]) -> Y: int64",
        "from Y = Shape@25(Relu@14(Cast@13(X; to = t))) to Y = Shape@25(Dropout@13(Cast@13(X; to = t)))",
    ),
    "an output has a type that its schema does not admit": (
        "(X: float[d...]) -> Y: int64",
        "from Y = Shape@25(Cast@13(X; to = 6)) to Y = Shape@25(Cast@13(X; to = 17))",
    ),
    "a variadic input has more tensors than are tried": (
        "(A*: T[d...]) -> Y: T",
        'from Y = Sum@13(A) to Y = Mean@13(A) when len(A) = 1 or len(A) > 3 "A sentence."',
    ),
    "no output has an element": (
        "(X: float[n]) -> Y: float",
        'from Y = Relu@14(X) to Y = Relu@14(Identity@13(X)) when n = 0 "A sentence."',
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", WRONG)
def test_a_right_side_that_may_be_stuck_is_not_proved(why: str) -> None:
    heading, sides = WRONG[why]
    text = f'rewrite Wrong {heading} "A sentence." source "a test" {sides} exactly'
    it = extended(own_specification(), {"wrong.sonnx": text}).rules["Wrong"]
    found = judge(Rule(it.name, it.claim, it.left, it.right, it.stored, it.doc), most=1, search=False)
    assert found.verdict != PROVED


def test_a_right_side_may_use_each_type_that_an_attribute_of_the_left_side_may_name() -> None:
    text = (
        'rewrite Right (X: float[d...]) -> Y: int64 "A sentence." source "a test"'
        " from Y = Shape@25(Relu@14(Cast@13(X; to = t))) to Y = Shape@25(Relu@14(Relu@14(Cast@13(X; to = t)))) exactly"
    )
    it = extended(own_specification(), {"right.sonnx": text}).rules["Right"]
    found = judge(Rule(it.name, it.claim, it.left, it.right, it.stored, it.doc), most=1, search=False)
    assert found.verdict == PROVED


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


@pytest.mark.parametrize(("fact", "contradictory"), [(equal(SIZE, 0), True), (equal(SIZE, 2), False)])
def test_a_case_of_which_the_right_side_says_what_cannot_be_is_no_proof(
    monkeypatch: pytest.MonkeyPatch, fact: Term, contradictory: bool
) -> None:
    """The left side has an element, the facts about the right one are wrong: nothing would be left to show."""
    began = sides._right

    def wrong(operator: CoreOperator, env: Mapping[Name, Value], run: Evaluation) -> tuple[Scope, Side | None]:
        run.axioms.append(fact)
        return began(operator, env, run)

    monkeypatch.setattr(sides, "_right", wrong)
    heading = '(X: float[n]) -> Y: float "A sentence." source "a test"'
    text = f'rewrite Tried {heading} from Y = Relu@14(X) to Y = Relu@14(X) when n >= 1 "A sentence." exactly'
    it = extended(own_specification(), {"tried.sonnx": text}).rules["Tried"]
    found = judge(Rule(it.name, it.claim, it.left, it.right, it.stored, it.doc), most=1, search=False)
    assert (found.verdict != PROVED) == contradictory
    assert any("contradicts itself" in reason for reason in found.reasons) == contradictory


def test_what_was_decided_of_a_symbol_is_not_known_of_another_one_with_its_name() -> None:
    choices = Choices({}, made=("count.a!0", "count!0"))
    choices.check(dict.fromkeys(("dim.n", "count.a!0", "count!0", "count!1")))
    choices.check(dict.fromkeys(("count.a!0",)))
    with pytest.raises(Bounded, match="changes what the evaluation makes"):
        choices.check(dict.fromkeys(("count!0", "count!1")))
