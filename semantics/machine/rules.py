"""Where a refused transition is written: the premise of a rule of part 3 in its own words."""

from __future__ import annotations

from functools import cache

from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import Constraint, Span, Transition
from sonnx.spec.library import specification

from ..operators.application import Stuck


def refused(rule: str, premise: int, message: str, suggestion: str = "") -> Stuck:
    """Stuck at a premise of a rule, counted from 0."""
    text, span = _premise(rule, premise)
    return Stuck(rule, text, span, message, suggestion)


def undefined(rule: str, function: str, message: str, suggestion: str = "") -> Stuck:
    """Stuck at the premise of a rule that uses a function which is undefined there."""
    transition = _transition(rule)
    for number, premise in enumerate(transition.premises):
        if f"{function}(" in print_expression(premise.expr):
            return refused(rule, number, message, suggestion)
    return Stuck(rule, f"{function} is undefined", transition.span, message, suggestion)


def over_budget(rule: str, message: str, option: str = "--max-memory") -> Stuck:
    """Stuck because the machine is not allowed to go on; no text demands it."""
    return Stuck(rule, "the budget of this run", _transition(rule).span, message, f"Raise {option}.")


def violated(constraint: Constraint, message: str, suggestion: str = "") -> Stuck:
    """Stuck because the graph breaks a constraint of part 2."""
    return Stuck(constraint.name, constraint.doc, constraint.span, message, suggestion)


def _transition(rule: str) -> Transition:
    return specification().transitions[rule]


@cache
def _premise(rule: str, number: int) -> tuple[str, Span]:
    premise = _transition(rule).premises[number]
    text = print_expression(premise.expr)
    return (text if premise.name is None else f"{premise.name} = {text}"), premise.span
