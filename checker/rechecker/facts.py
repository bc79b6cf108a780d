"""The rechecker's own facts of a model: who reads and writes what, what is an input, an output, stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from . import paths
from .reader import Reading, Tensor
from .stored import Stored, dense, sparse


@dataclass(frozen=True, slots=True)
class Facts:
    """Lists are indexed by the numbers of the reading. source: the notation of the model.

    reads, writes: tensors of a node, each once, captures included. readers, writers: nodes of a tensor. inputs,
    outputs, stored: tensors of those lists of their own graph. outer: the name scope around each that has one; a scope
    is what the paths of its tensors begin with. folder: where external data lie.
    """

    reading: Reading
    source: str
    reads: Sequence[tuple[int, ...]]
    writes: Sequence[tuple[int, ...]]
    readers: Sequence[Sequence[int]]
    writers: Sequence[Sequence[int]]
    inputs: frozenset[int]
    outputs: frozenset[int]
    stored: frozenset[int]
    outer: Mapping[str, str]
    folder: Path | None = None

    def dense(self, proto: onnx.TensorProto) -> Stored:
        """A stored dense tensor."""
        return dense(proto, listing=self.source == "listing", folder=self.folder)

    def sparse(self, proto: onnx.SparseTensorProto) -> Stored:
        """A stored sparse tensor."""
        return sparse(proto, listing=self.source == "listing", folder=self.folder)

    def port(self, number: int) -> str:
        """The path of an output position that carries a name; these are numbered over the model, node by node."""
        nodes = enumerate(self.reading.nodes)
        ports = [(n, i) for n, node in nodes for i, t in enumerate(node.outputs) if t is not None]
        n, i = ports[number]
        return f"{self.reading.nodes[n].path}>{i}"

    def annotations(self, g: int) -> Iterator[tuple[int, onnx.ValueInfoProto]]:
        """The entries of value_info of a graph, each with its tensor; one that names none of the graph is left out."""
        graph = self.reading.graphs[g]
        for value in graph.proto.value_info:
            t = graph.names.get(value.name)
            if t is not None:
                yield t, value

    def initializers(self) -> Iterator[tuple[int, Stored]]:
        """The initializers of all graphs, by graph, dense before sparse ones, each with its tensor."""
        for graph in self.reading.graphs:
            first = len(graph.proto.initializer)
            yield from ((t, self.dense(it)) for t, it in zip(graph.initializers, graph.proto.initializer, strict=False))
            rest = graph.initializers[first:]
            yield from ((t, self.sparse(it)) for t, it in zip(rest, graph.proto.sparse_initializer, strict=True))


def facts(reading: Reading, source: str = "protobuf", folder: Path | None = None) -> Facts:
    """Reads the facts off. source: the notation of the model: protobuf, text or listing. folder: that of its file."""
    captured = _captures(reading)
    reads = [
        tuple(dict.fromkeys((*(t for t in node.inputs if t is not None), *captured.get(n, ()))))
        for n, node in enumerate(reading.nodes)
    ]
    writes = [tuple(dict.fromkeys(t for t in node.outputs if t is not None)) for node in reading.nodes]
    readers: list[list[int]] = [[] for _ in reading.tensors]
    writers: list[list[int]] = [[] for _ in reading.tensors]
    for n in range(len(reading.nodes)):
        for t in reads[n]:
            readers[t].append(n)
        for t in writes[n]:
            writers[t].append(n)
    outer = {graph.path + "/": graph.around for graph in reading.graphs if graph.around is not None}
    return Facts(
        reading,
        source,
        reads,
        writes,
        readers,
        writers,
        frozenset(t for graph in reading.graphs for t in graph.inputs),
        frozenset(t for g, graph in enumerate(reading.graphs) for t in graph.outputs if reading.tensors[t].graph == g),
        frozenset(t for graph in reading.graphs for t in graph.initializers),
        outer,
        folder,
    )


def scope_of(tensor: Tensor) -> str:
    """The name scope of a tensor: what its path begins with."""
    return tensor.path.removesuffix(paths.quoted(tensor.name))


def order(f: Facts, g: int) -> list[int]:
    """The nodes of a graph that can be reached: as in the file where that is sorted, else as they become possible."""
    graph = f.reading.graphs[g]
    has = set(graph.inputs) | set(graph.initializers)
    needs = {n: {t for t in f.reads[n] if f.reading.tensors[t].graph == g} - has for n in graph.nodes}
    seen: set[int] = set()
    for n in graph.nodes:
        if not needs[n] <= seen:
            break
        seen.update(f.writes[n])
    else:
        return graph.nodes
    waiting: dict[int, list[int]] = {}
    for n, row in needs.items():
        for t in row:
            waiting.setdefault(t, []).append(n)
    ready = [n for n in graph.nodes if not needs[n]]
    for n in ready:
        for t in f.writes[n]:
            for m in waiting.pop(t, ()):
                needs[m].discard(t)
                if not needs[m]:
                    ready.append(m)  # the loop goes on to it
    return ready


def _captures(reading: Reading) -> dict[int, dict[int, None]]:
    """For each holder of bodies the tensors of graphs around them, body by body: what it gives out, what is read in it.

    A body has a higher number than the graph that it is in.
    """
    captures: dict[int, dict[int, None]] = {}
    outer: dict[int, dict[int, None]] = {}
    for g in range(len(reading.graphs) - 1, 0, -1):
        graph = reading.graphs[g]
        listed = list(graph.outputs)
        for n in graph.nodes:
            listed += [t for t in reading.nodes[n].inputs if t is not None]
            listed += captures.setdefault(n, _union(outer, reading.nodes[n].bodies))
        outer[g] = dict.fromkeys(t for t in listed if reading.tensors[t].graph != g)
    for n in reading.graphs[0].nodes:
        if reading.nodes[n].bodies:
            captures[n] = _union(outer, reading.nodes[n].bodies)
    return captures


def _union(outer: Mapping[int, dict[int, None]], bodies: Sequence[int]) -> dict[int, None]:
    return {t: None for body in bodies for t in outer[body]}


# ---- Stored tensors and external data -----------------------------------------------------------


def stored_tensors(reading: Reading) -> Iterator[onnx.TensorProto]:
    """Every tensor that the model stores: initializers and attributes of nodes, the parts of sparse ones."""
    for graph in reading.graphs:
        yield from graph.proto.initializer
        yield from _parts(graph.proto.sparse_initializer)
    for node in reading.nodes:
        for attribute in node.attributes.values():
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            yield from _parts((attribute.sparse_tensor, *attribute.sparse_tensors))


def _parts(sparse: Iterable[onnx.SparseTensorProto]) -> Iterator[onnx.TensorProto]:
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)


def external_locations(reading: Reading) -> list[str]:
    """The files of external data that the model names, sorted, each once, without steps that stay where they are."""
    return sorted(
        {
            "/".join(part for part in entry.value.split("/") if part != ".")
            for tensor in stored_tensors(reading)
            if tensor.data_location == onnx.TensorProto.EXTERNAL
            for entry in tensor.external_data
            if entry.key == "location"
        }
    )
