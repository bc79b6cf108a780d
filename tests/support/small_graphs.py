"""Small graphs as structures, without a model file: all of them up to renaming, and random ones.

Tests load this file by its path. A tensor of a graph with m nodes is a column: which nodes read it, which write it, is
it an input, is it an output. Renaming tensors permutes columns and renaming nodes permutes bits, so a graph up to
renaming is a multiset of columns up to a permutation of nodes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations, product

from sonnx.semantics.facts.structure import Element, Key, SetTable, Structure, Table, Unknown, Value, ValueTable
from sonnx.spec.language.syntax import Expr, FunctionDeclaration

Row = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SmallGraph:
    """Reads and writes of each node by position (a tensor may be written twice), and lists of tensors.

    An input may be listed twice. marked: the nodes whose operator is not deterministic and calls a function that is
    not there; the model has one function, defined twice when there is such a node.
    """

    tensors: int
    reads: tuple[Row, ...]
    writes: tuple[Row, ...]
    inputs: Row
    outputs: Row
    initializers: Row = ()
    marked: Row = ()


# ---- Enumeration ------------------------------------------------------------------------------


def up_to_renaming(nodes: int, tensors: int) -> Iterator[SmallGraph]:
    """One graph of each class of graphs that differ only in names, with exactly these numbers of nodes and tensors."""
    columns = 4 ** (nodes + 1)
    swaps = [[_renamed(column, order) for column in range(columns)] for order in permutations(range(nodes))]
    for chosen in combinations_with_replacement(range(columns), tensors):
        if all(tuple(sorted(swap[c] for c in chosen)) >= chosen for swap in swaps):
            yield _graph(nodes, chosen)


def _renamed(column: int, order: tuple[int, ...]) -> int:
    pairs = [column >> 2 * (i + 1) & 3 for i in range(len(order))]
    return column & 3 | sum(pairs[old] << 2 * (new + 1) for new, old in enumerate(order))


def _graph(nodes: int, columns: tuple[int, ...]) -> SmallGraph:
    """Bits of a column, from the lowest: input, output, then for each node reads, writes."""

    def having(bit: int) -> Row:
        return tuple(t for t, column in enumerate(columns) if column >> bit & 1)

    reads = tuple(having(2 * n + 2) for n in range(nodes))
    writes = tuple(having(2 * n + 3) for n in range(nodes))
    return SmallGraph(len(columns), reads, writes, having(0), having(1))


def with_features(graph: SmallGraph, number: int) -> SmallGraph:
    """The graph with initializers, tensors written twice by one node and random operators, as the number says."""
    bits = random.Random(number)
    return SmallGraph(
        graph.tensors,
        tuple(tuple(bits.sample(row, len(row))) for row in graph.reads),
        tuple(row + tuple(t for t in row if bits.random() < 0.2) for row in graph.writes),
        graph.inputs + tuple(t for t in graph.inputs if bits.random() < 0.1),
        graph.outputs,
        tuple(t for t in range(graph.tensors) if bits.random() < 0.2),
        tuple(n for n in range(len(graph.reads)) if bits.random() < 0.2),
    )


def single_nodes() -> Iterator[SmallGraph]:
    """Every graph of one node and two tensors, with each tensor written up to twice and every choice of features."""
    subsets = [(), (0,), (1,), (0, 1)]
    for reads, twice, inputs, outputs, initializers in product(subsets, product(range(3), repeat=2), *[subsets] * 3):
        for marked in ((), (0,)):
            writes = (0,) * twice[0] + (1,) * twice[1]
            yield SmallGraph(2, (reads,), (writes,), inputs, outputs, initializers, marked)


def sampled(count: int, seed: int, nodes: int, tensors: int) -> Iterator[SmallGraph]:
    """Random graphs of exactly these sizes."""
    source = random.Random(seed)
    for number in range(count):
        columns = tuple(source.randrange(4 ** (nodes + 1)) for _ in range(tensors))
        yield with_features(_graph(nodes, columns), number)


# ---- Structures -------------------------------------------------------------------------------


def structure(graph: SmallGraph, overrides: dict[str, Table] | None = None) -> Structure:
    """The facts of a graph that is the main graph of its model. overrides: tables that replace those of the graph."""
    nodes, tensors = range(len(graph.reads)), range(graph.tensors)
    ports = [(n, t) for n in nodes for t in graph.writes[n]]
    ins = {n: tuple(dict.fromkeys(graph.reads[n])) for n in nodes}
    outs = {n: tuple(dict.fromkeys(graph.writes[n])) for n in nodes}

    def inverse(rows: dict[int, Row]) -> dict[Key, tuple[Element, ...]]:
        return {t: tuple(n for n in nodes if t in rows[n]) for t in tensors}

    def count(listed: Row) -> dict[Key, Value]:
        return {t: listed.count(t) for t in tensors}

    def values(rows: dict[int, Element]) -> ValueTable:
        return ValueTable({**rows})

    def sets(rows: dict[int, Row]) -> SetTable:
        return SetTable({**rows})

    mark = {n: n in graph.marked for n in nodes}
    tables: dict[str, Table] = {
        "graphs": SetTable({(): (0,)}),
        "main": ValueTable({(): 0}),
        "all_nodes": SetTable({(): tuple(nodes)}),
        "all_tensors": SetTable({(): tuple(tensors)}),
        "nodes": SetTable({0: tuple(nodes)}),
        "inputs": SetTable({0: tuple(dict.fromkeys(graph.inputs))}),
        "outputs": SetTable({0: graph.outputs}),
        "initializers": SetTable({0: graph.initializers}),
        "scope": values(dict.fromkeys(tensors, 0)),
        "graph_of": values(dict.fromkeys(nodes, 0)),
        "ins": sets(ins),
        "outs": sets(outs),
        "consumers": SetTable(inverse(ins)),
        "producers": SetTable(inverse(outs)),
        "writes": SetTable({t: tuple(p for p, (_, u) in enumerate(ports) if u == t) for t in tensors}),
        "writer": ValueTable({p: n for p, (n, _) in enumerate(ports)}),
        "bodies": SetTable({}),
        "body_names": SetTable({}),
        "graph_attribute": ValueTable({}),
        "body_inputs": ValueTable({0: len(graph.inputs)}),
        "input_positions": ValueTable({0: tuple(range(len(graph.inputs)))}),
        "input_at": ValueTable({(0, i): t for i, t in enumerate(graph.inputs)}),
        "ports": SetTable({n: tuple(p for p, (m, _) in enumerate(ports) if m == n) for n in nodes}),
        "output_position": ValueTable({p: sum(m == n for m, _ in ports[:p]) for p, (n, _) in enumerate(ports)}),
        "operands": ValueTable({n: len(graph.reads[n]) for n in nodes}),
        "results": ValueTable({n: len(graph.writes[n]) for n in nodes}),
        "operand_positions": SetTable({}),
        "float_attribute": ValueTable({}),
        "all_zero": ValueTable({}),
        "hidden": SetTable({}),
        "relisted": SetTable({(): tuple(t for t in tensors if graph.inputs.count(t) > 1)}),
        "input_entries": ValueTable(count(graph.inputs)),
        "initializer_entries": ValueTable(count(graph.initializers)),
        "output_count": ValueTable({0: len(graph.outputs)}),
        "output_positions": ValueTable({0: tuple(range(len(graph.outputs)))}),
        "output_at": ValueTable({(0, i): t for i, t in enumerate(graph.outputs)}),
        "functions": SetTable({(): (0,)}),
        "definitions": ValueTable({0: 2 if graph.marked else 1}),
        "unresolved": ValueTable({**mark}),
        "operator": ValueTable({n: "RandomNormal" if mark[n] else "Relu" for n in nodes}),
        "applications": SetTable({"Relu": tuple(n for n in nodes if not mark[n])}),
        "schema_determinism": ValueTable({n: "non-deterministic" if mark[n] else "deterministic" for n in nodes}),
        "known": ValueTable(dict.fromkeys(nodes, True)),
        "version": ValueTable(dict.fromkeys(nodes, 14)),
        "given_inputs": SetTable({}),
        "given_outputs": SetTable({}),
        "int_attribute": ValueTable({}),
        "input": ValueTable({}),
        "constant": ValueTable({}),
        "element_type": ValueTable({t: Unknown("nothing is said of types") for t in tensors}),
    }
    tables.update(overrides or {})
    providers: dict[str, Callable[[], Table]] = {name: (lambda table=table: table) for name, table in tables.items()}
    return Structure(providers, lambda sort, element: f"{sort} {element}")


def facts_of(expr: Expr, functions: dict[str, FunctionDeclaration], seen: set[str] | None = None) -> set[str]:
    """The facts that an expression depends on, through definitions and inductive predicates."""
    seen = set() if seen is None else seen
    if expr.head == "call" and str(expr.args[0]) in functions and expr.args[0] not in seen:
        declaration = functions[str(expr.args[0])]
        seen.add(declaration.name)
        if declaration.body is not None:
            facts_of(declaration.body, functions, seen)
    for child in expr.children():
        facts_of(child, functions, seen)
    return {name for name in seen if functions[name].kind == "fact"}
