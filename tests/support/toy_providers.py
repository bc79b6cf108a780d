"""A provider that offers what a test says, and models of a few layers for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from machine_models import graph, node, proto, stored, value
from sonnx.semantics.runtimes.fastpath.provider import (
    ComputeCapability,
    FusedNodeAndGraph,
    GraphViewer,
    IndexedSubGraph,
    MetaDef,
    NodeComputeInfo,
)
from sonnx.semantics.runtimes.fastpath.registry import TableRegistry

MAIN = "NumpyExecutionProvider"


@dataclass
class Toy:
    """A provider that offers what `offers` says of a graph. fused: how it computes what it fuses."""

    offers: Callable[[GraphViewer], Sequence[ComputeCapability]]
    fused: Callable[..., Any] = lambda *inputs: inputs
    name: str = "ToyExecutionProvider"
    kernels: TableRegistry | None = None
    memory: Any = None
    compiled: list[FusedNodeAndGraph] = field(default_factory=list)

    def get_kernel_registry(self) -> TableRegistry | None:
        return self.kernels

    def get_capability(self, graph: GraphViewer, kernel_lookup: object) -> Sequence[ComputeCapability]:
        assert kernel_lookup is self.kernels
        return self.offers(graph)

    def compile(self, fused: Sequence[FusedNodeAndGraph]) -> Sequence[NodeComputeInfo]:
        self.compiled += fused
        return [NodeComputeInfo(lambda inputs, _allocate: self.fused(*inputs)) for _ in fused]

    def create_allocator(self, info: object) -> Any:
        return self.memory

    def on_run_start(self, options: object) -> None: ...

    def on_run_end(self, options: object) -> None: ...


def together(viewer: GraphViewer, *nodes: int, outputs: Sequence[int] | None = None) -> ComputeCapability:
    """An offer to fuse nodes, with the inputs that they need and all their outputs."""
    written = [t for n in nodes for t in viewer.node(n).outputs if t is not None]
    read = [t for n in nodes for t in viewer.node(n).inputs if t is not None and t not in written]
    meta = MetaDef("Fused", tuple(dict.fromkeys(read)), tuple(written if outputs is None else outputs))
    return ComputeCapability(IndexedSubGraph(tuple(nodes), meta))


def pairs(viewer: GraphViewer) -> list[ComputeCapability]:
    """Each MatMul whose one reader is a Relu, with it."""
    found = []
    for n in viewer.nodes:
        out = viewer.node(n).outputs[0]
        readers = () if out is None else viewer.consumers(out)
        if viewer.node(n).op_type == "MatMul" and [viewer.node(it).op_type for it in readers] == ["Relu"]:
            found.append(together(viewer, n, *readers, outputs=[t for t in viewer.node(readers[0]).outputs if t]))
    return found


def net(*nodes: Any, inputs: Any = ("x",), outputs: Any = ("y",), weights: Any = ()) -> Any:
    return proto(graph(nodes, [value(x, shape=None) for x in inputs], [value(y, shape=None) for y in outputs], weights))


def layers() -> Any:
    return net(
        node("MatMul", ["x", "w"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("MatMul", ["b", "w"], ["c"]),
        node("Neg", ["c"], ["d"]),
        node("Relu", ["d"], ["y"]),
        weights=[stored("w", [[1, 2], [3, -4]])],
    )
