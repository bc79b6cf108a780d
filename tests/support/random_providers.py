"""Providers that take node sets at random, of graphs of whatever kind, and run them by the kernels in NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from sonnx.semantics.model.graph import NodeId, TensorId
from sonnx.semantics.model.values import Value
from sonnx.semantics.runtimes.fastpath.kernel import Allocate, Compute, Inputs, KernelError, Outputs
from sonnx.semantics.runtimes.fastpath.partition import ends_of
from sonnx.semantics.runtimes.fastpath.provider import (
    ComputeCapability,
    Declined,
    FusedNodeAndGraph,
    GraphViewer,
    IndexedSubGraph,
    KernelRegistry,
    MemoryInfo,
    NodeComputeInfo,
    RunOptions,
)
from sonnx.semantics.runtimes.fastpath.registry import numpy_kernels
from sonnx.semantics.runtimes.fastpath.sites import by_element, site_of


@dataclass
class RandomExecutionProvider:
    """Offers single nodes, walks along edges, sets without any order, and nodes to grow; declines some parts."""

    seed: int
    name: str
    parts: int = 0
    declined: int = 0

    def get_kernel_registry(self) -> KernelRegistry:
        return numpy_kernels()

    def get_capability(self, graph: GraphViewer, kernel_lookup: KernelRegistry | None) -> Sequence[ComputeCapability]:
        choose = Random(self.seed * 1_000 + graph.graph)
        supported = [n for n in graph.nodes if numpy_kernels().look_up_kernel(graph.node(n)) is not None]
        return list(_offers(choose, graph, supported)) if supported else ()

    def compile(self, fused: Sequence[FusedNodeAndGraph]) -> Sequence[NodeComputeInfo | Declined]:
        made = [self._compiled(it) for it in fused]
        self.parts += sum(isinstance(it, NodeComputeInfo) for it in made)
        self.declined += sum(isinstance(it, Declined) for it in made)
        return made

    def _compiled(self, whole: FusedNodeAndGraph) -> NodeComputeInfo | Declined:
        if (self.seed + whole.filtered_graph.nodes[0]) % 5 == 0:
            return Declined("by chance")
        return NodeComputeInfo(compiled(whole))

    def create_allocator(self, info: MemoryInfo) -> Allocate | None:
        return np.empty if self.seed % 2 else None

    def on_run_start(self, options: RunOptions) -> None: ...

    def on_run_end(self, options: RunOptions) -> None: ...


def _offers(choose: Random, graph: GraphViewer, supported: Sequence[NodeId]) -> Iterator[ComputeCapability]:
    for _ in range(choose.randint(0, 3)):
        kind = choose.choice(("one", "walk", "any", "grow"))
        if kind == "one":
            yield ComputeCapability(IndexedSubGraph((choose.choice(supported),)))
        elif kind == "grow":
            some = tuple(n for n in supported if choose.random() < 0.6)
            yield ComputeCapability(IndexedSubGraph(some), grows=True)
        else:
            if kind == "any":
                nodes = choose.sample(supported, min(len(supported), choose.randint(1, 4)))
            else:
                nodes = [choose.choice(supported)]
                for _ in range(choose.randint(1, 5)):
                    near = [it for t in graph.program.writes[nodes[-1]] for it in graph.consumers(t) if it in supported]
                    nodes += [it for it in near if it not in nodes][:1]
            yield ComputeCapability(IndexedSubGraph(tuple(nodes), ends_of(graph, nodes, f"Any_{nodes[0]}")))


def compiled(whole: FusedNodeAndGraph) -> Compute:
    """The nodes of a part, one after the other."""
    meta, viewer = whole.meta_def, whole.filtered_graph
    steps = [(n, viewer.node(n), _compute(viewer, n)) for n in viewer.nodes]
    known = {t: value for n in viewer.nodes for t in viewer.node(n).inputs if (value := viewer.constant(t)) is not None}

    def run(inputs: Inputs, _allocate: Allocate) -> Outputs:
        values: dict[TensorId | None, Value | None] = {**known, **dict(zip(meta.inputs, inputs, strict=True))}
        for n, node, compute in steps:
            try:
                results = compute([values.get(t) for t in node.inputs], np.empty)
            except KernelError as error:
                raise KernelError(f"{n}: {error}") from None
            values |= zip(node.outputs, results, strict=False)
        return tuple(values[t] for t in meta.outputs)

    return run


def _compute(viewer: GraphViewer, n: NodeId) -> Compute:
    node, site = viewer.node(n), site_of(viewer.program, n, viewer.constants)
    return by_element(numpy_kernels(), node, site, lambda reason: KernelError(f"no kernel on {reason}"))
