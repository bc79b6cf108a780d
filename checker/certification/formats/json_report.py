"""The report as JSON; `report.schema.json` is its schema. Keys are sorted: equal reports give equal bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import Final

from ..report import WORST_FIRST, Domain, Finding, Json, Outcome, Report, RuleResult, RuleSetResult, RuleVerdict

SCHEMA: Final = "report.schema.json"


def schema_text() -> str:
    """The schema of reports."""
    return files(__package__).joinpath(SCHEMA).read_text(encoding="utf-8")


def pages() -> dict[str, str]:
    """The schema as a file beside the site of the specification."""
    return {SCHEMA: schema_text()}


@cache
def _identity() -> str:
    identity: str = json.loads(schema_text())["$id"]
    return identity


def to_json(report: Report) -> str:
    """The report as indented ASCII JSON with a final newline."""
    return json.dumps(to_data(report), indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def to_lines(outcomes: Sequence[Outcome]) -> str:
    """One line of JSON for each model: its path, its exit code, its report, and the error where there is none."""
    return "".join(
        json.dumps(
            {
                "path": outcome.name,
                "exit_code": outcome.code,
                "error": outcome.error,
                "report": None if outcome.report is None else to_data(outcome.report),
            },
            sort_keys=True,
            ensure_ascii=True,
        )
        + "\n"
        for outcome in outcomes
    )


def to_data(report: Report) -> dict[str, Json]:
    """The report as JSON data."""
    model = report.model
    return {
        "$schema": _identity(),
        "model": {
            "name": model.name,
            "source": model.source,
            "files": [{"name": name, "size": size, "sha256": digest} for name, size, digest in model.files],
            "ir_version": model.ir_version,
            "opsets": [{"domain": domain, "version": version} for domain, version in model.opsets],
            "functions": [list(function) for function in model.functions],
            "producer": model.producer,
            "graphs": model.graphs,
            "nodes": model.nodes,
            "tensors": model.tensors,
        },
        "verdict": report.verdict.value,
        "conditions": list(report.conditions),
        "obligations": report.obligations,
        "rule_sets": [_rule_set(rule_set) for rule_set in report.rule_sets],
        "rules": [_rule(rule) for rule in report.rules],
        "domain": None if report.domain is None else _domain(report.domain),
        "not_examined": list(report.not_examined),
        "tools": [{"name": name, "version": version} for name, version in report.tools],
        **_waivers(report),
        **({"added": [{"name": name, "sha256": digest} for name, digest in report.added]} if report.added else {}),
    }


def _waivers(report: Report) -> dict[str, Json]:
    """The waivers that accept something, and those that do not, with the reason; nothing where none is stated."""
    if not (report.waivers or report.unused):
        return {}
    unused: list[Json] = [{**asdict(waiver), "why": why} for waiver, why in report.unused]
    return {"waivers": {"applied": [asdict(waiver) for waiver in report.applied], "unused": unused}}


def _rule_set(rule_set: RuleSetResult) -> Json:
    return {name: value for name, value in asdict(rule_set).items() if name != "collects"}


def _rule(rule: RuleResult) -> Json:
    places: dict[RuleVerdict, list[Json]] = {v: [_finding(it) for it in rule.left_to(v)] for v in WORST_FIRST}
    return {
        "rule_set": rule.rule_set,
        "id": rule.id,
        "title": rule.title,
        "statement": rule.statement,
        "quote": rule.quote,
        "source": rule.source,
        "status": rule.status,
        "note": rule.note,
        "constraint": rule.constraint,
        "counted": rule.counted,
        "verdict": rule.verdict.value,
        "reason": rule.reason,
        "violations": places[RuleVerdict.VIOLATED],
        "undecided": places[RuleVerdict.UNKNOWN],
        "conditional": places[RuleVerdict.CONDITIONAL],
        "obligations": places[RuleVerdict.OBLIGATION],
        "total": rule.total_findings,
        **({"waived": rule.waived} if rule.waived else {}),
        "total_obligations": rule.obligations,
        "solver": list(rule.solver),
        "core": list(rule.core),
        "places": rule.places,
        "holding": list(rule.holding),
    }


def _domain(domain: Domain) -> Json:
    return {
        "sizes": [{"name": name, "least": least, "most": most} for name, least, most in domain.sizes],
        "conditions": list(domain.conditions),
        "terms": list(domain.terms),
        "example": dict(domain.example),
        "requirements": {
            "holds": domain.held,
            "violated": domain.violated,
            "unknown": domain.unknown,
            "conditional": domain.conditional,
            "obligation": domain.obligations,
        },
        "undefined": domain.undefined,
        "without_meaning": list(domain.without_meaning),
    }


def _finding(finding: Finding) -> Json:
    return {
        "where": finding.where,
        "message": finding.message,
        "witness": dict(finding.witness),
        "suggestion": finding.suggestion,
        "condition": finding.condition,
        **({"waiver": asdict(finding.waiver)} if finding.waiver is not None else {}),
    }
