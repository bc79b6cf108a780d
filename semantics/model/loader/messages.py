"""The messages of a model file: names, numbers and types of their fields, as a table.

Source: onnx.proto of ONNX 1.23 (IR version 14). It is our own table, not the installed library's, because it states
what this package reads: a field that is not here is refused, never skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

# number name type; "*" repeated, "*payload" the elements of a tensor, "|group" at most one of the group.
_TABLE = """
ModelProto
  1 ir_version int64; 2 producer_name string; 3 producer_version string; 4 domain string; 5 model_version int64
  6 doc_string string; 7 graph GraphProto; 8 opset_import *OperatorSetIdProto; 14 metadata_props *StringStringEntryProto
  20 training_info *TrainingInfoProto; 25 functions *FunctionProto; 26 configuration *DeviceConfigurationProto
GraphProto
  1 node *NodeProto; 2 name string; 5 initializer *TensorProto; 10 doc_string string; 11 input *ValueInfoProto
  12 output *ValueInfoProto; 13 value_info *ValueInfoProto; 14 quantization_annotation *TensorAnnotation
  15 sparse_initializer *SparseTensorProto; 16 metadata_props *StringStringEntryProto
NodeProto
  1 input *string; 2 output *string; 3 name string; 4 op_type string; 5 attribute *AttributeProto; 6 doc_string string
  7 domain string; 8 overload string; 9 metadata_props *StringStringEntryProto
  10 device_configurations *NodeDeviceConfigurationProto
AttributeProto
  1 name string; 2 f float; 3 i int64; 4 s bytes; 5 t TensorProto; 6 g GraphProto; 7 floats *float; 8 ints *int64
  9 strings *bytes; 10 tensors *TensorProto; 11 graphs *GraphProto; 13 doc_string string; 14 tp TypeProto
  15 type_protos *TypeProto; 20 type AttributeType; 21 ref_attr_name string; 22 sparse_tensor SparseTensorProto
  23 sparse_tensors *SparseTensorProto
TensorProto
  1 dims *int64; 2 data_type int32; 3 segment TensorProto.Segment; 4 float_data *payload float
  5 int32_data *payload int32; 6 string_data *payload bytes; 7 int64_data *payload int64; 8 name string
  9 raw_data payload bytes; 10 double_data *payload double; 11 uint64_data *payload uint64; 12 doc_string string
  13 external_data *StringStringEntryProto; 14 data_location DataLocation; 16 metadata_props *StringStringEntryProto
TensorProto.Segment
  1 begin int64; 2 end int64
StringStringEntryProto
  1 key string; 2 value string
SparseTensorProto
  1 values TensorProto; 2 indices TensorProto; 3 dims *int64
OperatorSetIdProto
  1 domain string; 2 version int64
ValueInfoProto
  1 name string; 2 type TypeProto; 3 doc_string string; 4 metadata_props *StringStringEntryProto
TypeProto
  1 tensor_type TypeProto.Tensor |value; 4 sequence_type TypeProto.Sequence |value; 5 map_type TypeProto.Map |value
  6 denotation string; 7 opaque_type TypeProto.Opaque |value; 8 sparse_tensor_type TypeProto.SparseTensor |value
  9 optional_type TypeProto.Optional |value
TypeProto.Tensor
  1 elem_type int32; 2 shape TensorShapeProto
TypeProto.SparseTensor
  1 elem_type int32; 2 shape TensorShapeProto
TypeProto.Sequence
  1 elem_type TypeProto
TypeProto.Optional
  1 elem_type TypeProto
TypeProto.Map
  1 key_type int32; 2 value_type TypeProto
TypeProto.Opaque
  1 domain string; 2 name string
TensorShapeProto
  1 dim *TensorShapeProto.Dimension
TensorShapeProto.Dimension
  1 dim_value int64 |value; 2 dim_param string |value; 3 denotation string
TensorAnnotation
  1 tensor_name string; 2 quant_parameter_tensor_names *StringStringEntryProto
FunctionProto
  1 name string; 4 input *string; 5 output *string; 6 attribute *string; 7 node *NodeProto; 8 doc_string string
  9 opset_import *OperatorSetIdProto; 10 domain string; 11 attribute_proto *AttributeProto
  12 value_info *ValueInfoProto; 13 overload string; 14 metadata_props *StringStringEntryProto
TrainingInfoProto
  1 initialization GraphProto; 2 algorithm GraphProto; 3 initialization_binding *StringStringEntryProto
  4 update_binding *StringStringEntryProto
DeviceConfigurationProto
  1 name string; 2 num_devices int32; 3 device *string
NodeDeviceConfigurationProto
  1 configuration_id string; 2 sharding_spec *ShardingSpecProto; 3 pipeline_stage int32
ShardingSpecProto
  1 tensor_name string; 2 device *int64; 3 index_to_device_group_map *IntIntListEntryProto
  4 sharded_dim *ShardedDimProto
IntIntListEntryProto
  1 key int64; 2 value *int64
ShardedDimProto
  1 axis int64; 2 simple_sharding *SimpleShardedDimProto
SimpleShardedDimProto
  1 dim_value int64 |dim; 2 dim_param string |dim; 3 num_shards int64
"""

ENUMS: Mapping[str, int] = MappingProxyType({"AttributeType": 14, "DataLocation": 1})
"""Enumerations with their greatest value; they start at 0 and have no gaps."""

SCALARS: Mapping[str, int] = MappingProxyType(
    {"int32": 0, "int64": 0, "uint64": 0, "AttributeType": 0, "DataLocation": 0, "double": 1, "float": 5}
)
"""Scalar types with their wire type: 0 variable-length integer, 1 eight bytes, 5 four bytes."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message. type: a scalar of SCALARS, "string", "bytes" or the name of a message.

    payload: it holds elements of a tensor. group: the name of the oneof, "" outside one.
    """

    number: int
    name: str
    type: str
    repeated: bool
    payload: bool
    group: str


def _field(text: str) -> Field:
    number, name, *words = text.split()
    group = words.pop()[1:] if words[-1].startswith("|") else ""
    repeated = words[0].startswith("*")
    words[0] = words[0].removeprefix("*")
    return Field(int(number), name, words[-1], repeated, words[0] == "payload", group)


def _read(table: str) -> Mapping[str, tuple[Field, ...]]:
    messages: dict[str, tuple[Field, ...]] = {}
    name = ""
    for line in table.strip().splitlines():
        if line.startswith(" "):
            messages[name] += tuple(_field(part) for part in line.split(";"))
        else:
            name = line
            messages[name] = ()
    return MappingProxyType(messages)


MESSAGES: Mapping[str, tuple[Field, ...]] = _read(_TABLE)
"""Every message of a model file, ModelProto first."""
