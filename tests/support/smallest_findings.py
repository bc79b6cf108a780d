"""The smallest graph on which a finding stands, sought among all graphs, the smallest first.

A tensor is a column: whether it is an input and an output, and for each node whether the node reads it and at how many
positions the node writes it. Renaming permutes tensors and nodes, so a graph is a multiset of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count, permutations, product
from typing import Final

from sonnx.proofs.findings import findings
from sonnx.proofs.findings.small_graphs import Row, SmallGraph, operator_of, structure
from sonnx.proofs.kernel.theory import Theory
from sonnx.semantics.facts.structure import Element, Key, SetTable, Table, ValueTable
from sonnx.spec.language.syntax import FunctionDeclaration, Property

Column = tuple[int, ...]
"""Input, output, then for each node reads, writes: how often."""
LARGEST: Final = (2, 3)
"""How many nodes and tensors a graph has at most that is tried."""


def smallest(theory: Theory, found: Property, largest: tuple[int, int] = LARGEST) -> SmallGraph | None:
    """The first graph, in order of size, on which the finding stands; None when there is none that small."""
    functions = findings._functions(theory)
    absent = {name: _empty(it) for name, it in theory.text.functions.items() if it.kind == "fact"}
    for graph in listed(*largest):
        tables = {**absent, **facts(graph)}
        if (
            findings._kept(theory, found, functions, structure(tables))
            and findings.refutation(found, functions, tables) is not None
        ):
            return graph
    return None


def _empty(fact: FunctionDeclaration) -> Table:
    return SetTable({}) if fact.result.name == "set" else ValueTable({})


def uses(graph: SmallGraph) -> int:
    """How often a tensor is named in the lists of the graph and of its nodes."""
    return sum(map(len, (*graph.reads, *graph.writes, graph.inputs, graph.outputs)))


# ---- Enumeration ------------------------------------------------------------------------------


_SOUGHT: dict[tuple[int, int], tuple[list[SmallGraph], Iterator[SmallGraph]]] = {}


def listed(nodes: int, tensors: int) -> Iterator[SmallGraph]:
    """The graphs of `smallest_first`, each made once for all searches."""
    known, more = _SOUGHT.setdefault((nodes, tensors), ([], smallest_first(nodes, tensors)))
    for at in count():
        if at == len(known):
            if (graph := next(more, None)) is None:
                return
            known.append(graph)
        yield known[at]


def smallest_first(nodes: int, tensors: int) -> Iterator[SmallGraph]:
    """One of each class of graphs that differ in names, with at least one node and at most so many nodes and tensors.

    In order: fewest nodes, then tensors, then uses of tensors, then tensors that one node names. Only graphs that are
    models (`text`).
    """
    for n, t in product(range(1, nodes + 1), range(1, tensors + 1)):
        for uses in range(1, t * max(map(sum, _columns(n))) + 1):
            found = [_graph(n, chosen) for chosen in _multisets(_columns(n), t, uses) if _first_named(chosen, n)]
            yield from sorted(filter(_written, found), key=_width)


@cache
def _columns(nodes: int) -> tuple[Column, ...]:
    """The columns of tensors that something names."""
    return tuple(column for column in product(range(2), range(2), *[range(2), range(3)] * nodes) if any(column))


def _multisets(columns: tuple[Column, ...], size: int, uses: int, start: int = 0) -> Iterator[tuple[Column, ...]]:
    """The multisets of so many columns, from a position on, that name tensors so often in all."""
    if not size:
        if not uses:
            yield ()
        return
    for at in range(start, len(columns)):
        if sum(columns[at]) <= uses:
            for rest in _multisets(columns, size - 1, uses - sum(columns[at]), at):
                yield (columns[at], *rest)


def _first_named(chosen: tuple[Column, ...], nodes: int) -> bool:
    """Of the multisets that differ in the order of the nodes, the first one."""
    orders = permutations(range(nodes))
    renamed = (tuple(sorted(_renamed(column, order) for column in chosen)) for order in orders)
    return all(chosen <= other for other in renamed)


def _renamed(column: Column, order: tuple[int, ...]) -> Column:
    return (*column[:2], *(count for n in order for count in column[2 + 2 * n : 4 + 2 * n]))


def _graph(nodes: int, chosen: tuple[Column, ...]) -> SmallGraph:
    """The graph, its tensors numbered in the order in which the inputs, then the nodes name them."""
    columns = sorted(chosen, key=lambda column: (not column[0], [not count for count in column[2:]]))

    def row(at: int) -> Row:
        return tuple(t for t, column in enumerate(columns) for _ in range(column[at]))

    reads = tuple(row(2 + 2 * n) for n in range(nodes))
    return SmallGraph(len(columns), reads, tuple(row(3 + 2 * n) for n in range(nodes)), row(0), row(1))


def _written(graph: SmallGraph) -> bool:
    return all(operator_of(len(r), len(w)) for r, w in zip(graph.reads, graph.writes, strict=True))


def _width(graph: SmallGraph) -> int:
    return max(len(r) + len(w) for r, w in zip(graph.reads, graph.writes, strict=True))


# ---- As facts ---------------------------------------------------------------------------------


def facts(graph: SmallGraph) -> dict[str, Table]:
    """The facts of the graph that constraints and findings ask for."""
    nodes, tensors = range(len(graph.reads)), range(graph.tensors)
    ports = [(n, t) for n in nodes for t in graph.writes[n]]
    ins = {n: tuple(dict.fromkeys(graph.reads[n])) for n in nodes}
    outs = {n: tuple(dict.fromkeys(graph.writes[n])) for n in nodes}

    def sets(rows: Mapping[int, Row]) -> SetTable:
        return SetTable({key: tuple(row) for key, row in rows.items()})

    def inverse(rows: Mapping[int, Row]) -> SetTable:
        return sets({t: tuple(n for n in nodes if t in rows[n]) for t in tensors})

    def always(elements: Iterator[int] | range, value: Element) -> ValueTable:
        keys: dict[Key, Element] = dict.fromkeys(elements, value)
        return ValueTable({**keys})

    return {
        "graphs": SetTable({(): (0,)}),
        "main": ValueTable({(): 0}),
        "all_nodes": SetTable({(): tuple(nodes)}),
        "all_tensors": SetTable({(): tuple(tensors)}),
        "nodes": SetTable({0: tuple(nodes)}),
        "inputs": SetTable({0: graph.inputs}),
        "outputs": SetTable({0: graph.outputs}),
        "initializers": SetTable({}),
        "scope": always(tensors, 0),
        "graph_of": always(nodes, 0),
        "ins": sets(ins),
        "outs": sets(outs),
        "consumers": inverse(ins),
        "producers": inverse(outs),
        "writes": sets({t: tuple(p for p, (_, u) in enumerate(ports) if u == t) for t in tensors}),
        "writer": ValueTable({p: n for p, (n, _) in enumerate(ports)}),
        "bodies": SetTable({}),
        "body_names": SetTable({}),
        "operator": always(nodes, "Relu"),
        "schema_determinism": always(nodes, "deterministic"),
    }
