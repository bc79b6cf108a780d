"""Operator definitions are defined for arbitrary shapes; one requirement or guard less is noticed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from definition_mutations import Mutation, chosen, detected, mutations
from sonnx.checker.definedness import PROVED, Judgement, Prover, judge
from sonnx.spec.library import specification
from sonnx.spec.syntax import Operator

HERE = Path(__file__).parent


def definitions() -> list[Operator]:
    """The definitions by equations."""
    every = [operator for versions in specification().operators.values() for operator in versions]
    return [operator for operator in every if all(statement.kind != "rule" for statement in operator.statements)]


def label(operator: Operator) -> str:
    return f"{operator.name}-{operator.first}"


def text(judgement: Judgement) -> str:
    return "\n".join([judgement.reason, *map(str, judgement.findings)])


@cache
def exceptions() -> dict[str, str]:
    """What is listed in a file `subject: reason`, by subject; lines that begin with # are comments."""
    lines = (HERE / "expect" / "definedness.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(" :: ", 1) for line in lines if line and not line.startswith("#"))  # type: ignore[misc]


@pytest.mark.parametrize("operator", definitions(), ids=label)
def test_a_definition_is_defined_at_small_ranks(operator: Operator) -> None:
    judgement = judge(operator, Prover(), chosen(operator, 2))
    assert judgement.paths, "no instance gets to the end"
    assert judgement.verdict == PROVED, text(judgement)


@pytest.mark.campaign
@pytest.mark.parametrize("operator", definitions(), ids=label)
def test_a_definition_is_defined_at_all_ranks(operator: Operator) -> None:
    judgement = judge(operator, Prover(timeout=10))
    assert judgement.paths
    assert judgement.verdict == PROVED, text(judgement)


@pytest.mark.campaign
@pytest.mark.parametrize("operator", definitions(), ids=label)
def test_a_requirement_or_guard_less_is_noticed_or_listed(operator: Operator) -> None:
    prover = Prover()
    missed = [m.name for m in mutations(operator) if not listed(m) and not detected(m, prover)]
    assert not missed


def listed(mutation: Mutation) -> bool:
    return mutation.what in exceptions() or mutation.name in exceptions()
