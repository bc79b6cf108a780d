"""Chains that the NumPy provider fuses: a convolution with the elementwise operators behind it, or these alone.

The operators are applied to each block of the result while it is near the processor: the same operations on the same
elements as one after the other, so the same bits. Where values turn out not to fit (types, shapes that broadcast
otherwise), the nodes run one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...model import schemas
from ...model.graph import NodeId, TensorId
from ...model.schemas import Schema, normal_domain
from ...model.values import Value
from .correlation.sizes import Finish
from .execution import failure
from .kernel import Allocate, Array, Compute, Kernel, KernelError
from .kernels.convolution import Run, convolution
from .links import FUNCTIONS, Link, Operation, apply, blocks, fits, normalization, operations
from .partition import kernel_name
from .provider import (
    ComputeCapability,
    FusedNodeAndGraph,
    GraphViewer,
    IndexedSubGraph,
    KernelRegistry,
    MetaDef,
    NodeComputeInfo,
)
from .registry import numpy_kernels
from .rounding import DOUBLE, SINGLE, DType
from .sites import check_types, prepared, site_of
from .workers import alone, byte_parts, cuts, shared

BLOCK_BYTES: Final = 1 << 20
"""About how many bytes all operators of a chain are applied to before the next ones."""
_REMEMBERED: Final = 32
Key = tuple[tuple[tuple[int, ...], DType] | None, ...]
"""The shapes and types of the inputs; None for one that is no tensor."""
ELEMENTWISE: Final = frozenset({"Relu", *FUNCTIONS})


# ---- Finding chains ---------------------------------------------------------------------------


def chains(graph: GraphViewer, registry: KernelRegistry) -> Iterator[ComputeCapability]:
    """The chains of at least two nodes, in the order of their first nodes."""
    free = set(graph.nodes)
    for n in graph.nodes:
        if n not in free or not _begins(graph, registry, n):
            continue
        found = [n]
        while (after := _next(graph, registry, found[-1])) is not None and after in free:
            found.append(after)
        if len(found) > 1:
            free.difference_update(found)
            yield ComputeCapability(IndexedSubGraph(tuple(found), _meta(graph, found)))


def _begins(graph: GraphViewer, registry: KernelRegistry, n: NodeId) -> bool:
    node = graph.node(n)
    if node.op_type == "Conv" and not normal_domain(node.domain):
        return _kernel(graph, registry, n) is not None and len(node.outputs) == 1
    flows = [t for t in node.inputs if t is not None and graph.constant(t) is None]
    return bool(flows) and _is_link(graph, registry, n, flows[0])


def _next(graph: GraphViewer, registry: KernelRegistry, n: NodeId) -> NodeId | None:
    """The one node that reads what a node writes, where it can go on with it."""
    t = graph.node(n).outputs[0]
    if t is None or graph.is_output(t):
        return None
    readers = graph.consumers(t)
    if len(readers) != 1 or graph.node(readers[0]).graph != graph.graph:
        return None
    return readers[0] if _is_link(graph, registry, readers[0], t) else None


def _is_link(graph: GraphViewer, registry: KernelRegistry, n: NodeId, flow: TensorId) -> bool:
    """Whether a node is an elementwise operator on a tensor and on others that may be beside it."""
    node = graph.node(n)
    kernel = _kernel(graph, registry, n)
    if kernel is None or kernel.types is not None or node.inputs.count(flow) != 1 or not any(node.outputs[:1]):
        return False
    if node.op_type == "BatchNormalization":
        return node.inputs[0] == flow and _is_inference(graph, n)
    if node.op_type not in ELEMENTWISE or len(node.outputs) != 1 or len(node.inputs) != 1 + (node.op_type != "Relu"):
        return False
    known = (graph.constant(t) for t in node.inputs if t != flow)
    return None not in node.inputs and all(
        it is None or (isinstance(it, np.ndarray) and it.size == max(it.shape, default=1) > 0) for it in known
    )


def _is_inference(graph: GraphViewer, n: NodeId) -> bool:
    node, stated = graph.node(n), graph.attributes(n)
    known = [graph.constant(t) for t in node.inputs[1:]]
    alike = all(isinstance(it, np.ndarray) and it.ndim == 1 for it in known) and len(known) == 4
    types = {it.dtype for it in known if isinstance(it, np.ndarray)}
    plain = stated.get("training_mode", 0) == 0 and stated.get("spatial", 1) == 1
    return alike and types <= {SINGLE, DOUBLE} and len(types) == 1 and plain and not any(node.outputs[1:])


def _kernel(graph: GraphViewer, registry: KernelRegistry, n: NodeId) -> Kernel | None:
    """The kernel of a node where it is the one that chains are made of: a registry may have others."""
    found = None if normal_domain(graph.node(n).domain) else registry.look_up_kernel(graph.node(n))
    return found if found is numpy_kernels().look_up_kernel(graph.node(n)) else None


def _meta(graph: GraphViewer, nodes: Sequence[NodeId]) -> MetaDef:
    written = {t for n in nodes for t in graph.node(n).outputs}
    read = (t for n in nodes for t in graph.node(n).inputs if t is not None and t not in written)
    inputs = tuple(dict.fromkeys(t for t in read if graph.constant(t) is None))
    (last,) = (t for t in graph.node(nodes[-1]).outputs[:1] if t is not None)
    return MetaDef(" ".join(kernel_name(graph.program, n) for n in nodes), inputs, (last,))


# ---- Running them -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Single:
    """A node of a chain, to be run alone. reads: by position a tensor, or a known value."""

    compute: Compute
    reads: tuple[TensorId | Value | None, ...]
    constants: tuple[Value | None, ...]
    writes: TensorId
    schema: Schema | None
    where: str


@dataclass(frozen=True, slots=True)
class Chain:
    """What runs a chain. convolve: its convolution, None where it has none; first: the tensors that this reads, or the
    data that flow into the first link. beside: the tensors that the links read."""

    convolve: Run | None
    first: tuple[TensorId | None, ...]
    known: tuple[Value | None, ...]
    links: tuple[Link, ...]
    steps: tuple[Operation, ...]
    beside: tuple[TensorId, ...]
    singles: tuple[Single, ...]


def compiled(fused: FusedNodeAndGraph, registry: KernelRegistry) -> NodeComputeInfo:
    """What computes the chain."""
    graph, meta = fused.filtered_graph, fused.meta_def
    chain = _chain(graph, registry)

    fitting: dict[Key, bool] = {}

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> tuple[Value | None, ...]:
        given = dict(zip(meta.inputs, inputs, strict=True))
        key = tuple([(it.shape, it.dtype) if isinstance(it, np.ndarray) else None for it in inputs])
        known = fitting.get(key)
        found = None if known is False else _together(chain, given, allocate, known is not None)
        if known is None and len(fitting) < _REMEMBERED:
            fitting[key] = found is not None
        return (_one_by_one(chain, given, allocate) if found is None else found,)

    # Where a link reads a tensor beside, the result must not lie in its memory: what comes before would overwrite it.
    return NodeComputeInfo(compute, chain.convolve is None and not any(link.read for link in chain.links))


def _chain(graph: GraphViewer, registry: KernelRegistry) -> Chain:
    singles, links = [], []
    convolve = None
    flow: TensorId | None = None
    first: tuple[TensorId | None, ...] = ()
    known: tuple[Value | None, ...] = ()
    for position, n in enumerate(graph.nodes):
        node = graph.node(n)
        kernel = _kernel(graph, registry, n)
        site = site_of(graph.program, n, graph.constants)
        if kernel is None:
            raise KernelError("a kernel that was there is gone")
        compute = prepared(kernel, site)
        (written,) = (t for t in node.outputs[:1] if t is not None)
        schema = schemas.schema(node.domain, node.op_type, node.version)
        where = f"{node.path} ({kernel_name(graph.program, n)})"
        singles.append(Single(compute, node.inputs, site.constants, written, schema, where))
        if position == 0 and node.op_type == "Conv":
            convolve, first, known = convolution(site), node.inputs, site.constants
        else:
            if flow is None:
                flow = next(t for t in node.inputs if t is not None and graph.constant(t) is None)
                first, known = (flow,), (None,)
            operands = (
                None if t == flow else t if v is None else v for t, v in zip(node.inputs, site.constants, strict=True)
            )
            beside = tuple(it if isinstance(it, (int, np.ndarray)) else None for it in operands)
            is_batch = node.op_type == "BatchNormalization"
            links.append(normalization(site) if is_batch else Link(node.op_type, beside))
        flow = written
    read = tuple(t for link in links for t in link.read)
    return Chain(convolve, first, known, tuple(links), operations(links), read, tuple(singles))


def _one_by_one(chain: Chain, given: dict[TensorId, Value | None], allocate: Allocate) -> Value | None:
    """The nodes in their order, as if they were not fused."""
    for single in chain.singles:
        last = single is chain.singles[-1]
        pairs = zip(single.reads, single.constants, strict=True)
        values = [given.get(t) if isinstance(t, int) and v is None else v for t, v in pairs]
        try:
            check_types(single.schema, values)
            given[single.writes] = single.compute(values, allocate if last else np.empty)[0]
        except Exception as error:
            raise failure(single.where, error) from error
    return given[chain.singles[-1].writes]


def _together(chain: Chain, given: Mapping[TensorId, Value | None], allocate: Allocate, known: bool) -> Array | None:
    """The result of a chain, None where values do not fit. known: that values of these shapes and types do."""
    arrays = {t: value for t, value in given.items() if isinstance(value, np.ndarray)}
    operands = [
        constant if constant is not None else None if t is None else arrays.get(t)
        for t, constant in zip(chain.first, chain.known, strict=True)
    ]
    x, *others = (it for it in operands if isinstance(it, np.ndarray))
    if not known and (x.dtype not in (SINGLE, DOUBLE) or x.ndim < 3 or 0 in x.shape or len(arrays) < len(given)):
        return None
    if not known and any(it.dtype != x.dtype for it in others):
        return None

    def whole(out: Array) -> dict[TensorId, Array]:
        """The other operands with one axis for all positions. Raises KernelError where one does not fit."""
        if not known and not all(fits(link, out.shape, out.dtype, arrays) for link in chain.links):
            raise KernelError("an operand does not fit")
        if not chain.beside:
            return {}
        flat = (*out.shape[:2], math.prod(out.shape[2:]))
        return {t: arrays[t].reshape(flat) for t in chain.beside}

    if chain.convolve is not None:
        try:
            w, b = others[0], others[1] if len(others) > 1 else None
            return chain.convolve(x, w, b, allocate, lambda out: _finishing(chain.steps, out, out, whole(out)))
        except KernelError:
            return None
    if not known and not all(fits(link, x.shape, x.dtype, arrays) for link in chain.links):
        return None
    out = allocate(x.shape, x.dtype)
    finish = _finishing(chain.steps, x, out, whole(out))
    pieces = cuts(x.shape[1], min(byte_parts(x[0].nbytes, BLOCK_BYTES), x.shape[1]))
    everything = slice(0, math.prod(x.shape[2:]))

    def work(number: int, _worker: int) -> None:
        finish(number // len(pieces), pieces[number % len(pieces)], everything)

    shared(x.shape[0] * len(pieces), work)
    return out


def _finishing(steps: Sequence[Operation], x: Array, out: Array, given: Mapping[TensorId, Array]) -> Finish:
    """Applies the steps to a part of the data; x may be out."""
    flat = (*out.shape[:2], math.prod(out.shape[2:]))
    source, target = x.reshape(flat), out.reshape(flat)

    def finish(image: int, channels: slice, places: slice) -> None:
        row = (places.stop - places.start) * out.itemsize
        size = (channels.stop - channels.start) * row
        if size <= BLOCK_BYTES:
            at = (image, channels, places)
            apply(steps, given, at, source[at], target[at])
            return
        pieces = blocks(channels, row, BLOCK_BYTES)

        def work(number: int, _worker: int) -> None:
            at = (image, pieces[number], places)
            apply(steps, given, at, source[at], target[at])

        (shared if byte_parts(size) > 1 else alone)(len(pieces), work)

    return finish
