"""Premises have names by their text, and no code calls a premise or a rule by a name that the text does not give."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sonnx.semantics.errors import InternalError
from sonnx.semantics.machine.phases import stuck_at
from sonnx.spec.language.parse import parse
from sonnx.spec.language.premises import premise_names
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import Transition
from sonnx.spec.library import specification

TRANSITIONS = specification().transitions
MACHINE = Path(__file__).parents[3] / "semantics" / "machine"
CALLS = {"stuck_at": 1, "one_bool": 2, "one_int": 2, "stacked": 3, "_body": 3, "declared_sizes": 2, "over_budget": 3}
"""For each function that is told the name of a premise its position among the arguments; that of the rule is before."""


def test_a_premise_is_called_by_a_function_that_it_alone_applies() -> None:
    (rule,) = parse(
        'rule R "A rule.": if n in nodes(G), f(n, g(n)) and not (exists b in h(n): true)'
        " let x = g(n) if f(x, n) > 1 + k(n) ---- (G, x) ~> (G, x)",
        "text",
    ).declarations
    assert isinstance(rule, Transition)
    assert premise_names(rule) == {"nodes": 0, "h": 1, "g": 2, "k": 3}


@pytest.mark.parametrize("name", TRANSITIONS)
def test_every_premise_of_the_rules_has_a_name(name: str) -> None:
    rule = TRANSITIONS[name]
    named = set(premise_names(rule).values())
    lacking = [it for number, it in enumerate(rule.premises) if number not in named]
    assert [print_expression(it.expr) for it in lacking] == []


def test_a_premise_that_a_rule_lacks_is_a_defect() -> None:
    with pytest.raises(InternalError, match="no premise of the name loop_starts"):
        stuck_at("Step/scan", "loop_starts", "")


def literals() -> Iterator[tuple[str, str, str]]:
    """Where the code of the machine names rules and premises: the place, the rule, the premise, empty where none is."""
    for path in sorted(MACHINE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and re.fullmatch(r"Step/[a-z-]*", node.value)
            ):
                yield f"{path.name}:{node.lineno}", node.value, ""
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
                at = CALLS[node.func.id]
                if len(node.args) <= at:
                    continue
                rule, premise = node.args[at - 1], node.args[at]
                said = rule.value if isinstance(rule, ast.Constant) else ""
                if isinstance(premise, ast.Constant):
                    yield f"{path.name}:{node.lineno}", str(said), str(premise.value)


def test_the_machine_names_rules_and_premises_that_there_are() -> None:
    every = list(literals())
    wrong = [(where, rule) for where, rule, _ in every if rule and rule not in TRANSITIONS]
    for where, rule, premise in every:
        known = [TRANSITIONS[rule]] if rule in TRANSITIONS else list(TRANSITIONS.values())
        if premise and not any(premise in premise_names(it) for it in known):
            wrong.append((where, premise))
    assert wrong == []
    assert len({premise for _, _, premise in every}) > 8
