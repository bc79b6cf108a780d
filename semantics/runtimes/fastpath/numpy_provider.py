"""The default provider: runs every operator that the specification defines, by a kernel in NumPy or by its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .fusion import chains, compiled
from .kernel import Allocate
from .provider import (
    ComputeCapability,
    FusedNodeAndGraph,
    GraphViewer,
    IndexedSubGraph,
    KernelRegistry,
    MemoryInfo,
    NodeComputeInfo,
    RunOptions,
)
from .registry import numpy_kernels


@dataclass(frozen=True, slots=True)
class NumpyExecutionProvider:
    """Runs nodes by kernels of their own, or fused. Holds no state, so one object serves any number of sessions."""

    registry: KernelRegistry = field(default_factory=numpy_kernels)
    name: str = "NumpyExecutionProvider"

    def get_kernel_registry(self) -> KernelRegistry:
        """The kernels of the families."""
        return self.registry

    def get_capability(self, graph: GraphViewer, kernel_lookup: KernelRegistry | None) -> Sequence[ComputeCapability]:
        """The chains that are fused, then each node that has a kernel, alone."""
        if kernel_lookup is None:
            return ()
        alone = (
            ComputeCapability(IndexedSubGraph((n,)))
            for n in graph.nodes
            if kernel_lookup.look_up_kernel(graph.node(n)) is not None
        )
        return (*chains(graph, kernel_lookup), *alone)

    def compile(self, fused: Sequence[FusedNodeAndGraph]) -> Sequence[NodeComputeInfo]:
        """The functions that run the chains."""
        return [compiled(it, self.registry) for it in fused]

    def create_allocator(self, info: MemoryInfo) -> Allocate | None:
        """The session's own memory."""
        return None

    def on_run_start(self, options: RunOptions) -> None:
        """Nothing to prepare."""

    def on_run_end(self, options: RunOptions) -> None:
        """Nothing to tidy up."""
