"""Facts about graphs, nodes and tensors: who reads and writes what, lists, names, functions, order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from .. import paths
from ..facts import Facts, scope_of
from ..reader import Node
from ..schema import VARIADIC, schema_of
from ..values import UNKNOWN, Element, Find, Key, Value

Maker = Callable[[], Find]
Makers = dict[str, Maker]


def single(value: Value) -> Maker:
    """A fact without arguments."""
    return lambda: lambda key: value


def listed(rows: Callable[[], Mapping[Key, Value]]) -> Maker:
    """A fact whose rows are made when it is first asked for."""
    return lambda: rows().get


def at(row: Callable[[int], Value | None], count: int) -> Maker:
    """A fact of the things numbered 0 to count - 1."""

    def find(key: Key) -> Value | None:
        return row(key) if isinstance(key, int) and 0 <= key < count else None

    return lambda: find


def makers(f: Facts) -> Makers:
    """The tables of the sections on graphs, on reading and writing, and on lists, names and functions."""
    reading = f.reading
    graphs, nodes, tensors = reading.graphs, reading.nodes, reading.tensors
    functions = list(dict.fromkeys(reading.functions))

    def of_graph(row: Callable[[int], Value]) -> Maker:
        return at(row, len(graphs))

    def of_node(row: Callable[[int], Value]) -> Maker:
        return at(row, len(nodes))

    def of_tensor(row: Callable[[int], Value]) -> Maker:
        return at(row, len(tensors))

    inputs, initializers, outputs = (
        [tuple(dict.fromkeys(row)) for row in rows]
        for rows in ((g.inputs for g in graphs), (g.initializers for g in graphs), (g.outputs for g in graphs))
    )
    input_entries = Counter(t for graph in graphs for t in graph.inputs)
    initializer_entries = Counter(t for graph in graphs for t in graph.initializers)
    ports = [(n, i, t) for n, node in enumerate(nodes) for i, t in enumerate(node.outputs) if t is not None]
    writes: list[list[int]] = [[] for _ in tensors]
    written: list[list[int]] = [[] for _ in nodes]
    for p, (n, _, t) in enumerate(ports):
        writes[t].append(p)
        written[n].append(p)

    def operand(key: Key) -> Value | None:
        match key:
            case (int() as n, int() as i) if i in _carrying(nodes[n]):
                return nodes[n].inputs[i]
        return None

    return {
        "graphs": single(tuple(range(len(graphs)))),
        "main": single(0),
        "all_nodes": single(tuple(range(len(nodes)))),
        "all_tensors": single(tuple(range(len(tensors)))),
        "nodes": of_graph(lambda g: tuple(graphs[g].nodes)),
        "inputs": of_graph(lambda g: inputs[g]),
        "outputs": of_graph(lambda g: outputs[g]),
        "initializers": of_graph(lambda g: initializers[g]),
        "scope": of_tensor(lambda t: tensors[t].graph),
        "graph_of": of_node(lambda n: nodes[n].graph),
        "ins": of_node(lambda n: f.reads[n]),
        "outs": of_node(lambda n: f.writes[n]),
        "consumers": of_tensor(lambda t: tuple(f.readers[t])),
        "producers": of_tensor(lambda t: tuple(f.writers[t])),
        "writes": of_tensor(lambda t: tuple(writes[t])),
        "writer": at(lambda p: ports[p][0], len(ports)),
        "bodies": of_node(lambda n: tuple(nodes[n].bodies)),
        "body_names": of_node(lambda n: tuple(_attribute_of(f, n, b) for b in nodes[n].bodies)),
        "ports": of_node(lambda n: tuple(written[n])),
        "output_position": at(lambda p: ports[p][1], len(ports)),
        "operands": of_node(lambda n: len(nodes[n].inputs)),
        "results": of_node(lambda n: len(nodes[n].outputs)),
        "operand_positions": of_node(lambda n: _carrying(nodes[n])),
        "operand_at": lambda: operand,
        "input_entries": of_tensor(lambda t: input_entries[t]),
        "initializer_entries": of_tensor(lambda t: initializer_entries[t]),
        "relisted": lambda: lambda key: _relisted(f),
        "hidden": lambda: _hidden(f),
        "output_count": of_graph(lambda g: len(graphs[g].outputs)),
        "output_positions": of_graph(lambda g: tuple(range(len(graphs[g].outputs)))),
        "output_at": listed(lambda: {(g, i): t for g, it in enumerate(graphs) for i, t in enumerate(it.outputs)}),
        "functions": single(tuple(range(len(functions)))),
        "definitions": at(lambda k: reading.functions.count(functions[k]), len(functions)),
        "unresolved": lambda: _unresolved(f),
        "omitted": of_node(lambda n: _omitted(f, n)),
        "body_inputs": of_graph(lambda g: len(graphs[g].inputs)),
        "input_positions": of_graph(lambda g: tuple(range(len(graphs[g].inputs)))),
        "input_at": listed(lambda: {(g, i): t for g, it in enumerate(graphs) for i, t in enumerate(it.inputs)}),
    }


def _attribute_of(f: Facts, n: int, b: int) -> str:
    """The attribute of a node that holds a graph, as the path of the graph spells it after the node's."""
    for name, attribute in f.reading.nodes[n].attributes.items():
        own, listed_ = paths.body(f.reading.nodes[n].path, name), range(len(attribute.graphs))
        for path, shown in ((own, name), *((f"{own}[{i}]", f"{name}[{i}]") for i in listed_)):
            if f.reading.graphs[b].path == path:
                return shown
    return ""


def _carrying(node: Node) -> tuple[int, ...]:
    """The positions of the inputs of a node with bodies that carry a name."""
    return tuple(i for i, t in enumerate(node.inputs) if t is not None) if node.bodies else ()


def _relisted(f: Facts) -> tuple[int, ...]:
    again: dict[int, None] = {}
    for graph in f.reading.graphs:
        for row in (graph.inputs, graph.initializers):
            again |= {t: None for t, count in Counter(row).items() if count > 1}
    return tuple(again)


def _hidden(f: Facts) -> Find:
    """For what a node writes: the tensors of its name in the scopes around, the innermost first, that are visible where
    its scope is held: inputs, stored ones, and what is written before the node that holds the next scope inside."""
    graphs = f.reading.graphs
    if len(graphs) == 1:
        return lambda key: None
    named: dict[tuple[str, str], list[int]] = {}
    for t, tensor in enumerate(f.reading.tensors):
        named.setdefault((scope_of(tensor), tensor.name), []).append(t)
    place = {n: i for graph in graphs for i, n in enumerate(graph.nodes)}
    holder = {graph.path + "/": graph.holder for graph in graphs if graph.holder is not None}
    given = f.inputs | f.stored

    def visible(u: int, before: int) -> bool:
        return u in given or any(place[n] < before for n in f.writers[u])

    def find(key: Key) -> Value | None:
        if not isinstance(key, int):
            return None
        tensor = f.reading.tensors[key]
        elements: list[Element] = []
        scope = scope_of(tensor) if f.writers[key] else ""
        while scope in holder:
            before, scope = place[holder[scope]], f.outer[scope]
            elements += [u for u in named.get((scope, tensor.name), ()) if visible(u, before)]
        return tuple(elements)

    return find


def _unresolved(f: Facts) -> Find:
    known = set(f.reading.functions)
    domains = {domain for domain, _, _ in known}

    def find(key: Key) -> Value | None:
        if not isinstance(key, int):
            return None
        node = f.reading.nodes[key]
        called = (node.domain, node.op_type, node.overload) in known
        return node.domain in domains and not called and schema_of(node) is None

    return find


def _omitted(f: Facts, n: int) -> Value:
    node = f.reading.nodes[n]
    schema = schema_of(node)
    if schema is None:
        return UNKNOWN
    count = 0
    for formals, actual in ((schema.inputs, node.inputs), (schema.outputs, node.outputs)):
        given = [*actual, *[None] * len(formals)]
        count += sum(t is None and it.option != VARIADIC for it, t in zip(formals, given, strict=False))
    return count
