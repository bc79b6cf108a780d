"""Stored tensors: element type, dimensions, the field that holds the elements, and the elements of small ones."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import onnx
from sonnx.semantics.errors import ModelError

from . import files

ELEMENTS = {code: name.lower() for name, code in onnx.TensorProto.DataType.items() if code}
"""ONNX's spelling of the element types by their codes."""
BITS = {
    "uint2": 2, "int2": 2, "uint4": 4, "int4": 4, "float4e2m1": 4, "float6e2m3": 6, "float6e3m2": 6,
    "uint8": 8, "int8": 8, "bool": 8, "float8e4m3fn": 8, "float8e4m3fnuz": 8, "float8e5m2": 8, "float8e5m2fnuz": 8,
    "float8e8m0": 8, "uint16": 16, "int16": 16, "float16": 16, "bfloat16": 16, "float": 32, "int32": 32, "uint32": 32,
    "double": 64, "int64": 64, "uint64": 64, "complex64": 64, "complex128": 128,
}  # fmt: skip
"""The size of an element in raw_data (onnx.proto, TensorProto)."""
HOMES = {
    "float": "float_data", "complex64": "float_data", "double": "double_data", "complex128": "double_data",
    "int64": "int64_data", "uint32": "uint64_data", "uint64": "uint64_data", "string": "string_data",
}  # fmt: skip
"""The typed field of an element type; all others have int32_data."""
FORMS = ("float_data", "int32_data", "int64_data", "string_data", "double_data", "uint64_data")
CODES = {
    "float": "f", "complex64": "f", "double": "d", "complex128": "d", "int64": "q", "uint64": "Q", "uint32": "I",
    "int32": "i", "int16": "h", "int8": "b", "uint16": "H", "float16": "H", "bfloat16": "H",
}  # fmt: skip
"""The layout of an entry of a typed field as raw data; all others as one byte."""
DIGITS = 20
KEPT = 4096
"""A value is read when its field takes at most so many bytes in the file, and it has at most so many elements."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored tensor. form: the field that holds its elements, "" when the source leaves them out. entries: how many
    that has, bytes of raw_data and external. data: the elements as raw data (or texts) when they are read.
    parts: values and indices of a sparse one, whose dims are those of the dense tensor.
    """

    element: str
    dims: tuple[int, ...]
    form: str = ""
    entries: int = 0
    data: bytes | tuple[bytes, ...] | None = None
    large: bool = False
    parts: tuple[Stored, Stored] | None = None

    @property
    def values(self) -> Stored:
        """The part that holds the elements."""
        return self if self.parts is None else self.parts[0]


def dense(proto: onnx.TensorProto, *, listing: bool, folder: Path | None) -> Stored:
    """A dense tensor. folder: where external data lie. Raises ModelError."""
    element, dims = ELEMENTS.get(proto.data_type, ""), tuple(proto.dims)
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        return Stored(element, dims, "external", _external(proto, folder), large=True)
    if proto.HasField("raw_data"):
        raw = proto.raw_data
        large = len(raw) > KEPT
        return Stored(element, dims, "raw_data", len(raw), None if large else raw, large)
    form = next((name for name in FORMS if len(getattr(proto, name))), "")
    if form:
        listed = getattr(proto, form)
        large = _wire(form, listed) > KEPT
        return Stored(element, dims, form, len(listed), None if large else _packed(element, form, listed), large)
    if listing:
        return Stored(element, dims)
    return Stored(element, dims, home(element) or "int32_data", 0, () if element == "string" else b"")


def sparse(proto: onnx.SparseTensorProto, *, listing: bool, folder: Path | None) -> Stored:
    """A sparse tensor."""
    values, indices = (dense(it, listing=listing, folder=folder) for it in (proto.values, proto.indices))
    return Stored(values.element, tuple(proto.dims), "sparse_tensor", parts=(values, indices))


def home(element: str) -> str:
    """The typed field for elements of this type, "" for a type that ONNX does not know."""
    return HOMES.get(element) or ("int32_data" if element in BITS else "")


def size(dims: tuple[int, ...]) -> int:
    """The number of elements; a negative dimension counts as 0."""
    count = 1
    for dim in dims:
        count *= max(dim, 0)
    return count


def needed(element: str, form: str, count: int) -> int:
    """The entries of a field for so many elements: packed ones share bytes, complex ones take two entries."""
    bits = BITS.get(element, 0)
    if form in ("raw_data", "external") or (form == "int32_data" and bits in (2, 4)):
        return (count * bits + 7) // 8
    return 2 * count if element.startswith("complex") else count


def _external(proto: onnx.TensorProto, folder: Path | None) -> int:
    entries = {entry.key: entry.value for entry in proto.external_data}
    if entries.get("length", "").isdecimal():
        return _number(entries["length"])
    if folder is None:
        return 0
    offset = _number(entries["offset"]) if entries.get("offset", "").isdecimal() else 0
    return max(files.length(files.inside(folder, entries.get("location", ""))) - offset, 0)


def _number(text: str) -> int:
    """A place in a file. Raises ModelError where no file is so long."""
    if len(text) > DIGITS:
        raise ModelError("a place in a file of external data has too many digits")
    return int(text)


def _wire(form: str, listed: Iterable[int | bytes]) -> int:
    """The bytes that a typed field takes in the file."""
    items = list(listed)
    if form in ("float_data", "double_data"):
        return len(items) * (4 if form == "float_data" else 8)
    return sum(_varint(it) if isinstance(it, int) else 1 + _varint(len(it)) + len(it) for it in items)


def _varint(number: int) -> int:
    return max(((number % (1 << 64)).bit_length() + 6) // 7, 1)


def _packed(element: str, form: str, listed: Iterable[int | bytes]) -> bytes | tuple[bytes, ...] | None:
    """The entries of a typed field as raw data; None when it is not the field of the type, or an entry does not fit."""
    items = list(listed)
    if form != home(element):
        return None
    if form == "string_data":
        return tuple(it for it in items if isinstance(it, bytes))
    try:
        if element.startswith("float6"):
            return _six_bits([it for it in items if isinstance(it, int)])
        return struct.pack(f"<{len(items)}{CODES.get(element, 'B')}", *items)
    except (struct.error, OverflowError):
        return None


def _six_bits(items: list[int]) -> bytes:
    if any(not 0 <= it < 64 for it in items):
        raise OverflowError
    whole = sum(it << 6 * i for i, it in enumerate(items))
    return whole.to_bytes((6 * len(items) + 7) // 8, "little")


def sound(tensor: Stored) -> bool | None:
    """The indices of a sparse tensor are one for each value, of type int64, in range and ascending; None when
    they are not read. A dense tensor has none."""
    if tensor.parts is None:
        return True
    values, indices = tensor.parts
    if len(values.dims) != 1:
        return False
    count = values.dims[0]
    if count == 0 and size(indices.dims) in (0, 1) and not indices.entries:
        return True
    if indices.element != "int64" or indices.dims not in ((count,), (count, len(tensor.dims))):
        return False
    if indices.data is None and indices.large:
        return None
    total = size(indices.dims)
    if not isinstance(indices.data, bytes) or len(indices.data) != 8 * total:
        return False
    linear = len(indices.dims) == 1
    bounds = (size(tensor.dims),) if linear else tensor.dims
    return _ascend(list(_rows(struct.unpack(f"<{total}q", indices.data), 1 if linear else len(tensor.dims))), bounds)


def _rows(numbers: tuple[int, ...], width: int) -> Iterator[tuple[int, ...]]:
    for start in range(0, len(numbers), max(width, 1)):
        yield numbers[start : start + width]


def _ascend(rows: list[tuple[int, ...]], bounds: tuple[int, ...]) -> bool:
    inside = all(0 <= i < bound for row in rows for i, bound in zip(row, bounds, strict=True))
    return inside and all(one < other for one, other in pairwise(rows))
