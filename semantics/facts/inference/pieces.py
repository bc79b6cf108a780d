"""Inference of a model with many bodies, piece by piece: it copies the types of all tensors in front for each body.

The result is what one run over the whole gives, or none. A run keeps the type of a tensor, and of some the elements as
far as they are known (onnx 1.23.2, onnx/shape_inference/implementation.h: InferenceContextImpl and
DataPropagationContextImpl). A piece is told the types of what it reads from outside; where elements could matter
across a border, and where there is an error, the model has to be inferred as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.defs import OpSchema, SchemaError, get_schema

WORTH = 10_000_000
"""The number of types copied for bodies from which on pieces are worth it."""
NODES = 250
"""The number of nodes of a piece."""
MADE_UP = b"unk__"
"""Begins the names of sizes that inference makes up: two pieces may give the same name to different sizes."""
SIZES = frozenset((TensorProto.INT32, TensorProto.INT64))
"""The types of elements that may be sizes."""
SIZES_ALONE = frozenset(("tensor(int32)", "tensor(int64)"))
"""Inputs that admit these types alone are read as sizes; for those the known elements count."""


class WholeError(Exception):
    """The model has to be inferred as a whole."""


def copied(graph: GraphProto) -> int:
    """The number of types of the main graph that are copied for bodies."""
    return sum(position * sum(1 for _ in _bodies(node)) for position, node in enumerate(graph.node) if node.attribute)


def in_pieces(model: ModelProto, infer: Callable[[bytes], bytes]) -> ModelProto:
    """The types that a run without errors over the model gives, in a model that has no other nodes than those which may
    hold bodies. infer: such a run, over a serialized model.

    Raises WholeError where only one run over the model can tell.
    """
    whole = model.graph
    state = _State(whole, {it.domain: it.version for it in model.opset_import})
    result = ModelProto()
    result.graph.input.extend(whole.input)
    result.graph.output.extend(whole.output)
    for start in range(0, len(whole.node), NODES):
        nodes = whole.node[start : start + NODES]
        piece = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
        piece.graph.name = whole.name
        piece.graph.node.extend(nodes)
        state.enter(nodes, piece.graph)
        try:
            done = ModelProto.FromString(infer(piece.SerializeToString())).graph
        except Exception as error:  # the extension raises several types that it does not export
            raise WholeError from error
        state.leave(done, start + len(nodes))
        result.graph.node.extend(node for node in done.node if node.attribute)
        result.graph.value_info.extend(done.value_info)
    typed = {it.name for it in result.graph.value_info}
    result.graph.value_info.extend(it for it in whole.value_info if it.name not in typed)
    for entry in (*result.graph.input, *result.graph.output, *result.graph.value_info):
        entry.type.SetInParent()  # as inference does, which leaves an empty type where it finds none
    return result


def _bodies(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in a node, those in their nodes too."""
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
            yield body
            for inner in body.node:
                yield from _bodies(inner)


def _inner(node: NodeProto) -> Iterable[NodeProto]:
    """The nodes of the bodies of a node."""
    return (inner for body in _bodies(node) for inner in body.node) if node.attribute else ()


@lru_cache(maxsize=4096)
def _schema(domain: str, op_type: str, version: int) -> OpSchema:
    try:
        return get_schema(op_type, version, domain)
    except SchemaError as error:  # behind such a node inference conceals errors
        raise WholeError from error


class _State:
    """Between two pieces. known: the types of tensors that later pieces may read, unread: those that none has read so
    far. carrying: the tensors of which elements may be known. last: for each tensor the last node that reads it.
    """

    def __init__(self, graph: GraphProto, imports: Mapping[str, int]) -> None:
        self._imports = imports
        self._stored = {it.name: it for it in graph.initializer}
        entries = {it.name: it for it in (*graph.value_info, *graph.input, *graph.output) if it.HasField("type")}
        self._ahead: set[str] = set()
        self._last: dict[str, int] = {}
        for n, node in enumerate(graph.node):
            for name in node.output:
                if name:
                    if name in self._ahead:
                        raise WholeError  # the second of two types is compared with the first
                    self._ahead.add(name)
            self._last.update(dict.fromkeys(_read(node), n))
        self._known = {name: it for name, it in entries.items() if name not in self._ahead}
        self._declared = {name: it for name, it in entries.items() if name in self._ahead}
        self._carrying: set[str] = set()
        self._reading: set[str] = set()
        self.unread = set(self._known)

    def enter(self, nodes: Iterable[NodeProto], piece: GraphProto) -> None:
        """Tell a piece what it reads from outside, and what is declared of that which it writes."""
        written = {name: None for node in nodes for name in node.output if name}
        self._ahead.difference_update(written)
        read = {name: None for node in nodes for name in _read(node) if name and name not in written}
        if not (self._ahead.isdisjoint(read) and self._carrying.isdisjoint(read)):
            raise WholeError
        again = {it for it in read if it in self._known and it not in self.unread}
        for node in nodes:
            self._check_inputs(node, again)
            for inner in _inner(node):
                self._check_inputs(inner, again)
                if any(name in self._stored and self._stored[name].data_type in SIZES for name in inner.input):
                    raise WholeError  # a body knows the elements only when a node in front has asked for them
        self.unread.difference_update(read)
        self._reading = set(read)
        piece.input.extend(self._known[it] for it in read if it in self._known)
        piece.initializer.extend(self._stored[it] for it in read if it in self._stored)
        piece.value_info.extend(self._declared[it] for it in written if it in self._declared)

    def _check_inputs(self, node: NodeProto, again: set[str]) -> None:
        formals = self._schema(node).inputs
        for position, name in enumerate(node.input):
            if name in again and (not formals or formals[min(position, len(formals) - 1)].types <= SIZES_ALONE):
                raise WholeError

    def _schema(self, node: NodeProto) -> OpSchema:
        return _schema(node.domain, node.op_type, self._imports.get(node.domain, 0))

    def leave(self, done: GraphProto, end: int) -> None:
        """Take the types of what nodes behind the piece, from position `end` on, read of it; forget what none reads."""
        types = {it.name: it for it in (*done.value_info, *done.input)}
        extents: dict[str, tuple[int, ...] | None] = {}
        for node in done.node:
            if self._may_carry(node, types, extents):
                self._carrying.update(node.output)
            for name in node.output:
                if self._last.get(name, 0) >= end:
                    if name not in types or MADE_UP in types[name].SerializeToString():
                        raise WholeError
                    self._known[name] = types[name]
        for name in self._reading:
            if self._last[name] < end:
                self._known.pop(name, None)

    def _may_carry(
        self, node: NodeProto, types: Mapping[str, ValueInfoProto], extents: dict[str, tuple[int, ...] | None]
    ) -> bool:
        """False where of the outputs no element is known, or none of as many as the type of a vector says.

        That is no different: who asks for the elements of a vector of which nothing is known is given as many unknown
        ones. Of other numbers than sizes an operator knows elements where all that it reads are vectors.
        extents: those that the piece has asked for.
        """
        if node.op_type == "Constant":
            return True
        if not self._schema(node).has_data_propagation_function:
            return False
        read = node.input
        names = [name for name in (*read, *node.output) if name]
        for name in names:
            if name not in extents:
                extents[name] = _extent(self._stored.get(name), types.get(name))
        shapes = [extents[name] for name in names]
        known = [shape for shape in shapes if shape is not None]
        alike = len(set(known)) == 1 or any(len(shape) != 1 for shape in known[: len(read)])
        return len(known) < len(names) or not alike or not self._carrying.isdisjoint(names)


def _extent(stored: TensorProto | None, entry: ValueInfoProto | None) -> tuple[int, ...] | None:
    """The sizes of a tensor, None where one is open, or its elements may be sizes themselves."""
    if stored is not None:
        return None if stored.data_type in SIZES else tuple(stored.dims)
    if entry is None:
        return None
    type_ = entry.type.tensor_type
    if not type_.HasField("shape") or type_.elem_type in SIZES:
        return None
    dims = type_.shape.dim
    return tuple(dim.dim_value for dim in dims) if all(dim.HasField("dim_value") for dim in dims) else None


def _read(node: NodeProto) -> Sequence[str]:
    """What a node reads, and what its bodies do."""
    if not node.attribute:
        return node.input
    inner = [name for body in _bodies(node) for it in body.node for name in it.input]
    return [*node.input, *inner, *(entry.name for body in _bodies(node) for entry in body.output)]
