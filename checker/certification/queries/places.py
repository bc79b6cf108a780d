"""Scripts of the requirements of operators: at each node that applies one, the condition over its sizes.

A condition that numbers alone decide is written all the same: the sizes of the node's inputs become symbols, the text
of the operator is read over these, and that they have the sizes of the model is a fact beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.formulas.terms import FALSE, TRUE, Term
from sonnx.semantics.model.graph import Model, NodeId
from sonnx.semantics.operators.application import AttributeData, Program
from sonnx.semantics.operators.shapes.contents import HEADER, SMALL, STEP, Content, Examining, Facts, Site, Symbols
from sonnx.semantics.operators.shapes.node import examine
from sonnx.semantics.operators.shapes.walk import Examination, OpenRequirement
from sonnx.semantics.operators.symbolic.numbers import Int, at_most, both, either, equal, opposite
from sonnx.semantics.operators.symbolic.statements import defaults
from sonnx.spec.elaborate.core import Core, CoreOperator

from ...smt.prover import Prover
from ...smt.smtlib import names, obligation
from .formulas import plain
from .skeletons import NoFormulaError, skeleton


@dataclass(frozen=True, slots=True)
class Place:
    """A condition at a node. goal: None where it has no formula, for a reason. about: what of the node it is about."""

    node: NodeId
    goal: Term | None
    facts: Facts = ()
    symbols: Symbols = field(default_factory=dict)
    reason: str = ""
    about: str = ""


@dataclass(slots=True)
class Places:
    """The places of the requirements of a model; texts are read again for the nodes that numbers alone decide."""

    examination: Examination
    prover: Prover
    program: Program = field(init=False)
    again: dict[NodeId, Mapping[int, list[Place]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.program = Program(self.examination.model)

    def of(self, operator: CoreOperator, position: int) -> list[Place]:
        """Every place of one requirement, by node."""
        met = self.examination.met.get((operator, position), ())
        made = [self._seen(place) for n in met for place in self._of_numbers(n, operator, position)]
        for it in self.examination.instances:
            if it.operator is operator and it.position == position:
                made += self._open(it)
        return sorted(made, key=lambda place: place.node)

    def _seen(self, place: Place) -> Place:
        """In a body that is examined run by run, what is known of its tensors is that of the last run, and the
        condition may have been met by what was known before: then nothing is asked."""
        model = self.examination.model
        inner = model.graphs[model.nodes[place.node].graph].holder is not None
        if place.goal is None or not inner:
            return place
        if self.prover.ask(place.facts, place.goal, place.symbols).status == "unsat":
            return place
        return Place(place.node, None, reason="it holds in each run of the body by what is known in that run")

    def _open(self, it: OpenRequirement) -> list[Place]:
        if it.goal is None:
            return [Place(it.node, None, reason=it.reason)]
        goal = either(*map(opposite, it.path), it.goal)
        if goal in (TRUE, FALSE):
            known = self._of_numbers(it.node, it.operator, it.position)
            return [
                replace(place, facts=(*place.facts, *it.facts)) if place.goal is not None else place for place in known
            ]
        return [Place(it.node, goal, it.facts, {**self.examination.symbols, **it.symbols})]

    def _of_numbers(self, n: NodeId, operator: CoreOperator, position: int) -> list[Place]:
        """A condition that numbers alone decide, over symbols for these numbers, as many as the text bears; else over
        symbols for all that the text reads."""
        if n not in self.again:
            readings = [_as_written(n, operator, self)]
            readings += [_read_again(n, operator, self, attributes=attributes) for attributes in (False, True)]
            self.again[n] = {position: places for reading in readings for position, places in reading.items()}
        return self.again[n].get(position) or [Place(n, None, reason=_why(operator, position))]


@dataclass(frozen=True, slots=True)
class _Told:
    """Facts and symbols under way."""

    facts: list[Term]
    symbols: dict[str, tuple[int, str]]

    def symbol(self, name: str, value: Int) -> Term:
        """A symbol for a number, with the fact that it is that number."""
        self.symbols[name] = (0, "Int")
        self.facts.append(equal(Term(name), value))
        return Term(name)


def _why(operator: CoreOperator, position: int) -> str:
    """Why a condition that holds or fails by what is known has no formula."""
    if position == HEADER:
        return f"no condition: {operator.name} takes inputs of any shape"
    if position == STEP:
        return "the sizes and types that are known decide it while the rule of the machine is read"
    return "with these inputs it compares no numbers and no texts, but elements, or lists without entries"


def _read_again(n: NodeId, operator: CoreOperator, places: Places, *, attributes: bool) -> dict[int, list[Place]]:
    """The requirements of the text at a node, over symbols for its sizes, and for the integers among its attributes."""
    examination = places.examination
    node = examination.model.nodes[n]
    told = _Told(list(examination.limits), dict(examination.symbols))
    inputs = []
    for position, t in enumerate(node.inputs):
        content = None if t is None else examination.contents.get(t)
        if t is not None and content is None:
            return {}
        inputs.append(None if content is None else _opened(content, position, told.symbol))
    given: dict[str, AttributeData | Term | tuple[Term, ...]] = dict(places.program.attributes(n))
    if attributes:
        stated = {k: v for k, v in defaults(operator, node.version or 0).items() if type(v) is int}
        for name, value in {**stated, **given}.items():
            if type(value) is int:
                given[name] = told.symbol(f"attribute.{name}", value)
            elif isinstance(value, tuple) and not isinstance(value, Term) and all(type(part) is int for part in value):
                numbers = [part for part in value if isinstance(part, int)]
                given[name] = tuple(told.symbol(f"attribute.{name}.{k}", part) for k, part in enumerate(numbers))
    site = Site(operator, node.version or 0, tuple(inputs), given, tuple(t is not None for t in node.outputs))
    try:
        examined = examine(site, tuple(told.facts), told.symbols, places.prover.possible)
    except REFUSALS:
        return {}
    every = {**told.symbols, **examined.symbols}
    return {
        demand.position: [Place(n, demand.goal, demand.facts, every)]
        for demand in examined.demands
        if demand.goal is not None and demand.goal not in (TRUE, FALSE)
        if _is_determined(demand.goal, demand.facts, every, places.prover)
    }


def _is_determined(goal: Term, facts: Facts, symbols: Symbols, prover: Prover) -> bool:
    """The facts still decide the condition: an attribute may name a type, which its number does not say."""
    return any(
        prover.ask(told, shown, symbols).status == "unsat" for told, shown in ((facts, goal), ((*facts, goal), FALSE))
    )


REFUSALS = (InternalError, Unsupported, KeyError, TypeError, ValueError, IndexError)
"""The exceptions of reading a text where it is applied to what it cannot read."""


def _as_written(n: NodeId, operator: CoreOperator, places: Places) -> dict[int, list[Place]]:
    """The requirements of the text at a node, over symbols for what it reads; one place for each case of it."""
    examination = places.examination
    node = examination.model.nodes[n]
    inputs = tuple(None if t is None else examination.contents.get(t) for t in node.inputs)
    if any(content is None for content, t in zip(inputs, node.inputs, strict=True) if t is not None):
        return {}
    made: dict[int, list[Place]] = {HEADER: _header(n, operator, inputs, examination)}
    attributes = places.program.attributes(n)
    site = Site(operator, node.version or 0, inputs, attributes, tuple(t is not None for t in node.outputs))

    def observe(position: int, core: Core, walk: Examining) -> None:
        try:
            goal, facts, symbols = skeleton(core, walk)
        except NoFormulaError:
            return
        made.setdefault(position, []).append(Place(n, goal, facts, symbols))

    try:
        examine(site, examination.limits, examination.symbols, places.prover.possible, observe)
    except REFUSALS:
        return {}
    return {position: listed for position, listed in made.items() if listed}


def _header(
    n: NodeId, operator: CoreOperator, inputs: Sequence[Content | None], examination: Examination
) -> list[Place]:
    """That the inputs have the axes of the ports' patterns, and names that occur twice one size."""
    told = _Told(list(examination.limits), dict(examination.symbols))
    symbol = told.symbol
    parts: list[Term] = []
    sizes: dict[str, tuple[Int, ...]] = {}
    for position, (port, content) in enumerate(zip(operator.inputs, inputs, strict=False)):
        if port.mark == "*" or port.shape is None or content is None or content.shape is None:
            continue
        dotted = [k for k, item in enumerate(port.shape) if not isinstance(item, int) and item[1]]
        least, rank = len(port.shape) - len(dotted), len(content.shape)
        axes = symbol(f"in{position}.axes", rank)
        if not dotted or least:
            parts.append(at_most(least, axes) if dotted else equal(axes, least))
        if rank < least or (rank > least and not dotted):
            continue
        rest = [symbol(f"in{position}.size.{axis}", size) for axis, size in enumerate(content.shape)]
        for item in port.shape:
            spare = 1 if isinstance(item, int) or not item[1] else rank - least
            taken = tuple(rest[:spare])
            del rest[:spare]
            if isinstance(item, int):
                parts.append(equal(taken[0], item))
                continue
            known = sizes.setdefault(item[0], taken)
            if known is not taken:
                lengths = [symbol(f"len.{item[0]}.{position}.{k}", len(part)) for k, part in enumerate((known, taken))]
                parts += [equal(*lengths), *(equal(a, b) for a, b in zip(known, taken, strict=False))]
    goal = both(*parts)
    return [] if goal in (TRUE, FALSE) else [Place(n, goal, tuple(told.facts), told.symbols)]


INDICES = ("int", "bool", "string")
"""Elements of such types can matter to a requirement; of others only the sizes do."""


def _opened(content: Content, position: int, symbol: Callable[[str, Int], Term]) -> Content:
    """A tensor with symbols for its sizes. One of which elements matter keeps its numbers."""
    shape = content.data.shape if content.data is not None else content.shape
    known = content.entries is not None or content.law is not None or content.items is not None
    stored = content.data is not None and content.data.size <= SMALL and content.element.startswith(INDICES)
    if shape is None or known or stored:
        return content
    sizes = tuple(symbol(f"in{position}.size.{axis}", size) for axis, size in enumerate(shape))
    return replace(content, shape=sizes, data=None)


def script(name: str, words: str, places: Sequence[Place], model: Model, about: Sequence[str]) -> str:
    """One script for all places of a requirement: a question for each, under push and pop."""
    asked = [place for place in places if place.goal is not None]
    head = [f"{name}: {plain(words)}", *map(plain, about), *(ASKED if asked else NOTHING)]
    if not places:
        head.append("No node is concerned.")
    lines = ["".join(f"; {line}\n" for line in head), "(set-info :smt-lib-version 2.6)\n(set-logic ALL)\n"]
    for place in places:
        lines += _question(place, f"{model.nodes[place.node].path} {place.about}".strip())
    return "".join(lines)


ASKED = (
    "A question for each node: can the facts and the negated condition hold together? Facts are also the",
    "requirements that stand in front, of this node and of those before it. The answers come in the order of the",
    "nodes. unsat: the condition holds there. sat: it fails for some sizes or data. A place of which it says not asked",
    "has no question, and no answer stands for it.",
    "inK.axes is the number of axes of the node's input K, inK.size.A the size of its axis A, attribute.NAME.K entry K",
    "of an attribute. A symbol with other words is what these words of the text are at the node.",
)
NOTHING = ("NOTHING IS ASKED in this file: no place has a condition over numbers, texts or what is given.",)


def _question(place: Place, path: str) -> Iterator[str]:
    if place.goal is None:
        yield f"\n; ---- {plain(path)}: not asked: {plain(place.reason)}\n"
        return
    yield f"\n; ---- {plain(path)}\n(push 1)\n"
    yield from obligation([fact for fact in place.facts if names(fact)], place.goal, place.symbols)
    yield "(check-sat)\n(pop 1)\n"
