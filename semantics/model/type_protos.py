"""The types of G as ONNX protobuf types, and back, and the values of attributes."""

from __future__ import annotations

from collections.abc import Callable

from onnx import AttributeProto, SparseTensorProto, TensorProto, TensorShapeProto, TypeProto

from .elements import CODES
from .graph import Attribute, Constant, ValueType
from .path import quote

ELEMENT_CODES = {name: code for code, name in CODES.items()}
"""ONNX's spelling of each element type to its number in TensorProto.DataType."""
UNSET = ValueType("unset")


def to_proto(type_: ValueType, into: TypeProto) -> None:
    """Write `type_` into an empty TypeProto; what `type_` leaves open stays open."""
    match type_.kind:
        case "tensor":
            _tensor(type_, into.tensor_type)
        case "sparse_tensor":
            _tensor(type_, into.sparse_tensor_type)
        case "sequence":
            into.sequence_type.SetInParent()
            if type_.inner is not None:
                to_proto(type_.inner, into.sequence_type.elem_type)
        case "optional":
            into.optional_type.SetInParent()
            if type_.inner is not None:
                to_proto(type_.inner, into.optional_type.elem_type)
        case "map":
            into.map_type.key_type = ELEMENT_CODES.get(type_.element, 0)
            if type_.inner is not None:
                to_proto(type_.inner, into.map_type.value_type)
        case "opaque":
            into.opaque_type.name = type_.element


def _tensor(type_: ValueType, into: TypeProto.Tensor | TypeProto.SparseTensor) -> None:
    into.elem_type = ELEMENT_CODES.get(type_.element, 0)
    if type_.shape is None:
        return
    into.shape.SetInParent()
    for size in type_.shape:
        dimension = into.shape.dim.add()
        if isinstance(size, int):
            dimension.dim_value = size
        elif size is not None:
            dimension.dim_param = size


def from_proto(proto: TypeProto) -> ValueType:
    """The type that a TypeProto states, unset parts included."""
    match proto.WhichOneof("value"):
        case "tensor_type":
            tensor = proto.tensor_type
            return ValueType("tensor", CODES.get(tensor.elem_type, ""), _shape(tensor))
        case "sparse_tensor_type":
            sparse = proto.sparse_tensor_type
            return ValueType("sparse_tensor", CODES.get(sparse.elem_type, ""), _shape(sparse))
        case "sequence_type":
            return ValueType("sequence", inner=from_proto(proto.sequence_type.elem_type))
        case "optional_type":
            return ValueType("optional", inner=from_proto(proto.optional_type.elem_type))
        case "map_type":
            key = CODES.get(proto.map_type.key_type, "")
            return ValueType("map", key, inner=from_proto(proto.map_type.value_type))
        case "opaque_type":
            return ValueType("opaque", proto.opaque_type.name)
        case _:
            return UNSET


def _shape(tensor: TypeProto.Tensor | TypeProto.SparseTensor) -> tuple[int | str | None, ...] | None:
    return tuple(_size(dimension) for dimension in tensor.shape.dim) if tensor.HasField("shape") else None


def _size(dimension: TensorShapeProto.Dimension) -> int | str | None:
    match dimension.WhichOneof("value"):
        case "dim_value":
            return dimension.dim_value
        case "dim_param":
            return dimension.dim_param
        case _:
            return None


def spelled(type_: ValueType | None) -> str | None:
    """The type in the spelling of ONNX's schemas, tensor(float) or seq(tensor(int64)); None while a part is open."""
    if type_ is None:
        return None
    match type_.kind:
        case "tensor" | "sparse_tensor":
            return f"{type_.kind}({type_.element})" if type_.element else None
        case "sequence" | "optional":
            inner = spelled(type_.inner)
            short = "seq" if type_.kind == "sequence" else "optional"
            return None if inner is None else f"{short}({inner})"
        case "map":
            inner = spelled(type_.inner)
            return f"map({type_.element},{inner})" if type_.element and inner else None
        case "opaque":
            return f"opaque({quote(type_.element)})" if type_.element else None
        case _:
            return None


PutTensor = Callable[[Constant, TensorProto], None]
PutSparse = Callable[[Constant, SparseTensorProto], None]


def put_attribute(into: AttributeProto, attribute: Attribute, tensor: PutTensor, sparse: PutSparse) -> None:
    """Writes the value of an attribute that holds no graph into a proto of its kind; tensor, sparse put constants."""
    values = attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)
    if attribute.value is None:
        return
    match attribute.kind:
        case "INT" | "FLOAT" | "STRING":
            setattr(into, {"INT": "i", "FLOAT": "f", "STRING": "s"}[attribute.kind], values[0])
        case "INTS" | "FLOATS" | "STRINGS":
            getattr(into, attribute.kind.lower()).extend(values)
        case "TENSOR" | "TENSORS":
            for value in values:
                if isinstance(value, Constant):
                    tensor(value, into.t if attribute.kind == "TENSOR" else into.tensors.add())
        case "SPARSE_TENSOR" | "SPARSE_TENSORS":
            for value in values:
                if isinstance(value, Constant):
                    single = attribute.kind == "SPARSE_TENSOR"
                    sparse(value, into.sparse_tensor if single else into.sparse_tensors.add())
        case "TYPE_PROTO" | "TYPE_PROTOS":
            for value in values:
                if isinstance(value, ValueType):
                    to_proto(value, into.tp if attribute.kind == "TYPE_PROTO" else into.type_protos.add())
