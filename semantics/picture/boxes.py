"""The boxes of a picture: nodes, bodies and calls in each other, what comes in and goes out, and the edges between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from enum import IntEnum

from ..machine.spelling import attribute_name, single
from ..model.graph import GraphId, Model, NodeId, TensorId
from ..model.path import operator_text, quote
from ..model.schemas import normal_domain
from ..operators.application import initializers


class Kind(IntEnum):
    """The kinds of boxes. IN, OUT: a tensor that comes into a graph or call, or goes out of it."""

    NODE = 0
    CALL = 1
    BODY = 2
    IN = 3
    OUT = 4


@dataclass(slots=True)
class Box:
    """A box. path: of the node, call or graph, "" for a tensor. base: how paths of what lies in it begin.

    inner: the boxes in it. edges: between those, by their numbers.
    """

    kind: Kind
    parent: int
    title: str
    name: str = ""
    path: str = ""
    base: str = ""
    node: NodeId | None = None
    tensor: TensorId | None = None
    inner: list[int] = field(default_factory=list)
    edges: dict[tuple[int, int], None] = field(default_factory=dict)


def reading_order(model: Model, g: GraphId = 0) -> Iterator[NodeId]:
    """The nodes as the listing has them: those of bodies behind the node that holds them."""
    waiting = [iter(model.graphs[g].nodes)]
    while waiting:
        n = next(waiting[-1], None)
        if n is None:
            waiting.pop()
            continue
        yield n
        waiting += [iter(model.graphs[body].nodes) for _, body in reversed(model.nodes[n].bodies)]


def with_holders(model: Model, nodes: Iterable[NodeId]) -> Set[NodeId]:
    """The nodes, and those in whose bodies they lie."""
    chosen: set[NodeId] = set()
    for n in nodes:
        at: NodeId | None = n
        while at is not None and at not in chosen:
            chosen.add(at)
            at = model.graphs[model.nodes[at].graph].holder
    return chosen


def boxes(model: Model, shown: Set[NodeId]) -> list[Box]:
    """The boxes of the nodes that are shown, the main graph first, each behind the one that it lies in."""
    return _Builder(model, shown).made


class _Builder:
    def __init__(self, model: Model, shown: Set[NodeId]) -> None:
        self.model, self.shown = model, shown
        self.made: list[Box] = []
        self.makers: dict[TensorId, list[int]] = {}
        self.tensors: dict[tuple[int, Kind, TensorId], int] = {}
        self.of_graph: dict[GraphId, int] = {}
        self.read: Set[TensorId] | None = None
        """The tensors that the nodes shown read, where not all are shown."""
        if len(shown) < len(model.nodes):
            self.read = {t for n in shown for t in (*model.nodes[n].inputs, *model.nodes[n].captures) if t is not None}
        main = self._add(Box(Kind.BODY, 0, single(model.graphs[0].name) or "graph", path="/", base="/"))
        self._graph(0, main)
        self._join()

    def _add(self, box: Box) -> int:
        number = len(self.made)
        self.made.append(box)
        if number:
            self.made[box.parent].inner.append(number)
        return number

    def _graph(self, g: GraphId, at: int) -> None:
        model, graph = self.model, self.model.graphs[g]
        self.of_graph[g] = at
        stored = {t for t, _ in initializers(graph)}
        for t in graph.inputs:
            if t not in stored and (self.read is None or t in self.read):
                self._tensor(at, Kind.IN, t)
        around = () if graph.holder is None else model.nodes[graph.holder].calls
        opened: list[tuple[str, int]] = []
        for n in graph.nodes:
            if n not in self.shown:
                continue
            node = model.nodes[n]
            calls = node.calls[len(around) :] if node.calls[: len(around)] == around else node.calls
            same = 0
            while same < min(len(calls), len(opened)) and calls[same] == opened[same][0]:
                same += 1
            del opened[same:]
            for call in calls[same:]:
                parent = opened[-1][1] if opened else at
                title = single(call.removeprefix(self.made[parent].base))
                made = self._add(Box(Kind.CALL, parent, title, path=call, base=f"{call}!"))
                opened.append((call, made))
            self._node(n, opened[-1][1] if opened else at)
        for t in dict.fromkeys(graph.outputs):
            if self.read is None or t in self.makers:
                self._tensor(at, Kind.OUT, t)

    def _node(self, n: NodeId, parent: int) -> None:
        node = self.model.nodes[n]
        operator = operator_text(normal_domain(node.domain), node.op_type)
        box = self._add(Box(Kind.NODE, parent, operator, _bare(node.name), node.path, node=n))
        for t in node.outputs:
            if t is not None:
                self.makers.setdefault(t, []).append(box)
        for name, body in node.bodies:
            path = self.model.graphs[body].path
            title = single(f"{attribute_name(name)} {self.model.graphs[body].name}".strip())
            self._graph(body, self._add(Box(Kind.BODY, box, title, path=path, base=f"{path}/")))

    def _tensor(self, at: int, kind: Kind, t: TensorId) -> int:
        key = (at, kind, t)
        if key not in self.tensors:
            title = _bare(self.model.tensors[t].name)
            self.tensors[key] = self._add(Box(kind, at, title, tensor=t))
        return self.tensors[key]

    def _join(self) -> None:
        for number, box in enumerate(list(self.made)):
            reads = self.model.nodes[box.node].inputs if box.node is not None else ()
            for t in (box.tensor,) if box.kind is Kind.OUT else reads:
                if t is not None:
                    self._read(t, number)

    def _read(self, t: TensorId, reader: int) -> None:
        sources = self.makers.get(t, [])
        if not sources:
            at = self.of_graph.get(self.model.tensors[t].graph)
            known = None if at is None else self.tensors.get((at, Kind.IN, t))
            sources = [] if known is None else [known]
        for source in sources:
            self._edge(t, source, reader)

    def _edge(self, t: TensorId, source: int, reader: int) -> None:
        """An edge, with a box for the tensor at each call and body that it leads into or out of."""
        outwards, inwards = list(self._around(source)), list(self._around(reader))
        common = set(outwards) & set(inwards)
        a, b = source, reader
        for at in outwards:
            if at in common:
                break
            if self.made[at].kind is not Kind.NODE:
                self._link(at, a, self._tensor(at, Kind.OUT, t))
            a = at
        for at in inwards:
            if at in common:
                self._link(at, a, b)
                return
            if self.made[at].kind is not Kind.NODE:
                self._link(at, self._tensor(at, Kind.IN, t), b)
            b = at

    def _around(self, box: int) -> Iterator[int]:
        """The boxes in which a box lies, the innermost first. What a body gives goes to the node that holds it."""
        while box:
            box = self.made[box].parent
            yield box

    def _link(self, at: int, a: int, b: int) -> None:
        if a != b:
            self.made[at].edges[a, b] = None


def _bare(name: str) -> str:
    """A name as it is spelled between the quotes of a path."""
    return quote(name)[1:-1]
