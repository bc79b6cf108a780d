"""The two meanings of a constraint agree: the direct evaluator and the solver's answer on the SMT translation.

A constraint depends on its facts alone, and gets a structure with no others. So graphs that give a constraint the same
facts are one case for it, which is asked once.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest
import small_graphs as small
import worlds
import z3
from sampling import sampled
from sonnx.checker.smt import smtlib, solver
from sonnx.semantics.facts.structure import Structure, Table
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.formulas import ground as smt
from sonnx.spec.language.syntax import Constraint
from sonnx.spec.library import specification
from tables import table

FUNCTIONS = specification().functions
GIVEN = frozenset(small.structure(next(small.single_nodes())).facts())
CONSTRAINTS: dict[str, Constraint] = {
    constraint.name: constraint
    for constraint in specification().constraints.values()
    if constraint.span.file == "2-wellformed.sonnx" and small.facts_of(constraint.formula, FUNCTIONS) <= GIVEN
}
"""The constraints of the specification that use only facts about graphs."""

ABOUT_BODIES = {"BodiesPresent", "BodyArity", "NothingHidden"}
"""Constraints on bodies, which these graphs have none of."""
BATCH = 100
SIZES = [(nodes, tensors) for nodes in range(3) for tensors in range(4)]

Case = tuple[Structure, str]


def test_no_graph_constraint_is_left_out() -> None:
    everywhere = {c.name for c in specification().constraints.values() if c.span.file == "2-wellformed.sonnx"}
    assert len(CONSTRAINTS) >= 20
    assert {"SingleAssignment", "Completeness", "Acyclic", "Contributes", "Deterministic"} <= CONSTRAINTS.keys()
    assert all(
        small.facts_of(specification().constraints[name].formula, FUNCTIONS) - GIVEN
        for name in everywhere - set(CONSTRAINTS)
    )


# ---- All small graphs -------------------------------------------------------------------------


SAMPLE = 0.015
"""The part of the graphs that is drawn for a run of all tests; the campaign takes them all."""


def every_graph(part: float) -> Iterator[Any]:
    """All graphs up to renaming with at most 2 nodes and 3 tensors; every eighth also with initializers and so on;
    and all of one node and 2 tensors with all of those. part: below 1, so many of them are drawn."""
    draw = random.Random(1)
    for nodes, tensors in SIZES:
        for number, graph in enumerate(small.up_to_renaming(nodes, tensors)):
            if draw.random() < part:
                yield graph
            if number % 8 == 0 and draw.random() < part:
                yield small.with_features(graph, number)
    yield from (graph for graph in small.single_nodes() if draw.random() < part)


Tables = tuple[tuple[str, Table], ...]


@cache
def cases(part: float) -> dict[str, list[Tables]]:
    """For each constraint all that it can see of the graphs: the tables of the facts that it depends on."""
    names = {name: sorted(small.facts_of(c.formula, FUNCTIONS)) for name, c in CONSTRAINTS.items()}
    found: dict[str, dict[object, Tables]] = {name: {} for name in CONSTRAINTS}
    for graph in every_graph(part):
        whole = small.structure(graph)
        rows = {name: tuple(sorted(whole.table(name).rows.items())) for name in GIVEN}
        for name, facts in names.items():
            key = tuple(rows[fact] for fact in facts)
            if key not in found[name]:
                found[name][key] = tuple((fact, whole.table(fact)) for fact in facts)
    result = {name: list(tables.values()) for name, tables in found.items()}
    gc.freeze()
    return result


def seen(tables: Tables) -> Structure:
    """The structure with these facts and no others."""
    return Structure({name: (lambda t=table: t) for name, table in tables}, lambda sort, x: f"{sort} {x}")


def test_small_graphs_are_counted_up_to_renaming() -> None:
    counts = {size: sum(1 for _ in small.up_to_renaming(*size)) for size in SIZES}
    assert sum(counts.values()) == 25_645
    assert counts[2, 3] == (45_760 + 1_200) / 2, (
        "Burnside: half of the multisets of 3 columns and of the symmetric ones"
    )


@pytest.mark.parametrize(
    "part", [pytest.param(SAMPLE, id="sample"), pytest.param(1.0, id="all", marks=pytest.mark.campaign)]
)
@pytest.mark.parametrize("name", sampled(CONSTRAINTS, 10))
def test_both_meanings_agree_on_graphs_with_2_nodes_and_3_tensors(name: str, part: float) -> None:
    """On a sample, and in the campaign on all of them."""
    disagreements, verdicts = compared(CONSTRAINTS[name], map(seen, cases(part)[name]))
    assert disagreements == []
    assert verdicts == ({"holds"} if name in ABOUT_BODIES else {"holds", "violated"})


def compared(constraint: Constraint, structures: Iterable[Structure]) -> tuple[list[object], set[str]]:
    """The structures on which solver and direct evaluator disagree, and the verdicts that occurred."""
    context = z3.Context()
    z3.Z3_eval_smtlib2_string(context.ref(), "(set-option :produce-unsat-assumptions true)(set-logic QF_LIA)")
    disagreements: list[object] = []
    verdicts: set[str] = set()
    batch: list[tuple[Structure, str, str]] = []
    meant = {"unsat": "holds", "sat": "violated"}

    def flush() -> None:
        answers = z3.Z3_eval_smtlib2_string(context.ref(), "".join(text for _, _, text in batch)).split()
        assert len(answers) == len(batch), answers[:5]
        for (structure, verdict, _), answer in zip(batch, answers, strict=True):
            if meant.get(answer) != verdict:
                disagreements.append(({f: dict(structure.table(f).rows) for f in structure.facts()}, verdict, answer))
        batch.clear()

    for structure in structures:
        verdict = direct.judge(constraint, FUNCTIONS, structure, limit=0).verdict
        verdicts.add(verdict)
        query = smt.query(constraint, FUNCTIONS, structure)
        assert query.free == {}
        pieces = list(smtlib.script(query, negated=True))[1:]
        batch.append((structure, verdict, f"(push)\n{''.join(pieces)}(pop)\n"))
        if len(batch) == BATCH:
            flush()
    flush()
    return disagreements, verdicts


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_both_meanings_agree_on_50000_graphs_with_3_nodes_and_4_tensors(
    part: int, request: pytest.FixtureRequest
) -> None:
    if "campaign" not in str(request.config.getoption("markexpr")):
        pytest.skip("long campaign: run it with -m campaign")
    structures = [small.structure(graph) for graph in small.sampled(5_000, part, 3, 4)]
    wrong = {name: found for name, c in CONSTRAINTS.items() if (found := compared(c, structures)[0])}
    assert wrong == {}


# ---- Every form of expression -----------------------------------------------------------------


@pytest.mark.parametrize("expected", ["holds", "unknown"])
@pytest.mark.parametrize("form", ["{}", "not ({})"])
def test_both_meanings_agree_on_every_form_of_expression(form: str, expected: str) -> None:
    functions, structure = worlds.functions(), worlds.structure()
    inductive = ("reached", "even", "maybe")
    negated = {"holds": "violated"}.get(expected, expected) if form != "{}" else expected
    wrong = {}
    for formula in worlds.HOLD if expected == "holds" else worlds.UNKNOWN:
        if form == "{}" or not any(name in formula for name in inductive):
            constraint = worlds.constraint(form.format(formula))
            judged = direct.judge(constraint, functions, structure).verdict
            answer = solver.solve(smt.query(constraint, functions, structure), 10)
            if not judged == answer.verdict == negated:
                wrong[formula] = (judged, answer)
    assert wrong == {}


@table("node", range(4))
@table("next_rows", [{}, {2: (3,)}, {0: (1,), 1: (2,), 2: (3,)}, {3: (0, 1), 1: (1,)}])
@table("form", ["maybe({n})", "maybe({n}) and good(0)", "good(1) or maybe({n})", "good(3) or maybe({n})"])
def test_both_meanings_agree_on_unknown_facts_below_inductive_predicates(
    node: int, next_rows: dict[int, tuple[int, ...]], form: str
) -> None:
    structure = worlds.structure({"next": worlds.SetTable({**next_rows})})
    constraint = worlds.constraint(form.format(n=node))
    answer = solver.solve(smt.query(constraint, worlds.functions(), structure), 10)
    assert answer.verdict == direct.judge(constraint, worlds.functions(), structure).verdict


def test_the_solver_knows_more_than_kleene_of_an_unknown_fact() -> None:
    """Whatever good(2) is, this holds; the direct evaluator, which looks at it twice, does not say so."""
    constraint = worlds.constraint("good(2) or not good(2)")
    assert direct.judge(constraint, worlds.functions(), worlds.structure()).verdict == "unknown"
    query = smt.query(constraint, worlds.functions(), worlds.structure())
    assert solver.solve(query, 10).verdict == "holds"
