"""What facts about sizes and indices entail is found, with few questions and with many."""

from __future__ import annotations

import pytest
from sonnx.checker.definedness.record import recorded, recorded_of
from sonnx.checker.equivalence.proving.asking import Asker
from sonnx.checker.equivalence.proving.equality import Equality
from sonnx.checker.equivalence.proving.suite import longest_first
from sonnx.semantics.formulas.terms import Term
from sonnx.semantics.operators.symbolic.numbers import add, at_most, equal, multiply, printed
from sonnx.spec.library import specification

S, T, U = Term("s"), Term("t"), Term("u")
SYMBOLS = dict.fromkeys("stu", (0, "Int"))
ONE = (at_most(0, S), at_most(0, T), equal(multiply(S, T), 1))


@pytest.mark.parametrize(("goal", "holds"), [(equal(S, 1), True), (equal(T, 1), True), (equal(U, 1), False)])
def test_a_product_is_looked_into_where_the_goal_does_not_mention_it(goal: Term, holds: bool) -> None:
    assert Asker().entails(ONE, goal, SYMBOLS) is holds
    assert not Asker().entails(ONE, goal, SYMBOLS, quick=True)


def test_a_product_is_the_same_number_in_every_question() -> None:
    asker = Asker()
    facts = (at_most(multiply(S, T), U),)
    for other in (multiply(T, S), multiply(S, T)):
        assert asker.entails(facts, at_most(other, add(U, 1)), SYMBOLS, quick=True)
        assert not asker.entails(facts, at_most(multiply(other, S), U), SYMBOLS, quick=True)


READ, ZERO = Term("@.read", ("float", "X", S)), Term("@.num", ("float", "0"))


def _alternative(condition: Term) -> Term:
    return Term("@.ite", (condition, READ, ZERO))


@pytest.mark.parametrize(
    ("condition", "same_as_read", "same_as_zero"),
    [
        (Term("and", (at_most(1, S), at_most(S, 5))), True, False),
        (Term("and", (at_most(1, S), at_most(S, 2))), False, True),
        (Term("and", (at_most(1, S), at_most(S, T))), False, False),
        (at_most(4, S), False, False),
    ],
)
def test_an_alternative_goes_only_where_the_facts_decide_it(
    condition: Term, same_as_read: bool, same_as_zero: bool
) -> None:
    facts = (at_most(3, S), at_most(S, 5))
    for other, same in ((READ, same_as_read), (ZERO, same_as_zero)):
        assert Equality(Asker(), SYMBOLS, ()).same(_alternative(condition), other, facts) is same


def test_each_part_of_a_condition_that_is_not_decided_stays() -> None:
    both_parts = _alternative(Term("and", (at_most(S, 4), at_most(S, T))))
    for part in (at_most(S, 4), at_most(S, T)):
        assert not Equality(Asker(), SYMBOLS, ()).same(both_parts, _alternative(part), (at_most(3, S),))
    assert Equality(Asker(), SYMBOLS, ()).same(both_parts, _alternative(at_most(S, 4)), (at_most(S, T),))


def test_a_term_is_printed_as_python_prints_it() -> None:
    for term in (S, *ONE, _alternative(at_most(S, T)), Term("f", ("x", 2)), Term("g", (S,))):
        assert printed(term) == str(term)


def test_rules_that_take_long_and_unknown_ones_come_first() -> None:
    assert longest_first(["A", "B", "C", "D"], {"A": 1.0, "B": 3.0, "D": 2.0}) == ["C", "B", "D", "A"]


def test_the_record_of_few_operators_is_that_of_all() -> None:
    text = specification()
    _, every = recorded(text.operators, text.functions)
    names = ["Conv", "Relu", "NoSuchOperator"]
    assert recorded_of(names, text.operators, text.functions) == {name: every[name] for name in names[:2]}
