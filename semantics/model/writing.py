"""G as a model file: the reverse of loading.

Functions stay expanded. Names are kept, but where two tensors that can be seen from one place have the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from ..errors import ModelError
from .graph import Constant, GraphId, Model, Node, TensorId, ValueType
from .path import quote
from .schemas import since_version
from .stored import array_of, raw_bytes
from .type_protos import ELEMENT_CODES, put_attribute, to_proto

LARGEST = (1 << 31) - (1 << 20)
"""The bytes that protobuf takes, with some room."""

# ---- The whole model ----------------------------------------------------------------------------


def model_proto(model: Model, metadata: Mapping[str, str] | None = None) -> ModelProto:
    """The model as ONNX's protobuf message. metadata: in place of its own.

    Raises ModelError where a stored value cannot be read, all of them are more than a protobuf message holds, or a node
    that a function gave means something else outside of it.
    """
    return _Writer(model).model(dict(model.metadata) if metadata is None else metadata)


class _Writer:
    """One pass over G."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._names, self._imports = names_of(model), _imports(model)
        self._size = 0

    def model(self, metadata: Mapping[str, str]) -> ModelProto:
        proto = ModelProto(ir_version=self._model.ir_version, producer_name=self._model.producer)
        for domain, version in self._imports.items():
            proto.opset_import.add(domain=domain, version=version)
        for key, value in metadata.items():
            proto.metadata_props.add(key=key, value=value)
        self._graph(0, proto.graph)
        return proto

    def _graph(self, number: GraphId, into: GraphProto) -> None:
        graph = self._model.graphs[number]
        into.name = graph.name or "g"
        for t, type_ in zip(graph.inputs, graph.input_types, strict=True):
            self._declare(into.input.add(), t, type_)
        for t, constant in graph.initializers:
            self._tensor(constant, into.initializer.add(name=self._names[t]))
        for t, constant in graph.sparse_initializers:
            sparse = into.sparse_initializer.add()
            self._sparse(constant, sparse)
            sparse.values.name = self._names[t]
        for n in graph.nodes:
            self._node(self._model.nodes[n], into.node.add())
        for t, type_ in zip(graph.outputs, graph.output_types, strict=True):
            self._declare(into.output.add(), t, type_)
        listed = {*graph.inputs, *graph.outputs}
        for t, type_ in graph.value_infos:
            if t not in listed:
                self._declare(into.value_info.add(), t, type_)

    def _node(self, node: Node, into: NodeProto) -> None:
        if since_version(node.domain, node.op_type, self._imports.get(node.domain)) != node.version:
            raise ModelError(
                f"{quote(node.path)} stands in a function that imports another version of {node.op_type} than the"
                " model: a model without functions cannot have both"
            )
        into.name, into.op_type, into.domain, into.overload = node.name, node.op_type, node.domain, node.overload
        into.input.extend("" if t is None else self._names[t] for t in node.inputs)
        into.output.extend("" if t is None else self._names[t] for t in node.outputs)
        for name, attribute in node.attributes.items():
            kind: Any = getattr(AttributeProto, attribute.kind)
            proto = into.attribute.add(name=name, type=kind)
            if attribute.kind in ("GRAPH", "GRAPHS"):
                bodies = attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)
                for body in bodies:
                    if isinstance(body, int):
                        self._graph(body, proto.g if attribute.kind == "GRAPH" else proto.graphs.add())
            else:
                put_attribute(proto, attribute, self._tensor, self._sparse)

    def _declare(self, into: Any, t: TensorId, type_: ValueType | None) -> None:
        into.name = self._names[t]
        if type_ is not None and type_.kind != "unset":
            to_proto(type_, into.type)

    def _tensor(self, constant: Constant, into: TensorProto) -> None:
        into.data_type = ELEMENT_CODES.get(constant.element, 0)
        into.dims.extend(constant.dims)
        if constant.element == "string":
            texts = array_of(constant, self._model)
            into.string_data.extend(texts.reshape(-1).tolist() if isinstance(texts, np.ndarray) else ())
            return
        data = bytes(raw_bytes(constant, self._model))
        self._size += len(data)
        if self._size > LARGEST:
            raise ModelError("the stored values take more than 2 GiB, which one model file does not hold")
        into.raw_data = data

    def _sparse(self, constant: Constant, into: SparseTensorProto) -> None:
        if constant.parts is None:
            raise ModelError("a sparse tensor has no values that can be read: export the model again")
        into.dims.extend(constant.dims)
        for part, place in zip(constant.parts, (into.values, into.indices), strict=True):
            self._tensor(part, place)


def _imports(model: Model) -> Mapping[str, int]:
    """The operator sets: the model's, and of a domain that it does not import the one that a function does."""
    versions = dict(reversed(model.opsets))
    for node in model.nodes:
        if node.opset is not None and node.domain not in versions:
            versions[node.domain] = node.opset
    return versions


def names_of(model: Model) -> Mapping[TensorId, str]:
    """A name for each tensor, no two alike, since inner graphs see those around them. Inputs and outputs of the main
    graph come first: they keep theirs.
    """
    main, taken, names = model.graphs[0], set[str](), dict[TensorId, str]()
    for t in dict.fromkeys((*main.inputs, *main.outputs, *range(len(model.tensors)))):
        name, number = model.tensors[t].name, 0
        while not name or name in taken:
            number += 1
            name = f"{model.tensors[t].name or 'value'}_{number}"
        taken.add(name)
        names[t] = name
    return names
