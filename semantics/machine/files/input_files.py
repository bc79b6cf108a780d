"""The inputs of a run from files: NAME=FILE, or an .npz file with all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ...errors import ModelError
from ...model.graph import Model, ValueType
from ...model.path import quote
from ...model.values import Value
from ..inputs import declared_inputs
from .numpy_files import npz_names, read_npy, read_npz


def named_inputs(model: Model, given: Iterable[str]) -> dict[str, Value]:
    """The values by the names of inputs. Raises ModelError for what is neither, OSError for what cannot be opened."""
    types = {name: type_ for name, (_, type_, _) in declared_inputs(model).items()}
    values: dict[str, Value] = {}
    for text in given:
        name, path = _parted(text, types)
        found = _read(path, types if name is None else {name: types.get(name)}, whole=name is None)
        for again in found.keys() & values.keys():
            raise ModelError(f"the input {quote(again)} is given twice: give it once")
        values |= found
    return values


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


def _read(path: Path, types: Mapping[str, ValueType | None], *, whole: bool) -> dict[str, Value]:
    suffix = path.suffix.lower()
    try:
        if suffix == ".npz":
            found = read_npz(path, types)
            missing = [] if whole else [name for name in types if name not in found]
            if missing or not found:
                there = ", ".join(map(quote, npz_names(path)[:8])) or "none"
                raise ModelError(f"it has no entry {quote(next(iter(missing or types), ''))}, its entries are {there}")
            return found
        (name,) = types
        if suffix == ".npy":
            return {name: read_npy(path, types[name])}
        if suffix == ".pb":
            from .protobuf_files import value_from_proto

            return {name: value_from_proto(path.read_bytes(), types[name])}
    except ModelError as error:
        raise ModelError(f"{quote(str(path))}: {error}") from None
    raise ModelError(f"{quote(str(path))} is of no kind that is read here: give .npy, .npz or .pb")
