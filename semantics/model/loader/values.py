"""Stored tensors as constants, small ones with their bytes, others with where these lie; attributes of nodes."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from onnx import AttributeProto, SparseTensorProto, TensorProto

from ...errors import ModelError
from ..graph import Attribute, AttributeValue, Constant, Storage
from ..path import quote
from ..schemas import element_types
from ..type_protos import from_proto
from .external import checked_dims, locate
from .wire import Scan

# The typed field for each element type, and the layout of one entry as raw data. Complex numbers take two entries;
# int32_data holds the low bytes of what is smaller, and one byte of packed elements below 8 bits.
_LAYOUTS: Final = {
    "float": ("float_data", "f"),
    "complex64": ("float_data", "f"),
    "double": ("double_data", "d"),
    "complex128": ("double_data", "d"),
    "int64": ("int64_data", "q"),
    "uint64": ("uint64_data", "Q"),
    "uint32": ("uint64_data", "I"),
    "int32": ("int32_data", "i"),
    "int16": ("int32_data", "h"),
    "int8": ("int32_data", "b"),
    **dict.fromkeys(("uint16", "float16", "bfloat16"), ("int32_data", "H")),
}
_FIELDS: Final = ("raw_data", "float_data", "int32_data", "int64_data", "string_data", "double_data", "uint64_data")


@dataclass(frozen=True, slots=True)
class Payloads:
    """The source of the elements of the stored tensors of one model.

    folder: where external data lie, None for a model without a place. elides: the source leaves out what has no
    elements, such as a listing. files: the names of external files met, in order.
    """

    scan: Scan
    folder: Path | None
    elides: bool
    files: dict[str, None] = field(default_factory=dict)


def dense(proto: TensorProto, payloads: Payloads) -> Constant:
    """A stored tensor. Raises ModelError for external data that cannot be resolved."""
    element = element_types().get(proto.data_type, "")
    dims = tuple(proto.dims)
    if proto.data_location == TensorProto.EXTERNAL:
        storage = _external(proto, element, dims, payloads)
        return Constant(element, dims, "external", storage.length, storage=storage)
    payload = payloads.scan.payload(proto) if proto.metadata_props else None
    if payload is not None:
        storage = Storage("", payload.offset, payload.length, payload.packed)
        return Constant(element, dims, payload.field, payload.count, storage=storage)
    if proto.HasField("raw_data"):
        return Constant(element, dims, "raw_data", len(proto.raw_data), proto.raw_data)
    form = next((name for name in _FIELDS[1:] if getattr(proto, name)), "")
    if form:
        return _typed(proto, element, dims, form)
    if payloads.elides:
        return Constant(element, dims)
    form = "string_data" if element == "string" else _LAYOUTS.get(element, ("int32_data", ""))[0]
    return Constant(element, dims, form, 0, () if element == "string" else b"")


def sparse(proto: SparseTensorProto, payloads: Payloads) -> Constant:
    """A stored sparse tensor."""
    values, indices = dense(proto.values, payloads), dense(proto.indices, payloads)
    return Constant(values.element, tuple(proto.dims), "sparse_tensor", sparse=True, parts=(values, indices))


def complete(constant: Constant) -> bool:
    """True where the elements of a constant are known."""
    if constant.parts is not None:
        return all(complete(part) for part in constant.parts)
    return constant.data is not None or constant.storage is not None


def _external(proto: TensorProto, element: str, dims: tuple[int, ...], payloads: Payloads) -> Storage:
    if payloads.folder is None:
        raise ModelError(
            f"the stored tensor {quote(proto.name)} has external data, and a model given in memory or as text has no"
            " folder to find them in: give the path of the .onnx file"
        )
    needed = checked_dims(dims, element, proto.name)
    entries = [(entry.key, entry.value) for entry in proto.external_data]
    storage = locate(payloads.folder, proto.name, entries, needed)
    payloads.files[storage.file] = None
    return storage


def _typed(proto: TensorProto, element: str, dims: tuple[int, ...], form: str) -> Constant:
    entries = getattr(proto, form)
    count = len(entries)
    if form == "string_data":
        return Constant(element, dims, form, count, tuple(entries) if element == "string" else None)
    suited, code = _LAYOUTS.get(element, ("int32_data", "B"))
    data = None
    if form == suited and element not in ("", "string"):
        try:
            data = _six_bits(entries) if element.startswith("float6") else struct.pack(f"<{count}{code}", *entries)
        except (struct.error, OverflowError):
            data = None
    return Constant(element, dims, form, count, data)


def _six_bits(entries: list[int]) -> bytes:
    """Elements of 6 bits without gaps, the first in the lowest bits."""
    if any(not 0 <= entry < 64 for entry in entries):
        raise OverflowError
    whole = sum(entry << 6 * i for i, entry in enumerate(entries))
    return whole.to_bytes((6 * len(entries) + 7) // 8, "little")


# ---- Attributes -----------------------------------------------------------------------------------

KINDS: Final[Mapping[int, str]] = {code: name for name, code in AttributeProto.AttributeType.items()}

# Kind to the field that holds its value, and whether that is a list.
_ATTRIBUTE_FIELDS: Final = {
    "FLOAT": ("f", False),
    "INT": ("i", False),
    "STRING": ("s", False),
    "TENSOR": ("t", False),
    "GRAPH": ("g", False),
    "SPARSE_TENSOR": ("sparse_tensor", False),
    "TYPE_PROTO": ("tp", False),
    "FLOATS": ("floats", True),
    "INTS": ("ints", True),
    "STRINGS": ("strings", True),
    "TENSORS": ("tensors", True),
    "GRAPHS": ("graphs", True),
    "SPARSE_TENSORS": ("sparse_tensors", True),
    "TYPE_PROTOS": ("type_protos", True),
}
_BESIDE: Final = frozenset({"name", "type", "doc_string", "ref_attr_name"})
_NUMBERS: Final = frozenset({"FLOAT", "INT", "STRING"})
_NUMBER_LISTS: Final = frozenset({"FLOATS", "INTS", "STRINGS"})

SIMPLE: Final = frozenset(code for code, kind in KINDS.items() if kind in _NUMBERS | _NUMBER_LISTS)
"""The kinds, by number, whose values are numbers and texts: equal ones may be one object."""


def kind_of(proto: AttributeProto, typed: bool) -> str:
    """The kind of an attribute. typed: the model's IR version has types of attributes (2 and later); before, and in
    files that leave it out, the kind is that of the field which is set."""
    if proto.type or typed:
        return KINDS[proto.type]
    given = {field.name for field, _ in proto.ListFields()}
    kinds = [kind for kind, (name, _) in _ATTRIBUTE_FIELDS.items() if name in given]
    return kinds[0] if len(kinds) == 1 else "UNDEFINED"


def consistent(proto: AttributeProto, kind: str) -> bool:
    """True where the attribute has no value but one of its kind."""
    field = _ATTRIBUTE_FIELDS.get(kind, ("", False))[0]
    return all(it.name == field or it.name in _BESIDE for it, _ in proto.ListFields())


def has_value(proto: AttributeProto, kind: str, *, elides: bool) -> bool:
    """True where the attribute has a value, of its kind alone. One that is not written is the zero of its kind (proto3
    writers leave it out), except where the source elides values."""
    name, many = _ATTRIBUTE_FIELDS.get(kind, ("", False))
    if not consistent(proto, kind) or kind == "UNDEFINED":
        return False
    written = len(getattr(proto, name)) > 0 if many else proto.HasField(name)
    return written or (not elides and (many or kind in _NUMBERS))


def attribute(proto: AttributeProto, kind: str, payloads: Payloads) -> Attribute:
    """An attribute without graphs."""
    if not has_value(proto, kind, elides=payloads.elides):
        return Attribute(kind, None)
    value = getattr(proto, _ATTRIBUTE_FIELDS[kind][0])
    if kind in _NUMBERS:
        return Attribute(kind, value)
    if kind in _NUMBER_LISTS:
        return Attribute(kind, tuple(value))
    return Attribute(kind, _composite(kind, value, payloads))


def _composite(kind: str, value: Any, payloads: Payloads) -> AttributeValue:
    match kind:
        case "TENSOR":
            return dense(value, payloads)
        case "TENSORS":
            return tuple(dense(it, payloads) for it in value)
        case "SPARSE_TENSOR":
            return sparse(value, payloads)
        case "SPARSE_TENSORS":
            return tuple(sparse(it, payloads) for it in value)
        case "TYPE_PROTO":
            return from_proto(value)
        case "TYPE_PROTOS":
            return tuple(from_proto(it) for it in value)
        case _:
            return None
