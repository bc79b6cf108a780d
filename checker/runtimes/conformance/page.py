"""A run as one HTML page that loads nothing and runs no script: figures, pictures, operators, the worst cases."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from glob import escape as escape_glob
from html import escape
from importlib.resources import files
from typing import Final

from sonnx.spec.terminal.inert import inert

from .records import Record
from .reports import Conformance
from .summary import CLASSES, EngineSummary

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
    """The page. Every text is escaped; equal runs give equal bytes."""
    style = files(__package__).joinpath("conformance.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    body = "\n".join(_body(run))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Conformance report</title><style>{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _text(value: object) -> str:
    return escape(inert(str(value)))


def _body(run: Conformance) -> Iterator[str]:
    versions = dict(run.engines)
    yield "<h1>Conformance report</h1>"
    cases = len({(it.suite, it.case) for it in run.records})
    suites = ", ".join(_text(it) for it in run.suites)
    yield (
        f"<p>{cases} cases of {suites}. Outputs that are the definition's bit for bit pass. All others are judged node"
        " by node, element by element, against what the specification allows on the values that the engine itself fed"
        " to each node. Classes add up to the cases; a case that compared nothing is no pass.</p>"
    )
    yield '<div class="wide"><table><caption>Cases by class</caption>'
    yield _head(["engine", "cases", *CLASSES])
    for it in run.summaries:
        cells = [str(it.classes[c] or "") for c in CLASSES]
        yield _line([f"{it.engine} {versions[it.engine]}".strip(), str(it.cases), *cells])
    yield "</table></div>"
    yield _key()
    for it in run.summaries:
        yield from _engine(it)
    yield "<h2>Operators</h2>"
    yield from _operators(run.summaries)
    yield "<h2>Environment</h2><dl>"
    for name, value in sorted(run.environment.items()):
        yield f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>"
    yield "</dl>"


def _engine(it: EngineSummary) -> Iterator[str]:
    yield f"<section><h2>{_text(it.engine)}</h2>"
    yield _bar(it.classes, it.cases)
    if it.kinds:
        yield "<ul>"
        for (outcome, kind), count in sorted(it.kinds.items(), key=lambda pair: (-pair[1], pair[0])):
            yield f"<li>{count} {_text(outcome)}: {_text(kind)}</li>"
        yield "</ul>"
    yield '<div class="pair">'
    yield _histogram("Greatest distance of a case, in ULP", it.steps)
    yield _histogram("Greatest part of the bound", it.parts)
    yield "</div>"
    if it.worst:
        yield f"<details open><summary>What does not conform ({len(it.worst)} shown)</summary>"
        for bad in it.worst:
            yield _record(bad)
        yield "</details>"
    if it.open:
        yield f"<details><summary>What was not compared ({it.classes['not compared']})</summary><ul>"
        for why, count in sorted(it.open.items(), key=lambda pair: (-pair[1], pair[0]))[:LISTED]:
            yield f"<li>{count}: {_text(why)}</li>"
        yield "</ul></details>"
    yield "</section>"


def _record(bad: Record) -> str:
    where = f" at {_text(bad.node)} ({_text(bad.operator)})" if bad.node else ""
    element = f"<br><code>{_text(bad.worst)}</code>" if bad.worst else ""
    return (
        f"<article><strong>{_text(bad.case)}</strong>: {_text(bad.outcome)}{where}: {_text(bad.why)}{element}"
        f"<br><small>sha256 {_text(bad.digest[:16])}, again: <code>{_text(again(bad))}</code></small></article>"
    )


def again(bad: Record) -> str:
    """The command that runs a case again."""
    pattern = escape_glob(bad.case.rpartition("#")[0] or bad.case)
    return shlex.join(["sonnx", "conform", "--suite", bad.suite, "--engine", bad.engine, "--filter", pattern])


def _operators(summaries: Sequence[EngineSummary]) -> Iterator[str]:
    names = sorted({operator for it in summaries for operator in it.operators})
    yield '<div class="wide"><table>'
    yield _head(["operator", *(it.engine for it in summaries)])
    for name in names[:LISTED]:
        yield _line([name, *(_counts(it.operators.get(name, {})) for it in summaries)])
    yield "</table></div>"
    if len(names) > LISTED:
        yield f"<p>{len(names) - LISTED} more are in the JSON.</p>"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[c]} {c}" for c in CLASSES if counts.get(c))


def _head(cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<th>{_text(it)}</th>' for it in cells)}</tr>"


def _line(cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<td>{_text(it)}</td>' for it in cells)}</tr>"


# ---- Pictures ---------------------------------------------------------------------------------


def _key() -> str:
    spots = "".join(
        f'<li><svg width="12" height="12" aria-hidden="true"><rect width="12" height="12" fill="{COLOURS[c]}"/></svg>'
        f" {_text(c)}</li>"
        for c in CLASSES
    )
    return f'<ul class="key">{spots}</ul>'


def _bar(classes: Mapping[str, int], total: int) -> str:
    """The classes as parts of a bar."""
    parts, at = [], 0.0
    for name in CLASSES:
        width = 1000 * classes[name] / total if total else 0.0
        if width:
            title = f"<title>{_text(name)}: {classes[name]}</title>"
            parts.append(f'<rect x="{at:.2f}" width="{width:.2f}" height="30" fill="{COLOURS[name]}">{title}</rect>')
        at += width
    said = ", ".join(f"{classes[c]} {c}" for c in CLASSES if classes[c])
    return (
        f'<svg class="bar" viewBox="0 0 1000 30" preserveAspectRatio="none" role="img" aria-label="{_text(said)}">'
        f"{''.join(parts)}</svg><p>{_text(said)}</p>"
    )


def _histogram(title: str, counts: Mapping[str, int]) -> str:
    """Bars, one for each range, with the counts."""
    most = max(counts.values(), default=0) or 1
    rows = []
    for at, (label, count) in enumerate(counts.items()):
        y = 22 * at
        rows.append(
            f'<text x="108" y="{y + 15}" text-anchor="end">{_text(label)}</text>'
            f'<rect x="114" y="{y + 3}" width="{150 * count / most:.1f}" height="16"/>'
            f'<text x="{120 + 150 * count / most:.1f}" y="{y + 15}">{count}</text>'
        )
    height = 22 * len(counts)
    return (
        f'<figure><figcaption>{_text(title)}</figcaption><svg class="histogram" viewBox="0 0 320 {height}" role="img"'
        f' aria-label="{_text(title)}">{"".join(rows)}</svg></figure>'
    )
