"""The default provider: runs every operator that the specification defines, by a kernel in NumPy or by its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from . import provider
from .fusion import chains, compiled
from .kernel import Allocate
from .own_kernels import installed_kernels


@dataclass(frozen=True, slots=True)
class NumpyExecutionProvider:
    """Runs nodes by kernels of their own, or fused. Holds no state, so one object serves any number of sessions."""

    registry: provider.KernelRegistry = field(default_factory=installed_kernels)
    name: str = "NumpyExecutionProvider"

    def get_kernel_registry(self) -> provider.KernelRegistry:
        """The kernels of the families."""
        return self.registry

    def get_capability(
        self, graph: provider.GraphViewer, kernel_lookup: provider.KernelRegistry | None
    ) -> Sequence[provider.ComputeCapability]:
        """The chains that are fused, then each node that has a kernel, alone."""
        if kernel_lookup is None:
            return ()
        alone = (
            provider.ComputeCapability(provider.IndexedSubGraph((n,)))
            for n in graph.nodes
            if kernel_lookup.look_up_kernel(graph.node(n)) is not None
        )
        return (*chains(graph, kernel_lookup), *alone)

    def compile(self, fused: Sequence[provider.FusedNodeAndGraph]) -> Sequence[provider.NodeComputeInfo]:
        """The functions that run the chains."""
        return [compiled(it, self.registry) for it in fused]

    def create_allocator(self, info: provider.MemoryInfo) -> Allocate | None:
        """The session's own memory."""
        return None

    def on_run_start(self, options: provider.RunOptions) -> None:
        """Nothing to prepare."""

    def on_run_end(self, options: provider.RunOptions) -> None:
        """Nothing to tidy up."""
