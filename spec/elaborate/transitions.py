"""Transition rules: premises run in written order, so each name is bound before it is used."""

from __future__ import annotations

from collections.abc import Iterable

from ..language.syntax import BOOL, Expr, Transition
from .core import Binding
from .infer import check, infer
from .scope import Ledger, Scope


def check_transitions(transitions: Iterable[Transition], ledger: Ledger) -> None:
    """Checks each rule. The rules with states of one size speak of one kind of state: the sort of a component that a
    rule only hands on follows from the other rules."""
    checked = [(len(it.source), _check_transition(it, ledger)) for it in transitions]
    clear = {
        (size, position)
        for size, made in checked
        for position, binding in enumerate(made)
        if binding is None or ledger.sort_of(binding) is not None
    }
    for size, made in checked:
        for position, binding in enumerate(made):
            if binding is not None and (size, position) not in clear:
                ledger.report("sort/unclear", binding.span, name=binding.name)


def _check_transition(transition: Transition, ledger: Ledger) -> list[Binding | None]:
    """The left side lists variables; `x in S` with a new x chooses x; `let` binds; the right side fits the left one.
    The bindings of the left side."""
    scope, made = _configuration(transition, ledger)
    lets: list[Binding] = []
    for premise in transition.premises:
        expr = premise.expr
        if premise.name is not None:
            sort = infer(expr, scope, ledger).sort
            ledger.check_fresh(premise.name, premise.span, scope)
            lets.append(Binding(premise.name, sort, "let", premise.span))
            scope = scope.bind(lets[-1])
            continue
        chosen = _choice(expr, scope)
        if chosen is None:
            check(expr, BOOL, scope, ledger)
            continue
        variable, domain = chosen
        sort = infer(domain, scope, ledger).sort
        if sort is not None and sort.name not in ("set", "list"):
            ledger.report("sort/domain", domain.span, found=sort)
            sort = None
        name = str(variable.args[0])
        lets.append(Binding(name, sort.element if sort else None, "let", variable.span))
        scope = scope.bind(lets[-1])
    if len(transition.source) != len(transition.target):
        span = transition.target[-1].span
        ledger.report("transition/size", span, source=len(transition.source), target=len(transition.target))
    for binding, target in zip(made, transition.target, strict=False):
        check(target, None if binding is None else ledger.sort_of(binding), scope, ledger)
    ledger.check_used(lets)
    return made


def _configuration(transition: Transition, ledger: Ledger) -> tuple[Scope, list[Binding | None]]:
    """The names on the left side; their sorts follow from their first uses."""
    scope = Scope()
    made: list[Binding | None] = []
    for component in transition.source:
        name = str(component.args[0]) if component.head == "var" else ""
        if not name or name in scope.bindings:
            ledger.report("transition/source", component.span)
            made.append(None)
            continue
        binding = Binding(name, None, "configuration", component.span)
        made.append(binding)
        scope = scope.bind(binding)
    return scope, made


def _choice(expr: Expr, scope: Scope) -> tuple[Expr, Expr] | None:
    """The variable and the domain of a premise `x in S` whose x is not bound yet."""
    match expr:
        case Expr(head="compare", args=(Expr(head="var", args=(str() as name,)) as variable, "in", Expr() as domain)):
            return (variable, domain) if name not in scope.bindings else None
        case _:
            return None
