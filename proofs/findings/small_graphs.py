"""Small graphs, all of them up to renaming, the smallest first; their facts, and the models that they are.

Findings are sought among them. A graph here has inputs, outputs and deterministic nodes, no bodies and no stored
values. A tensor is a column: whether it is an input and an output, and for each node whether the node reads it and at
how many positions the node writes it. Renaming permutes tensors and nodes, so a graph is a multiset of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import permutations, product

from sonnx.semantics.facts.structure import Element, Key, SetTable, Structure, Table, ValueTable

Row = tuple[int, ...]
Column = tuple[int, ...]
"""Input, output, then for each node reads, writes: how often."""
NODES, TENSORS = "abcdefgh", "xyzwvutsrqp"
"""The names of nodes and tensors."""


@dataclass(frozen=True, slots=True)
class SmallGraph:
    """reads, writes: for each node its tensors by position. inputs, outputs: tensors of the graph."""

    tensors: int
    reads: tuple[Row, ...]
    writes: tuple[Row, ...]
    inputs: Row = ()
    outputs: Row = ()

    @property
    def uses(self) -> int:
        """How often a tensor is named in the lists of the graph and of its nodes."""
        return sum(map(len, (*self.reads, *self.writes, self.inputs, self.outputs)))

    def __str__(self) -> str:
        def names(row: Row) -> str:
            return ", ".join(TENSORS[t] for t in row) or "nothing"

        nodes = zip(NODES, self.reads, self.writes, strict=False)
        shown = [f"{name}: {names(reads)} -> {names(writes)}" for name, reads, writes in nodes]
        return "; ".join([*shown, f"inputs {names(self.inputs)}", f"outputs {names(self.outputs)}"])


# ---- Enumeration ------------------------------------------------------------------------------


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
    return all(_operator(len(r), len(w)) for r, w in zip(graph.reads, graph.writes, strict=True))


def _width(graph: SmallGraph) -> int:
    return max(len(r) + len(w) for r, w in zip(graph.reads, graph.writes, strict=True))


# ---- As a model -------------------------------------------------------------------------------


def _operator(reads: int, writes: int) -> str:
    """An operator with so many inputs and outputs, "" where there is none."""
    match reads, writes:
        case (0, 1):
            return "Constant <value_floats = [1.0, 2.0]>"
        case (1, 0 | 1):
            return "Relu"
        case (_, 0 | 1) if reads:
            return "Sum"
        case (1, 2):
            return "Split <num_outputs = 2, axis = 0>"
        case _:
            return ""


def text(graph: SmallGraph) -> str:
    """The graph as a model in ONNX's textual syntax, its tensors of two floats."""

    def typed(row: Row) -> str:
        return ", ".join(f"float[2] {TENSORS[t]}" for t in row)

    def names(row: Row) -> str:
        return ", ".join(TENSORS[t] for t in row)

    nodes = zip(graph.reads, graph.writes, strict=True)
    lines = [f"  {names(writes)} = {_operator(len(reads), len(writes))} ({names(reads)})" for reads, writes in nodes]
    head = f'<ir_version: 10, opset_import: ["": 18]>\ng ({typed(graph.inputs)}) => ({typed(graph.outputs)}) {{'
    return "\n".join([head, *lines, "}"]) + "\n"


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


def structure(tables: Mapping[str, Table]) -> Structure:
    """A structure with these tables."""
    providers = {name: (lambda table=table: table) for name, table in tables.items()}
    return Structure(providers, lambda sort, element: f"{sort} {element}")
