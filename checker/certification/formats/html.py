"""The report as one HTML file that loads nothing: `report.html` is its template, `report.css` its style."""

from __future__ import annotations

from html import escape

from sonnx.spec.pages.templates import page

from ..report import Report, Verdict
from .svg import to_svg
from .words import meaningless, provided, sentence, spelled

PICTURES = 10
"""How many findings of one rule are drawn."""


def to_html(report: Report) -> str:
    """The report as a page; equal reports give equal bytes."""
    joint, rest = {
        Verdict.CONFORMS: (" to ", provided(report.conditions, report.obligations)),
        Verdict.VIOLATES: (" ", ""),
        Verdict.UNDECIDED: (" for ", meaningless(report)),
    }[report.verdict]
    return page(
        __package__,
        "report.html",
        "report.css",
        report=report,
        joint=joint,
        rest=rest,
        sizes=sentence(report.domain) if report.domain is not None else "",
        spelled=spelled,
        picture=to_svg,
        pictures=PICTURES,
    )


def to_frame(report: Report) -> str:
    """The page in a sandboxed frame, for a notebook."""
    return f'<iframe sandbox srcdoc="{escape(to_html(report))}" width="100%" height="600" frameborder="0"></iframe>'
