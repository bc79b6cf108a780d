"""The kernel: the only place where theorems are made. Small, so that it can be read as a whole.

A theorem is made by a rule from obligations that z3 has answered with unsat, never otherwise. What it may assume comes
from the theory, under its name; there is no function that takes a formula on trust. Nothing here depends on `assert`,
so `python -O` changes nothing. Python cannot keep code in the same process from tampering with memory; it can see to
it that a theorem which was not made here, was changed afterwards, or was proved from another text is no theorem here.
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
from .theory import Hypothesis, Obligation, Theory, cases, claim, clause, constants, introduced, needs, unfolded
from .translation import Env, Hook, Translation, application

SECONDS = 5.0
"""How long z3 may take for one obligation."""


class Forged(Exception):  # noqa: N818 - named for what was found
    """Something that is no theorem of this kernel, or not one of this text, was offered as one."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An obligation that was not proved: sat, there is a countermodel; unknown, nothing was found out."""

    obligation: Obligation
    status: str
    reason: str


class Theorem:
    """A proved theorem: its name, the rule that made it, what was proved, and the digest of the text that it is of."""

    __slots__ = ("digest", "name", "obligations", "rule")
    name: str
    rule: str
    obligations: tuple[Obligation, ...]
    digest: str

    def __new__(cls, *_arguments: object, **_named: object) -> Theorem:
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


@dataclass(frozen=True, slots=True)
class Hints:
    """What a proof uses of definitions, besides what the theorem needs. None of it is an assumption.

    unfold: inductive predicates that imply their clauses. introduce: those whose clauses imply them. cases: those whose
    clauses hold where a premise says that they hold. closed: definitions whose bodies the proof does not look into.
    """

    unfold: Sequence[str] = ()
    introduce: Sequence[str] = ()
    cases: Sequence[str] = ()
    closed: Sequence[str] = ()


NO_HINTS = Hints()


@dataclass(frozen=True, slots=True)
class Step:
    """What a rule asks for: a theorem, how it is proved, and the obligations without which it is none."""

    name: str
    rule: str
    obligations: tuple[Obligation, ...]


def decide(obligation: Obligation, seed: int = 0, seconds: float = SECONDS) -> Refused | None:
    """None when z3 proves the obligation."""
    answer = Session().check(question(obligation), seconds, seed)
    if answer.status == "unsat":
        return None
    return Refused(obligation, answer.status, answer.reason)


# ---- What the rules ask for -------------------------------------------------------------------


def _directly(theory: Theory, names: Mapping[str, str], hints: Hints) -> list[Step]:
    (name,) = names.values()
    found, t = theory.property(name), theory.translation(hints.closed)
    env = constants(found, t)
    stated = claim(found, env, t)
    hypotheses = (*stated.premises, *_granted(theory, found, hints, t), *cases(theory, found, hints.cases, env, t))
    return [Step(name, "smt", (_obligation(name, hypotheses, stated.goal, t),))]


def _along(theory: Theory, names: Mapping[str, str], hints: Hints) -> list[Step]:
    """For each predicate: its clause, in which every member has its property too, entails the property."""
    steps = []
    for predicate, name in names.items():
        found, t = theory.property(name), theory.translation(hints.closed)
        env = constants(found, t)
        hooks = {other: _member(theory, other, theory.property(member), env, t) for other, member in names.items()}
        premise, arguments = _membership(found, predicate)
        terms = tuple(t.base(argument, env).term for argument in arguments)
        case = clause(theory, predicate, terms, t.hooked(hooks))
        step = Hypothesis("induction", f"the clause of {predicate}, its members with the property", case)
        stated = claim(found, env, t, premise)
        hypotheses = (*stated.premises, *_granted(theory, found, hints, t), step)
        steps.append(Step(name, f"induction along {predicate}", (_obligation(name, hypotheses, stated.goal, t),)))
    return steps


def _member(theory: Theory, predicate: str, found: Property, fixed: Env, t: Translation) -> Hook:
    """The call of a predicate in its clause, as the induction reads it: it holds, and so does the property.

    fixed: the parameters of the theorem that is proved; those that are no arguments of the predicate stay the same.
    """
    premise, arguments = _membership(found, predicate)
    own = constants(found, t)
    if any(own[name] != fixed[name] for name in own if name in fixed):
        raise InternalError(f"a parameter of {found.name} has another sort in the theorem that is proved with it")

    def hook(terms: tuple[Argument, ...]) -> Argument:
        env = dict(own)
        for argument, term in zip(arguments, terms, strict=True):
            env[str(argument.args[0])] = Base(term, t.base(argument, own).sort)
        held = application(predicate, theory.text.functions[predicate], terms, t)
        if not isinstance(held, Base):
            raise InternalError(f"{predicate} is no predicate")
        return conjunction([held.term, claim(found, env, t, premise).formula()])

    return hook


def _membership(found: Property, predicate: str) -> tuple[Expr, tuple[Expr, ...]]:
    """The first premise that the predicate holds, and its arguments: different parameters of the theorem."""
    parameters = {parameter.name for parameter in found.parameters}
    for premise in found.premises:
        call = premise.expr
        if premise.name is None and call.head == "call" and call.args[0] == predicate:
            arguments = tuple(a for a in call.args[1:] if isinstance(a, Expr) and a.head == "var")
            names = {str(argument.args[0]) for argument in arguments}
            if len(names) == len(call.args) - 1 and names <= parameters:
                return call, arguments
    raise InternalError(f"{found.name} has no premise {predicate}(...) over different parameters")


def _counting(theory: Theory, names: Mapping[str, str], hints: Hints) -> list[Step]:
    """The theorem at 0; and from the theorem at a number, the other parameters being the same, that at the next one."""
    ((variable, name),) = names.items()
    found = theory.property(name)
    guard = next((it.expr for it in found.premises if print_expression(it.expr) == f"0 <= {variable}"), None)
    if guard is None or variable not in {parameter.name for parameter in found.parameters}:
        raise InternalError(f"{name} has no parameter {variable} with the premise 0 <= {variable}")
    obligations = []
    for case in ("zero", "next"):
        t = theory.translation(hints.closed)
        env = constants(found, t)
        number = env[variable]
        if not isinstance(number, Base) or number.sort != "Int":
            raise InternalError(f"{variable} of {name} is no number")
        at: Argument = 0 if case == "zero" else Term("+", (number.term, 1))
        stated = claim(found, {**env, variable: Base(at, "Int")}, t, guard)
        before: tuple[Hypothesis, ...] = ()
        if case == "next":
            known = conjunction([Term("<=", (0, number.term)), claim(found, env, t, guard).formula()])
            before = (Hypothesis("induction", f"the theorem at {variable}", known),)
        hypotheses = (*stated.premises, *_granted(theory, found, hints, t), *before)
        obligations.append(_obligation(f"{name}, {case}", hypotheses, stated.goal, t))
    return [Step(name, f"induction over {variable}", tuple(obligations))]


def _granted(theory: Theory, found: Property, hints: Hints, t: Translation) -> tuple[Hypothesis, ...]:
    unfolding = (unfolded(theory, predicate, t) for predicate in hints.unfold)
    introducing = (introduced(theory, predicate, t) for predicate in hints.introduce)
    return (*needs(theory, found, t), *unfolding, *introducing)


def _obligation(name: str, hypotheses: tuple[Hypothesis, ...], goal: Argument, t: Translation) -> Obligation:
    return Obligation(name, hypotheses, goal, dict(t.symbols), tuple(t.texts))


# ---- The rules --------------------------------------------------------------------------------

Names = Mapping[str, str]
Rule = Callable[[Theory, Names, Hints], list[Step]]
Prove = Callable[[str, Theory, Names, Sequence[Theorem], Hints], tuple[Theorem, ...] | Refused]


def _registry() -> tuple[Prove, Callable[[Theory, object], Theorem]]:
    """What makes theorems, and what recognises them. The record of them is reachable through these two alone."""
    made: dict[int, tuple[Theorem, bytes]] = {}
    rules: dict[str, Rule] = {"smt": _directly, "induction": _along, "natural": _counting}

    def recognised(digest: str, offered: object) -> Theorem:
        found = made.get(id(offered))
        if found is None or found[0] is not offered or _digest(found[0]) != found[1]:
            raise Forged(f"{type(offered).__name__} {_shown(offered)} is no theorem of this kernel")
        if found[0].digest != digest:
            raise Forged(f"{found[0].name} is a theorem of another text")
        return found[0]

    def prove(
        rule: str, theory: Theory, names: Names, lemmas: Sequence[Theorem], hints: Hints
    ) -> tuple[Theorem, ...] | Refused:
        digest = theory.digest()
        shown = {recognised(digest, lemma).name for lemma in lemmas}
        steps = rules[rule](theory, names, hints)
        for step in steps:
            missing = sorted({it.label for o in step.obligations for it in o.hypotheses if it.kind == "lemma"} - shown)
            if missing:
                raise Forged(f"{step.name} rests on {', '.join(missing)}, of which no proof is given")
            for obligation in step.obligations:
                refused = decide(obligation)
                if refused is not None:
                    return refused
        return tuple(seal(step, digest) for step in steps)

    def seal(step: Step, digest: str) -> Theorem:
        theorem: Theorem = object.__new__(Theorem)
        for field in ("name", "rule", "obligations"):
            object.__setattr__(theorem, field, getattr(step, field))
        object.__setattr__(theorem, "digest", digest)
        made[id(theorem)] = theorem, _digest(theorem)
        return theorem

    return prove, lambda theory, offered: recognised(theory.digest(), offered)


def _digest(theorem: Theorem) -> bytes:
    obligations = [question(it) for it in theorem.obligations]
    return hashlib.sha256(repr((theorem.name, theorem.rule, theorem.digest, obligations)).encode()).digest()


def _shown(offered: object) -> str:
    return repr(offered.name) if isinstance(offered, Theorem) and hasattr(offered, "name") else ""


_prove, genuine = _registry()


def smt(theory: Theory, name: str, lemmas: Sequence[Theorem] = (), hints: Hints = NO_HINTS) -> Theorem | Refused:
    """The theorem follows from its premises and what it needs."""
    return _single(_prove("smt", theory, {"": name}, lemmas, hints))


def induction(
    theory: Theory, names: Names, lemmas: Sequence[Theorem] = (), hints: Hints = NO_HINTS
) -> tuple[Theorem, ...] | Refused:
    """Induction along inductive predicates, several at once where they depend on each other.

    names: for each predicate the theorem that says something of all its members, with the membership as a premise.
    """
    return _prove("induction", theory, names, lemmas, hints)


def natural(
    theory: Theory, name: str, variable: str, lemmas: Sequence[Theorem] = (), hints: Hints = NO_HINTS
) -> Theorem | Refused:
    """Induction over a natural number: a parameter of sort Int with the premise `0 <= variable`."""
    return _single(_prove("natural", theory, {variable: name}, lemmas, hints))


def _single(made: tuple[Theorem, ...] | Refused) -> Theorem | Refused:
    return made if isinstance(made, Refused) else made[0]
