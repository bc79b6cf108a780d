"""The rules of part 7 on the table: where the left side of a rule stands, an application is what its right side gives.

The table is no graph of one operator set: every definition can be applied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from sonnx.semantics.formulas.terms import FALSE, TRUE, Term
from sonnx.semantics.operators.application import AttributeData
from sonnx.semantics.operators.shapes.contents import Content
from sonnx.semantics.operators.symbolic.values import conjuncts
from sonnx.spec.elaborate.core import Core, CoreOperator, CoreRewrite
from sonnx.spec.library import specification

from ...smt.prover import Prover
from ...smt.smtlib import names
from ..matching.patterns import Pattern, by_root, commutation, meaning
from ..matching.replacing import Made, Reference, Replacement, replacement
from ..matching.searching import Match, Unfit, find
from ..matching.views import Node, Tensor, View
from ..record import Proof, recorded, rows
from .facts import Facts
from .normalizing import Firing, Normalizer, Rules, Strength, Values
from .table import ApplicationId, Result, ValueId, full_attributes

CLAIMS: Final = {"exact": Strength.EXACT, "allowed": Strength.ALLOWED, "reals": Strength.REALS}
"""The strengths of rules by what they claim; a rule that claims something else never fires."""
TIMEOUT: Final = 1.0
"""Seconds for a question about open sizes."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """Rules to rewrite by, in this order. proofs: what is shown of each; None where they are trusted as they stand."""

    rules: tuple[CoreRewrite, ...]
    proofs: Mapping[str, Proof] | None = None

    def strength(self, rule: CoreRewrite) -> Strength:
        """How strongly the sides of a rule are equal: as it claims, or as weakly as it is shown."""
        shown = rule.claim if self.proofs is None else self.proofs[rule.name].strength
        return max(CLAIMS[rule.claim], CLAIMS[shown])


def proved_rules() -> Trusted:
    """The rules of part 7, added texts included, that are proved on record. That a proof is one of the text as it is
    now is asked before the first use of the rule."""
    every, known = specification().rules, recorded()
    shown = {name for name, proof in known.items() if proof.strength in CLAIMS}
    rules = (rule for name in every if name in shown and (rule := every[name]).claim in CLAIMS)
    return Trusted(tuple(it for it in rules if commutation(it) is None or known[it.name].holds), known)


def near(
    facts: Facts, trusted: Trusted, pairs: Collection[tuple[ValueId, ValueId]]
) -> Mapping[tuple[ValueId, ValueId], tuple[str, str]]:
    """The rewrite by which one value of a pair would be the other one, and why it is none: it never holds, as is on
    record, or its right side needs a number there that is none of the type of an attribute."""
    if not pairs:
        return {}
    never = {row["rule"] for row in rows() if row["verdict"] == "refuted" and row["claim"] == "never"}
    proved = {rule.name for rule in trusted.rules}
    patterns = by_root([*(rule for name, rule in specification().rules.items() if name in never), *trusted.rules])
    view = TableView(Normalizer(facts.table, facts, Strength.EXACT), Prover(TIMEOUT))
    found: dict[tuple[ValueId, ValueId], tuple[str, str]] = {}
    for pair in pairs:
        for one, other in (pair, pair[::-1]):
            made = facts.table.producer(one)
            operator = None if made is None else view.operator(made)
            for pattern in patterns.get(operator, ()) if operator is not None and pair not in found else ():
                rule = pattern.rule
                reason = "" if made is None else _hindered(view, pattern, made, other, holds=rule.name in proved)
                if reason:
                    found.setdefault(pair, (rule.name, reason))
    return found


def _hindered(view: TableView, pattern: Pattern, root: ApplicationId, value: ValueId, *, holds: bool) -> str:
    """Why a value is none that a rule gives, whose left side stands at an application; nothing where it stands not or
    gives something else."""
    table, rule = view.normal.table, pattern.rule
    made = table.producer(value)
    head = "" if made is None else table.applications[made].name
    if all(it.name != head for statement in rule.right.statements for it in statement.nodes() if it.head == "apply"):
        return ""
    match = find(view, pattern, root)
    try:
        right = None if match is None else replacement(view, match, contents=False)
    except Unfit as reason:
        return str(reason)
    if holds or match is None or right is None:
        return ""
    built = _built(view.normal, root, match, right)
    return f"it does not hold: {rule.reason}" if built is not None and value in built else ""


def rules_of(trusted: Trusted) -> Rules:
    """The rules as the normal forms ask them."""
    return _Rewriting(trusted, by_root(trusted.rules), _commuting(trusted.rules)).fire


def _commuting(rules: Iterable[CoreRewrite]) -> Mapping[CoreOperator, str]:
    return {operator: rule.name for rule in rules if (operator := commutation(rule)) is not None}


@dataclass
class _Rewriting:
    """The rules by the definition of their root. commuting: the operators whose operands may change places, with the
    rule that says it."""

    trusted: Trusted
    patterns: Mapping[CoreOperator, tuple[Pattern, ...]]
    commuting: Mapping[CoreOperator, str]
    prover: Prover = field(default_factory=lambda: Prover(TIMEOUT))

    def fire(self, normal: Normalizer, application: ApplicationId) -> Firing | None:
        """The first rule that fires."""
        it = normal.table.applications[application]
        if it.operator is None or it.operator.rule:
            return None
        if it.operator in self.commuting and _out_of_order(normal, it.inputs):
            values = normal.apply(it.name, it.version, it.attributes, it.inputs[::-1], it.outputs)
            return Firing(self.commuting[it.operator], Strength.EXACT, application, values)
        for pattern in self.patterns.get(it.operator, ()):
            strength = self.trusted.strength(pattern.rule)
            if not _admitted(strength, normal.strength) or not may_shrink(pattern):
                continue
            view = TableView(normal, self.prover)
            match = find(view, pattern, application, self.commuting)
            if match is None or not self._covered(view, match):
                continue
            try:
                made = replacement(view, match, contents=False)
            except Unfit:
                continue
            normal.weak += strength is Strength.REALS
            rewritten = _built(normal, application, match, made) if _is_smaller(normal, match, made) else None
            normal.weak -= strength is Strength.REALS
            if rewritten is not None:
                return Firing(pattern.rule.name, strength, application, rewritten, _facts(match), match.assumed)
        return None

    def _covered(self, view: View, match: Match) -> bool:
        proved = self.trusted.proofs
        proof = None if proved is None else proved[match.pattern.rule.name]
        return proof is None or (proof.covers(view, match) and proof.holds)


def _is_smaller(normal: Normalizer, match: Match, right: Replacement) -> bool:
    """Fewer applications than before, but for what stored values alone decide; or as many that read less; or as many of
    the same operators, of later definitions or with more attributes stated. That this alone ends is not shown:
    `Normalizer` asks for no rule any more within so many that have fired."""
    table = normal.table
    made: list[bool] = []
    for node in right.nodes:
        made.append(all(_is_stored(normal, it, made) for it in node.inputs))
    new = [node for node, stored in zip(right.nodes, made, strict=True) if not stored]
    old = [table.applications[it] for it in match.nodes if isinstance(it, int)]
    if len(new) != len(old):
        return len(new) < len(old)
    if sorted(it.operator for it in new) != sorted(it.name for it in old):
        return sum(_given(it.inputs) for it in new) < sum(_given(it.inputs) for it in old)
    later = sum(meaning(it.operator, it.version).first for it in new)
    earlier = sum(it.operator.first for it in old if it.operator is not None)
    if later != earlier:
        return later > earlier
    said = sum(len(full_attributes(it.operator, it.version, it.attributes)) for it in new)
    before = sum(len(it.attributes) for it in old)
    return said > before or (said == before and len(new) == 1 and _is_in_order(normal, new[0].inputs, old[0].inputs))


def _is_in_order(normal: Normalizer, new: Sequence[Reference], old: Sequence[ValueId | None]) -> bool:
    """True if the operands are the same ones and stand more by number than before, as where two change places."""
    values = [it for it in new if isinstance(it, int)]
    if sorted(values) != sorted(it for it in old if it is not None):
        return False
    one, other = (
        [(normal.table.array(it) is not None, it) for it in them if isinstance(it, int)] for them in (new, old)
    )
    return one < other


def _given(inputs: Sequence[object]) -> int:
    return sum(it is not None for it in inputs)


def _is_stored(normal: Normalizer, reference: Reference, made: Sequence[bool]) -> bool:
    if isinstance(reference, Made):
        return made[reference.node]
    return reference is None or (isinstance(reference, int) and normal.table.array(reference) is not None)


def _admitted(strength: Strength, most: Strength) -> bool:
    """A rule that keeps to what is allowed leads in one direction, so it is no step to equality over the reals."""
    return strength is Strength.EXACT or strength is most


@cache
def may_shrink(pattern: Pattern) -> bool:
    """False for a rule whose right side is larger than its left side wherever only ports that must be stored are, and
    for one that only changes operators and reads no less."""
    rule = pattern.rule
    lets = {own: it.body for it in rule.right.statements if it.kind == "let" for own in it.binds}
    counted: dict[Core, bool] = {}

    def runs(core: Core) -> bool:
        """True for what a run has to compute, and for an input that it is given."""
        if core.head == "apply":
            if core not in counted:
                inputs = [part for label, part in zip(core.labels, core.parts, strict=True) if not label]
                counted[core] = bool([part for part in inputs if runs(part)])  # all are counted
            return counted[core]
        if core.head == "variable" and core.variable is not None:
            body = lets.get(core.variable)
            return core.variable.name not in rule.stored if body is None else runs(body)
        return bool([part for part in core.parts if runs(part)])

    for it in rule.right.statements:
        if it.kind == "result":
            runs(it.body)
    new = sorted(core.name for core, does in counted.items() if does)
    old = sorted(it.operator.name for it in pattern.applications)
    read = sum(len(core.parts) - sum(map(bool, core.labels)) for core, does in counted.items() if does)
    before = sum(len(it.inputs) for it in pattern.applications)
    return len(new) < len(old) or new == old or (len(new) == len(old) and read < before)


def _out_of_order(normal: Normalizer, inputs: Sequence[ValueId | None]) -> bool:
    """Operands that may change places stand by number, a stored one last: as rules of part 7 put it too."""
    if len(inputs) != 2 or inputs[0] is None or inputs[1] is None:
        return False
    first, second = ((normal.table.array(it) is not None, it) for it in inputs)
    return first > second


def _facts(match: Match) -> tuple[str, ...]:
    """The conditions that were found to hold, in the words of the rule."""
    types = tuple(f"{name} is {element}" for name, element in match.types.items())
    said = tuple(it.doc for it in match.pattern.rule.left.statements if it.kind == "require" and it.id[:4] == "when")
    return (*types, *said)


def _built(normal: Normalizer, root: ApplicationId, match: Match, it: Replacement) -> Values | None:
    """The outputs of the root, those that the rule gives in place of its own; None where nothing changes."""
    made: list[Values] = []

    def value(reference: Reference) -> ValueId | None:
        if isinstance(reference, Made):
            return made[reference.node][reference.output]
        return reference if isinstance(reference, int) else None

    for node in it.nodes:
        inputs = [value(reference) for reference in node.inputs]
        made.append(normal.apply(node.operator, node.version, node.attributes, inputs, (True,) * node.outputs))
    values = list(normal.table.results(root))
    before = tuple(values)
    for (number, output), reference in zip(match.pattern.results, it.results, strict=True):
        if match.nodes[number] == root and output < len(values) and values[output] is not None:
            values[output] = value(reference)
    return None if tuple(values) == before else tuple(values)


@dataclass(frozen=True, slots=True)
class TableView:
    """The table as the search for patterns sees it: values are the tensors, applications the nodes."""

    normal: Normalizer
    prover: Prover

    def producer(self, tensor: Tensor) -> tuple[Node, int] | None:
        """The application that gives a value."""
        node = self.normal.table.values[_number(tensor)]
        return (node.application, node.position) if isinstance(node, Result) else None

    def operator(self, node: Node) -> CoreOperator | None:
        """The definition of an application that holds no body."""
        it = self.normal.table.applications[_number(node)]
        return None if it.operator is None or it.operator.rule else it.operator

    def inputs(self, node: Node) -> Sequence[Tensor | None]:
        """Its arguments."""
        return self.normal.table.applications[_number(node)].inputs

    def outputs(self, node: Node) -> Sequence[Tensor | None]:
        """Its results, those too that nobody asks for."""
        number = _number(node)
        return tuple(
            self.normal.table.result(number, k) for k in range(len(self.normal.table.applications[number].outputs))
        )

    def attributes(self, node: Node) -> Mapping[str, AttributeData | None]:
        """Its attributes, defaults included."""
        return self.normal.table.applications[_number(node)].attributes

    def content(self, tensor: Tensor) -> Content:
        """What is known of a value."""
        return self.normal.facts.content(_number(tensor))

    def stored(self, tensor: Tensor) -> bool:
        """True for a stored tensor."""
        return self.normal.table.array(_number(tensor)) is not None

    def runs(self, node: Node) -> bool:
        """True unless the text requires what is not known to hold."""
        return not self.normal.facts.may_fail(_number(node))

    def since(self, node: Node) -> int:
        """The version of an application."""
        return self.normal.table.applications[_number(node)].version

    def version(self, operator: CoreOperator) -> int | None:
        """A version of a definition: all that it covers mean the same."""
        return operator.last

    @property
    def facts(self) -> tuple[Term, ...]:
        """No open size is negative."""
        return tuple(self.normal.facts.facts)

    @property
    def symbols(self) -> Mapping[str, tuple[int, str]]:
        """The open sizes."""
        return self.normal.facts.symbols

    def certain(self, goal: Term) -> bool:
        """True if a condition follows from that, as the solver says without cutting a list short."""
        if goal == TRUE or all(part in self.normal.facts.facts for part in conjuncts(goal)):
            return True
        if goal == FALSE or not names(goal) <= self.normal.facts.symbols.keys():
            return False  # it is about elements, of which nothing is known
        cut = len(self.prover.cut)
        answer = self.prover.ask(self.facts, goal, self.symbols)
        return answer.status == "unsat" and len(self.prover.cut) == cut


def _number(it: Tensor | Node) -> int:
    return it if isinstance(it, int) else -1
