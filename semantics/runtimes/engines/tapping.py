"""A model that shows its intermediate values: the same model, with what each node of its main graph gives as outputs.

Calls of the model's own functions are expanded first, so that their nodes are shown too. A runtime may compute such a
model otherwise than the model as it is, since it can fuse less: who taps compares the outputs of both.
"""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import EncodeError
from onnx import inliner

from ...errors import ModelError
from ...machine.memory import type_of
from ...model.type_protos import to_proto
from .protocol import Source, Values


def tapped(source: Source) -> bytes:
    """The model with all values of its main graph as outputs, those of the model first. Raises ModelError."""
    try:
        proto = onnx.load(source) if isinstance(source, Path) else onnx.ModelProto.FromString(source)
        if proto.functions:
            proto = inliner.inline_local_functions(proto)
        shown = {it.name for it in proto.graph.output}
        if (
            isinstance(source, bytes)
            and not proto.functions
            and shown >= {n for it in proto.graph.node for n in it.output}
        ):
            return source
        for node in proto.graph.node:
            for name in node.output:
                if name and name not in shown:
                    shown.add(name)
                    proto.graph.output.add().name = name
        return proto.SerializeToString()
    except (EncodeError, ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"the model cannot be tapped ({type(error).__name__}: {error})") from None


def single(source: bytes, position: int, feeds: Values) -> bytes:
    """The model of one node of the main graph alone: what the node and its bodies read are inputs, of the types that
    these values have; its outputs are the outputs. Raises ModelError for a node that does not read just these.
    """
    proto = onnx.ModelProto.FromString(source)
    node = proto.graph.node[position]
    declared = {it.name: it for it in (*proto.graph.value_info, *proto.graph.input, *proto.graph.output)}
    graph = onnx.GraphProto(name="node", node=[node])
    for name, value in feeds.items():
        to_proto(type_of(value), graph.input.add(name=name).type)
    for name in node.output:
        if name:
            known = declared.get(name)
            graph.output.append(known if known is not None else onnx.ValueInfoProto(name=name))
    made = onnx.ModelProto(ir_version=proto.ir_version, graph=graph, opset_import=proto.opset_import)
    return made.SerializeToString()
