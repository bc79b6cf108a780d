"""The outcome of a certification as frozen data; every output format and the certificate are views of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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


class Verdict(StrEnum):
    """The verdict on a model or rule set: VIOLATES if a counted rule is violated, else UNDECIDED if one is unknown."""

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
    """One place where a rule is violated, or where its verdict is unknown.

    where: path of the node, tensor or graph. witness: each variable of the rule with the path or value that it has
    here; `cycle`: the nodes of a cycle. around: the graph around it, for a picture.
    """

    where: str
    message: str
    witness: Mapping[str, Json]
    suggestion: str = ""
    around: Neighbourhood | None = None


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule, judged. findings: violations when violated, undecided places when unknown (`reason` says why).

    counted: the verdict enters the rule set's verdict. evidence: JSON witness of a rule that holds.
    solver: what the solver answered on facts and negated formula (and, where a fact is unknown, on the formula),
    core: the names of the fact groups in its unsatisfiable core.
    total_findings: number before truncation. places: how often a requirement of an
    operator was judged; holding: the nodes that meet it, the first ones.
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

    @property
    def folded(self) -> bool:
        """A requirement that holds: reports show it with its like, in one line."""
        return self.places > 0 and self.verdict is RuleVerdict.HOLDS


@dataclass(frozen=True, slots=True)
class Domain:
    """For which sizes the operators of a model have a result, as far as sizes decide it.

    sizes: the symbolic sizes of the inputs, each with the least and the greatest value considered, None for any.
    conditions: what they must satisfy besides, in words; `false` among them where there are no such sizes. held,
    violated, unknown: how many requirements, counted at each node. undefined: nodes whose operator has no definition.
    """

    sizes: tuple[tuple[str, int, int | None], ...]
    conditions: tuple[str, ...]
    held: int
    violated: int
    unknown: int
    undefined: int


@dataclass(frozen=True, slots=True)
class RuleSetResult:
    """A rule set, judged. asked: it was named by the caller and enters the overall verdict."""

    name: str
    title: str
    digest: str
    verdict: Verdict
    asked: bool
    strict: bool = False
    variant: str = ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What was certified: files with digests, versions, sizes of the graph."""

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


@dataclass(frozen=True, slots=True)
class Report:
    """The whole outcome. rules holds the results of the rule sets asked for first, then of the others. domain: None
    where no rule set judged takes in the requirements of operators.
    """

    model: ModelInfo
    verdict: Verdict
    rule_sets: tuple[RuleSetResult, ...]
    rules: tuple[RuleResult, ...]
    not_examined: tuple[str, ...]
    tools: tuple[tuple[str, str], ...]
    domain: Domain | None = None

    def to_json(self) -> str:
        """The report as JSON text; `report.schema.json` in this package is its schema."""
        from .reports.json_report import to_json

        return to_json(self)

    def _repr_html_(self) -> str:
        """The report as a notebook shows it: isolated in a frame, since it is a whole page with its own styles."""
        from .reports.html import to_frame

        return to_frame(self)
