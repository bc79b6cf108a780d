"""The report as one HTML file that loads nothing: `report.html` is its template, `report.css` its style."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from sonnx.spec.pages.templates import page

from ..report import Outcome, Report, Verdict
from .svg import to_svg
from .words import accepts, grounds, label, sentence, spelled, standing, totals, warning

PICTURES = 10
"""The most findings of one rule that are drawn."""


def to_html(report: Report) -> str:
    """The report as a page; equal reports give equal bytes."""
    joint = {Verdict.CONFORMS: " to ", Verdict.VIOLATES: " ", Verdict.UNDECIDED: " for "}[report.verdict]
    return page(
        __package__,
        "report.html",
        "report.css",
        report=report,
        joint=joint,
        rest=grounds(report),
        sizes=sentence(report.domain) if report.domain is not None else "",
        spelled=spelled,
        standing=standing,
        accepts=accepts,
        warning=warning,
        picture=to_svg,
        pictures=PICTURES,
    )


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


def write_pages(outcomes: Sequence[Outcome], folder: Path) -> None:
    """The index and the page of each model, into a folder, which is made where it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for outcome, name in zip(outcomes, _names(outcomes), strict=True):
        if outcome.report is not None:
            (folder / name).write_text(to_html(outcome.report), encoding="utf-8")
    (folder / "index.html").write_text(to_index(outcomes), encoding="utf-8")


def _names(outcomes: Sequence[Outcome]) -> list[str]:
    """The names of the pages: those of the files behind their positions, so that no two are the same."""
    width = len(str(len(outcomes)))
    plain = [re.sub("[^A-Za-z0-9._-]", "_", Path(outcome.name).name) for outcome in outcomes]
    return [f"{position:0{width}}-{name}.html" for position, name in enumerate(plain, 1)]


def to_frame(report: Report) -> str:
    """The page in a sandboxed frame, for a notebook."""
    return f'<iframe sandbox srcdoc="{escape(to_html(report))}" width="100%" height="600" frameborder="0"></iframe>'
