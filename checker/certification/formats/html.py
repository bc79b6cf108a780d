"""The report as one HTML file that loads nothing: no script, a policy that forbids all but its own styles."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from importlib.resources import files

from sonnx.spec.terminal.inert import inert

from ..report import Finding, Report, RuleResult, RuleSetResult, RuleVerdict, Verdict
from .sentences import meaningless, provided, sentence
from .svg import to_svg
from .witnesses import spelled

PICTURES = 10
"""How many findings of one rule are drawn."""


def to_html(report: Report) -> str:
    """The report as a page. Every text from the model or the rules is escaped; equal reports give equal bytes."""
    style = files(__package__).joinpath("report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    name = _text(report.model.name or "model")
    body = "\n".join(_body(report))
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: {report.verdict}</title><style>{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def to_frame(report: Report) -> str:
    """The page in a sandboxed frame, for a notebook."""
    return f'<iframe sandbox srcdoc="{escape(to_html(report))}" width="100%" height="600" frameborder="0"></iframe>'


def _text(value: object) -> str:
    """Escaped, control characters shown as escapes."""
    return escape(inert(str(value)))


def _body(report: Report) -> Iterator[str]:
    model = report.model
    yield f"<h1>{_text(model.name or 'model')}</h1>"
    names = " and ".join(_text(r.name) for r in report.named)
    left = _text(provided(report.conditions, report.obligations)) if report.verdict is Verdict.CONFORMS else ""
    joint = {Verdict.CONFORMS: " to ", Verdict.VIOLATES: " ", Verdict.UNDECIDED: " for "}[report.verdict]
    why = _text(meaningless(report)) if report.verdict is Verdict.UNDECIDED else ""
    yield f'<p class="verdict {report.verdict.lower()}"><strong>{report.verdict}</strong>{joint}{names}{left}{why}</p>'
    yield "<dl>"
    for name, size, digest in model.files:
        yield f"<dt>{_text(name)}</dt><dd>{size} bytes, sha256 <code>{digest}</code></dd>"
    opsets = ", ".join(f"{domain or 'ai.onnx'} {number}" for domain, number in model.opsets)
    sizes = f"{model.nodes} nodes, {model.tensors} tensors, {model.graphs} graphs"
    yield f"<dt>graph</dt><dd>{sizes}; IR version {model.ir_version}; opset {_text(opsets)}</dd>"
    yield "</dl>"
    if report.domain is not None and (said := sentence(report.domain)):
        yield f"<p>{_text(said)}</p>"
    for rule_set in report.rule_sets:
        rules = [rule for rule in report.rules if rule.rule_set == rule_set.name]
        yield from _rule_set(rule_set, rules)
    yield "<h2>Not examined</h2><ul>"
    for item in report.not_examined:
        yield f"<li>{_text(item)}</li>"
    yield "</ul>"
    tools = ", ".join(f"{_text(name)} {_text(version)}" for name, version in report.tools)
    yield f"<footer>{tools}</footer>"


def _rule_set(rule_set: RuleSetResult, rules: list[RuleResult]) -> Iterator[str]:
    told = not rule_set.included_by or any(r.counted and r.verdict is not RuleVerdict.HOLDS for r in rules)
    opened = " open" if rule_set.asked and told else ""
    included = f" (included by {', '.join(map(_text, rule_set.included_by))})" if rule_set.included_by else ""
    aside = included if rule_set.asked else " (not part of the verdict)"
    yield f"<details{opened}><summary><h2>{_text(rule_set.name)}: {rule_set.verdict}{aside}</h2></summary>"
    yield f"<p>{_text(rule_set.title)}. <small>Texts: sha256 <code>{rule_set.digest}</code></small></p>"
    holding, elsewhere = ([r for r in rules if r.folded], [r for r in rules if r.listed_elsewhere])
    yield from _table([rule for rule in rules if not rule.folded and not rule.listed_elsewhere])
    for rule in rules:
        if rule.verdict is not RuleVerdict.HOLDS and not rule.listed_elsewhere:
            yield from _rule(rule)
    places = sum(rule.places for rule in holding)
    for folded, said in ((elsewhere, "depend on shapes that data decide"), (holding, f"hold at {places} places")):
        if folded:
            yield f"<details><summary>{len(folded)} requirements {said}</summary>"
            yield from _table(folded)
            yield "</details>"
    yield "</details>"


def _table(rules: list[RuleResult]) -> Iterator[str]:
    columns = "".join(f"<th>{name}</th>" for name in ("rule", "title", "status", "verdict", "places"))
    yield f"<table><thead><tr>{columns}</tr></thead><tbody>"
    for rule in rules:
        counted = "" if rule.counted else " <small>(not counted)</small>"
        yield (
            f'<tr class="{rule.verdict.lower()}"><td>{_text(rule.id)}</td>'
            f'<td title="{_text(rule.statement)}">{_text(rule.title)}</td>'
            f"<td>{_text(rule.status)}</td><td>{rule.verdict}{counted}</td>"
            f"<td>{rule.total_findings or rule.places or ''}</td></tr>"
        )
    yield "</tbody></table>"


def _rule(rule: RuleResult) -> Iterator[str]:
    yield f'<section class="{rule.verdict.lower()}"><h3>{_text(rule.id)} {rule.verdict}: {_text(rule.title)}</h3>'
    yield f"<p>{_text(rule.statement)}</p>"
    if rule.quote:
        yield f"<blockquote>{_text(rule.quote)}<footer>{_text(rule.source)}</footer></blockquote>"
    if rule.note:
        yield f"<p><small>{_text(rule.note)}</small></p>"
    if rule.reason and rule.verdict is RuleVerdict.UNKNOWN:
        yield f"<p>Why: {_text(rule.reason)}</p>"
    for number, finding in enumerate(rule.findings):
        yield from _finding(finding, drawn=number < PICTURES)
    if rule.total_findings > len(rule.findings):
        yield f"<p>{rule.total_findings - len(rule.findings)} more places are not listed.</p>"
    for verdict, findings in rule.besides.items():
        yield f'<h4 class="{verdict.lower()}">{verdict} besides</h4>'
        for finding in findings:
            yield from _finding(finding, drawn=False)
    yield "</section>"


def _finding(finding: Finding, *, drawn: bool) -> Iterator[str]:
    yield f"<article><p><code>{_text(finding.where)}</code><br>{_text(finding.message)}</p>"
    if finding.witness:
        rows = "".join(f"<li>{_text(k)} = <code>{_text(v)}</code></li>" for k, v in spelled(finding.witness))
        yield f'<ul class="witness">{rows}</ul>'
    if finding.suggestion:
        yield f"<p>{_text(finding.suggestion)}</p>"
    if drawn and finding.around is not None:
        yield f'<div class="picture">{to_svg(finding.around, f"the graph around {finding.where}")}</div>'
    yield "</article>"
