"""Definitions with one requirement or one guard left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sonnx.checker.definedness.proving import EFFORT, REFUTED, TIMEOUT, Finding, bounded, cases, judge_every, prove
from sonnx.checker.smt.prover import Prover
from sonnx.semantics.operators.symbolic.definedness import RANKS, Instance, explore, instances
from sonnx.spec.elaborate.composition import applied_names
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.elaborate.declarations import NOTHING, Elaboration, elaborate
from sonnx.spec.language.printer import print_expression
from sonnx.spec.language.syntax import Arm, Expr, File, Keyword, Operator, Range, Statement
from sonnx.spec.library import specification


@dataclass(frozen=True)
class Mutation:
    """A definition without something that it says. what: the sentence of the requirement, or the guard in its text."""

    kind: str
    what: str
    operator: Operator

    @property
    def name(self) -> str:
        return f"{self.operator.name}-{self.operator.first} {self.kind} {self.what}"


def mutations(operator: Operator) -> Iterator[Mutation]:
    """Each requirement left out, each condition taken for true, each guard of a fold or list left out."""
    for position, statement in enumerate(operator.statements):
        before, behind = operator.statements[:position], operator.statements[position + 1 :]
        if statement.kind == "require":
            yield Mutation("require", statement.doc, replace(operator, statements=(*before, *behind)))
            continue
        if statement.kind == "restrict":
            continue
        for guard, mutated in _statements(statement):
            yield Mutation("guard", print_expression(guard), replace(operator, statements=(*before, mutated, *behind)))


def _statements(statement: Statement) -> Iterator[tuple[Expr, Statement]]:
    for guard, expr in _mutated(statement.expr):
        yield guard, replace(statement, expr=expr)
    for position, inner in enumerate(statement.body):
        for guard, mutated in _statements(inner):
            yield guard, replace(statement, body=(*statement.body[:position], mutated, *statement.body[position + 1 :]))


def _mutated(expr: Expr) -> Iterator[tuple[Expr, Expr]]:
    """The expression with one guard left out, wherever there is one, with the guard."""
    args = expr.args
    if expr.head == "ite" and isinstance(args[0], Expr) and isinstance(args[1], Expr):
        yield args[0], args[1]
    guard = {"fold": -3, "comprehension": 3, "collect": 2}.get(expr.head)
    if guard is not None and isinstance(args[guard], Expr):
        at = guard % len(args)
        yield args[at], replace(expr, args=(*args[:at], None, *args[at + 1 :]))  # type: ignore[misc]
    for position, arg in enumerate(args):
        for found, changed in _inside(arg):
            yield found, replace(expr, args=(*args[:position], changed, *args[position + 1 :]))  # type: ignore[arg-type]


def _inside(arg: object) -> Iterator[tuple[Expr, object]]:
    match arg:
        case Expr():
            yield from _mutated(arg)
        case Arm(body=body):
            for guard, changed in _mutated(body):
                yield guard, replace(arg, body=changed)
        case Range(bound=bound):
            for guard, changed in _mutated(bound):
                yield guard, replace(arg, bound=changed)
        case Keyword(value=value):
            for guard, changed in _mutated(value):
                yield guard, replace(arg, value=changed)


def chosen(operator: CoreOperator, most: int = 3) -> list[Instance]:
    """Instances with ranks of at most 3, or what is least for the operator, not the smallest first."""
    fixed = max((len(port.shape or ()) for port in operator.inputs), default=0)
    limit = max(most, fixed)
    found = [i for i in instances(operator) if all(rank <= limit for ranks in i.ranks.values() for rank in ranks)]
    found.sort(key=lambda i: (-max((r for ranks in i.ranks.values() for r in ranks), default=0), i.label))
    return found


@dataclass(frozen=True)
class Whole:
    """What the prover shows of a definition as it is written, which tells where a mutation is looked for.

    every: it is proved for every rank at once. left: the kinds of obligations that it leaves to primitives, which show
    no mutation. most: the least number of axes, from 3 on, at which it can be used.
    """

    every: bool
    left: frozenset[str]
    most: int


def provers() -> tuple[Prover, Prover]:
    """One for every rank at once, which gives up soon, and one for single ranks."""
    return Prover(TIMEOUT, effort=EFFORT // 20, listed=2), Prover(TIMEOUT, effort=EFFORT // 2, listed=2)


def whole(operator: Operator, at_once: Prover, prover: Prover) -> Whole:
    """The definition as it is written, without a mistake of its own, which would be taken for that of a mutation."""
    made = elaborated(operator)
    assert not made.errors
    core = made.cores[0]
    usable = (most for most in (3, *RANKS[4:]) if any(_ends(instance, prover) for instance in chosen(core, most)))
    judgement = judge_every(core, at_once)
    every = not bounded(judgement)
    return Whole(every, frozenset(map(_kind, judgement.findings)) if every else frozenset(), next(usable))


def _kind(finding: Finding) -> str:
    return f"{finding.kind} {finding.about}"


def _ends(instance: Instance, prover: Prover) -> bool:
    """Some inputs of these ranks meet all requirements."""
    end = len(instance.operator.statements)
    batches = explore(instance, lambda path, split: cases(path, split, prover))
    ends = (b.path for b in batches if not b.dead and b.path.position == end)
    return any(prover.possible(path.facts, path.declared()) for path in ends)


def detected(mutation: Mutation, at_once: Prover, prover: Prover, known: Whole) -> str:
    """How a mutation shows: the elaborator refuses it, an obligation is refuted or not proved; "" where it does not.

    A few ranks are tried, which is fast where it shows; then, where the definition is proved for every rank, that, for
    which it is fast where it does not; then the other ranks.
    """
    made = elaborated(mutation.operator)
    if any(error.kind not in UNUSED for error in made.errors):
        return "refused"
    core = made.cores[0]
    every = chosen(core, known.most)
    few = every[:: 1 + len(every) // 6]
    found = next(_shown(few, prover, known), "")
    open_ = ""
    if not found and known.every:
        judgement = judge_every(core, at_once)
        findings = [finding for finding in judgement.findings if _kind(finding) not in known.left]
        if not findings and not judgement.reason:
            return "" if judgement.paths else "no path gets to the end"
        refuted = [finding for finding in findings if finding.status == REFUTED]
        found = f"{REFUTED}: {refuted[0].name}" if refuted else ""
        open_ = f"not proved for every rank: {findings[0].name}" if findings else ""
    return found or next(_shown(every, prover, known), open_)


def _shown(tried: Sequence[Instance], prover: Prover, known: Whole) -> Iterator[str]:
    """The obligations that are not proved."""
    for instance in tried:
        for batch in explore(instance, lambda path, split: cases(path, split, prover)):
            for finding in prove(batch, prover):
                if finding is not None and _kind(finding) not in known.left:
                    yield f"{finding.status}: {finding.name}"


def elaborated(operator: Operator) -> Elaboration:
    """The core of a definition, and its mistakes, beside the text without the operator."""
    known = specification()
    others = {name: known.operators[name] for name in {*applied_names(operator.statements)} - {operator.name}}
    base = replace(NOTHING, sorts=known.sorts, functions=known.functions, operators=others)
    return elaborate([File("mutated", (operator,))], base)


UNUSED = frozenset({"name/unused", "name/unused-let", "schema/ignored-attribute"})
"""Mistakes of a definition that does not use a name any more."""
