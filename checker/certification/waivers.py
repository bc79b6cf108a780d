"""Waivers: violations that a project accepts, with reason, name and last day.

A waiver is about the places of one rule. Rules without which a run gets stuck have none: the constraint says so in its
text (`unwaivable`), and so do all requirements of operators.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from difflib import get_close_matches
from functools import cache
from pathlib import PurePath

from sonnx.spec.language.syntax import clause
from sonnx.spec.library import Specification
from sonnx.spec.project import SettingsError, Waiver

from . import requirements
from .report import Finding, RuleResult, RuleVerdict, Stated
from .rule_sets import collects


def check(waivers: Sequence[Waiver], specification: Specification) -> None:
    """Raises SettingsError for a waiver of a rule that there is not, or that no waiver may be about."""
    rules = _rules(specification)
    for waiver in waivers:
        reasons = [clause(specification.constraints[name].clauses, "unwaivable") for name in rules.get(waiver.rule, ())]
        kind = _statement(waiver.rule, specification) if waiver.rule not in rules else ""
        if kind is None:
            close = get_close_matches(waiver.rule, rules, 1)
            advice = f"did you mean {close[0]!r}?" if close else "`sonnx certify --explain RULESET` lists the rules"
            raise SettingsError(f"{waiver.source}: there is no rule {waiver.rule!r}: {advice}")
        if reason := next(filter(None, reasons), REQUIRED if kind == "require" else None):
            raise SettingsError(f"{waiver.source}: the rule {waiver.rule!r} cannot be waived: {reason}")


REQUIRED = "a run gets stuck where a requirement of an operator fails"


def _statement(rule: str, specification: Specification) -> str | None:
    """The kind of the statement of an operator that a rule is, require or restrict; None for no rule."""
    named, _, name = rule.rpartition(" ")
    collected = collects(specification.profiles[named]) if named in specification.profiles else ""
    found = requirements.find(specification.operators, name)
    if found is not None:
        kind = found[0].statements[found[1]].kind
        return kind if not named or collected == kind else None
    return "require" if collected == "require" or name in requirements.GENERAL else None


def _rules(specification: Specification) -> Mapping[str, list[str]]:
    """The constraints of each rule, by `RULE` and by `RULESET RULE`."""
    named: dict[str, list[str]] = {}
    for profile in specification.profiles.values():
        for rule in profile.rules:
            for name in (rule.id, f"{profile.name} {rule.id}"):
                named.setdefault(name, []).append(rule.constraint)
    return named


# ---- On a report --------------------------------------------------------------------------------


def concerning(waivers: Sequence[Waiver], path: str) -> tuple[Waiver, ...]:
    """The waivers for a model: those whose pattern fits its path, or the name of its file."""
    names = (PurePath(path).as_posix(), PurePath(path).name)
    return tuple(waiver for waiver in waivers if any(fits(waiver.model, name) for name in names))


def accepted(rule: RuleResult, waivers: Sequence[Waiver]) -> RuleResult:
    """The rule with the waivers at those of its violations that they accept."""
    own = [waiver for waiver in waivers if waiver.rule in (rule.id, f"{rule.rule_set} {rule.id}")]
    if rule.verdict is not RuleVerdict.VIOLATED or not own:
        return rule
    return replace(rule, findings=tuple(_accepted(finding, own) for finding in rule.findings))


def _accepted(finding: Finding, waivers: Sequence[Waiver]) -> Finding:
    waiver = next((it for it in waivers if fits(it.place, finding.where)), None)
    return finding if waiver is None else replace(finding, waiver=waiver)


def in_force(waivers: Sequence[Waiver], today: date) -> Stated:
    """The waivers, by whether their last day is past."""
    return Stated(tuple(it for it in waivers if not it.ended(today)), tuple(it for it in waivers if it.ended(today)))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(char, re.escape(char)) for char in text), re.DOTALL)


def fits(pattern: str, text: str) -> bool:
    """`*` stands for any characters, `?` for one; every other character for itself."""
    return _pattern(pattern).fullmatch(text) is not None
