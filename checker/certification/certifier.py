"""Certification: every rule of the rule sets asked for and included, decided by the solver on the facts of one model.

For each constraint the verdict is the solver's answer on facts plus negated formula. The direct evaluator judges the
same text on its own; a disagreement is a defect of this package and raises InternalError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from sonnx.semantics.facts.gathering import ASKING, structure
from sonnx.semantics.facts.inference.claims import Claims, infer
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas.evaluate import constraints as direct
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load, load_proto
from sonnx.spec.language.syntax import Constraint, ProfileRule, clause
from sonnx.spec.library import Specification, specification
from sonnx.spec.terminal.progress import Progress

from ..smt import solver
from . import preconditions, requirements, rule_sets
from .deciding import LIMIT, Judged, Task, decide, reached, worth_forking
from .findings import data_condition, finding, obligation
from .formats import notebook
from .queries import dumping
from .report import Finding, Json, ModelInfo, Report, RuleResult, RuleSetResult, RuleVerdict, Verdict
from .witness import cycles, evidence

if TYPE_CHECKING:
    from onnx import ModelProto

TIMEOUT = 60.0
"""Seconds that one solver query may take."""

Sizes = Mapping[str, tuple[int, int | None]]

NOT_EXAMINED = (
    "values of weights, other than small constants that shapes and modes depend on",
    "requirements of operators beyond the rules of the rule sets domain and sonnx-constraints",
    "numerical accuracy and the behaviour of any runtime",
    "training information of the model (training_info)",
)


def certify(
    model: Path | str | Model | ModelProto,
    rules: Sequence[str] = rule_sets.DEFAULT,
    *,
    timeout: float = TIMEOUT,
    strict: bool = False,
    others: bool = False,
    witnesses: bool = False,
    dump: Path | None = None,
    sizes: Sizes | None = None,
    progress: Progress | None = None,
) -> Report:
    """The report on a model: a path, a loaded model or an ONNX protobuf.

    rules: rule sets (`name` or `name@variant`), or "all"; those that they include are judged with them. strict: rules
    with status TBC, defective, open or reported count too, what free sizes decide counts as violated, what data decide
    as undecided. others: judge the remaining rule sets as well; they are reported, and do not enter the verdict.
    witnesses: give each
    rule that holds the evidence which a certificate carries. timeout: seconds for each solver query. dump: a folder
    that gets a script of SMT-LIB 2 for every rule. sizes: the least and the greatest value (None: any) of symbolic
    sizes by name.
    Raises ModelError, RuleSetError, SpecError; InternalError when solver and direct evaluator disagree.
    """
    specification_ = specification()
    asked = rule_sets.resolve(specification_, rules)
    remaining = rule_sets.others(specification_, asked) if others else ()
    tell = progress or _silent
    loaded = _loaded(model, tell)
    with ThreadPoolExecutor(max_workers=1) as background:
        claims = _Claims(background, loaded, timeout)
        collected = requirements.collected((*asked, *remaining))
        if others or collected:
            claims.start()
        decisions = None
        if collected:  # while inference runs in its own process
            decisions = preconditions.decide(loaded, sizes, min(timeout, preconditions.TIMEOUT), tell)
            claims.result()
        facts = structure(loaded, claims.result)
        needed = rule_sets.constraints(specification_, (*asked, *remaining))
        if dump is not None:
            both = (*asked, *remaining)
            dumping.dump(dump, loaded, specification_, both, needed, facts, decisions, claims.result)
        forks = worth_forking(len(loaded.nodes))
        if forks and any(ASKING & reached(constraint, specification_.functions) for constraint in needed):
            tell("inferring types", 0, len(needed))
            claims.result()
            background.shutdown()  # no thread may run when the workers are forked
        judged = decide(Task(needed, specification_.functions, facts, timeout, forks), tell)
    witness = cache(lambda kind: evidence(kind, loaded, facts) if witnesses else {})
    found = cache(lambda name: _places(specification_, name, judged[name], loaded, facts))
    results = tuple(
        result
        for rule_set in (*asked, *remaining)
        for result in (
            *(
                _result(
                    specification_, rule_set, rule, judged[rule.constraint], found(rule.constraint), strict, witness
                )
                for rule in rule_set.rules
            ),
            *(
                requirements.results(rule_set, decisions, claims.result)
                if decisions and rule_sets.collects(rule_set.profile)
                else ()
            ),
        )
    )
    domain = None if decisions is None else requirements.domain(decisions, sizes or {})
    conditions = {} if decisions is None or domain is None else requirements.conditions(decisions, domain)
    summaries = {
        rule_set.profile.name: _summary(
            specification_, rule_set, results, conditions, asked=rule_set in asked, strict=strict
        )
        for rule_set in (*asked, *remaining)
    }
    whole = tuple(_with_included(summary, summaries) for summary in summaries.values())
    return Report(
        model=_info(loaded, model),
        verdict=worst(summary.verdict for summary in whole if summary.asked),
        rule_sets=whole,
        rules=results,
        not_examined=NOT_EXAMINED,
        tools=tuple((name, version(name)) for name in ("sonnx", "onnx", "z3-solver")),
        domain=domain,
        notebook=notebook,
    )


class _Claims:
    """Shape inference in the background: started early when it will be needed, else when a fact first asks for it."""

    def __init__(self, background: ThreadPoolExecutor, model: Model, timeout: float) -> None:
        self._submit = cache(lambda: background.submit(infer, model, timeout))

    def start(self) -> None:
        """Begin now."""
        self._submit()

    def result(self) -> Claims:
        """The claims, waited for."""
        return self._submit().result()


def _silent(_what: str, _done: int, _total: int) -> None:
    """No progress shown."""


def _loaded(model: Path | str | Model | ModelProto, tell: Progress) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, (str, Path)):
        return load(Path(model), progress=lambda done, total: tell("reading", done, total))
    return load_proto(model)


# ---- Results ----------------------------------------------------------------------------------


def _result(
    specification_: Specification,
    rule_set: rule_sets.RuleSet,
    rule: ProfileRule,
    judged: Judged,
    places: _Places,
    strict: bool,
    witness: Callable[[str], Mapping[str, Json]],
) -> RuleResult:
    constraint = specification_.constraints[rule.constraint]
    verdict, answer = places.verdict, judged.answer
    besides = places.awaiting if verdict is not RuleVerdict.OBLIGATION else ()
    return RuleResult(
        rule_set=rule_set.profile.name,
        id=rule.id,
        title=rule.title,
        statement=constraint.doc,
        quote=clause(rule.clauses, "quote") or "",
        source=clause(rule.clauses, "source") or clause(rule_set.profile.clauses, "source") or "",
        status=rule_sets.status(rule),
        note=clause(rule.clauses, "note") or "",
        constraint=constraint.name,
        counted=rule_sets.counts(rule, strict=strict),
        verdict=verdict,
        findings=places.findings,
        total_findings=places.total,
        reason=_reason(verdict, answer, places.findings),
        evidence=witness(_kind(constraint)) if verdict is RuleVerdict.HOLDS else {},
        solver=answer.answers,
        core=answer.core,
        besides={RuleVerdict.OBLIGATION: besides} if besides else {},
        obligations=places.obligations,
    )


def _kind(constraint: Constraint) -> str:
    """The kind of evidence that the text asks for."""
    return clause(constraint.clauses, "evidence") or "places"


@dataclass(frozen=True, slots=True)
class _Places:
    """The verdict on a constraint, and where it fails or is open: the first places, of so many. awaiting: the first of
    those that data decide, of so many obligations."""

    verdict: RuleVerdict
    findings: tuple[Finding, ...]
    total: int
    awaiting: tuple[Finding, ...] = ()
    obligations: int = 0


def _places(specification_: Specification, name: str, judged: Judged, model: Model, facts: Structure) -> _Places:
    """The places of a constraint: the same for each rule that demands it. Where it is open, and by its text nothing but
    the data of a run decides it, it is left to them."""
    constraint, judgement, functions = specification_.constraints[name], judged.judgement, specification_.functions
    words = clause(constraint.clauses, "obligation")
    conditions = [data_condition(words, it, functions, facts) if words else "" for it in judgement.unknowns]
    pairs = list(zip(judgement.unknowns, conditions, strict=True))
    left = [(it, condition) for it, condition in pairs if condition]
    awaiting = tuple(obligation(it, condition, facts) for it, condition in left[:LIMIT])
    if judged.verdict is RuleVerdict.VIOLATED:
        failing = judgement.failures[:LIMIT]
        findings = tuple(finding(constraint, it, functions, facts, violated=True) for it in failing)
        if _kind(constraint) == "order":
            findings = _with_cycles(findings, failing, model, facts)
        return _Places(judged.verdict, findings, judgement.failed, awaiting, len(left))
    if judged.verdict is RuleVerdict.UNKNOWN and left and len(left) == judgement.undecided:
        return _Places(RuleVerdict.OBLIGATION, awaiting, len(left), awaiting, len(left))
    open_ = [it for it, condition in pairs if not condition][:LIMIT] if judged.verdict is RuleVerdict.UNKNOWN else []
    findings = tuple(finding(constraint, it, functions, facts, violated=False) for it in open_)
    total = judgement.undecided - len(left) if findings else 0
    return _Places(judged.verdict, findings, total, awaiting, len(left))


def _with_cycles(
    findings: tuple[Finding, ...], instances: Sequence[direct.Instance], model: Model, facts: Structure
) -> tuple[Finding, ...]:
    """The findings, the first on each cycle with the paths of its nodes."""
    rings = cycles([int(instance.bindings[0][2]) for instance in instances], model, facts)
    return tuple(
        replace(item, witness={**item.witness, "cycle": [model.nodes[n].path for n in ring]}) if ring else item
        for item, ring in zip(findings, rings, strict=True)
    )


def _reason(verdict: RuleVerdict, answer: solver.Answer, findings: Sequence[Finding]) -> str:
    if verdict is not RuleVerdict.UNKNOWN:
        return ""
    return answer.reason or next((item.message for item in findings), "the model does not determine the rule's facts")


def _summary(
    specification_: Specification,
    rule_set: rule_sets.RuleSet,
    results: Iterable[RuleResult],
    conditions: Mapping[str, tuple[str, ...]],
    *,
    asked: bool,
    strict: bool,
) -> RuleSetResult:
    """The rule set by its own rules. conditions: on sizes, by the kind of statements that a rule set takes in."""
    own = [r for r in results if r.rule_set == rule_set.profile.name and r.counted]
    return RuleSetResult(
        name=rule_set.profile.name,
        title=rule_set.profile.doc,
        digest=rule_sets.digest(specification_, rule_set.profile),
        verdict=overall((r.verdict for r in own), strict=strict),
        asked=asked,
        strict=strict,
        variant=rule_set.variant,
        included_by=rule_set.included_by,
        includes=rule_sets.includes(rule_set.profile),
        conditions=conditions.get(rule_sets.collects(rule_set.profile), ()),
        obligations=sum(r.obligations for r in own),
        collects=rule_sets.collects(rule_set.profile),
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
    found = set(verdicts)
    return next((v for v in (Verdict.VIOLATES, Verdict.UNDECIDED) if v in found), Verdict.CONFORMS)


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
    )
