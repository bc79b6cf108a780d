"""The definition itself as an execution provider, to have exact nodes in a fast run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import InternalError
from ...model.graph import Node
from ..fastpath import provider
from ..fastpath.by_text import text_kernel
from ..fastpath.kernel import Allocate, Kernel


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of the operators as kernels: what the machine applies in a step."""

    def look_up_kernel(self, node: Node, element: str | None = None) -> Kernel | None:
        """The text of a node's operator; None for an operator without one."""
        return text_kernel(node)


@dataclass(frozen=True, slots=True)
class MachineExecutionProvider:
    """Runs each node by itself as the machine does: by the text of its operator, in the ieee interpretation.

    Control flow is the session's, so it is asked about the nodes in bodies. Holds no state.
    """

    name: str = "MachineExecutionProvider"

    def get_kernel_registry(self) -> Texts:
        """The texts."""
        return Texts()

    def get_capability(
        self, graph: provider.GraphViewer, kernel_lookup: provider.KernelRegistry | None
    ) -> Sequence[provider.ComputeCapability]:
        """Each node whose operator has a text, alone."""
        return [
            provider.ComputeCapability(provider.IndexedSubGraph((n,)), "the operator's text")
            for n in graph.nodes
            if text_kernel(graph.node(n)) is not None
        ]

    def compile(self, fused: Sequence[provider.FusedNodeAndGraph]) -> Sequence[provider.NodeComputeInfo]:
        """It fuses nothing."""
        if fused:
            raise InternalError("the machine runs nodes one by one")
        return ()

    def create_allocator(self, info: provider.MemoryInfo) -> Allocate | None:
        """The session's own memory: what a text computes is new at each application."""
        return None

    def on_run_start(self, options: provider.RunOptions) -> None:
        """Nothing to prepare."""

    def on_run_end(self, options: provider.RunOptions) -> None:
        """Nothing to tidy up."""
