"""The outcomes as JUnit XML, which build servers show: a suite for each model, a case for each rule.

The form is that of Jenkins' JUnit plug-in (`junit-10.xsd`). A violated rule is a failure, an undecided one an error;
what does not count is skipped; what sizes or data decide passes and says so (in strict mode it is what strict makes of
it).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from sonnx.spec.terminal import inert

from ..report import LEFT_OPEN, Finding, Outcome, Report, RuleResult, RuleVerdict
from .words import accepts

TOLD = 10
"""Places that the message of a case lists."""


def to_junit(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as one document; equal outcomes give equal texts."""
    root = ElementTree.Element("testsuites", name="sonnx certify")
    for outcome in outcomes:
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(outcome.name))
        if outcome.report is None:
            case = ElementTree.SubElement(suite, "testcase", name="the model can be judged", classname="model")
            ElementTree.SubElement(case, "error", message=_xml(outcome.error))
        else:
            _cases(suite, outcome.report)
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(sum(1 for _ in suite.iter(tag))))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _cases(suite: ElementTree.Element, report: Report) -> None:
    asked = {rule_set.name: rule_set.strict for rule_set in report.rule_sets if rule_set.asked}
    for rule in report.rules:
        if rule.rule_set in asked:
            case = ElementTree.SubElement(suite, "testcase", name=_xml(rule.id), classname=_xml(rule.rule_set))
            _judged(case, rule, strict=asked[rule.rule_set])


def _judged(case: ElementTree.Element, rule: RuleResult, *, strict: bool) -> None:
    verdict, told = rule.verdict, _xml(_told(rule))
    if verdict is RuleVerdict.HOLDS:
        return
    if rule.accepted:
        ElementTree.SubElement(case, "skipped", message=f"waived: {told}")
    elif not rule.counted:
        ElementTree.SubElement(case, "skipped", message=f"{verdict.value}, not counted: {told}")
    elif verdict is RuleVerdict.VIOLATED or (strict and verdict is RuleVerdict.CONDITIONAL):
        ElementTree.SubElement(case, "failure", message=told, type=verdict.value)
    elif verdict is RuleVerdict.UNKNOWN or strict:
        ElementTree.SubElement(case, "error", message=told, type=verdict.value)
    elif verdict in LEFT_OPEN:
        ElementTree.SubElement(case, "system-out").text = f"{verdict.value}: {told}"


def _told(rule: RuleResult) -> str:
    lines = [_line(it) for it in rule.findings[:TOLD]]
    rest = [f"and {rule.total_findings - TOLD} more places"] if rule.total_findings > TOLD else []
    return "\n".join([rule.statement, *lines, *rest] if lines else [rule.reason or rule.statement])


def _line(finding: Finding) -> str:
    waived = f" (waived: {accepts(finding.waiver)})" if finding.waiver is not None else ""
    return f"{finding.where}: {finding.message}{waived}"


def _xml(text: str) -> str:
    """The text without characters that XML 1.0 has not."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", inert(text))
