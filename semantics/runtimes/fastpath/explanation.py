"""Who runs what of a model and why, who would have and why not: a partition, explained node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...model.graph import Model, NodeId
from ...operators.application import Program
from .partition import Assignment, Partitioning, asked, capabilities
from .preparation import compiled_main
from .provider import ExecutionProvider, GraphViewer, why_not
from .providers import chosen_providers

SESSION: Final = "the session"
"""The name for what no provider is asked about: control flow, and nodes that are known when the model is loaded."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A provider that does not run a node, and why not."""

    provider: str
    why: str


@dataclass(frozen=True, slots=True)
class Explained:
    """A partition. providers: the names in the order of preference. others: for each node that providers were asked
    about the other ones, in that order."""

    model: Model
    providers: tuple[str, ...]
    partitioning: Partitioning
    others: Mapping[NodeId, tuple[Standing, ...]]

    @property
    def counts(self) -> Mapping[str, tuple[int, int]]:
        """For each provider, and last the session, how many nodes it runs in how many parts."""
        return counted(self.partitioning, self.providers)


def counted(partitioning: Partitioning, providers: Sequence[str]) -> Mapping[str, tuple[int, int]]:
    """For each provider, and last the session, how many nodes it runs in how many parts."""
    counts = dict.fromkeys((*providers, SESSION), (0, 0))
    for it in partitioning.assignments:
        nodes, parts = counts[it.provider or SESSION]
        counts[it.provider or SESSION] = (nodes + len(it.nodes), parts + 1)
    return counts


def explained(model: Model, wanted: Sequence[str | ExecutionProvider]) -> Explained:
    """The partition of a model that is well formed, among these providers and the default one.

    Each provider is asked once more, about whole graphs, what it would have run. Raises ModelError and Unsupported, as
    a session does.
    """
    providers = chosen_providers(wanted)
    viewers: list[GraphViewer] = []
    _, partitioning = compiled_main(Program(model), providers, frozenset(), viewers)
    runs = {n: it for it in partitioning.assignments for n in it.nodes}
    refused = {(it.provider, n): it.why for it in reversed(partitioning.refusals) for n in it.nodes}
    wishes = {it.name: _wishes(it, viewers) for it in providers}
    names = tuple(it.name for it in providers)
    others: dict[NodeId, tuple[Standing, ...]] = {}
    for viewer in viewers:
        for n in viewer.nodes:
            rest = (it for it in providers if it.name != runs[n].provider)
            others[n] = tuple(
                Standing(it.name, _why_not(n, it, viewer, names, runs[n], refused, wishes[it.name])) for it in rest
            )
    return Explained(model, names, partitioning, others)


def _wishes(provider: ExecutionProvider, viewers: Sequence[GraphViewer]) -> Mapping[NodeId, str]:
    """The nodes that a provider would run, if it were asked first, each with the reason that it gives."""
    registry = asked(provider, "get_kernel_registry", provider.get_kernel_registry)
    offers = [offer for viewer in viewers for offer in capabilities(provider, viewer, registry)]
    return {n: offer.why for offer in reversed(offers) for n in offer.sub_graph.nodes}


def _why_not(
    n: NodeId,
    asked_: ExecutionProvider,
    viewer: GraphViewer,
    names: Sequence[str],
    by: Assignment,
    refused: Mapping[tuple[str, NodeId], str],
    wishes: Mapping[NodeId, str],
) -> str:
    provider = asked_.name
    if (provider, n) in refused:
        return f"its offer is refused: {refused[provider, n]}"
    if n not in wishes:
        said = why_not(asked_, viewer, n)
        return f"it does not offer to run the node{said and f': {said}'}"
    reason = f" ({wishes[n]})" if wishes[n] else ""
    if names.index(by.provider) < names.index(provider):
        return f"it would run the node{reason}, and {by.provider} is preferred"
    return f"it offers the node{reason} when asked about the whole graph, not about what is free"
