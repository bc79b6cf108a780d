"""The right side of a rule at a place: which nodes are to be made there.

The right side is evaluated as any definition is, but for one thing: an operator that it applies is written down, and
gives tensors of which only the shape is known. So whatever the text computes from shapes, attributes and stored values
is a number by then; where it is not, there is no right side at this place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from sonnx.semantics.model.elements import ELEMENT_TYPES
from sonnx.semantics.model.schemas import Formal, formal_at, schema_of
from sonnx.semantics.operators.application import AttributeData
from sonnx.semantics.operators.shapes.contents import Content, Symbols
from sonnx.semantics.operators.shapes.node import follow, names_within
from sonnx.semantics.operators.symbolic.statements import compose
from sonnx.semantics.operators.symbolic.values import Array, Dead, ElementType, Scope, Value
from sonnx.spec.elaborate.core import Core, CoreOperator
from sonnx.spec.language.syntax import Span

from .patterns import meaning
from .searching import Match, Unfit, site_of, written
from .views import Tensor, View


@dataclass(frozen=True, slots=True)
class Made:
    """An output of a node that is to be made: its position among those, and of the output."""

    node: int
    output: int


Reference = Made | Tensor | None
"""A tensor of the graph, an output of a new node, or nothing."""


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that is to be made. version: that is in force in the graph. outputs: how many of them are read. contents:
    what is known of each of its outputs, those included that nobody reads.
    """

    operator: str
    version: int
    inputs: tuple[Reference, ...]
    attributes: Mapping[str, AttributeData]
    contents: tuple[Content, ...]
    outputs: int = 1


@dataclass(frozen=True, slots=True)
class Replacement:
    """The right side: its nodes, each behind those that it reads, and what takes the place of each result."""

    nodes: tuple[NewNode, ...]
    results: tuple[Reference, ...]


@dataclass(slots=True)
class _Emitting:
    """The work. measured: the places of the applications whose definitions are to say of which shapes their outputs
    are."""

    view: View
    match: Match
    measured: frozenset[Span]
    nodes: list[NewNode] = field(default_factory=list)

    def apply(
        self,
        name: str,
        version: int,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Value],
        span: Span,
        scope: Scope,
        count: int,
    ) -> tuple[Value, ...]:
        """Writes an application down; its outputs by name, of the shapes that its definition gives."""
        wanted = meaning(name, version)
        in_force = self.view.version(wanted)
        if in_force is None:
            raise Unfit(f"{name}-{version} is not in force in this graph")
        outputs: tuple[Value, ...] | None = None if span in self.measured else _unmeasured(wanted, inputs, count)
        if outputs is None:
            outputs = compose(name, version, inputs, attributes, span, scope, count)
        sources = tuple(self.reference(value) for value in inputs)
        _check_types(wanted, in_force, inputs)
        data = {key: written(value) for key, value in attributes.items()}
        number, tensors = len(self.nodes), [it for it in outputs if isinstance(it, Array)]
        if len(tensors) < len(outputs):
            raise Unfit(f"{name} gives something else than tensors of a known number of axes")
        contents = tuple(_content(it, self.view.symbols) for it in tensors if span in self.measured)
        self.nodes.append(NewNode(name, in_force, sources, data, contents))
        return tuple(replace(it, name=f"new {number} {k}") for k, it in enumerate(tensors))

    def reference(self, value: Value | None) -> Reference:
        """What a value is in the graph. Raises Unfit for one that the text computes element by element."""
        if value is None:
            return None
        if not isinstance(value, Array):
            raise Unfit("an input is no tensor")
        if value.name.startswith("new "):
            _, node, output = value.name.split(" ")
            made = Made(int(node), int(output))
            found = self.nodes[made.node]
            self.nodes[made.node] = replace(found, outputs=max(found.outputs, made.output + 1))
            return made
        if value.name not in self.match.ports:
            raise Unfit("an input is computed by the rule itself, element by element")
        return self.match.ports[value.name]


def replacement(view: View, match: Match, *, contents: bool = True) -> Replacement:
    """The right side of the rule at a match. contents: those are asked for of what new nodes read of one another.
    Raises Unfit where it cannot be written down there."""
    right = match.pattern.rule.right
    emitting = _Emitting(view, match, _measured(right, inner=contents))
    site = site_of(view, right, match.ports, match.attributes)
    try:
        found, reason, _ = follow(site, view.facts, view.symbols, lambda _facts, _symbols: True, emitting.apply)
    except Dead:
        raise Unfit("the right side has no value there") from None
    if found is None:
        raise Unfit(reason)
    results = tuple(emitting.reference(found.outputs[port.name]) for port in right.outputs)
    return Replacement(tuple(emitting.nodes), results)


@cache
def _measured(right: CoreOperator, *, inner: bool) -> frozenset[Span]:
    """The places of the applications whose shapes the text reads: those whose outputs are more than an input of
    another application or a result, and what these read. inner: those too that another application reads."""
    lets = {own: it.body for it in right.statements if it.kind == "let" for own in it.binds}
    found: set[Span] = set()

    def applied(core: Core) -> Core | None:
        while core.head == "variable" and core.variable in lets:
            core = lets[core.variable]
        return core if core.head == "apply" else None

    def measure(core: Core) -> None:
        made = applied(core)
        if made is not None and made.span not in found:
            found.add(made.span)
            for below in made.nodes():
                measure(below)

    def visit(core: Core, *, reads: bool) -> None:
        if reads:
            measure(core)
        for part in core.children():
            visit(part, reads=inner or core.head != "apply")

    for statement in right.statements:
        visit(statement.body, reads=statement.kind not in ("let", "result"))
    return frozenset(found)


def _unmeasured(operator: CoreOperator, inputs: Sequence[Value | None], count: int) -> tuple[Array, ...] | None:
    """The outputs of an application of which nobody asks the shape; None where the types of the inputs do not say
    theirs."""
    types: dict[str, ElementType] = {}
    for port, value in zip(operator.inputs, inputs, strict=False):
        if isinstance(value, Array) and port.mark != "*":
            types.setdefault(port.type, value.type)
    if any(port.mark == "*" for port in operator.outputs):
        return None
    kinds = [ElementType(it.type) if it.type in ELEMENT_TYPES else types.get(it.type) for it in operator.outputs]
    made = tuple(Array("", (), _unread, kind) for kind in kinds[:count] if kind is not None)
    return made if len(made) == count else None


def _unread(_index: object, _scope: object) -> Value:
    raise Unfit("the rule reads an element of what it makes")


def _content(tensor: Array, symbols: Symbols) -> Content:
    """What is known of a tensor: its type, and its shape where that is about nothing but the graph's open sizes."""
    element = tensor.type.name if tensor.type.name in ELEMENT_TYPES else ""
    known = all(isinstance(n, int) or names_within(n, symbols) for n in tensor.shape)
    return Content("", element, tensor.shape if known else None)


def _check_types(operator: CoreOperator, version: int, inputs: Sequence[Value | None]) -> None:
    """The version in force admits the element types: definitions cover versions that admit fewer than others."""
    schema = schema_of(operator.name, version)
    for position, value in enumerate(inputs):
        formal: Formal | None = None if schema is None else formal_at(schema.inputs, position)
        if formal is None or not isinstance(value, Array):
            continue
        if value.type.name and f"tensor({value.type.name})" not in formal.types:
            raise Unfit(f"{operator.name}-{version} does not admit {value.type.name}")
