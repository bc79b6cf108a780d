"""Values in protobuf files: TensorProto, SequenceProto, OptionalProto and MapProto (onnx.proto, onnx-data.proto)."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from onnx import MapProto, OptionalProto, SequenceProto, TensorProto

from ...errors import ModelError
from ...model.graph import Model, ValueType
from ...model.loader.values import Payloads, dense
from ...model.loader.wire import Scan
from ...model.schemas import element_types
from ...model.stored import array_of
from ...model.values import Array, Map, Optional, Sequence, Value
from ...resources.process import OutOfBudget
from ..memory import type_of

_NOTHING = Model((), (), (), 0, (), "protobuf", ())
_TENSOR = ValueType("tensor")


def value_from_proto(content: bytes, declared: ValueType | None) -> Value:
    """The value that a serialised message holds; which message it is follows from the declared type.

    Raises ModelError when it is none.
    """
    kind = "tensor" if declared is None or declared.kind in ("unset", "") else declared.kind
    try:
        match kind:
            case "sequence":
                return _sequence(SequenceProto.FromString(content), declared)
            case "optional":
                return _optional(OptionalProto.FromString(content), declared)
            case "map":
                return _map(MapProto.FromString(content), declared)
            case _:
                return _tensor(TensorProto.FromString(content))
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"it is no serialised {kind} ({error}): save it again") from None


def _tensor(proto: TensorProto) -> Array:
    if not proto.data_type:
        raise ModelError("it is no serialised tensor (it has no element type): save it again")
    del proto.metadata_props[:]  # they refer to payloads of a model file
    array = array_of(dense(proto, Payloads(Scan(b"", ()), None, False)), _NOTHING, proto.name)
    if isinstance(array, OutOfBudget):
        raise ModelError("the tensor is too large: give it as .npy")
    return array


def _sequence(proto: SequenceProto, declared: ValueType | None) -> Sequence:
    inner = None if declared is None else declared.inner
    items: list[Value]
    match proto.elem_type:
        case SequenceProto.TENSOR:
            items = [_tensor(it) for it in proto.tensor_values]
        case SequenceProto.SEQUENCE:
            items = [_sequence(it, inner) for it in proto.sequence_values]
        case SequenceProto.MAP:
            items = [_map(it, inner) for it in proto.map_values]
        case SequenceProto.OPTIONAL:
            items = [_optional(it, inner) for it in proto.optional_values]
        case SequenceProto.UNDEFINED:
            items = []
        case _:
            raise ModelError("a sequence of sparse tensors cannot be computed with: give dense ones")
    return Sequence(_inner(items, inner), tuple(items))


def _optional(proto: OptionalProto, declared: ValueType | None) -> Optional:
    inner = None if declared is None else declared.inner
    item: Value | None
    match proto.elem_type:
        case OptionalProto.TENSOR:
            item = _tensor(proto.tensor_value) if proto.HasField("tensor_value") else None
        case OptionalProto.SEQUENCE:
            item = _sequence(proto.sequence_value, inner) if proto.HasField("sequence_value") else None
        case OptionalProto.MAP:
            item = _map(proto.map_value, inner) if proto.HasField("map_value") else None
        case OptionalProto.UNDEFINED:
            item = None
        case _:
            raise ModelError("an optional of this kind cannot be computed with: give a tensor or a sequence")
    return Optional(_inner([] if item is None else [item], inner), item)


def _map(proto: MapProto, declared: ValueType | None) -> Map:
    inner = None if declared is None else declared.inner
    values = _sequence(proto.values, ValueType("sequence", inner=inner))
    key = element_types().get(proto.key_type, "")
    texts, numbers = list(proto.string_keys), list(proto.keys)
    count = len(set(texts)) if key == "string" else len(set(numbers))
    if count != len(values.items) or len(texts if key == "string" else numbers) != count:
        raise ModelError("the map has a key twice, or other numbers of keys and values: save it again")
    ordered = sorted(range(count), key=(lambda i: texts[i]) if key == "string" else (lambda i: numbers[i]))
    pairs = tuple((texts[i] if key == "string" else numbers[i], values.items[i]) for i in ordered)
    return Map(key, values.inner, pairs)


def _inner(items: list[Value], declared: ValueType | None) -> ValueType:
    """The type of the items: that of the first one without its shape, the declared one where there is none."""
    type_ = type_of(items[0]) if items else declared or _TENSOR
    return ValueType(type_.kind, type_.element, inner=type_.inner)
