"""Facts about the model as a whole, the names in its graphs and the order of its nodes."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import onnx

from ..facts import Facts
from ..schema import newest
from ..values import UNKNOWN, Find, Key, Value, number
from .graph import Makers, at, listed, single

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def makers(f: Facts) -> Makers:
    """The tables of the sections "The model" and "Graphs and names"."""
    reading, listing = f.reading, f.source == "listing"
    opsets = [] if listing else list(reading.opsets)
    domains = [domain for domain, _ in opsets]
    keys = Counter(entry.key for entry in reading.proto.metadata_props)
    graphs, tensors = reading.graphs, reading.tensors

    def name(g: int) -> Value:
        return graphs[g].proto.name or (UNKNOWN if listing else "")

    def nameless(g: int) -> int:
        return sum(not tensors[t].name for t in (*graphs[g].inputs, *graphs[g].outputs, *graphs[g].initializers))

    @cache
    def beyond_c90() -> Counter[int]:
        return Counter(it.graph for it in tensors if it.name and not IDENTIFIER.fullmatch(it.name))

    @cache
    def annotated() -> dict[int, int]:
        counts = Counter(t for g in range(len(graphs)) for t, _ in f.annotations(g))
        return {t: count for t, count in counts.items() if count > 1}

    @cache
    def late() -> dict[int, tuple[int, ...]]:
        return _late(f)

    def positions() -> dict[Key, Value]:
        misplaced = {n for n, row in late().items() for n in (n, *row)}
        place = {n: i for graph in graphs for i, n in enumerate(graph.nodes)}
        return {n: place[n] for n in misplaced}

    return {
        "ir_version": single(UNKNOWN if listing else reading.proto.ir_version),
        "newest_ir_version": single(int(onnx.IR_VERSION)),
        "states_versions": single(UNKNOWN if listing else True),
        "imports": single(tuple(range(len(opsets)))),
        "import_domain": at(lambda i: domains[i], len(opsets)),
        "import_version": at(lambda i: opsets[i][1], len(opsets)),
        "newest_version": at(lambda i: newest(domains[i]) or opsets[i][1], len(opsets)),
        "same_domain": at(lambda i: (first,) if (first := domains.index(domains[i])) < i else (), len(opsets)),
        "metadata_keys": single(tuple(keys)),
        "metadata_entries": listed(lambda: dict(keys.items())),
        "graph_name": at(name, len(graphs)),
        "nameless_entries": at(nameless, len(graphs)),
        "beyond_c90": at(lambda g: beyond_c90()[g], len(graphs)),
        "namesakes": lambda: _namesakes(f),
        "late": lambda: lambda key: late().get(number(key)),
        "position": listed(positions),
        "annotations": lambda: lambda key: tuple(annotated()),
        "annotation_entries": lambda: lambda key: annotated().get(number(key)),
    }


def _late(f: Facts) -> dict[int, tuple[int, ...]]:
    """For each node those of its graph that write what it reads and stand behind it, or are itself."""
    nodes = f.reading.nodes
    place = {n: i for graph in f.reading.graphs for i, n in enumerate(graph.nodes)}
    rows = {}
    for n, node in enumerate(nodes):
        writers = dict.fromkeys(m for t in f.reads[n] for m in f.writers[t])
        row = tuple(m for m in writers if nodes[m].graph == node.graph and place[m] >= place[n])
        if row:
            rows[n] = row
    return rows


def _namesakes(f: Facts) -> Find:
    first: dict[tuple[str, str], int] = {}
    rows: dict[Key, Value] = {}
    for n, node in enumerate(f.reading.nodes):
        m = first.setdefault((node.scope, node.name), n) if node.name else n
        if m != n:
            rows[n] = (m,)
    return rows.get
