"""ONNX's element types as NumPy dtypes, and tensors as bytes: little-endian, the layout of TensorProto.raw_data.

Elements below a byte are packed without gaps, the first in the lowest bits (onnx.proto, TensorProto.raw_data). In an
array each of them has a byte of its own whose upper bits are zero, as ml_dtypes makes them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..errors import InternalError, Unsupported


@dataclass(frozen=True, slots=True)
class ElementType:
    """A row of the table: the number in TensorProto.DataType, the family, the bits of an element in raw_data, the name
    in NumPy or ml_dtypes, and the typed field of TensorProto that holds such elements (onnx.proto).
    """

    code: int
    family: str
    bits: int
    numpy: str
    field: str = "int32_data"


ELEMENT_TYPES: Final = {
    "float": ElementType(1, "float", 32, "float32", "float_data"),
    "uint8": ElementType(2, "uint", 8, "uint8"),
    "int8": ElementType(3, "int", 8, "int8"),
    "uint16": ElementType(4, "uint", 16, "uint16"),
    "int16": ElementType(5, "int", 16, "int16"),
    "int32": ElementType(6, "int", 32, "int32"),
    "int64": ElementType(7, "int", 64, "int64", "int64_data"),
    "string": ElementType(8, "string", 0, "object_", "string_data"),
    "bool": ElementType(9, "bool", 8, "bool_"),
    "float16": ElementType(10, "float", 16, "float16"),
    "double": ElementType(11, "float", 64, "float64", "double_data"),
    "uint32": ElementType(12, "uint", 32, "uint32", "uint64_data"),
    "uint64": ElementType(13, "uint", 64, "uint64", "uint64_data"),
    "complex64": ElementType(14, "complex", 64, "complex64", "float_data"),
    "complex128": ElementType(15, "complex", 128, "complex128", "double_data"),
    "bfloat16": ElementType(16, "float", 16, "bfloat16"),
    "float8e4m3fn": ElementType(17, "float", 8, "float8_e4m3fn"),
    "float8e4m3fnuz": ElementType(18, "float", 8, "float8_e4m3fnuz"),
    "float8e5m2": ElementType(19, "float", 8, "float8_e5m2"),
    "float8e5m2fnuz": ElementType(20, "float", 8, "float8_e5m2fnuz"),
    "uint4": ElementType(21, "uint", 4, "uint4"),
    "int4": ElementType(22, "int", 4, "int4"),
    "float4e2m1": ElementType(23, "float", 4, "float4_e2m1fn"),
    "float8e8m0": ElementType(24, "float", 8, "float8_e8m0fnu"),
    "uint2": ElementType(25, "uint", 2, "uint2"),
    "int2": ElementType(26, "int", 2, "int2"),
    "float6e2m3": ElementType(27, "float", 6, "float6_e2m3fn"),
    "float6e3m2": ElementType(28, "float", 6, "float6_e3m2fn"),
}
"""The element types by ONNX's name. The other tables of them are derived from this one."""
CODES: Final = {row.code: name for name, row in ELEMENT_TYPES.items()}
BITS: Final = {name: row.bits for name, row in ELEMENT_TYPES.items() if row.bits}
"""The size of an element in raw_data; strings have none."""
FLOATS: Final = frozenset(name for name, row in ELEMENT_TYPES.items() if row.family == "float")
INTEGERS: Final = frozenset(name for name, row in ELEMENT_TYPES.items() if row.family in ("int", "uint"))
BYTES: Final = frozenset({"raw_data", "external"})
"""The forms of stored data that hold bytes."""


def field(element: str) -> str:
    """The typed field that holds elements of this type; "" for a type that ONNX does not know."""
    row = ELEMENT_TYPES.get(element)
    return row.field if row else ""


def elements(dims: tuple[int, ...]) -> int:
    """The number of elements; negative dimensions count as empty."""
    count = 1
    for size in dims:
        count *= max(size, 0)
    return count


def required(element: str, form: str, count: int) -> int:
    """The entries (bytes for raw and external data) that `count` elements need in the field `form`.

    Elements below a byte are packed: raw data without gaps, int32_data one byte an entry, that is 2 elements of 4 bits
    or 4 of 2 bits, and 1 of 6 bits. onnx.checker 1.23 asks less (8 and 16 an entry); the text of onnx.proto decides.
    Complex numbers take two entries of a typed field. Strings have no size in bytes: 0 for raw data.
    """
    bits = BITS.get(element, 0)
    if form in BYTES:
        return (count * bits + 7) // 8
    if form == "int32_data" and bits in (2, 4):
        return (count * bits + 7) // 8
    return 2 * count if element.startswith("complex") else count


DType = np.dtype[np.generic]
Buffer = bytes | memoryview
"""Bytes that nobody changes; a memoryview is read-only, contiguous and of format B."""

if sys.byteorder != "little":
    raise Unsupported("this package runs on little-endian machines only")

_SHARED_FROM: Final = 512  # a smaller tensor is cheaper to copy than to share
_BLOCK: Final = 1 << 20  # elements below a byte that are packed or unpacked at a time; their bits fill whole bytes


DTYPES: Final[Mapping[str, DType]] = {
    name: np.dtype(scalar)
    for name, row in ELEMENT_TYPES.items()
    if (scalar := getattr(ml_dtypes, row.numpy, None) or getattr(np, row.numpy, None)) is not None
}
"""The dtype of each element type, a bijection; a type that ml_dtypes lacks is absent. Strings are arrays of bytes."""
_ELEMENTS: Final = {dtype: element for element, dtype in DTYPES.items()}
_PACKED: Final = {dtype: BITS[element] for element, dtype in DTYPES.items() if BITS.get(element, 8) < 8}


def dtype_of(element: str) -> DType:
    """The dtype of an element type in ONNX's spelling. Raises Unsupported for one that NumPy and ml_dtypes lack."""
    try:
        return DTYPES[element]
    except KeyError:
        raise Unsupported(f"tensors of {element or 'unset element type'} cannot be computed with") from None


def element_of(dtype: DType) -> str:
    """The element type of a dtype. Raises InternalError for a dtype that stands for none."""
    try:
        return _ELEMENTS[dtype]
    except KeyError:
        raise InternalError(f"no ONNX element type has the dtype {dtype!r}") from None


def byte_size(element: str, shape: tuple[int, ...]) -> int:
    """The bytes of a tensor. Raises InternalError for strings, whose size the shape does not tell."""
    bits = BITS.get(element)
    if bits is None:
        raise InternalError(f"a tensor of {element!r} has no size in bytes")
    return (math.prod(shape) * bits + 7) // 8


def encode(array: NDArray[np.generic]) -> Buffer:
    """The bytes of a tensor, row-major. They may share the array's memory, which must not be written any more.

    Raises InternalError for strings (`heap` encodes them) and for a dtype that stands for no element type.
    """
    dtype = array.dtype
    if dtype not in _ELEMENTS or dtype.hasobject:
        raise InternalError(f"an array of dtype {dtype!r} has no raw bytes")
    if dtype in _PACKED:
        return _pack(array.reshape(-1).view(np.uint8), _PACKED[dtype])
    size = array.nbytes
    if size < _SHARED_FROM or _owned(array) > 2 * size:
        return array.tobytes()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data.toreadonly()


def decode(buffer: Buffer, element: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """The tensor that `encode` made these bytes of: read-only, and a view of them unless elements are packed.

    Raises InternalError when the number of bytes is not that of the shape.
    """
    dtype = dtype_of(element)
    if len(buffer) != byte_size(element, shape):
        raise InternalError(f"{len(buffer)} bytes are no tensor of {element} and shape {list(shape)}")
    if dtype in _PACKED:
        array = _unpack(np.frombuffer(buffer, np.uint8), BITS[element], math.prod(shape)).view(dtype).reshape(shape)
    else:
        array = np.ndarray(shape, dtype, buffer)
    array.flags.writeable = False
    return array


def owner_of(shown: object) -> object:
    """The object whose memory an array or a view shows."""
    while True:
        if isinstance(shown, memoryview):
            shown = shown.obj
        elif isinstance(shown, np.ndarray) and shown.base is not None:
            shown = shown.base
        else:
            return shown


def _owned(array: NDArray[np.generic]) -> int:
    """The bytes of memory that sharing the array's keeps alive; a mapped file has none."""
    owner = owner_of(array)
    if isinstance(owner, np.ndarray):
        return owner.nbytes
    return len(owner) if isinstance(owner, bytes) else 0


def _pack(codes: NDArray[np.uint8], bits: int) -> bytes:
    if not 8 % bits:
        mask = np.uint8((1 << bits) - 1)
        packed = np.zeros(-(-codes.size * bits // 8), np.uint8)
        for place in range(8 // bits):
            part = codes[place :: 8 // bits] & mask
            packed[: part.size] |= part << np.uint8(place * bits)
        return packed.tobytes()
    parts = []
    for start in range(0, codes.size, _BLOCK):
        single = np.unpackbits(codes[start : start + _BLOCK, None], axis=1, count=bits, bitorder="little")
        parts.append(np.packbits(single.reshape(-1), bitorder="little").tobytes())
    return b"".join(parts)


def _unpack(data: NDArray[np.uint8], bits: int, count: int) -> NDArray[np.uint8]:
    codes = np.empty(count, np.uint8)
    if not 8 % bits:
        mask = np.uint8((1 << bits) - 1)
        for place in range(8 // bits):
            part = codes[place :: 8 // bits]
            np.right_shift(data[: part.size], np.uint8(place * bits), out=part)
            part &= mask
        return codes
    for start in range(0, count, _BLOCK):
        size = min(_BLOCK, count - start)
        first = start * bits // 8
        single = np.unpackbits(data[first : first + (size * bits + 7) // 8], count=size * bits, bitorder="little")
        codes[start : start + size] = np.packbits(single.reshape(size, bits), axis=1, bitorder="little")[:, 0]
    return codes


# Limits of the types.

DOUBLE: Final = np.dtype(np.float64)


FLOAT: Final = np.dtype(np.float32)


WIDE: Final = frozenset({np.dtype(np.float16), FLOAT, DOUBLE})


def is_float(dtype: DType) -> bool:
    """True if the type is a floating-point type."""
    return dtype.kind == "f" or "float" in dtype.name


def is_integer(dtype: DType) -> bool:
    """True if the type is one of integers; bool is none."""
    return dtype.kind in "iu" or dtype.name.startswith(("int", "uint"))


def bits(dtype: DType) -> int:
    """The number of bits of a value of the type."""
    return BITS[element_of(dtype)]


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    if dtype.name.startswith("uint"):
        return 0, 2 ** bits(dtype) - 1
    half = 2 ** (bits(dtype) - 1)
    return -half, half - 1


def finfo(dtype: DType) -> Any:
    """The limits of a floating-point type, as NumPy gives them."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


@cache
def finite_range(dtype: DType) -> tuple[Fraction, Fraction]:
    """The least and the greatest finite number of a numeric type, exact."""
    if is_float(dtype):
        info = finfo(dtype)
        return Fraction(float(info.min)), Fraction(float(info.max))
    low, high = integer_range(dtype)
    return Fraction(low), Fraction(high)


def limits(element: str) -> tuple[Fraction, Fraction] | None:
    """The least and the greatest finite number of an element type by its name; None for a type without numbers."""
    if element not in DTYPES or (element not in FLOATS and element not in INTEGERS):
        return None
    return finite_range(DTYPES[element])


@cache
def has_nan(dtype: DType) -> bool:
    """True if the type has a NaN."""
    return is_float(dtype) and bool(np.isnan(np.asarray(float("nan")).astype(dtype).astype(np.float64)))


@cache
def has_infinity(dtype: DType) -> bool:
    """True if the type has an infinity."""
    return is_float(dtype) and bool(np.isinf(np.asarray(float("inf")).astype(dtype).astype(np.float64)))
