"""The rechecker's own facts of a model: who reads and writes what, what is an input, an output, stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import onnx

from . import recheck_paths as paths
from .recheck_reader import Node, Reading


@dataclass(frozen=True, slots=True)
class Facts:
    """Lists are indexed by the numbers of the reading. reads, writes: tensors of a node, each once, captures included.

    ports: the positions (node, output) that write a tensor. inputs, outputs, stored: tensors of those lists of their
    own graph. order: the tensors in document order of their first mention.
    """

    reading: Reading
    reads: Sequence[tuple[int, ...]]
    writes: Sequence[tuple[int, ...]]
    readers: Sequence[Sequence[int]]
    writers: Sequence[Sequence[int]]
    ports: Sequence[Sequence[tuple[int, int]]]
    inputs: frozenset[int]
    outputs: frozenset[int]
    stored: frozenset[int]
    order: Sequence[int]


def facts(reading: Reading) -> Facts:
    """Reads the facts off."""
    captured = _captures(reading)
    reads = [
        tuple(dict.fromkeys((*(t for t in node.inputs if t is not None), *captured.get(n, ()))))
        for n, node in enumerate(reading.nodes)
    ]
    writes = [tuple(dict.fromkeys(t for t in node.outputs if t is not None)) for node in reading.nodes]
    readers: list[list[int]] = [[] for _ in reading.tensors]
    writers: list[list[int]] = [[] for _ in reading.tensors]
    ports: list[list[tuple[int, int]]] = [[] for _ in reading.tensors]
    for n, node in enumerate(reading.nodes):
        for t in reads[n]:
            readers[t].append(n)
        for t in writes[n]:
            writers[t].append(n)
        for position, output in enumerate(node.outputs):
            if output is not None:
                ports[output].append((n, position))
    return Facts(
        reading,
        reads,
        writes,
        readers,
        writers,
        ports,
        frozenset(t for graph in reading.graphs for t in graph.inputs),
        frozenset(t for g, graph in enumerate(reading.graphs) for t in graph.outputs if reading.tensors[t].graph == g),
        frozenset(t for graph in reading.graphs for t in graph.initializers),
        list(dict.fromkeys(_mentions(reading, 0))),
    )


def _captures(reading: Reading) -> dict[int, dict[int, None]]:
    """For each holder of bodies the tensors of graphs around the bodies that are read or given out in them."""
    found: dict[int, dict[int, None]] = {}

    def note(t: int, graph: int) -> None:
        home = reading.tensors[t].graph
        while graph != home:
            holder = reading.graphs[graph].holder
            if holder is None:
                return
            found.setdefault(holder, {}).setdefault(t)
            graph = reading.nodes[holder].graph

    if len(reading.graphs) > 1:
        for node in reading.nodes:
            for t in node.inputs:
                if t is not None and reading.tensors[t].graph != node.graph:
                    note(t, node.graph)
        for g, graph in enumerate(reading.graphs):
            for t in graph.outputs:
                note(t, g)
    return found


def _mentions(reading: Reading, number: int) -> Iterator[int]:
    graph = reading.graphs[number]
    yield from graph.inputs
    yield from graph.initializers
    for n in graph.nodes:
        node = reading.nodes[n]
        yield from (t for t in node.inputs if t is not None)
        yield from (t for t in node.outputs if t is not None)
        for _, body in node.bodies:
            yield from _mentions(reading, body)
    yield from graph.outputs
    yield from graph.mentions


# ---- What ONNX says about operators -------------------------------------------------------------


@cache
def schema(domain: str, op_type: str, opset: int | None) -> onnx.defs.OpSchema | None:
    """ONNX's schema of an operator in an operator set version, None when it has none."""
    if opset is None:
        return None
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except (onnx.defs.SchemaError, ValueError, OverflowError, TypeError):
        return None


def schema_of(node: Node) -> onnx.defs.OpSchema | None:
    """ONNX's schema of a node's operator."""
    return schema(node.domain, node.op_type, node.opset)


def operator(node: Node) -> str:
    """The operator as the specification spells it."""
    return paths.operator(node.domain, node.op_type)


def determinism(node: Node) -> str:
    """What the schema says: deterministic, non-deterministic or unknown."""
    found = schema_of(node)
    if found is None:
        return "unknown"
    kind = found.node_determinism
    if kind == onnx.defs.OpSchema.NodeDeterminism.Deterministic:
        return "deterministic"
    if kind == onnx.defs.OpSchema.NodeDeterminism.NonDeterministic:
        return "non-deterministic"
    return "unknown"


def formal(names: Sequence[onnx.defs.OpSchema.FormalParameter], name: str) -> int | None:
    """The position of the formal input or output of that name."""
    return next((position for position, parameter in enumerate(names) if parameter.name == name), None)


def actual(node: Node, name: str, *, output: bool = False) -> int | None:
    """The tensor at the formal input (or output) of that name, None when it is left out."""
    found = schema_of(node)
    if found is None:
        return None
    position = formal(found.outputs if output else found.inputs, name)
    listed = node.outputs if output else node.inputs
    return listed[position] if position is not None and position < len(listed) else None
