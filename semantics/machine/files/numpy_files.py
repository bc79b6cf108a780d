"""Values in NumPy's files, .npy and .npz, and the inputs of a run from files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote as percent

import numpy as np
from numpy.typing import NDArray

from ...errors import InternalError, ModelError
from ...model.elements import DTYPES, element_of
from ...model.graph import Model, ValueType
from ...model.path import quote
from ...model.values import Array, Map, Optional, Sequence, Value
from ..inputs import declared_inputs, type_text
from ..memory import type_of

_NATIVE: Final = frozenset((
    "float", "double", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "complex64", "complex128",
))  # fmt: skip
_RAW: Final[Mapping[int, np.dtype[np.generic]]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


# ---- Writing ----------------------------------------------------------------------------------


def write_npz(path: Path, values: Mapping[str, Value]) -> None:
    """Write values by name; the same values give the same bytes. Raises ModelError for names that clash."""
    entries: dict[str, NDArray[np.generic]] = {}
    for name, value in values.items():
        for entry, array in _entries(entry_name(name), value):
            if entry in entries:
                raise ModelError(f"two values would be the entry {quote(entry)} of the file: rename an output")
            entries[entry] = array
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for entry, array in entries.items():
            with archive.open(zipfile.ZipInfo(f"{entry}.npy", _EPOCH), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def entry_name(name: str) -> str:
    """The name of the entry for a tensor: its own name, with what no archive should hold percent-encoded: control
    characters, backslashes, what is no text, parts that are `..`, and a name that is empty."""
    safe = "".join(
        c if c.isprintable() and c not in "\\%" else percent(c, safe="", errors="surrogatepass") for c in name
    )
    parts = ["%2E%2E" if part == ".." else part for part in safe.split("/")]
    return "/".join(parts) or "%"


def _entries(entry: str, value: Value) -> Iterator[tuple[str, NDArray[np.generic]]]:
    if isinstance(value, np.ndarray):
        element = element_of(value.dtype)
        if element in _NATIVE:
            yield entry, np.ascontiguousarray(value).reshape(value.shape)
        elif element == "string":
            texts = [text.decode("utf-8", "surrogateescape") for text in value.reshape(-1).tolist()]
            yield entry, np.array(texts, np.str_).reshape(value.shape)
        else:
            yield entry, np.ascontiguousarray(value).reshape(value.shape).view(_RAW[value.dtype.itemsize])
            yield f"{entry}.dtype", np.array(element)
        return
    yield f"{entry}.dtype", np.array(type_text(type_of(value)))
    items: tuple[Value, ...]
    if isinstance(value, Map):
        items = tuple(item for _, item in value.items)
        texts = [key.decode("utf-8", "surrogateescape") if isinstance(key, bytes) else key for key, _ in value.items]
        yield f"{entry}.keys", np.array(texts, np.str_ if value.key == "string" else DTYPES[value.key])
    else:
        items = value.items if isinstance(value, Sequence) else () if value.item is None else (value.item,)
        yield f"{entry}.length", np.array(len(items), np.int64)
    for position, item in enumerate(items):
        yield from _entries(f"{entry}[{position}]", item)


# ---- Reading ----------------------------------------------------------------------------------


def read_npy(path: Path, declared: ValueType | None) -> Value:
    """The tensor in an .npy file. Raises ModelError when it is none; files with Python objects are not opened."""
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, UnicodeError, MemoryError, OverflowError) as error:
        raise ModelError(f"it is no .npy file of numbers or texts ({_first(error)}): save it again") from None
    return _tensor(array, "", declared)


def read_npz(path: Path, types: Mapping[str, ValueType | None]) -> dict[str, Value]:
    """The values of these names that an .npz file holds. Raises ModelError when it is none.

    types: the names with the declared types, which say whether a value is a sequence, an optional or a map.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = {info.filename for info in archive.infolist()}
            known = {name: type_ for name, type_ in types.items() if _there(entry_name(name), names)}
            return {name: _read(archive, names, entry_name(name), type_) for name, type_ in known.items()}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError, SyntaxError, NotImplementedError, RuntimeError,
            MemoryError, OverflowError) as error:  # fmt: skip
        raise ModelError(f"it is no .npz file of numbers and texts ({_first(error)}): save it again") from None


def npz_names(path: Path) -> tuple[str, ...]:
    """The names of the entries of an .npz file, for messages."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(info.filename.removesuffix(".npy") for info in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise ModelError(f"it is no .npz file ({_first(error)}): save it again") from None


def _there(entry: str, names: Iterable[str]) -> bool:
    return f"{entry}.npy" in names or f"{entry}.length.npy" in names or f"{entry}.keys.npy" in names


def _read(archive: zipfile.ZipFile, names: set[str], entry: str, declared: ValueType | None) -> Value:
    if f"{entry}.npy" in names:
        element = str(_array(archive, f"{entry}.dtype")) if f"{entry}.dtype.npy" in names else ""
        return _tensor(_array(archive, entry), element, declared)
    inner = (declared.inner if declared is not None else None) or ValueType("tensor")
    if declared is None or declared.kind not in ("sequence", "optional", "map"):
        raise ModelError(f"the entry {quote(entry)} is several values, expected {type_text(declared)}")
    if declared.kind == "map":
        keys = _array(archive, f"{entry}.keys").tolist()
        values = [_read(archive, names, f"{entry}[{i}]", inner) for i in range(len(keys))]
        encoded = [key.encode("utf-8", "surrogateescape") if isinstance(key, str) else int(key) for key in keys]
        return Map(declared.element, inner, tuple(zip(encoded, values, strict=True)))
    length = int(_array(archive, f"{entry}.length"))
    if f"{entry}[{length - 1}].npy" not in names and length > len(names):
        raise ModelError(f"the entry {quote(entry)} lacks items: save the file again")
    items = tuple(_read(archive, names, f"{entry}[{i}]", inner) for i in range(length))
    if declared.kind == "sequence":
        return Sequence(_plain(items, inner), items)
    return Optional(_plain(items, inner), items[0] if items else None)


def _plain(items: tuple[Value, ...], inner: ValueType) -> ValueType:
    type_ = type_of(items[0]) if items else inner
    return ValueType(type_.kind, type_.element, inner=type_.inner)


def _array(archive: zipfile.ZipFile, entry: str) -> NDArray[np.generic]:
    with archive.open(f"{entry}.npy") as file:
        array: NDArray[np.generic] = np.lib.format.read_array(file, allow_pickle=False)
        return array


def _tensor(array: NDArray[np.generic], element: str, declared: ValueType | None) -> Array:
    """An array of a file as a tensor. Raises ModelError for a dtype that stands for no element type."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    wanted = element or (declared.element if declared is not None and array.dtype.kind == "V" else "")
    if wanted:
        dtype = DTYPES.get(wanted)
        if dtype is None or dtype.hasobject or dtype.itemsize != array.dtype.itemsize:
            raise ModelError(f"its elements of {array.dtype} are no bits of {wanted}: save it again")
        return np.ascontiguousarray(array).reshape(array.shape).view(dtype)
    if array.dtype.kind in "US":
        texts = np.empty(array.shape, object)
        texts.reshape(-1)[:] = [
            text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
            for text in array.reshape(-1).tolist()
        ]
        return texts
    try:
        element_of(array.dtype)
    except InternalError:
        raise ModelError(f"its elements of {array.dtype} are of no ONNX type: save it with another dtype") from None
    return array


def _first(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


# ---- Inputs of a run ------------------------------------------------------------------------------


def named_inputs(model: Model, given: Iterable[str]) -> dict[str, Value]:
    """The values by the names of inputs. Raises ModelError for what is neither, OSError for what cannot be opened."""
    types = {name: type_ for name, (_, type_, _) in declared_inputs(model).items()}
    values: dict[str, Value] = {}
    for text in given:
        name, path = _parted(text, types)
        values_read = _read_inputs(path, types if name is None else {name: types.get(name)}, whole=name is None)
        for again in values_read.keys() & values.keys():
            raise ModelError(f"the input {quote(again)} is given twice: give it once")
        values |= values_read
    return values


def input_files(model: Model, given: Iterable[str]) -> tuple[Path, ...]:
    """The files that `named_inputs` reads. Raises ModelError for what names no input."""
    types = {name: type_ for name, (_, type_, _) in declared_inputs(model).items()}
    return tuple(_parted(text, types)[1] for text in given)


def value_in_file(path: Path, name: str, declared: ValueType | None) -> Value:
    """The value that a file holds for a tensor: .npy, .pb, .json, or the entry of its name in an .npz.

    Raises ModelError for what is none, OSError for what cannot be opened.
    """
    return _read_inputs(path, {name: declared}, whole=False)[name]


def _parted(text: str, types: Mapping[str, ValueType | None]) -> tuple[str | None, Path]:
    """Name and file; both may hold the sign =, so a name that the model has counts first."""
    cuts = [i for i, char in enumerate(text) if char == "="]
    cut = next((i for i in cuts if text[:i] in types), cuts[0] if cuts else None)
    if cut is not None and text[:cut] in types:
        return text[:cut], Path(text[cut + 1 :])
    if text.endswith(".npz") and (cut is None or Path(text).exists()):
        return None, Path(text)
    if cut is None:
        raise ModelError(f"--input {quote(text)} names no input: write NAME=FILE, or give an .npz file")
    return text[:cut], Path(text[cut + 1 :])


def _read_inputs(path: Path, types: Mapping[str, ValueType | None], *, whole: bool) -> dict[str, Value]:
    suffix = path.suffix.lower()
    try:
        if suffix == ".npz":
            values = read_npz(path, types)
            missing = [] if whole else [name for name in types if name not in values]
            if missing or not values:
                there = ", ".join(map(quote, npz_names(path)[:8])) or "none"
                raise ModelError(f"it has no entry {quote(next(iter(missing or types), ''))}, its entries are {there}")
            return values
        (name,) = types
        if suffix == ".npy":
            return {name: read_npy(path, types[name])}
        if suffix == ".pb":
            from .protobuf_files import value_from_proto

            return {name: value_from_proto(path.read_bytes(), types[name])}
        if suffix == ".json":
            from .json_files import read_json

            return {name: read_json(path, types[name])}
    except ModelError as error:
        raise ModelError(f"{quote(str(path))}: {error}") from None
    raise ModelError(f"{quote(str(path))} is of no kind that is read here: give .npy, .npz, .pb or .json")
