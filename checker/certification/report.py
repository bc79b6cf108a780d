"""The outcome of a certification as frozen data; every output format and the certificate are views of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sonnx.spec.project import Waiver
from sonnx.spec.terminal import inert

if TYPE_CHECKING:
    from sonnx.semantics.model.graph import TensorId, ValueType
    from sonnx.semantics.picture.page import Drawn

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]


class RuleVerdict(StrEnum):
    """The verdict on one rule. Unknown never becomes holds.

    VIOLATED: fails somewhere, whatever the data and the free sizes. UNKNOWN: the tool could not decide it, or the
    operator has no meaning here.
    """

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    OBLIGATION = "obligation"
    """The data of a run decide it (an index that is an input): what the caller has to see to, node by node."""
    CONDITIONAL = "conditional"
    """The free sizes decide it: it holds for some and fails for some; the condition stands in `Domain.conditions`."""


WORST_FIRST = (RuleVerdict.VIOLATED, RuleVerdict.UNKNOWN, RuleVerdict.CONDITIONAL, RuleVerdict.OBLIGATION)
"""Of the places of one rule, the first of these verdicts that one of them has is the rule's; else it holds."""


LEFT_OPEN = (RuleVerdict.CONDITIONAL, RuleVerdict.OBLIGATION)
"""The verdicts that leave it to others than the model whether a rule holds."""


class Verdict(StrEnum):
    """The verdict on a model or rule set: VIOLATES if a counted rule is violated, else UNDECIDED if one is unknown.

    Obligations and conditions take nothing from CONFORMS, which then says so. In strict mode a conditional rule counts
    as violated, and an obligation as unknown.
    """

    CONFORMS = "CONFORMS"
    VIOLATES = "VIOLATES"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, slots=True)
class Box:
    """A node or tensor in a picture: kind is node, tensor, or more (what the picture leaves out)."""

    kind: str
    label: str
    path: str
    focus: bool = False


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The part of the graph around a finding, for a picture: boxes, and arrows between their positions."""

    boxes: tuple[Box, ...]
    arrows: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a rule does not simply hold.

    where: path of the node, tensor or graph. witness: each variable of the rule with the path or value that it has
    here; `cycle`: the nodes of a cycle; `sizes`: where a requirement fails, by name. around: the graph around it, for a
    picture, at the first places. condition: what must hold here, in words, where data or sizes decide it. waiver: the
    one that accepts a violation.
    """

    where: str
    message: str
    witness: Mapping[str, Json]
    suggestion: str = ""
    around: Neighbourhood | None = None
    condition: str = ""
    waiver: Waiver | None = None


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule, judged. findings: the places that give the rule its verdict: those where it is violated, undecided
    (`reason` says why), left to sizes or to data. besides: where a milder verdict stands, the places that are left to
    sizes or data all the same, by that verdict.

    counted: the verdict enters the rule set's verdict. evidence: JSON witness of a rule that holds.
    solver: what the solver answered on facts and negated formula (and, where a fact is unknown, on the formula),
    core: the names of the fact groups in its unsatisfiable core.
    total_findings: number of `findings`. obligations: number of places that data decide, whatever the verdict. places:
    how often a requirement of an operator was judged; holding: the nodes that meet it, the first ones.
    """

    rule_set: str
    id: str
    title: str
    statement: str
    quote: str
    source: str
    status: str
    note: str
    constraint: str
    counted: bool
    verdict: RuleVerdict
    findings: tuple[Finding, ...] = ()
    total_findings: int = 0
    reason: str = ""
    evidence: Mapping[str, Json] = field(default_factory=dict)
    solver: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    places: int = 0
    holding: tuple[str, ...] = ()
    besides: Mapping[RuleVerdict, tuple[Finding, ...]] = field(default_factory=dict)
    obligations: int = 0

    def left_to(self, verdict: RuleVerdict) -> tuple[Finding, ...]:
        """The places with this verdict, the first ones."""
        return self.findings if verdict is self.verdict else self.besides.get(verdict, ())

    @property
    def waived(self) -> int:
        """The number of violations that a waiver accepts."""
        return sum(finding.waiver is not None for finding in self.findings)

    @property
    def accepted(self) -> bool:
        """The rule is violated, and each violation is accepted: it takes nothing from the verdict of a rule set."""
        return self.verdict is RuleVerdict.VIOLATED and self.waived == self.total_findings > 0

    @property
    def folded(self) -> bool:
        """A requirement that holds: reports show it with its like, in one line."""
        return self.places > 0 and self.verdict is RuleVerdict.HOLDS

    @property
    def listed_elsewhere(self) -> bool:
        """A requirement that data decide, where the rule data-shapes lists what is to be seen to: shown in one line."""
        return self.verdict is RuleVerdict.OBLIGATION and not self.findings


@dataclass(frozen=True, slots=True)
class Domain:
    """For which sizes the operators of a model have a result, as far as sizes decide it.

    sizes: the symbolic sizes of the inputs, each with the least and the greatest value considered, None for any.
    conditions: what they must satisfy besides, in words; `false` among them where there are no such sizes; terms: the
    same as lists, the operator first; narrowing: those that `restrict`s ask for. example: sizes that satisfy them.
    held, violated, unknown, conditional: how many requirements, counted at each node. obligations: on data, each
    counted once for the node that has to see to it.
    undefined: nodes whose operator has no definition; without_meaning: their operators.
    """

    sizes: tuple[tuple[str, int, int | None], ...]
    conditions: tuple[str, ...]
    held: int
    violated: int
    unknown: int
    undefined: int
    conditional: int = 0
    obligations: int = 0
    without_meaning: tuple[str, ...] = ()
    terms: tuple[Json, ...] = ()
    example: tuple[tuple[str, int], ...] = ()
    narrowing: tuple[Json, ...] = ()

    def limited(self, conditions: tuple[str, ...], *, every: bool) -> tuple[str, ...]:
        """Conditions behind the values of sizes that were considered, but where a condition says more: those of all
        sizes (`every`), else of those that are not simply 1 and more."""
        bounded = {match[1]: match[2] for text in conditions if (match := re.fullmatch(r"(.+) (=|>=) \d+", text))}
        ranges = [
            inert(spelled_range(label, low, high))
            for label, low, high in self.sizes
            if (every or (low, high) != (1, None))
            and bounded.get(inert(label)) not in (("=", ">=") if high is None else ("=",))
        ]
        return (*ranges, *conditions)


def spelled_range(label: str, low: int, high: int | None) -> str:
    """The values that a size may have."""
    return f"{label} >= {low}" if high is None else f"{label} = {low}" if low == high else f"{low} <= {label} <= {high}"


@dataclass(frozen=True, slots=True)
class RuleSetResult:
    """A rule set, judged, together with the rule sets that it includes.

    asked: it enters the overall verdict: it was named by the caller, or is included by one that was (`included_by`,
    empty when the caller named it). conditions: what sizes must satisfy for it to conform, in words. obligations: how
    many places of counted rules are left to data. collects: the statements of operators that it takes in.
    """

    name: str
    title: str
    digest: str
    verdict: Verdict
    asked: bool
    strict: bool = False
    variant: str = ""
    included_by: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    obligations: int = 0
    collects: str = ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """The certified model: files with digests, versions, sizes of the graph. path: the file as the caller named it,
    empty where the model came otherwise."""

    name: str
    source: str
    files: tuple[tuple[str, int, str], ...]
    ir_version: int
    opsets: tuple[tuple[str, int], ...]
    producer: str
    graphs: int
    nodes: int
    tensors: int
    functions: tuple[tuple[str, str, str], ...] = ()
    path: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The whole outcome. rules holds the results of the rule sets asked for first, then of the others. domain: None
    where no rule set judged takes in the requirements of operators. notebook: what renders it there; who makes the
    report hands that in, for the outcome knows no format. added: the files with texts of the user's own, by name and
    SHA-256, that were added to the specification; the outcome rests on them. waivers: those that are stated for the
    model and hold today; ended: those whose last day is past. types: what ONNX's shape inference says of
    tensors, where a drawing was asked for; no part of the outcome.
    """

    model: ModelInfo
    verdict: Verdict
    rule_sets: tuple[RuleSetResult, ...]
    rules: tuple[RuleResult, ...]
    not_examined: tuple[str, ...]
    tools: tuple[tuple[str, str], ...]
    domain: Domain | None = None
    notebook: Callable[[Report], str | None] | None = field(default=None, compare=False, repr=False)
    added: tuple[tuple[str, str], ...] = ()
    waivers: tuple[Waiver, ...] = ()
    ended: tuple[Waiver, ...] = ()
    types: Mapping[TensorId, ValueType] = field(default_factory=dict, compare=False, repr=False)

    @property
    def applied(self) -> tuple[Waiver, ...]:
        """The waivers that accept a violation of a counted rule, of the rule sets that enter the verdict."""
        names = {r.name for r in self.rule_sets if r.asked}
        rules = (rule for rule in self.rules if rule.counted and rule.rule_set in names)
        used = {finding.waiver for rule in rules for finding in rule.findings}
        return tuple(waiver for waiver in self.waivers if waiver in used)

    @property
    def unused(self) -> tuple[tuple[Waiver, str], ...]:
        """The waivers that accept nothing, each with the reason."""
        used = {finding.waiver for rule in self.rules for finding in rule.findings}
        idle = ((it, "no violation of that rule is at such a place") for it in self.waivers if it not in used)
        return (*((it, f"ended on {it.until}") for it in self.ended), *idle)

    @property
    def named(self) -> tuple[RuleSetResult, ...]:
        """The rule sets that the caller named."""
        return tuple(r for r in self.rule_sets if r.asked and not r.included_by)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions on sizes for the verdict to stand, in words."""
        return tuple(dict.fromkeys(condition for r in self.named for condition in r.conditions))

    @property
    def obligations(self) -> int:
        """The number of places of counted rules, of the rule sets that enter the verdict, that are left to data."""
        names = {r.name for r in self.rule_sets if r.asked}
        return sum(rule.obligations for rule in self.rules if rule.counted and rule.rule_set in names)

    def __repr__(self) -> str:
        """One line: `render(report, "json")` of the formats gives all."""
        judged = Counter(rule.verdict.value for rule in self.rules)
        rules = ", ".join(f"{judged[it]} {it}" for it in RuleVerdict if judged[it])
        sets = ", ".join(it.name for it in self.named)
        return f"<Report {inert(self.model.name) or 'of a model'}: {self.verdict}, {sets}; rules: {rules}>"

    def _repr_html_(self) -> str | None:
        """The report as a notebook shows it."""
        return None if self.notebook is None else self.notebook(self)


@dataclass(frozen=True, slots=True)
class Stated:
    """The waivers that are stated for a model: those that hold today, and those that have ended."""

    valid: tuple[Waiver, ...]
    ended: tuple[Waiver, ...]


# ---- Of several models --------------------------------------------------------------------------

EXIT = {Verdict.CONFORMS: 0, Verdict.VIOLATES: 1, Verdict.UNDECIDED: 3}
UNREADABLE, INTERNAL = 2, 4
"""Exit codes: by verdict, of a file that is no model, of a defect of this package."""
EXIT_ORDER = (INTERNAL, UNREADABLE, 1, 3, 0)
"""The exit code of several models is the first of these that one of them has."""
STANDARD_INPUT = "-"
"""The name of the model that is read from standard input."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one of several models, under its name as the caller gave it: a report, or why there is none.

    certificate: its bytes, where one was asked for. code: the exit code for this model alone. graph: the findings on
    the graph, where that was asked for.
    """

    name: str
    code: int
    report: Report | None = None
    error: str = ""
    certificate: bytes = b""
    graph: Drawn | None = None
