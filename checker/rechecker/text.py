"""The rechecker's own reading of the specification's text: its files are parsed here, with the grammar file alone.

Only what is asked for is parsed: the files of the rule sets, then the files that declare the constraints and all that
these come to. Names, types, formulas, clauses and digests are read off the parse trees; a name that two files declare
is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path, PurePath

from lark import Token, Tree
from lark.exceptions import LarkError
from sonnx.semantics.errors import Unsupported

from .operators.text import Library, library, parser, unquoted

Node = Tree[Token]
STATED = re.compile(r"^(?:fact|define|inductive|constraint|fun)\s+([A-Za-z_]\w*)", re.MULTILINE)
ROOTS = (
    "[1-4]*-*.sonnx", "primitives.sonnx", "profiles/*.sonnx", "5-operators/**/*.sonnx", "6-properties/*.sonnx",
    "7-transforms/*.sonnx",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Declaration:
    """A fact, define, inductive, fun or constraint. result: its type as a tree, None for inductive and constraint.

    body: the formula or expression, None for a fact. clauses: the first value of each key.
    """

    kind: str
    name: str
    parameters: tuple[tuple[str, str], ...]
    result: Node | None
    doc: str
    body: Node | None
    clauses: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a rule set."""

    id: str
    constraint: str
    status: str
    variant: str | None


@dataclass(frozen=True, slots=True)
class RuleSet:
    """A rule set: the file that states it, what it includes and collects, its rules in document order."""

    name: str
    file: str
    includes: tuple[str, ...]
    collects: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, eq=False)
class Text:
    """The texts of a specification by file name, relative to its folder. Equal texts are one object.

    own: the texts of a user that are added, their names among the others. added: by their SHA-256 their names without
    folders.
    """

    contents: Mapping[str, str]
    own: frozenset[str] = frozenset()
    added: Mapping[str, str] = field(default_factory=dict)
    _trees: dict[str, Node] = field(default_factory=dict)
    _declared: dict[str, Declaration] = field(default_factory=dict)
    _homes: dict[str, str] = field(default_factory=dict)
    _rule_sets: dict[str, RuleSet | None] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    def rule_set(self, name: str) -> RuleSet | None:
        """The rule set of that name."""
        if name not in self._rule_sets:
            self._rule_sets[name] = self._rule_set(name)
        return self._rule_sets[name]

    def _rule_set(self, name: str) -> RuleSet | None:
        for file in self.contents:
            if (file.startswith("profiles/") or file in self.own) and f"profile {name} " in self.contents[file]:
                for tree in _all(self._tree(file), "profile"):
                    if str(tree.children[0]) == name:
                        return _rule_set(tree, file)
        return None

    def declaration(self, name: str) -> Declaration | None:
        """The function or constraint of that name."""
        if not self._homes:
            self._find_homes()
        home = self._homes.get(name)
        if home is not None and name not in self._declared:
            for tree in self._tree(home).children:
                if isinstance(tree, Tree) and tree.data in _READERS:
                    declared = _declaration(tree)
                    self._declared[declared.name] = declared
        return self._declared.get(name)

    @cached_property
    def operators(self) -> Library:
        """The texts of the operators, each parsed when it is first asked for."""
        of = {n: it for n, it in self.contents.items() if n.startswith("5-operators/") or n in self.own}
        made = library(grammar(), of)
        twice = made.defined_twice()
        if twice:
            raise Unsupported(f"two texts of the specification define {twice}")
        return made

    def digest(self, rule_set: RuleSet) -> str:
        """SHA-256 over one line "NAME DIGEST" for each text that fixes the meaning of a rule set, sorted by name."""
        others = ("profiles/", "6-") if rule_set.collects else ("profiles/", "5-operators/", "6-")
        kept = self.contents.keys() - self.own
        names = sorted(name for name in kept if name == rule_set.file or not name.startswith(others))
        if not self._digests:
            self._digests.update((n, hashlib.sha256(it.encode()).hexdigest()) for n, it in self.contents.items())
        lines = (f"{name} {self._digests[name]}\n" for name in names)
        added = self._digests[rule_set.file] if rule_set.file in self.own else ""
        return hashlib.sha256(f"{''.join(lines)}{added}".encode()).hexdigest()

    def _tree(self, file: str) -> Node:
        if file not in self._trees:
            try:
                self._trees[file] = parser(grammar()).parse(self.contents[file], start="start")
            except LarkError as error:
                raise Unsupported(f"the specification's text {file} cannot be parsed: {error}") from None
        return self._trees[file]

    def _find_homes(self) -> None:
        for file, content in self.contents.items():
            if "/" not in file or file in self.own:
                for match in STATED.finditer(content):
                    if self._homes.setdefault(match[1], file) != file:
                        raise Unsupported(f"two texts of the specification declare {match[1]}")


def texts() -> Text:
    """The texts of the specification in the installed package, with those that SONNX_SPEC names, as `sonnx --spec` sets
    it. The files are read once for each recheck, which begins with `forget`."""
    return _named(os.environ.get("SONNX_SPEC", ""))


def forget() -> None:
    """Has the added files read anew."""
    _named.cache_clear()


@cache
def _named(paths: str) -> Text:
    return _texts(tuple(map(_added, filter(None, paths.split(os.pathsep)))))


def _added(path: str) -> tuple[str, str]:
    try:
        text = Path(path).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Unsupported(f"the added text {Path(path).name} cannot be read: {error}") from None
    if "\r" in text.replace("\r\n", ""):
        raise Unsupported(f"the added text {Path(path).name} cannot be read: a carriage return alone ends no line")
    if re.search(r"[0-9]{101}", text):
        raise Unsupported(f"the added text {Path(path).name} has a number of more than 100 digits")
    return str(Path(path).absolute()), text


@cache
def _texts(added: tuple[tuple[str, str], ...]) -> Text:
    root = _installed()
    names = [path.relative_to(root).as_posix() for pattern in ROOTS for path in sorted(root.glob(pattern))]
    own = {name: (root / name).read_text(encoding="utf-8") for name in names}
    digests = {hashlib.sha256(text.encode()).hexdigest(): PurePath(name).name for name, text in added}
    return Text({**own, **dict(added)}, frozenset(name for name, _ in added), digests)


def _installed() -> Path:
    """The folder of the specification's texts; the package there is located, not imported."""
    spec = find_spec("sonnx.spec")
    if spec is None or spec.origin is None:
        raise Unsupported("the specification's text is not installed")
    return Path(spec.origin).parent


@cache
def grammar() -> str:
    """The grammar of the language: with the texts what the rechecker shares with the rest of the package."""
    return (_installed() / "language" / "language.lark").read_text(encoding="utf-8")


# ---- Declarations -------------------------------------------------------------------------------

_READERS = frozenset(["fact", "fun", "define", "inductive", "constraint"])


def _declaration(tree: Node) -> Declaration:
    kind = str(tree.data)
    name = str(tree.children[0])
    match kind, tree.children[1:]:
        case "constraint", [Token() as doc, Tree(), Tree() as body, *clauses]:
            return Declaration(kind, name, (), None, unquoted(doc), body, _clauses(clauses))
        case "inductive", [parameters, Token() as doc, Tree() as body, *_]:
            return Declaration(kind, name, _parameters(parameters), None, unquoted(doc), body)
        case "define", [parameters, Tree() as result, Token() as doc, Tree() as body, *_]:
            return Declaration(kind, name, _parameters(parameters), result, unquoted(doc), body)
        case (("fact" | "fun"), [parameters, Tree() as result, Token() as doc, *clauses]):
            return Declaration(kind, name, _parameters(parameters), result, unquoted(doc), None, _clauses(clauses))
    raise Unsupported(f"the declaration of {name} has a form that this rechecker does not know")


def _parameters(node: object) -> tuple[tuple[str, str], ...]:
    listed = node.children if isinstance(node, Tree) else []
    return tuple((str(p.children[0]), sort_of(p.children[1])) for p in listed if isinstance(p, Tree))


def sort_of(type_: object) -> str:
    """The type as text: Node, set Node, list Int."""
    if not isinstance(type_, Tree):
        return ""
    if type_.data == "base":
        return str(type_.children[0])
    return " ".join([str(type_.data), *(sort_of(child) for child in type_.children)])


def _clauses(nodes: Sequence[object]) -> dict[str, str]:
    clauses: dict[str, str] = {}
    for key, value in _listed(nodes):
        clauses.setdefault(key, value)
    return clauses


def _listed(nodes: Sequence[object]) -> list[tuple[str, str]]:
    return [
        (str(node.data), unquoted(value) if value.type == "TEXT" else str(value))
        for node in nodes
        if isinstance(node, Tree)
        for value in node.children
        if isinstance(value, Token)
    ]


def _rule_set(tree: Node, file: str) -> RuleSet:
    own = [child for child in tree.children if isinstance(child, Tree) and child.data != "profile_rule"]
    listed = _listed(own)
    return RuleSet(
        str(tree.children[0]),
        file,
        tuple(value for key, value in listed if key == "includes"),
        next((value for key, value in listed if key == "collects"), ""),
        tuple(_rule(child) for child in _all(tree, "profile_rule")),
    )


def _rule(tree: Node) -> Rule:
    clauses = _clauses(tree.children[3:])
    status, variant = clauses.get("status", "current"), clauses.get("variant")
    return Rule(str(tree.children[0]), str(tree.children[2]), status, variant)


def _all(tree: Node, data: str) -> list[Node]:
    return [child for child in tree.children if isinstance(child, Tree) and child.data == data]
