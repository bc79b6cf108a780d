"""Facts about graphs: the sections on graphs, on reading and writing and on lists of `spec/1-syntax.sonnx`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache

from ..model.graph import GraphId, Model, Node, NodeId, TensorId
from ..model.path import quote
from ..model.schemas import Formal, normal_domain
from .operators import schema_of
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable

Rows = dict[Key, tuple[Element, ...]]
Port = tuple[NodeId, int]
"""An output position of a node; ports are numbered over the model, by node and position."""


def providers(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact that the structure of G alone gives."""
    numbered = cache(lambda: ports(model))
    graphs, nodes, tensors = (range(len(part)) for part in (model.graphs, model.nodes, model.tensors))

    def holders() -> list[tuple[NodeId, Node]]:
        return [(n, node) for n, node in enumerate(model.nodes) if node.bodies]

    def per_graph(read: Callable[[int], Iterable[Element]]) -> Callable[[], Table]:
        return lambda: SetTable({g: tuple(dict.fromkeys(read(g))) for g in graphs})

    return {
        "graphs": lambda: SetTable({(): tuple(graphs)}),
        "main": lambda: ValueTable({(): 0}),
        "all_nodes": lambda: SetTable({(): tuple(nodes)}),
        "all_tensors": lambda: SetTable({(): tuple(tensors)}),
        "nodes": per_graph(lambda g: model.graphs[g].nodes),
        "inputs": per_graph(lambda g: model.graphs[g].inputs),
        "outputs": per_graph(lambda g: model.graphs[g].outputs),
        "initializers": per_graph(lambda g: _stored(model, g)),
        "scope": lambda: ValueTable({t: tensor.graph for t, tensor in enumerate(model.tensors)}),
        "graph_of": lambda: ValueTable({n: node.graph for n, node in enumerate(model.nodes)}),
        "ins": lambda: SetTable(dict(enumerate(map(_reads, model.nodes)))),
        "outs": lambda: SetTable(dict(enumerate(map(_writes, model.nodes)))),
        "consumers": lambda: SetTable(_inverse(map(_reads, model.nodes))),
        "producers": lambda: SetTable(_inverse(map(_writes, model.nodes))),
        "writes": lambda: SetTable(_inverse([(model.nodes[n].outputs[at],) for n, at in numbered()])),
        "bodies": lambda: SetTable({n: tuple(g for _, g in node.bodies) for n, node in enumerate(model.nodes)}),
        "body_names": lambda: SetTable({n: row for n, node in holders() if (row := tuple(a for a, _ in node.bodies))}),
        "writer": lambda: ValueTable({port: n for port, (n, _) in enumerate(numbered())}),
        "ports": lambda: SetTable(_ports(numbered())),
        "output_position": lambda: ValueTable({port: at for port, (_, at) in enumerate(numbered())}),
        "operands": lambda: ValueTable({n: len(node.inputs) for n, node in enumerate(model.nodes)}),
        "results": lambda: ValueTable({n: len(node.outputs) for n, node in enumerate(model.nodes)}),
        "operand_positions": lambda: SetTable({n: _carrying(node.inputs) for n, node in holders()}),
        "operand_at": lambda: ValueTable(
            {(n, i): t for n, node in holders() for i, t in enumerate(node.inputs) if t is not None}
        ),
        "input_entries": lambda: ValueTable(_entries(model, lambda g: model.graphs[g].inputs)),
        "initializer_entries": lambda: ValueTable(_entries(model, lambda g: _stored(model, g))),
        "relisted": lambda: SetTable({(): tuple(_relisted(model))}),
        "hidden": lambda: SetTable(dict(_hidden(model))),
        "body_inputs": lambda: ValueTable({g: len(graph.inputs) for g, graph in enumerate(model.graphs)}),
        "input_positions": lambda: ValueTable({g: tuple(range(len(it.inputs))) for g, it in enumerate(model.graphs)}),
        "input_at": lambda: ValueTable(
            {(g, i): t for g, it in enumerate(model.graphs) for i, t in enumerate(it.inputs)}
        ),
        "output_count": lambda: ValueTable({g: len(graph.outputs) for g, graph in enumerate(model.graphs)}),
        "output_positions": lambda: ValueTable({g: tuple(range(len(it.outputs))) for g, it in enumerate(model.graphs)}),
        "output_at": lambda: ValueTable(
            {(g, i): t for g, it in enumerate(model.graphs) for i, t in enumerate(it.outputs)}
        ),
        "functions": lambda: SetTable({(): tuple(range(len(functions(model))))}),
        "definitions": lambda: ValueTable({f: model.functions.count(it) for f, it in enumerate(functions(model))}),
        "unresolved": lambda: ValueTable(_unresolved(model)),
        "omitted": lambda: ValueTable({n: _omitted(node) for n, node in enumerate(model.nodes)}),
    }


# ---- Numbering --------------------------------------------------------------------------------


def ports(model: Model) -> tuple[Port, ...]:
    """The output positions that carry a name, in the order of their numbers."""
    return tuple((n, at) for n, node in enumerate(model.nodes) for at, t in enumerate(node.outputs) if t is not None)


def functions(model: Model) -> tuple[tuple[str, str, str], ...]:
    """The model-local functions by domain, name and overload, in the order of their numbers."""
    return tuple(dict.fromkeys(model.functions))


# ---- Reading and writing ----------------------------------------------------------------------


def _stored(model: Model, graph: GraphId) -> tuple[TensorId, ...]:
    found = model.graphs[graph]
    return tuple(t for t, _ in (*found.initializers, *found.sparse_initializers))


def _reads(node: Node) -> tuple[TensorId, ...]:
    return _present((*node.inputs, *node.captures))


def _writes(node: Node) -> tuple[TensorId, ...]:
    return _present(node.outputs)


def _present(row: Sequence[TensorId | None]) -> tuple[TensorId, ...]:
    return tuple(dict.fromkeys(t for t in row if t is not None))


def _inverse(rows: Iterable[tuple[TensorId | None, ...]]) -> Rows:
    """For each tensor the positions of the rows that hold it."""
    found: dict[Key, list[Element]] = {}
    for number, row in enumerate(rows):
        for t in row:
            if t is not None:
                found.setdefault(t, []).append(number)
    return {t: tuple(numbers) for t, numbers in found.items()}


def _ports(numbered: Sequence[Port]) -> Rows:
    found: dict[Key, list[Element]] = {}
    for port, (n, _) in enumerate(numbered):
        found.setdefault(n, []).append(port)
    return {n: tuple(row) for n, row in found.items()}


def _carrying(row: Sequence[TensorId | None]) -> tuple[int, ...]:
    """The positions that carry a name."""
    return tuple(i for i, t in enumerate(row) if t is not None)


# ---- Lists, names, functions ------------------------------------------------------------------


def _entries(model: Model, listed: Callable[[GraphId], Sequence[TensorId]]) -> dict[Key, Value]:
    """How often each tensor is listed."""
    found: dict[Key, int] = dict.fromkeys(range(len(model.tensors)), 0)
    for g in range(len(model.graphs)):
        for t in listed(g):
            found[t] += 1
    return dict(found)


def _relisted(model: Model) -> dict[TensorId, None]:
    found: dict[TensorId, None] = {}
    for g, graph in enumerate(model.graphs):
        for row in (graph.inputs, _stored(model, g)):
            found |= {tensor: None for tensor, count in Counter(row).items() if count > 1}
    return found


def _hidden(model: Model) -> Iterator[tuple[Key, tuple[Element, ...]]]:
    """For what nodes write, the tensors of that name in the name scopes around that are visible where the scope is
    held. A name scope is a graph or one call of a function; a path tells which, and a call is enclosed by none."""
    if len(model.graphs) == 1:
        return
    scopes: dict[str, dict[str, list[TensorId]]] = {}
    for t, tensor in enumerate(model.tensors):
        scopes.setdefault(tensor.path.removesuffix(quote(tensor.name)), {}).setdefault(tensor.name, []).append(t)
    around = {
        graph.path + "/": (_surroundings(model, graph.holder), graph.holder)
        for graph in model.graphs
        if graph.holder is not None
    }
    places = {n: place for graph in model.graphs for place, n in enumerate(graph.nodes)}
    listed = {t for g, graph in enumerate(model.graphs) for t in (*graph.inputs, *_stored(model, g))}
    written: dict[TensorId, int] = {}
    for n, node in enumerate(model.nodes):
        for t in _writes(node):
            written[t] = min(places[n], written.get(t, places[n]))
    for prefix, names in scopes.items():
        enclosing: list[tuple[Mapping[str, list[TensorId]], int]] = []
        here = prefix
        while (found := around.get(here)) is not None:
            here, holder = found
            enclosing.append((scopes.get(here, {}), places[holder]))
        for name, own in names.items() if enclosing else ():
            seen = tuple(
                u
                for scope, place in enclosing
                for u in scope.get(name, ())
                if u in listed or written.get(u, place) < place
            )
            if seen:
                yield from ((t, seen) for t in own if t in written)


def _surroundings(model: Model, number: NodeId) -> str:
    """What the paths of the tensors in the name scope of a node begin with."""
    node = model.nodes[number]
    path = model.graphs[node.graph].path
    graph = path if path.endswith("/") else path + "/"
    return max((call + "!" for call in node.calls if call.startswith(graph)), key=len, default=graph)


def _unresolved(model: Model) -> dict[Key, Value]:
    known: Mapping[tuple[str, str, str], None] = dict.fromkeys(
        (normal_domain(domain), name, overload) for domain, name, overload in model.functions
    )
    domains = {domain for domain, _, _ in known}
    return {
        n: normal_domain(node.domain) in domains
        and (normal_domain(node.domain), node.op_type, node.overload) not in known
        and schema_of(node) is None
        for n, node in enumerate(model.nodes)
    }


def _omitted(node: Node) -> Value:
    schema = schema_of(node)
    if schema is None:
        return Unknown(f"ONNX does not define the operator of {node.path} in the imported operator set")
    return _left_out(schema.inputs, node.inputs) + _left_out(schema.outputs, node.outputs)


def _left_out(formals: Sequence[Formal], actual: Sequence[TensorId | None]) -> int:
    return sum(
        1 for i, formal in enumerate(formals) if formal.option != "variadic" and (i >= len(actual) or actual[i] is None)
    )
