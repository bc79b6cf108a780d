"""A long question in parts: the same answer as the whole, and nothing taken for granted that was not derived."""

from __future__ import annotations

from dataclasses import replace

import pytest
import small_graphs as small
import worlds
from sonnx.checker.smt import solver
from sonnx.checker.smt.parts import parts
from sonnx.semantics.facts.structure import SetTable, Unknown, ValueTable
from sonnx.semantics.formulas import ground
from sonnx.semantics.formulas.terms import Term
from sonnx.spec.library import specification
from tables import table

CHAIN = small.SmallGraph(
    6,
    reads=((0, 1), (2,), (2, 3), (4, 0)),
    writes=((2,), (3,), (4,), (5,)),
    inputs=(0,),
    outputs=(5,),
    initializers=(1,),
)
"""Four nodes in a row."""
RING = replace(CHAIN, reads=((0, 4), (2,), (2, 3), (4, 0)))
"""The first three wait for each other."""
LACKING = replace(CHAIN, inputs=())
"""The first node gets no value."""
NAMES = ("Acyclic", "Completeness", "Contributes", "Sourced", "SingleAssignment", "OutputUsage", "OutputPositions")


def query(name: str, graph: small.SmallGraph) -> ground.Query:
    text = specification()
    return ground.query(text.constraints[name], text.functions, small.structure(graph))


def world(formula: str, **tables: object) -> ground.Query:
    return ground.query(worlds.constraint(formula), worlds.functions(), worlds.structure(tables))


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clause or a conjunct is a part."""
    monkeypatch.setattr(solver, "PART", 1)


@table("name", NAMES)
def test_the_parts_answer_as_the_whole_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for graph in (CHAIN, RING, LACKING):
        whole = query(name, graph)
        expected = solver.solve(whole, 10)
        for size in (1, 2, 3):
            monkeypatch.setattr(solver, "PART", size)
            answer = solver.solve(whole, 10)
            assert (answer.answers, answer.core) == (expected.answers, expected.core), (graph, size)
        monkeypatch.undo()


@pytest.mark.usefixtures("one")
def test_each_part_holds_few_clauses_and_rests_on_heads_in_front() -> None:
    whole = query("Completeness", CHAIN)
    known: set[str] = set()
    asked = list(parts(whole, 1))
    for part in asked:
        heads = [head for head, body in part.clauses if body != Term("true") or head not in known]
        assert len(heads) <= 1
        assert known >= {head for head, _ in part.clauses} - set(heads)
        known.update(heads)
    assert known == {head for head, _ in whole.clauses}
    assert {*whole.formula.args} <= known | {part.formula for part in asked}


@pytest.mark.usefixtures("one")
def test_a_part_that_does_not_follow_is_not_granted() -> None:
    """Without the body of a clause its head does not follow, and so nothing that rests on it."""
    whole = query("Acyclic", CHAIN)
    for head, _ in whole.clauses:
        clauses = tuple((it, Term("false") if it == head else body) for it, body in whole.clauses)
        broken = replace(whole, clauses=clauses)
        assert solver.solve(broken, 10).answers == ("sat",)
    assert solver.solve(whole, 10).answers == ("unsat",)


@pytest.mark.usefixtures("one")
def test_clauses_that_wait_for_each_other_are_asked_as_a_whole() -> None:
    assert list(parts(query("Acyclic", RING), 1)) == []


@pytest.mark.usefixtures("one")
@table("formula", [*worlds.HOLD, *worlds.UNKNOWN])
def test_every_form_of_expression_is_answered_alike(formula: str) -> None:
    whole = world(formula)
    named = ground.query(worlds.constraint(formula), worlds.functions(), worlds.structure({}), named=True)
    assert solver.solve(whole, 10).answers == solver.solve(named, 10).answers


@pytest.mark.usefixtures("one")
def test_unknown_facts_below_clauses_leave_a_formula_open() -> None:
    tables = {
        "good": ValueTable({0: True, 1: Unknown("not told"), 2: True, 3: True}),
        "whole": SetTable({(): (0, 1, 2, 3)}),
    }
    whole = world("forall n in whole(): maybe(n)", **tables)
    assert whole.free
    assert solver.solve(whole, 10).verdict == "holds"
    open_ = world("forall n in whole(): maybe(n)", good=ValueTable({0: False, 1: Unknown("not told")}))
    assert solver.solve(open_, 10).verdict == "violated"


@pytest.mark.usefixtures("one")
def test_a_part_without_an_answer_leaves_the_whole_open(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, whole = solver._asked, query("Acyclic", CHAIN)
    for silent, part in enumerate(parts(whole, 1)):

        def gives_up(
            one: ground.Query, negated: bool, timeout: float, seed: int, part: ground.Query = part
        ) -> solver.Told:
            return ("unknown", (), "no time") if one == part else asked(one, negated, timeout, seed)

        monkeypatch.setattr(solver, "_asked", gives_up)
        answer = solver.solve(whole, 10)
        assert (answer.verdict, answer.reason) == ("unknown", "no time"), silent
