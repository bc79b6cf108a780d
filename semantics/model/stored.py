"""The stored tensors of a model as arrays: mapped from their file where it holds them in raw layout, decoded elsewhere.

A mapping lives as long as an array that shows it. Its pages are read when elements are.
"""

from __future__ import annotations

import mmap as maps
import os
from mmap import ACCESS_READ, mmap
from typing import Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError
from ..resources.process import OutOfBudget
from .elements import BITS, BYTES, Buffer, decode, dtype_of, encode, field, required
from .graph import Constant, Model, Storage
from .loader.values import checked_dims, open_external
from .path import quote
from .values import Array

_MAPPINGS: Final[WeakValueDictionary[tuple[int, int, int, int], mmap]] = WeakValueDictionary()
_WIDTH: Final = {"float_data": 4, "double_data": 8}
_BLOCK: Final = 1 << 20  # numbers that are decoded at a time
_SIGNED: Final = frozenset({"int8", "int16", "int32", "int64"})


def array_of(constant: Constant, model: Model, name: str = "", budget: int | None = None) -> Array | OutOfBudget:
    """The read-only array of a constant of this model; name: what messages call it.

    OutOfBudget when decoding it would take more than `budget` bytes; a mapped tensor takes none.
    Raises ModelError when the source elides the elements, or what is stored does not suit type and dimensions, and
    Unsupported for an element type that NumPy lacks.
    """
    where = f"the stored tensor {quote(name)}"
    if constant.parts is not None:
        checked_dims(constant.dims, constant.element, name)
        return _dense(constant, constant.parts, model, name, budget)
    _check_count(constant, name, where)
    if constant.element == "string":
        texts = _texts(constant, model, where)
        array = np.empty(len(texts), object)
        array[:] = texts
        array = array.reshape(constant.dims)
        array.flags.writeable = False
        return array
    dtype = dtype_of(constant.element)
    packed = BITS[constant.element] < 8
    size = _count(constant.dims) * dtype.itemsize
    copied = packed or (constant.storage is not None and constant.form not in BYTES)
    if copied and budget is not None and size > budget:
        return OutOfBudget(size, budget, where)
    array = decode(raw_bytes(constant, model, name), constant.element, constant.dims)
    if constant.element == "bool" and array.size and array.view(np.uint8).max() > 1:
        raise ModelError(f"{where} of bool has a byte that is neither 0 nor 1: readers differ, export the model again")
    return array


def forget_pages(array: Array) -> None:
    """Lets the system take back the memory in which the elements of a mapped array were read; they are read from the
    file again when they are needed. Nothing happens to another array, or where the system offers no such thing."""
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapping = base.obj if isinstance(base, memoryview) else base
    advice = getattr(maps, "MADV_DONTNEED", None)
    if advice is None or not isinstance(mapping, mmap) or not array.nbytes:
        return
    start = np.frombuffer(mapping, np.uint8)
    low, high = np.lib.array_utils.byte_bounds(array)
    first = -(-(low - np.lib.array_utils.byte_bounds(start)[0]) // maps.PAGESIZE) * maps.PAGESIZE
    length = (high - np.lib.array_utils.byte_bounds(start)[0] - first) // maps.PAGESIZE * maps.PAGESIZE
    if length > 0:
        mapping.madvise(advice, first, length)


def raw_bytes(constant: Constant, model: Model, name: str = "") -> Buffer:
    """The elements of a dense constant of no strings in the layout of raw_data: a view of the file where it has them.

    Raises ModelError as `array_of` does.
    """
    where = f"the stored tensor {quote(name)}"
    _check_count(constant, name, where)
    if isinstance(constant.data, bytes):
        return constant.data
    if constant.storage is None:
        raise ModelError(f"{where} of {constant.element} has no elements that can be read: export the model again")
    data = _bytes(constant.storage, model, where)
    return data if constant.form in BYTES else _typed(data, constant, where)


def _check_count(constant: Constant, name: str, where: str) -> None:
    element, form = constant.element, constant.form
    checked_dims(constant.dims, element, name)
    if not form:
        raise ModelError(f"{where} has no elements, the source leaves them out: give the .onnx file of the model")
    if (form not in BYTES and form != field(element)) or (form in BYTES and element not in BITS):
        raise ModelError(f"{where} of {element or 'unset type'} has its elements in {form}: export the model again")
    needed = required(element, form, _count(constant.dims))
    if constant.stored != needed:
        unit = "bytes" if form in BYTES else "entries"
        raise ModelError(
            f"{where} of {element} and shape {list(constant.dims)} has {constant.stored} {unit} in {form}, its type and"
            f" shape need {needed}: export the model again"
        )


def _bytes(storage: Storage, model: Model, where: str) -> memoryview:
    if not storage.file and model.content:
        whole = memoryview(model.content)
    elif storage.length:
        whole = memoryview(_mapped(storage.file, model, where))
    else:
        whole = memoryview(b"")
    data = whole[storage.offset : storage.offset + storage.length]
    if len(data) != storage.length:
        raise ModelError(f"{where} lies beyond the end of its file, which changed: load the model again")
    return data


def _mapped(name: str, model: Model, where: str) -> mmap:
    """The mapping of a file of the model, one for all arrays. ModelError when it is not the file that was loaded."""
    if model.folder is None or not model.files:
        raise ModelError(f"{where} lies in a file, and the model has none: load it from its path")
    loaded = next((file for file in model.files[1:] if file.name == name), None) if name else model.files[0]
    try:
        fd = open_external(model.folder, name) if name else os.open(model.folder / model.files[0].name, os.O_RDONLY)
    except OSError as error:
        raise ModelError(f"{where} cannot be read ({error.strerror}): load the model again") from None
    try:
        status = os.fstat(fd)
        if loaded is not None and status.st_size != loaded.size:
            raise ModelError(f"{where} lies in a file that changed since the model was loaded: load it again")
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        mapping = _MAPPINGS.get(identity)
        if mapping is None:
            mapping = mmap(fd, 0, access=ACCESS_READ)
            _MAPPINGS[identity] = mapping
        return mapping
    finally:
        os.close(fd)


def _typed(data: memoryview, constant: Constant, where: str) -> Buffer:
    """The raw layout of the elements of a typed field."""
    packed = constant.storage is not None and constant.storage.packed
    count, element = constant.stored, constant.element
    width = _WIDTH.get(constant.form)
    if width:
        if packed:
            return data
        return np.frombuffer(data, np.uint8).reshape(count, width + 1)[:, 1:].tobytes()
    entries = _numbers(np.frombuffer(data, np.uint8), count, packed)
    bits = BITS[element]
    if element == "uint64":
        return entries.tobytes()
    numbers = entries.view(np.int64)
    wide = 8 if bits in (2, 4) else bits
    low, high = (-(1 << wide - 1), 1 << wide - 1) if element in _SIGNED else (0, 1 << wide)
    if count and (int(numbers.min()) < low or int(numbers.max()) >= high):
        raise ModelError(f"{where} of {element} has an entry of {constant.form} out of range: export the model again")
    if bits == 6:
        return encode(numbers.astype(np.uint8).view(dtype_of(element)))
    return numbers.astype(f"<u{wide // 8}").tobytes()


def _numbers(data: NDArray[np.uint8], count: int, packed: bool) -> NDArray[np.uint64]:
    """The numbers of a field, each in base 128 with the lowest digits first and the upper bit on all but the last.

    When they are not packed, each has its tag in front, which has one byte.
    """
    ends = np.flatnonzero(data < 128)
    numbers = np.empty(count, np.uint64)
    for start in range(0, count, _BLOCK):
        stop = min(start + _BLOCK, count)
        if packed:
            last = ends[start:stop]
            first = np.concatenate(([ends[start - 1] + 1 if start else 0], last[:-1] + 1))
        else:
            last = ends[2 * start + 1 : 2 * stop : 2]
            first = ends[2 * start : 2 * stop : 2] + 1
        block = np.zeros(stop - start, np.uint64)
        for digit in range(int((last - first).max()) + 1):
            there = first + digit <= last
            block[there] |= (data[first[there] + digit] & np.uint8(127)).astype(np.uint64) << np.uint64(7 * digit)
        numbers[start:stop] = block
    return numbers


def _texts(constant: Constant, model: Model, where: str) -> tuple[bytes, ...]:
    if isinstance(constant.data, tuple):
        return constant.data
    if constant.storage is None:
        raise ModelError(f"{where} of strings has no elements that can be read: export the model again")
    data = _bytes(constant.storage, model, where)
    texts, at = [], 0
    for _ in range(constant.stored):  # a tag of one byte, the length, the text
        length = shift = 0
        while True:
            at += 1
            length |= (data[at] & 127) << shift
            shift += 7
            if data[at] < 128:
                break
        at += 1
        texts.append(bytes(data[at : at + length]))
        at += length
    return tuple(texts)


def _dense(
    constant: Constant, parts: tuple[Constant, Constant], model: Model, name: str, budget: int | None
) -> Array | OutOfBudget:
    """The dense form of a sparse tensor: zeros (empty strings) except where indices say (onnx.proto)."""
    where = f"the sparse tensor {quote(name)}"
    dims, element = constant.dims, constant.element
    dtype = dtype_of(element)
    size = _count(dims) * dtype.itemsize
    if budget is not None and size > budget:
        return OutOfBudget(size, budget, where)
    values = array_of(parts[0], model, name, budget)
    indices = array_of(parts[1], model, name, budget)
    if isinstance(values, OutOfBudget):
        return values
    if isinstance(indices, OutOfBudget):
        return indices
    if values.ndim != 1 or parts[1].element != "int64" or indices.shape not in (values.shape, (values.size, len(dims))):
        raise ModelError(
            f"{where} has values of shape {list(values.shape)} and indices of {parts[1].element} and shape"
            f" {list(indices.shape)}: export the model again"
        )
    positions = _positions(indices.astype(np.int64), dims, where)
    flat = np.full(_count(dims), b"", dtype) if element == "string" else np.zeros(_count(dims), dtype)
    flat[positions] = values
    array = flat.reshape(dims)
    array.flags.writeable = False
    return array


def _positions(indices: NDArray[np.int64], dims: tuple[int, ...], where: str) -> NDArray[np.int64]:
    """Row-major positions, ascending. ModelError for one outside the dimensions, or out of order."""
    bounds = np.array([_count(dims)] if indices.ndim == 1 else dims, np.int64)
    if ((indices < 0) | (indices >= bounds)).any():
        raise ModelError(f"{where} has an index outside its shape {list(dims)}: export the model again")
    if indices.ndim == 2:
        strides = np.array([_count(dims[axis + 1 :]) for axis in range(len(dims))], np.int64)
        indices = (indices * strides).sum(axis=1)
    if (np.diff(indices) <= 0).any():
        raise ModelError(f"{where} has indices that do not ascend: export the model again")
    return indices


def _count(dims: tuple[int, ...]) -> int:
    count = 1
    for dim in dims:
        count *= dim
    return count
