"""The requirements of the operators of a model, decided: for all sizes, or with the sizes at which one fails.

A requirement that numbers alone decide needs no solver. One over symbolic sizes is asked of it: can the facts hold and
the requirement fail? If it can, and nothing but sizes is concerned, these sizes are the witness. One that depends on
data stays unknown, with the condition in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sonnx.semantics.graph import Model
from sonnx.semantics.interpretations.symbolic_numbers import at_most, both, either, opposite
from sonnx.semantics.interpretations.symbolic_values import conjuncts
from sonnx.semantics.preconditions.examining import Facts, Symbols
from sonnx.semantics.preconditions.walk import Examination, Instance, examine_model
from sonnx.semantics.terms import FALSE, TRUE, Term
from sonnx.spec.progress import Progress

from .conditions import definitions, determined, expanded, simplified, solved
from .definedness import Prover
from .definedness_smtlib import names, relevant
from .report import RuleVerdict

TIMEOUT = 2.0
"""Seconds for one question."""
SMALLEST = (4, 64, 4096)
"""A witness is looked for among sizes up to these first."""


@dataclass(frozen=True, slots=True)
class Decided:
    """One requirement at one node. sizes: symbolic sizes at which it fails. always: it fails at all of them.

    condition: what must hold, a formula over sizes and data. reason: why it is unknown.
    """

    instance: Instance
    verdict: RuleVerdict
    condition: Term | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    always: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Decisions:
    """The requirements of a model. open: in order, those that did not hold by numbers alone. conditions: what the
    symbolic sizes must satisfy so that every requirement that is decided by them holds; FALSE among them where there
    are no such sizes. labels: what symbols are called.
    """

    examination: Examination
    open: tuple[Decided, ...]
    conditions: Facts
    labels: Mapping[str, str]


def decide(
    model: Model,
    limits: Mapping[str, tuple[int, int | None]] | None = None,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> Decisions:
    """The requirements of a model, decided. limits: see `examine_model`."""
    prover = Prover(timeout)
    if progress is not None:
        progress("shapes and requirements", 0, 0)
    found = examine_model(model, prover.possible, limits)
    open_ = []
    for done, instance in enumerate(found.instances):
        if progress is not None:
            progress("requirements", done, len(found.instances))
        open_.append(_decide(instance, found, prover))
    labels = {**found.sizes, **{f"t{t}": tensor.name for t, tensor in enumerate(model.tensors)}}
    return Decisions(found, tuple(open_), _conditions(open_, found, prover), labels)


def _decide(instance: Instance, found: Examination, prover: Prover) -> Decided:
    if instance.goal is None:
        return Decided(instance, RuleVerdict.UNKNOWN, reason=instance.reason)
    goal = either(*map(opposite, instance.path), instance.goal)
    if goal == TRUE:
        return Decided(instance, RuleVerdict.HOLDS, goal)
    facts, symbols = instance.facts, {**found.symbols, **instance.symbols}
    answer = prover.ask(facts, goal, symbols)
    if answer.status == "unsat":
        return Decided(instance, RuleVerdict.HOLDS, goal)
    defined = definitions(facts)
    shown = expanded(goal, defined)
    if answer.status == "unknown":
        return Decided(instance, RuleVerdict.UNKNOWN, shown, reason=answer.reason)
    if goal == FALSE or prover.ask((*facts, goal), FALSE, symbols).status == "unsat":
        return Decided(instance, RuleVerdict.VIOLATED, shown, always=True)
    concerned = names(goal).union(*map(names, relevant(facts, goal)))
    if concerned <= determined(tuple(found.sizes), defined):
        return Decided(instance, RuleVerdict.VIOLATED, shown, _smallest(goal, facts, found, symbols, prover))
    return Decided(instance, RuleVerdict.UNKNOWN, shown, reason="the data decide it")


def _smallest(goal: Term, facts: Facts, found: Examination, symbols: Symbols, prover: Prover) -> Mapping[str, int]:
    """Sizes at which the goal fails, small ones if there are any."""
    concerned = sorted(names(goal).union(*map(names, relevant(facts, goal))) & found.sizes.keys())
    for most in (*SMALLEST, None):
        small = () if most is None else tuple(at_most(Term(name), most) for name in concerned)
        answer = prover.ask((*facts, *small), goal, symbols)
        values = dict(value.split(" ", 1) for value in answer.values)
        if answer.status == "sat" and values:
            return {found.sizes[name]: int(values[name]) for name in concerned if name in values}
    return {}


# ---- For which sizes the model is well formed -------------------------------------------------


def _conditions(open_: Sequence[Decided], found: Examination, prover: Prover) -> Facts:
    """The conditions on sizes, in plain form where they are about one size each."""
    violated = [it for it in open_ if it.verdict is RuleVerdict.VIOLATED and it.instance.required]
    if any(it.always for it in violated):
        return (FALSE,)
    wanted = [part for it in violated if it.condition is not None for part in conjuncts(it.condition)]

    def entails(facts: Sequence[Term], goal: Term) -> bool:
        return prover.ask((*found.limits, *facts), goal, found.symbols).status == "unsat"

    by_size: dict[frozenset[str], list[Term]] = {}
    for condition in wanted:
        by_size.setdefault(names(condition), []).append(condition)
    plain: list[Term] = []
    for sizes, conditions in by_size.items():
        if len(sizes) == 1:
            plain += conjuncts(solved(both(*conditions), next(iter(sizes)), lambda goal: entails((), goal)))
        else:
            plain += conditions
    return simplified(plain, entails)
