"""The verdict about a rule: all its instances are proved, or an input refutes it, or it is open and why."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import Argument, Term
from sonnx.semantics.operators.symbolic.elements.terms import Terms
from sonnx.semantics.operators.symbolic.numbers import both, equal, within
from sonnx.semantics.operators.symbolic.values import Array, Dead, Scope, Value, element

from . import axioms, scalars, witness
from .asking import Asker
from .equality import Equality, open_numbers
from .rules import OPEN, PROVED, RANKS, REFUTED, Instance, Rule, Verdict, any_type, is_open, shapes, types
from .sides import Case, explore

FALSE = 60
"""So many choices of sizes and attributes are tried for a rule that claims never, before any proof is, and for a rule
over the reals, whose bits need not be compared where they differ on the machine.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A case: why it is not proved, "" where it is. opened: the tensors of the left side of which an output has
    elements that the text leaves open.
    """

    reason: str
    refined: bool = False
    laws: tuple[str, ...] = ()
    opened: frozenset[Argument] = frozenset()


@dataclass(slots=True)
class Record:
    """What was found out so far about a rule. real: over the reals, where nothing is rounded. effort: the solver's steps
    for a question about elements.
    """

    asker: Asker
    ranks: int = 0
    instances: int = 0
    refined: bool = False
    laws: dict[str, None] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)
    cut: dict[str, None] = field(default_factory=dict)
    failed: list[Instance] = field(default_factory=list)
    real: bool = False
    effort: int = scalars.EFFORT


def judge(rule: Rule, *, most: int = RANKS, search: bool = True, seed: int = 0) -> Verdict:
    """The verdict about a rule, up to so many axes. search: for an input that refutes it, where it is not proved."""
    start = time.monotonic()
    if search and rule.claim == "never":  # what is believed to be false is not proved first
        found = witness.search(rule, seed=seed, tries=FALSE)
        if found is not None:
            seconds = time.monotonic() - start
            return Verdict(rule.name, rule.claim, REFUTED, most=most, seconds=seconds, witness=found)
    record = Record(Asker(), effort=scalars.EFFORT // 40 if rule.claim == "reals" else scalars.EFFORT)
    strength = told = ""
    if not (search and rule.claim == "reals" and witness.search(replace(rule, claim="exact"), seed=seed, tries=FALSE)):
        strength, told = _proved(rule, record, most)
    if not strength and rule.claim == "reals":
        record = Record(record.asker, real=True)
        strength, told = _proved(rule, record, most)
    verdict = Verdict(
        rule.name, rule.claim, PROVED if strength else OPEN, strength, record.ranks, most, record.instances, 0.0, told,
        tuple(record.reasons), tuple(record.laws), tuple(record.cut), asked=record.asker.asked,
    )  # fmt: skip
    if search and (not strength or (strength == "reals" and rule.claim in ("exact", "allowed"))):
        found = witness.search(rule, record.failed, seed=seed)
        if found is not None:
            verdict = replace(verdict, verdict=REFUTED, witness=found)
    return replace(verdict, seconds=time.monotonic() - start)


def _proved(rule: Rule, record: Record, most: int) -> tuple[str, str]:
    """The strength of what is proved, "" for nothing, and for which types it was: at once, or one by one."""
    anything = any_type(rule)
    typewise: list[Instance] = []
    for instance in shapes(rule, most):
        before = dict(record.reasons)
        possible, held = _instance(rule, replace(instance, types=anything), record)
        if held:
            record.ranks += possible
            continue
        record.reasons = before if any(map(is_open, anything.values())) else record.reasons
        typewise.append(instance)
        if not any(map(is_open, anything.values())):
            record.failed.append(replace(instance, types=anything))
            return "", ""
    for instance in typewise:
        somewhere = False
        for chosen in types(rule):
            possible, held = _instance(rule, replace(instance, types=chosen), record)
            if not held:
                record.failed.append(replace(instance, types=chosen))
                return "", ""
            somewhere = somewhere or possible
        record.ranks += somewhere
    if not record.ranks:
        record.reasons["no instance is possible: the left side never has a value"] = None
        return "", ""
    told = "one by one" if typewise else "any"
    return ("reals" if record.real else "allowed" if record.refined else "exact"), told


def _instance(rule: Rule, instance: Instance, record: Record) -> tuple[bool, bool]:
    """Whether the left side can have a value in an instance, and whether the right side then is right."""
    possible = False
    try:
        for case, found in explore(
            rule, instance, record.asker, record.cut, lambda case: (case, _judged(case, record))
        ):
            if not found.reason and not possible and _impossible(case, record.asker, _numbers(case.types)):
                continue  # not for numbers: that a text cannot be compared with one is not seen
            if found.reason and _impossible(case, record.asker, case.types):
                continue  # the left side has no value there
            if found.reason:
                record.reasons[f"{instance.label}: {found.reason}" if instance.label else found.reason] = None
                return True, False
            possible = True
            record.instances += 1
            record.refined = record.refined or found.refined
            record.laws.update(dict.fromkeys(found.laws))
    except InternalError as problem:
        record.reasons[f"{instance.label}: {problem}"] = None
        return possible, False
    return possible, True


def _impossible(case: Case, asker: Asker, kinds: Mapping[str, tuple[str, ...]]) -> bool:
    """What is known of the left side, its sizes and its elements, cannot hold together, for any of its types."""
    path, symbols = case.scope.run.path, case.scope.run.symbols
    return asker.impossible(path, symbols) or scalars.contradictory(Equality(asker, symbols, (), kinds=kinds), path)


def _numbers(kinds: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The types that the solver has, where there are some."""
    return {
        kind: tuple(it for it in allowed if it in (*axioms.NUMBERS, "bool")) or allowed
        for kind, allowed in kinds.items()
    }


def _judged(case: Case, record: Record) -> Found:
    """A case: what the right side needs, then shapes and types, then elements."""
    symbols, asker = case.scope.run.symbols, record.asker
    for obligation in case.obligations:
        facts = (*case.scope.run.path, *obligation.facts)
        if not Equality(asker, symbols, (), kinds=case.types).implied(facts, obligation.goal):
            where = f"{obligation.about} {obligation.kind}".strip()
            return Found(f"the right side needs more: {where} at {obligation.span}{_cases(case)}")
    if case.right is None:
        return Found("")
    refined, laws, opened = False, dict[str, None](), frozenset[Argument]()
    for port in case.left.operator.outputs:
        one, other = (side.outputs.get(port.name) for side in (case.left, case.right))
        for name, left, right in _paired(port.name, one, other):
            found = _tensor(name, left, right, case, record)
            if found.reason:
                return found
            if found.opened & opened:  # one value for both on the left, two on the right
                return Found(f"{name} shares elements that the text leaves open with another output{_cases(case)}")
            refined, opened = refined or found.refined, opened | found.opened
            laws |= dict.fromkeys(found.laws)
    algebra = case.scope.run.algebra
    if isinstance(algebra, Terms) and algebra.wide:
        laws[axioms.WIDE] = None
    laws |= dict.fromkeys(axioms.POSITIONS[name] for name in case.scope.run.positions)
    return Found("", refined=refined, laws=tuple(laws))


def _read(tensor: Array, index: tuple[Term, ...], scope: Scope) -> Term | None:
    """The element at an index; None where there is none."""
    try:
        value = element(tensor.read(index, scope), tensor.type, scope).value
    except Dead:
        return None
    if not isinstance(value, Term):
        raise InternalError(f"{tensor.name}: {value!r} is no element term")
    return value


def _cases(case: Case) -> str:
    words = [word for word in case.words if word]
    return f" where {', '.join(words)}" if words else ""


def _paired(name: str, one: Value | None, other: Value | None) -> Iterator[tuple[str, Value | None, Value | None]]:
    """The tensors of an output, one by one where it is a list."""
    if type(one) is tuple and type(other) is tuple and len(one) == len(other):
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            yield f"{name}[{k}]", a, b
    else:
        yield name, one, other


def _tensor(name: str, left: Value | None, right: Value | None, case: Case, record: Record) -> Found:
    """An output: the same rank, sizes, type, and at each index the same element."""
    if not isinstance(left, Array) or not isinstance(right, Array):
        return Found(f"{name} is no tensor on both sides")
    if len(left.shape) != len(right.shape):
        return Found(f"{name} has {len(left.shape)} axes on the left and {len(right.shape)} on the right{_cases(case)}")
    facts, asker = case.facts, record.asker
    for axis, (a, b) in enumerate(zip(left.shape, right.shape, strict=True)):
        if not asker.entails(facts, equal(a, b), case.scope.run.symbols):
            return Found(f"{name} has another size on axis {axis}{_cases(case)}")
    if left.type != right.type:
        return Found(f"{name} is of type {left.type.name} on the left and {right.type.name} on the right")
    run = case.scope.run
    index = tuple(Term(f"i.{axis}") for axis in range(len(left.shape)))
    run.symbols |= {symbol.op: (0, "Int") for symbol in index}
    scope = Scope({}, run).under(both(*(within(i, n) for i, n in zip(index, left.shape, strict=True))))
    run.strict = False
    one = _read(left, index, scope)
    owed = len(run.obligations)
    run.strict = True
    other = _read(right, index, scope)
    told = (*case.facts, *scope.facts)
    for obligation in run.obligations[owed:]:
        if not asker.entails((*run.path, *obligation.facts), obligation.goal, run.symbols):
            return Found(f"{name} has no element on the right: {obligation.kind} at {obligation.span}{_cases(case)}")
    equality = Equality(asker, run.symbols, index, kinds=case.types, real=record.real, effort=record.effort)
    if one is None:
        return Found("")  # the left side has no such element
    if other is None:
        return Found(f"{name} has no element on the right{_cases(case)}")
    if not equality.same(one, other, tuple(dict.fromkeys(told))):
        return Found(f"{name}: {equality.reason}{_cases(case)}")
    return Found("", refined=equality.refined, laws=tuple(equality.laws), opened=open_numbers(one))
