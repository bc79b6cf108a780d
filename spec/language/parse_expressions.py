"""Parsing expressions: lark's tree to `Expr`, every node with its span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from lark import Token, Tree

from .errors import mistake
from .syntax import Arm, Binder, Expr, Keyword, Range, Span

Node = Tree[Token] | Token | None
Argument = Expr | Binder | Range | Arm | Keyword | str | int | None


def trees(tree: Tree[Token]) -> list[Tree[Token]]:
    """The children that are trees."""
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

    def moved(arg: Argument) -> Argument:
        match arg:
            case Expr():
                return respan(arg, span)
            case Binder():
                return replace(arg, domain=respan(arg.domain, span), span=span)
            case Range():
                return replace(arg, bound=respan(arg.bound, span), span=span)
            case Arm():
                return replace(arg, body=respan(arg.body, span), span=span)
            case Keyword():
                return replace(arg, value=respan(arg.value, span), span=span)
            case _:
                return arg

    return Expr(expr.head, tuple(moved(arg) for arg in expr.args), span)


class Expressions:
    """Turns lark's trees into the expressions of one file."""

    def __init__(self, file: str) -> None:
        self._file = file

    def span(self, node: Tree[Token] | Token) -> Span:
        """The place of a tree or a token."""
        meta = node.meta if isinstance(node, Tree) else node
        return Span(
            self._file,
            getattr(meta, "line", 0) or 0,
            getattr(meta, "column", 0) or 0,
            getattr(meta, "end_line", 0) or 0,
            getattr(meta, "end_column", 0) or 0,
        )

    def ranges(self, tree: Tree[Token]) -> tuple[Range, ...]:
        """The ranges of a tensor or a fold."""
        return tuple(self.range(kid) for kid in trees(tree))

    def range(self, tree: Tree[Token]) -> Range:
        """One range."""
        *names, bound = tree.children
        if tree.data == "range":
            return Range((str(names[0]),), names[1] is not None, self.expr(bound), self.span(tree))
        return Range(tuple(str(n) for n in names), False, self.expr(bound), self.span(tree))

    def exprs(self, nodes: Sequence[Node]) -> tuple[Expr, ...]:
        """The expressions of those nodes that are there."""
        return tuple(self.expr(node) for node in nodes if node is not None)

    def _binders(self, node: Node) -> tuple[Binder, ...]:
        return tuple(self._binder(b) for b in trees(cast("Tree[Token]", node)))

    def _binder(self, node: Node) -> Binder:
        tree = cast("Tree[Token]", node)
        return Binder(str(tree.children[0]), self.expr(tree.children[1]), self.span(tree))

    def expr(self, node: Node) -> Expr:
        """One expression."""
        tree = cast("Tree[Token]", node)
        kids, span, head = tree.children, self.span(tree), str(tree.data)
        match head:
            case "var" | "given" | "every" | "float":
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
                    head, (str(name), *self.ranges(cast("Tree[Token]", ranges)), *optional, self.expr(body)), span
                )
            case "call":
                return Expr(head, (str(kids[0]), *self.exprs(kids[1:])), span)
            case "step":
                sides = [self.exprs(cast("Tree[Token]", side).children) for side in kids[:2]]
                if len(sides[0]) != len(sides[1]):
                    raise mistake("transition/size", span, source=len(sides[0]), target=len(sides[1]))
                rule, at = kids[2:]
                chosen = self.expr(at) if at is not None else None
                return Expr(head, (str(rule or ""), chosen, *sides[0], *sides[1]), span)
            case "apply":
                inputs = tuple(self._input(k) for k in kids[2:] if isinstance(k, Tree) and k.data != "keyword")
                return Expr(head, (str(kids[0]), int(str(kids[1])), *inputs, *self._keywords(kids[2:])), span)
            case "collect":
                body, binder, guard = kids
                return Expr(
                    head,
                    (self.expr(body), self._binder(binder), self.expr(guard) if guard is not None else None),
                    span,
                )
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
                return Expr(head, self.exprs(kids), span)

    def _input(self, node: Node) -> Expr | None:
        """An input of an operator that is applied; `_` leaves an optional one out."""
        expr = self.expr(node)
        return None if expr.head == "var" and expr.args[0] == "_" else expr

    def _keywords(self, nodes: Sequence[Node]) -> tuple[Keyword, ...]:
        keywords = [node for node in nodes if isinstance(node, Tree) and node.data == "keyword"]
        return tuple(Keyword(str(k.children[0]), self.expr(k.children[1]), self.span(k)) for k in keywords)

    def _arm(self, node: Node) -> Arm:
        tree = cast("Tree[Token]", node)
        *labels, body = tree.children
        return Arm(tuple(unquote(t) for t in labels if t is not None), self.expr(body), self.span(tree))
