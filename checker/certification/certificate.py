"""The certificate: a report as an in-toto Statement that a second party can replay (`CERTIFICATE.md` is its format).

A certificate is canonical: one sequence of bytes for one statement. It holds no time, no path of a machine, no float.
The package `rechecker` reads and judges it, with code of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Final

from sonnx.semantics.errors import InternalError, ModelError
from sonnx.spec.project import Waiver

from .report import LEFT_OPEN, Finding, Json, Report, RuleResult, RuleSetResult, RuleVerdict
from .rule_sets import UNCOUNTED

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "urn:sonnx:certificate:v2"
INTEGER_LIMIT: Final = 2**53 - 1
LISTED: Final = 100
"""The most places of one rule that a certificate lists; `total` counts all."""
INFERENCE: Final = "inference"
"""The rule of a rule set of requirements that compares with ONNX's shape inference: a statement about that code, not
about the model, so no certificate has it."""


# ---- From a report ------------------------------------------------------------------------------


def certificate(report: Report) -> dict[str, Json]:
    """The statement of a report, over the rule sets that were asked for; `seal` turns it into bytes.

    Raises ValueError when the report does not come from a file, or was made without witnesses.
    """
    if not report.model.files:
        raise ValueError("a certificate is about a model file: certify a path")
    asked = [entry for entry in report.rule_sets if entry.asked]
    names = {entry.name for entry in asked}
    collecting = {entry.name for entry in asked if entry.collects}
    rules = [
        rule
        for rule in report.rules
        if rule.rule_set in names and not (rule.rule_set in collecting and rule.id == INFERENCE)
    ]
    domain = report.domain
    used = {finding.waiver for rule in rules for finding in rule.findings}
    waivers = [waiver for waiver in dict.fromkeys(report.waivers) if waiver in used]
    first, *others = ((name, sha256) for name, _, sha256 in report.model.files)
    return {
        "_type": STATEMENT_TYPE,
        "predicateType": PREDICATE_TYPE,
        "subject": [{"digest": {"sha256": sha256}, "name": name} for name, sha256 in (first, *sorted(others))],
        "predicate": {
            **_added(report),
            "conditions": {
                entry.name: list(domain.terms if entry.collects == "require" else domain.narrowing)
                for entry in asked
                if entry.collects and domain is not None
            },
            "model": {
                "functions": [list(function) for function in report.model.functions],
                "graphs": report.model.graphs,
                "ir_version": report.model.ir_version,
                "nodes": report.model.nodes,
                "opsets": [[domain, version] for domain, version in report.model.opsets],
                "source": report.model.source,
                "tensors": report.model.tensors,
            },
            "not_examined": list(report.not_examined),
            "obligations": sum(_obligations(rule) for rule in rules if rule.counted),
            "rule_sets": [_rule_set(entry, asked, rules) for entry in asked],
            "rules": [_rule(rule) for rule in rules],
            "sizes": [[label, low, high] for label, low, high in (domain.sizes if collecting and domain else ())],
            "tools": dict(report.tools),
            "verdict": report.verdict.value,
            **({"waivers": [_waiver(waiver) for waiver in waivers]} if waivers else {}),
            "witnesses": _witnesses(rules),
        },
    }


def _added(report: Report) -> dict[str, Json]:
    """The texts of the user's own that the report rests on, by the names of their files without folders."""
    named = sorted((PurePath(name).name, sha256) for name, sha256 in report.added)
    return {"added": [{"digest": {"sha256": sha256}, "name": name} for name, sha256 in named]} if named else {}


def _waiver(waiver: Waiver) -> Json:
    """The whole text of a waiver, but not where it stands."""
    return {name: value for name, value in asdict(waiver).items() if name != "source"}


def _rule_set(entry: RuleSetResult, asked: Sequence[RuleSetResult], rules: list[RuleResult]) -> dict[str, Json]:
    """strict is stated where it makes a difference, so that it can be replayed."""
    parts = [entry.name]
    for part in parts:
        parts += [name for other in asked if other.name == part for name in other.includes if name not in parts]
    own = [rule for rule in rules if rule.rule_set == entry.name]
    lenient = any(rule.status in UNCOUNTED or (rule.counted and rule.verdict in LEFT_OPEN) for rule in own)
    return {
        "digest": entry.digest,
        "includes": list(entry.includes),
        "name": entry.name,
        "obligations": sum(_obligations(rule) for rule in rules if rule.counted and rule.rule_set in parts),
        "strict": entry.strict and lenient,
        "variant": entry.variant,
        "verdict": entry.verdict.value,
    }


def _rule(rule: RuleResult) -> dict[str, Json]:
    return {
        "besides": {verdict.value: _findings(findings, verdict) for verdict, findings in rule.besides.items()},
        "constraint": rule.constraint,
        "counted": rule.counted,
        "findings": _findings(rule.findings, rule.verdict),
        "id": rule.id,
        "obligations": _obligations(rule),
        "rule_set": rule.rule_set,
        "statement": hashlib.sha256(rule.statement.encode("utf-8", "surrogatepass")).hexdigest(),
        "status": rule.status,
        "total": rule.total_findings - _again(rule, rule.verdict),
        "verdict": rule.verdict.value,
        **({"waived": _waived(rule)} if rule.waived else {}),
    }


def _waived(rule: RuleResult) -> int:
    """The number of places, of those that `total` counts, that a waiver accepts."""
    if not _again(rule, rule.verdict):
        return rule.waived
    return len({canonical(_finding(it, rule.verdict)) for it in rule.findings if it.waiver is not None})


def _obligations(rule: RuleResult) -> int:
    """The number of places that data decide; a node of which several parts or outputs are left to data is one."""
    return rule.obligations - _again(rule, RuleVerdict.OBLIGATION)


def _again(rule: RuleResult, verdict: RuleVerdict) -> int:
    """The number of places with a verdict that are listed again, in the same words; 0 where not all are listed."""
    places = rule.left_to(verdict)
    stated = rule.obligations if verdict is RuleVerdict.OBLIGATION else rule.total_findings
    if stated > len(places) or len(places) > LISTED:
        return 0
    return len(places) - len(_findings(places, verdict))


def _findings(findings: Sequence[Finding], verdict: RuleVerdict) -> list[Json]:
    """The first places; of one that is listed again, the first."""
    shown = [_finding(finding, verdict) for finding in findings[:LISTED]]
    return list({canonical(item): item for item in shown}.values())


def _finding(finding: Finding, verdict: RuleVerdict) -> dict[str, Json]:
    """An obligation is what the rule says at that node: its condition in other words is not carried."""
    bare = verdict is RuleVerdict.OBLIGATION
    witness = {key: value for key, value in finding.witness.items() if not (bare and key == "condition")}
    return {"where": finding.where, "witness": witness}


def _witnesses(rules: list[RuleResult]) -> dict[str, Json]:
    """One witness for each constraint that holds: rules of several sets share it."""
    witnesses: dict[str, Json] = {}
    for rule in rules:
        if rule.verdict is RuleVerdict.HOLDS:
            witness = dict(rule.evidence)
            if witness.get("kind") == "nodes":  # how many were asked is no claim
                witness = {"kind": "nodes"}
            if "kind" not in witness:
                raise ValueError("the report has no witnesses: certify with witnesses=True")
            if witnesses.setdefault(rule.constraint, witness) != witness:
                raise InternalError(f"two rules give different evidence for the constraint {rule.constraint}")
    return witnesses


# ---- To and from bytes --------------------------------------------------------------------------


def canonical(value: Json) -> bytes:
    """The canonical form: JSON in ASCII, keys sorted, no blanks, no floats, integers of at most 53 bits."""
    _exact(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def seal(statement: Mapping[str, Json]) -> bytes:
    """The bytes of a statement: its canonical form with `predicate.seal`, the SHA-256 of the form without it.

    The seal finds damage, it proves nothing: whoever changes a statement can seal it again.
    """
    predicate = statement.get("predicate")
    if not isinstance(predicate, dict):
        raise ModelError("certificate: `predicate` must be an object")
    bare: dict[str, Json] = {**statement, "predicate": {key: predicate[key] for key in predicate if key != "seal"}}
    digest = hashlib.sha256(canonical(bare)).hexdigest()
    return canonical({**statement, "predicate": {**predicate, "seal": digest}}) + b"\n"


def _exact(value: Json) -> None:
    """Raises ModelError for what has no canonical form."""
    match value:
        case bool() | str() | None:
            pass
        case int():
            if abs(value) > INTEGER_LIMIT:
                raise ModelError(f"certificate: the integer {value} has more than 53 bits, on which readers differ")
        case list():
            if not all(type(item) is int and -INTEGER_LIMIT <= item <= INTEGER_LIMIT for item in value):
                for item in value:
                    _exact(item)
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ModelError("certificate: every key must be a text")
                _exact(item)
        case _:
            raise ModelError(f"certificate: a value of type {type(value).__name__} has no canonical form")
