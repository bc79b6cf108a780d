"""Cards as HTML with MathML: self-contained pages without scripts, under a policy that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from .cards import Card, Formula
from .render_math import MathLine, to_mathml

STYLE = """
:root { color-scheme: light dark; --line: #8885; --quiet: #667; --tint: #8881; }
@media (prefers-color-scheme: dark) { :root { --quiet: #aab; } }
* { box-sizing: border-box; }
body {
  font: 1rem/1.5 system-ui, sans-serif; max-width: 52rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word;
}
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 0; }
nav { margin-bottom: 1rem; }
article { border-top: 1px solid var(--line); padding: 1rem 0; }
.kind { color: var(--quiet); font-weight: normal; font-size: .85rem; margin-left: .5rem; }
.formula { overflow-x: auto; background: var(--tint); padding: .5rem .75rem; margin: .5rem 0; font-size: 1.05rem; }
.formula div { white-space: nowrap; line-height: 1.7; }
.formula a { color: inherit; text-decoration: none; border-bottom: 1px dotted; }
mspace:first-child, mspace:last-child, mo:not(.end) + mspace, mspace + mspace { display: none; }
.rule { display: inline-block; } .rule hr { border: 0; border-top: 1.5px solid; margin: .15rem 0; }
.remark { color: var(--quiet); margin: .25rem 0 .5rem; }
.i1 { padding-left: 1.5em; } .i2 { padding-left: 3em; } .i3 { padding-left: 4.5em; }
.i4 { padding-left: 6em; } .i5 { padding-left: 7.5em; } .i6 { padding-left: 9em; }
dl { margin: .5rem 0; font-size: .92rem; } dt { color: var(--quiet); float: left; clear: left; margin-right: .5rem; }
dd { margin: 0 0 .25rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
th, td { border: 1px solid var(--line); padding: .35rem .5rem; text-align: left; vertical-align: top; }
thead th { background: var(--tint); } td dl { margin: 0; font-size: 1em; }
ul.names { list-style: none; padding: 0; } ul.names li { display: inline; } ul.names li + li::before { content: " · "; }
@media (max-width: 40rem) {
  thead { display: none; } table, tbody, tr, td, th { display: block; border: 0; padding: .1rem 0; }
  tr { border-top: 1px solid var(--line); padding: .5rem 0; }
}
"""
DEEPEST = 6

Link = Callable[[str], str | None]


def anchor(name: str) -> str:
    """The name as a fragment identifier: other characters than letters, digits, `.` and `-` as their code."""
    return re.sub(r"[^A-Za-z0-9.-]", lambda found: f"_{ord(found.group()):x}_", name)


def html_document(title: str, body: str) -> str:
    """A whole page. Its policy admits the page's own style and nothing else."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_inert(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def html_page(title: str, cards: Sequence[Card], link: Link) -> str:
    """The page of one file."""
    body = "\n".join(_card(card, link) for card in cards)
    return html_document(title, f'<nav><a href="index.html">Index</a></nav>\n<h1>{_inert(title)}</h1>\n{body}')


def _inert(text: str) -> str:
    """The text escaped; characters that cannot be printed become spaces."""
    return escape("".join(c if c.isprintable() else " " for c in text))


def _card(card: Card, link: Link) -> str:
    parts = [
        f'<article id="{anchor(card.name)}">',
        f'<h2>{_inert(card.title)}<span class="kind">{_inert(card.kind)}</span></h2>',
        f"<p>{_inert(card.sentence)}</p>",
        *(_formula(formula, link) for formula in card.formulas),
        _notes(card.notes),
    ]
    if card.table is not None:
        parts.append(_table(card, link))
    return "\n".join([*(part for part in parts if part), "</article>"])


def _lines(lines: Iterable[MathLine], link: Link) -> str:
    return "".join(f'<div class="i{min(line.indent, DEEPEST)}">{to_mathml(line.math, link)}</div>' for line in lines)


def _formula(formula: Formula, link: Link) -> str:
    shown = _lines(formula.lines, link)
    if formula.premises is not None:
        shown = f'<div class="rule">{_lines(formula.premises, link)}<hr>{shown}</div>'
    remark = f'<p class="remark">{_inert(formula.remark)}</p>' if formula.remark else ""
    return f'<div class="formula" tabindex="0">{shown}</div>{remark}{_notes(formula.notes)}'


def _notes(notes: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<dt>{_inert(label)}</dt><dd>{_inert(text)}</dd>" for label, text in notes)
    return f"<dl>{rows}</dl>" if rows else ""


def _table(card: Card, link: Link) -> str:
    rows = []
    for row in card.table or ():
        address = link(row.constraint)
        demanded = _inert(row.constraint)
        demanded = f'<a href="{escape(address)}">{demanded}</a>' if address else demanded
        cells = (_inert(row.title), demanded, _inert(row.status), _notes(row.notes))
        rows.append(
            f'<tr id="{anchor(f"{card.name}:{row.id}")}"><th scope="row">{_inert(row.id)}</th>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )
    head = "".join(f'<th scope="col">{title}</th>' for title in ("Rule", "Title", "Demands", "Status", "Text"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def html_index(pages: Sequence[tuple[str, str, Sequence[Card]]]) -> str:
    """The index of (file name, page name, cards)."""
    parts = ["<h1>Specification</h1>"]
    for file, page, cards in pages:
        names = "".join(
            f'<li><a href="{escape(f"{page}#{anchor(card.name)}")}">{_inert(card.name)}</a></li>' for card in cards
        )
        parts.append(f'<h2><a href="{escape(page)}">{_inert(file)}</a></h2><ul class="names">{names}</ul>')
    return html_document("Specification", "\n".join(parts))
