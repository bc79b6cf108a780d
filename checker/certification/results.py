"""From what was decided to a report: the places of each rule, the evidence for it, and the verdicts on rule sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sonnx.semantics.facts.inference.model import Claims
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.model.graph import Model
from sonnx.spec.language.syntax import Constraint, ProfileRule, clause
from sonnx.spec.library import Specification

from ..smt import solver
from . import requirements
from . import rule_sets as sets
from .deciding import Judged
from .findings import data_condition, finding, obligation
from .formats import notebook
from .question import Question
from .report import Finding, Json, ModelInfo, Report, RuleResult, RuleSetResult, RuleVerdict, Stated, Verdict
from .scheduling import Decided
from .witness import cycles, witness_of

NOT_EXAMINED = (
    "values of weights, other than small constants that shapes and modes depend on",
    "requirements of operators beyond the rules of the rule sets domain and sonnx-constraints",
    "sizes that reach 2^48, and different open sizes whose product does",
    "numerical accuracy and the behaviour of any runtime",
    "training information of the model (training_info)",
)
OF_USERS = (
    "that indices and divisors of added operators are defined wherever their requirements hold (sonnx definedness)"
)
"""What is not examined where a user added texts: a command of its own proves that a text is defined."""


DRAWN = 10
"""The most violations of a rule that are drawn."""
CYCLES = 100
"""The most violations of a rule about order that are looked through for cycles."""


# ---- Evidence ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConstraintFindings:
    """The verdict on a constraint, and where it fails or is open, all places. awaiting: those that data decide."""

    verdict: RuleVerdict
    findings: tuple[Finding, ...]
    total: int
    awaiting: tuple[Finding, ...] = ()
    obligations: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for a verdict, made when it is asked for and once for all rules that share it.

    places: where a constraint, by name, fails or is open. witness: by its kind, what shows that a rule holds.
    """

    places: Callable[[str], ConstraintFindings]
    witness: Callable[[str], Mapping[str, Json]]


def evidence(question: Question, model: Model, facts: Structure, decided: Decided, *, witnesses: bool) -> Evidence:
    """The evidence on a model. witnesses: whether rules that hold get theirs, which only a certificate carries."""
    return Evidence(
        cache(lambda name: _places(question.specification, name, decided.judged[name], model, facts)),
        cache(lambda kind: witness_of(kind, model, facts) if witnesses else {}),
    )


def _places(
    specification: Specification, name: str, judged: Judged, model: Model, facts: Structure
) -> ConstraintFindings:
    """The places of a constraint: the same for each rule that demands it. Where it is open, and by its text nothing but
    the data of a run decides it, it is left to them."""
    constraint, judgement, functions = specification.constraints[name], judged.judgement, specification.functions
    words = clause(constraint.clauses, "obligation")
    conditions = [data_condition(words, it, functions, facts) if words else "" for it in judgement.unknowns]
    pairs = list(zip(judgement.unknowns, conditions, strict=True))
    left = [(it, condition) for it, condition in pairs if condition]
    awaiting = tuple(obligation(it, condition, facts) for it, condition in left)
    if judged.verdict is RuleVerdict.VIOLATED:
        failing = judgement.failures
        findings = tuple(
            finding(constraint, it, functions, facts, violated=True, drawn=k < DRAWN) for k, it in enumerate(failing)
        )
        if _kind(constraint) == "order":
            findings = _with_cycles(findings[:CYCLES], failing[:CYCLES], model, facts) + findings[CYCLES:]
        return ConstraintFindings(judged.verdict, findings, judgement.failed, awaiting, len(left))
    if judged.verdict is RuleVerdict.UNKNOWN and left and len(left) == judgement.undecided:
        return ConstraintFindings(RuleVerdict.OBLIGATION, awaiting, len(left), awaiting, len(left))
    open_ = [it for it, condition in pairs if not condition] if judged.verdict is RuleVerdict.UNKNOWN else []
    findings = tuple(finding(constraint, it, functions, facts, violated=False) for it in open_)
    total = judgement.undecided - len(left) if findings else 0
    return ConstraintFindings(judged.verdict, findings, total, awaiting, len(left))


def _with_cycles(
    findings: tuple[Finding, ...], instances: Sequence[direct.Instance], model: Model, facts: Structure
) -> tuple[Finding, ...]:
    """The findings, the first on each cycle with the paths of its nodes."""
    rings = cycles([int(instance.bindings[0][2]) for instance in instances], model, facts)
    return tuple(
        replace(item, witness={**item.witness, "cycle": [model.nodes[n].path for n in ring]}) if ring else item
        for item, ring in zip(findings, rings, strict=True)
    )


def _kind(constraint: Constraint) -> str:
    """The kind of evidence that the text asks for."""
    return clause(constraint.clauses, "evidence") or "places"


# ---- Report -----------------------------------------------------------------------------------


def report(
    question: Question,
    given: object,
    model: Model,
    decided: Decided,
    shown: Evidence,
    claims: Callable[[], Claims],
    waivers: Stated | None = None,
) -> Report:
    """The report: every rule with its verdict, and the verdicts on the rule sets. given: the model as it came in.
    waivers: those that are stated for it."""
    decisions = decided.requirements
    results: list[RuleResult] = []
    for rule_set in question.rule_sets:
        results += [
            _result(question, rule_set, rule, shown, decided.judged[rule.constraint].answer) for rule in rule_set.rules
        ]
        if decisions is not None and sets.collects(rule_set.profile):
            results += requirements.results(rule_set, decisions, claims)
    if waivers is not None:
        from .waivers import accepted

        results = [accepted(rule, waivers.valid) for rule in results]
    domain = None if decisions is None else requirements.domain(decisions, question.sizes)
    conditions = {} if decisions is None or domain is None else requirements.conditions(decisions, domain)
    summaries = {it.profile.name: _summary(question, it, results, conditions) for it in question.rule_sets}
    whole = tuple(_with_included(summary, summaries) for summary in summaries.values())
    return Report(
        model=_info(model, given),
        verdict=worst(summary.verdict for summary in whole if summary.asked),
        rule_sets=whole,
        rules=tuple(results),
        not_examined=(*NOT_EXAMINED, OF_USERS) if question.specification.added else NOT_EXAMINED,
        tools=tuple((name, version(name)) for name in ("sonnx", "onnx", "z3-solver")),
        domain=domain,
        notebook=notebook,
        added=question.specification.added,
        waivers=() if waivers is None else waivers.valid,
        ended=() if waivers is None else waivers.ended,
    )


def _result(
    question: Question, rule_set: sets.RuleSet, rule: ProfileRule, evidence: Evidence, answer: solver.Answer
) -> RuleResult:
    constraint = question.specification.constraints[rule.constraint]
    places = evidence.places(rule.constraint)
    verdict = places.verdict
    besides = places.awaiting if verdict is not RuleVerdict.OBLIGATION else ()
    return RuleResult(
        rule_set=rule_set.profile.name,
        id=rule.id,
        title=rule.title,
        statement=constraint.doc,
        quote=clause(rule.clauses, "quote") or "",
        source=clause(rule.clauses, "source") or clause(rule_set.profile.clauses, "source") or "",
        status=sets.status(rule),
        note=clause(rule.clauses, "note") or "",
        constraint=constraint.name,
        counted=sets.counts(rule, strict=question.strict),
        verdict=verdict,
        findings=places.findings,
        total_findings=places.total,
        reason=_reason(verdict, answer, places.findings),
        evidence=evidence.witness(_kind(constraint)) if verdict is RuleVerdict.HOLDS else {},
        solver=answer.answers,
        core=answer.core,
        besides={RuleVerdict.OBLIGATION: besides} if besides else {},
        obligations=places.obligations,
    )


def _reason(verdict: RuleVerdict, answer: solver.Answer, findings: Sequence[Finding]) -> str:
    if verdict is not RuleVerdict.UNKNOWN:
        return ""
    return answer.reason or next((item.message for item in findings), "the model does not determine the rule's facts")


def _summary(
    question: Question,
    rule_set: sets.RuleSet,
    results: Iterable[RuleResult],
    conditions: Mapping[str, tuple[str, ...]],
) -> RuleSetResult:
    """The rule set by its own rules. conditions: on sizes, by the kind of statements that a rule set takes in."""
    own = [r for r in results if r.rule_set == rule_set.profile.name and r.counted]
    return RuleSetResult(
        name=rule_set.profile.name,
        title=rule_set.profile.doc,
        digest=sets.digest(question.specification, rule_set.profile),
        verdict=overall((r.verdict for r in own if not r.accepted), strict=question.strict),
        asked=rule_set in question.asked,
        strict=question.strict,
        variant=rule_set.variant,
        included_by=rule_set.included_by,
        includes=sets.includes(rule_set.profile),
        conditions=conditions.get(sets.collects(rule_set.profile), ()),
        obligations=sum(r.obligations for r in own),
        collects=sets.collects(rule_set.profile),
    )


def _with_included(own: RuleSetResult, judged: Mapping[str, RuleSetResult]) -> RuleSetResult:
    """The rule set together with those that it includes, directly or not."""
    names = list(own.includes)
    for name in names:
        names += [other for other in judged[name].includes if other not in names]
    parts = [own, *(judged[name] for name in names)]
    return replace(
        own,
        verdict=worst(part.verdict for part in parts),
        conditions=tuple(dict.fromkeys(condition for part in parts for condition in part.conditions)),
        obligations=sum(part.obligations for part in parts),
    )


def overall(counted: Iterable[RuleVerdict], *, strict: bool) -> Verdict:
    """The verdict on a rule set, by the verdicts on the rules of it that count."""
    verdicts = set(counted)
    if RuleVerdict.VIOLATED in verdicts or (strict and RuleVerdict.CONDITIONAL in verdicts):
        return Verdict.VIOLATES
    undecided = RuleVerdict.UNKNOWN in verdicts or (strict and RuleVerdict.OBLIGATION in verdicts)
    return Verdict.UNDECIDED if undecided else Verdict.CONFORMS


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on several rule sets together."""
    given = set(verdicts)
    return next((v for v in (Verdict.VIOLATES, Verdict.UNDECIDED) if v in given), Verdict.CONFORMS)


def _info(model: Model, given: object) -> ModelInfo:
    name = model.files[0].name if model.files else (str(given) if isinstance(given, (str, Path)) else "")
    return ModelInfo(
        name=name,
        source=model.source,
        files=tuple((file.name, file.size, file.sha256) for file in model.files),
        ir_version=model.ir_version,
        opsets=model.opsets,
        producer=model.producer,
        graphs=len(model.graphs),
        nodes=len(model.nodes),
        tensors=len(model.tensors),
        functions=model.functions,
        path=str(given) if isinstance(given, (str, Path)) else "",
    )
