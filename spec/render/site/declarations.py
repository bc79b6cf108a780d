"""The pages of files: their declarations as articles, under the headings of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from ...language.syntax import Declaration, File, Operator
from ...pages.markup import Piece, e
from ..cards import Card, Row, card
from .formulas import formula, listed, notes, prose
from .places import Places, Section, anchor, first_sentence, operator_page, page, sections, title
from .references import References


def file_page(file: File, text: str, where: Places, known: References) -> str:
    """The page of a file. Its operators have pages of their own and stand in a list behind the declarations."""
    opening, *headed = sections(text)
    names = list(dict.fromkeys(d.name for d in file.declarations if isinstance(d, Operator)))
    first = {d.name: d for d in reversed(file.declarations) if isinstance(d, Operator)}
    operators = [
        e("li", e("a", name, href=operator_page(name)), ": ", prose(first_sentence(first[name].doc), where))
        for name in names
    ]
    parts: list[Piece] = [
        e("p", prose(opening.remark, where)),
        *([e("h2", "Operators"), e("ul", operators)] if operators else []),
        *(
            [e("h2", "Definitions")]
            if operators and any(not isinstance(d, Operator) for d in file.declarations)
            else []
        ),
        *_articles(file.declarations, headed, where, known),
        e("p", f"The text: spec/{file.name}", class_="quiet"),
    ]
    return page(title(file.name), parts)


def _articles(
    declarations: Iterable[Declaration], headed: list[Section], where: Places, known: References
) -> Iterator[Element]:
    waiting = list(headed)
    for declared in declarations:
        while waiting and waiting[0].line < declared.span.line:
            section = waiting.pop(0)
            yield e("h2", section.title)
            if section.remark:
                yield e("p", prose(section.remark, where))
        if not isinstance(declared, Operator):
            yield _article(card(declared), where, known)


def _article(shown: Card, where: Places, known: References) -> Element:
    def link(name: str) -> str | None:
        return None if name == shown.name else where.of(name)

    return e(
        "article",
        e("h3", shown.title, e("span", shown.kind, class_="kind")),
        e("p", prose(shown.sentence, where)),
        [formula(item, link) for item in shown.formulas],
        notes(shown.notes, where),
        [_rule(shown.name, row, where) for row in shown.table or ()],
        listed("Used by", known.users.get(shown.name, ())),
        id=anchor(shown.name),
    )


def _rule(rule_set: str, row: Row, where: Places) -> Element:
    """A rule of a rule set: what it is called there, and the constraint that it demands."""
    demanded = e("a", row.constraint, href=where.of(row.constraint))
    return e(
        "div",
        e("h4", f"{row.id}: {row.title}", e("span", row.status, class_="kind")),
        e("p", demanded, ". ", prose(where.sentences[row.constraint], where)),
        notes(row.notes, where),
        class_="rule-of-set",
        id=anchor(f"{rule_set}:{row.id}"),
    )
