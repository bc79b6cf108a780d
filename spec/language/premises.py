"""The names of the premises of a rule, taken from its text: code that speaks of a premise calls it by one of them.

A premise is called by each function that it applies, arguments of functions left aside, and that no other premise of
the rule applies: `enabled` is the premise `enabled(n, M)`, `loop_starts` the premise `not loop_starts(n, M)`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from .syntax import Expr, Transition


def premise_names(rule: Transition) -> Mapping[str, int]:
    """The position of the premise that has a name."""
    named = [dict.fromkeys(_applied(premise.expr)) for premise in rule.premises]
    often = Counter(name for names in named for name in names)
    return {name: number for number, names in enumerate(named) for name in names if often[name] == 1}


def _applied(expr: Expr) -> Iterator[str]:
    if expr.head == "call":
        yield str(expr.args[0])
        return
    for part in expr.children():
        yield from _applied(part)
