"""Values as bytes: what a tensor, a sequence, an optional or a map looks like in M.

A tensor alone is its elements and nothing else; its shape stands in the tensor table. Elements of fixed size have the
layout of raw_data (`elements`). Strings are

    end of each string (n numbers, counted from the first byte of text) | text

The other values lie on the heap part of M as the structures below. A number is a little-endian 64-bit integer, signed
for keys of a signed type. Every part starts at a multiple of 8 bytes from the start of the whole, zeros fill up to it.
Positions count from the start of the structure that holds them, so a structure can be moved, and put into another.

    tensor    rank | dimensions (rank numbers) | elements
    sequence  count | start of each item, end of the last (count + 1 numbers) | items
    optional  0, or 1 and the item
    map       count | keys (count numbers, or strings as above) | starts and end, and the values, as in a sequence

The types stand in the tensor table, not in M. A value is written as several parts, the tensors in it as they are: a
sequence that grows by an item shares the memory of the others with the sequence before it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from itertools import accumulate
from typing import Final

import numpy as np

from ..errors import InternalError
from ..model.elements import Buffer, byte_size, decode, element_of, encode
from ..model.graph import ValueType
from ..model.values import Array, Map, Optional, Sequence, Value
from .memory import Memory, Uninitialised, gap, read, write

_WORD: Final = 8


def type_of(value: Value) -> ValueType:
    """The type of a value; for a tensor with its shape."""
    if isinstance(value, np.ndarray):
        return ValueType("tensor", element_of(value.dtype), value.shape)
    if isinstance(value, Map):
        return ValueType("map", value.key, inner=value.inner)
    return ValueType("sequence" if isinstance(value, Sequence) else "optional", inner=value.inner)


def parts_of(value: Value) -> tuple[Buffer, ...]:
    """The bytes of a value, in order, as parts. They may share the memory of its arrays.

    Raises InternalError for an array of no ONNX element type, for strings that are no bytes objects, and for what is
    no value, such as NumPy's scalars.
    """
    if isinstance(value, np.ndarray):
        return (_elements(value),)
    return _joined(_structure(value))


def store(M: Memory, offset: int, parts: Items[Buffer]) -> Memory:
    """M with the parts one after the other from `offset` on."""
    for part in parts:
        M = write(M, offset, part)
        offset += len(part)
    return M


def load(M: Memory, offset: int, length: int, type: ValueType) -> Value | Uninitialised:
    """The value of this type (a tensor's with its shape) whose bytes lie there; arrays are views where possible.

    Raises InternalError when the bytes are no value of the type.
    """
    if type.kind == "tensor":
        data = read(M, offset, length)
        return data if isinstance(data, Uninitialised) else _tensor(data, type.element, _dims(type))
    missing = gap(M, offset, length)
    if missing is not None:
        return missing
    return _load(M, offset, offset + length, type)


def _elements(array: Array) -> Buffer:
    if array.dtype != object:
        return encode(array)
    texts = array.reshape(-1).tolist()
    if not all(isinstance(text, bytes) for text in texts):
        raise InternalError("a tensor of strings holds something else than bytes objects")
    return _strings(texts)


def _strings(texts: list[bytes]) -> bytes:
    ends = np.fromiter(accumulate(map(len, texts)), "<u8", len(texts))
    return ends.tobytes() + b"".join(texts)


def _structure(value: Value) -> list[Buffer]:
    """The parts of a value inside of a structure; their length is a multiple of 8."""
    if isinstance(value, np.ndarray):
        elements = _elements(value)
        return [_numbers([value.ndim, *value.shape]), elements, _padding(len(elements))]
    if isinstance(value, Optional):
        return [_numbers([0])] if value.item is None else [_numbers([1]), *_structure(value.item)]
    if isinstance(value, Sequence):
        return _table([_numbers([len(value.items)])], value.items)
    if not isinstance(value, Map):
        raise InternalError(f"{type(value).__name__} is no value: a tensor is an ndarray, of rank 0 too")
    keys = [key for key, _ in value.items]
    texts = [key for key in keys if isinstance(key, bytes)]
    if (value.key == "string") != (len(texts) == len(keys)) and keys:
        raise InternalError(f"a map with keys of {value.key} has others")
    data = _strings(texts) if texts else np.array(keys, _key_dtype(value.key)).tobytes()
    head: list[Buffer] = [_numbers([len(keys)]), data, _padding(len(data))]
    return _table(head, [item for _, item in value.items])


def _table(head: list[Buffer], values: Items[Value]) -> list[Buffer]:
    """The head, the table of starts, the values."""
    bodies = [_structure(value) for value in values]
    first = sum(map(len, head)) + _WORD * (len(bodies) + 1)
    starts = accumulate((sum(map(len, body)) for body in bodies), initial=first)
    return [*head, _numbers(list(starts)), *(part for body in bodies for part in body)]


def _joined(parts: Items[Buffer]) -> tuple[Buffer, ...]:
    """Fewer parts: those of bytes that follow each other are one. Views stay as they are."""
    found: list[Buffer] = []
    run: list[bytes] = []
    for part in [*parts, memoryview(b"")]:
        if isinstance(part, bytes):
            run.append(part)
        else:
            if run:
                found.append(b"".join(run))
            run = []
            if part:
                found.append(part)
    return tuple(found)


def _load(M: Memory, start: int, end: int, type: ValueType) -> Value:
    """The structure at start:end, of which every byte is written."""
    inner = type.inner
    (count,) = _read_numbers(M, start, 1, end)
    at = start + _WORD
    if type.kind == "tensor":
        dims = tuple(_read_numbers(M, at, count, end))
        at += _WORD * count
        length = end - at if type.element == "string" else byte_size(type.element, dims)
        return _tensor(_bytes(M, at, length, end), type.element, dims)
    if inner is None:
        raise InternalError(f"a type of kind {type.kind or 'unset'} says nothing about what is inside")
    if type.kind == "optional":
        return Optional(inner, _load(M, at, end, inner) if count else None)
    keys: list[int] | list[bytes] = []
    if type.kind == "map" and type.element == "string":
        ends = _read_numbers(M, at, count, end)
        length = _WORD * count + (ends[-1] if ends else 0)
        keys = _texts(_bytes(M, at, length, end), count)
        at += length + len(_padding(length))
    elif type.kind == "map":
        keys = np.frombuffer(_bytes(M, at, _WORD * count, end), _key_dtype(type.element)).tolist()
        at += _WORD * count
    starts = [start + position for position in _read_numbers(M, at, count + 1, end)]
    values = tuple(_load(M, starts[i], starts[i + 1], inner) for i in range(count))
    if type.kind == "map":
        return Map(type.element, inner, tuple(zip(keys, values, strict=True)))
    return Sequence(inner, values)


def _tensor(data: Buffer, element: str, shape: tuple[int, ...]) -> Array:
    if element != "string":
        return decode(data, element, shape)
    array = np.empty(math.prod(shape), object)
    array[:] = _texts(data, array.size)
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def _texts(data: Buffer, count: int) -> list[bytes]:
    """The strings; anything after them is padding."""
    if len(data) < _WORD * count:
        raise InternalError(f"{len(data)} bytes do not hold {count} strings")
    ends = np.frombuffer(data, "<u8", count).tolist()
    text = data[_WORD * count :]
    return [bytes(text[begin:end]) for begin, end in zip([0, *ends[:-1]], ends, strict=True)] if count else []


def _dims(type: ValueType) -> tuple[int, ...]:
    dims = type.shape
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        raise InternalError("the tensor table has a tensor without a shape")
    return tuple(dim for dim in dims if isinstance(dim, int))


def _bytes(M: Memory, offset: int, length: int, end: int) -> Buffer:
    if not 0 <= length <= end - offset:
        raise InternalError(f"a value at byte {offset} reaches beyond its end at byte {end}")
    data = read(M, offset, length)
    if isinstance(data, Uninitialised):
        raise InternalError(f"byte {data.address} of a value is missing")
    return data


def _read_numbers(M: Memory, offset: int, count: int, end: int) -> list[int]:
    found: list[int] = np.frombuffer(_bytes(M, offset, _WORD * count, end), "<u8").tolist()
    return found


def _numbers(values: list[int]) -> bytes:
    return np.array(values, "<u8").tobytes()


def _padding(length: int) -> bytes:
    return bytes(-length % _WORD)


def _key_dtype(element: str) -> str:
    return "<u8" if element.startswith("uint") else "<i8"
