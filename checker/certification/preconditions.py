"""The requirements of the operators of a model, decided: for all sizes, or with the sizes or data that they need.

A requirement that numbers alone decide needs no solver. One over symbolic sizes is asked of it: can the facts hold and
the requirement fail? The facts are what holds where the node runs: the limits of the sizes, the requirements of the
nodes in front, and what the texts say of the values. So the requirements are decided one behind the other, and where
the conditions on sizes and the obligations on data that are left over all hold, every requirement does.

The parts of a requirement are told apart by what decides them:
- The free sizes alone: CONDITIONAL, the condition is one of the model's (`Decisions.conditions`).
- Data: OBLIGATION. Where the part is about sizes alone, of which data decide some, it is an obligation on the node that
  makes the size: of the symbols in the part that data decide, each belongs to the first node that gives a tensor with
  a size that mentions it, and the part to the last of these nodes. Where the node itself reads the data (or no size
  mentions them), it is an obligation on that node. What has no formula, since data decide the number of axes of an
  input, is an obligation on the node that makes that tensor, one for all nodes behind it.
- Nothing: VIOLATED where the facts and the requirement cannot hold together, whatever the sizes and the data.
- UNKNOWN is what the solver does not answer, or the texts do not say.

Last, the conditions and obligations are taken together: where they exclude each other, the one that closes the set is
violated; and sizes that satisfy the conditions are found, among those that are examined, or the last one is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sonnx.semantics.formulas.terms import FALSE, TRUE, Term
from sonnx.semantics.model.graph import Model, NodeId
from sonnx.semantics.operators.shapes.contents import Facts, Symbols
from sonnx.semantics.operators.shapes.walk import Examination, OpenRequirement, examine_model
from sonnx.semantics.operators.symbolic.elements.known import MOST
from sonnx.semantics.operators.symbolic.numbers import at_most, both, definitions, either, opposite
from sonnx.semantics.operators.symbolic.values import conjuncts
from sonnx.spec.terminal import Progress

from ..smt.prover import Prover, quantified
from ..smt.smtlib import names, relevant
from .conditions import determined, expanded, simplified, solved
from .report import RuleVerdict

TIMEOUT = 2.0
"""Seconds for one question."""
FAILS = (RuleVerdict.VIOLATED, RuleVerdict.CONDITIONAL)
"""The kinds that a run which surely begins can add to those of any run."""
SMALLEST = (4, 64, 4096)
"""A witness is looked for among sizes up to these first."""


@dataclass(frozen=True, slots=True)
class DecidedPart:
    """One part of a requirement at one node. node: where it is to be seen to, the one that applies the operator, or of
    an obligation the one that makes the size. sizes: symbolic sizes at which it fails. always: it fails at all of them.

    condition: what must hold, a formula over sizes and data. reason: why it is unknown, or has no formula.
    """

    instance: OpenRequirement
    verdict: RuleVerdict
    node: NodeId
    condition: Term | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    always: bool = False
    reason: str = ""

    @property
    def elsewhere(self) -> bool:
        """Another node than the one that applies the operator has to see to it."""
        return self.node != self.instance.node


@dataclass(frozen=True, slots=True)
class Decisions:
    """The requirements of a model. open: in order, those that did not hold by numbers alone. conditions: what the
    symbolic sizes must satisfy so that every requirement that is decided by them holds; FALSE among them where there
    are no such sizes. narrowing: the same for the restrictions, which only narrow the use of operators. example: sizes
    that satisfy the conditions, by what they are called. labels: what symbols are called.
    """

    examination: Examination
    open: tuple[DecidedPart, ...]
    conditions: Facts
    narrowing: Facts
    example: Mapping[str, int]
    labels: Mapping[str, str]


def decide_preconditions(
    model: Model,
    limits: Mapping[str, tuple[int, int | None]] | None = None,
    timeout: float = TIMEOUT,
    progress: Progress | None = None,
) -> Decisions:
    """The requirements of a model, decided. limits: see `examine_model`."""
    prover = Prover(timeout)
    if progress is not None:
        progress("shapes and requirements", 0, 0)
    examination = examine_model(model, prover.possible, limits)
    open_: list[DecidedPart] = []
    for done, instance in enumerate(examination.instances):
        if progress is not None:
            progress("requirements", done, len(examination.instances))
        open_ += [it for it in _decide(instance, examination, prover) if not instance.only_fails or it.verdict in FAILS]
    open_ = _once(open_)
    together = _without_contradiction(open_, examination, prover)
    example: Mapping[str, int] = {}
    if not any(it.always and it.instance.required for it in together):
        together, example = _with_example(together, examination, prover)
    labels = {
        **examination.sizes,
        **examination.variables,
        **{f"t{t}": tensor.name for t, tensor in enumerate(model.tensors)},
    }
    required = [it for it in together if it.instance.required]
    narrowing = [it for it in together if not it.instance.required]
    conditions, restricted = (_conditions(group, examination, prover) for group in (required, narrowing))
    return Decisions(examination, tuple(together), conditions, restricted, example, labels)


def _once(decided: Sequence[DecidedPart]) -> list[DecidedPart]:
    """Without those that another run of a body has given already."""
    first: dict[Hashable, DecidedPart] = {}
    for it in decided:
        instance = it.instance
        what = None if it.always else it.condition
        first.setdefault((instance.node, instance.position, instance.tensor, it.verdict, it.node, what), it)
    return list(first.values())


def _decide(instance: OpenRequirement, examination: Examination, prover: Prover) -> list[DecidedPart]:
    """A requirement without a formula, one that holds, one that never does, or the parts by what decides them."""
    if instance.goal is None:
        verdict = RuleVerdict.UNKNOWN if instance.made is None else RuleVerdict.OBLIGATION
        node = instance.node if instance.made is None else instance.made
        return [DecidedPart(instance, verdict, node, reason=instance.reason)]
    denied = tuple(map(opposite, instance.path))
    goal = either(*denied, instance.goal)
    facts, symbols = instance.facts, {**examination.symbols, **instance.symbols}
    if goal == TRUE or prover.ask(facts, goal, symbols).status == "unsat":
        return [DecidedPart(instance, RuleVerdict.HOLDS, instance.node, goal)]
    if goal == FALSE or prover.ask((*facts, goal), FALSE, symbols).status == "unsat":
        shown = expanded(goal, definitions(facts))
        return [DecidedPart(instance, RuleVerdict.VIOLATED, instance.node, shown, always=True, reason=instance.reason)]
    parts = [
        _part(instance, place, either(*denied, both(*part)), facts, examination, symbols, prover)
        for place, part in _by_place(instance, instance.goal, examination).items()
    ]
    if left := [part for part in parts if part.verdict is not RuleVerdict.HOLDS]:
        return left
    shown = expanded(goal, definitions(facts))
    return [DecidedPart(instance, RuleVerdict.UNKNOWN, instance.node, shown, reason="the solver gives up")]


def _by_place(
    instance: OpenRequirement, goal: Term, examination: Examination
) -> Mapping[NodeId | None, Sequence[Term]]:
    """The parts of a goal by the node that has to see to them, None where the free sizes alone decide."""
    known = determined(tuple(examination.sizes), definitions(instance.facts))
    by_sizes = all(names(part) <= known for part in instance.path)
    groups: dict[NodeId | None, list[Term]] = {}
    for part in conjuncts(goal):
        open_symbols = names(part) - known
        place = None if by_sizes and not open_symbols else _maker(instance.node, open_symbols, examination)
        groups.setdefault(place, []).append(part)
    return groups


def _maker(n: NodeId, symbols: frozenset[str], examination: Examination) -> NodeId:
    """The node that has to see to a part about these symbols, which data decide."""
    own = {f"t{t}" for t in examination.model.nodes[n].inputs if t is not None}
    makers = [examination.makers.get(name) for name in symbols]
    if not makers or None in makers or any(name.rpartition(".")[0] in own for name in symbols):
        return n
    order = examination.order
    return max((maker for maker in makers if maker is not None), key=lambda maker: order.get(maker, -1))


def _part(
    instance: OpenRequirement,
    place: NodeId | None,
    goal: Term,
    facts: Facts,
    examination: Examination,
    symbols: Symbols,
    prover: Prover,
) -> DecidedPart:
    """One part of a requirement. place: None where the sizes alone decide it, else who has to see to it."""
    n = instance.node
    answer = prover.ask(facts, goal, symbols)
    if answer.status == "unsat":
        return DecidedPart(instance, RuleVerdict.HOLDS, n, goal)
    shown = expanded(goal, definitions(facts))
    if place is None:
        sizes = _smallest(goal, facts, examination, symbols, prover)
        if answer.status == "unknown" and not sizes:
            return DecidedPart(instance, RuleVerdict.UNKNOWN, n, shown, reason=f"the solver gives up ({answer.reason})")
        return DecidedPart(instance, RuleVerdict.CONDITIONAL, n, shown, sizes)
    if answer.status == "unknown" and prover.ask((*facts, goal), FALSE, symbols).status != "sat":
        return DecidedPart(instance, RuleVerdict.UNKNOWN, n, shown, reason=f"the solver gives up ({answer.reason})")
    return DecidedPart(instance, RuleVerdict.OBLIGATION, place, shown)


def _smallest(
    goal: Term, facts: Facts, examination: Examination, symbols: Symbols, prover: Prover
) -> Mapping[str, int]:
    """Sizes at which the goal fails, small ones if there are any."""
    concerned = names(goal).union(*map(names, relevant(facts, goal))) & examination.sizes.keys()
    for most in (*SMALLEST, None):
        small = () if most is None else tuple(at_most(Term(name), most) for name in sorted(concerned))
        sizes = _model((*facts, *small), goal, concerned, examination, symbols, prover)
        if sizes is not None:
            return sizes
    return {}


def _model(
    facts: Facts, goal: Term, wanted: Collection[str], examination: Examination, symbols: Symbols, prover: Prover
) -> Mapping[str, int] | None:
    """Sizes at which the facts hold and the goal fails; None where none are found."""
    answer = prover.ask(facts, goal, symbols)
    values = dict(value.split(" ", 1) for value in answer.values)
    if answer.status != "sat" or not values:
        return None
    return {examination.sizes[name]: int(values[name]) for name in sorted(wanted) if name in values}


# ---- For which sizes the model is well formed -------------------------------------------------


def _conditional(decided: Sequence[DecidedPart], *verdicts: RuleVerdict) -> dict[int, Term]:
    """By position the conditions on required parts of these verdicts, as far as they are free of quantifiers."""
    return {
        k: it.condition
        for k, it in enumerate(decided)
        if it.verdict in verdicts and it.instance.required and it.condition is not None and not quantified(it.condition)
    }


def _symbols(decided: Sequence[DecidedPart], examination: Examination) -> Symbols:
    """All symbols of the conditions and obligations."""
    own = [decided[k].instance.symbols for k in _conditional(decided, RuleVerdict.CONDITIONAL, RuleVerdict.OBLIGATION)]
    return {**examination.symbols, **{name: s for symbols in own for name, s in symbols.items()}}


def _without_contradiction(
    decided: Sequence[DecidedPart], examination: Examination, prover: Prover
) -> Sequence[DecidedPart]:
    """The same, where conditions and obligations exclude each other the one that closes the set as violated."""
    conditions = _conditional(decided, RuleVerdict.CONDITIONAL, RuleVerdict.OBLIGATION)
    if len(conditions) < 2 or any(it.always and it.instance.required for it in decided):
        return decided
    symbols = _symbols(decided, examination)
    ground = [fact for fact in examination.facts if fact.op in ("=", "<=") and not quantified(fact)]

    def excluded(count: int) -> bool:
        asked = (*examination.limits, *ground, *list(conditions.values())[:count])
        return prover.ask(asked, FALSE, symbols).status == "unsat"

    if not excluded(len(conditions)):
        return decided
    closing = next(k for count, k in enumerate(conditions, 1) if excluded(count))
    said = "with what the nodes in front need it holds for no sizes and data"
    return _replaced(
        decided, closing, replace(decided[closing], verdict=RuleVerdict.VIOLATED, always=True, reason=said)
    )


def _with_example(
    decided: Sequence[DecidedPart], examination: Examination, prover: Prover
) -> tuple[Sequence[DecidedPart], Mapping[str, int]]:
    """The same, and sizes that satisfy the conditions; where none are found the last condition as unknown."""
    conditions = _conditional(decided, RuleVerdict.CONDITIONAL)
    for most in (*SMALLEST, MOST - 1) if conditions else ():  # larger ones are not examined
        small = (at_most(Term(name), most) for name in examination.sizes)
        facts = (*examination.limits, *small, *conditions.values())
        sizes = _model(facts, FALSE, examination.sizes, examination, _symbols(decided, examination), prover)
        if sizes is not None:
            return decided, sizes
    if not conditions:
        return decided, {}
    last = max(conditions)
    said = "no sizes below 2^48 were found for which all conditions hold"
    return _replaced(decided, last, replace(decided[last], verdict=RuleVerdict.UNKNOWN, reason=said)), {}


def _replaced(decided: Sequence[DecidedPart], position: int, by: DecidedPart) -> Sequence[DecidedPart]:
    return [*decided[:position], by, *decided[position + 1 :]]


def _conditions(open_: Sequence[DecidedPart], examination: Examination, prover: Prover) -> Facts:
    """The conditions on sizes for all of these to hold, in plain form where that is about one size each."""
    if any(it.always for it in open_):
        return (FALSE,)
    wanted = [
        part
        for it in open_
        if it.verdict is RuleVerdict.CONDITIONAL and it.condition is not None
        for part in conjuncts(it.condition)
    ]

    def entails(facts: Sequence[Term], goal: Term) -> bool:
        return prover.ask((*examination.limits, *facts), goal, examination.symbols).status == "unsat"

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
