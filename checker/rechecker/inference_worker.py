"""ONNX's shape inference in a process of its own, which may crash; started by `inference`.

Standard input: the limit of memory in bytes on a line, a serialised model. Standard output: the length of the errors on
a line, the errors, the model with the inferred types.
"""

from __future__ import annotations

import re
import resource
import sys

import onnx

from . import stretches

LONG = 1_000_000
"""An input with a longer vector switches data propagation off, which would take it for a shape."""
ATTEMPTS = 20
_PLACE = re.compile(r"\(op_type:[^(),]*, node name: (n\d+)\)")


def infer(model: bytes) -> tuple[str, bytes]:
    """The errors of strict inference, one a line, and the model with the types that can be had in spite of them."""
    proto = onnx.ModelProto.FromString(model)
    shapes = [value.type.tensor_type.shape.dim for value in proto.graph.input]
    propagate = not any(len(dims) == 1 and dims[0].dim_value > LONG for dims in shapes)
    if stretches.long(proto.graph):
        found = stretches.inferred(proto, lambda part: _inferred(part, strict=True, propagate=propagate))
        if found is not None:
            return "", found.SerializeToString()
    errors: list[str] = []
    for _ in range(ATTEMPTS):
        try:
            return "\n".join(errors), _inferred(model, strict=True, propagate=propagate)
        except Exception as error:  # the extension raises several types that it does not export
            errors.append(str(error))
        try:
            return "\n".join(errors), _inferred(model, strict=False, propagate=propagate)
        except Exception as error:
            blamed = set(_PLACE.findall(str(error)))
            if not blamed:
                raise
            _without(proto.graph, blamed)
            model = proto.SerializeToString()
    raise RuntimeError("; ".join(errors))


def _inferred(model: bytes, *, strict: bool, propagate: bool) -> bytes:
    inferred = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=strict, data_prop=propagate)
    return inferred.SerializeToString()


def _without(graph: onnx.GraphProto, names: set[str]) -> None:
    kept = [node for node in graph.node if node.name not in names]
    del graph.node[:]
    graph.node.extend(kept)
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _without(body, names)


def main() -> None:
    """Read a model, write what inference says of it."""
    limit = int(sys.stdin.buffer.readline())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    errors, inferred = infer(sys.stdin.buffer.read())
    text = errors.encode()
    sys.stdout.buffer.write(b"%d\n" % len(text) + text + inferred)


if __name__ == "__main__":
    main()
