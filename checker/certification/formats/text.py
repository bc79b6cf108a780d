"""The report for a terminal or a pipe: a summary, each finding, a table of rules, and the verdict once more at the end.

An included rule set shows the rules that do not simply hold; the rule set that was asked for shows all.

Text from a model never reaches the terminal as it is: control characters are shown as escapes, nothing is markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text
from sonnx.spec.project import Waiver
from sonnx.spec.terminal import inert, one_line, print_line

from ..report import Finding, Outcome, Report, RuleResult, RuleSetResult, RuleVerdict, Verdict
from ..rule_sets import NEWEST
from .words import accepts, because, counted, grounds, label, provided, sentence, spelled, standing, totals, warning

SHOWN = 10
"""The most findings of one rule that are printed; JSON and HTML hold more."""
FEW = 3
"""The most that are printed of a rule that does not count, or is not decided."""

WIDE = 90
"""Columns that a table of rules with their titles needs."""

STYLES = {
    RuleVerdict.HOLDS: "green",
    RuleVerdict.VIOLATED: "bold red",
    RuleVerdict.UNKNOWN: "yellow",
    RuleVerdict.CONDITIONAL: "cyan",
    RuleVerdict.OBLIGATION: "cyan",
    Verdict.CONFORMS: "bold green",
    Verdict.VIOLATES: "bold red",
    Verdict.UNDECIDED: "bold yellow",
}


def write(report: Report, console: Console) -> None:
    """Print the report. Colours are the console's business; the width of a pipe is fixed, so its text is stable."""
    _summary(report, console)
    asked = [r for r in report.rule_sets if r.asked]
    for rule_set, rule in ((s, rule) for s in asked for rule in _rules(report, s)):
        if rule.counted or not rule_set.included_by:
            _findings(console, rule)
    for rule_set in asked:
        rules = _rules(report, rule_set)
        if rules and not (rule_set.included_by and all(_folded(rule_set, rule) for rule in rules)):
            console.print()
            console.print(_table(rule_set, rules, console.width))
    console.print()
    print_line(console, Text.assemble(*_sentence(report)))


def _summary(report: Report, console: Console) -> None:
    """The model, the verdict, the verdict on each rule set in a line, and what the verdicts depend on."""
    rows: list[tuple[str, Text | str]] = [("model", f"{inert(report.model.name)} ({_sizes(report)})")]
    rows += [("sha256", digest) for _, _, digest in report.model.files[:1]]
    rows += [
        ("added", f"{inert(name)}, a text that is not of the specification, sha256 {digest}")
        for name, digest in report.added
    ]
    rows.append(("verdict", Text.assemble(*_sentence(report)[1:])))
    for name, said in rows:
        print_line(console, Text.assemble(f"{name:<8}", said))
    for asked in (True, False):
        listed = [r for r in report.rule_sets if r.asked is asked]
        if listed:
            console.print()
        if listed and not asked:
            print_line(console, "Other rule sets, not part of the verdict:")
        width = max((len(_named(r)) for r in listed), default=0)
        for rule_set in listed:
            named = f"{'' if asked else '  '}{_named(rule_set):<{width}}  "
            rules = _rules(report, rule_set)
            rest = (f"  {_tally(rule_set, rules)}",) if asked else _aside(rule_set, rules)
            print_line(console, Text.assemble(named, _verdict(rule_set), *rest))
    if report.domain is not None and (said := sentence(report.domain)):
        print_line(console, said)
    for waiver, why in report.unused:
        _warn(console, waiver, why)


def _rules(report: Report, rule_set: RuleSetResult) -> list[RuleResult]:
    return [rule for rule in report.rules if rule.rule_set == rule_set.name]


def _tally(rule_set: RuleSetResult, rules: list[RuleResult]) -> str:
    """How many of its own rules have which verdict, which rule sets it includes, and through which it is judged."""
    by = f", included by {' and '.join(map(inert, rule_set.included_by))}" if rule_set.included_by else ""
    more = f", includes {' and '.join(map(inert, rule_set.includes))}" if rule_set.includes else ""
    open_ = [rule for rule in rules if rule.verdict is not RuleVerdict.HOLDS]
    numbers = Counter(standing(rule) for rule in open_ if not rule.listed_elsewhere)
    against = [f"{number} {said}" for said, number in numbers.items()]
    if elsewhere := sum(rule.listed_elsewhere for rule in open_):
        against.append(f"{counted(elsewhere, 'requirement')} of shapes that data decide")
    holding = _holding([rule for rule in rules if rule.verdict is RuleVerdict.HOLDS])
    return f"{', '.join([*against, holding])}{more}{by}"


def _warn(console: Console, waiver: Waiver, why: str) -> None:
    print_line(console, Text(f"warning: {one_line(warning(waiver, why))}", style="yellow"))


def _style(rule: RuleResult) -> str:
    return "dim" if not rule.counted else "magenta" if rule.accepted else STYLES[rule.verdict]


def say(report: Report, console: Console) -> None:
    """Print the verdict alone, one line."""
    print_line(console, Text.assemble(*_sentence(report)))


def summarize(outcomes: Sequence[Outcome], console: Console, *, quiet: bool) -> None:
    """Print a table of several models with their verdicts, and the totals; quiet: the totals alone."""
    if quiet:
        print_line(console, totals(outcomes))
        return
    table = Table(expand=False)
    table.add_column("model", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("why", overflow="fold")
    for outcome in outcomes:
        said = label(outcome)
        why = outcome.error.removeprefix(f"{outcome.name}: ") if outcome.report is None else grounds(outcome.report)
        style = STYLES[outcome.report.verdict] if outcome.report is not None else "bold red"
        table.add_row(one_line(outcome.name), Text(said, style=style), one_line(why.strip(" ():,")))
    console.print(table)
    applied = {waiver for outcome in outcomes if outcome.report for waiver in outcome.report.applied}
    left = {waiver: why for outcome in outcomes if outcome.report for waiver, why in outcome.report.unused}
    for waiver, why in left.items():
        if waiver not in applied:
            _warn(console, waiver, why)
    print_line(console, totals(outcomes))


def _sizes(report: Report) -> str:
    model = report.model
    opsets = ", ".join(f"{inert(domain) or 'ai.onnx'} {version}" for domain, version in model.opsets)
    sizes = [counted(model.nodes, "node"), counted(model.tensors, "tensor"), counted(model.graphs, "graph")]
    return f"{', '.join(sizes)}, opset {opsets or 'none'}"


def _table(rule_set: RuleSetResult, rules: list[RuleResult], width: int) -> Table:
    """The rules; without titles and status where there is no room for them."""
    table = Table(title=f"{_titled(rule_set)}", title_justify="left", title_style="bold", expand=False)
    wide = width >= WIDE
    table.add_column("rule", no_wrap=wide, overflow="fold")
    if wide:
        table.add_column("title")
        table.add_column("status")
    table.add_column("verdict", no_wrap=wide, overflow="fold")
    table.add_column("places", justify="right")

    def row(name: str, title: str, status: str, verdict: Text, places: str) -> None:
        table.add_row(name, *((title, status) if wide else ()), verdict, places)

    folded = [rule for rule in rules if _folded(rule_set, rule)]
    elsewhere = [rule for rule in rules if rule.listed_elsewhere]
    for rule in (rule for rule in rules if not _folded(rule_set, rule) and not rule.listed_elsewhere):
        shown = Text(standing(rule), style=_style(rule))
        row(inert(rule.id), inert(rule.title), inert(rule.status), shown, str(rule.total_findings or ""))
    if elsewhere:
        left = Text(RuleVerdict.OBLIGATION.value, style=STYLES[RuleVerdict.OBLIGATION])
        row(counted(len(elsewhere), "requirement"), "of shapes that data decide: see data-shapes", "", left, "")
    holds = Text(RuleVerdict.HOLDS.value, style=STYLES[RuleVerdict.HOLDS])
    if others := [rule for rule in folded if not rule.folded]:
        row(counted(len(others), "rule"), "of the rule set", "", holds, "")
    if required := [rule for rule in folded if rule.folded]:
        places = sum(rule.places for rule in required)
        row(counted(len(required), "requirement"), "of the operators in use", "", holds, str(places))
    return table


def _folded(rule_set: RuleSetResult, rule: RuleResult) -> bool:
    """A rule is shown with its like, in one line: requirements that hold, and all that holds in a rule set
    which is only included."""
    return rule.folded or (bool(rule_set.included_by) and rule.verdict is RuleVerdict.HOLDS)


def _holding(rules: list[RuleResult]) -> str:
    """The number of rules that hold, and of requirements with their places."""
    required = [rule for rule in rules if rule.folded]
    places = sum(rule.places for rule in required)
    parts = [counted(len(rules) - len(required), "rule")] if len(rules) > len(required) else []
    parts += [f"{counted(len(required), 'requirement')} at {counted(places, 'place')}"] if required else []
    return f"{' and '.join(parts)} hold" if parts else "it has no rule that concerns the model"


def _titled(rule_set: RuleSetResult) -> str:
    by = f", included by {' and '.join(map(inert, rule_set.included_by))}" if rule_set.included_by else ""
    return f"{_named(rule_set)}: {rule_set.verdict}{by}"


def _findings(console: Console, rule: RuleResult) -> None:
    """The places at which a rule fails or is left open; of an uncounted rule, and of one that is not decided, a few."""
    if rule.verdict is RuleVerdict.HOLDS or rule.listed_elsewhere:
        return
    console.print()
    head = f"{rule.rule_set} {rule.id} {standing(rule).replace(' (not counted)', ', not counted')}"
    print_line(console, Text.assemble((inert(head), _style(rule)), f"  {inert(rule.statement)}"))
    if rule.reason and rule.verdict is RuleVerdict.UNKNOWN:
        print_line(console, f"  why        {inert(rule.reason)}")
    shown = SHOWN if rule.counted and rule.verdict is not RuleVerdict.UNKNOWN else FEW
    _places(console, rule.findings, rule.total_findings, shown)
    for verdict, findings in rule.besides.items():
        total = rule.obligations if verdict is RuleVerdict.OBLIGATION else len(findings)
        print_line(console, Text.assemble((f"  {verdict.value} besides", STYLES[verdict])))
        _places(console, findings, total, SHOWN)


def _places(console: Console, findings: tuple[Finding, ...], total: int, shown: int) -> None:
    for finding in findings[:shown]:
        print_line(console, f"  at         {inert(finding.where)}")
        print_line(console, f"             {inert(finding.message)}")
        if finding.witness:
            witness = ", ".join(f"{name} = {inert(value)}" for name, value in spelled(finding.witness))
            print_line(console, f"  witness    {witness}")
        if finding.waiver is not None:
            print_line(console, f"  waived     {one_line(accepts(finding.waiver))}")
        elif finding.suggestion:
            print_line(console, f"  do         {inert(finding.suggestion)}")
    if total > shown:
        print_line(console, f"  ... and {total - shown} more places (--format json lists all)")


def _aside(rule_set: RuleSetResult, rules: list[RuleResult]) -> tuple[str, ...]:
    """The reasons for the verdict on a rule set that was not asked for."""
    why = because(rule_set.verdict, rules, frozenset((rule_set.name,)), strict=rule_set.strict)
    left = provided(rule_set.conditions, rule_set.obligations) if rule_set.verdict is Verdict.CONFORMS else ""
    return (left or why.replace(" (", "  (", 1),)


def _verdict(rule_set: RuleSetResult) -> tuple[str, str]:
    return rule_set.verdict.value, STYLES[rule_set.verdict]


def _sentence(report: Report) -> list[str | tuple[str, str]]:
    names = " and ".join(_named(r) for r in report.named)
    why = grounds(report)
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
