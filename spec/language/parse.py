"""Parsing: specification text to the declarations of `syntax`, and to `Expr`, every node with its span."""

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
    Accuracy,
    Arm,
    AttributeDeclaration,
    Binder,
    Change,
    Clause,
    Constraint,
    Contract,
    Difference,
    Expr,
    FunctionDeclaration,
    Keyword,
    Operator,
    Parameter,
    Port,
    Premise,
    Profile,
    ProfileRule,
    Property,
    Range,
    Rewrite,
    Sort,
    SortDeclaration,
    Source,
    Span,
    Statement,
    Transition,
    TypeVariable,
    Written,
)

# ---- Expressions -------------------------------------------------------------------------------

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


# ---- Declarations ------------------------------------------------------------------------------

DEEPEST = 60
"""The greatest depth of a text; the deepest one of the specification comes to 15."""
DIGITS = 100
"""A number of the text has no more."""
TEMPLATES = frozenset({"violation", "suggest"})
STATEMENTS = {
    "alias": "let", "function": "function", "require": "require", "restrict": "restrict", "view": "view",
    "along": "along", "type_statement": "type", "equation": "equation", "each": "each",
    "entries": "entries", "whole": "result", "meaning": "rule",
}  # fmt: skip
"""The kind of statement that each rule of the grammar gives."""
PARTS = frozenset({"for", "let", "test", "needs", "shows"})
"""The parts of a law, theorem, finding or situation that are no clauses."""


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


def parse(text: str, name: str) -> Source:
    """The declarations of one specification file. Raises SpecError at the first syntax error."""
    tree = _tree(text, "start", name)
    return Source(name, tuple(_Builder(name).declaration(child) for child in trees(tree)))


def parse_expression(text: str, name: str = "") -> Expr:
    """One expression. Raises SpecError on a syntax error."""
    return Expressions(name).expr(_tree(text, "expr", name))


def _tree(text: str, start: str, name: str) -> Tree[Token]:
    try:
        tree = grammar().parse(text, start=start)
    except UnexpectedInput as error:
        raise syntax_error(grammar(), text, start, name, error) from None
    _check_limits(tree, Expressions(name))
    return tree


def _check_limits(tree: Tree[Token], read: Expressions) -> None:
    """Raises SpecError where a tree is too deep for what follows it recursively, or a number too long to compute."""
    waiting: list[tuple[Node, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, Token) and node.type in ("INT", "FLOAT"):
            mantissa, _, exponent = node.partition("e")
            if len(mantissa.replace(".", "")) > DIGITS or len(exponent.removeprefix("-")) > 4:
                raise mistake("syntax/number", read.span(node), most=DIGITS)
        if isinstance(node, Tree):
            if depth > DEEPEST:
                raise mistake("syntax/depth", read.span(node), most=DEEPEST)
            waiting += [(child, depth + 1) for child in reversed(node.children)]


class _Builder:
    """Turns lark's tree into the syntax of one file."""

    def __init__(self, file: str) -> None:
        self._file, self._read = file, Expressions(file)

    # ---- declarations -----------------------------------------------------------------------

    def declaration(self, tree: Tree[Token]) -> Written:
        kids = tree.children
        span = self._read.span(tree)
        match tree.data:
            case "sort":
                return SortDeclaration(str(kids[0]), unquote(kids[1]), span)
            case "fact" | "fun" | "record" | "field" | "define":
                body = self._read.expr(kids[4]) if tree.data == "define" else None
                return FunctionDeclaration(
                    str(tree.data),
                    str(kids[0]),
                    self._parameters(kids[1]),
                    self._sort(kids[2]),
                    unquote(kids[3]),
                    body,
                    span,
                    self._accuracy(kids[4]) if tree.data == "fun" else None,
                    self._clauses(
                        [node for node in kids[4:] if isinstance(node, Tree) and node.data in ("note", "drawn")]
                    ),
                )
            case "inductive":
                return FunctionDeclaration(
                    "inductive",
                    str(kids[0]),
                    self._parameters(kids[1]),
                    Sort("Bool"),
                    unquote(kids[2]),
                    self._read.expr(kids[3]),
                    span,
                    clauses=self._clauses(kids[4:]),
                )
            case "constraint":
                phase = str(cast("Tree[Token]", kids[2]).data)
                return Constraint(
                    str(kids[0]), unquote(kids[1]), phase, self._read.expr(kids[3]), self._clauses(kids[4:]), span
                )
            case "transition":
                return self._transition(tree, span)
            case "law" | "theorem" | "lemma" | "finding" | "situation":
                return self._property(tree, span)
            case "profile":
                own = [k for k in trees(tree) if k.data != "profile_rule"]
                rules = [k for k in trees(tree) if k.data == "profile_rule"]
                return Profile(
                    str(kids[0]),
                    unquote(kids[1]),
                    self._clauses(own),
                    tuple(self._profile_rule(k) for k in rules),
                    span,
                )
            case "operator":
                return self._operator(tree, span)
            case "difference":
                return self._difference(tree, span)
            case "contract":
                name, version, doc, reason, *clauses = kids
                said = self._clauses(clauses)
                return Contract(str(name), int(str(version)), unquote(doc), unquote(reason), said, span)
            case "rewrite":
                return self._rewrite(tree, span)
            case other:
                raise InternalError(f"the grammar has a declaration {other} that the parser does not build")

    def _accuracy(self, tree: Node) -> Accuracy | None:
        return Accuracy(int(str(tree.children[0])), unquote(tree.children[1])) if isinstance(tree, Tree) else None

    def _profile_rule(self, tree: Tree[Token]) -> ProfileRule:
        kids = tree.children
        return ProfileRule(str(kids[0]), unquote(kids[1]), str(kids[2]), self._clauses(kids[3:]), self._read.span(tree))

    def _clauses(self, nodes: Sequence[Node]) -> tuple[Clause, ...]:
        out = []
        for node in nodes:
            if not isinstance(node, Tree):
                continue
            key, span = str(node.data), self._read.span(node)
            for value in (cast("Token", child) for child in node.children):
                text = unquote(value) if value.type == "TEXT" else str(value)
                place = self._read.span(value)
                parts = self._template(text, place) if key in TEMPLATES else ()
                out.append(Clause(key, text, parts, place if len(node.children) > 1 else span))
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
        return tuple(Parameter(str(p.children[0]), self._sort(p.children[1]), self._read.span(p)) for p in trees(node))

    def _sort(self, node: Node) -> Sort:
        tree = cast("Tree[Token]", node)
        if tree.data == "base":
            return Sort(str(tree.children[0]))
        if tree.data in ("array", "tensor"):
            return Sort("Array", self._sort(tree.children[0]) if tree.children else None)
        return Sort(str(tree.data), self._sort(tree.children[0]))

    def _transition(self, tree: Tree[Token], span: Span) -> Transition:
        premises: list[Premise] = []
        configs: list[tuple[Expr, ...]] = []
        for kid in trees(tree):
            if kid.data in ("let", "test"):
                premises.append(self._premise(kid))
            else:
                configs.append(self._read.exprs(kid.children))
        name, doc = tree.children[0], tree.children[1]
        return Transition(str(name), unquote(doc), tuple(premises), configs[0], configs[1], span)

    def _property(self, tree: Tree[Token], span: Span) -> Property:
        name, doc, *rest = tree.children
        parts = {str(kid.data): kid.children for kid in rest if isinstance(kid, Tree)}
        premises = tuple(self._premise(kid) for kid in trees(tree) if kid.data in ("let", "test"))
        clauses = self._clauses([kid for kid in trees(tree) if kid.data not in PARTS])
        return Property(
            str(tree.data),
            str(name),
            unquote(doc),
            self._parameters(parts["for"][0]) if "for" in parts else (),
            premises,
            tuple(map(str, parts.get("needs", ()))),
            self._read.expr(parts["shows"][0]) if "shows" in parts else Expr("true", (), span),
            clauses,
            span,
        )

    def _premise(self, tree: Tree[Token]) -> Premise:
        name = str(tree.children[0]) if tree.data == "let" else None
        return Premise(name, self._read.expr(tree.children[-1]), self._read.span(tree))

    # ---- operators --------------------------------------------------------------------------

    def _operator(self, tree: Tree[Token], span: Span) -> Operator:
        name, first, last, ports, results, doc, *rest = tree.children
        trees = [node for node in rest if isinstance(node, Tree)]
        statements = [node for node in trees if node.data in STATEMENTS]
        return Operator(
            name=str(name),
            first=int(str(first)),
            last=int(str(last or first)),
            inputs=self._ports(ports),
            outputs=self._ports(results),
            doc=unquote(doc),
            clauses=self._clauses(
                [it for it in trees if it not in statements and it.data not in ("types", "attribute")]
            ),
            statements=tuple(self._statement(node) for node in statements),
            types=tuple(self._type_variable(node) for node in trees if node.data == "types"),
            attributes=tuple(self._attribute(node) for node in trees if node.data == "attribute"),
            span=span,
        )

    def _difference(self, tree: Tree[Token], span: Span) -> Difference:
        name, first, last, base, version, heading, doc, *rest = tree.children
        parts = [node for node in rest if isinstance(node, Tree)]
        return Difference(
            name=str(name),
            first=int(str(first)),
            last=int(str(last or first)),
            base=str(base or name),
            version=int(str(version)),
            inputs=self._ports(heading.children[0]) if isinstance(heading, Tree) else None,
            outputs=self._ports(heading.children[1]) if isinstance(heading, Tree) else None,
            doc=unquote(doc) if doc is not None else "",
            clauses=self._clauses([node for node in parts if node.data not in ("without", "change")]),
            without=self._clauses([node for node in parts if node.data == "without"]),
            changes=tuple(self._change(node) for node in parts if node.data == "change"),
            span=span,
        )

    def _rewrite(self, tree: Tree[Token], span: Span) -> Rewrite:
        name, ports, results, doc, *rest = tree.children
        parts = [node for node in rest if isinstance(node, Tree)]
        inner = trees(ports) if isinstance(ports, Tree) else []
        shared = [it for it in parts if it.data in STATEMENTS]
        conditions = [it for it in parts if it.data == "when"]
        claim, left, right = parts[-1], *(next(it for it in parts if it.data == word) for word in ("left", "right"))
        other = {*map(id, (claim, left, right, *shared, *conditions))}
        clauses = [it for it in parts if id(it) not in other and it.data not in ("types", "attribute")]
        wheres = [it for it in trees(claim) if it.data == "where"]
        return Rewrite(
            name=str(name),
            inputs=tuple(self._rewrite_port(it) for it in inner),
            outputs=self._ports(results),
            doc=unquote(doc),
            clauses=self._clauses(clauses),
            shared=tuple(self._statement(node) for node in shared),
            left=tuple(self._side(node) for node in trees(left)),
            right=tuple(self._side(node) for node in trees(right)),
            conditions=tuple(self._condition(node, number) for number, node in enumerate(conditions, 1)),
            claim=str(claim.data),
            assumed=tuple(self._condition(node, number) for number, node in enumerate(wheres, 1)),
            reason=unquote(claim.children[0]) if claim.data == "never" else "",
            stored=tuple(str(it.children[0]) for it in inner if it.children[2] is not None),
            types=tuple(self._type_variable(node) for node in parts if node.data == "types"),
            attributes=tuple(self._attribute(node) for node in parts if node.data == "attribute"),
            span=span,
        )

    def _rewrite_port(self, tree: Tree[Token]) -> Port:
        name, mark, _, kind, *shapes = tree.children
        present = [tuple(self._dimension(d) for d in trees(shape)) for shape in shapes if isinstance(shape, Tree)]
        shape = present[0] if present else None
        return Port(str(name), str(mark or ""), str(kind), shape, self._read.span(tree))

    def _side(self, tree: Tree[Token]) -> Statement:
        *names, value = tree.children
        return Statement("let", tuple(map(str, names)), (), self._read.expr(value), span=self._read.span(tree))

    def _condition(self, tree: Tree[Token], number: int) -> Statement:
        """`when expr "sentence"`, `where ...`: what is required, with an id of its own."""
        condition, sentence, *clauses = tree.children
        doc, own = unquote(sentence), f"{tree.data}{number}"
        body = self._read.expr(condition)
        return Statement("require", (), (), body, doc, self._clauses(clauses), id=own, span=self._read.span(tree))

    def _type_variable(self, tree: Tree[Token]) -> TypeVariable:
        name, *allowed = (cast("Token", child) for child in tree.children)
        texts = (unquote(it) if it.type == "TEXT" else str(it) for it in allowed)
        return TypeVariable(str(name), tuple(texts), self._read.span(tree))

    def _attribute(self, tree: Tree[Token]) -> AttributeDeclaration:
        name, mark, kind, default = tree.children
        value = None if default is None else self._read.expr(default)
        return AttributeDeclaration(str(name), str(mark or ""), str(kind), value, self._read.span(tree))

    def _change(self, tree: Tree[Token]) -> Change:
        behind, statement = tree.children
        return Change(self._statement(cast("Tree[Token]", statement)), str(behind or ""), self._read.span(tree))

    def _ports(self, node: Node) -> tuple[Port, ...]:
        return tuple(self._port(port) for port in trees(node)) if isinstance(node, Tree) else ()

    def _port(self, tree: Tree[Token]) -> Port:
        name, mark, kind, *shapes = tree.children
        type_, *others = kind.children if isinstance(kind, Tree) else (kind,)
        present = [tuple(self._dimension(d) for d in trees(shape)) for shape in shapes if isinstance(shape, Tree)]
        shape = present[0] if present else None
        return Port(str(name), str(mark or ""), str(type_), shape, self._read.span(tree), tuple(map(str, others)))

    def _dimension(self, tree: Tree[Token]) -> tuple[str, bool] | int:
        if tree.data == "fixed_dimension":
            return int(str(tree.children[0]))
        return str(tree.children[0]), tree.children[1] is not None

    def _statement(self, tree: Tree[Token]) -> Statement:
        kids, span, kind = tree.children, self._read.span(tree), STATEMENTS[str(tree.data)]
        none = Expr("true", (), span)
        match kind:
            case "let":
                return Statement(kind, tuple(str(k) for k in kids[:-1]), (), self._read.expr(kids[-1]), span=span)
            case "function":
                parameters = self._parameters(kids[1])
                return Statement(kind, (str(kids[0]),), (), self._read.expr(kids[2]), parameters=parameters, span=span)
            case "type" | "result":
                return Statement(kind, (str(kids[0]),), (), self._read.expr(kids[1]), span=span)
            case "require" | "restrict":
                own, condition, sentence, *clauses = kids
                doc, said = unquote(sentence), self._clauses(clauses)
                return Statement(kind, (), (), self._read.expr(condition), doc, said, id=str(own), span=span)
            case "rule":
                return Statement(kind, (), (), none, str(kids[0]), span=span)
            case "along":
                steps, *views = trees(tree)
                body = tuple(self._statement(view) for view in views)
                return Statement(kind, (), (self._read.range(steps),), none, body=body, span=span)
            case "entries":
                name, place, within, value = kids
                position, *more = self._read.ranges(cast("Tree[Token]", place))
                if more or position.dots or len(position.names) > 1:
                    raise mistake("operator/position", position.span, name=name)
                inner = self._read.ranges(within) if isinstance(within, Tree) else ()
                return Statement(kind, (str(name),), (position, *inner), self._read.expr(value), span=span)
            case _:
                *names, within, value = kids
                ranges = self._read.ranges(within) if isinstance(within, Tree) else ()
                return Statement(kind, tuple(map(str, names)), ranges, self._read.expr(value), span=span)
