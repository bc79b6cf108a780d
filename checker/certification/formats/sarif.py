"""The report as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), for code scanning services.

Every rule that does not hold gives results: `fail` with a level for each violation of a counted rule, `open` for an
undecided one, `review` for one that free sizes or data decide (`fail` and `open` in strict mode). Those that hold are
listed in the properties of the run. A binary model has no lines, so a result's region is line 1 of the model file; its
place is the logical location, a path of the path grammar.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from sonnx.spec.project import Waiver

from ..report import WORST_FIRST, Finding, Json, Outcome, Report, RuleResult, RuleVerdict
from .words import accepts, warning

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
BASE = "%SRCROOT%"
"""The name by which services know the folder of the sources."""


KINDS = {
    RuleVerdict.VIOLATED: "fail",
    RuleVerdict.UNKNOWN: "open",
    RuleVerdict.CONDITIONAL: "review",
    RuleVerdict.OBLIGATION: "review",
}
STRICT = {**KINDS, RuleVerdict.CONDITIONAL: "fail", RuleVerdict.OBLIGATION: "open"}


def to_sarif(outcomes: Sequence[Outcome]) -> str:
    """The reports on models as indented ASCII SARIF with a final newline, one run for all; equal reports give equal
    bytes. A model without a report is a notification that the tool did not examine it."""
    reports = [outcome.report for outcome in outcomes if outcome.report is not None]
    rules = {_rule_id(rule): rule for report in reports for rule in report.rules if _asked(report, rule)}
    indices = {name: index for index, name in enumerate(rules)}
    artifacts: list[Json] = []
    results: list[Json] = []
    for report in reports:
        first = len(artifacts)
        artifacts += [_artifact(report, position) for position in range(len(report.model.files))]
        for rule in report.rules:
            if _asked(report, rule):
                results += _results(report, rule, indices[_rule_id(rule)], first)
    failed: list[Json] = [
        {"level": "error", "message": {"text": outcome.error}} for outcome in outcomes if outcome.report is None
    ]
    failed += [
        {"level": "warning", "message": {"text": warning(waiver, why)}}
        for report in reports
        for waiver, why in report.unused
    ]
    run: Json = {
        "tool": {
            "driver": {
                "name": "sonnx",
                "version": next((dict(report.tools).get("sonnx", "") for report in reports), ""),
                "rules": [_descriptor(rule) for rule in rules.values()],
            }
        },
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder in which sonnx was called."}}},
        "artifacts": artifacts,
        "results": results,
        "invocations": [{"executionSuccessful": len(reports) == len(outcomes), "toolExecutionNotifications": failed}],
        "columnKind": "unicodeCodePoints",
        "properties": {"models": [_summary(report) for report in reports]},
    }
    log: Json = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def _summary(report: Report) -> Json:
    """The verdict on a model, with the rules that hold: they are no results, which services show as alerts."""
    holding = [_rule_id(it) for it in report.rules if _asked(report, it) and it.verdict is RuleVerdict.HOLDS]
    return {
        "model": report.model.path or report.model.name,
        "verdict": report.verdict.value,
        "conditions": list(report.conditions),
        "obligations": report.obligations,
        "ruleSets": {rule_set.name: rule_set.verdict.value for rule_set in report.rule_sets},
        "holding": list[Json](holding),
        **({"added": {name: f"sha256 {digest}" for name, digest in report.added}} if report.added else {}),
    }


def _artifact(report: Report, position: int) -> Json:
    name, size, digest = report.model.files[position]
    return {
        "location": _uri(report, name),
        "length": size,
        "hashes": {"sha-256": digest},
        "roles": ["analysisTarget"],
    }


def _uri(report: Report, name: str) -> dict[str, Json]:
    """The place of a file of the model: relative to where the tool was called where it lies below, else in full."""
    if not report.model.path:
        return {"uri": _quoted(name), "uriBaseId": BASE}
    file = Path(report.model.path).absolute().parent / name
    if file.is_relative_to(Path.cwd()):
        return {"uri": _quoted(file.relative_to(Path.cwd()).as_posix()), "uriBaseId": BASE}
    return {"uri": f"file://{_quoted(file.as_posix())}"}


def _quoted(path: str) -> str:
    return quote(path.encode("utf-8", "surrogateescape"))


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


def _results(report: Report, rule: RuleResult, index: int, artifact: int) -> Iterator[Json]:
    """The results of a rule, none where it holds. artifact: the position of the model file among all."""
    strict = any(rule_set.name == rule.rule_set and rule_set.strict for rule_set in report.rule_sets)
    for verdict in WORST_FIRST if rule.verdict is not RuleVerdict.HOLDS else ():
        kind = (STRICT if strict else KINDS)[verdict]
        level = "none" if kind != "fail" else "error" if rule.counted else "note"
        whole = (Finding("/", rule.reason, {}),) if verdict is rule.verdict else ()
        for finding in rule.left_to(verdict) or whole:
            yield {
                "ruleId": _rule_id(rule),
                "ruleIndex": index,
                "kind": kind,
                "level": level,
                **_place(report, rule, finding, artifact),
            }


def _place(report: Report, rule: RuleResult, finding: Finding, artifact: int) -> dict[str, Json]:
    text = f"{finding.message}. {finding.suggestion}" if finding.suggestion else finding.message
    identity = f"{_rule_id(rule)}\n{finding.where}\n{json.dumps(dict(finding.witness), sort_keys=True)}"
    return {
        "message": {"text": text or rule.title},
        "locations": [_location(report, finding.where, artifact)],
        "partialFingerprints": {"sonnxPlace/v1": hashlib.sha256(identity.encode()).hexdigest()},
        "properties": {"witness": dict(finding.witness)},
        **({"suppressions": [_suppression(finding.waiver)]} if finding.waiver is not None else {}),
    }


def _suppression(waiver: Waiver) -> Json:
    return {"kind": "external", "status": "accepted", "justification": accepts(waiver)}


def _location(report: Report, where: str, artifact: int) -> Json:
    location: dict[str, Json] = {"logicalLocations": [{"fullyQualifiedName": where, "kind": "element"}]}
    if report.model.files:
        location["physicalLocation"] = {
            "artifactLocation": {**_uri(report, report.model.files[0][0]), "index": artifact},
            "region": {"startLine": 1},
        }
    return location
