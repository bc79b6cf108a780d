"""Which provider runs which nodes, and why: decided greedily, kept as data.

The providers are asked in the order of preference, each about the nodes that those before it have left. Of what a
provider offers, in its order, a subgraph is taken when all its nodes are free and, where they are to be fused, no path
leaves the set and enters it again. What was taken stays taken: a later offer that wants one of its nodes is refused as
a whole. Bodies of control flow are asked about apart from the graph around them, and first. Source of the rule:
onnxruntime, core/framework/graph_partitioner.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sonnx.spec.terminal import few

from ...errors import InternalError, Unsupported
from ...model.graph import GraphId, NodeId, TensorId
from ...model.path import operator_text
from ...model.schemas import normal_domain
from ...operators.application import Program
from .provider import ComputeCapability, ExecutionProvider, FusedNodeAndGraph, GraphViewer, MetaDef, NodeComputeInfo

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Assignment:
    """Nodes of a graph and what runs them. kernel: its name; provider: "" for the session itself."""

    graph: GraphId
    nodes: tuple[NodeId, ...]
    provider: str
    kernel: str
    why: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nodes that a provider offered and was not given; a single node that was taken with others is not listed."""

    graph: GraphId
    nodes: tuple[NodeId, ...]
    provider: str
    why: str


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Who runs what. Every node of the model is in exactly one assignment."""

    assignments: tuple[Assignment, ...]
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """Nodes that run together. compiled: None for a single node with a kernel of the provider's registry."""

    nodes: tuple[NodeId, ...]
    inputs: tuple[TensorId | None, ...]
    outputs: tuple[TensorId | None, ...]
    provider: ExecutionProvider
    compiled: NodeComputeInfo | None
    assignment: Assignment


def partitioned(
    viewer: GraphViewer, providers: Sequence[ExecutionProvider]
) -> tuple[tuple[Unit, ...], tuple[Refusal, ...]]:
    """The units that cover the viewer's nodes, and the offers that were refused.

    Raises Unsupported, with the operators, for nodes that no provider takes.
    """
    units: dict[NodeId, Unit] = {}
    refusals: list[Refusal] = []
    for provider in providers:
        if len(units) == len(viewer.nodes):
            break
        taken: list[ComputeCapability] = []
        registry = provider.get_kernel_registry()
        claimed: dict[NodeId, tuple[NodeId, ...]] = {n: unit.nodes for n, unit in units.items()}
        free = replace(viewer, nodes=tuple(n for n in viewer.nodes if n not in units))
        for offer in provider.get_capability(free, registry):
            nodes, meta = offer.sub_graph.nodes, offer.sub_graph.meta_def
            if meta is None and len(nodes) == 1 and nodes[0] in claimed:
                continue  # it has the node in something that it wanted more: nothing to explain
            why = _objection(viewer, claimed, nodes, meta)
            if (
                not why
                and meta is None
                and (registry is None or registry.look_up_kernel(viewer.node(nodes[0])) is None)
            ):
                why = "its registry has no kernel for the node"
            if why:
                refusals.append(Refusal(viewer.graph, nodes, provider.name, why))
                continue
            claimed.update(dict.fromkeys(nodes, nodes))
            taken.append(offer)
        for unit in _units(viewer, provider, taken):
            units.update(dict.fromkeys(unit.nodes, unit))
    _check_covered(viewer, units)
    return tuple({id(units[n]): units[n] for n in viewer.nodes}.values()), tuple(refusals)


# ---- Offers -----------------------------------------------------------------------------------


def _objection(
    viewer: GraphViewer, claimed: Mapping[NodeId, tuple[NodeId, ...]], nodes: tuple[NodeId, ...], meta: MetaDef | None
) -> str:
    """Why an offer is refused, "" when it is not."""
    if not nodes or len(set(nodes)) < len(nodes) or not frozenset(viewer.nodes).issuperset(nodes):
        return "it is not a set of nodes of the graph that are to be run"
    if any(n in claimed for n in nodes):
        return "some of the nodes are taken"
    if meta is None:
        return "" if len(nodes) == 1 else "several nodes are fused only under a MetaDef"
    inside = frozenset(nodes)
    program = viewer.program
    written = {t for n in nodes for t in program.writes[n]}
    read = {t for n in nodes for t in program.reads[n]} - written - viewer.constants.keys()
    leaving = {t for t in written if viewer.is_output(t) or not inside.issuperset(viewer.consumers(t))}
    if not leaving.issubset(meta.outputs) or not written.issuperset(meta.outputs):
        return "its MetaDef does not list the tensors that others read"
    if not read.issubset(meta.inputs):
        return "its MetaDef does not list the tensors that its nodes read"
    if any(t in written for t in meta.inputs):
        return "its MetaDef lists as an input what its own nodes write"
    return "a path leaves the nodes and enters them again" if _leaves_and_enters(viewer, claimed, inside) else ""


def _leaves_and_enters(
    viewer: GraphViewer, claimed: Mapping[NodeId, tuple[NodeId, ...]], inside: frozenset[NodeId]
) -> bool:
    program, graph = viewer.program, viewer.graph
    exits = {
        n for n in inside for t in program.writes[n] if any(reader not in inside for reader in viewer.consumers(t))
    }
    ends = {n for n in inside if inside.isdisjoint(it for t in program.writes[n] for it in viewer.consumers(t))}
    if len(ends) == 1 and exits <= ends:
        return False  # every node of the set comes before the one that a path leaves from
    waiting = [
        reader for n in exits for t in program.writes[n] for reader in viewer.consumers(t) if reader not in inside
    ]
    seen: set[NodeId] = set()
    while waiting:
        n = waiting.pop()
        if n in seen or program.model.nodes[n].graph != graph:
            continue
        if n in inside:
            return True
        together = claimed.get(n, (n,))
        seen.update(together)
        waiting += [reader for it in together for t in program.writes[it] for reader in viewer.consumers(t)]
    return False


def _units(viewer: GraphViewer, provider: ExecutionProvider, taken: Sequence[ComputeCapability]) -> Iterable[Unit]:
    place = {n: i for i, n in enumerate(viewer.nodes)}
    fused = [
        FusedNodeAndGraph(
            meta,
            GraphViewer(
                viewer.program, viewer.graph, tuple(sorted(it.sub_graph.nodes, key=place.__getitem__)), viewer.constants
            ),
        )
        for it in taken
        if (meta := it.sub_graph.meta_def) is not None
    ]
    infos = tuple(provider.compile(fused)) if fused else ()
    if len(infos) != len(fused):
        raise InternalError(f"{provider.name} was given {len(fused)} subgraphs and compiled {len(infos)}")
    compiled = iter(zip(fused, infos, strict=True))
    for offer in taken:
        if offer.sub_graph.meta_def is not None:
            whole, info = next(compiled)
            meta, nodes = whole.meta_def, whole.filtered_graph.nodes
            why = offer.why or f"{len(nodes)} nodes fused"
            said = Assignment(viewer.graph, nodes, provider.name, meta.name, why)
            yield Unit(nodes, meta.inputs, meta.outputs, provider, info, said)
            continue
        (n,) = offer.sub_graph.nodes
        node = viewer.node(n)
        said = Assignment(viewer.graph, (n,), provider.name, kernel_name(viewer.program, n), offer.why or "a kernel")
        yield Unit((n,), node.inputs, node.outputs, provider, None, said)


def kernel_name(program: Program, n: NodeId) -> str:
    """The operator with its version, as messages show it: Conv-11."""
    node = program.model.nodes[n]
    version = "" if node.version is None else f"-{node.version}"
    return operator_text(normal_domain(node.domain), node.op_type) + version


def _check_covered(viewer: GraphViewer, units: Mapping[NodeId, Unit]) -> None:
    missing: dict[str, str] = {}
    for n in viewer.nodes:
        if n not in units:
            missing.setdefault(kernel_name(viewer.program, n), viewer.node(n).path)
    if missing:
        shown = few([f"{name} ({path})" for name, path in missing.items()], _SHOWN)
        raise Unsupported(f"no execution provider has a kernel for {shown}")
