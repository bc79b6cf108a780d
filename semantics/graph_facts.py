"""Facts about graphs: the sections on graphs, on reading and writing and on lists of `spec/1-syntax.sonnx`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from .graph import GraphId, Model, Node, NodeId, TensorId
from .operator_facts import schema_of
from .path import quote
from .schemas import Formal, normal_domain
from .structure import Element, Key, SetTable, Table, Unknown, Value, ValueTable

Rows = dict[Key, tuple[Element, ...]]
Port = tuple[NodeId, int]
"""An output position of a node; ports are numbered over the model, by node and position."""


def providers(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact that the structure of G alone gives."""
    numbered = cache(lambda: ports(model))
    graphs, nodes, tensors = (range(len(part)) for part in (model.graphs, model.nodes, model.tensors))

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
        "unset_at_zero": lambda: SetTable({n: _unset_at_zero(model, node) for n, node in enumerate(model.nodes)}),
        "writer": lambda: ValueTable({port: n for port, (n, _) in enumerate(numbered())}),
        "input_entries": lambda: ValueTable(_entries(model, lambda g: model.graphs[g].inputs)),
        "initializer_entries": lambda: ValueTable(_entries(model, lambda g: _stored(model, g))),
        "shadowed": lambda: SetTable(_shadowed(model)),
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


def _unset_at_zero(model: Model, node: Node) -> tuple[TensorId, ...]:
    """ONNX Operators.md: Loop has the inputs M, cond, v_initial ...; Scan its initial states in front of its scan
    inputs, Scan 8 sequence_lens before those. The outputs begin with the final values of the loop-carried ones."""
    if normal_domain(node.domain) or node.op_type not in ("Loop", "Scan"):
        return ()
    body = next((model.graphs[g] for name, g in node.bodies if name == "body"), None)
    if node.op_type == "Loop":
        first = 2
        carried = len(body.inputs if body else node.inputs) - 2
    else:
        first = 1 if node.version == 8 else 0
        count = node.attributes.get("num_scan_inputs")
        scanned = count.value if count is not None and isinstance(count.value, int) else 0
        carried = (len(body.inputs) if body else len(node.inputs) - first) - scanned
    initial = node.inputs[first:]
    return _present(
        [t for i, t in enumerate(node.outputs[: max(carried, 0)]) if i >= len(initial) or initial[i] is None]
    )


# ---- Lists, names, functions ------------------------------------------------------------------


def _entries(model: Model, listed: Callable[[GraphId], Sequence[TensorId]]) -> dict[Key, Value]:
    """How often each tensor is listed."""
    found: dict[Key, int] = dict.fromkeys(range(len(model.tensors)), 0)
    for g in range(len(model.graphs)):
        for t in listed(g):
            found[t] += 1
    return dict(found)


def _shadowed(model: Model) -> Rows:
    """The tensors of enclosing name scopes with the name of a tensor. A name scope is a graph or one call of a
    function; a path tells which, and a call is enclosed by none."""
    if len(model.graphs) == 1:
        return {}
    scopes: dict[str, dict[str, list[TensorId]]] = {}
    for t, tensor in enumerate(model.tensors):
        scopes.setdefault(tensor.path.removesuffix(quote(tensor.name)), {}).setdefault(tensor.name, []).append(t)
    outer: dict[str, str] = {}
    for graph in model.graphs[1:]:
        if graph.holder is not None:
            outer[graph.path + "/"] = _surroundings(model, graph.holder)
    rows: Rows = {}
    for prefix, names in scopes.items():
        around, enclosing = prefix, []
        while (next_prefix := outer.get(around)) is not None:
            around = next_prefix
            enclosing.append(scopes.get(around, {}))
        for name, own in names.items():
            found = tuple(t for scope in enclosing for t in scope.get(name, ()))
            if found:
                rows.update(dict.fromkeys(own, found))
    return rows


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
