"""ONNX's element types as NumPy dtypes, and tensors as bytes: little-endian, the layout of TensorProto.raw_data.

Elements below a byte are packed without gaps, the first in the lowest bits (onnx.proto, TensorProto.raw_data). In an
array each of them has a byte of its own whose upper bits are zero, as ml_dtypes makes them.
"""

from __future__ import annotations

import math
import sys
from typing import Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..errors import InternalError, Unsupported
from .payload import BITS

Buffer = bytes | memoryview
"""Bytes that nobody changes; a memoryview is read-only, contiguous and of format B."""

if sys.byteorder != "little":
    raise Unsupported("this package runs on little-endian machines only")

_NAMES: Final = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float4e2m1": "float4_e2m1fn",
}
_SHARED_FROM: Final = 512  # a smaller tensor is cheaper to copy than to share
_BLOCK: Final = 1 << 20  # elements below a byte that are packed or unpacked at a time; their bits fill whole bytes


def _dtypes() -> dict[str, np.dtype[np.generic]]:
    """Element type to dtype; an ml_dtypes that lacks a type lacks it here too."""
    found: dict[str, np.dtype[np.generic]] = {}
    for element in BITS:
        name = _NAMES.get(element, element)
        scalar = getattr(ml_dtypes, name, None) or getattr(np, name, None)
        if scalar is not None:
            found[element] = np.dtype(scalar)
    return found | {"string": np.dtype(object)}


DTYPES: Final = _dtypes()
"""The dtype of each element type, a bijection. Strings are object arrays of bytes."""
_ELEMENTS: Final = {dtype: element for element, dtype in DTYPES.items()}
_PACKED: Final = {dtype: BITS[element] for element, dtype in DTYPES.items() if BITS.get(element, 8) < 8}


def dtype_of(element: str) -> np.dtype[np.generic]:
    """The dtype of an element type in ONNX's spelling. Raises Unsupported for one that NumPy and ml_dtypes lack."""
    try:
        return DTYPES[element]
    except KeyError:
        raise Unsupported(f"tensors of {element or 'unset element type'} cannot be computed with") from None


def element_of(dtype: np.dtype[np.generic]) -> str:
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
        array = _unpack(np.frombuffer(buffer, np.uint8), BITS[element], math.prod(shape)).view(dtype)
    else:
        array = np.frombuffer(buffer, dtype)
    array = array.reshape(shape)
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
