"""The requirements of operators as rules: one for each statement of a definition that the model uses.

Their rule sets say which statements they take in (`collects`); every node that applies the operator is a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sonnx.semantics.claims import Claims
from sonnx.semantics.graph import Node, NodeId
from sonnx.semantics.path import operator_text
from sonnx.semantics.preconditions.contents import Content
from sonnx.semantics.preconditions.examining import DECLARED, HEADER
from sonnx.semantics.preconditions.walk import Instance
from sonnx.semantics.schemas import normal_domain
from sonnx.semantics.terms import FALSE, Argument, Term
from sonnx.spec.inert import inert
from sonnx.spec.printer import spelled_ports
from sonnx.spec.syntax import Operator, clause

from .conditions import words
from .preconditions import Decided, Decisions
from .report import (
    LEFT_OPEN,
    WORST_FIRST,
    Domain,
    Finding,
    Json,
    RuleResult,
    RuleVerdict,
)
from .requirement_names import identity
from .rule_sets import RuleSet, collects

LIMIT = 100
"""How many places of one rule are listed."""


@dataclass(frozen=True, slots=True)
class _Wording:
    """What a rule is called and says."""

    name: str
    title: str
    statement: str
    source: str
    note: str = ""
    quote: str = ""


SHAPES = _Wording(
    "shapes",
    "Outputs have the shapes that the model declares.",
    "Outputs have the shapes that the model declares.",
    "ONNX 1.23.2, docs/IR.md, Graphs",
    "The shapes are those that the texts of the operators compute. A size without a number agrees with all.",
)
DEFINED = _Wording(
    "defined",
    "The specification says what the node needs",
    "Every node applies an operator that the specification defines, and can run.",
    "spec/5-operators",
    "What other operators need is not known here.",
)
INFERRED = _Wording(
    "inference",
    "Shape inference agrees",
    "ONNX's shape inference gives the shapes that the texts of the operators give.",
    "ONNX 1.23.2, onnx/shape_inference/implementation.cc",
    "A difference is a defect of one of the two, of a declaration that inference believes, or of the model.",
)
"""The rules of the rule set of requirements that are not a statement of one operator."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A requirement with its places: the nodes that meet it by numbers alone, and what was decided of the others."""

    operator: Operator | None
    position: int
    held: tuple[NodeId, ...]
    open: tuple[Decided, ...]


def results(rule_set: RuleSet, decisions: Decisions, claims: Callable[[], Claims]) -> tuple[RuleResult, ...]:
    """The rules that a rule set takes in from the operators of a model. claims: what ONNX's shape inference says."""
    kind = collects(rule_set.profile)
    found = [_result(rule_set, rule, decisions) for rule in _rules(kind, decisions)]
    if kind == "require":
        found = [_defined(rule_set, decisions), _inferred(rule_set, decisions, claims()), *found]
    return tuple(found)


def _rules(kind: str, decisions: Decisions) -> Iterator[_Rule]:
    open_: dict[tuple[Operator, int], list[Decided]] = {}
    shapes: list[Decided] = []
    for it in map(_standing, decisions.open):
        if it.instance.position == DECLARED:
            shapes.append(it)
        else:
            open_.setdefault((it.instance.operator, it.instance.position), []).append(it)
    held = decisions.examination.held
    if kind == "require":
        met = sorted(n for (_, position), nodes in held.items() if position == DECLARED for n in nodes)
        yield _Rule(None, DECLARED, tuple(met), tuple(shapes))
    keys = {(o, p) for o, p in (*open_, *held) if p != DECLARED and _kind(o, p) == kind}
    for operator, position in sorted(keys, key=lambda key: (key[0].name, key[0].first, key[1])):
        key = operator, position
        yield _Rule(operator, position, tuple(held.get(key, ())), tuple(open_.get(key, ())))


def _standing(it: Decided) -> Decided:
    if it.verdict is RuleVerdict.VIOLATED and not it.always and it.sizes:
        return replace(it, verdict=RuleVerdict.CONDITIONAL)
    if it.verdict is RuleVerdict.UNKNOWN and it.reason == "the data decide it":
        return replace(it, verdict=RuleVerdict.OBLIGATION)
    return it


def _kind(operator: Operator, position: int) -> str:
    return "require" if position < 0 else operator.statements[position].kind


def _result(rule_set: RuleSet, rule: _Rule, decisions: Decisions) -> RuleResult:
    wording = _wording(rule)
    by_verdict: dict[RuleVerdict, list[Decided]] = {}
    for it in rule.open:
        by_verdict.setdefault(it.verdict, []).append(it)
    findings = {
        v: tuple(_finding(it, wording.statement, decisions) for it in by_verdict[v][:LIMIT])
        for v in WORST_FIRST
        if v in by_verdict
    }
    verdict = next(iter(findings), RuleVerdict.HOLDS)
    places = by_verdict.get(verdict, []) if findings else []
    holding = sorted((*rule.held, *(it.instance.node for it in by_verdict.get(RuleVerdict.HOLDS, ()))))
    return replace(
        _judged(
            rule_set,
            wording,
            verdict,
            findings.get(verdict, ()),
            len(places),
            places=len(rule.held) + len(rule.open),
            reason=next((it.reason for it in places), ""),
            holding=tuple(decisions.examination.model.nodes[n].path for n in holding[:LIMIT]),
        ),
        besides={v: findings[v] for v in LEFT_OPEN if v in findings and v is not verdict},
        obligations=len(by_verdict.get(RuleVerdict.OBLIGATION, ())),
    )


def _judged(
    rule_set: RuleSet,
    wording: _Wording,
    verdict: RuleVerdict,
    findings: Sequence[Finding],
    total: int,
    *,
    places: int,
    reason: str,
    holding: tuple[str, ...] = (),
    counted: bool = True,
) -> RuleResult:
    """A rule with its verdict. total: of findings, more than are listed. reason: why it is unknown, where it is."""
    return RuleResult(
        rule_set=rule_set.profile.name,
        id=wording.name,
        title=wording.title,
        statement=wording.statement,
        quote=wording.quote,
        source=wording.source,
        status="current" if counted else "advisory",
        note=wording.note,
        constraint=wording.name,
        counted=counted,
        verdict=verdict,
        findings=tuple(findings[:LIMIT]),
        total_findings=total,
        reason=reason if verdict is RuleVerdict.UNKNOWN else "",
        evidence={"kind": "nodes", "nodes": places} if verdict is RuleVerdict.HOLDS else {},
        places=places,
        holding=holding,
    )


def _wording(rule: _Rule) -> _Wording:
    operator, position = rule.operator, rule.position
    if operator is None:
        return SHAPES
    name, source = identity(operator, position), clause(operator.clauses, "source") or ""
    if position == HEADER:
        sentence = f"The inputs have shapes that go together: {spelled_ports(operator)}."
        return _Wording(name, sentence, sentence, source)
    statement = operator.statements[position]
    demanded = ", ".join(c.value for c in statement.clauses if c.key == "demanded")
    note, quote = (clause(statement.clauses, key) or "" for key in ("note", "quote"))
    return _Wording(name, statement.doc, statement.doc, f"{source}; demanded by {demanded}", note, quote)


# ---- Places -----------------------------------------------------------------------------------


def _finding(it: Decided, sentence: str, decisions: Decisions) -> Finding:
    instance = it.instance
    where = decisions.examination.model.nodes[instance.node].path
    applied = _applied(instance, decisions)
    condition = "" if it.condition is None or it.condition == FALSE else words(it.condition, decisions.labels)
    if it.verdict is RuleVerdict.OBLIGATION:
        return Finding(
            where,
            f"{applied}: the data decide it; needed: {inert(condition or sentence)}",
            {"n": where},
            f"See to it that the data of every run keep to it, or change {where}.",
            condition=inert(condition or sentence),
        )
    if it.verdict is RuleVerdict.UNKNOWN:
        about = "" if instance.about is None else f" {words(instance.about, decisions.labels)}"
        told = f"unknown: {it.reason}{about}" + (f"; needed: {condition}" if condition else "")
        return Finding(where, f"{applied}: {inert(told)}", {"n": where})
    if it.always or not it.sizes:
        why = f"; needed: {condition}" if condition else ""
        return Finding(
            where, f"{applied}: violated{inert(why)}", {"n": where}, f"Change {where} so that it is met: {sentence}"
        )
    sizes = ", ".join(f"{name} = {value}" for name, value in it.sizes.items())
    return Finding(
        where,
        f"{applied}: fails at {inert(sizes)}; needed: {inert(condition)}",
        {"n": where, **it.sizes},
        f"Declare sizes for which it holds ({inert(condition)}), or change {where}.",
        condition=inert(condition),
    )


def _applied(instance: Instance, decisions: Decisions) -> str:
    """The operator with the shapes that it is applied to."""
    node = decisions.examination.model.nodes[instance.node]
    ports = [port.name for port in instance.operator.inputs]
    shown = []
    for position, t in enumerate(node.inputs):
        content = None if t is None else decisions.examination.contents.get(t)
        if content is not None:
            name = ports[min(position, len(ports) - 1)] if ports else ""
            shown.append(f"{name}: {content.element}{_shape(content, decisions.labels)}")
    if instance.position == DECLARED:
        outs = [
            f"{inert(decisions.examination.model.tensors[t].name)}: {_shape(content, decisions.labels)}"
            for t in node.outputs
            if t is not None and (content := decisions.examination.contents.get(t)) is not None
        ]
        return f"{node.op_type}-{node.version} ({inert(', '.join(shown))}) gives {', '.join(outs)}"
    return f"{node.op_type}-{node.version} ({inert(', '.join(shown))})"


def _shape(content: Content, labels: Mapping[str, str]) -> str:
    if content.shape is None:
        return "[...]"
    return f"[{', '.join(words(n, labels) if isinstance(n, Term) else str(n) for n in content.shape)}]"


def _operator(node: Node) -> str:
    """An operator by its name, its domain unless that is ONNX's own, its version where one is known."""
    version = "" if node.version is None else f"-{node.version}"
    return operator_text(normal_domain(node.domain), node.op_type) + version


def _defined(rule_set: RuleSet, decisions: Decisions) -> RuleResult:
    """That there is a text which says what a node needs, and that the node runs."""
    found = decisions.examination
    nodes = found.model.nodes
    reasons = [(nodes[n], f"the specification does not define {_operator(nodes[n])}") for n in found.undefined]
    reasons += [(nodes[n], "the node never runs, since what it reads is never written") for n in found.skipped]
    findings = [Finding(node.path, inert(why), {"n": node.path}) for node, why in reasons[:LIMIT]]
    verdict = RuleVerdict.UNKNOWN if reasons else RuleVerdict.HOLDS
    reason = findings[0].message if findings else ""
    return _judged(rule_set, DEFINED, verdict, findings, len(reasons), places=len(nodes), reason=reason)


def _inferred(rule_set: RuleSet, decisions: Decisions, claims: Claims) -> RuleResult:
    """That ONNX's shape inference gives the shapes that the texts give. It decides nothing: which of the two is wrong
    is a matter of its own."""
    model, compared, findings = decisions.examination.model, 0, []
    for t, content in sorted(decisions.examination.contents.items()):
        claim = claims.types.get(t)
        if content.shape is None or claim is None or claim.kind != "tensor" or claim.shape is None:
            continue
        compared += 1
        path = model.tensors[t].path
        if len(claim.shape) != len(content.shape):
            told = f"{path} has {len(content.shape)} axes by the specification, {len(claim.shape)} by shape inference"
            findings.append(Finding(path, told, {"t": path}))
            continue
        pairs = zip(content.shape, claim.shape, strict=True)
        told = ", ".join(
            f"axis {axis} of {path} has {ours} elements by the specification, {theirs} by shape inference"
            for axis, (ours, theirs) in enumerate(pairs)
            if isinstance(ours, int) and isinstance(theirs, int) and ours != theirs
        )
        if told:
            findings.append(Finding(path, told, {"t": path}))
    open_ = claims.failure is not None
    verdict = RuleVerdict.VIOLATED if findings else RuleVerdict.UNKNOWN if open_ else RuleVerdict.HOLDS
    return _judged(
        rule_set,
        INFERRED,
        verdict,
        findings,
        len(findings),
        places=compared,
        reason=claims.failure or "",
        counted=False,
    )


def conditions(decisions: Decisions, domain: Domain) -> Mapping[str, tuple[str, ...]]:
    """What sizes must satisfy for the requirements to hold, by the kind of statement, in words: the sizes that were
    considered, where they are not all from 1 on, and the conditions that are left."""
    narrowing = dict.fromkeys(
        inert(words(it.condition, decisions.labels))
        for it in map(_standing, decisions.open)
        if it.verdict is RuleVerdict.CONDITIONAL and not it.instance.required and it.condition is not None
    )
    of_kind = {"require": domain.conditions, "restrict": tuple(narrowing)}
    return {kind: domain.limited(found, every=False) for kind, found in of_kind.items()}


def domain(decisions: Decisions, limits: Mapping[str, tuple[int, int | None]]) -> Domain:
    """For which sizes the model is well formed, as a report says it."""
    found = decisions.examination
    sizes = tuple((label, *limits.get(label, (1, None))) for label in found.sizes.values())
    required = [it for it in map(_standing, decisions.open) if it.instance.required]
    count = {v: sum(it.verdict is v for it in required) for v in RuleVerdict}
    held = sum(len(nodes) for (o, p), nodes in found.held.items() if _kind(o, p) == "require")
    return Domain(
        sizes,
        tuple(inert(words(condition, decisions.labels)) for condition in decisions.conditions),
        held + count[RuleVerdict.HOLDS],
        count[RuleVerdict.VIOLATED],
        count[RuleVerdict.UNKNOWN],
        len(found.undefined),
        count[RuleVerdict.CONDITIONAL],
        count[RuleVerdict.OBLIGATION],
        tuple(dict.fromkeys(inert(_operator(found.model.nodes[n])) for n in found.undefined)),
        tuple(_formula(condition, decisions.labels) for condition in decisions.conditions),
    )


def _formula(term: Argument, labels: Mapping[str, str]) -> Json:
    """A formula as data: a number, a size or tensor by its label, or a list of an operator and its operands."""
    if not isinstance(term, Term):
        return term
    if not term.args:
        return labels.get(term.op, term.op)
    return [labels.get(term.op, term.op), *(_formula(arg, labels) for arg in term.args)]


def collected(rule_sets: Sequence[RuleSet]) -> bool:
    """Whether a rule set takes in statements of operators."""
    return any(collects(rule_set.profile) for rule_set in rule_sets)
