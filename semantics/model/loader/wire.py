"""A scanner of the bytes of a model file (protobuf wire format, onnx.ModelProto)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from mmap import mmap
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from ...errors import ModelError

if TYPE_CHECKING:
    from typing import NoReturn

    from onnx import TensorProto


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


MARK: Final = "sonnx.payload"
"""Metadata key under which a stripped tensor carries the number of its payload; models may not use it."""

MAX_DEPTH: Final = 99
"""Messages inside messages; protobuf's own readers stop at 100, and the mark of a stripped tensor takes one."""

MAX_BYTES: Final = 2**31 - 1
"""The largest message that protobuf's readers accept."""

_WINDOW: Final = 1 << 16  # a message of a mapped file up to this size is read as bytes, which are faster to index
_MEMO_BYTES: Final = 64  # a message up to this size is not read again when an equal one was read
_MEMO_ENTRIES: Final = 1 << 16

# What a rule does with the value of a field; up to _BYTES values are length-delimited, up to _ENUM they are numbers.
_TEXT, _KEY, _MESSAGE, _BYTES, _VARINT, _INT32, _ENUM, _FIXED, _PACKED, _UNPACKED, _RAW, _STRINGS = range(12)

_DAMAGED: Final = "the file is damaged or no ONNX model: fetch or export it again"
_AMBIGUOUS: Final = "readers differ in what they make of this: export the model again"
_NEWER: Final = "the file is no ONNX model, or of a newer ONNX: export it for IR version 14 or older"


@dataclass(frozen=True, slots=True)
class Payload:
    """The elements of one tensor in the file.

    field: the protobuf field that holds them. offset, length: their bytes; for string_data and for numbers that are
    not packed, the tag of each element is among them. count: the number of elements, of bytes for raw_data.
    """

    field: str
    offset: int
    length: int
    count: int
    packed: bool


@dataclass(frozen=True, slots=True)
class Scan:
    """A model file, read.

    stripped: the model as a serialised ModelProto without the large payloads; each tensor that lost one carries its
    number, the index in payloads, under the metadata key MARK. payloads: in the order of the file.
    """

    stripped: bytes
    payloads: tuple[Payload, ...]

    def payload(self, tensor: TensorProto) -> Payload | None:
        """The place of the elements of `tensor`, a part of the parsed `stripped`; None when it kept them."""
        for entry in tensor.metadata_props:
            if entry.key == MARK:
                return self.payloads[int(entry.value)]
        return None


def scan(buffer: bytes | mmap, *, keep: int = 4096) -> Scan:
    """Read a whole model file; payloads of more than `keep` bytes are left out of the result.

    Raises ModelError, one line with the byte offset and the field, for anything that is not one well-formed
    ModelProto or that two readers could read differently: cut off, a number or tag longer than needed, a wrong wire
    type, a group, an unknown field or enumeration value, a field or oneof that occurs twice, text that is not UTF-8,
    elements of a tensor in more than one place, nesting deeper than MAX_DEPTH.
    """
    if len(buffer) > MAX_BYTES:
        raise ModelError(
            f"the model has {len(buffer)} bytes, protobuf's limit is {MAX_BYTES}: save its weights as external data"
        )
    run = _Run(buffer, keep)
    stripped = _walk(run, _TABLES["ModelProto"], buffer, 0, 0, len(buffer), 0)
    return Scan(bytes(buffer) if stripped is None else stripped, tuple(run.payloads))


_Rule: TypeAlias = "tuple[int, int, int, _Table, Field]"
"""The treatment of a field: its kind, the bits of the fields that may not come before it, its own bit, the message
inside, the field. A plain tuple, which unpacks fastest."""


@dataclass(slots=True)
class _Table:
    """The fields of a message by tag. memo: equal small messages of this kind are frequent."""

    name: str
    memo: bool
    rules: list[_Rule | None]


@dataclass(slots=True)
class _Run:
    buffer: bytes | mmap
    keep: int
    payloads: list[Payload] = field(default_factory=list)
    memo: dict[str, set[bytes]] = field(default_factory=lambda: {name: set() for name in MESSAGES})


def _walk(run: _Run, table: _Table, window: bytes | mmap, base: int, pos: int, end: int, depth: int) -> bytes | None:
    """Check the message at pos:end of the window, which starts at byte `base` of the file.

    Gives the message without its large payloads, None when nothing was left out. It is one long loop because it runs
    for every field of a model, millions of times in a large one.
    """
    rules = table.rules
    seen = 0  # the bits of the fields so far
    parts: list[bytes] = []  # the message without payloads, up to `copied`
    begin = copied = field_at = pos
    filled = external = False
    try:
        while pos < end:
            field_at = pos
            tag = window[pos]
            pos += 1
            if tag > 127:
                if window[pos] != 1:
                    _unknown(table, window, base, field_at)
                pos += 1
            rule = rules[tag]
            if rule is None:
                _unknown(table, window, base, field_at)
            kind, excluded, bit, inner, spec = rule
            if seen & excluded:
                _twice(base + field_at, table, spec)
            seen |= bit
            if kind <= _BYTES:
                size = window[pos]
                pos += 1
                if size > 127:
                    size, pos = _varint(window, pos, base, table, spec)
                stop = pos + size
                if stop > end:
                    _fail(base + field_at, table, spec, "is longer than the message around it", _DAMAGED)
                if kind <= _KEY:
                    text = window[pos:stop]
                    if not text.isascii():
                        _check_text(text, base + pos, table, spec)
                    if kind == _KEY and text == _MARK_BYTES:
                        _fail(base + field_at, table, spec, f"is {MARK}, a key that sonnx reserves", "rename the key")
                elif kind == _MESSAGE:
                    if depth >= MAX_DEPTH:
                        _fail(base + field_at, table, spec, f"is nested deeper than {MAX_DEPTH} messages", _DAMAGED)
                    changed = _nested(run, inner, window, base, pos, stop, depth + 1)
                    if changed is not None:
                        parts += (window[copied:field_at], _delimited(spec.number, changed))
                        copied = stop
                pos = stop
            elif kind <= _ENUM:
                value = window[pos]
                pos += 1
                if value > 127:
                    value, pos = _varint(window, pos, base, table, spec)
                    if kind == _INT32 and 2**31 <= value < 2**64 - 2**31:
                        _fail(base + field_at, table, spec, "does not fit 32 bits", _AMBIGUOUS)
                if kind == _ENUM:
                    if value > ENUMS[spec.type]:
                        said = f"has the value {value}, which ONNX does not define"
                        _fail(base + field_at, table, spec, said, _NEWER)
                    external = external or (spec.type == "DataLocation" and value == 1)
            elif kind == _FIXED:
                pos += _WIDTH[spec.type]
            else:
                body, pos, count = _elements(kind, spec, table, window, base, field_at, pos, end)
                if spec.payload:
                    filled = True
                    if pos - body > run.keep:
                        parts += (window[copied:field_at], _marker(len(run.payloads)))
                        whole = kind in (_PACKED, _RAW)
                        run.payloads.append(Payload(spec.name, base + body, pos - body, count, whole))
                        copied = pos
            if pos > end:
                _fail(base + field_at, table, spec, "is longer than the message around it", _DAMAGED)
    except IndexError:
        raise ModelError(f"byte {base + field_at}: {table.name} is cut off: {_DAMAGED}") from None
    if filled and external:
        raise ModelError(f"byte {base + begin}: {table.name} has elements here and in an external file: {_AMBIGUOUS}")
    if not parts:
        return None
    parts.append(window[copied:end])
    return b"".join(parts)


def _nested(run: _Run, table: _Table, window: bytes | mmap, base: int, pos: int, end: int, depth: int) -> bytes | None:
    """`_walk` of a message inside another: not again for a small one that is known, and in memory for a medium one."""
    size = end - pos
    if size <= _MEMO_BYTES and table.memo and depth + _MEMO_BYTES <= MAX_DEPTH:
        text = window[pos:end]
        known = run.memo[table.name]
        if text in known:
            return None
        changed = _walk(run, table, text, base + pos, 0, size, depth)
        if changed is None and len(known) < _MEMO_ENTRIES:
            known.add(text)
        return changed
    if size <= _WINDOW and isinstance(window, mmap):
        return _walk(run, table, window[pos:end], base + pos, 0, size, depth)
    return _walk(run, table, window, base, pos, end, depth)


def _varint(b: bytes | mmap, pos: int, base: int, table: _Table, spec: Field | None) -> tuple[int, int]:
    """The number whose first byte, before `pos`, says that more follow; and the position after it."""
    start = pos - 1
    value, shift = b[start] & 127, 7
    while True:
        byte = b[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            _fail(base + start, table, spec, "has a number of more than 10 bytes", _DAMAGED)
    if byte == 0:
        _fail(base + start, table, spec, "has a number written with more bytes than it needs", _AMBIGUOUS)
    if value >= 2**64:
        _fail(base + start, table, spec, "has a number of more than 64 bits", _DAMAGED)
    return value, pos


def _elements(
    kind: int, spec: Field, table: _Table, b: bytes | mmap, base: int, start: int, pos: int, end: int
) -> tuple[int, int, int]:
    """Check the elements of a repeated scalar, or of a tensor, whose tag is at start:pos.

    Gives the position of their first byte, the one after their last, and their number.
    """
    if kind == _STRINGS:
        tag, count = b[start], 0
        while pos <= end:
            size = b[pos]
            pos += 1
            if size > 127:
                size, pos = _varint(b, pos, base, table, spec)
            pos += size
            count += 1
            if pos >= end or b[pos] != tag:
                break
            pos += 1
        return start, pos, count
    if kind == _UNPACKED:
        match = _UNPACKED_RUN[spec.type, spec.number].match(b, start, end)
        if match is None:
            _fail(base + start, table, spec, "has an element that is cut off or longer than it needs", _AMBIGUOUS)
        stop = match.end()
        width = _WIDTH.get(spec.type)
        count = (stop - start) // (width + 1) if width else _ends(b, start, stop) // 2
        return start, stop, count
    size = b[pos]
    pos += 1
    if size > 127:
        size, pos = _varint(b, pos, base, table, spec)
    stop = pos + size
    if stop > end:
        _fail(base + start, table, spec, "is longer than the message around it", _DAMAGED)
    if kind == _RAW:
        return pos, stop, size
    width = _WIDTH.get(spec.type)
    if width:
        if size % width:
            _fail(base + start, table, spec, f"has {size} bytes, no multiple of {width}", _DAMAGED)
        return pos, stop, size // width
    match = _PACKED_RUN[spec.type].match(b, pos, stop)
    good = pos if match is None else match.end()
    if good != stop:
        _fail(base + good, table, spec, "has an element that is cut off or longer than it needs", _AMBIGUOUS)
    return pos, stop, _ends(b, pos, stop)


def _ends(b: bytes | mmap, start: int, stop: int) -> int:
    """The number of bytes below 128: each number has one, its last."""
    return sum(len(b[i : min(i + _BLOCK, stop)].translate(None, _HIGH)) for i in range(start, stop, _BLOCK))


def _check_text(text: bytes, offset: int, table: _Table, spec: Field) -> None:
    try:
        str(text, "utf-8")
    except UnicodeDecodeError as error:
        _fail(offset + error.start, table, spec, "is not UTF-8", _DAMAGED)


def _fail(offset: int, table: _Table, spec: Field | None, what: str, advice: str) -> NoReturn:
    place = f"{table.name}.{spec.name}" if spec else table.name
    raise ModelError(f"byte {offset}: {place} {what}: {advice}")


def _twice(offset: int, table: _Table, spec: Field) -> NoReturn:
    if spec.payload:
        what = "comes after other elements of the same tensor"
    elif spec.group:
        what = f"is set where another {spec.group} of the same message is set"
    elif spec.repeated:
        what = "is packed more than once, or packed and not packed"
    else:
        what = "occurs twice"
    _fail(offset, table, spec, what, _AMBIGUOUS)


def _unknown(table: _Table, b: bytes | mmap, base: int, start: int) -> NoReturn:
    """Refuse the tag at `start`, for which the table has no rule."""
    tag, pos = b[start], start + 1
    if tag > 127:
        tag, _ = _varint(b, pos, base, table, None)
    number, wire = tag >> 3, tag & 7
    names = {spec.number: spec.name for spec in MESSAGES[table.name]}
    if number not in names:
        what, advice = f"has no field {number}", _NEWER
    elif wire in (3, 4):
        what, advice = f"has the field {names[number]} as a group", _DAMAGED
    else:
        what, advice = f"has the field {names[number]} with the wrong wire type {wire}", _DAMAGED
    raise ModelError(f"byte {base + start}: {table.name} {what}: {advice}")


def _encode(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _delimited(number: int, body: bytes) -> bytes:
    return _encode(number << 3 | 2) + _encode(len(body)) + body


def _marker(number: int) -> bytes:
    return _delimited(_METADATA, _delimited(1, _MARK_BYTES) + _delimited(2, str(number).encode()))


_MARK_BYTES: Final = MARK.encode()
_METADATA: Final = next(spec.number for spec in MESSAGES["TensorProto"] if spec.name == "metadata_props")
_WIDTH: Final = {"float": 4, "double": 8}
_BLOCK: Final = 1 << 20
_HIGH: Final = bytes(range(128, 256))

# The one shortest form of a number. A negative int32 is written with 64 bits.
_INT64_FORM: Final = rb"(?:[\x00-\x7f]|[\x80-\xff]{1,8}+[\x01-\x7f]|[\x80-\xff]{9}\x01)"
_INT32_FORM: Final = (
    rb"(?:[\x00-\x7f]|[\x80-\xff]{1,3}+[\x01-\x7f]|[\x80-\xff]{4}[\x01-\x07]|[\x80-\xff]{4}[\xf8-\xff]\xff{4}\x01)"
)
_FORMS: Final = {
    "int64": _INT64_FORM,
    "uint64": _INT64_FORM,
    "int32": _INT32_FORM,
    "float": rb"[\x00-\xff]{4}",
    "double": rb"[\x00-\xff]{8}",
}
_PACKED_RUN: Final = {kind: re.compile(b"(?:" + form + b")*+") for kind, form in _FORMS.items()}
_UNPACKED_RUN: Final = {
    (spec.type, spec.number): re.compile(
        b"(?:" + re.escape(_encode(spec.number << 3 | SCALARS[spec.type])) + _FORMS[spec.type] + b")++"
    )
    for fields in MESSAGES.values()
    for spec in fields
    if spec.repeated and spec.type in SCALARS
}
_NUMBER_KINDS: Final = {"int32": _INT32, "AttributeType": _ENUM, "DataLocation": _ENUM}
_MEMO: Final = {"AttributeProto", "TypeProto"}


def _compile() -> dict[str, _Table]:
    tables = {name: _Table(name, name in _MEMO, [None] * 256) for name in MESSAGES}
    for name, fields in MESSAGES.items():
        rules, table = tables[name].rules, tables[name]
        groups = {spec.group: 1 << i for i, spec in enumerate(fields) if spec.group}
        elements = 1 << len(fields)
        for i, spec in enumerate(fields):
            bit = groups.get(spec.group, 1 << i)
            tag = spec.number << 3
            if spec.payload and spec.type == "bytes":
                rules[tag | 2] = (_STRINGS if spec.repeated else _RAW, elements, elements, table, spec)
            elif spec.type not in SCALARS:
                kind = {"string": _TEXT, "bytes": _BYTES}.get(spec.type, _MESSAGE)
                if (name, spec.name) == ("StringStringEntryProto", "key"):
                    kind = _KEY
                once = 0 if spec.repeated else bit
                rules[tag | 2] = (kind, once, once, tables.get(spec.type, table), spec)
            elif spec.repeated:
                packed, loose = (elements, elements) if spec.payload else (bit << 32, bit)
                rules[tag | 2] = (_PACKED, packed | loose, packed, table, spec)
                rules[tag | SCALARS[spec.type]] = (_UNPACKED, packed, loose, table, spec)
            else:
                kind = _FIXED if spec.type in _WIDTH else _NUMBER_KINDS.get(spec.type, _VARINT)
                rules[tag | SCALARS[spec.type]] = (kind, bit, bit, table, spec)
    return tables


_TABLES: Final = _compile()
