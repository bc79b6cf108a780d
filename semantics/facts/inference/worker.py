"""ONNX shape inference in a process of its own: `python -m sonnx.semantics.facts.inference.worker`.

Standard input: one line with the memory limit in bytes, then a serialized ModelProto. Standard output: the number of
error bytes in a line, the error text of strict inference, then the model with the types that were inferred.
The process may crash, hang or be killed; its parent takes all of that as "no claim".
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from onnx import GraphProto, ModelProto
from onnx.onnx_cpp2py_export import shape_inference

from . import pieces
from .model import located

LONG = 1_000_000
"""A vector of the interface with more elements switches data propagation off: it takes every vector for a shape, and
allocates a dimension for each element."""
ATTEMPTS = 20
"""The number of nodes that end inference and are taken out, one after the other, before giving up."""


def infer(model: bytes) -> tuple[str, bytes]:
    """The errors of strict inference, one a line, and the model with the types that can be had in spite of them.

    An error that ends inference altogether takes its node out of the model, and inference starts anew.
    """
    errors: list[str] = []
    whole = ModelProto.FromString(model)
    propagated = not _has_long_vector(whole.graph)
    if pieces.copied(whole.graph) > pieces.WORTH:
        with suppress(pieces.WholeError):
            strict = partial(shape_inference.infer_shapes, check_type=False, strict_mode=True, data_prop=propagated)
            return "", pieces.in_pieces(whole, strict).SerializeToString()
    del whole
    for _ in range(ATTEMPTS):
        try:
            return "\n".join(errors), shape_inference.infer_shapes(model, False, True, propagated)
        except Exception as error:  # the extension raises several types that it does not export
            errors.append(str(error))
        try:
            return "\n".join(errors), shape_inference.infer_shapes(model, False, False, propagated)
        except Exception as error:
            blamed = {node for node, _ in located(str(error)) if node is not None}
            if not blamed:
                raise
            proto = ModelProto.FromString(model)
            _remove(proto.graph, blamed)
            model = proto.SerializeToString()
    raise RuntimeError("; ".join(errors))


def _has_long_vector(graph: GraphProto) -> bool:
    shapes = (value.type.tensor_type.shape.dim for value in graph.input)
    return any(len(dims) == 1 and dims[0].dim_value > LONG for dims in shapes)


def _remove(graph: GraphProto, nodes: Iterable[int]) -> None:
    names = {f"n{node}" for node in nodes}
    for position in reversed(range(len(graph.node))):
        node = graph.node[position]
        if node.name in names:
            del graph.node[position]
            continue
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                _remove(body, nodes)


def main() -> None:
    """Read a model, write what inference says about it."""
    limit = int(sys.stdin.buffer.readline())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    errors, inferred = infer(sys.stdin.buffer.read())
    text = errors.encode()
    sys.stdout.buffer.write(b"%d\n" % len(text) + text + inferred)


if __name__ == "__main__":
    main()
