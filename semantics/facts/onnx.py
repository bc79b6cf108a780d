"""The facts of `spec/1-syntax-onnx.sonnx`: those about the model, its graphs and names here, the others by concept.

Each provider makes one pass when one of its facts is first asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache

from ..model.graph import Model, NodeId, TensorId
from ..model.schemas import newest_ir_version, newest_opset, normal_domain
from . import functions as function_facts
from . import schemas as schema_facts
from . import stores as store_facts
from . import typing as typing_facts
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable
from .types import ClaimsSource

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def providers(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact that only ONNX's own rules speak about.

    claims: the result of shape inference, a function that waits for it, or None when it did not run.
    """
    return {
        **_model(model),
        **_graphs(model),
        **_order(model),
        **function_facts.providers(model),
        **schema_facts.providers(model),
        **typing_facts.providers(model, claims),
        **store_facts.providers(model),
    }


def places(model: Model) -> Mapping[str, Callable[[Element], str]]:
    """For each sort of this section the path of an element; an import is a thing of the whole model."""
    stores = cache(lambda: store_facts.stores(model))
    return {"Import": lambda _import: "/", "Store": lambda store: stores()[int(store)].path}


def single(value: Value) -> Callable[[], Table]:
    """The table of a fact without arguments."""
    return lambda: ValueTable({(): value})


def _model(model: Model) -> dict[str, Callable[[], Table]]:
    silent = Unknown("a printed listing states no versions") if model.source == "listing" else None
    domains = [] if silent else [normal_domain(domain) for domain, _ in model.opsets]
    keys = Counter(key for key, _ in model.metadata)
    return {
        "ir_version": single(silent or model.ir_version),
        "newest_ir_version": single(newest_ir_version()),
        "states_versions": single(silent or True),
        "imports": lambda: SetTable({(): tuple(range(len(domains)))}),
        "import_domain": lambda: ValueTable(dict(enumerate(domains))),
        "import_version": lambda: ValueTable({i: model.opsets[i][1] for i in range(len(domains))}),
        "newest_version": lambda: ValueTable(
            {i: newest_opset(domain) or model.opsets[i][1] for i, domain in enumerate(domains)}
        ),
        "same_domain": lambda: SetTable(
            {i: (first,) for i, domain in enumerate(domains) if (first := domains.index(domain)) < i}
        ),
        "metadata_keys": lambda: SetTable({(): tuple(keys)}),
        "metadata_entries": lambda: ValueTable({key: count for key, count in keys.items()}),  # noqa: C416
    }


def _graphs(model: Model) -> dict[str, Callable[[], Table]]:
    @cache
    def annotated() -> Counter[TensorId]:
        counts: Counter[TensorId] = Counter()
        for graph in model.graphs:
            counts.update(tensor for tensor, _ in graph.value_infos)
        return Counter({tensor: count for tensor, count in counts.items() if count > 1})

    return {
        "graph_name": lambda: ValueTable(
            {
                g: graph.name or (Unknown("the listing shows no name") if model.source == "listing" else "")
                for g, graph in enumerate(model.graphs)
            }
        ),
        "nameless_entries": lambda: ValueTable({g: _nameless(model, g) for g in range(len(model.graphs))}),
        "beyond_c90": lambda: ValueTable({g: count for g, count in enumerate(_beyond_c90(model))}),  # noqa: C416
        "namesakes": lambda: SetTable(_namesakes(model)),
        "annotations": lambda: SetTable({(): tuple(annotated())}),
        "annotation_entries": lambda: ValueTable({t: count for t, count in annotated().items()}),  # noqa: C416
    }


def _nameless(model: Model, number: int) -> int:
    graph = model.graphs[number]
    stored = (tensor for tensor, _ in (*graph.initializers, *graph.sparse_initializers))
    return sum(not model.tensors[tensor].name for tensor in (*graph.inputs, *graph.outputs, *stored))


def _beyond_c90(model: Model) -> list[int]:
    counts = [0] * len(model.graphs)
    for tensor in model.tensors:
        counts[tensor.graph] += bool(tensor.name) and not IDENTIFIER.fullmatch(tensor.name)
    return counts


def _namesakes(model: Model) -> dict[Key, tuple[Element, ...]]:
    first: dict[tuple[int, tuple[str, ...], str], NodeId] = {}
    later: dict[Key, tuple[Element, ...]] = {}
    for n, node in enumerate(model.nodes):
        if node.name:
            other = first.setdefault((node.graph, node.calls, node.name), n)
            if other != n:
                later[n] = (other,)
    return later


def _order(model: Model) -> dict[str, Callable[[], Table]]:
    @cache
    def positions() -> dict[NodeId, int]:
        return {n: position for graph in model.graphs for position, n in enumerate(graph.nodes)}

    @cache
    def late() -> dict[NodeId, tuple[NodeId, ...]]:
        return _late(model, positions())

    def involved() -> dict[Key, Value]:
        members = {n for row in late().items() for n in (row[0], *row[1])}
        return {n: positions()[n] for n in sorted(members)}

    return {"late": lambda: SetTable(dict(late().items())), "position": lambda: ValueTable(involved())}


def _late(model: Model, positions: Mapping[NodeId, int]) -> dict[NodeId, tuple[NodeId, ...]]:
    writers: dict[TensorId, list[NodeId]] = {}
    for n, node in enumerate(model.nodes):
        for tensor in node.outputs:
            if tensor is not None:
                writers.setdefault(tensor, []).append(n)
    found = {}
    for n, node in enumerate(model.nodes):
        place = positions[n]
        row = {
            m: None
            for tensor in (*node.inputs, *node.captures)
            if tensor is not None
            for m in writers.get(tensor, ())
            if positions[m] >= place and model.nodes[m].graph == node.graph
        }
        if row:
            found[n] = tuple(row)
    return found
