"""The smt interpretation: what a query says, independent of any solver."""

from __future__ import annotations

import gc

import pytest
import worlds
from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import SetTable, ValueTable
from sonnx.semantics.formulas import ground as smt
from sonnx.semantics.formulas.ground import symbol
from sonnx.semantics.formulas.terms import FALSE, TRUE, Argument, Term
from sonnx.spec.language.errors import SpecError
from tables import table


def asked(formula: str, **tables: SetTable | ValueTable) -> smt.Query:
    return smt.query(worlds.constraint(formula), worlds.functions(), worlds.structure(tables), named=True)


def test_an_existential_rests_on_the_row_of_its_domain() -> None:
    query = asked("exists n in next(1): good(n)", good=ValueTable({2: True}))
    assert query.formula == Term("and", ("next.1", "good.2"))
    assert query.facts == {"good": {"good.2": True}, "next": {"next.1": (2,)}}


def test_a_universal_rests_on_the_table() -> None:
    query = asked("forall n in next(1): good(n)", good=ValueTable({2: True}))
    assert query.formula == Term("and", ("use@next", "good.2"))


@table(
    ("formula", "expected"),
    [
        ("2 in one()", "one."),
        ("1 in one()", FALSE),
        ("1 not in one()", "one."),
        ("2 not in one()", FALSE),
        ("not (exists n in none(): true)", "use@none"),
        ("2 in one() iff true", Term("ite", ("one.", TRUE, "else@"))),
    ],
)
def test_a_fact_that_is_not_assumed_never_helps(formula: str, expected: Argument) -> None:
    assert asked(formula).formula == expected


def test_unknown_and_undefined_values_are_free() -> None:
    query = asked("size(2) = 1 or size(3) = 1 or good(2) or size(0) = 1")
    assert query.free == {"size.2": "Int", "size.3": "Int", "good.2": "Bool"}
    assert query.facts == {"size": {"size.0": 10}}


def test_texts_are_numbered_and_distinct() -> None:
    query = asked('named(0) = "a" and named(1) = "zz"')
    assert query.texts.keys() == {"a", "b", "zz"}
    assert len(set(query.texts.values())) == 3


def test_only_instances_that_the_goal_reaches_get_clauses() -> None:
    assert dict(asked("reached(1)").clauses) == {"reached.1": "reached.0", "reached.0": FALSE}
    assert dict(asked("reached(2)").clauses) == {"reached.2": TRUE}
    assert dict(asked("reached(3)").clauses) == {"reached.3": "reached.2", "reached.2": TRUE}


def test_the_goal_assumes_the_tables_that_clauses_were_read_off() -> None:
    query = asked("reached(3) and good(0)")
    assert query.formula == Term("and", ("use@one", "use@whole", "use@next", "reached.3", "good.0"))


def test_unknown_facts_stay_in_clauses() -> None:
    assert dict(asked("maybe(2)").clauses)["maybe.2"] == Term("or", ("good.2", "maybe.1"))


@table(
    "formula",
    [
        "not reached(0)",
        "reached(0) implies true",
        "reached(0) iff true",
        "unique n in whole(): reached(n)",
        "if reached(0) then true else false",
        "forall n in {m for m in whole() if reached(m)}: true",
    ],
)
def test_an_inductive_atom_below_a_negation_is_refused(formula: str) -> None:
    with pytest.raises(InternalError, match="stands below a negation"):
        asked(formula)


@pytest.mark.parametrize(
    ("part", "name"),
    [("pads", "f.pads"), ("y z<", "f.y$20$z$3c$"), ("é|", "f.$e9$$7c$"), ("", "f.$$"), (7, "f.7")],
)
def test_the_name_of_a_symbol_is_unambiguous(part: str | int, name: str) -> None:
    assert symbol("f", part) == name


def test_an_optimistic_query_favours_formula_and_clauses() -> None:
    query = smt.optimistic(asked("maybe(2) and not good(2)"))
    assert query.free == {}
    assert dict(query.clauses)["maybe.2"] == Term("or", (TRUE, "maybe.1"))
    assert query.formula == Term("and", ("use@whole", "use@next", "maybe.2", Term("not", (FALSE,))))


@table(
    ("formula", "message"),
    [
        ("nothing(1)", "no function is named nothing"),
        ("absolute(1) = 1", "no meaning to the function absolute"),
        ("x", "x is not bound here"),
        ("named(0) < named(1)", "compares numbers"),
        ("sum(i < 3) i = 3", "no meaning to 'fold'"),
        ("size(0)", "a formula was expected"),
        ("whole() in whole()", "members of sets"),
    ],
)
def test_what_constraints_may_not_contain_is_refused(formula: str, message: str) -> None:
    with pytest.raises((InternalError, SpecError), match=message):
        asked(formula)


def test_the_collector_is_left_as_it_was() -> None:
    enabled = gc.isenabled()
    asked("true")
    assert gc.isenabled() == enabled
