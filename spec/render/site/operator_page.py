"""The page of an operator: its versions, its meanings with their examples, what changes, what refers to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from xml.etree.ElementTree import Element

from ...elaborate.coverage import absent, kind_of, local_functions, used_definitions
from ...elaborate.schema import FormalAttribute, FormalPort, Signature
from ...language.syntax import FunctionDeclaration, Operator, spelled_group
from ...pages.markup import e
from ..cards import Formula, card
from .changes import MARKS, Item, Pair, compare, presence, schema_changes, summary, types
from .examples import Executed, Value
from .formulas import Link, demand, formula, listed, notes, prose
from .places import COVERAGE, Places, anchor, demand_anchor, page, page_name, title
from .references import References, reference

OPEN = 8
"""A comparison of more rows is folded."""
Examples = Mapping[int, Sequence[tuple[str, int, Executed]]]
"""For the first version of a meaning: what an example shows, the version at which it was executed, what came of it."""


def operator_page(
    meanings: Sequence[Operator],
    versions: Sequence[Signature],
    functions: Mapping[str, FunctionDeclaration],
    texts: Mapping[str, str],
    where: Places,
    known: References,
    examples: Examples,
) -> str:
    """The page of an operator. meanings: oldest first. versions: its signatures, oldest first. texts: of the files."""
    name = meanings[0].name
    families = dict.fromkeys(meaning.span.file for meaning in meanings)
    family = [e("a", title(file), href=page_name(file)) for file in families]
    uses = {f.name: f for meaning in meanings for f in used_definitions(meaning, functions)}
    newest = list(reversed(meanings))
    return page(
        name,
        e("p", [piece for item in family for piece in (item, " ")], class_="quiet"),
        _versions(meanings, versions, functions, where),
        [_meaning(m, versions, texts, where, known, examples.get(m.first, ())) for m in newest],
        [_comparison(old, new, where) for old, new in reversed(list(pairwise(meanings)))],
        e("h2", "References") if uses or known.restrictions.get(name) or known.applications.get(name) else None,
        listed("Definitions used", [reference(function, where) for function in uses.values()]),
        listed("Applied by", known.applications.get(name, ())),
        listed("Rules about it", known.restrictions.get(name, ())),
    )


# ---- Versions ---------------------------------------------------------------------------------


def _versions(
    meanings: Sequence[Operator],
    versions: Sequence[Signature],
    functions: Mapping[str, FunctionDeclaration],
    where: Places,
) -> Element:
    rows = []
    for old, new in pairwise((None, *versions)):
        if new is None:
            continue
        meaning = next((m for m in meanings if m.first <= new.version <= m.last), None)
        shown = (
            (e("a", _range(meaning), href=where.of(f"{new.name}-{new.version}")), f", {kind_of(meaning, functions)}")
            if meaning
            else (e("a", absent(new, versions), href=COVERAGE),)
        )
        changes = schema_changes(old, new) if old else ()
        differs = e("ul", [e("li", change) for change in changes]) if changes else "" if old else "the first version"
        rows.append(e("tr", e("th", str(new.version), scope="row"), e("td", shown), e("td", differs)))
    head = e("tr", [e("th", label, scope="col") for label in ("Version", "Meaning", "What the schema changes")])
    return e("div", e("table", e("thead", head), e("tbody", rows)), class_="scroll")


def _range(meaning: Operator) -> str:
    return str(meaning.first) if meaning.first == meaning.last else f"{meaning.first} to {meaning.last}"


def _named(meaning: Operator) -> str:
    return f"Version {meaning.first}" if meaning.first == meaning.last else f"Versions {_range(meaning)}"


# ---- A meaning --------------------------------------------------------------------------------


def _meaning(
    meaning: Operator,
    versions: Sequence[Signature],
    texts: Mapping[str, str],
    where: Places,
    known: References,
    examples: Sequence[tuple[str, int, Executed]],
) -> Element:
    shown = card(meaning)
    link = link_of(meaning, where)
    signature = next((s for s in reversed(versions) if meaning.first <= s.version <= meaning.last), None)
    return e(
        "section",
        e("h2", shown.title),
        e("p", prose(shown.sentence, where)),
        formula(shown.formulas[0], link),
        _signature(signature) if signature else None,
        _body(meaning, shown.formulas[1:], where, link),
        notes(shown.notes, where),
        [_example(*example) for example in examples],
        _source(meaning, texts),
        class_="meaning",
        id=anchor(str(meaning.first)),
    )


def link_of(meaning: Operator, where: Places) -> Link:
    """The links in the formulas of a meaning: the functions that it declares for itself have none."""
    own = local_functions(meaning) | {meaning.name}
    return lambda name: None if name in own else where.of(name)


def _body(meaning: Operator, shown: Sequence[Formula], where: Places, link: Link) -> Iterator[Element]:
    for item in shown:
        yield demand(item, demand_anchor(meaning, item.id), where, link) if item.id else formula(item, link)


def _signature(signature: Signature) -> Element:
    """The parameters at the newest version of a meaning, and the types that they may have."""

    def port(what: str, formal: FormalPort) -> Element:
        cells = e("td", what), e("th", formal.name, scope="row"), e("td", spelled_group(formal.type, formal.others))
        return e("tr", cells, e("td", MARKS[formal.mark]))

    def attribute(formal: FormalAttribute) -> Element:
        cells = e("td", "attribute"), e("th", formal.name, scope="row"), e("td", str(formal.sort))
        return e("tr", cells, e("td", presence(formal)))

    rows = [
        *(port("input", formal) for formal in signature.inputs),
        *(port("output", formal) for formal in signature.outputs),
        *(attribute(signature.attributes[name]) for name in sorted(signature.attributes)),
    ]
    kinds = [
        element
        for name, allowed in types(signature).items()
        for element in (e("dt", name), e("dd", ", ".join(sorted(allowed))))
    ]
    label = f"Parameters and types at version {signature.version}"
    table = e("div", e("table", e("tbody", rows)), class_="scroll")
    return e("details", e("summary", label), table, e("dl", kinds) if kinds else None)


def _example(says: str, version: int, executed: Executed) -> Element:
    def line(value: Value, class_: str | None = None) -> Element:
        label = e("th", value.name, e("div", value.type, class_="quiet") if value.type else None, scope="row")
        return e("tr", label, e("td", e("pre", value.text)), class_=class_)

    rows = [*map(line, executed.given), *(line(value, "result") for value in executed.outputs)]
    return e(
        "div",
        e("p", e("strong", "Example. "), says, e("span", f"version {version}", class_="kind")),
        e("div", e("table", e("tbody", rows)), class_="scroll"),
        e("p", "No result: ", executed.stuck, class_="stuck") if executed.stuck else None,
        class_="example",
    )


def _source(meaning: Operator, texts: Mapping[str, str]) -> Element:
    span = meaning.span
    lines = texts[span.file].split("\n")[span.line - 1 : span.end_line]
    folder = "" if page_name(span.file).startswith("added-") else "spec/"
    place = f"{folder}{span.file}, line {span.line}"
    return e("details", e("summary", f"The text: {place}"), e("pre", "\n".join(lines).rstrip(), tabindex="0"))


# ---- Changes ----------------------------------------------------------------------------------


def _comparison(old: Operator, new: Operator, where: Places) -> Element:
    pairs = compare(old, new)
    label = f"{_named(old)} beside {_named(new).lower()}"
    sentences = [e("td", prose(m.doc, where), data_label=_range(m)) for m in (old, new)]
    rows = [e("tr", sentences)] if old.doc != new.doc else []
    rows += [_compared(pair, old, new, where) for pair in pairs]
    head = e("tr", [e("th", _named(m), scope="col") for m in (old, new)])
    table = e("table", e("thead", head), e("tbody", rows), class_="wide changes stacks")
    is_open = "" if len(rows) <= OPEN else None
    return e(
        "section",
        e("h2", label),
        e("details", e("summary", summary(pairs)), e("div", table, class_="scroll"), open=is_open),
        id=anchor(f"{old.first}-{new.first}"),
    )


def _compared(pair: Pair, old: Operator, new: Operator, where: Places) -> Element:
    if pair.alike:
        parts = "part" if pair.alike == 1 else "parts"
        return e("tr", e("td", f"{pair.alike} {parts} alike", colspan="2"), class_="alike")
    return e("tr", _side(pair.old, old, where, "dropped"), _side(pair.new, new, where, "added"))


def _side(item: Item | None, meaning: Operator, where: Places, class_: str) -> Element:
    if item is None:
        return e("td")
    sentence = e("p", item.formula.remark) if item.formula.remark else None
    return e("td", sentence, formula(item.formula, link_of(meaning, where)), class_=class_, data_label=_range(meaning))
