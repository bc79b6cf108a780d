"""Which provider runs which nodes, and why: decided offer by offer, kept as data.

The rule, and that a run by parts gives what a run gives, is part 6 of the specification, 8c-partition.sonnx: providers
are asked in the order of preference, each about the nodes that those before it have left. An offer is taken as a whole
where its nodes are free and no cycle leads through parts then (`admits`), else refused; what was taken stays taken. An
offer that grows is made into parts (`growing`). Each graph is cut on its own, bodies first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sonnx.spec.terminal import few, one_line

from ...errors import ModelError, Unsupported
from ...model.graph import GraphId, NodeId, TensorId
from ...model.path import operator_text
from ...model.schemas import normal_domain
from ...operators.application import Program
from .growing import grown
from .provider import (
    ComputeCapability,
    Declined,
    ExecutionProvider,
    FusedNodeAndGraph,
    GraphViewer,
    IndexedSubGraph,
    KernelRegistry,
    MetaDef,
    NodeComputeInfo,
)

_SHOWN = 5
T = TypeVar("T")


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

    Raises Unsupported, with the operators, for nodes that no provider takes, and ModelError, with its name, for a
    provider that does not keep to the protocol.
    """
    units: dict[NodeId, Unit] = {}
    refusals: list[Refusal] = []
    for provider in providers:
        declined: dict[NodeId, Refusal] = {}
        while len(units) + len(declined) < len(viewer.nodes):
            open_ = replace(viewer, nodes=tuple(n for n in viewer.nodes if n not in declined))
            taken, refused = _decided(open_, provider, units)
            made = tuple(_units(viewer, provider, taken))
            new = [it for it in made if isinstance(it, Refusal)]
            declined.update((n, it) for it in new for n in it.nodes)
            if not new:
                refusals += refused
                units.update((n, it) for it in made if isinstance(it, Unit) for n in it.nodes)
                break
        refusals += {id(it): it for it in declined.values()}.values()
    _check_covered(viewer, units)
    return tuple({id(units[n]): units[n] for n in viewer.nodes}.values()), tuple(refusals)


def _decided(
    viewer: GraphViewer, provider: ExecutionProvider, units: Mapping[NodeId, Unit]
) -> tuple[list[ComputeCapability], list[Refusal]]:
    """The offers of a provider that are taken, and those that are not. units: of the providers before it."""
    taken: list[ComputeCapability] = []
    refusals: list[Refusal] = []
    registry = asked(provider, "get_kernel_registry", provider.get_kernel_registry)
    claimed = {n: Claim(unit.nodes, unit.provider.name) for n, unit in units.items()}
    free = replace(viewer, nodes=tuple(n for n in viewer.nodes if n not in units))
    for offer in _single(viewer, provider, claimed, capabilities(provider, free, registry)):
        nodes, meta = offer.sub_graph.nodes, offer.sub_graph.meta_def
        if meta is None and len(nodes) == 1 and nodes[0] in claimed:
            continue  # it has the node in something that it wanted more: nothing to explain
        why = _objection(viewer, claimed, nodes, meta)
        if not why and meta is None and (registry is None or registry.look_up_kernel(viewer.node(nodes[0])) is None):
            why = "its registry has no kernel for the node"
        if why:
            refusals.append(Refusal(viewer.graph, nodes, provider.name, why))
            continue
        claimed.update(dict.fromkeys(nodes, Claim(nodes, provider.name)))
        taken.append(offer)
    return taken, refusals


# ---- Providers --------------------------------------------------------------------------------


def asked(provider: ExecutionProvider, what: str, call: Callable[[], T]) -> T:
    """What a provider answers. Raises ModelError, which names it, where it fails."""
    try:
        return call()
    except (ModelError, Unsupported):
        raise
    except Exception as error:
        said = one_line(f"{type(error).__name__}: {error}")
        raise ModelError(f"{provider.name} failed in {what} with {said}; run without it, or correct it") from error


def capabilities(
    provider: ExecutionProvider, viewer: GraphViewer, registry: KernelRegistry | None
) -> tuple[ComputeCapability, ...]:
    """The offers of a provider. Raises ModelError for what is none."""
    what = "get_capability"
    offers = asked(provider, what, lambda: tuple(provider.get_capability(viewer, registry)))
    for it in offers:
        if not isinstance(it, ComputeCapability):
            raise ModelError(f"{provider.name} gives {type(it).__name__} in {what}, which is no ComputeCapability")
    return offers


# ---- Offers -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """The part that a node is taken in, and by whom."""

    nodes: tuple[NodeId, ...]
    provider: str


def _single(
    viewer: GraphViewer,
    provider: ExecutionProvider,
    claimed: Mapping[NodeId, Claim],
    offers: Iterable[ComputeCapability],
) -> Iterator[ComputeCapability]:
    """The offers, those that grow as the parts that become of them when it is their turn."""
    for offer in offers:
        if not offer.grows:
            yield offer
            continue
        known = frozenset(viewer.nodes)
        wanted = frozenset(n for n in offer.sub_graph.nodes if n in known and n not in claimed)
        taken = {n: claim.nodes for n, claim in claimed.items()}
        label = provider.name.removesuffix("ExecutionProvider")
        for nodes in grown(viewer.program, viewer.graph, taken, wanted):
            meta = ends_of(viewer, nodes, f"{label}_{nodes[0]}")
            yield ComputeCapability(IndexedSubGraph(nodes, meta), offer.why or f"{len(nodes)} of the nodes it supports")


def ends_of(viewer: GraphViewer, nodes: Sequence[NodeId], name: str) -> MetaDef:
    """The MetaDef for nodes: what they read from outside, in the order in which they do; what others read of them."""
    reads, writes = viewer.program.reads, viewer.program.writes
    inside = frozenset(nodes)
    written = dict.fromkeys(t for n in nodes for t in writes[n])
    read = dict.fromkeys(t for n in nodes for t in reads[n] if t not in written)
    outputs = tuple(t for t in written if viewer.is_output(t) or not inside.issuperset(viewer.consumers(t)))
    return MetaDef(name, tuple(read), outputs)


def _objection(
    viewer: GraphViewer, claimed: Mapping[NodeId, Claim], nodes: tuple[NodeId, ...], meta: MetaDef | None
) -> str:
    """Why an offer is refused, "" when it is not."""
    if not nodes or len(set(nodes)) < len(nodes) or not frozenset(viewer.nodes).issuperset(nodes):
        return "it is not a set of nodes of the graph that are to be run"
    taken = [n for n in nodes if n in claimed]
    if taken:
        shown = [f"{viewer.node(n).path} by {claimed[n].provider}" for n in taken]
        return f"nodes of it are taken: {few(shown, _SHOWN)}"
    if meta is None:
        return "" if len(nodes) == 1 else "several nodes are fused only under a MetaDef"
    inside = frozenset(nodes)
    program = viewer.program
    written = {t for n in nodes for t in program.writes[n]}
    read = {t for n in nodes for t in program.reads[n]} - written - viewer.constants.keys()
    leaving = {t for t in written if viewer.is_output(t) or not inside.issuperset(viewer.consumers(t))}
    if not leaving.issubset(meta.outputs):
        return f"its MetaDef does not list what others read: {_tensors(viewer, leaving.difference(meta.outputs))}"
    if not written.issuperset(meta.outputs):
        listed = frozenset(meta.outputs).difference(written)
        return f"its MetaDef lists as an output what none of its nodes writes: {_tensors(viewer, listed)}"
    if not read.issubset(meta.inputs):
        return f"its MetaDef does not list what its nodes read: {_tensors(viewer, read.difference(meta.inputs))}"
    own = written.intersection(meta.inputs)
    if own:
        return f"its MetaDef lists as an input what its own nodes write: {_tensors(viewer, own)}"
    unknown = [t for t in meta.inputs if not _there(viewer, t)]
    if unknown:
        return f"its MetaDef lists an input that is no tensor there: {_tensors(viewer, unknown)}"
    path = cycle(viewer, {n: claim.nodes for n, claim in claimed.items()}, inside)
    return f"a path leaves the nodes and enters them again: {path_text(viewer, path)}" if path else ""


def _there(viewer: GraphViewer, t: TensorId) -> bool:
    """True where a tensor is one of the graph or of those around it."""
    model, graph = viewer.program.model, viewer.graph
    if not 0 <= t < len(model.tensors):
        return False
    while graph != model.tensors[t].graph:
        holder = model.graphs[graph].holder
        if holder is None:
            return False
        graph = model.nodes[holder].graph
    return True


def _tensors(viewer: GraphViewer, tensors: Iterable[TensorId]) -> str:
    known = viewer.program.model.tensors
    return few([known[t].path if 0 <= t < len(known) else str(t) for t in sorted(tensors)], _SHOWN)


Way = tuple[tuple[NodeId, bool], ...]
"""Nodes one after the other: each reads what the one before writes, or (True) is in one part with it."""


def cycle(viewer: GraphViewer, claimed: Mapping[NodeId, tuple[NodeId, ...]], inside: frozenset[NodeId]) -> Way:
    """A shortest way that leaves a set of nodes and enters it again, through parts as a whole; () without one."""
    program, graph = viewer.program, viewer.graph
    exits = {
        n for n in inside for t in program.writes[n] if any(reader not in inside for reader in viewer.consumers(t))
    }
    ends = {n for n in inside if inside.isdisjoint(it for t in program.writes[n] for it in viewer.consumers(t))}
    if len(ends) == 1 and exits <= ends:
        return ()  # every node of the set comes before the one that a path leaves from
    came: dict[NodeId, tuple[NodeId, bool]] = {}
    waiting = deque(sorted(exits))
    while waiting:
        n = waiting.popleft()
        for reader in (it for t in program.writes[n] for it in viewer.consumers(t)):
            if reader in came or program.model.nodes[reader].graph != graph or (reader in inside and n in inside):
                continue  # a reader in a body is there with the node that holds it
            came[reader] = (n, False)
            if reader in inside:
                return _way(came, inside, reader)
            waiting.append(reader)
            for it in claimed.get(reader, ()):
                if it not in came:
                    came[it] = (reader, True)
                    waiting.append(it)
    return ()


def _way(came: Mapping[NodeId, tuple[NodeId, bool]], inside: frozenset[NodeId], last: NodeId) -> Way:
    n, jumped = came[last]
    way = [(last, jumped)]
    while n not in inside:
        before, jumped = came[n]
        way.append((n, jumped))
        n = before
    return ((n, False), *reversed(way))


def path_text(viewer: GraphViewer, way: Way) -> str:
    """A way in words, the middle of a long one left out."""
    shown = [(" = " if jumped else " -> ") + viewer.node(n).path for n, jumped in way]
    if len(shown) > 2 * _SHOWN:
        shown = [*shown[:_SHOWN], f" -> ({len(shown) - 2 * _SHOWN} more)", *shown[-_SHOWN:]]
    return "".join(shown).removeprefix(" -> ")


# ---- Units ------------------------------------------------------------------------------------


def _units(
    viewer: GraphViewer, provider: ExecutionProvider, taken: Sequence[ComputeCapability]
) -> Iterator[Unit | Refusal]:
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
    infos = asked(provider, "compile", lambda: tuple(provider.compile(fused))) if fused else ()
    if len(infos) != len(fused):
        raise ModelError(f"{provider.name} was given {len(fused)} subgraphs and compiled {len(infos)}")
    for it in infos:
        if not isinstance(it, NodeComputeInfo | Declined):
            raise ModelError(f"{provider.name} gives {type(it).__name__} in compile, which is no NodeComputeInfo")
    compiled = iter(zip(fused, infos, strict=True))
    for offer in taken:
        if offer.sub_graph.meta_def is not None:
            whole, info = next(compiled)
            meta, nodes = whole.meta_def, whole.filtered_graph.nodes
            if isinstance(info, Declined):
                yield Refusal(viewer.graph, nodes, provider.name, info.why)
                continue
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
