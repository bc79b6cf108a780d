"""Facts about graphs, nodes and tensors: who reads and writes what, lists, names, functions, order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from .. import paths
from ..facts import Facts, scope_of
from ..schema import VARIADIC, schema_of, unset_outputs
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
    for p, (_, _, t) in enumerate(ports):
        writes[t].append(p)
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
        "unset_at_zero": of_node(lambda n: unset_outputs(nodes[n], _body_inputs(f, n))),
        "input_entries": of_tensor(lambda t: input_entries[t]),
        "initializer_entries": of_tensor(lambda t: initializer_entries[t]),
        "shadowed": lambda: _shadowed(f),
        "output_count": of_graph(lambda g: len(graphs[g].outputs)),
        "output_positions": of_graph(lambda g: tuple(range(len(graphs[g].outputs)))),
        "output_at": listed(lambda: {(g, i): t for g, it in enumerate(graphs) for i, t in enumerate(it.outputs)}),
        "functions": single(tuple(range(len(functions)))),
        "definitions": at(lambda k: reading.functions.count(functions[k]), len(functions)),
        "unresolved": lambda: _unresolved(f),
        "omitted": of_node(lambda n: _omitted(f, n)),
        "body_inputs": of_graph(lambda g: len(graphs[g].inputs)),
    }


def _body_inputs(f: Facts, n: int) -> int | None:
    """How many inputs the attribute `body` of a node has."""
    node = f.reading.nodes[n]
    held = (f.reading.graphs[b] for b in node.bodies)
    return next((len(body.inputs) for body in held if body.path == paths.body(node.path, "body")), None)


def _shadowed(f: Facts) -> Find:
    """The tensors of the scopes around that bear the name of a tensor, the innermost scope first."""
    if len(f.reading.graphs) == 1:
        return lambda key: None
    named: dict[tuple[str, str], list[int]] = {}
    for t, tensor in enumerate(f.reading.tensors):
        named.setdefault((scope_of(tensor), tensor.name), []).append(t)

    def find(key: Key) -> Value:
        tensor = f.reading.tensors[key]  # type: ignore[index]
        found: list[Element] = []
        scope = f.outer.get(scope_of(tensor))
        while scope is not None:
            found += named.get((scope, tensor.name), ())
            scope = f.outer.get(scope)
        return tuple(found)

    return find


def _unresolved(f: Facts) -> Find:
    known = set(f.reading.functions)
    domains = {domain for domain, _, _ in known}

    def find(key: Key) -> Value:
        node = f.reading.nodes[key]  # type: ignore[index]
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


