"""The report as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), for code scanning services.

Every rule gives results: `fail` with a level for each violation of a counted rule, `open` for an undecided one,
`review` for one that free sizes or data decide (`fail` and `open` in strict mode), `pass` for one that holds. A binary
model has no lines, so a result's region is line 1 of the model file; its place is the logical location, a path of the
path grammar.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from urllib.parse import quote

from ..report import WORST_FIRST, Finding, Json, Report, RuleResult, RuleVerdict

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


KINDS = {
    RuleVerdict.VIOLATED: "fail",
    RuleVerdict.UNKNOWN: "open",
    RuleVerdict.CONDITIONAL: "review",
    RuleVerdict.OBLIGATION: "review",
}
STRICT = {**KINDS, RuleVerdict.CONDITIONAL: "fail", RuleVerdict.OBLIGATION: "open"}


def to_sarif(report: Report) -> str:
    """The report as indented ASCII SARIF with a final newline; equal reports give equal bytes."""
    rules = [rule for rule in report.rules if _asked(report, rule)]
    indices = {_rule_id(rule): index for index, rule in enumerate(rules)}
    run: Json = {
        "tool": {
            "driver": {
                "name": "sonnx",
                "version": dict(report.tools).get("sonnx", ""),
                "rules": [_descriptor(rule) for rule in rules],
            }
        },
        "artifacts": [
            {
                "location": {"uri": quote(name)},
                "length": size,
                "hashes": {"sha-256": digest},
                "roles": ["analysisTarget"],
            }
            for name, size, digest in report.model.files
        ],
        "results": [result for rule in rules for result in _results(report, rule, indices[_rule_id(rule)])],
        "columnKind": "unicodeCodePoints",
        "properties": {
            "verdict": report.verdict.value,
            "conditions": list(report.conditions),
            "obligations": report.obligations,
            "ruleSets": {rule_set.name: rule_set.verdict.value for rule_set in report.rule_sets},
            **({"added": {name: f"sha256 {digest}" for name, digest in report.added}} if report.added else {}),
        },
    }
    log: Json = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def _asked(report: Report, rule: RuleResult) -> bool:
    return any(rule_set.name == rule.rule_set and rule_set.asked for rule_set in report.rule_sets)


def _rule_id(rule: RuleResult) -> str:
    return f"{rule.rule_set}/{rule.id}"


def _descriptor(rule: RuleResult) -> Json:
    descriptor: dict[str, Json] = {
        "id": _rule_id(rule),
        "name": rule.constraint,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.statement},
        "defaultConfiguration": {"level": "error" if rule.counted else "note"},
        "properties": {"status": rule.status, "counted": rule.counted, "quote": rule.quote, "source": rule.source},
    }
    if rule.note:
        descriptor["help"] = {"text": rule.note}
    return descriptor


def _results(report: Report, rule: RuleResult, index: int) -> Iterator[Json]:
    base: dict[str, Json] = {"ruleId": _rule_id(rule), "ruleIndex": index}
    match rule.verdict:
        case RuleVerdict.HOLDS:
            yield {**base, "kind": "pass", "level": "none", "message": {"text": f"{rule.title}: holds"},
                   "locations": [_location(report, "/")]}  # fmt: skip
        case _:
            strict = any(rule_set.name == rule.rule_set and rule_set.strict for rule_set in report.rule_sets)
            for verdict in WORST_FIRST:
                kind = (STRICT if strict else KINDS)[verdict]
                level = "none" if kind != "fail" else "error" if rule.counted else "note"
                whole = (Finding("/", rule.reason, {}),) if verdict is rule.verdict else ()
                for finding in rule.left_to(verdict) or whole:
                    yield {**base, "kind": kind, "level": level, **_place(report, rule, finding)}


def _place(report: Report, rule: RuleResult, finding: Finding) -> dict[str, Json]:
    text = f"{finding.message}. {finding.suggestion}" if finding.suggestion else finding.message
    identity = f"{_rule_id(rule)}\n{finding.where}\n{json.dumps(dict(finding.witness), sort_keys=True)}"
    return {
        "message": {"text": text or rule.title},
        "locations": [_location(report, finding.where)],
        "partialFingerprints": {"sonnxPlace/v1": hashlib.sha256(identity.encode()).hexdigest()},
        "properties": {"witness": dict(finding.witness)},
    }


def _location(report: Report, where: str) -> Json:
    location: dict[str, Json] = {"logicalLocations": [{"fullyQualifiedName": where, "kind": "element"}]}
    if report.model.files:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(report.model.files[0][0]), "index": 0},
            "region": {"startLine": 1},
        }
    return location
