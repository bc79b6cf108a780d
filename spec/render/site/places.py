"""Pages of the site: the headings of files, the addresses of declarations, and the frame of every page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ...language.syntax import File, Operator, Profile
from ...pages.markup import Content, e, serialize
from ...pages.templates import page as filled
from ...project import texts

# ---- Files --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file that begins at a line; title "" for what stands before the first heading."""

    line: int
    title: str
    remark: str


def sections(text: str) -> tuple[Section, ...]:
    """The sections of a file; the first one's remark is the file's introduction."""
    lines = text.split("\n")
    parts = [Section(1, "", _comment(lines, 0))]
    for number, line in enumerate(lines):
        heading = re.fullmatch(r"#\s*-{3,}\s*(\S.*?)\s*-{3,}\s*", line)
        if heading:
            parts.append(Section(number + 1, heading[1], _comment(lines, number + 1)))
    return tuple(parts)


def _comment(lines: list[str], first: int) -> str:
    """The comment that begins at a line, as one text."""

    def comments() -> Iterator[str]:
        for line in lines[first:]:
            if not line.startswith("# ") or line.startswith("# --"):
                return
            yield line[2:].strip()

    return " ".join(comments())


def first_sentence(text: str) -> str:
    """The first sentence of a text, without the part's number in front of it."""
    sentence = re.sub(r"^Part \d+(, continued)?[:,] ", "", text).partition(". ")[0].rstrip(".")
    return f"{sentence[:1].upper()}{sentence[1:]}."


def title(file: str) -> str:
    """The heading of a file's page, made of its name relative to `spec/`; of a file that is added, its name."""
    if file in texts():
        return f"Added: {file}"
    folder, _, stem = file.removesuffix(".sonnx").rpartition("/")
    words = stem.replace("-", ", ")
    if folder == "profiles":
        return f"Rule set {stem}"
    number, _, rest = stem.partition("-")
    if folder == "6-properties":
        return f"Properties {number}: {rest.replace('-', ', ')}"
    if folder == "7-transforms":
        return f"Transforms: {words}"
    if folder:
        of = folder.partition("/")[2]
        return f"Operators{f' of {of}' if of else ''}: {words}"
    return f"Part {number}: {rest.replace('-', ', ')}" if number.isdigit() else stem.capitalize()


def page_name(file: str) -> str:
    """The name of a file's page."""
    if file in texts():
        return f"added-{re.sub(r'[^A-Za-z0-9.-]+', '-', file.removesuffix('.sonnx')).strip('-')}.html"
    folder, _, stem = file.removesuffix(".sonnx").rpartition("/")
    prefixes = {"": "", "profiles": "rules-", "6-properties": "properties-", "7-transforms": "transforms-"}
    prefix = prefixes.get(folder, "family-")
    of = folder.partition("/")[2]
    return f"{prefix}{of and f'{of}-'}{stem}.html"


# ---- Addresses ----------------------------------------------------------------------------------


COVERAGE, NAMES, DEMANDS = "coverage.html", "names.html", "demands.html"
INTERFACE = "commands-and-interfaces.html"


def anchor(name: str) -> str:
    """The name as a fragment identifier: other characters than letters, digits, `.` and `-` as their code."""
    return re.sub(r"[^A-Za-z0-9.-]", lambda other: f"_{ord(other.group()):x}_", name)


def operator_page(name: str) -> str:
    """The page of an operator; a colon in its address would end the name of a protocol."""
    return f"operator-{name.replace('::', '.')}.html"


def meaning(operator: Operator) -> str:
    """The name of one meaning of an operator."""
    return f"{operator.name}-{operator.first}"


def demand_anchor(operator: Operator, own: str) -> str:
    """The fragment of the `require` or `restrict` of that id in a meaning."""
    return anchor(f"{operator.first}.{own.replace('_', '-')}")


@dataclass(frozen=True, slots=True)
class Places:
    """Addresses by name: of declarations (an operator at each version as `Relu-14`), of operators, and of the rules of
    rule sets by their ids, as (rule set, address). sentences: of the declarations other than operators."""

    names: Mapping[str, str]
    sentences: Mapping[str, str]
    operators: Mapping[str, str]
    rules: Mapping[str, tuple[tuple[str, str], ...]]

    def of(self, name: str) -> str | None:
        """The address of a declaration, None when there is none of that name."""
        return self.names.get(name)

    def demand(self, demanded: str) -> str:
        """The address of a demand of a `require` or `restrict`: a rule of a rule set, else the list of demands."""
        rules = self.rules_of(demanded)
        return rules[0][1] if rules else f"{DEMANDS}#{anchor(demanded)}"

    def rules_of(self, demanded: str) -> tuple[tuple[str, str], ...]:
        """The rules that a `demanded` clause names: `SONNX/Conv-R1` is the rule Conv/R1 of whatever set has it."""
        own = demanded.partition("/")[2]
        return self.rules.get(own) or self.rules.get(re.sub(r"-(R\d+)$", r"/\1", own), ())


def places(files: Iterable[File]) -> Places:
    """The places of everything that the files declare."""
    names: dict[str, str] = {}
    sentences: dict[str, str] = {}
    operators: dict[str, str] = {}
    rules: dict[str, tuple[tuple[str, str], ...]] = {}
    for file in files:
        page = page_name(file.name)
        for declared in file.declarations:
            if isinstance(declared, Operator):
                own = operators[declared.name] = operator_page(declared.name)
                address = f"{own}#{anchor(str(declared.first))}"
                names |= {f"{declared.name}-{v}": address for v in range(declared.first, declared.last + 1)}
                continue
            sentences[declared.name] = declared.doc
            names[declared.name] = f"{page}#{anchor(declared.name)}"
            for rule in declared.rules if isinstance(declared, Profile) else ():
                place = (declared.name, f"{page}#{anchor(f'{declared.name}:{rule.id}')}")
                rules[rule.id] = (*rules.get(rule.id, ()), place)
    return Places(names, sentences, operators, rules)


# ---- The frame of pages -------------------------------------------------------------------------


INDEX = "index.html"
NAVIGATION = ((INDEX, "Specification"), (COVERAGE, "Operators"), (NAMES, "Names"), (DEMANDS, "Demands"))


def page(title: str, *body: Content) -> str:
    """A page."""
    main = serialize(e("main", e("h1", title), *body))
    return filled(__package__, "site.html", "style.css", title=title, links=NAVIGATION, main=main)
