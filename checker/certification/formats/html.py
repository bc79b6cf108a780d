"""The report as one HTML file that loads nothing: `report.html` is its template, `report.css` its style.

It is made to be handed on: a cover, what was not examined, a table that traces each rule from its clause to its
evidence, every rule in full, obligations and waivers. What paper cannot fold is printed open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sonnx.spec import digests
from sonnx.spec.library import Specification, specification
from sonnx.spec.pages.templates import NONE, page
from sonnx.spec.render.math import formula_text

from ..report import LEFT_OPEN, WORST_FIRST, Outcome, Report, RuleResult, RuleVerdict, Verdict
from ..requirements import find
from .svg import to_svg
from .words import accepts, counted, grounds, label, sentence, spelled, standing, totals, warning

if TYPE_CHECKING:
    from sonnx.semantics.picture.page import Drawn

PICTURES = 10
"""The most findings of one rule that are drawn."""


@dataclass(frozen=True, slots=True)
class Cover:
    """The lines of a cover that a report does not know. title, project, date: as the caller states them, "" for none.
    command: a command that judges alike."""

    title: str = ""
    project: str = ""
    date: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Traced:
    """A rule in the table that traces it. anchor: of its section. formula: the name of its constraint or requirement,
    text: the formula itself, "" where the rule is stated in words. evidence: on what the verdict rests."""

    rule: RuleResult
    anchor: str
    formula: str
    text: str
    evidence: str


BARE: Final = Cover()


def to_html(report: Report, cover: Cover = BARE, graph: Drawn | None = None) -> str:
    """The report as a page; equal reports under equal covers give equal bytes. graph: its findings on the graph, for
    which alone the page has a script."""
    joint = {Verdict.CONFORMS: " to ", Verdict.VIOLATES: " ", Verdict.UNDECIDED: " for "}[report.verdict]
    text = specification()
    traced = [_traced(rule, number, text) for number, rule in enumerate(report.rules, 1)]
    asked = {rule_set.name for rule_set in report.rule_sets if rule_set.asked}
    return page(
        __package__,
        "report.html",
        "report.css",
        parts=NONE if graph is None else graph.parts,
        graph=graph,
        alone=False,
        report=report,
        cover=cover,
        traced={it.name: [t for t in traced if t.rule.rule_set == it.name] for it in report.rule_sets},
        left=[t for t in traced if t.rule.rule_set in asked and any(t.rule.left_to(v) for v in LEFT_OPEN)],
        unknown=[t for t in traced if t.rule.rule_set in asked and t.rule.verdict is RuleVerdict.UNKNOWN],
        texts=digests.of_texts(text),
        code=digests.of_code(),
        joint=joint,
        rest=grounds(report),
        sizes=sentence(report.domain) if report.domain is not None else "",
        spelled=spelled,
        standing=standing,
        accepts=accepts,
        warning=warning,
        counted=counted,
        picture=to_svg,
        pictures=PICTURES,
        left_open=LEFT_OPEN,
    )


def _traced(rule: RuleResult, number: int, text: Specification) -> Traced:
    constraint = text.constraints.get(rule.constraint)
    required = find(text.operators, rule.id) if constraint is None else None
    formula = ""
    if constraint is not None:
        formula = formula_text(constraint.formula)
    elif required is not None:
        formula = formula_text(required[0].statements[required[1]].expr)
    return Traced(rule, f"rule-{number}", rule.constraint or rule.id, formula, _evidence(rule))


def _evidence(rule: RuleResult) -> str:
    """What the verdict rests on, in words."""
    said = []
    if rule.solver:
        asked = ("the negated formula", "the formula")
        answers = (f"{question} on the facts: {answer}" for question, answer in zip(asked, rule.solver, strict=False))
        said.append(f"z3: {', '.join(answers)}" + (f"; core: {', '.join(rule.core)}" if rule.core else ""))
    if rule.places:
        said.append(f"judged at {counted(rule.places, 'node')}")
    places = ((verdict, _number(rule, verdict)) for verdict in WORST_FIRST)
    said += [f"{verdict} at {counted(number, 'place')}" for verdict, number in places if number]
    if rule.verdict is RuleVerdict.UNKNOWN and rule.reason:
        said.append(rule.reason)
    return "; ".join(said) or "decided without the solver"


def _number(rule: RuleResult, verdict: RuleVerdict) -> int:
    """How many places have a verdict."""
    if verdict is rule.verdict:
        return rule.total_findings
    return rule.obligations if verdict is RuleVerdict.OBLIGATION else len(rule.left_to(verdict))


# ---- Of several models --------------------------------------------------------------------------


def to_index(outcomes: Sequence[Outcome]) -> str:
    """The page that lists models with their verdicts, each with a link to its own page."""
    rows = [
        {
            "name": outcome.name,
            "page": name,
            "verdict": label(outcome),
            "report": outcome.report,
            "why": outcome.error if outcome.report is None else grounds(outcome.report).strip(" ():,"),
        }
        for outcome, name in zip(outcomes, _names(outcomes), strict=True)
    ]
    return page(__package__, "index.html", "report.css", rows=rows, totals=totals(outcomes))


def write_pages(outcomes: Sequence[Outcome], folder: Path, covers: Mapping[str, Cover]) -> None:
    """The index and the page of each model, into a folder, which is made where it is not there. covers: by the names
    of the outcomes."""
    folder.mkdir(parents=True, exist_ok=True)
    for outcome, name in zip(outcomes, _names(outcomes), strict=True):
        if outcome.report is not None:
            (folder / name).write_text(to_html(outcome.report, covers[outcome.name], outcome.graph), encoding="utf-8")
    (folder / "index.html").write_text(to_index(outcomes), encoding="utf-8")


def _names(outcomes: Sequence[Outcome]) -> list[str]:
    """The names of the pages: those of the files behind their positions, so that no two are the same."""
    width = len(str(len(outcomes)))
    plain = [re.sub("[^A-Za-z0-9._-]", "_", Path(outcome.name).name) for outcome in outcomes]
    return [f"{position:0{width}}-{name}.html" for position, name in enumerate(plain, 1)]


def to_frame(report: Report) -> str:
    """The page in a sandboxed frame, for a notebook."""
    return f'<iframe sandbox srcdoc="{escape(to_html(report))}" width="100%" height="600" frameborder="0"></iframe>'
