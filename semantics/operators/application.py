"""A model as the machine and the fast path run it, and the contract with the meaning of its operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.language.syntax import Span

from ..errors import InternalError
from ..model.graph import Attribute, Constant, Graph, GraphId, Model, NodeId, TensorId, ValueType
from ..model.schemas import operator_name
from ..model.stored import array_of
from ..model.values import Value
from ..resources import quick
from ..resources.process import OutOfBudget

# The contract between the machine and the meaning of operators: what is applied, and what comes of it.


AttributeData = (
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | NDArray[np.generic] | ValueType
)
"""An attribute's value as an operator text sees it. A float is the exact value of the float32 that the model states."""


@quick
@dataclass(frozen=True, slots=True)
class Draw:
    """The source of the random numbers of an application: they follow from the seed and the place of the node.

    outcomes: the results of `outcomes`, given instead of drawn; one that is not allowed is replaced by one that is.
    probed: they are 0 everywhere, or 1, one after the other, so that two outcomes are all that can be told.
    """

    seed: int = 0
    place: str = ""
    outcomes: NDArray[np.int64] | None = None
    probed: bool = False


NO_SEED: Final = Draw()
"""The seed 0, for a node without a place."""


@quick
@dataclass(frozen=True, slots=True)
class Application:
    """One application of an operator of ONNX's own domain.

    version: the since_version in force. inputs: by position, None where an optional input is absent. attributes: those
    that the node states; the definition adds the schema's defaults. outputs: by position, whether the node names it.
    budget: the bytes that a tensor which is computed may take; a larger one is a MemoryError before it is allocated.
    draw: where random numbers come from, for an operator that has several results.
    """

    op_type: str
    version: int
    inputs: tuple[Value | None, ...]
    attributes: Mapping[str, AttributeData]
    outputs: tuple[bool, ...]
    budget: int | None = None
    draw: Draw = NO_SEED


@quick
@dataclass(frozen=True, slots=True)
class Outputs:
    """The values by position, None for an output that is not asked for; they own their memory or view the inputs.

    free: by position, a mask of the elements that the text leaves open (`arbitrary`, `oneof`), None when none is.
    types: by position, the element type; given by interpretations whose arrays do not tell it.
    """

    values: tuple[Value | None, ...]
    free: tuple[NDArray[np.bool_] | None, ...] = ()
    types: tuple[np.dtype[np.generic] | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Stuck:
    """No transition is possible: which rule (or operator, as `Conv-11`), which premise in its own words, where it is
    written, and a sentence with the values that break it. at: in a run, the path of the node that could not fire.
    """

    rule: str
    premise: str
    span: Span
    message: str
    suggestion: str = ""
    at: str = ""


# What the machine knows of G before it runs: who waits for what, a fixed order of the nodes, attributes as data.


T = TypeVar("T")

Meaning = Callable[[Application], Outputs | Stuck]
"""The result of an operator's application: an interpretation of the operators' texts."""


def no_meaning(application: Application) -> Outputs | Stuck:
    """The meaning in a program that is read, and not run. Raises InternalError."""
    raise InternalError(f"{application.op_type} is applied in a program that is only read")


NOTHING_STATED: Final[Mapping[str, AttributeData]] = {}
"""The attributes of a node that states none."""


@dataclass(frozen=True)
class Program:
    """A model that can be run. The tables are made when they are first asked for and change nothing.

    draws: the seed of the random numbers of its nodes.
    """

    model: Model
    meaning: Meaning = no_meaning
    draws: int = 0
    _remembered: dict[object, object] = field(default_factory=dict, compare=False, repr=False)

    def remembered(self, key: object, make: Callable[[], T]) -> T:
        """The result of `make`, made once for each key."""
        try:
            return cast("T", self._remembered[key])
        except KeyError:
            return cast("T", self._remembered.setdefault(key, make()))

    # ---- Reading and writing ------------------------------------------------------------------

    @cached_property
    def operators(self) -> tuple[str, ...]:
        """The operator of each node, as the specification names it: every step asks for one."""
        named: dict[tuple[str, str], str] = {}
        pairs = ((node.domain, node.op_type) for node in self.model.nodes)
        return tuple(named.get(pair) or named.setdefault(pair, operator_name(*pair)) for pair in pairs)

    @cached_property
    def reads(self) -> tuple[tuple[TensorId, ...], ...]:
        """ins(n): for each node the tensors that it reads, captured ones included, each once."""
        return tuple(_distinct((*node.inputs, *node.captures)) for node in self.model.nodes)

    @cached_property
    def writes(self) -> tuple[tuple[TensorId, ...], ...]:
        """outs(n): for each node the tensors that it writes, each once."""
        return tuple(_distinct(node.outputs) for node in self.model.nodes)

    @cached_property
    def asked(self) -> tuple[tuple[bool, ...], ...]:
        """For each node, by position, whether it names an output."""
        return tuple(tuple([t is not None for t in node.outputs]) for node in self.model.nodes)

    @cached_property
    def readers(self) -> Mapping[TensorId, tuple[NodeId, ...]]:
        """consumers(t): the nodes that read a tensor, of the graph that the tensor belongs to and of its bodies."""
        readers: dict[TensorId, list[NodeId]] = {}
        for n, row in enumerate(self.reads):
            for t in row:
                readers.setdefault(t, []).append(n)
        return {t: tuple(nodes) for t, nodes in readers.items()}

    @cached_property
    def reader_counts(self) -> tuple[int, ...]:
        """For each tensor how many nodes of its own graph read it; a body reads through the node that holds it."""
        counts = [0] * len(self.model.tensors)
        for n, row in enumerate(self.reads):
            for t in row:
                counts[t] += self.model.tensors[t].graph == self.model.nodes[n].graph
        return tuple(counts)

    @cached_property
    def lasting(self) -> tuple[frozenset[TensorId], ...]:
        """For each graph the tensors whose values stay until a run of it ends: its outputs and initializers."""
        return tuple(frozenset((*graph.outputs, *(t for t, _ in initializers(graph)))) for graph in self.model.graphs)

    @cached_property
    def producers(self) -> Mapping[TensorId, NodeId]:
        """The node that writes a tensor; the first one of several."""
        writers: dict[TensorId, NodeId] = {}
        for n, row in enumerate(self.writes):
            for t in row:
                writers.setdefault(t, n)
        return writers

    @cached_property
    def given(self) -> tuple[frozenset[TensorId], ...]:
        """For each graph the tensors that have a value when a run of it begins: its inputs and initializers."""
        return tuple(frozenset((*graph.inputs, *(t for t, _ in initializers(graph)))) for graph in self.model.graphs)

    # ---- Order --------------------------------------------------------------------------------

    @cached_property
    def missing(self) -> tuple[int, ...]:
        """For each node how many tensors of its own graph it must wait for when a run of that graph begins."""
        counts = []
        for n, node in enumerate(self.model.nodes):
            given = self.given[node.graph]
            tensors = self.model.tensors
            counts.append(sum(1 for t in self.reads[n] if tensors[t].graph == node.graph and t not in given))
        return tuple(counts)

    def ready(self, graph: GraphId) -> tuple[NodeId, ...]:
        """The nodes of a graph that are enabled when a run of it begins, in the order of the file."""
        given = self.given[graph]
        return tuple(
            n
            for n in self.model.graphs[graph].nodes
            if not self.missing[n] and self.writes[n] and given.isdisjoint(self.writes[n])
        )

    def order(self, graph: GraphId) -> tuple[NodeId, ...]:
        """A topological order of the nodes of a graph that can be executed: of those that may come next, the one that
        became possible first, at the beginning in the order of the file."""
        return self.orders[graph]

    @cached_property
    def orders(self) -> tuple[tuple[NodeId, ...], ...]:
        """The order of each graph."""
        return tuple(map(self._sorted, range(len(self.model.graphs))))

    def _sorted(self, graph: GraphId) -> tuple[NodeId, ...]:
        nodes = self.model.graphs[graph].nodes
        if self._is_sorted(graph):
            return nodes
        left = {n: self.missing[n] for n in nodes}
        order = [n for n in nodes if not left[n]]
        seen: set[TensorId] = set(self.given[graph])
        for n in order:
            for t in self.writes[n]:
                if t in seen:
                    continue
                seen.add(t)
                for reader in self.readers.get(t, ()):
                    if reader in left:
                        left[reader] -= 1
                        if not left[reader]:
                            order.append(reader)  # the loop goes on to it
        return tuple(order)

    def _is_sorted(self, graph: GraphId) -> bool:
        tensors, seen = self.model.tensors, set(self.given[graph])
        for n in self.model.graphs[graph].nodes:
            if any(tensors[t].graph == graph and t not in seen for t in self.reads[n]):
                return False
            seen.update(self.writes[n])
        return True

    # ---- Attributes ---------------------------------------------------------------------------

    def attributes(self, n: NodeId) -> Mapping[str, AttributeData]:
        """The attributes that a node states, its bodies excepted, as an operator's text sees them."""
        if not self.model.nodes[n].attributes:
            return NOTHING_STATED
        return self.remembered(("attributes", n), lambda: self._stated(n))

    def _stated(self, n: NodeId) -> Mapping[str, AttributeData]:
        pairs = ((name, data_of(value, self.model)) for name, value in self.model.nodes[n].attributes.items())
        return {name: data for name, data in pairs if data is not None}


def data_of(attribute: Attribute, model: Model) -> AttributeData | None:
    """An attribute of a model as an operator's text sees it; None for a body, and for what is elided."""
    value = attribute.value
    match value:
        case bytes():
            return value.decode("utf-8", "surrogateescape")
        case Constant():
            data = array_of(value, model)
            return None if isinstance(data, OutOfBudget) else data
        case tuple() if value and isinstance(value[0], bytes):
            return tuple(it.decode("utf-8", "surrogateescape") for it in value if isinstance(it, bytes))
        case ValueType():
            return value
        case int() | float() if attribute.kind in ("INT", "FLOAT"):
            return value
        case tuple() if attribute.kind in ("INTS", "FLOATS", "STRINGS"):
            return value  # type: ignore[return-value]
        case _:
            return None


def initializers(graph: Graph) -> tuple[tuple[TensorId, Constant], ...]:
    """The tensors of a graph that have a stored value, sparse ones included."""
    return (*graph.initializers, *graph.sparse_initializers)


def _distinct(row: tuple[TensorId | None, ...]) -> tuple[TensorId, ...]:
    return tuple(dict.fromkeys(t for t in row if t is not None))
