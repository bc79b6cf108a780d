"""Chains that the NumPy provider fuses: a convolution with the elementwise operators behind it, or these alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ...model import schemas
from ...model.graph import NodeId, TensorId
from ...model.schemas import Schema, normal_domain
from ...model.values import Value
from . import provider
from .correlation import Finish
from .execution import failure
from .functions import DOUBLE, SINGLE, DType, at_least, scalar
from .kernel import Allocate, Array, Compute, Inputs, Kernel, KernelError, Outputs, Site
from .kernels.convolution import Convolve, convolution
from .partition import kernel_name
from .reading import number
from .registry import numpy_kernels
from .sites import check_types, prepared, site_of
from .windows import Sizes
from .workers import alone, byte_parts, cuts, shared

_ZEROS: Final = {kind: np.zeros((), kind) for kind in (SINGLE, DOUBLE)}
Operand = TensorId | Array | None
"""A tensor that is there when a chain runs, a known value, or the data that flow along the chain."""


FUNCTIONS: Final[Mapping[str, np.ufunc]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Sum": np.add,
}
"""Operators on two operands, with the function that they are for floats."""


@dataclass(frozen=True, slots=True)
class Link:
    """One operator of a chain. operands: by position a tensor that is there when it runs, or a known value; None for
    the data that flow along the chain. Those of BatchNormalization are the data, mean, root, scale and bias.
    """

    op_type: str
    operands: tuple[Operand, ...]

    @property
    def known(self) -> tuple[Array, ...]:
        """The operands that are known."""
        return tuple(it for it in self.operands if isinstance(it, np.ndarray))

    @property
    def read(self) -> tuple[TensorId, ...]:
        """The operands that are there when it runs."""
        return tuple(it for it in self.operands if isinstance(it, int))


class Operation(NamedTuple):
    """A function of two operands that writes its third argument."""

    function: Callable[[Array, Array, Array], object]
    left: Operand
    right: Operand


def normalization(site: Site) -> Link:
    """BatchNormalization in inference mode with known parameters of one type."""
    scale, bias, mean, variance = (it for it in site.constants[1:5] if isinstance(it, np.ndarray))
    with np.errstate(all="ignore"):
        root = np.asarray(np.sqrt(variance + scalar(number(site, "epsilon", 1e-5), variance.dtype)))
    return Link(site.op_type, (None, mean, root, scale, bias))


def fits(link: Link, shape: Sizes, dtype: DType, given: Mapping[TensorId, Array]) -> bool:
    """True where the link leaves data of this shape and type as large as they are, channel by channel."""
    for known in link.known:
        if known.dtype != dtype:
            return False
        if link.op_type == "BatchNormalization":
            if known.shape != shape[1:2]:
                return False
        elif known.ndim > len(shape) or (known.size != 1 and _beside(known, len(shape)) != shape[1]):
            return False
    return all(given[t].shape == shape and given[t].dtype == dtype for t in link.read)


def _beside(known: Array, rank: int) -> int:
    """The number of channels of an operand where it is one element for each, else -1."""
    shape = (1,) * (rank - known.ndim) + known.shape
    return shape[1] if all(n == 1 for k, n in enumerate(shape) if k != 1) else -1


def operations(links: Sequence[Link]) -> tuple[Operation, ...]:
    """The function that the links compute, one function after the other."""
    made: list[Operation] = []
    for link in links:
        if link.op_type == "Relu":
            made.append(Operation(_rectify, None, None))
        elif link.op_type == "BatchNormalization":
            operands = (_column(it) for it in link.operands[1:])
            functions = (np.subtract, np.divide, np.multiply, np.add)
            made += [Operation(function, None, it) for function, it in zip(functions, operands, strict=True)]
        else:
            first, second = (_column(it) for it in link.operands)
            made.append(Operation(FUNCTIONS[link.op_type], first, second))
    return tuple(made)


def _rectify(source: Array, _same: Array, out: Array) -> None:
    at_least(source, _ZEROS[source.dtype], out)


def _column(operand: Operand) -> Operand:
    """A known operand as it stands beside channels and positions."""
    if isinstance(operand, np.ndarray):
        return operand.reshape(()) if operand.size == 1 else operand.reshape(-1, 1)
    return operand


def apply(
    steps: Sequence[Operation], given: Mapping[TensorId, Array], at: tuple[int, slice, slice], data: Array, goal: Array
) -> None:
    """Computes the second block from the first; they may be the same memory.

    given: the tensors that are there, with the axes images, channels, positions. at: where the block lies in them.
    """
    for function, left, right in steps:
        function(
            data if left is None else _part(left, given, at), data if right is None else _part(right, given, at), goal
        )
        data = goal


def _part(operand: TensorId | Array, given: Mapping[TensorId, Array], at: tuple[int, slice, slice]) -> Array:
    if isinstance(operand, int):
        return given[operand][at]
    return operand[at[1]] if operand.ndim else operand


def blocks(channels: slice, row_bytes: int, limit: int) -> Sequence[slice]:
    """The channels as slices whose rows take about so many bytes."""
    step = max(1, limit // max(1, row_bytes))
    return [slice(first, min(first + step, channels.stop)) for first in range(channels.start, channels.stop, step)]


# ---- Chains ---------------------------------------------------------------------------------------

BLOCK_BYTES: Final = 1 << 20
"""About how many bytes all operators of a chain are applied to before the next ones."""
_REMEMBERED: Final = 32
Key = tuple[tuple[tuple[int, ...], DType] | None, ...]
"""The shapes and types of the inputs; None for one that is no tensor."""
ELEMENTWISE: Final = frozenset({"Relu", *FUNCTIONS})


# ---- Finding chains ---------------------------------------------------------------------------


def chains(graph: provider.GraphViewer, registry: provider.KernelRegistry) -> Iterator[provider.ComputeCapability]:
    """The chains of at least two nodes, in the order of their first nodes."""
    free = set(graph.nodes)
    for n in graph.nodes:
        if n not in free or not _begins(graph, registry, n):
            continue
        chain = [n]
        while (after := _next(graph, registry, chain[-1])) is not None and after in free:
            chain.append(after)
        if len(chain) > 1:
            free.difference_update(chain)
            yield provider.ComputeCapability(provider.IndexedSubGraph(tuple(chain), _meta(graph, chain)))


def _begins(graph: provider.GraphViewer, registry: provider.KernelRegistry, n: NodeId) -> bool:
    node = graph.node(n)
    if node.op_type == "Conv" and not normal_domain(node.domain):
        return _kernel(graph, registry, n) is not None and len(node.outputs) == 1
    flows = [t for t in node.inputs if t is not None and graph.constant(t) is None]
    return bool(flows) and is_link(graph, registry, n, flows[0])


def _next(graph: provider.GraphViewer, registry: provider.KernelRegistry, n: NodeId) -> NodeId | None:
    """The one node that reads what a node writes, where it can go on with it."""
    t = graph.node(n).outputs[0]
    if t is None or graph.is_output(t):
        return None
    readers = graph.consumers(t)
    if len(readers) != 1 or graph.node(readers[0]).graph != graph.graph:
        return None
    return readers[0] if is_link(graph, registry, readers[0], t) else None


def is_link(graph: provider.GraphViewer, registry: provider.KernelRegistry, n: NodeId, flow: TensorId) -> bool:
    """True where a node is an elementwise operator on a tensor and on others that may be beside it."""
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


def _is_inference(graph: provider.GraphViewer, n: NodeId) -> bool:
    node, stated = graph.node(n), graph.attributes(n)
    known = [graph.constant(t) for t in node.inputs[1:]]
    alike = all(isinstance(it, np.ndarray) and it.ndim == 1 for it in known) and len(known) == 4
    types = {it.dtype for it in known if isinstance(it, np.ndarray)}
    plain = stated.get("training_mode", 0) == 0 and stated.get("spatial", 1) == 1
    return alike and types <= {SINGLE, DOUBLE} and len(types) == 1 and plain and not any(node.outputs[1:])


def _kernel(graph: provider.GraphViewer, registry: provider.KernelRegistry, n: NodeId) -> Kernel | None:
    """The kernel of a node where it is the one that chains are made of: a registry may have others."""
    kernel = None if normal_domain(graph.node(n).domain) else registry.look_up_kernel(graph.node(n))
    return kernel if kernel is numpy_kernels().look_up_kernel(graph.node(n)) else None


def _meta(graph: provider.GraphViewer, nodes: Sequence[NodeId]) -> provider.MetaDef:
    written = {t for n in nodes for t in graph.node(n).outputs}
    read = (t for n in nodes for t in graph.node(n).inputs if t is not None and t not in written)
    inputs = tuple(dict.fromkeys(t for t in read if graph.constant(t) is None))
    (last,) = (t for t in graph.node(nodes[-1]).outputs[:1] if t is not None)
    return provider.MetaDef(" ".join(kernel_name(graph.program, n) for n in nodes), inputs, (last,))


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
    """Runs a chain. convolve: its convolution, None where it has none; first: the tensors that this reads, or the
    data that flow into the first link. beside: the tensors that the links read."""

    convolve: Convolve | None
    first: tuple[TensorId | None, ...]
    known: tuple[Value | None, ...]
    links: tuple[Link, ...]
    steps: tuple[Operation, ...]
    beside: tuple[TensorId, ...]
    singles: tuple[Single, ...]


def compiled(fused: provider.FusedNodeAndGraph, registry: provider.KernelRegistry) -> provider.NodeComputeInfo:
    """Computes the chain."""
    graph, meta = fused.filtered_graph, fused.meta_def
    chain = chain_of(graph, registry)

    fitting: dict[Key, bool] = {}

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        given = dict(zip(meta.inputs, inputs, strict=True))
        key = tuple([(it.shape, it.dtype) if isinstance(it, np.ndarray) else None for it in inputs])
        known = fitting.get(key)
        result = None if known is False else _together(chain, given, allocate, known is not None)
        if known is None and len(fitting) < _REMEMBERED:
            fitting[key] = result is not None
        return (_one_by_one(chain, given, allocate) if result is None else result,)

    # Where a link reads a tensor beside, the result must not lie in its memory: what comes before would overwrite it.
    return provider.NodeComputeInfo(compute, chain.convolve is None and not any(link.read for link in chain.links))


def chain_of(graph: provider.GraphViewer, registry: provider.KernelRegistry) -> Chain:
    """The chain that the nodes of a graph are, in their order."""
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
        schema = schemas.schema_at(node)
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
