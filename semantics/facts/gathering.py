"""All facts of a model gathered into one structure: what `spec/1-syntax*.sonnx` declare of graphs, nodes, operators,
functions."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from sonnx.spec.language.syntax import Sort

from ..errors import InternalError
from ..model.elements import elements, field, required
from ..model.graph import Attribute, Constant, Definition, GraphId, Model, Node, NodeId, TensorId
from ..model.path import operator_text, quote
from ..model.schemas import (
    Formal,
    Schema,
    is_guest,
    newest_ir_version,
    newest_opset,
    normal_domain,
    schema_at,
    since_version,
)
from .structure import Element, Key, SetTable, Structure, Table, Unknown, Value, ValueTable
from .types import ClaimsSource, Differences, differences, schema_tables, type_tables, typing_tables, value_type_tables

# ---- Graphs, nodes and operators: reading, writing, lists, attributes --------------------------

# Facts about operators: the section "Operators and attributes" of `spec/1-syntax.sonnx`, read off G and the schemas.


def operator_tables(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the sections "Operators and attributes" and "Types, shapes, constants".

    claims: the result of shape inference, a function that waits for it, or None when it did not run.
    """
    return _operators(model) | type_tables(model, claims)


def _operators(model: Model) -> dict[str, Callable[[], Table]]:
    def per_node(value: Callable[[Node], Value | None]) -> Callable[[], Table]:
        return lambda: ValueTable({i: v for i, node in enumerate(model.nodes) if (v := value(node)) is not None})

    def names(members: Callable[[Node], Iterable[Element]]) -> Callable[[], Table]:
        return lambda: SetTable({i: row for i, node in enumerate(model.nodes) if (row := tuple(members(node)))})

    def pairs(rows: Callable[[Node], Iterable[tuple[str, Value]]]) -> Callable[[], Table]:
        return lambda: ValueTable({(i, key): v for i, node in enumerate(model.nodes) for key, v in rows(node)})

    return {
        "operator": per_node(operator),
        "applications": lambda: SetTable(_applications(model)),
        "known": per_node(lambda node: schema_at(node) is not None),
        "version": per_node(_version),
        "schema_determinism": per_node(_determinism),
        "attributes": names(lambda node: it.attributes if (it := schema_at(node)) else ()),
        "written": names(lambda node: node.attributes),
        "unwritten": names(lambda node: _unwritten(node, defaulted=False)),
        "defaulted": names(lambda node: _unwritten(node, defaulted=True)),
        "int_attribute": pairs(lambda node: _values(node, "INT")),
        "float_attribute": pairs(lambda node: _values(node, "FLOAT")),
        "text_attribute": pairs(lambda node: _values(node, "STRING")),
        "ints_attribute": pairs(lambda node: _values(node, "INTS")),
        "texts_attribute": pairs(lambda node: _values(node, "STRINGS")),
        "positions": lambda: SetTable(dict(_positions(model))),
        "given_inputs": names(lambda node: _ports_of(node).given_inputs),
        "given_outputs": names(lambda node: _ports_of(node).given_outputs),
        "absent_inputs": names(lambda node: _ports_of(node).absent_inputs),
        "input": pairs(lambda node: ((name, _tensor(node.inputs[i])) for name, i in _ports_of(node).first_inputs)),
        "output": pairs(lambda node: ((name, _tensor(node.outputs[i])) for name, i in _ports_of(node).first_outputs)),
        "type_variables": names(lambda node: (variable for variable, _ in _shared(node))),
        "typed": lambda: SetTable(dict(_typed(model))),
        "first_typed": lambda: ValueTable({key: row[0] for key, row in _typed(model)}),
    }


# ---- Operator and schema ----------------------------------------------------------------------


def operator(node: Node) -> str:
    """The operator of a node, with its domain in front where that is not ONNX's own."""
    domain = normal_domain(node.domain)
    return f"{domain}::{node.op_type}" if domain else node.op_type


def _applications(model: Model) -> dict[Key, tuple[Element, ...]]:
    by_operator: dict[str, list[NodeId]] = {}
    for i, node in enumerate(model.nodes):
        by_operator.setdefault(operator(node), []).append(i)
    return {name: tuple(row) for name, row in by_operator.items()}


def _undefined(node: Node) -> Unknown:
    return Unknown(f"ONNX does not define the operator of {node.path} in the imported operator set")


def _version(node: Node) -> Value:
    return node.version if node.version is not None else _undefined(node)


def _determinism(node: Node) -> Value:
    form = schema_at(node)
    return form.determinism if form else _undefined(node)


# ---- Attributes -------------------------------------------------------------------------------


@cache
def _optional(form: Schema | None) -> tuple[tuple[str, bool], ...]:
    """The attributes that are not required, each with whether the schema states a default."""
    return tuple((a.name, a.default is not None) for a in form.attributes.values() if not a.required) if form else ()


def _unwritten(node: Node, *, defaulted: bool) -> Iterator[str]:
    for name, has_default in _optional(schema_at(node)):
        if name not in node.attributes and (has_default or not defaulted):
            yield name


def _values(node: Node, kind: str) -> Iterator[tuple[str, Value]]:
    """The attributes of one kind with the value in force, written or default."""
    for name, attribute in node.attributes.items():
        if attribute.kind == kind:
            value = _value(attribute)
            yield name, value if value is not None else Unknown(f"the attribute {name!a} of {node.path} is left out")
    for name, default in _defaults(schema_at(node), kind):
        if name not in node.attributes:
            yield name, default


@cache
def _defaults(form: Schema | None, kind: str) -> tuple[tuple[str, Value], ...]:
    formals = form.attributes.values() if form else ()
    stated = ((a.name, _value(a.default)) for a in formals if a.kind == kind and a.default)
    return tuple((name, value) for name, value in stated if value is not None)


def _value(attribute: Attribute) -> Value | None:
    """The value of an attribute as an element of a structure; None where the source elides it."""
    value = attribute.value
    match attribute.kind:
        case "INT" if isinstance(value, int):
            return value
        case "FLOAT" if isinstance(value, (int, float)):
            return str(np.float32(value))
        case "STRING" if isinstance(value, bytes):
            return _text(value)
        case "INTS" if isinstance(value, tuple):
            return tuple(item for item in value if isinstance(item, int))
        case "STRINGS" if isinstance(value, tuple):
            return tuple(_text(item) for item in value if isinstance(item, bytes))
        case _:
            return None


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _positions(model: Model) -> Iterator[tuple[Key, tuple[Element, ...]]]:
    for i, node in enumerate(model.nodes):
        for kind in ("INTS", "STRINGS"):
            for name, value in _values(node, kind):
                if isinstance(value, tuple):
                    yield (i, name), tuple(range(len(value)))


# ---- Inputs and outputs -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ports:
    """The assignment of actual ports to the formal ones of a schema; positions are those of the actual lists.

    sharing: the type variables that several actual ones have, each with its positions in inputs and outputs together.
    """

    given_inputs: tuple[str, ...] = ()
    given_outputs: tuple[str, ...] = ()
    absent_inputs: tuple[str, ...] = ()
    first_inputs: tuple[tuple[str, int], ...] = ()
    first_outputs: tuple[tuple[str, int], ...] = ()
    sharing: tuple[tuple[str, tuple[int, ...]], ...] = ()


def _ports_of(node: Node) -> _Ports:
    present = [tuple([t is not None for t in actual]) for actual in (node.inputs, node.outputs)]
    return _assigned(schema_at(node), *present)


@lru_cache(maxsize=4096)
def _assigned(form: Schema | None, inputs: tuple[bool, ...], outputs: tuple[bool, ...]) -> _Ports:
    """The assignment for a schema and the positions that carry a name: the same for most nodes of an operator."""
    if form is None:
        return _Ports()
    ins, outs = _assign(form.inputs, inputs), _assign(form.outputs, outputs)
    variables: dict[str, list[int]] = {}
    for offset, side in ((0, ins), (len(inputs), outs)):
        for formal, positions in side:
            if formal.type in form.type_constraints and formal.homogeneous:
                variables.setdefault(formal.type, []).extend(offset + position for position in positions)
    return _Ports(
        given_inputs=tuple(dict.fromkeys(f.name for f, positions in ins if positions)),
        given_outputs=tuple(f.name for f, positions in outs if positions),
        absent_inputs=tuple(f.name for f, positions in ins if f.option == "optional" and not positions),
        first_inputs=tuple({f.name: positions[0] for f, positions in reversed(ins) if positions}.items()),
        first_outputs=tuple((f.name, positions[0]) for f, positions in outs if positions),
        sharing=tuple((variable, tuple(row)) for variable, row in variables.items() if len(row) > 1),
    )


def _assign(formals: Sequence[Formal], present: Sequence[bool]) -> list[tuple[Formal, tuple[int, ...]]]:
    """Each formal input (or output) with the positions that stand for it; a variadic one takes all the rest."""
    row = []
    for k, formal in enumerate(formals):
        end = len(present) if formal.option == "variadic" else k + 1
        each = formal.group or (formal,)
        for j, it in enumerate(each):
            row.append((it, tuple(i for i in range(k + j, end, len(each)) if i < len(present) and present[i])))
    return row


def _tensor(t: TensorId | None) -> TensorId:
    if t is None:
        raise InternalError("a position without a name stands for a formal input or output")
    return t


def _shared(node: Node) -> Iterator[tuple[str, tuple[TensorId, ...]]]:
    """The type variables that several distinct inputs and outputs have, each with them, in order."""
    both = node.inputs + node.outputs
    for variable, positions in _ports_of(node).sharing:
        row = tuple(dict.fromkeys([_tensor(both[position]) for position in positions]))
        if len(row) > 1:
            yield variable, row


def _typed(model: Model) -> Iterator[tuple[Key, tuple[TensorId, ...]]]:
    for i, node in enumerate(model.nodes):
        for variable, row in _shared(node):
            yield (i, variable), row


# Facts about graphs: the sections on graphs, on reading and writing and on lists of `spec/1-syntax.sonnx`.


Rows = dict[Key, tuple[Element, ...]]
Port = tuple[NodeId, int]
"""An output position of a node; ports are numbered over the model, by node and position."""


def graph_tables(model: Model) -> dict[str, Callable[[], Table]]:
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
    inside = model.graphs[graph]
    return tuple(t for t, _ in (*inside.initializers, *inside.sparse_initializers))


def _reads(node: Node) -> tuple[TensorId, ...]:
    return _present((*node.inputs, *node.captures))


def _writes(node: Node) -> tuple[TensorId, ...]:
    return _present(node.outputs)


def _present(row: Sequence[TensorId | None]) -> tuple[TensorId, ...]:
    return tuple(dict.fromkeys(t for t in row if t is not None))


def _inverse(rows: Iterable[tuple[TensorId | None, ...]]) -> Rows:
    """For each tensor the positions of the rows that hold it."""
    entries: dict[Key, list[Element]] = {}
    for number, row in enumerate(rows):
        for t in row:
            if t is not None:
                entries.setdefault(t, []).append(number)
    return {t: tuple(numbers) for t, numbers in entries.items()}


def _ports(numbered: Sequence[Port]) -> Rows:
    rows: dict[Key, list[Element]] = {}
    for port, (n, _) in enumerate(numbered):
        rows.setdefault(n, []).append(port)
    return {n: tuple(row) for n, row in rows.items()}


def _carrying(row: Sequence[TensorId | None]) -> tuple[int, ...]:
    """The positions that carry a name."""
    return tuple(i for i, t in enumerate(row) if t is not None)


# ---- Lists, names, functions ------------------------------------------------------------------


def _entries(model: Model, listed: Callable[[GraphId], Sequence[TensorId]]) -> dict[Key, Value]:
    """The number of times that each tensor is listed."""
    counts: dict[Key, int] = dict.fromkeys(range(len(model.tensors)), 0)
    for g in range(len(model.graphs)):
        for t in listed(g):
            counts[t] += 1
    return dict(counts)


def _relisted(model: Model) -> dict[TensorId, None]:
    again: dict[TensorId, None] = {}
    for g, graph in enumerate(model.graphs):
        for row in (graph.inputs, _stored(model, g)):
            again |= {tensor: None for tensor, count in Counter(row).items() if count > 1}
    return again


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
        while (outer := around.get(here)) is not None:
            here, holder = outer
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
    """The beginning of the paths of the tensors in the name scope of a node."""
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
        and schema_at(node) is None
        for n, node in enumerate(model.nodes)
    }


def _omitted(node: Node) -> Value:
    schema = schema_at(node)
    if schema is None:
        return Unknown(f"ONNX does not define the operator of {node.path} in the imported operator set")
    return _left_out(schema.inputs, node.inputs) + _left_out(schema.outputs, node.outputs)


def _left_out(formals: Sequence[Formal], actual: Sequence[TensorId | None]) -> int:
    return sum(
        1 for i, formal in enumerate(formals) if formal.option != "variadic" and (i >= len(actual) or actual[i] is None)
    )


# ---- The structure, and facts that only ONNX's own rules speak of ------------------------------

# Facts about the definitions of model-local functions, whether anything calls them or not.
# Of several definitions of one function the first counts.


Operator = tuple[str, str]
"""Domain and name."""

MEMBERS = ("idle", "unimported", "deprecated")
"""Sets of nodes that are stated of the nodes of a definition too; the name of the fact there ends with `_in`."""

NAMES = ("left_empty", "unlisted_attributes", "miskinded_attributes", "absent_attributes", "repeated_attributes",
         "valueless_attributes")  # fmt: skip
"""Sets of names of a node that are stated of the nodes of a definition too."""


def function_tables(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Definitions of functions"."""
    first: dict[tuple[str, str, str], Definition] = {}
    for key, definition in zip(model.functions, model.definitions, strict=True):
        first.setdefault(key, definition)
    definitions = tuple(first.values())
    own = {(domain, name) for domain, name, _ in first}
    outside = dict(model.opsets)
    for definition in model.definitions:
        outside = {**definition.opsets, **outside}

    @cache
    def compared() -> tuple[Differences, ...]:
        return tuple(differences(definition.nodes, first, listing=False) for definition in definitions)

    @cache
    def applied() -> tuple[tuple[Operator, ...], ...]:
        return tuple(tuple(sorted({(it.domain, it.op_type) for it in row.nodes})) for row in definitions)

    def versions(opsets: Callable[[Definition], Mapping[str, int]]) -> Callable[[], Table]:
        return lambda: ValueTable(
            {
                (f, operator_text(*it)): since_version(*it, opsets(definitions[f]).get(it[0])) or 0
                for f, row in enumerate(applied())
                for it in row
            }
        )

    def unknown(f: int) -> Iterable[str]:
        opsets = definitions[f].opsets
        for it in applied()[f]:
            if it in own or not newest_opset(it[0]):
                continue
            if is_guest(*it) or since_version(*it, opsets.get(it[0])) is None:
                yield operator_text(*it)

    def misfits(f: int, n: NodeId) -> bool:
        node = definitions[f].nodes[n]
        called = first[node.domain, node.op_type, node.overload]
        return len(node.inputs) > called.inputs or len(node.outputs) > called.outputs

    def rows(row: Callable[[int], Iterable[str]]) -> Callable[[], Table]:
        return lambda: SetTable({f: tuple(row(f)) for f in range(len(definitions))})

    def paths(nodes: Callable[[int], Iterable[NodeId]]) -> Callable[[], Table]:
        return rows(lambda f: (definitions[f].nodes[n].path for n in nodes(f)))

    def names(fact: str) -> Callable[[], Table]:
        return rows(
            lambda f: (
                f"{name} of {definitions[f].nodes[n].path}"
                for n, row in compared()[f].sets.get(fact, {}).items()
                if isinstance(n, int)
                for name in row
            )
        )

    def members(fact: str) -> Callable[[], Table]:
        return paths(lambda f: compared()[f].members.get(fact, ()))

    return {
        "applied": rows(lambda f: (operator_text(*it) for it in applied()[f])),
        "version_in": versions(lambda definition: definition.opsets),
        "version_outside": versions(lambda _: outside),
        "unknown_operators": rows(unknown),
        "repeated_formals": rows(lambda f: definitions[f].repeated),
        "respelled_in": rows(lambda f: definitions[f].respelled),
        "early_in": rows(lambda f: definitions[f].early),
        "reassigned_in": rows(lambda f: definitions[f].reassigned),
        "never_written_in": rows(lambda f: definitions[f].never_written),
        "miscounted_in": paths(lambda f: compared()[f].limits),
        "misfitting_in": paths(
            lambda f: (n for n in compared()[f].members.get("misfitting_calls", ()) if misfits(f, n))
        ),
        **{f"{fact}_in": members(fact) for fact in MEMBERS},
        **{f"{fact}_in": names(fact) for fact in NAMES},
    }


# Facts about stored tensors: initializers and the tensors that attributes hold.


@dataclass(frozen=True, slots=True)
class Store:
    """A stored tensor with the tensor or node that it belongs to; `path` is the place of that."""

    name: str
    path: str
    constant: Constant
    tensor: TensorId | None = None
    node: NodeId | None = None

    @property
    def values(self) -> Constant:
        """The dense part that holds the elements."""
        return self.constant.parts[0] if self.constant.parts is not None else self.constant


def stores(model: Model) -> tuple[Store, ...]:
    """All stored tensors: initializers by graph, then attributes by node."""
    return (*_initializers(model), *_held(model))


def _initializers(model: Model) -> Iterator[Store]:
    for graph in model.graphs:
        for tensor, constant in (*graph.initializers, *graph.sparse_initializers):
            value = model.tensors[tensor]
            yield Store(value.name, value.path, constant, tensor=tensor)


def _held(model: Model) -> Iterator[Store]:
    for n, node in enumerate(model.nodes):
        for name, attribute in node.attributes.items():
            if attribute.value is None and attribute.kind == "TENSOR" and model.source == "listing":
                yield Store(name, node.path, Constant("", ()), node=n)
            elif isinstance(attribute.value, Constant):
                yield Store(name, node.path, attribute.value, node=n)
            elif isinstance(attribute.value, tuple):
                for i, value in enumerate(attribute.value):
                    if isinstance(value, Constant):
                        yield Store(f"{name}[{i}]", node.path, value, node=n)


def store_tables(model: Model) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact of the section "Stored tensors"."""
    listed = cache(lambda: stores(model))

    def per_store(value: Callable[[Store], Value]) -> Callable[[], Table]:
        return lambda: ValueTable({s: value(store) for s, store in enumerate(listed())})

    def owned(owner: Callable[[Store], int | None]) -> Callable[[], Table]:
        def build() -> Table:
            rows: dict[Key, tuple[Element, ...]] = {}
            for s, store in enumerate(listed()):
                number = owner(store)
                if number is not None:
                    rows[number] = (*rows.get(number, ()), s)
            return SetTable(rows)

        return build

    return {
        "initial": owned(lambda store: store.tensor),
        "held": owned(lambda store: store.node),
        "store_name": per_store(lambda store: store.name),
        "store_element": per_store(_element),
        "store_sparse": per_store(lambda store: store.constant.sparse),
        "store_rank": per_store(lambda store: len(store.constant.dims)),
        "least_dimension": per_store(lambda store: min((*store.constant.dims, *store.values.dims), default=1)),
        "elements": per_store(lambda store: elements(store.values.dims)),
        "field": per_store(lambda store: store.values.form),
        "typed_field": per_store(lambda store: field(store.values.element)),
        "entries": per_store(_store_entries),
        "needed_entries": per_store(_needed),
        "indices_sound": per_store(lambda store: indices_sound(store.constant)),
    }


def _elided(store: Store) -> bool:
    """The source leaves the value out; a file that merely has no data names the field that would hold it."""
    return store.values.form == ""


def _element(store: Store) -> Value:
    if not store.values.element and _elided(store):
        return Unknown(f"the source leaves out the value of {store.path}")
    return store.values.element


def _store_entries(store: Store) -> Value:
    return Unknown(f"the source leaves out the value of {store.path}") if _elided(store) else store.values.stored


def _needed(store: Store) -> Value:
    return required(store.values.element, store.values.form, elements(store.values.dims))


# ---- Sparse tensors ---------------------------------------------------------------------------


def indices_sound(constant: Constant) -> Value:
    """True if the indices of a sparse tensor are one for each value, in range and ascending. A dense one has none."""
    if constant.parts is None:
        return Unknown("the source leaves out the indices") if constant.sparse else True
    values, indices = constant.parts
    if len(values.dims) != 1:
        return False
    count, shape = values.dims[0], indices.dims
    if count == 0 and elements(shape) in (0, 1) and not indices.stored:
        return True
    if indices.element != "int64" or shape not in ((count,), (count, len(constant.dims))):
        return False
    if indices.data is None and indices.storage is not None:
        return Unknown("the indices are not read")
    size = elements(shape)
    if not isinstance(indices.data, bytes) or len(indices.data) != 8 * size:
        return False
    return _ascending(struct.unpack(f"<{size}q", indices.data), constant.dims, linear=len(shape) == 1)


def _ascending(numbers: tuple[int, ...], dims: tuple[int, ...], *, linear: bool) -> bool:
    width = 1 if linear else len(dims)
    bounds = (elements(dims),) if linear else dims
    last: tuple[int, ...] | None = None
    for start in range(0, len(numbers), max(width, 1)):
        index = numbers[start : start + width]
        if not all(0 <= i < bound for i, bound in zip(index, bounds, strict=True)):
            return False
        if last is not None and index <= last:
            return False
        last = index
    return True


# The facts of `spec/1-syntax-onnx.sonnx`: those about the model, its graphs and names here, the others by concept.
# Each provider makes one pass when one of its facts is first asked for.


IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def onnx_tables(model: Model, claims: ClaimsSource) -> dict[str, Callable[[], Table]]:
    """A table builder for each fact that only ONNX's own rules speak about.

    claims: the result of shape inference, a function that waits for it, or None when it did not run.
    """
    return {
        **_model(model),
        **_graphs(model),
        **_order(model),
        **function_tables(model),
        **schema_tables(model),
        **typing_tables(model, claims),
        **store_tables(model),
    }


def onnx_places(model: Model) -> Mapping[str, Callable[[Element], str]]:
    """For each sort of this section the path of an element; an import is a thing of the whole model."""
    numbered = cache(lambda: stores(model))
    return {"Import": lambda _import: "/", "Store": lambda store: numbered()[int(store)].path}


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
    rows = {}
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
            rows[n] = tuple(row)
    return rows


# The facts of a model: everything that `spec/1-syntax.sonnx` declares as fact, gathered into one structure.


ASKING = frozenset((
    "rank", "dim", "axes",
    "type_name", "ill_typed", "admitted_types", "split_variables", "contradictions", "open_types", "has_type",
    "inference_ran", "objections", "refused", "admitted", "objection",
))  # fmt: skip
"""The facts that ask for the claims of shape inference whatever the model; others do where it says too little."""


def structure(model: Model, claims: ClaimsSource = None) -> Structure:
    """The structure of a model. claims: what shape inference says about its types; without it those stay unknown."""
    providers = {
        **graph_tables(model),
        **operator_tables(model, claims),
        **onnx_tables(model, claims),
        **value_type_tables(model),
    }
    return Structure(providers, _place(model))


def _place(model: Model) -> Callable[[Sort, Element], str]:
    """The path of an element; a function by its name, any other value as it is written."""
    numbered = cache(lambda: ports(model))
    places: Mapping[str, Callable[[Element], str]] = {
        "Graph": lambda g: model.graphs[int(g)].path,
        "Node": lambda n: model.nodes[int(n)].path,
        "Tensor": lambda t: model.tensors[int(t)].path,
        "Port": lambda p: _port(model, *numbered()[int(p)]),
        "Function": lambda f: _function(*functions(model)[int(f)]),
        "Text": lambda text: quote(str(text)),
        **onnx_places(model),
    }

    def place(sort: Sort, element: Element) -> str:
        spell = places.get(sort.name)
        if spell is not None:
            return spell(element)
        return str(element).lower() if isinstance(element, bool) else str(element)

    return place


def _port(model: Model, node: int, position: int) -> str:
    return f"{model.nodes[node].path}>{position}"


def _function(domain: str, name: str, overload: str) -> str:
    text = operator_text(domain, name)
    return f"{text}:{operator_text('', overload)}" if overload else text
