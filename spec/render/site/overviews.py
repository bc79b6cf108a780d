"""The pages about the whole: the entrance, the coverage of ONNX's operators, all names, who demands what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from xml.etree.ElementTree import Element

from ...elaborate.coverage import KINDS
from ...language.syntax import (
    Constraint,
    Contract,
    File,
    FunctionDeclaration,
    Operator,
    Profile,
    Property,
    Rewrite,
    SortDeclaration,
    Transition,
)
from ...pages.markup import e
from ..cards import KINDS as FUNCTION_KINDS
from .formulas import listed
from .interface import coded
from .places import COVERAGE, Places, anchor, first_sentence, operator_page, page, page_name, sections, title
from .references import Reference, References

MEANINGS = {
    "defined": ("●", "by equations"),
    "composed": ("◐", "by applying other operators"),
    "primitive": ("■", "by a contract instead of equations, of one function or of the whole operator"),
    "rule": ("▶", "by a rule of execution"),
    "deprecated": ("×", "not at all, in a version that ONNX deprecates"),
    "earlier": ("‹", "not at all, in a version that is in force before opset 7 only"),
    "missing": ("·", "not at all"),
}
"""For each way to give an operator its meaning a mark and its description."""
KIND_NAMES = {
    SortDeclaration: "sort",
    Constraint: "constraint",
    Transition: "rule of execution",
    Property: "law, theorem, finding or situation",
    Profile: "rule set",
    Operator: "operator",
    Contract: "contract",
    Rewrite: "rewrite",
}
GROUPS = (
    ("", "Graphs, rules, execution"),
    ("5-operators", "Operators"),
    ("5-operators/microsoft", "Operators of com.microsoft"),
    ("6-properties", "Properties of all graphs"),
    ("7-transforms", "Transforms of graphs"),
    ("profiles", "Rule sets"),
)
"""The folders of the specification and their headings."""
Coverage = Mapping[str, Mapping[int, str]]


def index_page(
    files: Sequence[File], texts: Mapping[str, str], covered: Coverage, more: Iterable[tuple[str, str]] = ()
) -> str:
    """The entrance: what the specification is, and its pages in document order. more: titles and addresses of pages
    that are not about the text.
    """
    added = [file for file in files if page_name(file.name).startswith("added-")]
    every = Counter(kind for versions in covered.values() for kind in versions.values())
    counts = ", ".join(f"{every[kind]} {kind}" for kind in KINDS if every[kind])
    purpose = (
        "What ONNX graphs mean, written once as text; sonnx executes, checks and proves from this text. "
        "Each declaration stands here with its sentence, its formula, its sources and what refers to it."
    )
    return page(
        "The specification",
        e("p", purpose),
        e("p", e("a", "Operators by version", href=COVERAGE), f": {counts}."),
        [e("p", e("a", label, href=address)) for label, address in more],
        [
            _group(heading, [it for it in files if it not in added and folder == it.name.rpartition("/")[0]], texts)
            for folder, heading in GROUPS
        ],
        _group("Added by files of yours", added, texts) if added else None,
    )


def _group(heading: str, files: Sequence[File], texts: Mapping[str, str]) -> Element:
    """A group of files with their operators."""
    return e("section", e("h2", heading), [_entry(file, texts[file.name]) for file in files])


def _entry(file: File, text: str) -> Element:
    operators = dict.fromkeys(d.name for d in file.declarations if isinstance(d, Operator))
    links = [e("li", e("a", name, href=operator_page(name))) for name in operators]
    return e(
        "div",
        e("p", e("a", e("strong", title(file.name)), href=page_name(file.name)), " ", coded(_opening(text))),
        e("ul", links, class_="names") if links else None,
        class_="entry",
    )


def _opening(text: str) -> str:
    return first_sentence(sections(text)[0].remark)


def coverage_page(covered: Coverage, where: Places) -> str:
    """The matrix of ONNX's operators and their versions."""
    numbers = sorted({version for versions in covered.values() for version in versions})
    head = e("tr", e("th", "Operator", scope="col"), [e("th", str(number), scope="col") for number in numbers])
    rows = []
    for name, versions in covered.items():
        address = where.operators.get(name) or where.names.get(name)
        label = name if address is None else e("a", name, href=address)
        cells = [_cell(name, number, versions.get(number), where) for number in numbers]
        rows.append(e("tr", e("th", label, scope="row", class_="missing" if address is None else None), cells))
    every = Counter(kind for versions in covered.values() for kind in versions.values())
    legend = [
        e("li", e("span", MEANINGS[kind][0], class_=_class(kind)), f" {kind}, {MEANINGS[kind][1]}: {every[kind]}")
        for kind in KINDS
    ]
    intro = (
        "A column is a version of the operator set; a mark stands where it changes the operator, and says how the "
        "text gives the operator its meaning from there on."
    )
    table = e("table", e("thead", head), e("tbody", rows), class_="matrix")
    return page(
        "Operators by version",
        e("p", intro),
        e("ul", legend, class_="legend"),
        e("div", table, class_="scroll", tabindex="0"),
    )


def _class(kind: str) -> str:
    return "rule-kind" if kind == "rule" else kind


def _cell(name: str, version: int, kind: str | None, where: Places) -> Element:
    if kind is None:
        return e("td")
    mark, address = MEANINGS[kind][0], where.of(f"{name}-{version}")
    label = f"{name}-{version}: {kind}"
    return e("td", e("a", mark, href=address) if address else mark, class_=_class(kind), title=label)


def names_page(files: Iterable[File], where: Places) -> str:
    """Every declared name in alphabetical order, with what it is."""
    kinds: dict[str, str] = {}
    for declared in (declared for file in files for declared in file.declarations):
        if isinstance(declared, FunctionDeclaration):
            kinds[declared.name] = FUNCTION_KINDS[declared.kind].lower()
        else:
            kinds[declared.name] = KIND_NAMES[type(declared)]
    rows = [
        e("tr", e("th", e("a", name, href=where.operators.get(name) or where.names[name]), scope="row"), e("td", kind))
        for name, kind in sorted(kinds.items(), key=lambda row: (row[0].lower(), row[0]))
    ]
    return page("Names", e("div", e("table", e("tbody", rows)), class_="scroll"))


def demands_page(where: Places, known: References) -> str:
    """By who demands them, the requirements of all operators: what is demanded by a rule of SONNX comes first."""
    parts = []
    for demanded, rows in sorted(known.demands.items(), key=lambda item: ("/" not in item[0], item[0])):
        entries = [e("li", e("a", demand.title, href=demand.address), ": ", sentence) for demand, sentence in rows]
        rules = where.rules_of(demanded)
        parts.append(
            e(
                "article",
                e("h3", demanded or "Without a clause", e("span", f"{len(rows)}", class_="kind")),
                listed("Rule", [Reference(f"{rule_set}: {demanded}", address) for rule_set, address in rules]),
                e("ul", entries) if "/" in demanded else e("details", e("summary", "show all"), e("ul", entries)),
                id=anchor(demanded),
            )
        )
    intro = (
        "Whoever uses an operator has to keep its requirements. ONNX states some of them, the rules of SONNX others; "
        "SONNX alone stands where the standard is silent and the meaning would be undefined without the requirement. "
        "A restriction forbids in SONNX what has a meaning in ONNX all the same."
    )
    return page("Demands", e("p", intro), parts)
