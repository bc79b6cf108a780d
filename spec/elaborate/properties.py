"""Laws, theorems, findings and situations: formulas about all graphs.

They alone may speak of all elements of a sort and of steps: `every Memory` and `(G, M, K) ~> (G', M', K')` have no
meaning on one graph that is given by its facts, so nothing that is decided or executed may use them, not through a
definition either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..language.syntax import BOOL, PROVED, Constraint, Expr, FunctionDeclaration, Operator, Property, Transition
from .clauses import check_clauses
from .core import Binding
from .coverage import inside, local_functions
from .infer import check, infer
from .scope import Ledger, Scope, hint

WORDS = {"every": "every", "step": "a step"}
GENERAL = frozenset(WORDS)
"""The heads of expressions that speak about all graphs."""
GROUND = ("law", *PROVED)
"""The kinds of properties that others may rest on."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """The names that they may rest on and speak of."""

    constraints: Mapping[str, Constraint]
    transitions: Mapping[str, Transition]


def check_properties(properties: Iterable[Property], grounds: Grounds, ledger: Ledger) -> None:
    """Each is well sorted and closed; what it needs is a constraint, or a law or a theorem declared before it; what a
    situation needs is a constraint, since all laws hold of it anyway."""
    stated: dict[str, Property] = {}
    for claim in properties:
        check_clauses(claim.kind, claim.name, claim.clauses, claim.span, ledger)
        _check_property(claim, ledger)
        for need in claim.needs:
            if claim.kind == "situation" and need not in grounds.constraints:
                nearest = hint(need, grounds.constraints)
                ledger.report("property/situation", claim.span, name=need, hint=nearest)
            elif need not in grounds.constraints and need not in stated:
                known = {*grounds.constraints, *stated}
                ledger.report("property/need", claim.span, name=need, hint=hint(need, known))
        for expr in _expressions(claim):
            check_steps(expr, grounds.transitions, ledger)
        if claim.kind in GROUND:
            stated[claim.name] = claim


def _check_property(claim: Property, ledger: Ledger) -> None:
    scope = Scope()
    made = []
    for parameter in claim.parameters:
        ledger.check_sort(parameter.sort, parameter.span, any_allowed=False)
        ledger.check_fresh(parameter.name, parameter.span, scope)
        made.append(Binding(parameter.name, parameter.sort, "parameter", parameter.span))
        scope = scope.bind(made[-1])
    for premise in claim.premises:
        if premise.name is None:
            check(premise.expr, BOOL, scope, ledger)
            continue
        sort = infer(premise.expr, scope, ledger).sort
        ledger.check_fresh(premise.name, premise.span, scope)
        made.append(Binding(premise.name, sort, "let", premise.span))
        scope = scope.bind(made[-1])
    check(claim.goal, BOOL, scope, ledger)
    ledger.check_used(made)


def check_steps(expr: Expr, transitions: Mapping[str, Transition], ledger: Ledger) -> None:
    """A step names a rule of the machine, and its states have as many components as that of the rules."""
    for inner in inside(expr):
        if inner.head != "step":
            continue
        rule, _, *states = inner.args
        if rule and rule not in transitions:
            ledger.report("property/rule", inner.span, name=rule, hint=hint(str(rule), transitions))
        sizes = {len(it.source) for it in transitions.values() if rule in ("", it.name)}
        if sizes and len(states) not in {2 * size for size in sizes}:
            expected = " or ".join(str(size) for size in sorted(sizes))
            ledger.report("property/state", inner.span, expected=expected, found=len(states) // 2)


def check_grounded(
    functions: Mapping[str, FunctionDeclaration],
    constraints: Iterable[Constraint],
    transitions: Iterable[Transition],
    operators: Iterable[Operator],
    ledger: Ledger,
) -> None:
    """Nothing that is decided on one graph or executed speaks about all graphs."""
    general: set[str] = set()
    while True:
        more = {
            name
            for name, function in functions.items()
            if name not in general and function.body is not None and _general(function.body, general)
        }
        if not more:
            break
        general |= more
    decided = [it.formula for it in constraints]
    for rule in transitions:
        decided += [*(premise.expr for premise in rule.premises), *rule.target]
    _report(decided, general, ledger)
    for operator in operators:
        _report([it.expr for it in operator.statements], general - local_functions(operator), ledger)


def _report(exprs: Iterable[Expr], general: set[str], ledger: Ledger) -> None:
    for expr in exprs:
        for inner in inside(expr):
            if inner.head in GENERAL or (inner.head == "call" and inner.args[0] in general):
                what = inner.args[0] if inner.head == "call" else WORDS[inner.head]
                ledger.report("property/general", inner.span, name=what)


def _general(expr: Expr, general: set[str]) -> bool:
    return any(it.head in GENERAL or (it.head == "call" and it.args[0] in general) for it in inside(expr))


def _expressions(claim: Property) -> Iterator[Expr]:
    yield from (premise.expr for premise in claim.premises)
    yield claim.goal
