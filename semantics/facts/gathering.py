"""All facts of a model gathered into one structure: what `spec/1-syntax*.sonnx` declare of graphs, nodes, operators,
functions."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from typing import TypeVar

import numpy as np
from sonnx.spec.language.syntax import Sort

from ..errors import InternalError
from ..model.elements import ELEMENT_TYPES, elements, field, required
from ..model.graph import Attribute, Constant, Definition, Graph, Model, Node, NodeId, TensorId, ValueType
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

Build = Callable[[], Table]
"""Makes the table of a fact when it is first asked for."""
Thing = TypeVar("Thing")

# ---- Tables of what is numbered: graphs, nodes, tensors, functions -----------------------------


def single(value: Value) -> Build:
    """The table of a fact without arguments."""
    return lambda: ValueTable({(): value})


def numbers_of(things: Mapping[int, Thing]) -> Build:
    """All numbers as one set."""
    return lambda: SetTable({(): tuple(things)})


def column(things: Mapping[int, Thing], value: Callable[[Thing], Value]) -> Build:
    """A value of each thing."""
    return lambda: ValueTable({number: value(thing) for number, thing in things.items()})


def rows(things: Mapping[int, Thing], members: Callable[[Thing], Iterable[Element]]) -> Build:
    """A set of each thing."""
    return lambda: SetTable({number: row for number, thing in things.items() if (row := tuple(members(thing)))})


def grid(things: Mapping[int, Thing], cells: Callable[[Thing], Iterable[tuple[Element, Value]]]) -> Build:
    """The values that each thing has for a second argument."""
    return lambda: ValueTable({(number, at): v for number, thing in things.items() for at, v in cells(thing)})


# ---- Graphs, nodes and operators: reading, writing, lists, attributes --------------------------

# Facts about operators: the section "Operators and attributes" of `spec/1-syntax.sonnx`, read off G and the schemas.


def operator_tables(model: Model, claims: ClaimsSource) -> dict[str, Build]:
    """A table builder for each fact of the sections "Operators and attributes" and "Types, shapes, constants".

    claims: the result of shape inference, a function that waits for it, or None when it did not run.
    """
    return _operators(model) | type_tables(model, claims)


def _operators(model: Model) -> dict[str, Build]:
    nodes = dict(enumerate(model.nodes))

    return {
        "operator": column(nodes, operator),
        "applications": lambda: SetTable(_applications(model)),
        "known": column(nodes, lambda node: schema_at(node) is not None),
        "version": column(nodes, _version),
        "schema_determinism": column(nodes, _determinism),
        "attributes": rows(nodes, lambda node: it.attributes if (it := schema_at(node)) else ()),
        "written": rows(nodes, lambda node: node.attributes),
        "unwritten": rows(nodes, lambda node: _unwritten(node, defaulted=False)),
        "defaulted": rows(nodes, lambda node: _unwritten(node, defaulted=True)),
        "int_attribute": grid(nodes, lambda node: _values(node, "INT")),
        "float_attribute": grid(nodes, lambda node: _values(node, "FLOAT")),
        "text_attribute": grid(nodes, lambda node: _values(node, "STRING")),
        "ints_attribute": grid(nodes, lambda node: _values(node, "INTS")),
        "texts_attribute": grid(nodes, lambda node: _values(node, "STRINGS")),
        "positions": lambda: SetTable(dict(_positions(model))),
        "given_inputs": rows(nodes, lambda node: _ports_of(node).given_inputs),
        "given_outputs": rows(nodes, lambda node: _ports_of(node).given_outputs),
        "absent_inputs": rows(nodes, lambda node: _ports_of(node).absent_inputs),
        "input": grid(
            nodes, lambda node: ((name, _tensor(node.inputs[i])) for name, i in _ports_of(node).first_inputs)
        ),
        "output": grid(
            nodes, lambda node: ((name, _tensor(node.outputs[i])) for name, i in _ports_of(node).first_outputs)
        ),
        "type_variables": rows(nodes, lambda node: (variable for variable, _ in _shared(node))),
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


def graph_tables(model: Model) -> dict[str, Build]:
    """A table builder for each fact that the structure of G alone gives."""
    return {**_of_graphs(model), **_of_nodes(model), **_of_ports(model), **_of_names(model)}


def _of_graphs(model: Model) -> dict[str, Build]:
    graphs = dict(enumerate(model.graphs))
    return {
        "graphs": numbers_of(graphs),
        "main": single(0),
        "nodes": rows(graphs, lambda graph: _present(graph.nodes)),
        "inputs": rows(graphs, lambda graph: _present(graph.inputs)),
        "outputs": rows(graphs, lambda graph: _present(graph.outputs)),
        "initializers": rows(graphs, lambda graph: _present(_stored(graph))),
        "body_inputs": column(graphs, lambda graph: len(graph.inputs)),
        "input_positions": column(graphs, lambda graph: tuple(range(len(graph.inputs)))),
        "input_at": grid(graphs, lambda graph: enumerate(graph.inputs)),
        "output_count": column(graphs, lambda graph: len(graph.outputs)),
        "output_positions": column(graphs, lambda graph: tuple(range(len(graph.outputs)))),
        "output_at": grid(graphs, lambda graph: enumerate(graph.outputs)),
        "declared_code": grid(graphs, lambda graph: _declared(model, graph, _code)),
        "declared_sizes": grid(graphs, lambda graph: _declared(model, graph, _sizes)),
    }


def _declared(model: Model, graph: Graph, read: Callable[[ValueType], Value | None]) -> Iterator[tuple[Element, Value]]:
    """What is read off the declared types of the outputs of a graph, where they state it."""
    for i, t in enumerate(graph.outputs):
        stated = graph.output_types[i] if i < len(graph.output_types) else None
        declared = stated or model.tensors[t].declared
        value = None if declared is None else read(declared)
        if value is not None:
            yield i, value


def _code(declared: ValueType) -> int | None:
    row = ELEMENT_TYPES.get(declared.element) if declared.kind == "tensor" else None
    return None if row is None else row.code


def _sizes(declared: ValueType) -> tuple[int, ...] | None:
    if declared.shape is None:
        return None
    return tuple(size if isinstance(size, int) and size >= 0 else 0 for size in declared.shape)


def _of_nodes(model: Model) -> dict[str, Build]:
    nodes = dict(enumerate(model.nodes))
    holders = {n: node for n, node in nodes.items() if node.bodies}
    return {
        "all_nodes": numbers_of(nodes),
        "graph_of": column(nodes, lambda node: node.graph),
        "ins": rows(nodes, _reads),
        "outs": rows(nodes, _writes),
        "consumers": lambda: SetTable(_inverse(map(_reads, model.nodes))),
        "producers": lambda: SetTable(_inverse(map(_writes, model.nodes))),
        "bodies": rows(holders, lambda node: (g for _, g in node.bodies)),
        "body_names": rows(holders, lambda node: (attribute for attribute, _ in node.bodies)),
        "operands": column(nodes, lambda node: len(node.inputs)),
        "results": column(nodes, lambda node: len(node.outputs)),
        "operand_positions": rows(holders, lambda node: (i for i, _ in _carrying(node.inputs))),
        "operand_at": grid(holders, lambda node: _carrying(node.inputs)),
        "result_positions": column(holders, lambda node: tuple(i for i, _ in _carrying(node.outputs))),
        "result_at": grid(holders, lambda node: _carrying(node.outputs)),
        "graph_attribute": grid(holders, lambda node: node.bodies),
        "omitted": column(nodes, _omitted),
    }


def _of_ports(model: Model) -> dict[str, Build]:
    numbered = cache(lambda: ports(model))
    return {
        "writes": lambda: SetTable(_inverse([(model.nodes[n].outputs[at],) for n, at in numbered()])),
        "writer": lambda: ValueTable({port: n for port, (n, _) in enumerate(numbered())}),
        "ports": lambda: SetTable(_inverse((n,) for n, _ in numbered())),
        "output_position": lambda: ValueTable({port: at for port, (_, at) in enumerate(numbered())}),
    }


def _of_names(model: Model) -> dict[str, Build]:
    """Tensors, which stand for names, and functions."""
    tensors, called = dict(enumerate(model.tensors)), dict(enumerate(functions(model)))
    return {
        "all_tensors": numbers_of(tensors),
        "scope": column(tensors, lambda tensor: tensor.graph),
        "input_entries": lambda: ValueTable(_entries(model, lambda graph: graph.inputs)),
        "initializer_entries": lambda: ValueTable(_entries(model, _stored)),
        "relisted": lambda: SetTable({(): tuple(_relisted(model))}),
        "hidden": lambda: SetTable(dict(_hidden(model))),
        "functions": numbers_of(called),
        "definitions": column(called, model.functions.count),
        "unresolved": lambda: ValueTable(_unresolved(model)),
    }


# ---- Numbering --------------------------------------------------------------------------------


def ports(model: Model) -> tuple[Port, ...]:
    """The output positions that carry a name, in the order of their numbers."""
    return tuple((n, at) for n, node in enumerate(model.nodes) for at, t in enumerate(node.outputs) if t is not None)


def functions(model: Model) -> tuple[tuple[str, str, str], ...]:
    """The model-local functions by domain, name and overload, in the order of their numbers."""
    return tuple(dict.fromkeys(model.functions))


# ---- Reading and writing ----------------------------------------------------------------------


def _stored(graph: Graph) -> tuple[TensorId, ...]:
    return tuple(t for t, _ in (*graph.initializers, *graph.sparse_initializers))


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


def _carrying(row: Sequence[TensorId | None]) -> Iterator[tuple[int, TensorId]]:
    """The positions that carry a name, with what they name."""
    return ((i, t) for i, t in enumerate(row) if t is not None)


# ---- Lists, names, functions ------------------------------------------------------------------


def _entries(model: Model, listed: Callable[[Graph], Sequence[TensorId]]) -> dict[Key, Value]:
    """The number of times that each tensor is listed."""
    counts: dict[Key, int] = dict.fromkeys(range(len(model.tensors)), 0)
    for graph in model.graphs:
        for t in listed(graph):
            counts[t] += 1
    return dict(counts)


def _relisted(model: Model) -> dict[TensorId, None]:
    again: dict[TensorId, None] = {}
    for graph in model.graphs:
        for row in (graph.inputs, _stored(graph)):
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
    listed = {t for graph in model.graphs for t in (*graph.inputs, *_stored(graph))}
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


@dataclass(frozen=True)
class Defined:
    """A definition of a function. first: of each function of the model the definition that counts."""

    definition: Definition
    first: Mapping[tuple[str, str, str], Definition]

    @cached_property
    def differences(self) -> Differences:
        """The differences between its nodes and the schemas of their operators."""
        return differences(self.definition.nodes, self.first, listing=False)

    @cached_property
    def applied(self) -> tuple[Operator, ...]:
        """The operators and functions that its nodes apply."""
        return tuple(sorted({(node.domain, node.op_type) for node in self.definition.nodes}))

    def versions(self, opsets: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """For what is applied the version that these operator sets give it, 0 where they give none."""
        return ((operator_text(*it), since_version(*it, opsets.get(it[0])) or 0) for it in self.applied)

    def unknown(self) -> Iterator[str]:
        """The operators applied that its own operator sets do not have, of domains that ONNX defines."""
        opsets, own = self.definition.opsets, {(domain, name) for domain, name, _ in self.first}
        for it in self.applied:
            if it in own or not newest_opset(it[0]):
                continue
            if is_guest(*it) or since_version(*it, opsets.get(it[0])) is None:
                yield operator_text(*it)

    def paths(self, nodes: Iterable[NodeId]) -> Iterator[str]:
        """The places of these of its nodes."""
        return (self.definition.nodes[n].path for n in nodes)

    def members(self, fact: str) -> Iterator[str]:
        """The places of its nodes of which the fact holds."""
        return self.paths(self.differences.members.get(fact, ()))

    def names(self, fact: str) -> Iterator[str]:
        """The names that the fact gives of each of its nodes."""
        for n, row in self.differences.sets.get(fact, {}).items():
            if isinstance(n, int):
                yield from (f"{name} of {self.definition.nodes[n].path}" for name in row)

    def misfitting(self) -> Iterator[str]:
        """The places of calls with more inputs or outputs than the function has."""
        for n in self.differences.members.get("misfitting_calls", ()):
            node = self.definition.nodes[n]
            called = self.first[node.domain, node.op_type, node.overload]
            if len(node.inputs) > called.inputs or len(node.outputs) > called.outputs:
                yield node.path


def function_tables(model: Model) -> dict[str, Build]:
    """A table builder for each fact of the section "Definitions of functions"."""
    first: dict[tuple[str, str, str], Definition] = {}
    outside = dict(model.opsets)
    for key, definition in zip(model.functions, model.definitions, strict=True):
        first.setdefault(key, definition)
        outside = {**definition.opsets, **outside}
    each = {f: Defined(definition, first) for f, definition in enumerate(first.values())}
    return {
        "applied": rows(each, lambda it: (operator_text(*operator) for operator in it.applied)),
        "version_in": grid(each, lambda it: it.versions(it.definition.opsets)),
        "version_outside": grid(each, lambda it: it.versions(outside)),
        "unknown_operators": rows(each, Defined.unknown),
        "repeated_formals": rows(each, lambda it: it.definition.repeated),
        "respelled_in": rows(each, lambda it: it.definition.respelled),
        "early_in": rows(each, lambda it: it.definition.early),
        "reassigned_in": rows(each, lambda it: it.definition.reassigned),
        "never_written_in": rows(each, lambda it: it.definition.never_written),
        "miscounted_in": rows(each, lambda it: it.paths(it.differences.limits)),
        "misfitting_in": rows(each, Defined.misfitting),
        **{f"{fact}_in": rows(each, partial(Defined.members, fact=fact)) for fact in MEMBERS},
        **{f"{fact}_in": rows(each, partial(Defined.names, fact=fact)) for fact in NAMES},
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


def store_tables(model: Model) -> dict[str, Build]:
    """A table builder for each fact of the section "Stored tensors"."""
    listed = cache(lambda: stores(model))

    def per_store(value: Callable[[Store], Value]) -> Build:
        return lambda: ValueTable({s: value(store) for s, store in enumerate(listed())})

    def owned(owner: Callable[[Store], int | None]) -> Build:
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


def onnx_tables(model: Model, claims: ClaimsSource) -> dict[str, Build]:
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


def _model(model: Model) -> dict[str, Build]:
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


def _graphs(model: Model) -> dict[str, Build]:
    graphs = dict(enumerate(model.graphs))
    unnamed = Unknown("the listing shows no name") if model.source == "listing" else ""

    @cache
    def annotated() -> Counter[TensorId]:
        counts: Counter[TensorId] = Counter()
        for graph in model.graphs:
            counts.update(tensor for tensor, _ in graph.value_infos)
        return Counter({tensor: count for tensor, count in counts.items() if count > 1})

    return {
        "graph_name": column(graphs, lambda graph: graph.name or unnamed),
        "nameless_entries": column(graphs, lambda graph: _nameless(model, graph)),
        "beyond_c90": lambda: ValueTable({g: count for g, count in enumerate(_beyond_c90(model))}),  # noqa: C416
        "namesakes": lambda: SetTable(_namesakes(model)),
        "annotations": lambda: SetTable({(): tuple(annotated())}),
        "annotation_entries": lambda: ValueTable({t: count for t, count in annotated().items()}),  # noqa: C416
    }


def _nameless(model: Model, graph: Graph) -> int:
    return sum(not model.tensors[tensor].name for tensor in (*graph.inputs, *graph.outputs, *_stored(graph)))


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


def _order(model: Model) -> dict[str, Build]:
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
