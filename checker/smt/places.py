"""Scripts of the requirements of operators: at each node that applies one, the condition over its sizes.

A condition that numbers alone decide is written all the same: the sizes of the node's inputs become symbols, the text
of the operator is read over these, and that they have the sizes of the model is a fact beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sonnx.semantics.application import AttributeData
from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.graph import NodeId
from sonnx.semantics.interpretations import ieee
from sonnx.semantics.interpretations.symbolic_composition import defaults
from sonnx.semantics.interpretations.symbolic_numbers import Int, either, equal, opposite
from sonnx.semantics.preconditions.contents import SMALL, Content
from sonnx.semantics.preconditions.examining import Facts, Site, Symbols
from sonnx.semantics.preconditions.node import examine
from sonnx.semantics.preconditions.walk import Examination, Instance
from sonnx.semantics.program import Program
from sonnx.semantics.terms import FALSE, TRUE, Term
from sonnx.spec.syntax import Operator

from ..definedness import Prover
from ..definedness_smtlib import asserted, names
from .formulas import plain


@dataclass(frozen=True, slots=True)
class Place:
    """A condition at a node. goal: None where it has no formula, for a reason."""

    node: NodeId
    goal: Term | None
    facts: Facts = ()
    symbols: Symbols = field(default_factory=dict)
    reason: str = ""


@dataclass(slots=True)
class Places:
    """The places of the requirements of a model; texts are read again for the nodes that numbers alone decide."""

    found: Examination
    prover: Prover
    program: Program = field(init=False)
    again: dict[NodeId, Mapping[int, Place]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.program = Program(self.found.model, ieee.apply)

    def of(self, operator: Operator, position: int) -> list[Place]:
        """Every place of one requirement, by node."""
        held = self.found.held.get((operator, position), ())
        made = [self._held(n, operator, position) for n in held]
        for it in self.found.instances:
            if it.operator is operator and it.position == position:
                made.append(self._open(it))
        return sorted(made, key=lambda place: place.node)

    def _open(self, it: Instance) -> Place:
        if it.goal is None:
            return Place(it.node, None, reason=it.reason)
        goal = either(*map(opposite, it.path), it.goal)
        if goal in (TRUE, FALSE):
            return replace(self._held(it.node, it.operator, it.position), facts=it.facts)
        return Place(it.node, goal, it.facts, {**self.found.symbols, **it.symbols})

    def _held(self, n: NodeId, operator: Operator, position: int) -> Place:
        """A condition that numbers alone decide, over symbols for these numbers, as many as the text bears."""
        if n not in self.again:
            readings = [_read_again(n, operator, self, attributes=attributes) for attributes in (False, True)]
            self.again[n] = {position: place for reading in readings for position, place in reading.items()}
        return self.again[n].get(position) or Place(
            n, None, reason="which inputs and attributes are there, and how many axes they have, decides it"
        )


def _read_again(n: NodeId, operator: Operator, places: Places, *, attributes: bool) -> dict[int, Place]:
    """What the text requires at a node, over symbols for its sizes, and for the integers among its attributes."""
    found = places.found
    node = found.model.nodes[n]
    facts: list[Term] = list(found.limits)
    symbols: dict[str, tuple[int, str]] = dict(found.symbols)

    def symbol(name: str, value: Int) -> Term:
        symbols[name] = (0, "Int")
        facts.append(equal(Term(name), value))
        return Term(name)

    inputs = []
    for position, t in enumerate(node.inputs):
        content = None if t is None else found.contents.get(t)
        if t is not None and content is None:
            return {}
        inputs.append(None if content is None else _opened(content, position, symbol))
    given: dict[str, AttributeData | Term | tuple[Term, ...]] = dict(places.program.attributes(n))
    if attributes:
        stated = {k: v for k, v in defaults(operator, node.version or 0).items() if type(v) is int}
        for name, value in {**stated, **given}.items():
            if type(value) is int:
                given[name] = symbol(f"attribute.{name}", value)
            elif isinstance(value, tuple) and not isinstance(value, Term) and all(type(part) is int for part in value):
                numbers = [part for part in value if isinstance(part, int)]
                given[name] = tuple(symbol(f"attribute.{name}.{k}", part) for k, part in enumerate(numbers))
    site = Site(operator, node.version or 0, tuple(inputs), given, tuple(t is not None for t in node.outputs))
    try:
        examined = examine(site, tuple(facts), symbols, places.prover.possible)
    except (InternalError, Unsupported, KeyError, TypeError, ValueError, IndexError):
        return {}
    every = {**symbols, **examined.symbols}
    return {
        demand.position: Place(n, demand.goal, demand.facts, every)
        for demand in examined.demands
        if demand.goal is not None and demand.goal not in (TRUE, FALSE)
    }


INDICES = ("int", "bool", "string")
"""Elements of such types can matter to a requirement; of others only the sizes do."""


def _opened(content: Content, position: int, symbol: Callable[[str, Int], Term]) -> Content:
    """A tensor with symbols for its sizes. One of which elements matter keeps its numbers."""
    shape = content.data.shape if content.data is not None else content.shape
    known = content.entries is not None or content.law is not None or content.held is not None
    stored = content.data is not None and content.data.size <= SMALL and content.element.startswith(INDICES)
    if shape is None or known or stored:
        return content
    sizes = tuple(symbol(f"in{position}.size.{axis}", size) for axis, size in enumerate(shape))
    return replace(content, shape=sizes, data=None)


def script(name: str, words: str, places: Sequence[Place], paths: Mapping[NodeId, str], about: Sequence[str]) -> str:
    """One script for all places of a requirement: a question for each, under push and pop."""
    head = [
        f"{name}: {plain(words)}",
        *map(plain, about),
        "A question for each node: can the facts and the negated condition hold together? Facts are also the",
        "requirements that stand in front, of this node and of those before it. The answers come in the order of the",
        "nodes. unsat: the condition holds there. sat: it fails for some sizes or data.",
        "inK.size.A is the size of axis A of the node's input K, attribute.NAME.K entry K of an attribute.",
    ]
    lines = ["".join(f"; {line}\n" for line in head), "(set-info :smt-lib-version 2.6)\n(set-logic ALL)\n"]
    for place in places:
        lines += _question(place, paths[place.node])
    return "".join(lines)


def _question(place: Place, path: str) -> Iterator[str]:
    if place.goal is None:
        yield f"\n; ---- {plain(path)}: not asked: {plain(place.reason)}\n"
        return
    yield f"\n; ---- {plain(path)}\n(push 1)\n"
    yield from asserted([fact for fact in place.facts if names(fact)], place.goal, place.symbols)
    yield "(check-sat)\n(pop 1)\n"
