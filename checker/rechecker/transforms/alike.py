"""Two models that are the same but for names: from their outputs back, node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from ..operators.schema import default_of, schema_of
from ..paths import operator as spelled
from ..paths import quoted
from .graphs import Node, State
from .matching import Unshown, open_reason
from .replay import leaves_open, same_attributes, type_bytes


def alike(one: State, other: State, drawn: frozenset[str]) -> None:
    """Raises Unshown where the two are not seen to give the same, output by output, of the same inputs by name."""
    ours, theirs = (_read_inputs(side) for side in (one, other))
    if ours.keys() != theirs.keys():
        odd = next(iter(ours.keys() ^ theirs.keys()))
        raise open_reason(f"the input {quoted(odd)} is read in one of the models alone")
    outputs = [[side.names[t] for t in side.graphs[0].outputs] for side in (one, other)]
    if outputs[0] != outputs[1]:
        raise open_reason("the two models have different outputs")
    if _declared(one, ours) != _declared(other, theirs):
        raise open_reason("the two models declare their inputs and outputs differently")
    pairing = _Pairing(one, other, drawn)
    pairing.given([(ours[name], theirs[name]) for name in ours], 0)
    pairing.outputs(0, 0)


def _read_inputs(side: State) -> Mapping[str, int]:
    """The inputs of a model that a node reads, or that are given out, by name."""
    return {side.names[t]: t for t in side.graphs[0].inputs if side.readers.get(t) or side.kept(t)}


def _declared(side: State, read: Mapping[str, int]) -> Mapping[str, bytes]:
    """The declared types of those, and of the outputs."""
    graph = side.walk.graph.reading.graphs[0].proto
    listed = {it.name: it.type for it in graph.input if it.name in read}
    return {key: type_bytes(it) for key, it in {**listed, **{it.name: it.type for it in graph.output}}.items()}


def _stated(side: State, g: int) -> list[bytes]:
    """The declared types of the inputs and the outputs of a body."""
    proto = side.walk.graph.reading.graphs[g].proto
    return [type_bytes(it.type) for it in (*proto.input, *proto.output)]


@dataclass(slots=True)
class _Pairing:
    one: State
    other: State
    drawn: frozenset[str]
    pairs: dict[int, int] = field(default_factory=dict)
    waiting: list[tuple[int, int]] = field(default_factory=list)
    inputs: dict[int, tuple[int, int]] = field(default_factory=dict)
    chosen: dict[tuple[int, int], int] = field(default_factory=dict)
    within: dict[int, int] = field(default_factory=lambda: {0: 0})

    def graphs(self, g: int, h: int) -> None:
        """The two graphs give the same, if the same is given to them."""
        ours, theirs = self.one.graphs[g], self.other.graphs[h]
        if len(ours.inputs) != len(theirs.inputs) or len(ours.outputs) != len(theirs.outputs):
            raise Unshown("two bodies have different numbers of inputs or outputs")
        if self.within.setdefault(g, h) != h:
            raise open_reason("one body stands for two")
        if _stated(self.one, g) != _stated(self.other, h):  # of no run, they give the shape of what is put together
            raise open_reason("two bodies declare their inputs and outputs differently")
        self.given(list(zip(ours.inputs, theirs.inputs, strict=True)), h)
        self.outputs(g, h)

    def given(self, pairs: Sequence[tuple[int, int]], h: int) -> None:
        """Inputs of two graphs that are given the same."""
        for place, (t, u) in enumerate(pairs):
            if self.inputs.setdefault(t, (h, place)) != (h, place) or self.pairs.setdefault(t, u) != u:
                raise Unshown("an input stands for two")
            self._overridden(t, u)

    def outputs(self, g: int, h: int) -> None:
        """What two graphs give is the same."""
        self.waiting += zip(self.one.graphs[g].outputs, self.other.graphs[h].outputs, strict=True)
        while self.waiting:
            self._pair(*self.waiting.pop())

    def _overridden(self, t: int, u: int) -> None:
        """A value that stands where a caller gives none is the same."""
        a, b = self.one.values.get(t), self.other.values.get(u)
        if (a is None) != (b is None) or (a is not None and b is not None and not a.same(b)):
            raise open_reason(f"the input {self.one.names[t]} has another value where a caller gives none")

    def _pair(self, t: int, u: int) -> None:
        if t in self.pairs:
            if self.pairs[t] != u and not self._same_stored(t, u):
                self._again(t, u)
            return
        self.pairs[t] = u
        if self._same_stored(t, u):
            return
        made, other = self.one.producers.get(t), self.other.producers.get(u)
        if made is None or other is None or made[1] != other[1]:
            raise Unshown(f"{self.one.names[t]} and {self.other.names[u]} are not seen to be the same")
        self._nodes(made[0], other[0])

    def _same_stored(self, t: int, u: int) -> bool:
        if not self.one.stored(t) or not self.other.stored(u):
            return False
        return self.one.values[t].same(self.other.values[u])

    def _again(self, t: int, u: int) -> None:
        """A tensor of the first model is two of the second: as far as these compute the same."""
        raise open_reason(f"{self.one.names[t]} is computed twice in one of the models")

    def _nodes(self, n: int, m: int) -> None:
        node, other = self.one.nodes[n], self.other.nodes[m]
        same = (node.domain, node.op_type, node.overload) == (other.domain, other.op_type, other.overload)
        if same and node.text is None and other.text is None:
            raise open_reason(f"no text says what {node.op_type} is")
        if not same or node.text is not other.text or node.text is None:
            raise Unshown(f"{node.op_type} is not seen to be {other.op_type}")
        drawing = bool(self.one.library.words(node.text) & self.drawn)
        chooses = drawing or leaves_open(self.one, node) or leaves_open(self.other, other)
        if chooses and (self.chosen.setdefault((1, m), n) != n or self.chosen.setdefault((0, n), m) != m):
            raise open_reason(f"the text of {node.op_type} leaves something open, and one choice is not two")
        if not same_attributes(_full(node), _full(other)):
            raise Unshown(f"{node.op_type} has other attributes")
        if node.op_type == "Scan" and node.version != other.version:  # the rules of part 3 look at its version
            raise open_reason(f"{node.op_type} has another version in one of the models, which may run otherwise")
        if self.within.get(node.graph) != other.graph:  # it may run more often, and draw anew each time
            raise open_reason(f"{node.op_type} stands in a body of one model alone")
        ours, theirs = _plain(node.inputs), _plain(other.inputs)
        if [it is None for it in ours] != [it is None for it in theirs]:
            raise Unshown(f"{node.op_type} reads more on one side")
        if [it is None for it in _plain(node.outputs)] != [it is None for it in _plain(other.outputs)]:
            raise open_reason(f"{node.op_type} is asked for other results")
        self.waiting += [(t, u) for t, u in zip(ours, theirs, strict=True) if t is not None and u is not None]
        bodies = (
            [self.one.graphs[b].attribute for b in node.bodies],
            [self.other.graphs[b].attribute for b in other.bodies],
        )
        if bodies[0] != bodies[1]:
            raise Unshown(f"{node.op_type} holds other bodies")
        waiting, self.waiting = self.waiting, []
        for b, c in zip(node.bodies, other.bodies, strict=True):
            self.graphs(b, c)
        self.waiting += waiting


def _full(node: Node) -> Mapping[str, onnx.AttributeProto]:
    """The attributes of a node, with the defaults of those that it does not state."""
    schema = schema_of(spelled(node.domain, node.op_type), node.version or 0)
    usual = (
        {}
        if schema is None
        else {key: it.default_value for key, it in schema.attributes.items() if it.default_value.name}
    )
    if schema is None and node.text is not None:
        usual = {it.name: default for it in node.text.attributes if (default := default_of(it)) is not None}
    return {**usual, **node.attributes}


def _plain(tensors: Sequence[int | None]) -> list[int | None]:
    listed = list(tensors)
    while listed and listed[-1] is None:
        listed.pop()
    return listed
