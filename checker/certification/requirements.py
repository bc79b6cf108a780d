"""The requirements of operators as rules: one for each statement of a definition that the model uses.

Their rule sets say which statements they take in (`collects`); every node that applies the operator is a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from sonnx.semantics.facts.inference.model import Claims
from sonnx.semantics.formulas.terms import FALSE, Term
from sonnx.semantics.model.graph import Node, NodeId, TensorId
from sonnx.semantics.model.path import operator_text
from sonnx.semantics.model.schemas import normal_domain, operator_name
from sonnx.semantics.operators.shapes.contents import DECLARED, HEADER, SIZED, STEP, TYPED, Content, mentioned
from sonnx.semantics.operators.shapes.walk import OpenRequirement
from sonnx.semantics.operators.symbolic.numbers import Int, both, equal
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.syntax import DEMANDS, Operator, clause
from sonnx.spec.library import specification
from sonnx.spec.terminal import few, inert

from .conditions import as_json, words
from .preconditions import DecidedPart, Decisions
from .report import LEFT_OPEN, WORST_FIRST, Domain, Finding, Json, RuleResult, RuleVerdict
from .rule_sets import RuleSet, collects

# ---- Ids: `Conv-11/kernel_fits` is the `require` or `restrict` of that id in Conv-11 -----------


def identity(operator: Operator | CoreOperator, position: int) -> str:
    """The id of a requirement, by its position among the statements."""
    own = {HEADER: "inputs", STEP: "step"}.get(position) or operator.statements[position].id
    return f"{operator.name}-{operator.first}/{own}"


def find(operators: Mapping[str, Iterable[Operator]], name: str) -> tuple[Operator, int] | None:
    """The definition and the position of the statement that has this id, or had it in version 0.2."""
    name = earlier_ids().get(name, name)
    for operator in operators.get(name.partition("/")[0].rpartition("-")[0], ()):
        for position, statement in enumerate(operator.statements):
            if statement.kind in DEMANDS and identity(operator, position) == name:
                return operator, position
    return None


@cache
def earlier_ids() -> Mapping[str, str]:
    """For each id of version 0.2, by position or by the name that SONNX has for a restriction, the id of today."""
    text = files(__package__).joinpath("earlier_ids.tsv").read_text(encoding="utf-8")
    now: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            definitions, ids = (part.split(" ") for part in line.split("\t"))
            required = [own for own in ids if "=" not in own]
            earlier = {str(position): own for position, own in enumerate(required, 1) if own != "-"}
            earlier |= dict(own.split("=") for own in ids if "=" in own)
            now |= {f"{of}/{before}": f"{of}/{own}" for of in definitions for before, own in earlier.items()}
    return now


# ---- Rules -------------------------------------------------------------------------------------

LIMIT = 100
"""The most nodes that are listed as meeting a requirement."""
NAMED = 5
"""The most nodes that are named as needing one size."""
WHOLE = (DECLARED, TYPED, SIZED)
"""The positions of the rules that are one for all operators."""


@dataclass(frozen=True, slots=True)
class _Wording:
    """The name and the words of a rule."""

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
    "The shapes are those that the texts of the operators compute. A dimension variable is one size in all graphs of"
    " the model, bodies included, and stands for the first size that has this name; decided: each call of a function"
    " has its own, since a function may be called with many shapes. A size without number and name agrees with all. The"
    " shapes of what is in sequences are not compared.",
    'Currently, dimension variables are not scoped. A dimension variable "N" represents the same value across the'
    " entire graph in a model. [...] Nested sub-graphs currently share the same scope for dimension variables as the"
    " main-graph.",
)
TYPES = _Wording(
    "types",
    "Outputs have the element types that the model declares.",
    "Outputs have the element types that the model declares.",
    "ONNX 1.23.2, docs/IR.md, Graphs",
    "The element types are those that the texts of the operators give.",
)
SIZES = _Wording(
    "sizes",
    "Sizes are below 2^48.",
    "No tensor has 2^48 elements, and no size of one is so large.",
    "spec/profiles/domain.sonnx",
    "All that is decided of sizes is decided below that: a machine whose memory holds more is not known. It is listed"
    " where a node gives, or reads from a caller, a tensor whose fixed sizes say so; open ones are taken to suit it.",
)
MADE = _Wording(
    "data-shapes",
    "Shapes that data decide suit the nodes behind.",
    "A shape that data decide is one for which the nodes behind have a result.",
    "spec/5-operators",
    "An obligation on the node that makes the size, one for each condition; the nodes that need it are named.",
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
GENERAL = frozenset(wording.name for wording in (SHAPES, TYPES, SIZES, MADE, DEFINED, INFERRED))


@dataclass(frozen=True, slots=True)
class _Rule:
    """A requirement with its places: the nodes that meet it by numbers alone, and what was decided of the others."""

    operator: CoreOperator | None
    position: int
    met: tuple[NodeId, ...]
    open: tuple[DecidedPart, ...]


def results(rule_set: RuleSet, decisions: Decisions, claims: Callable[[], Claims]) -> tuple[RuleResult, ...]:
    """The rules that a rule set takes in from the operators of a model. claims: what ONNX's shape inference says."""
    kind = collects(rule_set.profile)
    rules = [_result(rule_set, rule, decisions) for rule in _rules(kind, decisions)]
    made = [_made(rule_set, kind, decisions)]
    if kind == "require":
        rules = [_defined(rule_set, decisions), _inferred(rule_set, decisions, claims()), *made, *rules]
    elif made[0].findings:
        rules = [*made, *rules]
    return tuple(rules)


def _rules(kind: str, decisions: Decisions) -> Iterator[_Rule]:
    open_: dict[tuple[CoreOperator, int], list[DecidedPart]] = {}
    for it in decisions.open:
        open_.setdefault((it.instance.operator, it.instance.position), []).append(it)
    met_at = decisions.examination.met
    for position in WHOLE if kind == "require" else ():
        open_here = tuple(it for it in decisions.open if it.instance.position == position)
        if position == SIZED and not open_here:
            continue  # it is no requirement at a node that is as usual
        met = sorted(n for (_, p), nodes in met_at.items() if p == position for n in nodes)
        yield _Rule(None, position, tuple(met), open_here)
    keys = {(o, p) for o, p in (*open_, *met_at) if p not in WHOLE and _kind(o, p) == kind}
    for operator, position in sorted(keys, key=lambda key: (key[0].name, key[0].first, key[1])):
        key = operator, position
        yield _Rule(operator, position, tuple(met_at.get(key, ())), tuple(open_.get(key, ())))


def _kind(operator: CoreOperator, position: int) -> str:
    return "require" if position < 0 else operator.statements[position].kind


def _result(rule_set: RuleSet, rule: _Rule, decisions: Decisions) -> RuleResult:
    verdicts = {it.verdict for it in rule.open}
    verdict = next((v for v in WORST_FIRST if v in verdicts), RuleVerdict.HOLDS)
    listed = {v: [it for it in rule.open if it.verdict is v and not _folded(it)] for v in WORST_FIRST}
    wording = _wording(rule)
    findings = {v: tuple(_finding(it, wording.statement, decisions) for it in listed[v]) for v in WORST_FIRST}
    places = listed.get(verdict, [])
    holding = sorted((*rule.met, *(it.instance.node for it in rule.open if it.verdict is RuleVerdict.HOLDS)))
    reason = next((it.reason for it in places), "")
    return _judged(
        rule_set,
        wording,
        verdict,
        findings.get(verdict, ()),
        len(places),
        places=len({(it.instance.node, it.instance.tensor) for it in rule.open}) + len(rule.met),
        reason=reason or ("" if places or verdict is RuleVerdict.HOLDS else f"see the rule {MADE.name}"),
        holding=tuple(decisions.examination.model.nodes[n].path for n in holding[:LIMIT]),
        besides={v: findings[v] for v in LEFT_OPEN if findings[v] and v is not verdict},
        obligations=len(listed[RuleVerdict.OBLIGATION]),
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
    besides: Mapping[RuleVerdict, tuple[Finding, ...]] | None = None,
    obligations: int = 0,
) -> RuleResult:
    """A rule with its verdict. total: of findings. reason: why it is unknown or left to data."""
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
        findings=tuple(findings),
        total_findings=total,
        reason=reason if verdict in (RuleVerdict.UNKNOWN, RuleVerdict.OBLIGATION) else "",
        evidence={"kind": "nodes", "nodes": places} if verdict is RuleVerdict.HOLDS else {},
        places=places,
        holding=holding,
        besides=besides or {},
        obligations=obligations,
    )


def _wording(rule: _Rule) -> _Wording:
    position = rule.position
    if rule.operator is None:
        return {DECLARED: SHAPES, TYPED: TYPES, SIZED: SIZES}[position]
    operator = specification().written(rule.operator)
    name, source = identity(operator, position), clause(operator.clauses, "source") or ""
    if position == HEADER:
        from sonnx.spec.language.printer import spelled_ports

        sentence = f"The inputs have shapes that go together: {spelled_ports(operator)}."
        return _Wording(name, sentence, sentence, source)
    if position == STEP:
        return _Wording(name, f"What {operator.name} is given and its bodies give fit together.", operator.doc, source)
    statement = operator.statements[position]
    demanded = ", ".join(c.value for c in statement.clauses if c.key == "demanded")
    note, quote = (clause(statement.clauses, key) or "" for key in ("note", "quote"))
    return _Wording(name, statement.doc, statement.doc, f"{source}; demanded by {demanded}", note, quote)


# ---- Places -----------------------------------------------------------------------------------


def _finding(it: DecidedPart, sentence: str, decisions: Decisions) -> Finding:
    """One place that is violated or open."""
    instance = it.instance
    where = decisions.examination.model.nodes[instance.node].path
    applied = _applied(instance, decisions)
    condition = _condition(it, decisions)
    declared = inert(_declared(instance, decisions))
    witness: dict[str, Json] = {"n": where}
    if it.condition is not None and it.verdict in (RuleVerdict.CONDITIONAL, RuleVerdict.OBLIGATION):
        witness["condition"] = as_json(it.condition, decisions.labels)
    if it.verdict is RuleVerdict.UNKNOWN:
        told = f"unknown: {it.reason}{_about(instance, decisions)}" + (f"; needed: {condition}" if condition else "")
        return Finding(where, f"{applied}: {inert(told)}", witness)
    if it.verdict is RuleVerdict.OBLIGATION:
        because = f" ({it.reason}{_about(instance, decisions)})" if it.reason else ""
        return Finding(
            where,
            f"{applied}: data decide it; needed: {inert(condition or sentence)}{inert(because)}{declared}",
            witness,
            f"See to it that the data of every run keep to it, or change {where}.",
            condition=inert(condition or sentence),
        )
    if it.verdict is RuleVerdict.VIOLATED:
        why = inert("".join(f"; {told}" for told in (it.reason, condition and f"needed: {condition}") if told))
        return Finding(
            where, f"{applied}: violated{why}{declared}", witness, f"Change {where} so that it is met: {sentence}"
        )
    sizes = ", ".join(f"{name} = {value}" for name, value in it.sizes.items()) or "some sizes"
    return Finding(
        where,
        f"{applied}: fails at {inert(sizes)}; needed: {inert(condition)}{declared}",
        {**witness, "sizes": dict(it.sizes)},
        f"Declare sizes for which it holds ({inert(condition)}), or change {where}.",
        condition=inert(condition),
    )


def _declared(instance: OpenRequirement, decisions: Decisions) -> str:
    """The shape that a tensor has and the one that the model declares for it, where that is what is asked; a body's
    input, too, which its holder gives a value to."""
    if instance.position != DECLARED or instance.tensor is None:
        return ""
    examination = decisions.examination
    for it in examination.stated:
        if (it.node, it.tensor) == (instance.node, instance.tensor) and isinstance(it.given, tuple):
            same = [equal(a, b) for a, b in zip(it.given, it.declared, strict=False) if isinstance(b, (int, Term))]
            if both(*same, *([] if len(it.given) == len(it.declared) else [FALSE])) == instance.goal:
                has, states = (_sizes(row, decisions.labels) for row in (it.given, it.declared))
                return f"; {examination.model.tensors[it.tensor].path} has the shape {has}, and is declared {states}"
    return ""


def _sizes(shape: Sequence[Int | str | None], labels: Mapping[str, str]) -> str:
    shown = ("?" if n is None else words(n, labels) if isinstance(n, Term) else str(n) for n in shape)
    return f"[{', '.join(shown)}]"


def _condition(it: DecidedPart, decisions: Decisions) -> str:
    """The condition in words; empty where there is none, or it is about elements of which no more is known than that
    something compares or reads them: then the sentence says more."""
    if it.condition is None or it.condition == FALSE or any(map(OPAQUE.search, mentioned(it.condition))):
        return ""
    return words(it.condition, decisions.labels)


OPAQUE = re.compile(r"(^|\.)(compared|lifted)(\.[0-9a-f]+)?!\d+$")
"""The names of symbols that stand for what cannot be followed."""


def _about(instance: OpenRequirement, decisions: Decisions) -> str:
    return "" if instance.about is None else f" {words(instance.about, decisions.labels)}"


def _folded(it: DecidedPart) -> bool:
    """This is an obligation on another node, which the rule `data-shapes` lists."""
    return it.verdict is RuleVerdict.OBLIGATION and it.elsewhere


def obligations(kind: str, decisions: Decisions) -> Mapping[tuple[NodeId, Term | None], list[DecidedPart]]:
    """The obligations on nodes that make sizes: by node and condition those that come to the same."""
    needing: dict[tuple[NodeId, Term | None], list[DecidedPart]] = {}
    own = {
        (it.node, it.condition)
        for it in decisions.open
        if it.verdict is RuleVerdict.OBLIGATION and it.condition is not None and not it.elsewhere
    }
    for it in decisions.open:
        of_kind = _kind(it.instance.operator, it.instance.position) == kind
        if of_kind and _folded(it) and (it.node, it.condition) not in own:
            needing.setdefault((it.node, it.condition), []).append(it)
    return needing


def _made(rule_set: RuleSet, kind: str, decisions: Decisions) -> RuleResult:
    """The obligations on shapes that data decide, for the nodes behind."""
    nodes = decisions.examination.model.nodes
    findings = []
    for (maker, condition), needing in sorted(obligations(kind, decisions).items(), key=lambda entry: entry[0][0]):
        paths = list(dict.fromkeys(nodes[it.instance.node].path for it in needing))
        behind = few(paths, NAMED)
        where = nodes[maker].path
        outputs = ", ".join(_output(t, decisions) for t in nodes[maker].outputs if t is not None)
        gives = f"{nodes[maker].op_type}-{nodes[maker].version} gives {outputs}"
        what = words(condition, decisions.labels) if condition is not None else f"a shape that suits {behind}"
        by = "" if condition is None else f", by {behind}"
        witness: dict[str, Json] = {"n": where, "needed_by": list(paths)}
        if condition is not None:
            witness["condition"] = as_json(condition, decisions.labels)
        told = inert(f"{gives}: data decide it; needed: {what}{by}")
        todo = f"See to it that the data of every run make {where} give such a shape, or change it."
        findings.append(Finding(where, told, witness, todo, condition=inert(what)))
    verdict = RuleVerdict.OBLIGATION if findings else RuleVerdict.HOLDS
    reason = "data decide sizes" if findings else ""
    count = len(findings)
    return _judged(rule_set, MADE, verdict, findings, count, places=count, reason=reason, obligations=count)


def _output(t: TensorId, decisions: Decisions) -> str:
    content = decisions.examination.contents.get(t)
    shape = "[...]" if content is None else _shape(content, decisions.labels)
    return f"{decisions.examination.model.tensors[t].name}: {shape}"


def _applied(instance: OpenRequirement, decisions: Decisions) -> str:
    """The operator with the shapes that it is applied to."""
    node = decisions.examination.model.nodes[instance.node]
    ports = [port.name for port in instance.operator.inputs]
    shown = []
    for position, t in enumerate(node.inputs):
        content = None if t is None else decisions.examination.contents.get(t)
        if content is not None:
            name = ports[min(position, len(ports) - 1)] if ports else ""
            shown.append(f"{name}: {content.element}{_shape(content, decisions.labels)}")
    if instance.position == DECLARED and (instance.tensor is None or instance.tensor in node.outputs):
        outs = [
            f"{inert(decisions.examination.model.tensors[t].name)}: {_shape(content, decisions.labels)}"
            for t in node.outputs
            if t is not None and (content := decisions.examination.contents.get(t)) is not None
        ]
        return f"{node.op_type}-{node.version} ({inert(', '.join(shown))}) gives {', '.join(outs)}"
    return f"{node.op_type}-{node.version} ({inert(', '.join(shown))})"


def _shape(content: Content, labels: Mapping[str, str]) -> str:
    if content.items is not None:
        length = content.items.length
        return f" of {words(length, labels) if isinstance(length, Term) else length}"
    if content.shape is None:
        return "[...]"
    return f"[{', '.join(words(n, labels) if isinstance(n, Term) else str(n) for n in content.shape)}]"


def _operator(node: Node) -> str:
    """An operator by its name, its domain unless that is ONNX's own, its version where one is known."""
    version = "" if node.version is None else f"-{node.version}"
    return operator_text(normal_domain(node.domain), node.op_type) + version


def _undefined(node: Node) -> str:
    reason = specification().reason(operator_name(node.domain, node.op_type), node.version)
    return (
        f"nothing here executes {_operator(node)}. {reason}"
        if reason
        else (f"the specification does not define {_operator(node)}")
    )


def _defined(rule_set: RuleSet, decisions: Decisions) -> RuleResult:
    """That there is a text which says what a node needs, and that the node runs."""
    examination = decisions.examination
    nodes = examination.model.nodes
    reasons = [(nodes[n], _undefined(nodes[n])) for n in examination.undefined]
    reasons += [(nodes[n], told) for n, told in examination.misused.items()]
    reasons += [(nodes[n], "the node never runs, since what it reads is never written") for n in examination.skipped]
    findings = [Finding(node.path, inert(why), {"n": node.path}) for node, why in reasons]
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
    """The conditions on sizes for the requirements to hold, by the kind of statement, in words: the sizes that were
    considered, where they are not all from 1 on, and the conditions that are left."""
    narrowing = tuple(inert(words(condition, decisions.labels)) for condition in decisions.narrowing)
    of_kind = {"require": domain.conditions, "restrict": narrowing}
    return {kind: domain.limited(collecting, every=False) for kind, collecting in of_kind.items()}


def domain(decisions: Decisions, limits: Mapping[str, tuple[int, int | None]]) -> Domain:
    """For which sizes the model is well formed, as a report says it."""
    examination = decisions.examination
    sizes = tuple((label, *limits.get(label, (1, None))) for label in examination.sizes.values())
    required = [it for it in decisions.open if it.instance.required]
    count = {v: sum(it.verdict is v for it in required) for v in RuleVerdict}
    met = sum(len(nodes) for (o, p), nodes in examination.met.items() if _kind(o, p) == "require")
    own = sum(it.verdict is RuleVerdict.OBLIGATION and not it.elsewhere for it in required)
    return Domain(
        sizes,
        tuple(inert(words(condition, decisions.labels)) for condition in decisions.conditions),
        met + count[RuleVerdict.HOLDS],
        count[RuleVerdict.VIOLATED],
        count[RuleVerdict.UNKNOWN],
        len(examination.undefined),
        count[RuleVerdict.CONDITIONAL],
        own + len(obligations("require", decisions)),
        tuple(dict.fromkeys(inert(_operator(examination.model.nodes[n])) for n in examination.undefined)),
        tuple(as_json(condition, decisions.labels) for condition in decisions.conditions),
        tuple(decisions.example.items()),
        tuple(as_json(condition, decisions.labels) for condition in decisions.narrowing),
    )


def collected(rule_sets: Sequence[RuleSet]) -> bool:
    """A rule set takes in statements of operators."""
    return any(collects(rule_set.profile) for rule_set in rule_sets)
