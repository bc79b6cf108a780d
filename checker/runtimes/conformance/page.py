"""A run as an HTML page that loads nothing and runs no script: the template `report.html`, and its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from sonnx.spec.pages.svg import drawing, rectangle, shape, text
from sonnx.spec.pages.templates import page

from .bound import STATEMENT, accuracies
from .known import stands_out, told
from .reports import CLASSES, WORST, Conformance, EngineSummary, again, ledger_lines

COLOURS: Final = {
    "pass": "#1b7f4b",
    "mismatch": "#b3261e",
    "refused": "#8a6d1b",
    "outside the domain": "#6b6b6b",
    "allowed freedom": "#3f7fbf",
    "harness error": "#7b1fa2",
    "crash": "#5b0f0f",
    "not compared": "#a0a0a0",
}
LISTED: Final = 400
"""Rows of a table at most; the JSON has all."""


def to_html(run: Conformance) -> str:
    """The page; equal runs give equal bytes."""
    return page(
        __package__,
        "report.html",
        "conformance.css",
        run=run,
        cases=len({(it.suite, it.case) for it in run.records}),
        versions=dict(run.engines),
        classes=CLASSES,
        operators=sorted({operator for it in run.summaries for operator in it.operators}),
        listed=LISTED,
        shown=WORST,
        again=partial(again, every_node=run.every_node),
        statement=STATEMENT,
        accuracies=list(accuracies()),
        told=told,
        stands_out=stands_out,
        ledger_lines=ledger_lines,
        most=most,
        in_words=in_words,
        spot=spot,
        bar=bar,
        histogram=histogram,
    )


def most(counts: Mapping[Any, int]) -> list[tuple[Any, int]]:
    """The greatest counts first."""
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def in_words(counts: Mapping[str, int]) -> str:
    """The classes that occur."""
    return ", ".join(f"{counts[name]} {name}" for name in CLASSES if counts.get(name))


# ---- Pictures ---------------------------------------------------------------------------------


def spot(name: str) -> str:
    """The colour of a class."""
    return drawing(12, 12, rectangle(0, 0, 12, 12, fill=COLOURS[name]), aria_hidden="true")


def bar(summary: EngineSummary) -> str:
    """The classes as parts of a bar."""
    parts, at = [], 0.0
    for name, count in summary.classes.items():
        width = 1000 * count / summary.cases if summary.cases else 0.0
        if width:
            parts.append(rectangle(at, 0, width, 30, shape("title", f"{name}: {count}"), fill=COLOURS[name]))
        at += width
    said = in_words(summary.classes)
    return drawing(1000, 30, parts, title=said, fixed=False, class_="bar", preserveAspectRatio="none")


def histogram(title: str, counts: Mapping[str, int]) -> str:
    """Bars, one for each range, with the counts."""
    longest = max(counts.values(), default=0) or 1
    rows = []
    for at, (label, count) in enumerate(counts.items()):
        y, width = 22 * at, 150 * count / longest
        rows += [
            text(108, y + 15, label, text_anchor="end"),
            rectangle(114, y + 3, width, 16),
            text(120 + width, y + 15, str(count)),
        ]
    return drawing(320, 22 * len(counts), rows, title=title, fixed=False, class_="histogram")
