"""Every rule of the rule set sonnx-operators: a model that violates it at the right place, and one that obeys it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import operator_cases as cases
from onnx import ModelProto, parser, shape_inference
from sonnx.checker.certification.findings import finding
from sonnx.checker.smt import solver
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.formulas import ground as smt
from sonnx.semantics.model.loader import load_proto
from sonnx.spec.language.syntax import Profile
from sonnx.spec.library import specification
from tables import table

CASES, MORE = cases.CASES, cases.MORE

Source = str | Callable[[], ModelProto]


@cache
def built(source: Source) -> Structure:
    """The facts of a model; its value_info is completed first, so that types are declared and no claims are needed."""
    proto = source() if callable(source) else shape_inference.infer_shapes(parser.parse_model(source), check_type=False)
    return structure(load_proto(proto))


def profile() -> Profile:
    return specification().profiles["sonnx-operators"]


def judge(constraint: str, source: Source) -> tuple[str, list[str]]:
    """The verdict and the places of its findings: of a node if one is bound, else of a tensor."""
    facts = built(source)
    found = direct.judge(specification().constraints[constraint], specification().functions, facts)
    instances = found.failures if found.verdict == "violated" else found.unknowns if found.verdict == "unknown" else ()
    places = []
    for instance in instances:
        bound = {sort.name: (sort, element) for _, sort, element in reversed(instance.bindings)}
        sort, element = bound.get("Node") or bound["Tensor"]
        places.append(facts.place(sort, element))
    return str(found.verdict), sorted(places)


def constraints() -> list[str]:
    """The constraints that some rule demands, in either variant."""
    return list(dict.fromkeys(rule.constraint for rule in profile().rules))


def test_every_rule_has_a_case_and_every_case_a_rule() -> None:
    assert set(CASES) == set(constraints())


@table("constraint", constraints())
def test_a_rule_is_violated_at_the_right_place(constraint: str) -> None:
    case = CASES[constraint]
    assert judge(constraint, case.bad) == (case.verdict, list(case.where))


@table("constraint", constraints())
def test_a_rule_holds_where_it_is_obeyed(constraint: str) -> None:
    assert judge(constraint, CASES[constraint].good) == ("holds", [])


@table(("constraint", "source", "verdict"), MORE)
def test_a_rule_decides_as_far_as_the_model_tells(constraint: str, source: Source, verdict: str) -> None:
    assert judge(constraint, source)[0] == verdict


@table("constraint", constraints())
def test_the_solver_agrees(constraint: str) -> None:
    formula, functions = specification().constraints[constraint], specification().functions
    sources = [
        CASES[constraint].bad,
        CASES[constraint].good,
        *(source for name, source, _ in MORE if name == constraint),
    ]
    for source in sources:
        answer = solver.solve(smt.query(formula, functions, built(source)), timeout=10)
        assert answer.verdict == direct.judge(formula, functions, built(source)).verdict


@table("constraint", [name for name in constraints() if CASES[name].verdict == "violated"])
def test_a_message_says_what_was_found(constraint: str) -> None:
    facts, functions = built(CASES[constraint].bad), specification().functions
    found = direct.judge(specification().constraints[constraint], functions, facts)
    for instance in found.failures:
        told = finding(specification().constraints[constraint], instance, functions, facts, violated=True)
        assert told.where in CASES[constraint].where
        assert told.suggestion
        assert "unknown" not in told.message + told.suggestion
