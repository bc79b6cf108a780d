"""The report for a terminal or a pipe: a table of rules, each finding, one line for each other rule set, the verdict.

Text from a model never reaches the terminal as it is: control characters are shown as escapes, nothing is markup.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text
from sonnx.semantics.consoles import print_line
from sonnx.spec.inert import inert

from ..report import Report, RuleResult, RuleSetResult, RuleVerdict, Verdict
from ..rule_sets import NEWEST
from .domain import sentence
from .witnesses import spelled

SHOWN = 10
"""How many findings of one rule are printed; JSON and HTML hold more."""

STYLES = {
    RuleVerdict.HOLDS: "green",
    RuleVerdict.VIOLATED: "bold red",
    RuleVerdict.UNKNOWN: "yellow",
    Verdict.CONFORMS: "bold green",
    Verdict.VIOLATES: "bold red",
    Verdict.UNDECIDED: "bold yellow",
}


def write(report: Report, console: Console) -> None:
    """Print the report. Colours are the console's business; the width of a pipe is fixed, so its text is stable."""
    print_line(console, f"model   {inert(report.model.name)} ({_sizes(report)})")
    for _, _, digest in report.model.files[:1]:
        print_line(console, f"sha256  {digest}")
    for rule_set in (r for r in report.rule_sets if r.asked):
        rules = [r for r in report.rules if r.rule_set == rule_set.name]
        console.print()
        console.print(_table(rule_set, rules))
        for rule in rules:
            _findings(console, rule)
    console.print()
    rest = [r for r in report.rule_sets if not r.asked]
    if rest:
        print_line(console, "Other rule sets, not part of the verdict:")
    for rule_set in rest:
        rules = [r for r in report.rules if r.rule_set == rule_set.name]
        named = inert(rule_set.name).ljust(18)
        print_line(console, Text.assemble("  ", (named, ""), _verdict(rule_set), _because(rules)))
    if report.domain is not None and (said := sentence(report.domain)):
        print_line(console, said)
    print_line(console, Text.assemble(*_sentence(report)))


def _sizes(report: Report) -> str:
    model = report.model
    opsets = ", ".join(f"{inert(domain) or 'ai.onnx'} {version}" for domain, version in model.opsets)
    counted = [_count(model.nodes, "node"), _count(model.tensors, "tensor"), _count(model.graphs, "graph")]
    return f"{', '.join(counted)}, opset {opsets or 'none'}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _table(rule_set: RuleSetResult, rules: list[RuleResult]) -> Table:
    table = Table(title=f"{_titled(rule_set)}", title_justify="left", title_style="bold", expand=False)
    table.add_column("rule", no_wrap=True)
    table.add_column("title")
    table.add_column("status")
    table.add_column("verdict", no_wrap=True)
    table.add_column("places", justify="right")
    folded = [rule for rule in rules if rule.folded]
    for rule in (rule for rule in rules if not rule.folded):
        label = rule.verdict.value if rule.counted else f"{rule.verdict.value} (not counted)"
        table.add_row(
            inert(rule.id),
            inert(rule.title),
            inert(rule.status),
            Text(label, style=STYLES[rule.verdict] if rule.counted else "dim"),
            str(rule.total_findings or ""),
        )
    if folded:
        places = sum(rule.places for rule in folded)
        holds = Text(RuleVerdict.HOLDS.value, style=STYLES[RuleVerdict.HOLDS])
        table.add_row(_count(len(folded), "requirement"), "of the operators in use", "", holds, str(places))
    return table


def _titled(rule_set: RuleSetResult) -> str:
    return f"{_named(rule_set)}: {rule_set.verdict}"


def _findings(console: Console, rule: RuleResult) -> None:
    """The places at which a rule fails; of an uncounted rule, and of one that is not decided, a line each."""
    if rule.verdict is RuleVerdict.HOLDS:
        return
    console.print()
    head = f"{rule.rule_set} {rule.id} {rule.verdict.value}" + ("" if rule.counted else ", not counted")
    print_line(console, Text.assemble((inert(head), STYLES[rule.verdict]), f"  {inert(rule.statement)}"))
    if rule.reason:
        print_line(console, f"  why        {inert(rule.reason)}")
    shown = SHOWN if rule.verdict is RuleVerdict.VIOLATED else 3
    for finding in rule.findings[:shown]:
        print_line(console, f"  at         {inert(finding.where)}")
        print_line(console, f"             {inert(finding.message)}")
        if finding.witness:
            witness = ", ".join(f"{name} = {inert(spelled(value))}" for name, value in finding.witness.items())
            print_line(console, f"  witness    {witness}")
        if finding.suggestion:
            print_line(console, f"  do         {inert(finding.suggestion)}")
    if rule.total_findings > shown:
        print_line(console, f"  ... and {rule.total_findings - shown} more places (--format json lists up to 100)")


def _verdict(rule_set: RuleSetResult) -> tuple[str, str]:
    return rule_set.verdict.value, STYLES[rule_set.verdict]


def _because(rules: list[RuleResult]) -> str:
    """The counted rules behind a verdict, by id."""
    for verdict in (RuleVerdict.VIOLATED, RuleVerdict.UNKNOWN):
        ids = [inert(rule.id) for rule in rules if rule.counted and rule.verdict is verdict]
        if ids:
            listed = ", ".join(ids[:6]) + (f" and {len(ids) - 6} more" if len(ids) > 6 else "")
            return f"  ({verdict.value}: {listed})"
    return ""


def _sentence(report: Report) -> list[str | tuple[str, str]]:
    asked = {r.name for r in report.rule_sets if r.asked}
    names = " and ".join(_named(r) for r in report.rule_sets if r.asked)
    why = _because([rule for rule in report.rules if rule.rule_set in asked]).removeprefix(" ")
    subject = inert(report.model.name) or "the model"
    verb, preposition = {
        Verdict.CONFORMS: ("CONFORMS", "to "),
        Verdict.VIOLATES: ("VIOLATES", ""),
        Verdict.UNDECIDED: ("is UNDECIDED", "for "),
    }[report.verdict]
    return [f"{subject} ", (verb, STYLES[report.verdict]), f" {preposition}{names}{why}."]


def _named(rule_set: RuleSetResult) -> str:
    """The name of a rule set, its variant when it is not the default one, and whether all its rules count."""
    variant = f"@{rule_set.variant}" if rule_set.variant not in ("", NEWEST) else ""
    return inert(rule_set.name) + variant + (" (strict)" if rule_set.strict else "")
