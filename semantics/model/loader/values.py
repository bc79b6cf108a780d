"""Stored tensors as constants, small ones with their bytes, others with where these lie; attributes of nodes."""

from __future__ import annotations

import math
import os
import re
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from onnx import AttributeProto, SparseTensorProto, TensorProto

from ...errors import ModelError
from ..elements import BITS
from ..graph import Attribute, AttributeValue, Constant, Storage
from ..path import quote
from ..schemas import element_types
from ..type_protos import from_proto
from .wire import Scan

# ---- External data: the elements of a tensor in a file of their own beside the model -----------
#
# A model is a guest's file: nothing that it names is opened or looked at unless it is a regular file in the model's own
# folder, reached without links.

_KEYS: Final = frozenset({"location", "offset", "length", "checksum"})
_NUMBER: Final = re.compile("[0-9]{1,19}")
_SHA1: Final = re.compile("[0-9a-fA-F]{40}")
_DRIVE: Final = re.compile("[A-Za-z]:")
_MAX_ELEMENTS: Final = 2**63 - 1


def locate(
    folder: Path, tensor_name: str, entries: Mapping[str, str] | Iterable[tuple[str, str]], needed: int | None
) -> Storage:
    """The place of the elements of an external tensor. entries: its external_data; needed: its size in bytes, if known.

    Raises ModelError when a key is unknown, missing or given twice, a number is none or leads out of the file, the
    length is not the needed one, or the file may not be opened (see open_external). A checksum must look like a SHA-1;
    it is not compared, the certificate's own digest names the file.
    """
    where = f"external data of tensor {quote(tensor_name)}"
    values = _values(where, entries.items() if isinstance(entries, Mapping) else entries)
    name = _checked_name(where, values["location"])
    offset = _number(where, "offset", values.get("offset", "0"))
    fd = _open(where, folder, name)
    try:
        size = os.fstat(fd).st_size
    finally:
        os.close(fd)
    if offset > size:
        raise ModelError(f"{where} start at byte {offset}, {quote(name)} has {size} bytes: save the model again")
    length = _number(where, "length", values["length"]) if "length" in values else size - offset
    if offset + length > size:
        raise ModelError(
            f"{where} end at byte {offset + length}, {quote(name)} has {size} bytes: fetch that file again"
        )
    if needed is not None and length != needed:
        raise ModelError(f"{where} have {length} bytes, its type and shape need {needed}: save the model again")
    return Storage(name, offset, length)


def open_external(folder: Path, name: str) -> int:
    """Open a file of external data for reading, relative to the model's folder; the caller closes the descriptor.

    Every folder on the way is opened without following links, relative to the one before, so that nothing can be
    exchanged in between. The file must be regular and have no second name (hard link). The model's folder itself may
    be reached through links. Raises ModelError.
    """
    where = f"external data {quote(name)}"
    return _open(where, folder, _checked_name(where, name))


def checked_dims(dims: Sequence[int], element: str, tensor_name: str = "") -> int | None:
    """The bytes that the raw data of a tensor of this shape take; None when the element type has no fixed size.

    element: ONNX's spelling (float, int64 ...), in either case. Raises ModelError for a negative dimension, and when
    the dimensions, zeros aside, multiply to more elements than 63 bits count.
    """
    where = f"the stored tensor {quote(tensor_name)}"
    if any(dim < 0 for dim in dims):
        raise ModelError(f"{where} has the negative dimension {min(dims)}: export the model again")
    count = 1
    for dim in dims:
        count *= max(dim, 1)
        if count > _MAX_ELEMENTS:
            raise ModelError(f"{where} has dimensions of more than 2**63 elements: export the model again")
    bits = BITS.get(element.lower())
    return None if bits is None else (math.prod(dims) * bits + 7) // 8


def _values(where: str, entries: Iterable[tuple[str, str]]) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in entries:
        if key not in _KEYS:
            raise ModelError(f"{where} have the key {quote(key)}, which ONNX does not define: save the model again")
        if key in values:
            raise ModelError(f"{where} have the key {quote(key)} twice: save the model again")
        values[key] = value
    if "location" not in values:
        raise ModelError(f"{where} name no file (key location): save the model again")
    if not _SHA1.fullmatch(values.get("checksum", "0" * 40)):
        raise ModelError(f"{where} have a checksum that is no SHA-1: save the model again")
    return values


def _number(where: str, key: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ModelError(f"{where} have the {key} {quote(text[:40])}, no decimal number of bytes: save the model again")
    return int(text)


def _checked_name(where: str, name: str) -> str:
    """The name without "." in it, when it is a relative path downwards."""
    parts = name.split("/")
    if name.startswith(("/", "\\")) or _DRIVE.match(name):
        fault = "is an absolute path"
    elif "\0" in name or "\\" in name:
        fault = "has a NUL or a backslash"
    elif ".." in parts:
        fault = "leads out of the model's folder"
    elif "" in parts or parts[-1] == ".":
        fault = "names no file"
    else:
        return "/".join(part for part in parts if part != ".")
    raise ModelError(f"{where}: {quote(name)} {fault}: give a path relative to the model, downwards")


def _open(where: str, folder: Path, name: str) -> int:
    if os.open not in os.supports_dir_fd:
        raise ModelError(f"{where}: this system cannot open files without following links: use a POSIX system")
    *parents, last = (part.encode() for part in name.split("/"))
    fd = -1
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parents:
            _refuse_link(where, name, os.stat(part, dir_fd=fd, follow_symlinks=False))
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = inner
        seen = os.stat(last, dir_fd=fd, follow_symlinks=False)
        _refuse_link(where, name, seen)
        if not stat.S_ISREG(seen.st_mode):
            raise ModelError(f"{where}: {quote(name)} is no regular file: put the data themselves there")
        if seen.st_nlink != 1:
            raise ModelError(f"{where}: {quote(name)} has a second name (hard link): put a copy of the file there")
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=fd)
        opened = os.fstat(file)
        if (opened.st_dev, opened.st_ino, opened.st_nlink) != (seen.st_dev, seen.st_ino, 1):
            os.close(file)
            raise ModelError(f"{where}: {quote(name)} was exchanged while it was opened: try again")
        return file
    except FileNotFoundError:
        raise ModelError(f"{where}: {quote(name)} is not beside the model: put it there") from None
    except OSError as error:
        raise ModelError(f"{where}: {quote(name)} cannot be opened ({error.strerror}): make it readable") from None
    finally:
        if fd >= 0:
            os.close(fd)


def _refuse_link(where: str, name: str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise ModelError(f"{where}: {quote(name)} is or passes a symbolic link: put a copy of the file there")


# ---- Constants and attributes ------------------------------------------------------------------

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
