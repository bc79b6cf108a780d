"""The rechecker's own judgement of ONNX's rules on the model, its graphs and its nodes; types are not judged here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import onnx

from .facts import Facts
from .places import Instance, Judge, node_place, tensor_place
from .reader import Node
from .schema import newest, operator, schema_of

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _version(f: Facts) -> int | None:
    """The IR version, None when the source states none."""
    return None if f.source == "listing" else f.reading.proto.ir_version


# ---- The model ----------------------------------------------------------------------------------


def ir_version(f: Facts) -> Iterator[Instance]:
    """No known IR version."""
    version = _version(f)
    if version is None or not 1 <= version <= onnx.IR_VERSION:
        yield Instance(fails=version is not None)


def operator_sets_imported(f: Facts) -> Iterator[Instance]:
    """No import, in a version that has imports."""
    if not f.reading.opsets and (_version(f) or 0) >= 3:
        yield Instance()


def imports_unique(f: Facts) -> Iterator[Instance]:
    """An import of a domain that an earlier one imports."""
    domains = [domain for domain, _ in f.reading.opsets]
    for i, domain in enumerate(domains):
        if domains.index(domain) < i:
            yield Instance((("Import", i), ("Import", domains.index(domain))))


def imports_known(f: Facts) -> Iterator[Instance]:
    """An operator set version that does not exist."""
    for i, (domain, version) in enumerate(f.reading.opsets):
        if not 1 <= version <= (newest(domain) or version):
            yield Instance((("Import", i),))


def metadata_unique(f: Facts) -> Iterator[Instance]:
    """A key of metadata with several entries."""
    keys = Counter(entry.key for entry in f.reading.proto.metadata_props)
    return (Instance((("Text", key),)) for key, count in keys.items() if count > 1)


# ---- Graphs and names ---------------------------------------------------------------------------


def _graph(g: int, *, fails: bool = True) -> Instance:
    return Instance((("Graph", g),), fails)


def graph_named(f: Facts) -> Iterator[Instance]:
    """A graph without a name; a listing need not show it."""
    return (_graph(g, fails=f.source != "listing") for g, it in enumerate(f.reading.graphs) if not it.proto.name)


def values_named(f: Facts) -> Iterator[Instance]:
    """A graph that lists an empty name."""
    tensors = f.reading.tensors
    for g, graph in enumerate(f.reading.graphs):
        if not all(tensors[t].name for t in (*graph.inputs, *graph.outputs, *graph.initializers)):
            yield _graph(g)


def listed_once(f: Facts) -> Iterator[Instance]:
    """A name that is listed twice."""
    inputs = Counter(t for graph in f.reading.graphs for t in graph.inputs)
    stored = Counter(t for graph in f.reading.graphs for t in graph.initializers)
    return (tensor_place(t) for t in range(len(f.ports)) if inputs[t] > 1 or stored[t] > 1)


def node_names_unique(f: Facts) -> Iterator[Instance]:
    """A node with the name of an earlier one of its list."""
    first: dict[tuple[str, str], int] = {}
    for n, node in enumerate(f.reading.nodes):
        m = first.setdefault((node.scope, node.name), n) if node.name else n
        if m != n:
            yield Instance((("Node", n), ("Node", m)))


def names_are_identifiers(f: Facts) -> Iterator[Instance]:
    """A graph with a name that is no identifier."""
    strange = {it.graph for it in f.reading.tensors if it.name and not IDENTIFIER.fullmatch(it.name)}
    return (_graph(g) for g in sorted(strange))


def annotations_unique(f: Facts) -> Iterator[Instance]:
    """A value that value_info lists twice."""
    if any(len(graph.proto.value_info) > 1 for graph in f.reading.graphs):
        paths = {tensor.path: t for t, tensor in enumerate(f.reading.tensors)}
        listed = [place for graph in f.reading.graphs for place in graph.annotated()]
        counts = Counter(paths[place] for place in listed if place in paths)
        yield from (tensor_place(t) for t, count in counts.items() if count > 1)


def initializers_are_inputs(f: Facts) -> Iterator[Instance]:
    """An initializer that is no input, in a version that asks for it."""
    version = _version(f)
    if version is None or version < 4:
        for g, graph in enumerate(f.reading.graphs):
            for t in dict.fromkeys(graph.initializers):
                if t not in f.inputs:
                    yield Instance((("Graph", g), ("Tensor", t)), fails=version is not None)


def nodes_sorted(f: Facts) -> Iterator[Instance]:
    """A node and one that writes what it reads and does not stand before it in the same list."""
    position = {n: place for graph in f.reading.graphs for place, n in enumerate(graph.nodes)}
    nodes = f.reading.nodes
    for n, node in enumerate(nodes):
        writers = dict.fromkeys(m for t in f.reads[n] for m in f.writers[t])
        for m in writers:
            if nodes[m].graph == node.graph and position[m] >= position[n]:
                yield Instance((("Node", n), ("Node", m)))


def outputs_defined(f: Facts) -> Iterator[Instance]:
    """An output that its graph does not define."""
    for g, graph in enumerate(f.reading.graphs):
        for t in dict.fromkeys(graph.outputs):
            defined = t in f.inputs or t in f.stored or any(f.reading.nodes[n].graph == g for n in f.writers[t])
            if f.reading.tensors[t].graph != g or not defined:
                yield Instance((("Graph", g), ("Tensor", t)))


# ---- Nodes --------------------------------------------------------------------------------------


def _nodes(fails: Callable[[Facts, Node], bool]) -> Judge:
    """A node for which that is so."""

    def judge(f: Facts) -> Iterator[Instance]:
        return (Instance((("Node", n),)) for n, node in enumerate(f.reading.nodes) if fails(f, node))

    return judge


def _misfit(f: Facts, node: Node) -> bool:
    return node.imported and (node.domain, node.op_type, node.overload) in f.reading.functions


def _deprecated(_f: Facts, node: Node) -> bool:
    schema = schema_of(node)
    return schema is not None and schema.deprecated


def operator_exists(f: Facts) -> Iterator[Instance]:
    """A node whose operator its domain lacks; open in a domain that ONNX does not define."""
    for n, node in enumerate(f.reading.nodes):
        if node.imported and schema_of(node) is None and not _misfit(f, node):
            yield node_place(n, fails=newest(node.domain) > 0)


def attributes_unique(f: Facts) -> Iterator[Instance]:
    """An attribute that a node gives again."""
    for n, node in enumerate(f.reading.nodes):
        for name in dict.fromkeys(node.repeated):
            yield Instance((("Node", n), ("Text", name)))


def body_arity(f: Facts) -> Iterator[Instance]:
    """A body whose inputs and outputs do not fit its holder."""
    for n, node in enumerate(f.reading.nodes):
        for b in node.bodies:
            fits = _fits(node, len(f.reading.graphs[b].inputs), len(f.reading.graphs[b].outputs))
            if fits is not True:
                yield Instance((("Node", n), ("Graph", b)), fails=fits is False)


def _fits(node: Node, inputs: int, outputs: int) -> bool | None:
    """Whether a body with so many inputs and outputs fits its holder, None when the version is not known."""
    operands, results = len(node.inputs), len(node.outputs)
    match operator(node):
        case "If":
            return inputs == 0 and outputs == results
        case "Loop":
            return inputs == max(operands, 2) and outputs == results + 1
        case "Scan":
            schema = schema_of(node)
            if schema is None:
                return None if outputs == results else False
            return inputs == operands - (schema.since_version < 9) and outputs == results
        case _:
            return True


JUDGES: Mapping[str, Judge] = {
    "IrVersion": ir_version,
    "OperatorSetsImported": operator_sets_imported,
    "ImportsUnique": imports_unique,
    "ImportsKnown": imports_known,
    "MetadataUnique": metadata_unique,
    "GraphNamed": graph_named,
    "ValuesNamed": values_named,
    "ListedOnce": listed_once,
    "NodeNamesUnique": node_names_unique,
    "NamesAreIdentifiers": names_are_identifiers,
    "AnnotationsUnique": annotations_unique,
    "InitializersAreInputs": initializers_are_inputs,
    "NodesSorted": nodes_sorted,
    "OutputsDefined": outputs_defined,
    "DomainImported": _nodes(lambda f, node: not node.imported),
    "CallsFit": _nodes(_misfit),
    "NotDeprecated": _nodes(_deprecated),
    "NodeNotIdle": _nodes(lambda f, node: not node.inputs and not node.outputs),
    "OperatorExists": operator_exists,
    "AttributesUnique": attributes_unique,
    "BodyArity": body_arity,
}
