"""Rewrites as the rechecker reads them off their parse trees: ports, both sides, conditions, what is claimed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lark import Token, Tree

from ..operators.text import Attribute, Library, Node, Operator, Part, Port, TextError, node, trees, unquoted
from ..operators.text import dimension as dimension_of
from ..operators.text import ports as results_of

CLAIMS = {"exact": "exact", "allowed": "allowed", "reals": "reals", "never": "never"}
STRENGTHS = ("exact", "allowed", "reals")
"""From the strongest claim to the weakest."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A `let` or `type` that both sides may use: the names, the grammar's word for it, its tree."""

    names: tuple[str, ...]
    kind: str
    tree: Node


@dataclass(frozen=True, slots=True)
class Side:
    """A line of a side: what it defines, and the expression."""

    names: tuple[str, ...]
    expression: Node


@dataclass(frozen=True, slots=True)
class Condition:
    """What `when` or `where` says, and its sentence."""

    expression: Node
    sentence: str


@dataclass(frozen=True, slots=True, eq=False)
class Rewrite:
    """A rewrite. head: its ports as those of an operator. stored: the ports with `!`. types: the type variables that it
    declares, with what they admit."""

    name: str
    claim: str
    head: Operator
    stored: frozenset[str]
    types: Mapping[str, tuple[str, ...]]
    shared: tuple[Shared, ...]
    left: tuple[Side, ...]
    right: tuple[Side, ...]
    when: tuple[Condition, ...]
    where: tuple[Condition, ...]
    declared: tuple[Attribute, ...]

    def let(self, name: str) -> tuple[Node, int] | None:
        """The expression that a shared `let` gives a name to, and as which of its results."""
        for it in self.shared:
            if it.kind == "alias" and name in it.names:
                return node(it.tree.children[-1]), it.names.index(name)
        return None

    def line(self, name: str) -> tuple[Node, int] | None:
        """The same of a line of the left side."""
        return next(((it.expression, it.names.index(name)) for it in self.left if name in it.names), None)

    def known(self) -> frozenset[str]:
        """The names that stand for something other than an attribute which a match binds."""
        names = {it.name for it in (*self.head.inputs, *self.head.outputs)}
        names |= {it.type for it in (*self.head.inputs, *self.head.outputs)}
        names |= {d[0] for it in self.head.inputs for d in it.shape or () if not isinstance(d, int)}
        names |= {name for it in self.shared for name in it.names}
        names |= {name for it in self.left for name in it.names}
        return frozenset(names | {it.name for it in self.declared})


def rewrite(library: Library, name: str) -> Rewrite | None:
    """The rewrite of that name; None where there is none. Raises TextError for a form that is not known here."""
    tree = library.rewrite(name)
    if tree is None:
        return None
    listed = [part for part in tree.children if isinstance(part, Tree)]
    of = {kind: [part for part in listed if part.data == kind] for kind in (
        "rewrite_ports", "results", "types", "attribute", "left", "right", "when",
    )}  # fmt: skip
    claim = listed[-1]
    if str(claim.data) not in CLAIMS or len(of["left"]) != 1 or len(of["right"]) != 1:
        raise TextError(f"the rewrite {name} has a form that is not known here")
    ports = [it for part in of["rewrite_ports"] for it in trees(part)]
    results = next((part for part in listed if part.data == "results"), None)
    head = Operator(name, 1, 1, tuple(map(_port, ports)), results_of(results), ())
    return Rewrite(
        name,
        str(claim.data),
        head,
        frozenset(str(it.children[0]) for it in ports if it.children[2] is not None),
        dict(map(_types, of["types"])),
        tuple(_shared(part) for part in listed if part.data in ("alias", "function", "type_statement")),
        tuple(map(_side, trees(of["left"][0]))),
        tuple(map(_side, trees(of["right"][0]))),
        tuple(map(_condition, of["when"])),
        tuple(_condition(part) for part in trees(claim) if part.data == "where"),
        tuple(_attribute(part) for part in of["attribute"]),
    )


def _port(tree: Node) -> Port:
    name, mark, _, kind, *shapes = tree.children
    shape = next((tuple(map(dimension_of, trees(s))) for s in shapes if isinstance(s, Tree)), None)
    return Port(str(name), str(mark or ""), str(kind), shape)


def _types(tree: Node) -> tuple[str, tuple[str, ...]]:
    name, *admitted = (part for part in tree.children if part is not None)
    return str(name), tuple(unquoted(it) if str(it).startswith('"') else str(it) for it in admitted)


def _attribute(tree: Node) -> Attribute:
    name, mark, kind, default = tree.children
    return Attribute(str(name), str(kind), str(mark or ""), default if isinstance(default, Tree) else None)


def _shared(tree: Node) -> Shared:
    names = tree.children[:-1] if tree.data == "alias" else tree.children[:1]
    return Shared(tuple(map(str, names)), str(tree.data), tree)


def _side(tree: Node) -> Side:
    *names, expression = tree.children
    return Side(tuple(map(str, names)), node(expression))


def _condition(tree: Node) -> Condition:
    return Condition(node(tree.children[0]), unquoted(tree.children[1]))


def names_in(tree: Part) -> Iterator[str]:
    """The names that an expression mentions, outside of texts."""
    if isinstance(tree, Tree):
        for child in tree.children:
            yield from names_in(child)
    elif isinstance(tree, Token) and not str(tree).startswith('"'):
        yield str(tree)
