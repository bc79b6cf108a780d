"""A model that is being changed: nodes come and go, tensors stay what they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sonnx.semantics.formulas.terms import FALSE, Term
from sonnx.semantics.model.elements import FLOATS, element_of, encode
from sonnx.semantics.model.graph import (
    Attribute,
    Constant,
    GraphId,
    Model,
    Node,
    NodeId,
    Tensor,
    TensorId,
    ValueType,
)
from sonnx.semantics.model.schemas import normal_domain, operator_name, since_version
from sonnx.semantics.model.values import Array
from sonnx.semantics.operators.application import AttributeData, data_of
from sonnx.semantics.operators.shapes.contents import Content, Facts, Symbols
from sonnx.semantics.operators.shapes.node import names_within
from sonnx.semantics.operators.shapes.walk import examine_model
from sonnx.semantics.operators.symbolic.numbers import opposite
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.library import specification

from ...smt.prover import Prover
from ..matching.replacing import NewNode
from .journal import Step

TIMEOUT = 1.0
"""Seconds for a question about open sizes."""


@dataclass(slots=True)
class Trial:
    """Changes that may be taken back. undo: what takes each back. made, gone: the nodes that there are now and were not
    before, and those that were there and are not now. journal: the steps before.
    """

    journal: int
    undo: list[Callable[[], None]] = field(default_factory=list)
    made: dict[NodeId, None] = field(default_factory=dict)
    gone: list[Node] = field(default_factory=list)


class OpenModel:
    """A model whose graphs are changed in place. Numbers of tensors and nodes stay; new ones get further numbers.

    What is known of tensors is known for all inputs that the model admits, those with an axis of size 0 included.
    """

    def __init__(self, model: Model) -> None:
        """`model` itself is not changed."""
        self.model = model
        self.nodes: dict[NodeId, Node] = dict(enumerate(model.nodes))
        self.tensors: list[Tensor] = list(model.tensors)
        self.members: list[list[NodeId]] = [list(graph.nodes) for graph in model.graphs]
        self.outputs: list[list[TensorId]] = [list(graph.outputs) for graph in model.graphs]
        self.constants: dict[TensorId, Constant] = {}
        self.held: list[list[TensorId]] = []
        for graph in model.graphs:
            stored = (*graph.initializers, *graph.sparse_initializers)
            self.held.append([t for t, _ in stored])
            self.constants.update(dict(stored))
        self.inputs = frozenset(t for graph in model.graphs for t in graph.inputs)
        self.kept = frozenset(t for outputs in self.outputs for t in outputs)
        self.producers: dict[TensorId, tuple[NodeId, int]] = {}
        self.readers: dict[TensorId, dict[NodeId, None]] = {}
        self.opsets: dict[str, int] = dict(model.opsets)
        self.journal: list[Step] = []
        self.raising = False
        self._trial: Trial | None = None
        self._next = len(model.nodes)
        for n in self.nodes:
            self._enter(n)
        self._prover = Prover(TIMEOUT)
        self._certain: dict[Term, bool] = {}
        self._decided: dict[TensorId, bool] = {}
        self._learn()

    def _learn(self) -> None:
        """What is known of tensors before a run; open sizes may be 0."""
        found = examine_model(self.model, self._prover.possible)
        if found.sizes:
            least: Mapping[str, tuple[int, int | None]] = dict.fromkeys(found.sizes.values(), (0, None))
            found = examine_model(self.model, self._prover.possible, least)
        self.contents: dict[TensorId, Content] = dict(found.contents)
        self.facts: Facts = found.limits
        self.symbols: Symbols = found.symbols

    # ---- Reading ----------------------------------------------------------------------------------

    def certain(self, goal: Term) -> bool:
        """A condition on open sizes follows from what the inputs may be; one on elements never does."""
        if goal not in self._certain:
            symbols = dict(self.symbols)
            sizes = goal != FALSE and names_within(goal, symbols)
            proved = sizes and self._prover.ask((*self.facts, opposite(goal)), FALSE, symbols).status == "unsat"
            self._certain[goal] = proved
        return self._certain[goal]

    def definition(self, n: NodeId) -> CoreOperator | None:
        """The definition that is in force at a node; None without one, and where it holds bodies."""
        node = self.nodes[n]
        if node.version is None or node.bodies:
            return None
        return specification().meanings.at(operator_name(node.domain, node.op_type), node.version)

    def in_force(self, operator: str) -> int | None:
        """The version of an operator that is in force in the model."""
        domain, _, op_type = operator.rpartition("::")
        return since_version(normal_domain(domain), op_type, self.opsets.get(normal_domain(domain)))

    def is_in_force(self, n: NodeId) -> bool:
        """The operator of a node has the same definition in the model's operator set, and the node that version."""
        node = self.nodes[n]
        name = operator_name(node.domain, node.op_type)
        if node.domain or node.version is None:
            return True
        version = self.in_force(name)
        meanings = specification().meanings
        if version is None or meanings.at(name, version) is not meanings.at(name, node.version):
            return False
        if version != node.version or node.opset != self.opsets.get(""):
            self.nodes[n] = replace(node, version=version, opset=self.opsets.get(""))
        return True

    def stored(self, t: TensorId) -> bool:
        """A tensor has a stored value that no caller overrides."""
        return t in self.constants and t not in self.inputs

    def decided(self, t: TensorId) -> bool:
        """Stored values alone decide a tensor: it is one, or all that its node reads is decided. One that comes to be
        decided while rewrites are applied is found to be when they are applied again."""
        waiting, known = [t], self._decided
        while waiting:
            it = waiting[-1]
            made = self.producers.get(it)
            if it in known:
                waiting.pop()
            elif self.stored(it):
                known[it] = True
            elif made is None or self.nodes[made[0]].bodies:
                known[it] = False
            else:
                read = [s for s in self.nodes[made[0]].inputs if s is not None]
                fresh = [s for s in read if s not in known]
                if fresh and not any(known.get(s) is False for s in read):
                    waiting += fresh
                else:
                    known[it] = not fresh and all(known[s] for s in read)
        return known[t]

    def forget(self) -> None:
        """What is decided is looked at anew."""
        self._decided.clear()

    def shown(self) -> frozenset[TensorId]:
        """The tensors on which rests what BitCast makes of floating-point numbers, those of bodies included: it shows
        which NaN an operation has given, and rewrites do not keep that."""
        asked = (it for it in self.nodes.values() if not it.domain and it.op_type == "BitCast")
        read = (it.inputs[0] for it in asked if it.inputs)
        waiting = [t for t in read if t is not None and GraphView(self, 0).content(t).element in ("", *FLOATS)]
        found = set(waiting)
        while waiting:
            t = waiting.pop()
            made, graph = self.producers.get(t), self.model.graphs[self.tensors[t].graph]
            n = graph.holder if made is None and t in graph.inputs else None if made is None else made[0]
            if n is not None:
                node = self.nodes[n]
                inner = (it for _, body in node.bodies for it in self.outputs[body])
                fresh = {it for it in (*node.inputs, *node.captures, *inner) if it is not None} - found
                found |= fresh
                waiting += fresh
        return frozenset(found)

    def live(self) -> Iterator[NodeId]:
        """The nodes, as they stand in their graphs."""
        for members in self.members:
            yield from members

    # ---- Changing ---------------------------------------------------------------------------------

    def on_trial(self) -> Trial:
        """From now on what is rewritten can be taken back, until it is, or is settled."""
        self._trial = Trial(len(self.journal))
        return self._trial

    def settle(self, trial: Trial, *, keep: bool) -> None:
        """Ends a trial: its changes stay, or are taken back one by one, so that new numbers are given once more."""
        self._trial = None
        if not keep:
            while trial.undo:
                trial.undo.pop()()
            del self.journal[trial.journal :]

    def _enter(self, n: NodeId) -> None:
        node = self.nodes[n]
        for place, t in enumerate(node.outputs):
            if t is not None:
                self.producers[t] = (n, place)
        for t in (*node.inputs, *node.captures):
            if t is not None:
                self.readers.setdefault(t, {})[n] = None

    def _leave(self, n: NodeId) -> None:
        node = self.nodes[n]
        for t in node.outputs:
            if t is not None and self.producers.get(t, (None, 0))[0] == n:
                del self.producers[t]
        for t in (*node.inputs, *node.captures):
            if t is not None:
                self.readers.get(t, {}).pop(n, None)

    def change(self, n: NodeId, node: Node) -> None:
        """Puts another node in the place of one."""
        if self._trial is not None:
            before = self.nodes[n]
            self._trial.undo.append(lambda: self.change(n, before))
        self._leave(n)
        self.nodes[n] = node
        self._enter(n)

    def remove(self, n: NodeId) -> None:
        """Takes a node out."""
        node, members = self.nodes[n], self.members[self.nodes[n].graph]
        if self._trial is not None:
            place = members.index(n)
            self._trial.undo.append(lambda: self._put(n, node, place))
            if n in self._trial.made:
                del self._trial.made[n]
            else:
                self._trial.gone.append(node)
        self._leave(n)
        members.remove(n)
        del self.nodes[n]

    def _put(self, n: NodeId, node: Node, place: int) -> None:
        self.nodes[n] = node
        self.members[node.graph].insert(place, n)
        self._enter(n)

    def _unmake_tensor(self) -> None:
        self.tensors.pop()
        self.contents.pop(len(self.tensors), None)
        self._decided.pop(len(self.tensors), None)

    def _unmake_node(self) -> None:
        self._next -= 1
        self.remove(self._next)

    def tensor(self, near: TensorId, content: Content | None) -> TensorId:
        """A new tensor, called after one that it stands for."""
        like = self.tensors[near]
        self.tensors.append(Tensor(f"{like.name}.{len(self.tensors)}", like.path, like.graph))
        if content is not None:
            self.contents[len(self.tensors) - 1] = content
        if self._trial is not None:
            self._trial.undo.append(self._unmake_tensor)
        return len(self.tensors) - 1

    def node(
        self, before: NodeId, made: NewNode, inputs: Sequence[TensorId | None], outputs: Sequence[TensorId]
    ) -> NodeId:
        """A new node in the graph of another one, in front of it."""
        near = self.nodes[before]
        domain, _, op_type = made.operator.rpartition("::")
        attributes = {name: stated(value) for name, value in made.attributes.items()}
        n, self._next = self._next, self._next + 1
        if self._trial is not None:
            self._trial.undo.append(self._unmake_node)
            self._trial.made[n] = None
        opset = self.opsets.get(normal_domain(domain))
        self.nodes[n] = Node(
            near.name, near.path, near.graph, normal_domain(domain), op_type, "", opset, made.version,
            tuple(inputs), tuple(outputs), attributes, (), (), near.calls,
        )  # fmt: skip
        self._put(n, self.nodes[n], self.members[near.graph].index(before))
        return n

    def store(self, graph: GraphId, t: TensorId, data: Array) -> None:
        """Gives a tensor a stored value."""
        self.constants[t] = constant_of(data)
        self.forget()
        self.held[graph].append(t)
        self.contents[t] = Content(f"t{t}", element_of(data.dtype), tuple(data.shape), None, data)

    def read_instead(self, t: TensorId, other: TensorId) -> None:
        """Lets whatever reads a tensor read another one. Outputs of graphs are not changed."""
        for n in list(self.readers.get(t, ())):
            node = self.nodes[n]
            inputs = tuple(other if it == t else it for it in node.inputs)
            captures = tuple(dict.fromkeys(other if it == t else it for it in node.captures))
            self.change(n, replace(node, inputs=inputs, captures=captures))

    # ---- The end ----------------------------------------------------------------------------------

    def closed(self) -> Model:
        """The model as it is now: its nodes in an order in which they can run, stored values that nobody reads left
        out. Only its graphs are meant to be read, as `model.writing` does."""
        numbered = [self.nodes.get(n, GONE) for n in range(self._next)]
        graphs = []
        for number, graph in enumerate(self.model.graphs):
            kept = [t for t in self.held[number] if self.readers.get(t) or t in self.kept or t in self.inputs]
            dense = tuple((t, self.constants[t]) for t in kept if not self.constants[t].sparse)
            sparse = tuple((t, self.constants[t]) for t in kept if self.constants[t].sparse)
            there = {t for n in self.members[number] for t in self.nodes[n].outputs}
            infos = tuple((t, type_) for t, type_ in graph.value_infos if t in there)
            graphs.append(
                replace(
                    graph,
                    nodes=self._ordered(number),
                    initializers=dense,
                    sparse_initializers=sparse,
                    value_infos=infos,
                )
            )
        opsets = tuple(self.opsets.items())
        tensors = tuple(self.tensors)
        return replace(self.model, graphs=tuple(graphs), nodes=tuple(numbered), tensors=tensors, opsets=opsets)

    def _ordered(self, graph: GraphId) -> tuple[NodeId, ...]:
        """The nodes of a graph, each behind those whose results it reads, otherwise as they stand."""
        members = self.members[graph]
        before = {n: self._sources(n, graph) for n in members}
        done: dict[NodeId, None] = {}
        for start in members:
            waiting = [start]
            while waiting:
                n = waiting[-1]
                open_ = [m for m in before[n] if m not in done]
                if n in done or not open_:
                    done.setdefault(waiting.pop())
                else:
                    waiting += open_
        return tuple(done)

    def _sources(self, n: NodeId, graph: GraphId) -> list[NodeId]:
        node = self.nodes[n]
        found = (self.producers[t][0] for t in (*node.inputs, *node.captures) if t is not None and t in self.producers)
        return [m for m in found if self.nodes[m].graph == graph and m != n]


GONE = Node("", "", 0, "", "", "", None, None, (), ())
"""Stands where a node has been taken out."""


def constant_of(data: Array) -> Constant:
    """A stored tensor with these elements."""
    element = element_of(data.dtype)
    if element == "string":
        texts = tuple(bytes(it) for it in data.reshape(-1).tolist())
        return Constant(element, tuple(data.shape), "string_data", len(texts), texts)
    content = bytes(encode(np.ascontiguousarray(data)))
    return Constant(element, tuple(data.shape), "raw_data", len(content), content)


def stated(value: AttributeData) -> Attribute:
    """An attribute of a node with this value."""
    match value:
        case bool() | int():
            return Attribute("INT", int(value))
        case float():
            return Attribute("FLOAT", value)
        case str():
            return Attribute("STRING", value.encode("utf-8", "surrogateescape"))
        case ValueType():
            return Attribute("TYPE_PROTO", value)
        case np.ndarray():
            data = bytes(encode(np.ascontiguousarray(value)))
            return Attribute(
                "TENSOR", Constant(element_of(value.dtype), tuple(value.shape), "raw_data", len(data), data)
            )
    texts = tuple(it.encode("utf-8", "surrogateescape") for it in value if isinstance(it, str))
    if texts:
        return Attribute("STRINGS", texts)
    floats = tuple(it for it in value if isinstance(it, float))
    whole = tuple(it for it in value if isinstance(it, int))
    return Attribute("FLOATS", floats) if floats else Attribute("INTS", whole)


@dataclass(frozen=True, slots=True)
class GraphView:
    """One graph of an open model, as the search sees it: what it reads from around it has no producer."""

    open: OpenModel
    graph: GraphId

    def producer(self, tensor: object) -> tuple[NodeId, int] | None:
        """The node that writes a tensor of this graph."""
        t = _number(tensor)
        return self.open.producers.get(t) if self.open.tensors[t].graph == self.graph else None

    def operator(self, node: object) -> CoreOperator | None:
        """The definition in force."""
        return self.open.definition(_number(node))

    def inputs(self, node: object) -> tuple[TensorId | None, ...]:
        """What a node reads."""
        return _without_last(self.open.nodes[_number(node)].inputs)

    def outputs(self, node: object) -> tuple[TensorId | None, ...]:
        """What a node writes."""
        return self.open.nodes[_number(node)].outputs

    def attributes(self, node: object) -> Mapping[str, AttributeData | None]:
        """What a node states."""
        model = self.open.model
        return {name: data_of(value, model) for name, value in self.open.nodes[_number(node)].attributes.items()}

    def content(self, tensor: object) -> Content:
        """What is known of a tensor."""
        return self.open.contents.get(_number(tensor)) or Content("", "", None)

    def stored(self, tensor: object) -> bool:
        """A tensor has a stored value."""
        return self.open.stored(_number(tensor))

    def runs(self, node: object) -> bool:
        """False: what a node requires is not asked here."""
        return False

    def since(self, node: object) -> int:
        """The version in force at a node."""
        return self.open.nodes[_number(node)].version or 0

    def version(self, operator: CoreOperator) -> int | None:
        """The version in force in the model, where it has this definition; while it is raised any, to be raised on."""
        in_force = self.open.in_force(operator.name)
        if in_force is not None and operator.first <= in_force <= operator.last:
            return in_force
        return operator.last if self.open.raising else None

    @property
    def facts(self) -> Facts:
        """What the inputs may be."""
        return self.open.facts

    @property
    def symbols(self) -> Symbols:
        """The open sizes."""
        return self.open.symbols

    def certain(self, goal: Term) -> bool:
        """It follows from what the inputs may be."""
        return self.open.certain(goal)


def _number(it: object) -> int:
    if isinstance(it, int):
        return it
    raise TypeError(f"{it!r} is no number of a tensor or a node")


def _without_last(tensors: tuple[TensorId | None, ...]) -> tuple[TensorId | None, ...]:
    """Inputs that are left out at the end are not there."""
    while tensors and tensors[-1] is None:
        tensors = tensors[:-1]
    return tensors
