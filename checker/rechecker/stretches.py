"""Inference of a long model stretch by stretch: for every body it copies what it knows of all that stands in front.

A stretch is told the types of what it reads of others, and nothing of elements. So where one run over the whole might
use those (onnx 1.23.2, onnx/shape_inference/implementation.h: DataPropagationContextImpl), or fail, there is no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import onnx

COPIES = 10_000_000
"""From so many copies of types on, stretches are worth it."""
NODES = 250
"""The nodes of a stretch."""
SIZES = frozenset((onnx.TensorProto.INT32, onnx.TensorProto.INT64))
SIZES_ALONE = frozenset(("tensor(int32)", "tensor(int64)"))
"""Inputs of these types alone are read as sizes."""
MAKING_SIZES = frozenset(("Cast", "CastLike", "Range", "Resize", "Upsample"))
"""Operators that make sizes of other numbers."""


def long(graph: onnx.GraphProto) -> bool:
    """One run over the graph copies very many types."""
    return sum(n * sum(1 for _ in _bodies(node)) for n, node in enumerate(graph.node)) > COPIES


def inferred(model: onnx.ModelProto, infer: Callable[[bytes], bytes]) -> onnx.ModelProto | None:
    """The model with the types that `infer` gives for all of it at once; None where this cannot be said."""
    graph = model.graph
    parts = [list(graph.node[start : start + NODES]) for start in range(0, len(graph.node), NODES)]
    reads = [frozenset(name for node in part for name in _read(node)) for part in parts]
    made = [frozenset(name for node in part for name in node.output if name) for part in parts]
    if not _separable(model, parts, reads, made):
        return None
    entries = {it.name: it for it in (*graph.value_info, *graph.input, *graph.output) if it.HasField("type")}
    stored = {it.name: it for it in graph.initializer}
    written = frozenset().union(*made)
    known = {name: it for name, it in entries.items() if name not in written}
    vectors = any(node.op_type in MAKING_SIZES for part in parts for node in _all(part))
    last = {name: number for number, read in enumerate(reads) for name in read}
    result = onnx.ModelProto()
    result.CopyFrom(model)
    del result.graph.node[:], result.graph.value_info[:]
    for number, (part, read, wrote) in enumerate(zip(parts, reads, made, strict=True)):
        piece = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
        piece.graph.name = graph.name
        piece.graph.node.extend(part)
        piece.graph.input.extend(known[it] for it in sorted(read - wrote) if it in known)
        piece.graph.initializer.extend(stored[it] for it in sorted(read) if it in stored)
        piece.graph.value_info.extend(entries[it] for it in sorted(wrote) if it in entries)
        try:
            done = onnx.ModelProto.FromString(infer(piece.SerializeToString())).graph
        except Exception:  # the extension raises several types that it does not export
            return None
        types = {it.name: it for it in done.value_info}
        for name in (it for it in wrote if last.get(it, 0) > number):
            if name not in types or not _plain(types[name].type, vectors=vectors):
                return None
            known[name] = types[name]
        result.graph.node.extend(done.node)
        result.graph.value_info.extend(done.value_info)
    typed = {it.name for it in result.graph.value_info}
    result.graph.value_info.extend(it for it in graph.value_info if it.name not in typed)
    for entry in (*result.graph.input, *result.graph.output, *result.graph.value_info):
        entry.type.SetInParent()  # as inference does, which leaves an empty type where it finds none
    return result


def _separable(
    model: onnx.ModelProto, parts: list[list[onnx.NodeProto]], reads: list[frozenset[str]], made: list[frozenset[str]]
) -> bool:
    """No stretch reads what a later one writes, none needs elements that another knows, and every operator is known."""
    graph = model.graph
    outputs = [name for node in graph.node for name in node.output if name]
    ahead, seen, shared = set(outputs), set[str](), set[str]()
    if graph.sparse_initializer or len(ahead) < len(outputs):
        return False
    for read, wrote in zip(reads, made, strict=True):
        ahead -= wrote
        if read & ahead:
            return False
        shared |= read & seen
        seen |= read | wrote
    stored = {it.name for it in graph.initializer}
    sizes = {it.name for it in graph.initializer if it.data_type in SIZES}
    shared -= stored
    if any(it.type.tensor_type.elem_type in SIZES for it in (*graph.input, *graph.value_info) if it.name in shared):
        return False
    constants = {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    if any((read - wrote) & constants for read, wrote in zip(reads, made, strict=True)):
        return False
    versions = {it.domain: it.version for it in model.opset_import}
    for part in parts:
        for node in _all(part):
            try:
                formals = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 0), node.domain).inputs
            except onnx.defs.SchemaError:  # behind such a node inference conceals errors
                return False
            for position, name in enumerate(node.input):
                if not formals or (name in shared and formals[min(position, len(formals) - 1)].types <= SIZES_ALONE):
                    return False
        if any(name in sizes for node in part for inner in _inner(node) for name in inner.input):
            return False  # a body knows the elements only when a node in front has asked for them
    return True


def _plain(type_: onnx.TypeProto, *, vectors: bool) -> bool:
    """A type that says all that matters of a tensor: its elements are no sizes, and all its sizes are known. vectors:
    of a vector or a scalar, elements matter."""
    tensor = type_.tensor_type
    dims = tensor.shape.dim
    if not tensor.HasField("shape") or tensor.elem_type in SIZES or not all(it.HasField("dim_value") for it in dims):
        return False
    return len(dims) > 1 or not vectors


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in a node, those in their nodes too."""
    for attribute in node.attribute:
        for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield body
            for inner in body.node:
                yield from _bodies(inner)


def _inner(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The nodes of the bodies of a node."""
    for body in _bodies(node):
        yield from body.node


def _all(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes with those of their bodies."""
    for node in nodes:
        yield node
        yield from _inner(node)


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node and its bodies read."""
    for it in _all((node,)):
        yield from filter(None, it.input)
    for body in _bodies(node):
        yield from (entry.name for entry in body.output)
