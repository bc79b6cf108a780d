"""The kernel: the only place where theorems are made. Small, so that it can be read as a whole.

A theorem is made by a rule from obligations that z3 has answered with unsat, never otherwise. What it may assume comes
from the theory, under its name; there is no function that takes a formula on trust. Nothing here depends on `assert`,
so `python -O` changes nothing. Whatever is handed over is copied before it is looked at (`snapshot`), so that it cannot
be one thing when it is hashed and another when it is proved. A theorem which was not made here, was changed
afterwards, or was proved from another text is no theorem here. Python cannot keep code in the same process from reading
and changing what the interpreter holds, `_prove.__closure__` or the functions of a module: README.md says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn
from weakref import WeakKeyDictionary

from sonnx.checker.smt.solver import Session
from sonnx.semantics.errors import InternalError
from sonnx.spec.language.syntax import PROVED, Expr, Property

from .formulas import Argument, Base, Term, Value, conjunction, forall
from .smtlib import question
from .snapshot import Forged, mistake, taken
from .theory import (
    Hypothesis,
    Obligation,
    Theory,
    cases,
    claim,
    clause,
    constant,
    constants,
    inhabited,
    introduced,
    needs,
    relative,
    unfolded,
)
from .translation import Env, Hook, Translation, application, base_sort

EFFORT = 20_000_000
"""The steps that z3 may take for one obligation: so a slow machine, or a busy one, comes to the same result."""
SECONDS = 120.0
"""The seconds that it may take at all. The steps take some ten seconds."""


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
    """The definitions that a proof uses, besides what the theorem needs. None of it is assumed: each is true of the
    text. Of definitions that the theory takes as any predicate nothing may be used.

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
    """The request of a rule: a theorem, how it is proved, and the obligations without which it is none."""

    name: str
    rule: str
    obligations: tuple[Obligation, ...]


def decide(obligation: Obligation, seed: int = 0, effort: int = EFFORT) -> Refused | None:
    """None when z3 proves the obligation."""
    answer = Session().check(question(obligation), SECONDS, seed, effort=effort)
    if answer.status == "unsat":
        return None
    return Refused(obligation, answer.status, answer.reason)


# ---- What the rules ask for -------------------------------------------------------------------


def _directly(theory: Theory, names: Mapping[str, str], hints: Hints) -> list[Step]:
    (name,) = names.values()
    theorem, t = theory.property(name), theory.translation(hints.closed)
    env = constants(theorem, t)
    stated = claim(theorem, env, t)
    hypotheses = (*stated.premises, *_granted(theory, theorem, hints, t), *cases(theory, theorem, hints.cases, env, t))
    return [Step(name, "smt", (_obligation(theory, theorem, name, hypotheses, stated.goal, t),))]


def _along(theory: Theory, names: Mapping[str, str], hints: Hints) -> list[Step]:
    """For each predicate: its clause, in which every member has its property too, entails the property.

    Why that is enough. The predicates are the least ones, so each member has a rank, and its clause holds by members of
    smaller ranks alone (clauses are positive: the text was elaborated). Say that all members of smaller ranks, of each
    predicate, have the property of its theorem, under all values of its other parameters. Then the clause with these
    properties holds at the member, and the obligation gives its property. The property of a member is all that its
    theorem says of it: the other premises imply the goal. It is also under the constraints that the theorem needs.
    So theorems that are proved together must need the same: else one of them would use of another, as known of members,
    what holds only under constraints which it does not ask for itself, and would rest on laws without saying so.
    """
    for predicate in names:
        if predicate not in theory.text.functions or theory.text.functions[predicate].kind != "inductive":
            raise Forged(f"{predicate} is no inductive predicate")
        if predicate in theory.opaque:
            raise Forged(f"{predicate} is taken as any predicate: no proof looks into it")
    properties = [theory.property(name) for name in names.values()]
    if len({frozenset(theorem.needs) for theorem in properties}) > 1:
        raise Forged(f"{', '.join(names.values())} are proved together and do not need the same")
    steps = []
    for predicate, name in names.items():
        theorem, t = theory.property(name), theory.translation(hints.closed)
        env = constants(theorem, t)
        hooks = {other: _member(theory, other, theory.property(member), env, t) for other, member in names.items()}
        premise, arguments = _membership(theorem, predicate)
        terms = tuple(t.base(argument, env).term for argument in arguments)
        case = clause(theory, predicate, terms, t.hooked(hooks))
        step = Hypothesis("induction", f"the clause of {predicate}, its members with the property", case)
        stated = claim(theorem, env, t, premise)
        hypotheses = (*stated.premises, *_granted(theory, theorem, hints, t), step)
        obligation = _obligation(theory, theorem, name, hypotheses, stated.goal, t)
        steps.append(Step(name, f"induction along {predicate}", (obligation,)))
    return steps


def _member(theory: Theory, predicate: str, theorem: Property, fixed: Env, t: Translation) -> Hook:
    """The call of a predicate in its clause, as the induction reads it: it holds, and so does the property.

    fixed: the parameters of the theorem that is proved; those that are no arguments of the predicate stay the same. A
    parameter that it does not have is any value.
    """
    premise, arguments = _membership(theorem, predicate)
    named = {str(argument.args[0]) for argument in arguments}
    others: list[tuple[str, str]] = []
    env: dict[str, Value] = {}
    for parameter in theorem.parameters:
        sort = base_sort(parameter.sort)
        if parameter.name in fixed:
            env[parameter.name] = fixed[parameter.name]
            if fixed[parameter.name] != Base(constant(parameter.name, sort, t), sort):
                raise InternalError(
                    f"{parameter.name} of {theorem.name} has another sort in the theorem proved with it"
                )
        elif parameter.name not in named:
            others.append((t.fresh(parameter.name), sort))
            env[parameter.name] = Base(others[-1][0], sort)
    sorts = {parameter.name: base_sort(parameter.sort) for parameter in theorem.parameters}

    def hook(terms: tuple[Argument, ...]) -> Argument:
        at = {str(it.args[0]): term for it, term in zip(arguments, terms, strict=True)}
        inner = {**env, **{name: Base(term, sorts[name]) for name, term in at.items()}}
        truth = application(predicate, theory.text.functions[predicate], terms, t)
        if not isinstance(truth, Base):
            raise InternalError(f"{predicate} is no predicate")
        return conjunction([truth.term, forall(others, claim(theorem, inner, t, premise).formula())])

    return hook


def _membership(theorem: Property, predicate: str) -> tuple[Expr, tuple[Expr, ...]]:
    """The first premise that the predicate holds, and its arguments: different parameters of the theorem."""
    parameters = {parameter.name for parameter in theorem.parameters}
    for premise in theorem.premises:
        call = premise.expr
        if premise.name is None and call.head == "call" and call.args[0] == predicate:
            arguments = tuple(a for a in call.args[1:] if isinstance(a, Expr) and a.head == "var")
            names = {str(argument.args[0]) for argument in arguments}
            if len(names) == len(call.args) - 1 and names <= parameters:
                return call, arguments
    raise InternalError(f"{theorem.name} has no premise {predicate}(...) over different parameters")


def _counting(theory: Theory, names: Mapping[str, str], hints: Hints) -> list[Step]:
    """The theorem at 0; and from the theorem at a number, the other parameters being the same, that at the next one.

    That the number is not negative must be a premise: it is left out where 0 and the next number are spoken of. A name
    that is given to the same formula by a `let` assumes nothing. No `let` binds the number again (`claim` sees to it),
    so the premise speaks of the parameter.
    """
    ((variable, name),) = names.items()
    theorem = theory.property(name)
    least = Expr("compare", (Expr("int", (0,)), "<=", Expr("var", (variable,))))
    guard = next((it.expr for it in theorem.premises if it.name is None and it.expr == least), None)
    if guard is None or variable not in {parameter.name for parameter in theorem.parameters}:
        raise InternalError(f"{name} has no parameter {variable} with the premise 0 <= {variable}")
    obligations = []
    for case in ("zero", "next"):
        t = theory.translation(hints.closed)
        env = constants(theorem, t)
        number = env[variable]
        if not isinstance(number, Base) or number.sort != "Int":
            raise InternalError(f"{variable} of {name} is no number")
        at: Argument = 0 if case == "zero" else Term("+", (number.term, 1))
        stated = claim(theorem, {**env, variable: Base(at, "Int")}, t, guard)
        before: tuple[Hypothesis, ...] = ()
        if case == "next":
            known = conjunction([Term("<=", (0, number.term)), claim(theorem, env, t, guard).formula()])
            before = (Hypothesis("induction", f"the theorem at {variable}", known),)
        hypotheses = (*stated.premises, *_granted(theory, theorem, hints, t), *before)
        obligations.append(_obligation(theory, theorem, f"{name}, {case}", hypotheses, stated.goal, t))
    return [Step(name, f"induction over {variable}", tuple(obligations))]


def _granted(theory: Theory, theorem: Property, hints: Hints, t: Translation) -> tuple[Hypothesis, ...]:
    unfolding = (unfolded(theory, predicate, t) for predicate in hints.unfold)
    introducing = (introduced(theory, predicate, t) for predicate in hints.introduce)
    return (*needs(theory, theorem, t), *unfolding, *introducing)


def _obligation(
    theory: Theory, theorem: Property, name: str, hypotheses: tuple[Hypothesis, ...], goal: Argument, t: Translation
) -> Obligation:
    """The obligation in a logic whose sorts are never empty: quantifiers over sorts that may be are guarded."""
    known = inhabited(theory, theorem)
    assumed = tuple(replace(it, formula=relative(it.formula, known, t)) for it in hypotheses)
    return Obligation(name, assumed, relative(goal, known, t), dict(t.symbols), tuple(t.texts))


# ---- The rules --------------------------------------------------------------------------------

Names = Mapping[str, str]
Rule = Callable[[Theory, Names, Hints], list[Step]]


class Reading:
    """A theory that the kernel has read: it stands for the copy that the kernel keeps, and holds nothing itself."""


Offered = Theory | Reading
"""The subject of theorems; who proves many from one theory lets the kernel read it once."""
Prove = Callable[[str, Offered, Names, Sequence[Theorem], Hints], tuple[Theorem, ...] | Refused]


@dataclass(frozen=True, slots=True)
class Record:
    """A thing that was proved: the theorem, and what it said when it was made."""

    theorem: Theorem
    name: str
    digest: str
    obligations: tuple[Obligation, ...]
    content: bytes


def _registry() -> tuple[Prove, Callable[[Offered, object], Theorem], Callable[[Theory], Reading]]:
    """The makers of theorems, their recogniser, and the reader of a theory. The record of all that is reachable through
    these three alone.
    """
    made: dict[int, Record] = {}
    sound: set[str] = set()
    kept: WeakKeyDictionary[Reading, tuple[Theory, str]] = WeakKeyDictionary()
    rules: dict[str, Rule] = {"smt": _directly, "induction": _along, "natural": _counting}

    def read(theory: object) -> tuple[Theory, str]:
        """A copy of the theory that nobody else has, and its digest. Texts without a mistake are elaborated once."""
        if type(theory) is Reading:
            if theory not in kept:
                raise Forged("the kernel has read no such theory")
            return kept[theory]
        if type(theory) is not Theory:
            raise Forged(f"{type(theory).__name__} is no theory")
        text = taken(theory.text, theory.opaque)
        if text.digest not in sound:
            wrong = mistake(text)
            if wrong:
                raise Forged(f"the text has a mistake: {wrong}")
            sound.add(text.digest)
        return Theory(text.text, text.opaque), text.digest

    def recognised(digest: str, offered: object) -> Record:
        record = made.get(id(offered))
        if record is None or record.theorem is not offered or not _unchanged(record):
            raise Forged(f"{type(offered).__name__} {_shown(offered)} is no theorem of this kernel")
        if record.digest != digest:
            raise Forged(f"{record.name} is a theorem of another text")
        return record

    def prove(
        rule: str, offered: Offered, names: Names, lemmas: Sequence[Theorem], hints: Hints
    ) -> tuple[Theorem, ...] | Refused:
        theory, digest = read(offered)
        shown = {recognised(digest, lemma).name for lemma in lemmas}
        asked, used = _names(names), _hints(theory, hints)
        for name in asked.values():
            if theory.property(name).kind not in PROVED:
                raise Forged(f"{name} is a {theory.property(name).kind}, no theorem and no lemma")
        steps = rules[rule](theory, asked, used)
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
        made[id(theorem)] = Record(theorem, step.name, digest, step.obligations, _digest(theorem))
        return theorem

    def genuine(theory: Offered, offered: object) -> Theorem:
        """The theorem that is offered, where it is one of this text. Raises Forged otherwise."""
        return recognised(read(theory)[1], offered).theorem

    def reading(theory: Theory) -> Reading:
        """The theory, read once for many proofs: what is changed in it later changes nothing."""
        made_of = read(theory)
        handle = Reading()
        kept[handle] = made_of
        return handle

    return prove, genuine, reading


def _names(names: Mapping[str, str]) -> Names:
    """A copy: a mapping of another class may say one thing now and another later."""
    if type(names) is not dict or any(type(it) is not str for pair in names.items() for it in pair):
        raise Forged("the names of theorems are a dictionary of strings")
    return dict(names)


def _hints(theory: Theory, hints: Hints) -> Hints:
    """A copy. Raises Forged where a definition is used that the theory takes as any predicate."""
    listed = {field: tuple(getattr(hints, field)) for field in ("unfold", "introduce", "cases", "closed")}
    if any(type(name) is not str for names in listed.values() for name in names):
        raise Forged("hints are names of definitions")
    for name in (*listed["unfold"], *listed["introduce"], *listed["cases"]):
        if name in theory.opaque:
            raise Forged(f"{name} is taken as any predicate: no proof looks into it")
    return Hints(**listed)


def _unchanged(record: Record) -> bool:
    """True where a theorem is what it was when it was made: its parts are plain objects, and say the same."""
    theorem = record.theorem
    plain = all(type(part) is str for part in (theorem.name, theorem.rule, theorem.digest))
    return plain and theorem.obligations is record.obligations and _digest(theorem) == record.content


def _digest(theorem: Theorem) -> bytes:
    obligations = [question(it) for it in theorem.obligations]
    return hashlib.sha256(repr((theorem.name, theorem.rule, theorem.digest, obligations)).encode()).digest()


def _shown(offered: object) -> str:
    return repr(offered.name) if isinstance(offered, Theorem) and hasattr(offered, "name") else ""


_prove, genuine, reading = _registry()


def smt(theory: Offered, name: str, lemmas: Sequence[Theorem] = (), hints: Hints = NO_HINTS) -> Theorem | Refused:
    """The theorem follows from its premises and what it needs."""
    return _single(_prove("smt", theory, {"": name}, lemmas, hints))


def induction(
    theory: Offered, names: Names, lemmas: Sequence[Theorem] = (), hints: Hints = NO_HINTS
) -> tuple[Theorem, ...] | Refused:
    """Induction along inductive predicates, several at once where they depend on each other.

    names: for each predicate the theorem that says something of all its members, with the membership as a premise.
    """
    return _prove("induction", theory, names, lemmas, hints)


def natural(
    theory: Offered, name: str, variable: str, lemmas: Sequence[Theorem] = (), hints: Hints = NO_HINTS
) -> Theorem | Refused:
    """Induction over a natural number: a parameter of sort Int with the premise `0 <= variable`."""
    return _single(_prove("natural", theory, {variable: name}, lemmas, hints))


def _single(made: tuple[Theorem, ...] | Refused) -> Theorem | Refused:
    return made if isinstance(made, Refused) else made[0]
