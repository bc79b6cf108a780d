"""M as a row of N bytes, the regions of it that are in use, and the bytes of values.

A tensor has the layout of TensorProto.raw_data; one of strings the ends of the texts as 64-bit numbers, then the texts.
In a structure numbers have 8 bytes, and each part is filled up to a multiple of 8: a tensor has its rank, its sizes and
its bytes; an optional 0 or 1, and what it holds; a sequence the number of its items, a map that of its keys and these;
then both have where each item begins, counted from the first byte of the structure, where the last one ends, the items.
"""

from __future__ import annotations

import math
import mmap
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np

from ...errors import InternalError, ModelError
from ...model.elements import BITS, Buffer, byte_size, decode, element_of, encode
from ...model.graph import ValueType
from ...model.values import Array, Map, Optional, Sequence, Value
from .lines import Json

_WORD: Final = 8


@dataclass(slots=True, eq=False)
class Region:
    """Where a value lies, of which type it is, and what lines say of it. live: the region is its own."""

    at: int
    length: int
    type: ValueType
    reference: dict[str, Json]
    tensor: str
    live: bool = True


class Memory:
    """M: N bytes, and the regions in use, which have no byte in common."""

    def __init__(self, size: int) -> None:
        """Raises ModelError when there is no room for that many."""
        try:
            self._bytes = mmap.mmap(-1, max(size, 1))
        except (OSError, OverflowError, ValueError, MemoryError):
            raise ModelError(f"the trace says that M has {size} bytes, for which there is no room here") from None
        self.size = size
        self._view = memoryview(self._bytes)
        self._shown = self._view.toreadonly()
        self._starts: list[int] = []
        self._regions: dict[int, Region] = {}

    def writable(self, at: int, length: int) -> memoryview:
        """The bytes of a range that lies in M, to be filled."""
        return self._view[at : at + length]

    def read(self, region: Region) -> memoryview:
        """The bytes of a region."""
        return self._shown[region.at : region.at + region.length]

    def meets(self, at: int, length: int) -> Region | None:
        """A region in use that has a byte in common with a range."""
        if not length:
            return None
        i = bisect_left(self._starts, at + length)
        before = self._regions[self._starts[i - 1]] if i else None
        return before if before is not None and before.at + before.length > at else None

    def take(self, region: Region) -> None:
        """The region is in use."""
        if not region.length:
            return
        starts = self._starts
        starts.insert(bisect_right(starts, region.at), region.at)
        self._regions[region.at] = region

    def at(self, address: int) -> Region | None:
        """The region in use that begins there."""
        return self._regions.get(address)

    def free(self, region: Region) -> None:
        """The region is free."""
        region.live = False
        del self._regions[region.at]
        del self._starts[bisect_left(self._starts, region.at)]


# ---- Types ------------------------------------------------------------------------------------


def type_of(value: Value) -> ValueType:
    """The type of a value; for a tensor with its shape."""
    match value:
        case np.ndarray():
            return ValueType("tensor", element_of(value.dtype), value.shape)
        case Map():
            return ValueType("map", value.key, inner=value.inner)
        case Sequence():
            return ValueType("sequence", inner=value.inner)
        case Optional():
            return ValueType("optional", inner=value.inner)


# ---- Values to bytes --------------------------------------------------------------------------


def to_bytes(value: Value) -> Buffer:
    """The bytes of a value; those of a tensor may be its own memory."""
    return _elements(value) if isinstance(value, np.ndarray) else b"".join(_structure(value))


def _elements(array: Array) -> Buffer:
    return _texts(array.reshape(-1).tolist()) if array.dtype == object else encode(array)


def _texts(texts: list[bytes]) -> bytes:
    return _words(accumulate(map(len, texts))) + b"".join(texts)


def _structure(value: Value) -> list[Buffer]:
    match value:
        case np.ndarray():
            return [_words([value.ndim, *value.shape]), *_filled(_elements(value))]
        case Optional():
            return [_words([0])] if value.item is None else [_words([1]), *_structure(value.item)]
        case Sequence():
            return _table([_words([len(value.items)])], value.items)
        case Map():
            keys = [key for key, _ in value.items]
            texts = [key for key in keys if isinstance(key, bytes)]
            data = (
                _texts(texts)
                if texts
                else b"".join(int(key).to_bytes(_WORD, "little", signed=int(key) < 0) for key in keys)
            )
            return _table([_words([len(keys)]), *_filled(data)], [item for _, item in value.items])


def _table(front: list[Buffer], values: Iterable[Value]) -> list[Buffer]:
    bodies = [b"".join(_structure(value)) for value in values]
    first = sum(map(len, front)) + _WORD * (len(bodies) + 1)
    return [*front, _words(accumulate(map(len, bodies), initial=first)), *bodies]


def _words(numbers: Iterable[int]) -> bytes:
    return np.array(list(numbers), "<u8").tobytes()


def _filled(data: Buffer) -> list[Buffer]:
    return [data, bytes(-len(data) % _WORD)]


# ---- Bytes to values --------------------------------------------------------------------------


def to_value(data: memoryview, type_: ValueType) -> Value:
    """The value of a type, a tensor's with its shape, that has these bytes; arrays are views where possible.

    Raises ValueError when the bytes are no value of the type.
    """
    if type_.kind == "tensor":
        sizes = tuple(size for size in type_.shape or () if isinstance(size, int))
        if type_.shape is None or len(sizes) != len(type_.shape):
            raise ValueError("a tensor has no shape")
        return _tensor(data, type_.element, sizes)
    return _loaded(data, type_)


def _tensor(data: memoryview, element: str, sizes: tuple[int, ...]) -> Array:
    count = math.prod(sizes)
    if element == "string":
        array = np.empty(count if count * _WORD <= len(data) else -1, object)
        array[:] = _split(data, count)
        array = array.reshape(sizes)
        array.flags.writeable = False
        return array
    if element not in BITS or byte_size(element, sizes) != len(data):
        raise ValueError("the bytes are not as many as the tensor needs")
    try:
        return decode(data, element, sizes)
    except (InternalError, OverflowError) as error:
        raise ValueError(str(error)) from None


def _split(data: memoryview, count: int) -> list[bytes]:
    ends = _numbers(data, 0, count)
    texts = data[_WORD * count :]
    return [bytes(texts[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


def _loaded(data: memoryview, type_: ValueType) -> Value:
    inner, (count,), at = type_.inner, _numbers(data, 0, 1), _WORD
    if type_.kind == "tensor":
        sizes = tuple(_numbers(data, at, count))
        at += _WORD * count
        size = (
            len(data) - at
            if type_.element == "string"
            else byte_size(type_.element, sizes)
            if type_.element in BITS
            else -1
        )
        if not 0 <= size <= len(data) - at:
            raise ValueError("a tensor reaches beyond its bytes")
        return _tensor(data[at : at + size], type_.element, sizes)
    if inner is None or type_.kind not in ("sequence", "optional", "map"):
        raise ValueError("a type does not say what it holds")
    if type_.kind == "optional":
        return Optional(inner, _loaded(data[at:], inner) if count else None)
    keys: list[int] | list[bytes] = []
    if type_.kind == "map":
        if type_.element == "string":
            ends = _numbers(data, at, count)
            size = _WORD * count + (ends[-1] if ends else 0)
            keys = _split(data[at : at + size], count)
            at += size + -size % _WORD
        else:
            numbers = _numbers(data, at, count)
            keys = numbers if type_.element.startswith("uint") else [it - (it >> 63 << 64) for it in numbers]
            at += _WORD * count
    starts = _numbers(data, at, count + 1)
    items = tuple(_loaded(data[starts[i] : starts[i + 1]], inner) for i in range(count))
    return (
        Map(type_.element, inner, tuple(zip(keys, items, strict=True)))
        if type_.kind == "map"
        else Sequence(inner, items)
    )


def _numbers(data: memoryview, at: int, count: int) -> list[int]:
    if not 0 <= count <= (len(data) - at) // _WORD:
        raise ValueError("a structure reaches beyond its bytes")
    numbers: list[int] = np.frombuffer(data, "<u8", count, at).tolist() if count else []
    return numbers


def is_value(data: memoryview, type_: ValueType) -> bool:
    """The bytes are those of a value of this type: of one, and in the one way that values have."""
    try:
        value = to_value(data, type_)
        typed = _is_type(type_) and type_of(value) == type_
        return typed and all(map(_is_whole, _parts(value))) and bool(to_bytes(value) == data)
    except (ValueError, OverflowError, RecursionError, InternalError):
        return False


def _is_type(type_: ValueType) -> bool:
    """It is the type of a value. An empty sequence or optional has one too."""
    inner = type_.inner
    match type_.kind:
        case "tensor":
            return inner is None and (type_.element == "string" or type_.element in BITS)
        case "sequence" | "optional":
            return not type_.element and inner is not None and (inner.kind == "unset" or _is_type(inner))
        case "map":
            return (type_.element == "string" or type_.element in BITS) and inner is not None and _is_type(inner)
    return False


def _parts(value: Value) -> Iterator[Value]:
    yield value
    match value:
        case Sequence():
            items: tuple[Value, ...] = value.items
        case Map():
            items = tuple(item for _, item in value.items)
        case Optional():
            items = () if value.item is None else (value.item,)
        case _:
            items = ()
    for item in items:
        yield from _parts(item)


def _is_whole(value: Value) -> bool:
    if isinstance(value, Map):
        keys = [key for key, _ in value.items]
        return keys == sorted(set(keys))
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.size:
        return bool(value.view(np.uint8).max() <= 1)
    return True
