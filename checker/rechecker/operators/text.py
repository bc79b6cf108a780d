"""The texts of operators as parse trees: cut into declarations, of which only those that are asked for are parsed.

Shared with the rest of the package is the grammar, `spec/language/language.lark`, and nothing else of what reads the
specification.
"""

from __future__ import annotations

import hashlib
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
    r'"(?:\\.|[^"\\])*"|#[^\n]*|^(?P<head>operator|contract|define|rewrite|fun|sort|fact|record|field|profile'
    r"|constraint|inductive|law|theorem|lemma|finding|situation|rule)\b",
    re.S | re.M,
)
_OPERATOR = re.compile(r"operator\s+((?:[\w.]+::)?\w+)\s*@\s*(\d+)(?:\s*\.\.\s*(\d+))?(\s+like\b)?")
_DEFINE = re.compile(r"define\s+(\w+)")
_REWRITE = re.compile(r"rewrite\s+(\w+)")
_STATED = re.compile(r"(?:theorem|lemma)\s+(\w+)")
_PIECES = re.compile(r'"(?:\\.|[^"\\])*"|#[^\n]*|[A-Za-z_][A-Za-z0-9_\']*|[0-9]+(?:\.[0-9]+)?|\S', re.S)
_APPLIED = re.compile(r"((?:[\w.]+ : : )?\w+) @ (\d+)(?: \. \. \d+)?(?: like (?:((?:[\w.]+ : : )?\w+) @ )?(\d+))?")


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
        start=["start", "operator", "difference", "define", "rewrite"],
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
    _rewrites: dict[str, str] = field(default_factory=dict)
    _theorems: dict[str, str] = field(default_factory=dict)
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
            ports(heading.children[0]) if isinstance(heading, Tree) else base.inputs,
            ports(heading.children[1]) if isinstance(heading, Tree) else base.outputs,
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

    def rewrite(self, name: str) -> Node | None:
        """The tree of the rewrite of that name, None where there is none. Raises TextError."""
        text = self._rewrites.get(name)
        return None if text is None else _tree(self.grammar, text, "rewrite")

    def rests_on(self, rewrite: str) -> str:
        """SHA-256 over a line "KIND NAME DIGEST" for a rewrite and for each operator and function that it comes to,
        sorted; DIGEST is that of the words of the declaration, a blank between each two. "" without such a rewrite."""
        if rewrite not in self._rewrites:
            return ""
        found = self._reached(f"rewrite {rewrite}", self._rewrites[rewrite])
        return _sha256("\n".join(sorted(f"{label} {_sha256(' '.join(words))}" for label, words in found)))

    def words(self, operator: Operator) -> frozenset[str]:
        """The words of the text of an operator, and of all that it comes to; quoted texts are left out."""
        found = [it for label, text in self._text(operator.name, operator.first) for it in self._reached(label, text)]
        return frozenset(word for _, words in found for word in words if not word.startswith('"'))

    def _reached(self, label: str, text: str) -> list[tuple[str, list[str]]]:
        """The words of a declaration, and of those that it comes to by names."""
        found: dict[tuple[str, str], list[str]] = {}
        waiting = [(label, text)]
        while waiting:
            label, text = waiting.pop()
            if (label, text) in found:
                continue
            words = found[label, text] = pieces(text)
            called = [word for word in dict.fromkeys(words) if word in self._defines]
            waiting += [(f"define {word}", self._defines[word]) for word in called]
            spelled = re.sub(r"(?<=\w) \. (?=\w)", ".", " ".join(word for word in words if not word.startswith('"')))
            for name, version, other, base in _APPLIED.findall(spelled):
                waiting += self._text(name, int(version))
                waiting += self._text(other or name, int(base)) if base else []
        return [(label, words) for (label, _), words in found.items()]

    def theorem(self, name: str) -> str:
        """SHA-256 of the words of a theorem or a lemma; "" where there is none of that name."""
        return _sha256(" ".join(pieces(self._theorems[name]))) if name in self._theorems else ""

    def _text(self, spelled: str, version: int) -> list[tuple[str, str]]:
        name = spelled.replace(" : : ", "::")
        listed = self._operators.get(name, ())
        return [(f"operator {name}@{it[0]}", it[3]) for it in listed if it[0] <= version <= it[1]]

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
            elif rewrite := _REWRITE.match(declaration):
                made._rewrites.setdefault(rewrite[1], declaration)
            elif stated := _STATED.match(declaration):
                made._theorems.setdefault(stated[1], declaration)
    return made


def pieces(text: str) -> list[str]:
    """The words of a declaration: names, numbers, signs; a quoted text with blanks and line breaks folded to one
    blank. Comments are left out."""
    words = (it for it in _PIECES.findall(text) if not it.startswith("#"))
    return [" ".join(it.split()) if it.startswith('"') else it for it in words]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def declarations(text: str) -> Iterator[str]:
    """The declarations of a file: each begins with its word at the beginning of a line, outside texts and comments."""
    starts = [match.start() for match in _TOKENS.finditer(text) if match["head"]]
    yield from (text[start:end] for start, end in pairwise([*starts, len(text)]))


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
    name, first, last, inputs, results, doc, *rest = tree.children
    return Operator(
        str(name),
        int(str(first)),
        int(str(last or first)),
        ports(inputs),
        ports(results),
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


def ports(part: Part) -> tuple[Port, ...]:
    """The ports that a list of them declares."""
    return tuple(map(_port, trees(part))) if isinstance(part, Tree) else ()


def _port(tree: Node) -> Port:
    name, mark, kind, *shapes = tree.children
    shape = next((tuple(map(dimension, trees(s))) for s in shapes if isinstance(s, Tree)), None)
    first, *others = map(str, kind.children if isinstance(kind, Tree) else (kind,))
    return Port(str(name), str(mark or ""), first, shape, tuple(others))


def dimension(tree: Node) -> tuple[str, bool] | int:
    """A dimension of a port: a number, or a name and whether it stands for several."""
    if tree.data == "fixed_dimension":
        return int(str(tree.children[0]))
    return str(tree.children[0]), tree.children[1] is not None


def _statement(tree: Node) -> Statement:
    kind = str(tree.data)
    if kind not in ("require", "restrict"):
        return Statement(kind, tree)
    own, _, sentence, *_ = tree.children
    return Statement(kind, tree, str(own), unquoted(sentence))
