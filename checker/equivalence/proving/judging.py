"""The verdict about a rule: all its instances are proved, or an input refutes it, or it is open and why."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import Argument, Term
from sonnx.semantics.operators.symbolic import rows
from sonnx.semantics.operators.symbolic.elements.terms import Terms
from sonnx.semantics.operators.symbolic.numbers import both, equal, opened_goal, within
from sonnx.semantics.operators.symbolic.values import (
    Array,
    Dead,
    Evaluation,
    Field,
    Row,
    Scope,
    Value,
    element,
    relate,
    whole,
)

from . import axioms, scalars, witness
from .asking import Asker
from .comparison import parts_of
from .equality import Equality
from .freedom import open_numbers
from .rules import OPEN, PROVED, RANKS, REFUTED, SEVERAL, Instance, Rule, Verdict, any_type, is_open, shapes, types
from .sides import Case, explore

FALSE = 60
"""So many choices of sizes and attributes are tried for a rule that claims never, before any proof is, and for a rule
over the reals, whose bits need not be compared where they differ on the machine.
"""
EVERY = 20_000
"""The steps of the solver for a question about lists of any length: what follows is found in few of them."""
QUESTIONS = 250
"""So many questions are put to it: a proof for any number of axes is short, or there is none."""
TYPES = 8
"""So many choices of element types are tried one by one for any number of axes."""


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
    """What was found out so far about a rule. every: it is shown for any number of axes. real: over the reals, where
    nothing is rounded. effort: the steps of the solver for a question about elements.
    """

    asker: Asker
    every: bool = False
    ranks: int = 0
    instances: int = 0
    refined: bool = False
    laws: dict[str, None] = field(default_factory=dict)
    reasons: dict[str, None] = field(default_factory=dict)
    cut: dict[str, None] = field(default_factory=dict)
    failed: list[Instance] = field(default_factory=list)
    real: bool = False
    effort: int = scalars.EFFORT
    inhabited: bool = False


def judge(rule: Rule, *, most: int = RANKS, search: bool = True, seed: int = 0, every: bool = True) -> Verdict:
    """The verdict about a rule: for any number of axes where that is found, else up to so many. search: for an input
    that refutes it, where it is not proved. every: whether to look for a proof for any number of axes at all.
    """
    start = time.process_time()
    if search and rule.claim == "never":  # what is believed to be false is not proved first
        found = witness.search(rule, seed=seed, tries=FALSE)
        if found is not None:
            seconds = time.process_time() - start
            return Verdict(rule.name, rule.claim, REFUTED, most=most, seconds=seconds, witness=found)
    asker, effort = Asker(), scalars.EFFORT // 40 if rule.claim == "reals" else scalars.EFFORT
    begun = [Record(asker, effort=effort)]
    if rule.claim == "reals":
        begun.append(Record(asker, real=True))
        if search and witness.search(replace(rule, claim="exact"), seed=seed, tries=FALSE):
            del begun[0]
    for record in begun:
        strength, told = _proved(rule, record, most, every=every and record.real == (rule.claim == "reals"))
        if strength and (several := [port.name for port in rule.left.inputs if port.mark == "*"]):
            record.reasons[f"no more than {SEVERAL} tensors of {', '.join(several)} were tried"] = None
            strength = ""
        if strength:
            break
    verdict = Verdict(
        rule.name, rule.claim, PROVED if strength else OPEN, strength, record.ranks, most, record.every,
        record.instances, 0.0, told, tuple(record.reasons), tuple(record.laws), tuple(record.cut), asked=asker.asked,
    )  # fmt: skip
    if search and (not strength or (strength == "reals" and rule.claim in ("exact", "allowed"))):
        found = witness.search(rule, record.failed, seed=seed)
        if found is not None:
            verdict = replace(verdict, verdict=REFUTED, witness=found)
    return replace(verdict, seconds=time.process_time() - start)


def _proved(rule: Rule, record: Record, most: int, *, every: bool) -> tuple[str, str]:
    """The strength of what is proved, "" for nothing, and for which types it was: at once, or one by one."""
    anything = any_type(rule)
    open_ranks = any(it.ranks for it in shapes(rule, 0))
    told = _for_every(rule, record) if every and open_ranks else ""
    if told:
        return _strength(record), told
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
    if not record.inhabited:
        record.reasons["no output is seen to have an element"] = None
        return "", ""
    record.every = every and not open_ranks
    return _strength(record), "one by one" if typewise else "any"


def _strength(record: Record) -> str:
    return "reals" if record.real else "allowed" if record.refined else "exact"


# ---- Any number of axes -------------------------------------------------------------------------
#
# The shape of an input with dots is a list of which the length is a symbol, `axes.d`, and an index is a symbol as well.
# All that is known of the two is what stands at a position, `at(i, k)` for 0 <= k < axes.d: between 0 and the size
# there. No step of the evaluation asks for more: where a length has to be known it is a case, `axes.s <= axes.d`, or
# the evaluation ends (Bounded) and there is no such proof. So what is shown holds of every list of sizes and of every
# index below it. A list that is made of others has a code by what its entries say (`rows`), an element is read by the
# code of its index, and two codes are one index where they are shown to have one entry at each position (`same_index`).
# A rule that is true for few axes alone has a counterexample among these lists, as any false rule has.


def _for_every(rule: Rule, record: Record) -> str:
    """For which types the rule is shown for any number of axes, "" where it is not. It is possible for some: at the
    first number of axes for which the left side can have a value.
    """
    anything = any_type(rule)
    ranked = list(shapes(rule))
    fewest = [it for it in ranked if not any(it.ranks.values())]
    choices = [[anything]]
    if any(map(is_open, anything.values())) and len(types(rule)) <= TYPES:
        choices.append(types(rule))
    for chosen in choices:
        tried = Record(Asker(effort=EVERY, most=QUESTIONS), real=record.real, effort=record.effort)
        instances = (replace(it, types=kinds, every=True) for kinds in chosen for it in fewest)
        if not all(_instance(rule, it, tried)[1] for it in instances):
            continue
        kinds = chosen[0]
        if tried.inhabited and any(_instance(rule, replace(it, types=kinds), Record(record.asker))[0] for it in ranked):
            record.every, record.ranks, record.instances = True, tried.ranks, tried.instances
            record.refined, record.laws, record.cut = tried.refined, tried.laws, tried.cut
            return "any" if len(chosen) == 1 else "one by one"
    return ""


# ---- Instances ----------------------------------------------------------------------------------


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
            if not found.reason and _contradictory(case, record.asker):
                found = Found(f"what is known of the right side contradicts itself{_cases(case)}")
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


def _contradictory(case: Case, asker: Asker) -> bool:
    """What is known of both sides cannot hold together, though what is known of the left one can: nothing is shown."""
    symbols, known = case.scope.run.symbols, case.scope.run.path
    more = [fact for fact in case.facts if fact not in known]
    if not more or not asker.impossible((*known, *more), symbols, quick=True):
        return False
    return not asker.impossible(known, symbols)


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
    settled = frozenset(symbols)
    for port in case.left.operator.outputs:
        one, other = (side.outputs.get(port.name) for side in (case.left, case.right))
        for name, left, right in _paired(port.name, one, other):
            found = _tensor(name, left, right, case, record, settled)
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


def _read(tensor: Array | Field, index: tuple[Term, ...], scope: Scope) -> Term | None:
    """The element at an index; None where there is none."""
    try:
        if isinstance(tensor, Field):
            found = tensor.read(rows.coded(index[0], rows.length_of(tensor.shape)), scope)
        else:
            found = tensor.read(index, scope)
        value = element(found, tensor.type, scope).value
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


def _tensor(
    name: str, left: Value | None, right: Value | None, case: Case, record: Record, settled: frozenset[str]
) -> Found:
    """An output: the same rank, sizes, type, and at each index the same element. settled: the symbols that are there
    before an element is read: those that come then stand for what depends on the index.
    """
    if not isinstance(left, Array | Field) or not isinstance(right, Array | Field):
        return Found(f"{name} is no tensor on both sides")
    if left.type != right.type:
        return Found(f"{name} is of type {left.type.name} on the left and {right.type.name} on the right")
    run, asker = case.scope.run, record.asker
    if isinstance(left, Field) or isinstance(right, Field):
        left, right = _any_rank(left, case.scope), _any_rank(right, case.scope)
    problem = _shapes(name, left, right, case, asker)
    if problem:
        return Found(f"{problem}{_cases(case)}")
    index, there = _anywhere(left, run)
    scope = Scope({}, run).under(there)
    run.strict = False
    one = _read(left, index, scope)
    owed = len(run.obligations)
    run.strict = True
    other = _read(right, index, scope)
    told = (*case.facts, *scope.facts)
    for obligation in run.obligations[owed:]:
        if not asker.entails((*run.path, *obligation.facts), obligation.goal, run.symbols):
            return Found(f"{name} has no element on the right: {obligation.kind} at {obligation.span}{_cases(case)}")
    algebra = run.algebra
    own = frozenset(run.symbols) - settled - {symbol.op for symbol in index}
    equality = Equality(
        asker, run.symbols, index, kinds=case.types, real=record.real, effort=record.effort, axes=case.axes,
        own=own - (algebra.reads.keys() if isinstance(algebra, Terms) else frozenset()),
        alone=all(_symbols(term) <= settled for term in run.decided),
    )  # fmt: skip
    if one is None:
        return Found("")  # the left side has no such element
    if other is None:
        return Found(f"{name} has no element on the right{_cases(case)}")
    if not equality.same(one, other, tuple(dict.fromkeys(told))):
        return Found(f"{name}: {equality.reason}{_cases(case)}")
    record.inhabited = record.inhabited or not asker.impossible(told, run.symbols)
    return Found("", refined=equality.refined, laws=tuple(equality.laws), opened=open_numbers(one))


def _symbols(term: Argument) -> frozenset[str]:
    """The symbols of a number or condition that was decided."""
    return frozenset(part.op for part in parts_of(term) if not part.args)


def _any_rank(tensor: Array | Field, scope: Scope) -> Field:
    """The tensor as one of any number of axes."""
    if isinstance(tensor, Field):
        return tensor
    rank, read = len(tensor.shape), tensor.read

    def at(index: Row, here: Scope) -> Value:
        return read(tuple(whole(rows.entry(index, k, here)) for k in range(rank)), here)

    return Field(tensor.name, rows.row_of(tensor.shape, scope), at, tensor.type)


def _shapes(name: str, left: Array | Field, right: Array | Field, case: Case, asker: Asker) -> str:
    """Why the shapes are not shown to be the same, "" where they are."""
    facts, symbols = case.facts, case.scope.run.symbols
    if isinstance(left, Field) or isinstance(right, Field):
        same = relate("=", left.shape, right.shape, Scope({}, case.scope.run))
        return "" if asker.entails(case.facts, opened_goal(same), symbols) else f"{name} is not shown to have one shape"
    if len(left.shape) != len(right.shape):
        return f"{name} has {len(left.shape)} axes on the left and {len(right.shape)} on the right"
    for axis, (a, b) in enumerate(zip(left.shape, right.shape, strict=True)):
        if not asker.entails(facts, equal(a, b), symbols):
            return f"{name} has another size on axis {axis}"
    return ""


def _anywhere(tensor: Array | Field, run: Evaluation) -> tuple[tuple[Term, ...], Term]:
    """An index below the shape, as symbols: one for each axis, or one for all of any number of axes."""
    if isinstance(tensor, Field):
        index = Term("i!index")
        run.symbols[index.op] = (0, "Int")
        return (index,), rows.inside(index, tensor.shape, Scope({}, run))
    symbols = tuple(Term(f"i..{axis}") for axis in range(len(tensor.shape)))  # no list has entries of such a name
    run.symbols |= {symbol.op: (0, "Int") for symbol in symbols}
    return symbols, both(*(within(i, n) for i, n in zip(symbols, tensor.shape, strict=True)))
