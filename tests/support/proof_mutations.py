"""The text of the specification with one condition left out, for tests of theorems."""

from __future__ import annotations

from dataclasses import replace

from sonnx.proofs.kernel.theory import Theory
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import Expr
from sonnx.spec.library import Specification


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction."""
    if expr.head != "and":
        return (expr,)
    return tuple(part for child in expr.children() for part in conjuncts(child))


def conjunction(parts: tuple[Expr, ...]) -> Expr:
    """The conjunction of parts, true when there is none."""
    made = Expr("true", ())
    for part in reversed(parts):
        made = part if made.head == "true" else Expr("and", (part, made), part.span)
    return made


def without_premise(text: Specification, rule: str, premise: str) -> Theory:
    """The premise of a rule left out; of `n in nodes(G)` remains that n is a node."""
    transition = text.transitions[rule]
    kept = []
    for found in transition.premises:
        if print_expression(found.expr) != premise:
            kept.append(found)
        elif found.expr.head == "compare" and found.expr.args[1] == "in":
            left, relation, _ = found.expr.args
            every = Expr("call", ("all_nodes",), found.expr.span)
            kept.append(replace(found, expr=Expr("compare", (left, relation, every), found.expr.span)))
    changed = replace(transition, premises=tuple(kept))
    if changed == transition:
        raise ValueError(f"{rule} has no premise {premise}")
    return Theory(replace(text, transitions={**text.transitions, rule: changed}))


def without_conjunct(text: Specification, definition: str, condition: str) -> Theory:
    """A conjunct of a definition left out, also one under quantifiers or behind an implication."""
    function = text.functions[definition]
    if function.body is None:
        raise ValueError(f"{definition} has no body")
    body = _dropped(function.body, condition)
    if body == function.body:
        raise ValueError(f"{definition} has no condition {condition}")
    return Theory(replace(text, functions={**text.functions, definition: replace(function, body=body)}))


def _dropped(expr: Expr, condition: str) -> Expr:
    if expr.head in ("forall", "implies"):
        *before, last = expr.args
        if not isinstance(last, Expr):
            raise TypeError(expr)
        return replace(expr, args=(*before, _dropped(last, condition)))
    return conjunction(tuple(_dropped(part, condition) if part.head in ("forall", "implies") else part
                             for part in conjuncts(expr) if print_expression(part) != condition))  # fmt: skip
