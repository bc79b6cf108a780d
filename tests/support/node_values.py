"""Values and attributes of the onnx wheel's node tests as the machine holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Optional, Sequence


def value_of(x: Any, proto: onnx.TypeProto) -> Any:
    """A value of a data set."""
    kind = proto.WhichOneof("value")
    if kind == "optional_type":
        inner = proto.optional_type.elem_type
        return Optional(type_of(inner), None if x is None else value_of(x, inner))
    if kind == "sequence_type":
        inner = proto.sequence_type.elem_type
        return Sequence(type_of(inner), tuple(value_of(item, inner) for item in x))
    if isinstance(x, onnx.TensorProto):
        return stored(x)
    x = np.asarray(x)
    if x.dtype.kind in "OUS":
        encoded = [s if isinstance(s, bytes) else str(s).encode() for s in x.reshape(-1).tolist()]
        return np.array([*encoded, None], dtype=object)[:-1].reshape(x.shape)
    return x


def stored(x: onnx.TensorProto) -> Any:
    """A tensor of a model."""
    if x.data_type == onnx.TensorProto.STRING:
        return np.array([*x.string_data, None], dtype=object)[:-1].reshape(tuple(x.dims))
    return onnx.numpy_helper.to_array(x)


def type_of(proto: onnx.TypeProto) -> ValueType:
    """The type of a value."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return ValueType("tensor", onnx.TensorProto.DataType.Name(proto.tensor_type.elem_type).lower())
    inner = proto.sequence_type.elem_type if kind == "sequence_type" else proto.optional_type.elem_type
    return ValueType("sequence" if kind == "sequence_type" else "optional", inner=type_of(inner))


def attribute(proto: onnx.AttributeProto) -> Any:
    """The value of an attribute."""
    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return stored(value)
    if isinstance(value, (int, float)):
        return value
    return tuple(item.decode() if isinstance(item, bytes) else item for item in value)
