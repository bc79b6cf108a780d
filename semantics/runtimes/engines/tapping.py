"""A model that shows its intermediate values: the same model, with what each node of its main graph gives as outputs;
and a node alone, as a model of its own.

Calls of the model's own functions are expanded first, so that their nodes are shown too. A runtime may compute such a
model otherwise than the model as it is, since it can fuse less: who taps compares the outputs of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
from google.protobuf.message import EncodeError
from onnx import inliner

from ...errors import ModelError
from ...machine.memory import type_of
from ...model.elements import encode
from ...model.graph import Attribute, Constant, Model, NodeId, TensorId, ValueType
from ...model.stored import array_of
from ...model.type_protos import ELEMENT_CODES, to_proto
from ...model.values import Value
from ...resources.process import OutOfBudget
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


def alone(model: Model, n: NodeId, feeds: Mapping[TensorId, Value]) -> tuple[bytes, dict[TensorId, str]]:
    """The model of one node of any graph or call, and the names of its tensors there: what it reads are inputs, of the
    types that these values have. Raises ModelError for a node with a body, and for an attribute that is not written.
    """
    node = model.nodes[n]
    if node.bodies:
        raise ModelError(f"{node.path} holds a body, which is not handed on alone")
    tensors = list(dict.fromkeys(t for t in (*node.inputs, *node.outputs) if t is not None))
    plain = len({model.tensors[t].name for t in tensors}) == len(tensors)
    names = {t: model.tensors[t].name if plain else f"t{t}" for t in tensors}
    made = onnx.NodeProto(op_type=node.op_type, domain=node.domain, overload=node.overload)
    made.input.extend("" if t is None else names[t] for t in node.inputs)
    made.output.extend("" if t is None else names[t] for t in node.outputs)
    for name, attribute in node.attributes.items():
        _write(made.attribute.add(name=name), attribute, model)
    graph = onnx.GraphProto(name="node", node=[made])
    for t, value in feeds.items():
        to_proto(type_of(value), graph.input.add(name=names[t]).type)
    for t in dict.fromkeys(t for t in node.outputs if t is not None):
        declared, output = model.tensors[t].declared, graph.output.add(name=names[t])
        if declared is not None and declared.kind != "unset":
            to_proto(declared, output.type)
    opsets = dict(model.opsets) | ({} if node.opset is None else {node.domain: node.opset})
    imports = [onnx.OperatorSetIdProto(domain=domain, version=version) for domain, version in opsets.items()]
    proto = onnx.ModelProto(ir_version=model.ir_version, graph=graph, opset_import=imports)
    try:
        return proto.SerializeToString(), names
    except (EncodeError, ValueError) as error:
        raise ModelError(f"{node.path} cannot be handed on alone ({error})") from None


def _write(proto: onnx.AttributeProto, attribute: Attribute, model: Model) -> None:
    value = attribute.value
    proto.type = getattr(onnx.AttributeProto, attribute.kind)
    match attribute.kind, value:
        case "INT", int():
            proto.i = value
        case "FLOAT", int() | float():
            proto.f = value
        case "STRING", bytes():
            proto.s = value
        case "INTS" | "FLOATS" | "STRINGS", tuple():
            getattr(proto, attribute.kind.lower()).extend(value)
        case "TENSOR", Constant():
            _write_tensor(proto.t, value, model)
        case "TYPE_PROTO", ValueType():
            to_proto(value, proto.tp)
        case _:
            raise ModelError(f"the attribute {proto.name} of the kind {attribute.kind} is not handed on")


def _write_tensor(proto: onnx.TensorProto, constant: Constant, model: Model) -> None:
    array = array_of(constant, model)
    if isinstance(array, OutOfBudget) or array.dtype.hasobject:
        raise ModelError("an attribute that is a tensor of texts is not handed on")
    proto.data_type, proto.raw_data = ELEMENT_CODES[constant.element], bytes(encode(array))
    proto.dims.extend(array.shape)
