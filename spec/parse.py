"""Parsing: specification text to the declarations of `syntax`, every node with its span."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from lark.lexer import PatternRE, PatternStr, TerminalDef

from .diagnose import WORD_END, syntax_error
from .errors import InternalError, SpecError, mistake
from .syntax import (
    Arm,
    Binder,
    Clause,
    Constraint,
    Declaration,
    Expr,
    File,
    FunctionDeclaration,
    Operator,
    Parameter,
    Port,
    Premise,
    Profile,
    ProfileRule,
    Range,
    Sort,
    SortDeclaration,
    Span,
    Statement,
    Transition,
)

Node = Tree[Token] | Token | None

TEMPLATES = frozenset({"violation", "suggest"})


@cache
def grammar() -> Lark:
    """The LALR(1) parser of `language.lark`."""
    text = files(__package__).joinpath("language.lark").read_text(encoding="utf-8")
    return Lark(
        text,
        parser="lalr",
        start=["start", "expr"],
        propagate_positions=True,
        maybe_placeholders=True,
        edit_terminals=_end_with_the_word,
    )


def _end_with_the_word(terminal: TerminalDef) -> None:
    """Keeps a keyword from matching the beginning of a longer word: `fun` in `function`, `or` in `order`."""
    if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.isalpha():
        terminal.pattern = PatternRE(terminal.pattern.value + WORD_END)
        terminal.priority = 1


def parse(text: str, name: str) -> File:
    """The declarations of one specification file. Raises SpecError at the first syntax error."""
    tree = _tree(text, "start", name)
    return File(name, tuple(_Builder(name).declaration(child) for child in _trees(tree)))


def parse_expression(text: str, name: str = "") -> Expr:
    """One expression. Raises SpecError on a syntax error."""
    return _Builder(name).expr(_tree(text, "expr", name))


def _tree(text: str, start: str, name: str) -> Tree[Token]:
    try:
        return grammar().parse(text, start=start)
    except UnexpectedInput as error:
        raise syntax_error(grammar(), text, start, name, error) from None


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]


def unquote(token: Node) -> str:
    """The text that a TEXT token stands for: escapes \\" \\\\ \\n resolved, line breaks and indentation folded."""
    body = str(token)[1:-1]
    folded = " ".join(part for part in body.split())
    out, escaped = [], False
    for char in folded:
        if escaped:
            out.append("\n" if char == "n" else char)
            escaped = False
        elif char == "\\":
            escaped = True
        else:
            out.append(char)
    return "".join(out)


def respan(expr: Expr, span: Span) -> Expr:
    """The same expression, every part of it at `span`."""

    def moved(arg: Expr | Binder | Range | Arm | str | int | None) -> Expr | Binder | Range | Arm | str | int | None:
        match arg:
            case Expr():
                return respan(arg, span)
            case Binder():
                return replace(arg, domain=respan(arg.domain, span), span=span)
            case Range():
                return replace(arg, bound=respan(arg.bound, span), span=span)
            case Arm():
                return replace(arg, body=respan(arg.body, span), span=span)
            case _:
                return arg

    return Expr(expr.head, tuple(moved(arg) for arg in expr.args), span)


class _Builder:
    """Turns lark's tree into the syntax of one file."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _span(self, node: Tree[Token] | Token) -> Span:
        meta = node.meta if isinstance(node, Tree) else node
        return Span(
            self._file,
            getattr(meta, "line", 0) or 0,
            getattr(meta, "column", 0) or 0,
            getattr(meta, "end_line", 0) or 0,
            getattr(meta, "end_column", 0) or 0,
        )

    # ---- declarations -----------------------------------------------------------------------

    def declaration(self, tree: Tree[Token]) -> Declaration:
        kids = tree.children
        span = self._span(tree)
        match tree.data:
            case "sort":
                return SortDeclaration(str(kids[0]), unquote(kids[1]), span)
            case "fact" | "fun" | "define":
                body = self.expr(kids[4]) if tree.data == "define" else None
                return FunctionDeclaration(
                    str(tree.data),
                    str(kids[0]),
                    self._parameters(kids[1]),
                    self._sort(kids[2]),
                    unquote(kids[3]),
                    body,
                    span,
                )
            case "inductive":
                return FunctionDeclaration(
                    "inductive",
                    str(kids[0]),
                    self._parameters(kids[1]),
                    Sort("Bool"),
                    unquote(kids[2]),
                    self.expr(kids[3]),
                    span,
                )
            case "constraint":
                phase = str(cast("Tree[Token]", kids[2]).data)
                return Constraint(
                    str(kids[0]), unquote(kids[1]), phase, self.expr(kids[3]), self._clauses(kids[4:]), span
                )
            case "transition":
                return self._transition(tree, span)
            case "profile":
                own = [k for k in _trees(tree) if k.data != "profile_rule"]
                rules = [k for k in _trees(tree) if k.data == "profile_rule"]
                return Profile(
                    str(kids[0]),
                    unquote(kids[1]),
                    self._clauses(own),
                    tuple(self._profile_rule(k) for k in rules),
                    span,
                )
            case "operator":
                return self._operator(tree, span)
            case other:
                raise InternalError(f"the grammar has a declaration {other} that the parser does not build")

    def _profile_rule(self, tree: Tree[Token]) -> ProfileRule:
        kids = tree.children
        return ProfileRule(str(kids[0]), unquote(kids[1]), str(kids[2]), self._clauses(kids[3:]), self._span(tree))

    def _clauses(self, nodes: Sequence[Node]) -> tuple[Clause, ...]:
        out = []
        for node in nodes:
            if isinstance(node, Tree):
                value = cast("Token", node.children[0])
                text = unquote(value) if value.type == "TEXT" else str(value)
                key, span = str(node.data), self._span(node)
                parts = self._template(text, self._span(value)) if key in TEMPLATES else ()
                out.append(Clause(key, text, parts, span))
        return tuple(out)

    def _template(self, text: str, span: Span) -> tuple[str | Expr, ...]:
        """The text and the expressions between braces; the expressions carry the span of the whole template."""
        parts: list[str | Expr] = []
        for position, piece in enumerate(re.split(r"\{([^{}]*)\}", text)):
            if position % 2:
                try:
                    parts.append(respan(parse_expression(piece, self._file), span))
                except SpecError as error:
                    raise mistake("template/expression", span, piece=piece, problem=error.message) from None
            elif "{" in piece or "}" in piece:
                raise mistake("template/brace", span)
            elif piece:
                parts.append(piece)
        return tuple(parts)

    def _parameters(self, node: Node) -> tuple[Parameter, ...]:
        if not isinstance(node, Tree):
            return ()
        return tuple(Parameter(str(p.children[0]), self._sort(p.children[1]), self._span(p)) for p in _trees(node))

    def _sort(self, node: Node) -> Sort:
        tree = cast("Tree[Token]", node)
        if tree.data == "base":
            return Sort(str(tree.children[0]))
        return Sort(str(tree.data), self._sort(tree.children[0]))

    def _transition(self, tree: Tree[Token], span: Span) -> Transition:
        premises: list[Premise] = []
        configs: list[tuple[Expr, ...]] = []
        for kid in _trees(tree):
            if kid.data == "let":
                premises.append(Premise(str(kid.children[0]), self.expr(kid.children[1]), self._span(kid)))
            elif kid.data == "test":
                premises.append(Premise(None, self.expr(kid.children[0]), self._span(kid)))
            else:
                configs.append(self._exprs(kid.children))
        name, doc = tree.children[0], tree.children[1]
        return Transition(str(name), unquote(doc), tuple(premises), configs[0], configs[1], span)

    # ---- operators --------------------------------------------------------------------------

    def _operator(self, tree: Tree[Token], span: Span) -> Operator:
        name, first, last, ports, results, doc, *rest = tree.children
        trees = [node for node in rest if isinstance(node, Tree)]
        statements = [node for node in trees if node.data in ("alias", "require", "view", "equation")]
        low = int(str(first))
        return Operator(
            name=str(name),
            first=low,
            last=int(str(last)) if last is not None else low,
            inputs=tuple(self._port(p) for p in _trees(ports)) if isinstance(ports, Tree) else (),
            outputs=tuple(self._port(p) for p in _trees(cast("Tree[Token]", results))),
            doc=unquote(doc),
            clauses=self._clauses([node for node in trees if node not in statements]),
            statements=tuple(self._statement(node) for node in statements),
            span=span,
        )

    def _port(self, tree: Tree[Token]) -> Port:
        name, mark, type_, *shapes = tree.children
        present = [tuple(self._dimension(d) for d in _trees(shape)) for shape in shapes if isinstance(shape, Tree)]
        shape = present[0] if present else None
        return Port(str(name), str(mark or ""), str(type_), shape, self._span(tree))

    def _dimension(self, tree: Tree[Token]) -> tuple[str, bool] | int:
        if tree.data == "fixed_dimension":
            return int(str(tree.children[0]))
        return str(tree.children[0]), tree.children[1] is not None

    def _statement(self, tree: Tree[Token]) -> Statement:
        kids, span = tree.children, self._span(tree)
        match tree.data:
            case "alias":
                return Statement("let", tuple(str(k) for k in kids[:-1]), (), self.expr(kids[-1]), span=span)
            case "require":
                return Statement("require", (), (), self.expr(kids[0]), unquote(kids[1]), self._clauses(kids[2:]), span)
            case kind:
                ranges = self._ranges(kids[1]) if isinstance(kids[1], Tree) else ()
                return Statement(str(kind), (str(kids[0]),), ranges, self.expr(kids[2]), span=span)

    def _ranges(self, tree: Tree[Token]) -> tuple[Range, ...]:
        out = []
        for kid in _trees(tree):
            *names, bound = kid.children
            if kid.data == "range":
                out.append(Range((str(names[0]),), names[1] is not None, self.expr(bound), self._span(kid)))
            else:
                out.append(Range(tuple(str(n) for n in names), False, self.expr(bound), self._span(kid)))
        return tuple(out)

    # ---- expressions ------------------------------------------------------------------------

    def _exprs(self, nodes: Sequence[Node]) -> tuple[Expr, ...]:
        return tuple(self.expr(node) for node in nodes if node is not None)

    def _binders(self, node: Node) -> tuple[Binder, ...]:
        return tuple(
            Binder(str(b.children[0]), self.expr(b.children[1]), self._span(b))
            for b in _trees(cast("Tree[Token]", node))
        )

    def expr(self, node: Node) -> Expr:
        tree = cast("Tree[Token]", node)
        kids, span, head = tree.children, self._span(tree), str(tree.data)
        match head:
            case "var" | "given" | "float":
                return Expr(head, (str(kids[0]),), span)
            case "int":
                return Expr(head, (int(str(kids[0])),), span)
            case "text":
                return Expr(head, (unquote(kids[0]),), span)
            case "compare":
                parts = (self.expr(k) if i % 2 == 0 else " ".join(str(k).split()) for i, k in enumerate(kids))
                return Expr(head, tuple(parts), span)
            case "forall" | "exists" | "unique":
                return Expr(head, (*self._binders(kids[0]), self.expr(kids[1])), span)
            case "case":
                arms = (self._arm(a) for a in kids[1:])
                return Expr(head, (self.expr(kids[0]), *arms), span)
            case "fold":
                name, ranges, guard, start, body = kids
                optional = tuple(self.expr(k) if k is not None else None for k in (guard, start))
                return Expr(
                    head, (str(name), *self._ranges(cast("Tree[Token]", ranges)), *optional, self.expr(body)), span
                )
            case "call":
                return Expr(head, (str(kids[0]), *self._exprs(kids[1:])), span)
            case "comprehension":
                body, name, bound, guard = kids
                return Expr(
                    head,
                    (self.expr(body), str(name), self.expr(bound), self.expr(guard) if guard is not None else None),
                    span,
                )
            case "set_comprehension":
                body, binders, guard = kids
                return Expr(
                    head,
                    (self.expr(body), *self._binders(binders), self.expr(guard) if guard is not None else None),
                    span,
                )
            case "map_comprehension":
                return Expr(head, (self.expr(kids[0]), self.expr(kids[1]), *self._binders(kids[2])), span)
            case _:
                return Expr(head, self._exprs(kids), span)

    def _arm(self, node: Node) -> Arm:
        tree = cast("Tree[Token]", node)
        *labels, body = tree.children
        return Arm(tuple(unquote(t) for t in labels if t is not None), self.expr(body), self._span(tree))
