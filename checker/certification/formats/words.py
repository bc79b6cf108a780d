"""Words for people: the witness of a finding, verdicts, waivers, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sonnx.spec.project import Waiver
from sonnx.spec.terminal import few, inert

from ..report import Domain, Json, Outcome, Report, RuleResult, RuleVerdict, Verdict

# ---- Verdicts -----------------------------------------------------------------------------------


def sentence(domain: Domain) -> str:
    """The sizes for which the model is well formed, as far as sizes decide it; nothing where it has none."""
    if "false" in domain.conditions:
        which = "is well formed for no sizes" if domain.sizes else "is not well formed"
        return f"The model {which}: a run gets stuck at a requirement that fails."
    if not domain.sizes:
        return ""
    said = ", ".join(domain.limited(domain.conditions, every=True))
    every = "all " if not domain.conditions else ""
    return f"As far as sizes decide it, the model is well formed for {every}{said}."


def provided(conditions: tuple[str, ...], obligations: int, waivers: int = 0) -> str:
    """The parts that a verdict CONFORMS leaves open: conditions on sizes, obligations on data, waivers."""
    sizes = f" for {', '.join(conditions)}" if conditions else ""
    told = [f"{counted(obligations, 'obligation')} on data"] if obligations else []
    told += [counted(waivers, "waiver")] if waivers else []
    return sizes + (f", with {' and '.join(told)}" if told else "")


def meaningless(report: Report) -> str:
    """The operators of which the specification gives no meaning."""
    names = report.domain.without_meaning if report.domain is not None else ()
    return f": the specification gives no executable meaning to {few(names, LISTED)}" if names else ""


AGAINST = {
    Verdict.VIOLATES: (RuleVerdict.VIOLATED, RuleVerdict.CONDITIONAL),
    Verdict.UNDECIDED: (RuleVerdict.UNKNOWN, RuleVerdict.OBLIGATION),
    Verdict.CONFORMS: (),
}
"""The verdicts on rules that can bring about a verdict on a rule set; the second ones in strict mode only."""


def because(verdict: Verdict, rules: list[RuleResult], bare: frozenset[str], *, strict: bool) -> str:
    """The counted rules behind a verdict, by id, with the rule set but for those of `bare`."""
    groups = []
    for cause in AGAINST[verdict] if strict else AGAINST[verdict][:1]:
        ids = [
            inert(rule.id if rule.rule_set in bare else f"{rule.rule_set} {rule.id}")
            for rule in rules
            if rule.counted and rule.verdict is cause and not rule.listed_elsewhere and not rule.accepted
        ]
        if ids:
            groups.append(f"{cause.value}: {few(ids, LISTED)}")
    return f" ({'; '.join(groups)})" if groups else ""


def grounds(report: Report) -> str:
    """The reasons of the verdict on a model: the rules against it, or what CONFORMS leaves open."""
    if report.verdict is Verdict.CONFORMS:
        return provided(report.conditions, report.obligations, len(report.applied))
    asked = {r.name for r in report.rule_sets if r.asked}
    bare = frozenset(r.name for r in report.named) if len(report.named) == 1 else frozenset()
    strict = any(r.strict for r in report.named)
    why = because(report.verdict, [rule for rule in report.rules if rule.rule_set in asked], bare, strict=strict)
    return why + (meaningless(report) if report.verdict is Verdict.UNDECIDED else "")


def standing(rule: RuleResult) -> str:
    """The verdict on a rule, with what is waived of it, and whether it counts."""
    waived = (
        "waived" if rule.accepted else f"{rule.verdict}, {rule.waived} waived" if rule.waived else rule.verdict.value
    )
    return waived if rule.counted else f"{waived} (not counted)"


def warning(waiver: Waiver, why: str) -> str:
    """The sentence about a waiver that accepts nothing."""
    return f"the waiver of {waiver.rule} at {waiver.place} ({waiver.source or waiver.who}) accepts nothing: {why}"


def accepts(waiver: Waiver) -> str:
    """A waiver behind a finding that it accepts."""
    return f"{waiver.reason} ({waiver.who}, until {waiver.until})"


NO_REPORT = {2: "unreadable", 3: "unsupported"}
"""The word for a model without a report, by its exit code; any other is an internal error."""


def label(outcome: Outcome) -> str:
    """The verdict on one of several models, or what stands in its place."""
    return NO_REPORT.get(outcome.code, "internal error") if outcome.report is None else outcome.report.verdict.value


def totals(outcomes: Sequence[Outcome]) -> str:
    """The number of models with each verdict."""
    numbers = Counter(map(label, outcomes))
    waived = sum(1 for it in outcomes if it.report and it.report.verdict is Verdict.CONFORMS and it.report.applied)
    told = f" ({waived} with waivers)" if waived else ""
    kinds = (f"{numbers[it]} {it}{told if it == Verdict.CONFORMS else ''}" for it in sorted(numbers))
    return f"{counted(len(outcomes), 'model')}: {', '.join(kinds)}"


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# ---- Witnesses ----------------------------------------------------------------------------------


LISTED = 6
"""The most rules or operators that are named."""
SHOWN = 10
"""The most members of a list that are shown."""
DATA = frozenset({"condition"})
"""The parts of a witness for programs only: the message says the same in words."""


def spelled(witness: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """The parts of a witness, each on one line: a cycle as a chain of paths that ends where it begins; sizes by name;
    long lists are shortened."""
    for name, value in witness.items():
        if name in DATA:
            continue
        if isinstance(value, Mapping):
            yield from ((label, str(number)) for label, number in value.items())
            continue
        if not isinstance(value, list):
            yield name, str(value)
            continue
        shown = [str(item) for item in value[:SHOWN]]
        rest = [f"... {len(value) - SHOWN} more nodes ..."] if len(value) > SHOWN else []
        closed = [*shown, *rest, *shown[:1]] if name == "cycle" else [*shown, *rest]
        yield name, (" -> " if name == "cycle" else ", ").join(closed)
