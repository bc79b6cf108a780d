"""M: linear, byte-addressable memory of N bytes as an immutable value, values as bytes in it, and their regions."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np

from ..errors import InternalError
from ..model.elements import Buffer, DType, byte_size, decode, element_of, encode, owner_of
from ..model.graph import ValueType
from ..model.values import Array, Map, Optional, Sequence, Value
from ..resources import quick
from ..resources.persistent import PersistentMap, items, neighbours, put, remove
from ..resources.process import OutOfBudget
from .allocation.plan import ALIGNMENT, Allocator, aligned, allocate, release

_COPIED_BELOW: Final = 256


@quick
@dataclass(frozen=True, slots=True)
class Memory:
    """size: N. segments: what was written, by its first address; segments never overlap and none is empty."""

    size: int
    segments: PersistentMap[int, Buffer] = PersistentMap()  # noqa: RUF009 - it is immutable


@dataclass(frozen=True, slots=True)
class Uninitialised:
    """A read that is refused: nothing was ever written at `address`, which it needs."""

    address: int


def write(M: Memory, offset: int, data: Buffer) -> Memory:
    """M with `data` at `offset`.

    A read-only buffer is taken over without a copy: nobody may change it from then on. A writable one is copied.
    Raises InternalError when the range leaves M: whoever places tensors checks that.
    """
    end = offset + len(data)
    if offset < 0 or end > M.size:
        raise InternalError(f"bytes {offset} to {end} are outside a memory of {M.size} bytes")
    if not data:
        return M
    segments = M.segments
    before, after = neighbours(segments, offset)
    behind = after is not None and after < end
    if before is not None and not behind:
        reach = before[0] + len(before[1])
        behind = reach > end if before[0] == offset else reach > offset
    if behind:
        segments = _cleared(segments, offset, end)
    return Memory(M.size, put(segments, offset, _constant(data)))


def appended(M: Memory, size: int, offset: int, data: Buffer) -> Memory:
    """M with another N, and `data` at `offset` in what is new of it, where nothing can have been written: as `resize`
    and `write`. Raises InternalError when the range leaves that part."""
    if offset < M.size or offset + len(data) > size:
        raise InternalError(f"bytes {offset} to {offset + len(data)} are not what a memory of {size} bytes gains")
    return Memory(size, put(M.segments, offset, _constant(data)) if data else M.segments)


def _constant(data: Buffer) -> Buffer:
    return data if isinstance(data, bytes) or data.readonly else bytes(data)


def read(M: Memory, offset: int, length: int) -> Buffer | Uninitialised:
    """The bytes of a range: a view when one segment holds them all, joined from several otherwise.

    Raises InternalError when the range leaves M.
    """
    end = offset + length
    if offset < 0 or length < 0 or end > M.size:
        raise InternalError(f"bytes {offset} to {end} are outside a memory of {M.size} bytes")
    if not length:
        return b""
    before, _ = neighbours(M.segments, offset)
    if before is None:
        return Uninitialised(offset)
    first, data = before
    if first + len(data) >= end:
        return data if len(data) == length else _part(data, offset - first, end - first)
    parts = []
    reached = offset
    for start, data in items(M.segments, first):
        if start >= end:
            break
        if start > reached:
            return Uninitialised(reached)
        if start + len(data) > reached:
            parts.append(_part(data, reached - start, min(end - start, len(data))))
            reached = start + min(end - start, len(data))
    return b"".join(parts) if reached == end else Uninitialised(reached)


def gap(M: Memory, offset: int, length: int) -> Uninitialised | None:
    """The first byte of a range that was never written; None when there is none."""
    before, _ = neighbours(M.segments, offset)
    reached = offset
    for start, data in items(M.segments, None if before is None else before[0]):
        if start > reached or reached >= offset + length:
            break
        reached = max(reached, start + len(data))
    return Uninitialised(reached) if reached < offset + length else None


def erase(M: Memory, offset: int, length: int) -> Memory:
    """M without what was written in a range: reading it is refused from then on."""
    return Memory(M.size, _cleared(M.segments, offset, offset + length)) if length > 0 else M


def resize(M: Memory, size: int) -> Memory:
    """M with another N. Raises InternalError when something was written beyond it."""
    last, _ = neighbours(M.segments, M.size) if size < M.size else (None, None)
    if last is not None and last[0] + len(last[1]) > size:
        raise InternalError(f"a memory of {size} bytes cannot hold what was written at {last[0]}")
    return Memory(size, M.segments)


def history_bytes(memories: Iterable[Memory]) -> int:
    """The bytes that keeping all these memories costs: buffers and the nodes of the maps, each counted once.

    A buffer counts with all the memory that it keeps alive, a mapped file only with the object that stands for it.
    """
    seen: set[int] = set()
    total = 0
    stack: list[object] = [it for memory in memories for it in (memory.segments.root, memory.segments.tail)]
    while stack:
        node = stack.pop()
        if isinstance(node, memoryview):
            total += 0 if id(node) in seen else sys.getsizeof(node)
            seen.add(id(node))
            node = owner_of(node)
        if id(node) in seen:
            continue
        seen.add(id(node))
        total += node.nbytes if isinstance(node, np.ndarray) else sys.getsizeof(node)
        if isinstance(node, tuple):
            stack.extend(node)
    return total


def _cleared(segments: PersistentMap[int, Buffer], start: int, end: int) -> PersistentMap[int, Buffer]:
    """The segments without start:end; those that reach over an end of it are cut."""
    before, _ = neighbours(segments, start)
    hit = [before] if before is not None and before[0] < start < before[0] + len(before[1]) else []
    for segment in items(segments, start):
        if segment[0] >= end:
            break
        hit.append(segment)
    for first, data in hit:
        segments = put(segments, first, _part(data, 0, start - first)) if first < start else remove(segments, first)
        if first + len(data) > end:
            segments = put(segments, end, _part(data, end - first, len(data)))
    return segments


def _part(data: Buffer, start: int, stop: int) -> Buffer:
    """A part of a buffer: a copy of few bytes, which a view would outweigh, a view otherwise."""
    if start == 0 and stop == len(data):
        return data
    part = memoryview(data)[start:stop]
    return bytes(part) if stop - start < _COPIED_BELOW else part


# ---- Values as bytes ------------------------------------------------------------------------------

_WORD: Final = 8


@lru_cache(maxsize=4096)
def _tensor_type(dtype: DType, shape: tuple[int, ...]) -> ValueType:
    """One object for all tensors alike: every step has one, and every state that is kept holds it."""
    return ValueType("tensor", element_of(dtype), shape)


def type_of(value: Value) -> ValueType:
    """The type of a value; for a tensor with its shape."""
    if isinstance(value, np.ndarray):
        return _tensor_type(value.dtype, value.shape)
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


def write_parts(M: Memory, offset: int, parts: Items[Buffer]) -> Memory:
    """M with the parts one after the other from `offset` on."""
    for part in parts:
        M = write(M, offset, part)
        offset += len(part)
    return M


def read_value(M: Memory, offset: int, length: int, type: ValueType) -> Value | Uninitialised:
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
    joined: list[Buffer] = []
    run: list[bytes] = []
    for part in [*parts, memoryview(b"")]:
        if isinstance(part, bytes):
            run.append(part)
        else:
            if run:
                joined.append(b"".join(run))
            run = []
            if part:
                joined.append(part)
    return tuple(joined)


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
    dims = () if type.shape is None else tuple([dim for dim in type.shape if isinstance(dim, int)])
    if dims != type.shape:
        raise InternalError("the tensor table has a tensor without a shape")
    return dims


def _bytes(M: Memory, offset: int, length: int, end: int) -> Buffer:
    if not 0 <= length <= end - offset:
        raise InternalError(f"a value at byte {offset} reaches beyond its end at byte {end}")
    data = read(M, offset, length)
    if isinstance(data, Uninitialised):
        raise InternalError(f"byte {data.address} of a value is missing")
    return data


def _read_numbers(M: Memory, offset: int, count: int, end: int) -> list[int]:
    numbers: list[int] = np.frombuffer(_bytes(M, offset, _WORD * count, end), "<u8").tolist()
    return numbers


def _numbers(values: list[int]) -> bytes:
    return np.array(values, "<u8").tobytes()


def _padding(length: int) -> bytes:
    return bytes(-length % _WORD)


def _key_dtype(element: str) -> str:
    return "<u8" if element.startswith("uint") else "<i8"


# ---- Regions --------------------------------------------------------------------------------------

UNLIMITED: Final = 1 << 62
"""The budget where none is set."""


@quick
@dataclass(frozen=True, slots=True)
class Region:
    """A region of M in which a value lies: offset and length in bytes, and its type, a tensor's with its shape.

    freed: the value was needed no longer, its space may hold another one.
    """

    offset: int
    length: int
    type: ValueType
    freed: bool = False


@quick
@dataclass(frozen=True, slots=True)
class Store:
    """M and the space in it. N grows with what is placed, up to the budget of the allocator."""

    memory: Memory
    space: Allocator


def empty_store(reuse: bool = False, budget: int | None = None) -> Store:
    """A memory in which nothing lies. reuse: the space of a value that is needed no longer is used again (arena)."""
    return Store(Memory(0), Allocator(UNLIMITED if budget is None else budget, ALIGNMENT, reuse))


def store_value(store: Store, value: Value, purpose: str) -> tuple[Store, Region] | OutOfBudget:
    """The store with the value in it, and where it lies. OutOfBudget is found before anything is written."""
    parts = parts_of(value)
    length = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
    placed = allocate(store.space, length, purpose)
    if isinstance(placed, OutOfBudget):
        return placed
    space, offset = placed
    memory, end = store.memory, offset + aligned(length, space.alignment)
    if len(parts) == 1 and offset >= memory.size:
        memory = appended(memory, end, offset, parts[0])
    else:
        memory = write_parts(memory if end <= memory.size else resize(memory, end), offset, parts)
    return Store(memory, space), Region(offset, length, type_of(value))


def load_value(store: Store, where: Region) -> Value:
    """The value that lies there: read-only views of M where that is possible."""
    value = read_value(store.memory, where.offset, where.length, where.type)
    if isinstance(value, Uninitialised):
        raise InternalError(f"the machine reads byte {value.address}, which was never written")
    return value


def free(store: Store, places: Iterable[Region]) -> Store:
    """The store with the space of these values free; unchanged without reuse."""
    if not store.space.reuse:
        return store
    memory, space = store.memory, store.space
    for where in places:
        memory = erase(memory, where.offset, where.length)
        space = release(space, where.offset, where.length)
    return Store(memory, space)
