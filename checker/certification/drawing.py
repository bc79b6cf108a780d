"""The findings of a report on the graph of its model: what a picture shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sonnx.semantics.machine.spelling import stated_type
from sonnx.semantics.model.graph import Model, NodeId
from sonnx.semantics.picture.notes import Content, Mark, Picture, foremost, in_order

from .formats.words import grounds
from .report import WORST_FIRST, Finding, Report, RuleResult, RuleVerdict, Verdict

MARKS: Final = (
    Mark("violated", "\u2717", "violates a rule", "bad"),
    Mark("unknown", "?", "undecided", "open"),
    Mark("conditional", "#", "left to sizes", "warn"),
    Mark("obligation", "!", "left to data", "next"),
    Mark("waived", "W", "waived violation", "faint"),
    Mark("apart", "i", "finding that does not count", "faint"),
    Mark("none", "", "no finding", "plain"),
)
_JOINT: Final = {Verdict.CONFORMS: " to ", Verdict.VIOLATES: " ", Verdict.UNDECIDED: " for "}


def annotated(report: Report, model: Model) -> Picture:
    """Each finding at the nodes that its place names; what names none is said of the graph as a whole."""
    places = _places(model)
    marks: dict[NodeId, set[str]] = {n: set() for n in range(len(model.nodes))}
    said: dict[NodeId, list[str]] = {}
    general: list[str] = []
    for rule, verdict, finding, counted in _findings(report):
        mark = "waived" if finding.waiver is not None else verdict.value if counted else "apart"
        words = "waived" if finding.waiver is not None else verdict.value + ("" if counted else ", not counted")
        text = f"{rule.rule_set} {rule.id} {words}: {finding.condition or finding.message}"
        nodes = places.get(_plain(finding.where), ())
        if not nodes:
            general.append(f"{finding.where}: {text}")
        for n in nodes:
            marks[n].add(mark)
            said.setdefault(n, []).append(text)
    general += [
        f"{rule.rule_set} {rule.id}: {rule.total_findings - len(rule.findings)} more places are not listed"
        for rule in report.rules
        if rule.total_findings > len(rule.findings)
    ]
    marked = {n: in_order(names or {"none"}, MARKS) for n, names in marks.items()}
    focus = foremost((n for n, names in marks.items() if names), marked, MARKS)
    named = " and ".join(it.name for it in report.named)
    verdict_line = f"{report.verdict.value}{_JOINT[report.verdict]}{named}{grounds(report)}"
    said_of = {n: tuple(it) for n, it in said.items()}
    open_ = (t for t, tensor in enumerate(model.tensors) if tensor.declared is None and t in report.types)
    types = {t: Content(stated_type(report.types[t])) for t in open_}
    origin = ("Types that are not declared are those of ONNX's shape inference.",) if types else ()
    return Picture("The graph", (verdict_line, *origin), MARKS, marked, said_of, types, focus, tuple(general))


def _findings(report: Report) -> Iterator[tuple[RuleResult, RuleVerdict, Finding, bool]]:
    """All findings with their verdict, and whether they count."""
    asked = {it.name for it in report.rule_sets if it.asked}
    for rule in report.rules:
        counted = rule.counted and rule.rule_set in asked
        for verdict in WORST_FIRST:
            for finding in rule.left_to(verdict):
                yield rule, verdict, finding, counted


def _places(model: Model) -> Mapping[str, tuple[NodeId, ...]]:
    """The nodes that paths name: of a tensor those that give it, of a body the one that holds it, of a call the first
    that it was expanded to."""
    places: dict[str, tuple[NodeId, ...]] = {}
    for n, node in enumerate(model.nodes):
        places[node.path] = (*places.get(node.path, ()), n)
        for t in node.outputs:
            if t is not None:
                path = model.tensors[t].path
                places[path] = (*places.get(path, ()), n)
        for call in node.calls:
            places.setdefault(call, (n,))
    for graph in model.graphs:
        if graph.holder is not None:
            places.setdefault(graph.path, (graph.holder,))
    return places


def _plain(where: str) -> str:
    """The path without the position of an input or output at its end."""
    head, mark, index = where.rpartition("<") if "<" in where else where.rpartition(">")
    return head if mark and index.isdecimal() else where
