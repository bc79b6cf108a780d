"""A model that steps change: its nodes, who reads and writes what, and stored values known by their digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import external_data_helper, numpy_helper
from sonnx.semantics.errors import ModelError, Unsupported

from .. import files
from ..facts import Facts, facts, stored_tensors
from ..operators import Derivation, derive, unwalked
from ..operators.knowledge import text_of
from ..operators.lists import NAMES
from ..operators.text import Library, Operator
from ..paths import quoted
from ..reader import Reading, domain_of, read


@dataclass(frozen=True, slots=True)
class Node:
    """A node. text, version: of its operator, None where there is none; opset: the version of the operator set. bodies:
    the graphs that it holds."""

    graph: int
    name: str
    domain: str
    op_type: str
    overload: str
    text: Operator | None
    version: int | None
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    attributes: Mapping[str, onnx.AttributeProto]
    bodies: tuple[int, ...] = ()
    opset: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored value. digest: SHA-256 of its raw data; of texts of their lengths, eight bytes each, and themselves.
    trusted: nobody but the certificate says that it is this one."""

    kind: str
    dims: tuple[int, ...]
    digest: Callable[[], str]
    trusted: bool = False

    def same(self, other: Stored) -> bool:
        """The two are the same, bit for bit."""
        return (self.kind, self.dims) == (other.kind, other.dims) and self.digest() == other.digest()


@dataclass(slots=True)
class Graph:
    """A graph: its nodes by number; attribute: of the node that holds it."""

    nodes: dict[int, None]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attribute: str


@dataclass(slots=True)
class State:
    """A model at some step. walk: what is known of its tensors. home: of a tensor, its graph. names: as the model has
    them, and of new tensors as they are stated. opsets: by domain. overridable: stored values that a caller may give
    others for."""

    walk: Derivation
    opsets: dict[str, int]
    nodes: dict[int, Node]
    graphs: list[Graph]
    home: dict[int, int]
    names: dict[int, str]
    values: dict[int, Stored]
    overridable: frozenset[int]
    numbered: int
    readers: dict[int, dict[int, None]] = field(default_factory=dict)
    producers: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def library(self) -> Library:
        """The texts."""
        return self.walk.run.library

    def kept(self, t: int) -> bool:
        """A graph gives the tensor out."""
        return any(t in graph.outputs for graph in self.graphs)

    def stored(self, t: int) -> bool:
        """The tensor has the same stored value in every run."""
        return t in self.values and t not in self.overridable

    def enter(self, n: int, node: Node) -> None:
        """Puts a node in, or another one in its place."""
        self.nodes[n] = node
        self.graphs[node.graph].nodes[n] = None
        for place, t in enumerate(node.outputs):
            if t is not None:
                self.producers[t] = n, place
        for t in node.inputs:
            if t is not None:
                self.readers.setdefault(t, {})[n] = None

    def leave(self, n: int) -> None:
        """Takes a node out, and with it the graphs that it holds."""
        node = self.nodes.pop(n)
        del self.graphs[node.graph].nodes[n]
        for t in node.outputs:
            if t is not None and self.producers.get(t, (None, 0))[0] == n:
                del self.producers[t]
        for t in node.inputs:
            if t is not None:
                self.readers.get(t, {}).pop(n, None)
        for body in node.bodies:
            for inner in list(self.graphs[body].nodes):
                self.leave(inner)
            self.graphs[body].outputs = ()

    def read_instead(self, t: int, other: int) -> None:
        """Whatever reads a tensor reads another one."""
        for n in list(self.readers.get(t, ())):
            node = self.nodes[n]
            inputs = tuple(other if it == t else it for it in node.inputs)
            self.nodes[n] = replace(node, inputs=inputs)
            self.readers.setdefault(other, {})[n] = None
        self.readers.pop(t, None)

    def live(self, nodes: Iterable[int]) -> bool:
        """One of the nodes writes something that is read, or that a graph gives out."""
        written = [t for n in nodes for t in self.nodes[n].outputs if t is not None]
        return any(self.readers.get(t) or self.kept(t) for t in written)


def opened(path: Path, library: Library, *, fixed: bool = False, plain: bool = False) -> State:
    """A model file before the first step. fixed: stored values that are inputs are no inputs any more. plain: nothing
    is derived of its tensors.

    Raises ModelError and Unsupported for a file that cannot be read.
    """
    source, proto = files.parse(files.content(path))
    reading = read(proto)
    twice = _said_twice(reading)
    if twice:
        raise Unsupported(f"readers differ in what they make of {quoted(path.name)}: {twice}")
    main = reading.graphs[0]
    stored = set(main.initializers)
    if fixed:
        kept = [k for k, t in enumerate(main.inputs) if t not in stored]
        declared = [main.proto.input[k] for k in kept]
        main.inputs = [main.inputs[k] for k in kept]
        del main.proto.input[:]
        main.proto.input.extend(declared)
    graph = facts(reading, source, path.parent)
    walk = unwalked(graph, library, path.parent) if plain else derive(graph, library, folder=path.parent)
    if walk.sizes:  # of what is shown here sizes of 0 are no exception
        walk = derive(graph, library, dict.fromkeys(walk.sizes, (0, None)), path.parent)
    values = dict(_values(graph, path.parent))
    overridable = frozenset(t for g in reading.graphs for t in g.inputs if t in values)
    opsets = dict(reversed(reading.opsets))
    graphs = [Graph({}, tuple(g.inputs), tuple(g.outputs), _attribute(g.path)) for g in reading.graphs]
    made = State(
        walk,
        opsets,
        {},
        graphs,
        {t: it.graph for t, it in enumerate(reading.tensors)},
        {t: it.name for t, it in enumerate(reading.tensors)},
        values,
        overridable,
        len(reading.nodes),
    )
    for n, node in enumerate(reading.nodes):
        text, version = text_of(walk, n) or (None, None)
        made.enter(n, Node(
            node.graph, node.name, node.domain, node.op_type, node.overload, text, version, node.inputs, node.outputs,
            node.attributes, tuple(node.bodies), node.opset,
        ))  # fmt: skip
    return made


def _said_twice(reading: Reading) -> str:
    """What a model says twice, of which readers take the one or the other; "" for nothing."""
    written = [t for node in reading.nodes for t in node.outputs if t is not None]
    held = [t for it in reading.graphs for t in {*it.inputs, *it.initializers}]
    imports = [reading.opsets, *([(domain_of(it.domain), 0) for it in f.opset_import] for f in reading.proto.functions)]
    cases = {
        "an operator set is imported twice": any(_repeats(domain for domain, _ in it) for it in imports),
        "a function is defined twice": _repeats(reading.functions),
        "a node has an attribute twice": any(node.repeated for node in reading.nodes),
        "a graph has an input twice": any(_repeats(it.inputs) for it in reading.graphs),
        "a name has two stored values": any(_repeats(it.initializers) for it in reading.graphs),
        "a tensor gets its value twice": _repeats((*written, *held)),
        "a stored value has two contents": any(sum(_contents(it)) > 1 for it in stored_tensors(reading)),
    }
    return next((words for words, holds in cases.items() if holds), "")


def _repeats(listed: Iterable[Hashable]) -> bool:
    entries = list(listed)
    return len(set(entries)) < len(entries)


def _contents(proto: onnx.TensorProto) -> Iterable[bool]:
    """Where the elements of a stored tensor stand: in each of its fields, and in another file."""
    fields = (proto.float_data, proto.int32_data, proto.string_data, proto.int64_data, proto.double_data)
    yield from (bool(it) for it in (*fields, proto.uint64_data, proto.raw_data))
    yield proto.data_location == onnx.TensorProto.EXTERNAL


def _attribute(path: str) -> str:
    """The attribute that holds a graph, by the graph's path."""
    return path.rpartition(".")[2]


# ---- Stored values ------------------------------------------------------------------------------


def _values(graph: Facts, folder: Path) -> Iterable[tuple[int, Stored]]:
    for g in graph.reading.graphs:
        first = len(g.proto.initializer)
        for t, dense in zip(g.initializers, g.proto.initializer, strict=False):
            yield t, stored_value(dense, folder)
        for t, sparse in zip(g.initializers[first:], g.proto.sparse_initializer, strict=True):
            parts = stored_value(sparse.values, folder), stored_value(sparse.indices, folder)
            yield t, _sparse(tuple(sparse.dims), *parts)


def _sparse(dims: tuple[int, ...], values: Stored, indices: Stored) -> Stored:
    def digest() -> str:
        return hashlib.sha256(f"sparse {values.digest()} {indices.digest()} {indices.dims}".encode()).hexdigest()

    return Stored(values.kind, dims, cache(digest))


def stored_value(proto: onnx.TensorProto, folder: Path | None) -> Stored:
    """A stored tensor."""
    return Stored(NAMES.get(proto.data_type, ""), tuple(proto.dims), cache(lambda: raw_digest(proto, folder)))


def raw_digest(proto: onnx.TensorProto, folder: Path | None) -> str:
    """The digest of a stored tensor, as `Stored` has it. Raises ModelError where it cannot be read."""
    if proto.data_type == onnx.TensorProto.STRING:
        return texts_digest(proto.string_data)
    if proto.HasField("raw_data") and proto.data_location != onnx.TensorProto.EXTERNAL:
        return hashlib.sha256(proto.raw_data).hexdigest()
    copy = onnx.TensorProto()
    copy.CopyFrom(proto)
    try:
        if proto.data_location == onnx.TensorProto.EXTERNAL:
            if folder is None:
                raise ModelError("an attribute is stored in another file, which is not read here")
            files.inside(folder, next((it.value for it in proto.external_data if it.key == "location"), ""))
            external_data_helper.load_external_data_for_tensor(copy, str(folder))
        return array_digest(numpy_helper.to_array(copy))
    except (OSError, ValueError, TypeError, onnx.checker.ValidationError) as error:
        raise ModelError(f"a stored value cannot be read: {type(error).__name__}") from None


def array_digest(array: NDArray[np.generic]) -> str:
    """The digest of elements, none of which is a text."""
    return hashlib.sha256(
        numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape)).raw_data
    ).hexdigest()


def texts_digest(texts: Iterable[bytes]) -> str:
    """The digest of texts."""
    return hashlib.sha256(b"".join(len(it).to_bytes(8, "little") + it for it in texts)).hexdigest()
