"""Execution providers, with the names of ONNX Runtime.

A session asks each provider which nodes it takes (`get_capability`), gives it those that are free, and has what was
fused compiled. Source of names and rules: onnxruntime, include/onnxruntime/core/framework/execution_provider.h and
core/framework/graph_partitioner.cc. Unlike there, graphs are immutable and the outcome is data (`partition`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ...model.graph import GraphId, Node, NodeId, TensorId
from ...model.values import Value
from ...operators.application import AttributeData, Program
from .kernel import Allocate, Compute, Kernel

NodeIndex = NodeId


@dataclass(frozen=True, slots=True)
class GraphViewer:
    """A graph as providers see it: the nodes that are left to be assigned, in an order in which they can run.

    Nodes that were computed when the model was loaded are gone; control flow is the session's own and not among them.
    constants: the tensors whose values are known. A viewer is not kept beyond the call that it is given to.
    """

    program: Program
    graph: GraphId
    nodes: tuple[NodeIndex, ...]
    constants: Mapping[TensorId, Value]

    def node(self, index: NodeIndex) -> Node:
        """A node as the model has it."""
        return self.program.model.nodes[index]

    def attributes(self, index: NodeIndex) -> Mapping[str, AttributeData]:
        """The attributes that a node states."""
        return self.program.attributes(index)

    def constant(self, tensor: TensorId | None) -> Value | None:
        """The value of a tensor where it is known."""
        return None if tensor is None else self.constants.get(tensor)

    def producer(self, tensor: TensorId) -> NodeIndex | None:
        """The node that writes a tensor, None for an input or an initializer."""
        return self.program.producers.get(tensor)

    def consumers(self, tensor: TensorId) -> tuple[NodeIndex, ...]:
        """The nodes that read a tensor, those included whose bodies do."""
        return self.program.readers.get(tensor, ())

    def is_output(self, tensor: TensorId) -> bool:
        """True where a tensor is an output of the graph."""
        return tensor in self.program.model.graphs[self.graph].outputs


@dataclass(frozen=True, slots=True)
class MetaDef:
    """The node that stands for fused ones. inputs, outputs: tensors by position, as its `Compute` has them."""

    name: str
    inputs: tuple[TensorId, ...]
    outputs: tuple[TensorId, ...]
    domain: str = ""
    since_version: int = 1
    constant_initializers: tuple[TensorId, ...] = ()
    attributes: Mapping[str, AttributeData] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexedSubGraph:
    """Nodes that a provider takes together; without `meta_def` exactly one node, run by a kernel of its registry."""

    nodes: tuple[NodeIndex, ...]
    meta_def: MetaDef | None = None


@dataclass(frozen=True, slots=True)
class ComputeCapability:
    """A subgraph that a provider can run. why: a phrase for whoever asks why a node is where it is.

    grows: the nodes are those that the provider supports each for itself, in whatever subgraph. Of those that are free
    the session makes the parts, as large as they can be, and a MetaDef for each; `sub_graph` has none.
    """

    sub_graph: IndexedSubGraph
    why: str = ""
    grows: bool = False


@dataclass(frozen=True, slots=True)
class FusedNodeAndGraph:
    """Nodes to be compiled: the node that stands for the fused ones, and these in the order in which they run."""

    meta_def: MetaDef
    filtered_graph: GraphViewer


@dataclass(frozen=True, slots=True)
class NodeComputeInfo:
    """Compiled nodes. compute: like a kernel's, on inputs and outputs of the MetaDef; callable from several threads at
    once. in_place: as in `Kernel`."""

    compute: Compute
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Declined:
    """A subgraph that a provider does not compile after all, and why. It is asked again, without these nodes."""

    why: str


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """The memory that an allocator is for."""

    name: str = "Cpu"
    device: str = "CPU"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of one run. tag: any text, given to the providers."""

    tag: str = ""


class KernelRegistry(Protocol):
    """The kernels of a provider."""

    def look_up_kernel(self, node: Node, element: str | None = None) -> Kernel | None:
        """The kernel for a node, None without one. element: the type of its first input, None while it is unknown."""


class ExecutionProvider(Protocol):
    """Something that runs nodes. Its name ends in ExecutionProvider."""

    @property
    def name(self) -> str:
        """The name under which it is asked for."""

    def get_kernel_registry(self) -> KernelRegistry | None:
        """Its kernels; None when it only compiles."""

    def get_capability(self, graph: GraphViewer, kernel_lookup: KernelRegistry | None) -> Sequence[ComputeCapability]:
        """The nodes that it can run of a graph, most wanted first. kernel_lookup: its own registry."""

    def compile(self, fused: Sequence[FusedNodeAndGraph]) -> Sequence[NodeComputeInfo | Declined]:
        """The functions for the fused nodes that it was given, in the same order."""

    def create_allocator(self, info: MemoryInfo) -> Allocate | None:
        """Memory for the outputs of its nodes; None when the session's own will do."""

    def on_run_start(self, options: RunOptions) -> None:
        """A run of a session begins."""

    def on_run_end(self, options: RunOptions) -> None:
        """A run of a session has ended, well or not."""


@runtime_checkable
class Explaining(Protocol):
    """A provider that can say why it does not offer a node."""

    def why_not(self, graph: GraphViewer, n: NodeIndex) -> str:
        """The reason, "" where there is nothing to say."""


def why_not(provider: ExecutionProvider, graph: GraphViewer, n: NodeIndex) -> str:
    """Why a provider does not offer a node, "" where it does not say."""
    return provider.why_not(graph, n) if isinstance(provider, Explaining) else ""
