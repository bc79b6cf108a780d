"""The provider that runs whole subgraphs of floats and bytes by native code, which Numba compiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Lock
from typing import Final, TypeGuard

import numpy as np

from ....errors import InternalError, ModelError
from ....machine.memory import type_of
from ....model import schemas
from ....model.graph import Node, NodeId, TensorId
from ....model.schemas import normal_domain
from ....model.stored import forget_pages
from ....model.values import Value
from .. import provider
from ..execution import TOLD, failure
from ..functions import SINGLE, DType
from ..fusion import Chain, chain_of, chains, is_link
from ..kernel import Allocate, Array, Compute, Inputs, Outputs, Site
from ..partition import kernel_name
from ..registry import numpy_kernels
from ..sites import check_types, prepared, site_of
from ..workers import THREADS, shared
from .crew import CREW
from .listing import Listed, Listing, address, finished
from .lowering import GATHERS, INT64, LOWER, MOVED, TYPES, UnfitError, convolved, elementwise, lower
from .quantized import QUANTIZED

_TABLE: Final = {**LOWER, **QUANTIZED}
_ADMITTED: Final = frozenset((*TYPES.values(), INT64))
_KEPT: Final = 8
"""Lists that are kept, for inputs of so many different shapes."""
Form = tuple[tuple[int, ...], DType]
"""The shape and type of a tensor."""
Key = tuple[Form | None, ...]


@dataclass(frozen=True, slots=True)
class NumbaExecutionProvider:
    """Takes nodes on floats and quantized tensors that there are operations for; what it does not take is for the
    providers behind it.

    Raises ModelError where Numba is not installed. Holds no state, so one object serves any number of sessions.
    """

    name: str = "NumbaExecutionProvider"

    def __post_init__(self) -> None:
        if find_spec("numba") is None:
            raise ModelError("the NumbaExecutionProvider needs numba: install sonnx[jit]")

    def get_kernel_registry(self) -> None:
        """It only compiles."""

    def get_capability(
        self, graph: provider.GraphViewer, kernel_lookup: provider.KernelRegistry | None
    ) -> Sequence[provider.ComputeCapability]:
        """The largest sets of nodes that can run together, in the order of their first nodes."""
        return [_offer(graph, nodes) for nodes in _together(graph, _supported(graph))]

    def compile(self, fused: Sequence[provider.FusedNodeAndGraph]) -> Sequence[provider.NodeComputeInfo]:
        """The functions that run the subgraphs."""
        return [provider.NodeComputeInfo(_computing(it)) for it in fused]

    def create_allocator(self, info: provider.MemoryInfo) -> Allocate | None:
        """The session's own memory."""
        return None

    def on_run_start(self, options: provider.RunOptions) -> None:
        """Nothing to prepare."""

    def on_run_end(self, options: provider.RunOptions) -> None:
        """Nothing to tidy up."""


# ---- What it takes ----------------------------------------------------------------------------


def _supported(graph: provider.GraphViewer) -> frozenset[NodeId]:
    """The nodes that operations are made for."""
    elements: dict[TensorId, str] = {}

    def element(t: TensorId | None) -> str:
        """The element type of a tensor, where it is known."""
        known = None if t is None else graph.constant(t)
        if known is not None:
            return type_of(known).element
        if t is not None and t not in elements:
            stated = graph.program.model.tensors[t].declared
            elements[t] = stated.element if stated is not None and stated.kind == "tensor" else ""
        return "" if t is None else elements[t]

    taken: set[NodeId] = set()
    for n in graph.nodes:
        node = graph.node(n)
        if not normal_domain(node.domain) and node.inputs:
            elements.update(_results(graph, n, element))
            if element(node.inputs[0]) in TYPES and _is_supported(graph, n, element):
                taken.add(n)
    return frozenset(taken)


def _results(graph: provider.GraphViewer, n: NodeId, element: Callable[[TensorId | None], str]) -> dict[TensorId, str]:
    """The element types of the outputs of a node, where the schema or an attribute says them."""
    node = graph.node(n)
    form = schemas.schema_at(node)
    if form is None:
        return {}
    pairs = ((formal, t) for k, t in enumerate(node.inputs) if (formal := schemas.formal_at(form.inputs, k)))
    bound = {formal.type: element(t) for formal, t in pairs if element(t)}
    stated = graph.attributes(n)
    named = stated.get("to", stated.get("output_dtype", 0)) or stated.get("dtype", 0)
    known = schemas.element_types().get(named, "") if isinstance(named, int) else ""
    if node.op_type == "QuantizeLinear" and not known and not any(node.inputs[2:]):
        known = "uint8"
    found: dict[TensorId, str] = {}
    for k, t in enumerate(node.outputs):
        formal = schemas.formal_at(form.outputs, k)
        if t is not None and formal is not None:
            settled = "" if len(formal.types) > 1 else formal.types[0].removeprefix("tensor(").removesuffix(")")
            found[t] = settled or known or bound.get(formal.type, "")
    return {t: it for t, it in found.items() if it}


def _is_supported(graph: provider.GraphViewer, n: NodeId, element: Callable[[TensorId | None], str]) -> bool:
    node = graph.node(n)
    others = (it for it in node.outputs if it is not None and it not in _written(node))
    if any(graph.consumers(it) or graph.is_output(it) for it in others):
        return False
    if numpy_kernels().look_up_kernel(node, element(node.inputs[0])) is None:
        return False
    flows = [t for t in node.inputs if t is not None and graph.constant(t) is None]
    if not flows:  # it is not defined on what it reads, or it would be known
        return False
    if node.op_type in QUANTIZED:
        return _is_quantized(graph, n, element)
    if node.op_type in GATHERS:
        return element(node.inputs[1]) in ("int32", "int64")
    if node.op_type in MOVED:
        return _is_lowered(graph, n) and len({element(t) for t in flows}) == 1
    is_float = all(element(t) == "float" for t in flows)
    if node.op_type == "Conv":
        known = [graph.constant(t) for t in node.inputs[1:]]
        return is_float and all(_is_single(it) and it.ndim in (1, 3, 4) for it in known)
    if node.op_type in LOWER:
        return is_float and _is_lowered(graph, n)
    return is_float and is_link(graph, numpy_kernels(), n, flows[0])


def _is_single(value: Value | None) -> TypeGuard[Array]:
    return isinstance(value, np.ndarray) and value.dtype == SINGLE


_OPEN: Final[Mapping[str, frozenset[int]]] = {"MatMulInteger": frozenset({0, 2}), "ConvInteger": frozenset({0, 2})}


def _is_quantized(graph: provider.GraphViewer, n: NodeId, element: Callable[[TensorId | None], str]) -> bool:
    """True where operations are made for a node of `QUANTIZED`: it computes floats, bytes or int32 from one tensor, or
    from this and its zero point, and all else is known."""
    node = graph.node(n)
    first, last = element(node.inputs[0]), element(next((t for t in node.outputs if t is not None), None))
    if (first == "float") != (node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear")) or last not in TYPES:
        return False
    if node.op_type in ("Cast", "DequantizeLinear") and last != "float":
        return False
    open_ = _OPEN.get(node.op_type, frozenset({0}))
    return not any(_open(graph, t) for k, t in enumerate(node.inputs) if k not in open_)


def _written(node: Node) -> tuple[TensorId | None, ...]:
    """The outputs that native code computes."""
    return node.outputs if node.op_type in _WHOLE else node.outputs[:1]


_WHOLE: Final = frozenset({"LSTM", "DynamicQuantizeLinear", "Split"})
_PLAIN_LSTM: Final = frozenset({"hidden_size", "direction"})


def _is_lowered(graph: provider.GraphViewer, n: NodeId) -> bool:
    """True where what `lowering` asks for is known of a node."""
    node = graph.node(n)
    known = [graph.constant(t) for t in node.inputs[1:]]
    if node.op_type in ("Gemm", "LayerNormalization"):
        return all(_is_single(it) for it in known)
    if node.op_type == "LSTM":
        weights = all(_is_single(it) for it in known[:2])
        bias, others = node.inputs[3:4], (*node.inputs[4:5], *node.inputs[7:])
        stated = (name for name, value in graph.attributes(n).items() if name == "clip" or value not in (0, None))
        plain = _PLAIN_LSTM.issuperset(stated)  # a threshold of 0 is one
        return plain and weights and not any(t is not None for t in others) and not (bias[0:] and _open(graph, bias[0]))
    if node.op_type == "MatMul":
        return all(it is None or _is_single(it) for it in known)
    return all(graph.constant(t) is not None for t in node.inputs[1:]) or node.op_type == "Concat"


def _open(graph: provider.GraphViewer, t: TensorId | None) -> bool:
    """True for a tensor that is not known."""
    return t is not None and graph.constant(t) is None


def _together(graph: provider.GraphViewer, taken: frozenset[NodeId]) -> list[list[NodeId]]:
    """Sets of nodes such that no path leaves a set and enters it again: by how often a path to a node has left them.

    A node that is not taken has the level of what it reads, and -1 where no taken node comes before it; behind it the
    next level begins. So a path that leaves a set comes to higher levels only.
    """
    levels: dict[NodeId, int] = {}
    sets: dict[int, list[NodeId]] = {}
    program = graph.program
    for n in program.order(graph.graph):
        before = {p for t in program.reads[n] if (p := graph.producer(t)) is not None and p in levels}
        if n in taken:
            levels[n] = max((levels[p] if p in taken else levels[p] + 1 for p in before), default=0)
            sets.setdefault(levels[n], []).append(n)
        else:
            levels[n] = max((levels[p] for p in before), default=-1)
    return [sets[level] for level in sorted(sets)]


def _offer(graph: provider.GraphViewer, nodes: Sequence[NodeId]) -> provider.ComputeCapability:
    inside = frozenset(nodes)
    written = {t for n in nodes for t in graph.node(n).outputs if t is not None}
    read = (t for n in nodes for t in graph.node(n).inputs if t is not None and t not in written)
    inputs = tuple(dict.fromkeys(t for t in read if graph.constant(t) is None))
    outputs = tuple(
        t
        for n in nodes
        for t in graph.node(n).outputs
        if t is not None and (graph.is_output(t) or not inside.issuperset(graph.consumers(t)))
    )
    names = dict.fromkeys(kernel_name(graph.program, n) for n in nodes)
    meta = provider.MetaDef(" ".join(names), inputs, outputs)
    return provider.ComputeCapability(
        provider.IndexedSubGraph(tuple(nodes), meta), f"{len(nodes)} nodes in native code"
    )


# ---- Running it -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A node or a chain. chain: None for a node that is none. site: of its first node."""

    nodes: tuple[NodeId, ...]
    chain: Chain | None
    site: Site


@dataclass(frozen=True, slots=True)
class Alone:
    """A node by NumPy's kernel."""

    compute: Compute
    node: Node
    site: Site
    where: str


@dataclass
class Subgraph:
    """Nodes that run together. lists: by the shapes of the inputs, a None where there are no operations for them; one
    is added by one thread at a time."""

    meta: provider.MetaDef
    constants: Mapping[TensorId, Array]
    parts: Sequence[Part]
    nodes: Sequence[Alone]
    graph: provider.GraphViewer
    lists: dict[Key, tuple[Listed | None]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


def _computing(fused: provider.FusedNodeAndGraph) -> Compute:
    graph, registry = fused.filtered_graph, numpy_kernels()
    alone_ = []
    for n in graph.nodes:
        node, site = graph.node(n), site_of(graph.program, n, graph.constants)
        kernel = registry.look_up_kernel(node)
        if kernel is None:
            raise InternalError("a kernel that was there is gone")
        alone_.append(Alone(prepared(kernel, site), node, site, f"{node.path} ({kernel_name(graph.program, n)})"))
    read = {t for n in graph.nodes for t in graph.node(n).inputs if t is not None}
    known = {t: value for t in read if isinstance(value := graph.constant(t), np.ndarray)}
    subgraph = Subgraph(fused.meta_def, known, tuple(_parts(graph)), alone_, graph)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        key = tuple([(it.shape, it.dtype) if isinstance(it, np.ndarray) else None for it in inputs])
        known = subgraph.lists.get(key)
        if known is None:
            known = (_listed(subgraph, _one_by_one(subgraph, inputs)[1]),)
            with subgraph.lock:
                while len(subgraph.lists) >= _KEPT:
                    del subgraph.lists[next(iter(subgraph.lists))]
                subgraph.lists[key] = known
        (made,) = known
        if made is None:
            values, _ = _one_by_one(subgraph, inputs)
            return tuple(np.array(it) if isinstance(it := values[t], np.ndarray) else it for t in subgraph.meta.outputs)
        outputs = _run(made, inputs, allocate)
        if outputs is None:
            _one_by_one(subgraph, inputs)
            raise InternalError("native code refused an index that NumPy's kernels take")
        return outputs

    return compute


def _parts(graph: provider.GraphViewer) -> Iterator[Part]:
    """The chains of the graph and the nodes that are in none, in an order in which they can run."""
    registry, program = numpy_kernels(), graph.program
    behind: dict[NodeId, tuple[NodeId, ...]] = {}
    for offer in chains(graph, registry):
        behind[offer.sub_graph.nodes[-1]] = offer.sub_graph.nodes
    fused = {n for nodes in behind.values() for n in nodes}
    for n in graph.nodes:
        nodes = behind.get(n, (n,))
        if n in fused and n not in behind:
            continue
        flows = [t for t in graph.node(n).inputs if t is not None and graph.constant(t) is None]
        is_chain = len(nodes) > 1 or graph.node(n).op_type == "Conv" or is_link(graph, registry, n, flows[0])
        viewer = provider.GraphViewer(program, graph.graph, nodes, graph.constants)
        chain = chain_of(viewer, registry) if is_chain else None
        yield Part(nodes, chain, site_of(program, nodes[0], graph.constants))


def _one_by_one(subgraph: Subgraph, inputs: Inputs) -> tuple[dict[TensorId, Value | None], dict[TensorId, Form | None]]:
    """The outputs by NumPy's kernels, and shapes and types of all tensors, None where there are no operations."""
    values: dict[TensorId, Value | None] = dict(zip(subgraph.meta.inputs, inputs, strict=True))
    last = {t: number for number, it in enumerate(subgraph.nodes) for t in it.node.inputs if t is not None}
    forms = {t: _form(it) for t, it in values.items()}
    for number, it in enumerate(subgraph.nodes):
        given = [None if t is None else subgraph.graph.constants.get(t, values.get(t)) for t in it.node.inputs]
        try:
            check_types(schemas.schema_at(it.node), given)
            results = it.compute(given, np.empty)
        except TOLD:
            raise
        except Exception as error:
            raise failure(it.where, error) from error
        written = {t: value for t, value in zip(_written(it.node), results, strict=False) if t is not None}
        forms.update((t, _form(value)) for t, value in written.items())
        values.update(written)
        for t in it.node.inputs:
            if t is not None and last[t] == number and t not in subgraph.meta.outputs:
                values.pop(t, None)
    return values, forms


def _form(value: Value | None) -> Form | None:
    return (value.shape, value.dtype) if isinstance(value, np.ndarray) and value.dtype in _ADMITTED else None


def _listed(subgraph: Subgraph, found: Mapping[TensorId, Form | None]) -> Listed | None:
    """The operations for tensors of these shapes and types; None where there are none."""
    forms = {t: form for t, form in found.items() if form is not None}
    if len(forms) < len(found):
        return None
    forms.update((t, (it.shape, it.dtype)) for t, it in subgraph.constants.items())
    shapes = {t: shape for t, (shape, _) in forms.items()}
    types = {t: dtype for t, (_, dtype) in forms.items()}
    known = {t: np.ascontiguousarray(it) for t, it in subgraph.constants.items() if it.dtype in _ADMITTED}
    listing = Listing(shapes, types, known, subgraph.meta.inputs, subgraph.meta.outputs)
    try:
        for part in subgraph.parts:
            node = subgraph.graph.node(part.nodes[-1])
            if part.chain is None:
                lower(listing, node, part.site, _TABLE)
                continue
            if part.chain.convolve is None:
                elementwise(listing, part.chain)
            else:
                (goal,) = (t for t in node.outputs[:1] if t is not None)
                convolved(listing, part.chain, part.site, goal)
    except UnfitError:
        return None
    for constant in known.values():  # what is read again and again was packed
        forget_pages(constant)
    return finished(listing)


def _run(listed: Listed, inputs: Inputs, allocate: Allocate) -> Outputs | None:
    """The outputs; None where an index names no element."""
    from .loading import execute

    function = execute()
    outputs = [allocate(*form) for form in listed.outputs]
    memory = allocate((listed.arena,), np.dtype(np.uint8))
    given = [np.ascontiguousarray(it) for it in inputs if isinstance(it, np.ndarray)]
    bases = np.array([0, *(address(it) for it in (memory, *given, *outputs))], np.int64)
    threads = THREADS if listed.wide else 1
    scratch = allocate((threads, listed.scratch), np.dtype(np.uint8))
    counters = np.zeros(16 * (len(listed.starts) + 1), np.int64)
    first = -(-address(counters) // 64) * 64
    start = address(scratch)
    whole = (address(listed.words), address(listed.starts), len(listed.starts), address(bases), first)

    held = memory, scratch, given, outputs, bases, counters

    # Other threads may still work on these when the calling one has been interrupted.
    def work(thread: int, _worker: int, _held: object = held) -> None:
        function(*whole, start + thread * listed.scratch, 0, 0)

    if threads == 1:
        work(0, 0)
    elif not CREW.run(function, whole, start, listed.scratch):
        shared(threads, work)
    return None if counters[(first - address(counters)) // 8 + 16 * len(listed.starts)] else tuple(outputs)
