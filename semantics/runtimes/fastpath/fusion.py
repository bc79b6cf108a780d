"""Chains that the NumPy provider fuses: a convolution with the elementwise operators behind it, or these alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from ...model import schemas
from ...model.graph import NodeId, TensorId
from ...model.schemas import Schema, normal_domain
from ...model.values import Value
from . import provider
from .correlation import Finish
from .execution import TOLD, failure
from .functions import DOUBLE, SINGLE, DType, rectifying, scalar
from .kernel import Allocate, Array, Compute, Inputs, Kernel, KernelError, Site
from .kernels.convolution import Convolve, convolution
from .partition import kernel_name
from .reading import number
from .registry import numpy_kernels
from .repeating import Call, Phase, Ready, Repeatable
from .sites import check_types, prepared, site_of
from .windows import Sizes
from .workers import THREADS, byte_lead, byte_parts, cuts

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
    """A function of two operands; None for Relu of the data."""

    function: np.ufunc | None
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
        elif known.ndim > len(shape) or (known.size != 1 and (_beside(known, len(shape)),) != shape[1:2]):
            return False
    return all(given[t].shape == shape and given[t].dtype == dtype for t in link.read)


def _beside(known: Array, rank: int) -> int:
    """The number of channels of an operand where it is one element for each, else -1; one axis is none of channels."""
    shape = (1,) * (rank - known.ndim) + known.shape
    return shape[1] if rank > 1 and all(n == 1 for k, n in enumerate(shape) if k != 1) else -1


def operations(links: Sequence[Link]) -> tuple[Operation, ...]:
    """The function that the links compute, one function after the other."""
    made: list[Operation] = []
    for link in links:
        if link.op_type == "Relu":
            made.append(Operation(None, None, None))
        elif link.op_type == "BatchNormalization":
            operands = (_column(it) for it in link.operands[1:])
            functions = (np.subtract, np.divide, np.multiply, np.add)
            made += [Operation(function, None, it) for function, it in zip(functions, operands, strict=True)]
        else:
            first, second = (_column(it) for it in link.operands)
            made.append(Operation(FUNCTIONS[link.op_type], first, second))
    return tuple(made)


def _column(operand: Operand) -> Operand:
    """A known operand as it stands beside channels and positions."""
    if isinstance(operand, np.ndarray):
        return operand.reshape(()) if operand.size == 1 else operand.reshape(-1, 1)
    return operand


def applying(
    steps: Sequence[Operation], given: Mapping[TensorId, Array], at: tuple[int, slice, slice], data: Array, goal: Array
) -> list[Call]:
    """Compute the second block from the first; they may be the same memory.

    steps: for the channels of the block. given: the tensors that are there, with the axes images, channels, positions.
    at: where the block lies in them.
    """
    calls: list[Call] = []
    for function, *operands in steps:
        if function is None:
            calls += rectifying(data, goal)
        else:
            both = (data if it is None else given[it][at] if isinstance(it, int) else it for it in operands)
            calls.append(partial(function, *both, out=goal))
        data = goal
    return calls


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

    known: dict[Key, Fitted | None] = {}

    def ready(inputs: Inputs, allocate: Allocate) -> Ready:
        key = tuple([(it.shape, it.dtype) if isinstance(it, np.ndarray) else None for it in inputs])
        how = known[key] if key in known else fitted(chain, meta.inputs, inputs)
        if len(known) < _REMEMBERED:
            known[key] = how
        if how is None:
            result = _one_by_one(chain, dict(zip(meta.inputs, inputs, strict=True)), allocate)
            return Ready((result,), (), False)
        return _together(how, inputs, allocate)

    # Where a link reads a tensor beside, the result must not lie in its memory: what comes before would overwrite it.
    in_place = chain.convolve is None and not any(link.read for link in chain.links)
    return provider.NodeComputeInfo(Repeatable(ready), in_place)


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
        except TOLD:
            raise
        except Exception as error:
            raise failure(single.where, error) from error
    return given[chain.singles[-1].writes]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A chain for inputs of some shapes and types.

    first: by position a known value, the number of an input, or None; the data are an input. steps: what follows, with
    a known bias of the convolution. beside: the tensors that links read, with the numbers of the inputs. cuts: the
    steps for the channels that were met.
    """

    convolve: Convolve | None
    first: tuple[Array | int | None, ...]
    steps: tuple[Operation, ...]
    beside: tuple[tuple[TensorId, int], ...]
    cuts: dict[tuple[int, int], tuple[Operation, ...]]

    def steps_for(self, channels: slice) -> tuple[Operation, ...]:
        """The steps for some channels."""
        key = channels.start, channels.stop
        if key not in self.cuts:
            self.cuts[key] = tuple(
                Operation(it.function, _cut(it.left, channels), _cut(it.right, channels)) for it in self.steps
            )
        return self.cuts[key]


def _cut(operand: Operand, channels: slice) -> Operand:
    return operand[channels] if isinstance(operand, np.ndarray) and operand.ndim else operand


def fitted(chain: Chain, names: Sequence[TensorId], inputs: Inputs) -> Fitted | None:
    """The chain for inputs like these, None where they do not fit."""
    numbers = {t: position for position, t in enumerate(names)}
    arrays = {t: value for t, value in zip(names, inputs, strict=True) if isinstance(value, np.ndarray)}
    first = [
        constant if isinstance(constant, np.ndarray) else None if t is None else numbers[t]
        for t, constant in zip(chain.first, chain.known, strict=True)
    ]
    x, *others = [inputs[it] if isinstance(it, int) else it for it in first if it is not None]
    if not isinstance(x, np.ndarray) or x.dtype not in (SINGLE, DOUBLE) or x.ndim < 3 or 0 in x.shape:
        return None
    beside = [it for it in others if isinstance(it, np.ndarray) and it.dtype == x.dtype]
    if len(arrays) < len(names) or len(beside) < len(others):
        return None
    shape, steps = x.shape, chain.steps
    if chain.convolve is not None:
        try:
            shape = chain.convolve.shape(x.shape, beside[0].shape, beside[1].shape if len(beside) > 1 else None)
        except KernelError:
            return None
        if len(first) > 2 and isinstance(bias := first[2], np.ndarray):
            first, steps = first[:2], (Operation(np.add, None, _column(bias)), *steps)
    if not all(fits(link, shape, x.dtype, arrays) for link in chain.links):
        return None
    return Fitted(chain.convolve, tuple(first), steps, tuple((t, numbers[t]) for t in chain.beside), {})


def _together(how: Fitted, inputs: Inputs, allocate: Allocate) -> Ready:
    """The nodes of a chain block by block."""
    x, *others = [_array(inputs[it]) if isinstance(it, int) else it for it in how.first if it is not None]
    alike = all(it.flags.c_contiguous for it in inputs if isinstance(it, np.ndarray))
    if how.convolve is not None:
        b = others[1] if len(others) > 1 else None
        made = how.convolve.ready(x, others[0], b, allocate, lambda out: _finishing(how, out, out, inputs))
        return made._replace(again=made.again and alike)
    out = allocate(x.shape, x.dtype)
    finish = _finishing(how, x, out, inputs)
    parts = byte_parts(x[0].nbytes, BLOCK_BYTES, len(how.steps))
    lead = byte_lead(x.nbytes, len(how.steps)) if x.shape[0] * parts == THREADS else 0
    pieces = cuts(x.shape[1], min(parts, x.shape[1]), lead)
    everything = slice(0, math.prod(x.shape[2:]))

    def calls(number: int, _worker: int) -> list[Call]:
        return finish(number // len(pieces), pieces[number % len(pieces)], everything)

    return Ready((out,), [Phase(x.shape[0] * len(pieces), calls)], alike)


def _array(value: Value | None) -> Array:
    if isinstance(value, np.ndarray):
        return value
    raise KernelError("an input of a chain is no tensor")


def _finishing(how: Fitted, x: Array, out: Array, inputs: Inputs) -> Finish:
    """Applies the steps to a part of the data; x may be out."""
    flat = (*out.shape[:2], math.prod(out.shape[2:]))
    target = out.reshape(flat)
    source = target if x is out else x.reshape(flat)
    given = {t: _array(inputs[position]).reshape(flat) for t, position in how.beside}

    def finish(image: int, channels: slice, places: slice) -> list[Call]:
        calls: list[Call] = []
        for piece in blocks(channels, (places.stop - places.start) * out.itemsize, BLOCK_BYTES):
            at = (image, piece, places)
            goal = target[at]
            calls += applying(how.steps_for(piece), given, at, goal if source is target else source[at], goal)
        return calls

    return finish
