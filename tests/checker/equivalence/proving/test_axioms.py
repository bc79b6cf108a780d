"""Each law that a proof can use is listed with how it is shown, and is shown."""

from __future__ import annotations

import pytest
from sonnx.checker.definedness.induction import failures, goals
from sonnx.checker.equivalence.proving import axioms, suite, validation
from sonnx.checker.equivalence.proving.rules import PROVED, Verdict

GOALS = list(goals())
NAMED = (
    *axioms.COMMUTES.values(), *axioms.POSITIONS.values(), axioms.WIDE, axioms.CONGRUENCE, axioms.SIGN, axioms.OWN,
    axioms.FIELD, axioms.LINEAR, axioms.COUNTED,
)  # fmt: skip


def test_each_law_is_printed_with_how_it_is_shown() -> None:
    laws = (*(law.name for law in axioms.LAWS), *NAMED)
    printed = suite.axioms_used([Verdict("Rule", "exact", PROVED, axioms=laws)])
    assert all(how for how in (line.partition(f"{law}: ")[2] for law, line in zip(laws, printed, strict=True)))
    assert set(axioms.LISTED) == set(NAMED)


@pytest.mark.parametrize("law", axioms.LEMMAS)
def test_a_law_by_induction_is_shown(law: str) -> None:
    for lemma in axioms.LEMMAS[law]:
        own = [goal for goal in GOALS if goal.lemma == lemma]
        assert any("step" in goal.part for goal in own)
        assert failures(iter(own)) == []


def test_the_laws_of_real_numbers_hold() -> None:
    found = list(validation.field())
    assert len(found) > 5
    assert [it for it in found if it.answer != "unsat"] == []


def test_what_is_no_law_of_real_numbers_is_refuted() -> None:
    assert validation.over_reals("(= (* (/ x y) y) x)") == "sat"
    assert validation.over_reals("(= (* x (+ y z)) (+ (* x y) z))") == "sat"
