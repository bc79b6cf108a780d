"""The lemmas about lists of any length are proved, base and step; a wrong one is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sonnx.checker.definedness.induction import SYMBOLS, Goal, failures, goals, products
from sonnx.checker.smt.prover import Prover
from sonnx.semantics.formulas.terms import FALSE
from sonnx.semantics.operators.symbolic.lemmas import PRODUCTS, Statement, at, named, product
from sonnx.semantics.operators.symbolic.numbers import add, at_most, either, equal, less, multiply, opposite
from tables import table

GOALS = list(goals())


@pytest.mark.parametrize("lemma", sorted({goal.lemma for goal in GOALS}))
def test_a_lemma_is_proved(lemma: str) -> None:
    assert failures(goal for goal in GOALS if goal.lemma == lemma) == []


def test_every_lemma_about_products_has_base_and_step() -> None:
    parts = {lemma: {goal.part for goal in GOALS if goal.lemma == lemma} for lemma in PRODUCTS}
    assert all(found == {"base", "step"} for found in parts.values())


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: f"{goal.lemma}: {goal.part}")
def test_the_facts_of_a_question_do_not_contradict_each_other(goal: Goal) -> None:
    assert Prover(timeout=0.2).ask(goal.facts, FALSE, SYMBOLS).status != "unsat"


@table(
    "wrong",
    [
        lambda c, s, t: either(less(s, t), equal(product(c, s, t), 0)),
        lambda c, s, t: at_most(0, product(c, s, t)),
        lambda c, s, t: either(named("negative", c, s, t, lambda it: less(it, 0)), less(0, product(c, s, t))),
        lambda c, s, t: equal(product(c, 0, t), multiply(product(c, 0, s), product(c, s, t))),
        lambda c, s, t: either(less(s, 0), equal(product(c, 0, t), product(c, s, t))),
        lambda c, s, t: either(opposite(equal(t, add(s, 2))), equal(product(c, s, t), multiply(at(c, s), at(c, t)))),
    ],
)
def test_a_wrong_lemma_about_products_is_refuted_by_its_own_induction(wrong: Statement) -> None:
    assert failures(products("wrong", wrong))


UNFOLDED = (" is 1", "the entry", "the other")
WEAKER = [goal for goal in GOALS if goal.part.endswith("step") and not goal.lemma.endswith(UNFOLDED)]
"""The steps; those of products of no entries, of one and of two take nothing from a shorter list."""


@pytest.mark.parametrize("goal", WEAKER, ids=lambda goal: f"{goal.lemma}: {goal.part}")
def test_a_question_needs_its_last_fact(goal: Goal) -> None:
    assert failures(iter([replace(goal, facts=goal.facts[:-1])]), Prover(timeout=0.2))
