"""The kernel: the only place where theorems are made. Small, so that it can be read as a whole.

A theorem is made by a rule from obligations that z3 has answered with unsat, never otherwise. What it may assume comes
from the theory, under its name; there is no function that takes a formula on trust. Nothing here depends on `assert`,
so `python -O` changes nothing. Python cannot keep code in the same process from tampering with memory; it can see to
it that a theorem which was not made here, or was changed afterwards, is no theorem here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from sonnx.checker.solver import Session
from sonnx.semantics.errors import InternalError
from sonnx.spec.printer import print_expression
from sonnx.spec.syntax import Expr, Property

from .formulas import Argument, Base, Term, conjunction
from .smtlib import question
from .theory import Hypothesis, Obligation, Theory, claim, clause, constants, needs, unfolded
from .translation import Env, Hook, Translation, application

SECONDS = 5.0
"""How long z3 may take for one obligation."""


class Forged(Exception):  # noqa: N818 - named for what was found
    """Something that is no theorem of this kernel was offered as one."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An obligation that was not proved: sat, there is a countermodel; unknown, nothing was found out."""

    obligation: Obligation
    status: str
    reason: str


class Theorem:
    """A proved theorem: its name, the rule of the kernel that made it, and the obligations that were proved."""

    __slots__ = ("name", "obligations", "rule")
    name: str
    rule: str
    obligations: tuple[Obligation, ...]

    def __new__(cls, *_arguments: object, **_named: object) -> NoReturn:
        """Theorems are made by rules."""
        raise Forged("a theorem is made by a rule of the kernel, not by its class")

    def __init_subclass__(cls) -> NoReturn:
        raise Forged("there is one class of theorems")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise Forged("a theorem does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise Forged("a theorem does not change")

    def __reduce__(self) -> NoReturn:
        raise Forged("a theorem is proved where it is used; it cannot be stored or copied")

    def __repr__(self) -> str:
        return f"|- {self.name} ({self.rule})"


def _registry() -> tuple[Callable[[str, str, tuple[Obligation, ...]], Theorem], Callable[[Theory, object], Theorem]]:
    """What makes theorems, and what recognises them. The record of them is reachable through these two alone."""
    made: dict[int, tuple[Theorem, bytes]] = {}

    def seal(name: str, rule: str, obligations: tuple[Obligation, ...]) -> Theorem:
        theorem: Theorem = object.__new__(Theorem)
        for field, value in (("name", name), ("rule", rule), ("obligations", obligations)):
            object.__setattr__(theorem, field, value)
        made[id(theorem)] = theorem, _digest(theorem)
        return theorem

    def genuine(theory: Theory, offered: object) -> Theorem:
        found = made.get(id(offered))
        if found is None or found[0] is not offered or _digest(found[0]) != found[1]:
            raise Forged(f"{offered!r} is no theorem of this kernel")
        theory.property(found[0].name)
        return found[0]

    return seal, genuine


def _digest(theorem: Theorem) -> bytes:
    text = repr((theorem.name, theorem.rule, [question(it) for it in theorem.obligations]))
    return hashlib.sha256(text.encode()).digest()


_seal, genuine = _registry()


def decide(obligation: Obligation, seed: int = 0) -> Refused | None:
    """None when z3 proves the obligation."""
    answer = Session().check(question(obligation), SECONDS, seed)
    if answer.status == "unsat":
        return None
    return Refused(obligation, answer.status, answer.reason)


# ---- Rules ------------------------------------------------------------------------------------


def smt(
    theory: Theory, name: str, lemmas: Sequence[Theorem] = (), unfold: Sequence[str] = (), closed: Sequence[str] = ()
) -> Theorem | Refused:
    """The theorem follows from its premises and what it needs.

    unfold: inductive predicates to use as fixpoints. closed: definitions whose bodies the proof does not look into.
    """
    found, t = theory.property(name), theory.translation(closed=closed)
    stated = claim(found, constants(found, t), t)
    hypotheses = (*stated.premises, *_granted(theory, found, lemmas, unfold, t))
    return _made(name, "smt", [_obligation(name, hypotheses, stated.goal, t)])


def induction(
    theory: Theory, names: Mapping[str, str], lemmas: Sequence[Theorem] = (), unfold: Sequence[str] = ()
) -> tuple[Theorem, ...] | Refused:
    """Induction along inductive predicates, several at once where they depend on each other.

    names: for each predicate the theorem that says something of all its members, with the membership as a premise. The
    obligation of each: its clause, in which every member has the property too, entails the property.
    """
    obligations = []
    for predicate, name in names.items():
        found = theory.property(name)
        t = theory.translation()
        hooks: dict[str, Hook] = {}
        bare = Translation(t.functions, t.transitions, t.opaque, {}, t.symbols, t.texts)
        env = constants(found, bare)
        for other, member in names.items():
            hooks[other] = _hook(theory, other, theory.property(member), env, bare)
        terms, skipped, _ = _membership(found, predicate, env, bare)
        hooked = Translation(t.functions, t.transitions, t.opaque, hooks, t.symbols, t.texts, bare.count)
        case = clause(theory, predicate, terms, hooked)
        bare.count = hooked.count
        stated = claim(found, env, bare, skipped)
        granted = _granted(theory, found, lemmas, unfold, bare)
        step = Hypothesis("induction", f"the clause of {predicate}, its members with the property", case)
        obligations.append(_obligation(name, (*stated.premises, *granted, step), stated.goal, bare))
    proved = _made(next(iter(names.values())), "induction", obligations)
    if isinstance(proved, Refused):
        return proved
    return tuple(
        _seal(name, f"induction along {predicate}", (obligation,))
        for (predicate, name), obligation in zip(names.items(), obligations, strict=True)
    )


def _hook(theory: Theory, predicate: str, found: Property, fixed: Env, t: Translation) -> Hook:
    """The call of a predicate in its clause, as the induction reads it: it holds, and so does the property."""
    own, skipped, varied = _membership(found, predicate, constants(found, t), t)
    _ = own

    def hook(terms: tuple[Argument, ...]) -> Argument:
        env = {**constants(found, t), **fixed}
        env |= {name: Base(term, sort) for (name, sort), term in zip(varied, terms, strict=True)}
        held = application(predicate, theory.text.functions[predicate], terms, t)
        property_ = claim(found, env, t, skipped).formula()
        return conjunction([held.term if isinstance(held, Base) else property_, property_])

    return hook


def _membership(
    found: Property, predicate: str, env: Env, t: Translation
) -> tuple[tuple[Argument, ...], Expr, list[tuple[str, str]]]:
    """The arguments of the premise that a predicate holds, the premise, and the parameters that the arguments are."""
    for premise in found.premises:
        call = premise.expr
        if premise.name is None and call.head == "call" and call.args[0] == predicate:
            names = [str(a.args[0]) for a in call.args[1:] if isinstance(a, Expr) and a.head == "var"]
            bases = [env[name] for name in names if name in env]
            if len(set(names)) == len(call.args) - 1 == len(bases):
                made = [(base.term, base.sort) for base in bases if isinstance(base, Base)]
                sorts = [(name, sort) for name, (_, sort) in zip(names, made, strict=True)]
                return tuple(term for term, _ in made), call, sorts
    raise InternalError(f"{found.name} has no premise {predicate}(...) over different parameters")


def _granted(
    theory: Theory, found: Property, lemmas: Sequence[Theorem], unfold: Sequence[str], t: Translation
) -> tuple[Hypothesis, ...]:
    """What a theorem rests on, each earlier theorem shown to be one."""
    shown = {genuine(theory, lemma).name for lemma in lemmas}
    granted = needs(theory, found, t)
    missing = [it.label for it in granted if it.kind == "lemma" and it.label not in shown]
    if missing:
        raise Forged(f"{found.name} rests on {', '.join(missing)}, of which no proof is given")
    return (*granted, *(unfolded(theory, predicate, t) for predicate in unfold))


def _obligation(name: str, hypotheses: tuple[Hypothesis, ...], goal: Argument, t: Translation) -> Obligation:
    return Obligation(name, hypotheses, goal, dict(t.symbols), tuple(t.texts))


def _made(name: str, rule: str, obligations: Sequence[Obligation]) -> Theorem | Refused:
    for obligation in obligations:
        refused = decide(obligation)
        if refused is not None:
            return refused
    return _seal(name, rule, tuple(obligations))


def natural(theory: Theory, name: str, variable: str, lemmas: Sequence[Theorem] = ()) -> Theorem | Refused:
    """Induction over a natural number: a parameter of sort Int with the premise `0 <= variable`.

    The obligations: the theorem at 0; and, for a number that is not negative, the theorem at the next one from the
    theorem at this one, the other parameters being the same.
    """
    found = theory.property(name)
    guard = next((it.expr for it in found.premises if print_expression(it.expr) == f"0 <= {variable}"), None)
    if guard is None:
        raise InternalError(f"{name} has no premise 0 <= {variable}")
    obligations = []
    for case in ("zero", "next"):
        t = theory.translation()
        env = constants(found, t)
        number = env[variable]
        granted = _granted(theory, found, lemmas, (), t)
        if not isinstance(number, Base) or number.sort != "Int":
            raise InternalError(f"{variable} of {name} is no number")
        at: Argument = 0 if case == "zero" else Term("+", (number.term, 1))
        stated = claim(found, {**env, variable: Base(at, "Int")}, t, guard)
        before: tuple[Hypothesis, ...] = ()
        if case == "next":
            known = conjunction([Term("<=", (0, number.term)), claim(found, env, t, guard).formula()])
            before = (Hypothesis("induction", f"the theorem at {variable}", known),)
        obligations.append(_obligation(f"{name}, {case}", (*stated.premises, *granted, *before), stated.goal, t))
    return _made(name, f"induction over {variable}", obligations)
