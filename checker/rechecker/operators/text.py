"""The texts of operators as parse trees: cut into declarations, of which only those that are asked for are parsed.

Shared with the rest of the package is the grammar, `spec/language/language.lark`, and nothing else of what reads the
specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from lark import Lark, Token, Tree
from lark.lexer import PatternRE, PatternStr, TerminalDef

Node = Tree[Token]
Part = Node | Token | None

_TOKENS = re.compile(
    r'"(?:\\.|[^"\\])*"|#[^\n]*|^(?P<head>operator|contract|define|fun|sort|fact|profile|constraint)\b', re.S | re.M
)
_OPERATOR = re.compile(r"operator\s+((?:[\w.]+::)?\w+)\s*@\s*(\d+)(?:\s*\.\.\s*(\d+))?(\s+like\b)?")
_DEFINE = re.compile(r"define\s+(\w+)")


LONGEST = 99
"""A longer chain of differences goes round in circles."""


class TextError(Exception):
    """The text of an operator is not as the grammar wants it."""


@cache
def parser(grammar: str) -> Lark:
    """The LALR(1) parser of the grammar, for files and for single declarations."""
    return Lark(
        grammar,
        parser="lalr",
        start=["start", "operator", "difference", "define"],
        maybe_placeholders=True,
        edit_terminals=_whole_words,
    )


def _whole_words(terminal: TerminalDef) -> None:
    """Keywords end where a word ends."""
    if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.isalpha():
        terminal.pattern = PatternRE(terminal.pattern.value + r"(?![A-Za-z0-9_'])")
        terminal.priority = 1


# ---- Declarations -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Port:
    """A formal input or output. mark: "", "?" or "*". shape: names, names with dots (True), numbers; None for none.

    others: where a variadic input comes in groups, the types of the entries of a group behind the first.
    """

    name: str
    mark: str
    type: str
    shape: tuple[tuple[str, bool] | int, ...] | None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: its kind by the grammar, its tree; of a demand its id and its sentence."""

    kind: str
    tree: Node
    id: str = ""
    sentence: str = ""

    @property
    def name(self) -> str:
        """The name by which a difference refers to it: the id, or the first name that it defines."""
        if self.kind == "along":
            return str(node(self.tree.children[1]).children[0])
        return self.id or str(self.tree.children[0])


@dataclass(frozen=True, slots=True)
class Attribute:
    """A declared attribute: its kind as the text spells it, "?" where it may be left out, the tree of its default."""

    name: str
    kind: str
    mark: str
    default: Node | None


@dataclass(frozen=True, slots=True)
class Operator:
    """The text of an operator for the versions first..last; doc: what it says in words.

    types, attributes: what it declares where ONNX has no schema of it; the type variables with what they admit.
    """

    name: str
    first: int
    last: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    statements: tuple[Statement, ...]
    doc: str = ""
    types: tuple[tuple[str, tuple[str, ...]], ...] = ()
    attributes: tuple[Attribute, ...] = ()

    def rule(self, position: int) -> str:
        """The id of the rule that a statement is, or the header for -1."""
        return f"{self.name}-{self.first}/{'inputs' if position < 0 else self.statements[position].id}"

    def sentence(self, position: int) -> str:
        """The words of the rule."""
        if position >= 0:
            return self.statements[position].sentence
        return f"The inputs have shapes that go together: {', '.join(map(_spelled, self.inputs))}."


def _spelled(port: Port) -> str:
    kind = f"({', '.join((port.type, *port.others))})" if port.others else port.type
    if port.shape is None:
        return f"{port.name}{port.mark}: {kind}"
    sizes = [str(item) if isinstance(item, int) else item[0] + "..." * item[1] for item in port.shape]
    return f"{port.name}{port.mark}: {kind}[{', '.join(sizes)}]"


@dataclass(frozen=True, slots=True)
class Definition:
    """A function that the text defines."""

    name: str
    parameters: tuple[str, ...]
    body: Node


@dataclass(slots=True)
class Library:
    """The declarations of the operators' files; each is parsed when it is first asked for."""

    grammar: str
    _operators: dict[str, list[tuple[int, int, str, str]]] = field(default_factory=dict)
    _defines: dict[str, str] = field(default_factory=dict)
    _parsed: dict[tuple[str, int], Operator] = field(default_factory=dict)
    _functions: dict[str, Definition] = field(default_factory=dict)

    def operator(self, name: str, version: int) -> Operator | None:
        """The text of an operator at a version, None where there is none. Raises TextError."""
        return self._operator(name, version, 0)

    def in_force(self, name: str, opset: int) -> Operator | None:
        """The text in force in an operator set of an operator that ONNX does not know. Raises TextError."""
        first = max((it[0] for it in self._operators.get(name, ()) if it[0] <= opset), default=None)
        return None if first is None else self.operator(name, first)

    def _operator(self, name: str, version: int, depth: int) -> Operator | None:
        """The text of an operator, from which a chain of `depth` others is stated as what differs."""
        for first, last, form, text in self._operators.get(name, ()):
            if first <= version <= last:
                if (name, first) not in self._parsed:
                    tree = _tree(self.grammar, text, form)
                    self._parsed[name, first] = (
                        _operator(tree) if form == "operator" else self._expanded(tree, depth + 1)
                    )
                return self._parsed[name, first]
        return None

    def _expanded(self, tree: Node, depth: int) -> Operator:
        """The text that a difference stands for, the last one of a chain of `depth`."""
        name, first, last, like, version, heading, doc, *rest = tree.children
        other, at = str(like or name), int(str(version))
        base = self._operator(other, at, depth) if depth <= LONGEST else None
        if base is None:
            raise TextError(f"{name} @ {first}: there is no full text of {other} @ {at}")
        listed = [part for part in rest if isinstance(part, Tree)]
        without = {str(word) for part in listed if part.data == "without" for word in part.children}
        statements = [statement for statement in base.statements if statement.name not in without]
        behind = 0
        for part in (part for part in listed if part.data == "change"):
            after, written = part.children[0], _statement(node(part.children[1]))
            names = [statement.name for statement in statements]
            if after is not None:
                if written.name in names:
                    del statements[names.index(written.name)]
                behind = [statement.name for statement in statements].index(str(after)) + 1
                statements.insert(behind, written)
            elif written.name in names:
                behind = names.index(written.name)
                statements[behind] = written
            else:
                statements.insert(behind, written)
            behind += 1
        return Operator(
            str(name),
            int(str(first)),
            int(str(last or first)),
            _ports(heading.children[0]) if isinstance(heading, Tree) else base.inputs,
            _ports(heading.children[1]) if isinstance(heading, Tree) else base.outputs,
            tuple(statements),
            unquoted(doc) if doc is not None else base.doc,
            base.types,
            base.attributes,
        )

    def function(self, name: str) -> Definition | None:
        """The function of that name, None where there is none. Raises TextError."""
        text = self._defines.get(name)
        if text is None:
            return None
        if name not in self._functions:
            kids = _tree(self.grammar, text, "define").children
            parameters = tuple(str(p.children[0]) for p in trees(kids[1])) if isinstance(kids[1], Tree) else ()
            self._functions[name] = Definition(name, parameters, node(kids[4]))
        return self._functions[name]

    def defined_twice(self) -> str:
        """The first operator that has two texts for one version, "" without one."""
        for name, texts in self._operators.items():
            ranges = sorted((first, last) for first, last, _, _ in texts)
            if any(last >= first for (_, last), (first, _) in pairwise(ranges)):
                return name
        return ""


def library(grammar: str, texts: Mapping[str, str]) -> Library:
    """The declarations in the texts of operators (by file)."""
    made = Library(grammar)
    for name in sorted(texts):
        for declaration in declarations(texts[name]):
            operator, define = _OPERATOR.match(declaration), _DEFINE.match(declaration)
            if operator:
                first, last = int(operator[2]), int(operator[3] or operator[2])
                form = "difference" if operator[4] else "operator"
                made._operators.setdefault(operator[1], []).append((first, last, form, declaration))
            elif define:
                made._defines.setdefault(define[1], declaration)
    return made


def declarations(text: str) -> Iterator[str]:
    """The declarations of a file: each begins with its word at the beginning of a line, outside texts and comments."""
    starts = [match.start() for match in _TOKENS.finditer(text) if match["head"]]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield text[start:end]


def _tree(grammar: str, text: str, start: str) -> Node:
    from lark.exceptions import UnexpectedInput

    try:
        return parser(grammar).parse(text, start=start)
    except UnexpectedInput as error:
        raise TextError(f"{text.split('(', 1)[0].strip()}: {type(error).__name__}") from None


# ---- Trees --------------------------------------------------------------------------------------


def node(part: Part) -> Node:
    """The part, which is a tree."""
    if isinstance(part, Tree):
        return part
    raise TextError(f"a tree was expected, not {part!r}")


def trees(part: Part) -> list[Node]:
    """The children that are trees."""
    return [child for child in node(part).children if isinstance(child, Tree)]


def unquoted(part: Part | str) -> str:
    """The content of a quoted text, line breaks and indentation folded to one blank."""
    body = " ".join(str(part)[1:-1].split())
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], body, flags=re.S)


_STATEMENTS = frozenset({
    "alias", "function", "require", "restrict", "view", "along", "type_statement", "equation", "each", "entries",
    "whole", "meaning",
})  # fmt: skip


def _operator(tree: Node) -> Operator:
    name, first, last, ports, results, doc, *rest = tree.children
    return Operator(
        str(name),
        int(str(first)),
        int(str(last or first)),
        _ports(ports),
        _ports(results),
        tuple(_statement(part) for part in rest if isinstance(part, Tree) and part.data in _STATEMENTS),
        unquoted(doc),
        tuple(_types(part) for part in rest if isinstance(part, Tree) and part.data == "types"),
        tuple(_attribute(part) for part in rest if isinstance(part, Tree) and part.data == "attribute"),
    )


def _types(tree: Node) -> tuple[str, tuple[str, ...]]:
    name, *admitted = (part for part in tree.children if part is not None)
    return str(name), tuple(unquoted(it) if str(it).startswith('"') else str(it) for it in admitted)


def _attribute(tree: Node) -> Attribute:
    name, mark, kind, default = tree.children
    return Attribute(str(name), str(kind), str(mark or ""), default if isinstance(default, Tree) else None)


def _ports(part: Part) -> tuple[Port, ...]:
    return tuple(map(_port, trees(part))) if isinstance(part, Tree) else ()


def _port(tree: Node) -> Port:
    name, mark, kind, *shapes = tree.children
    shape = next((tuple(map(_dimension, trees(s))) for s in shapes if isinstance(s, Tree)), None)
    first, *others = map(str, kind.children if isinstance(kind, Tree) else (kind,))
    return Port(str(name), str(mark or ""), first, shape, tuple(others))


def _dimension(tree: Node) -> tuple[str, bool] | int:
    if tree.data == "fixed_dimension":
        return int(str(tree.children[0]))
    return str(tree.children[0]), tree.children[1] is not None


def _statement(tree: Node) -> Statement:
    kind = str(tree.data)
    if kind not in ("require", "restrict"):
        return Statement(kind, tree)
    own, _, sentence, *_ = tree.children
    return Statement(kind, tree, str(own), unquoted(sentence))
