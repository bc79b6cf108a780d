"""Values in JSON, by their declared type: a tensor is a list of lists of numbers or texts, or one of them, a sequence
is a list, an optional null or what it holds, a map an object, whose keys are texts also where they are integers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import numpy as np

from ...errors import ModelError
from ...model.elements import dtype_of, integer_range, is_integer
from ...model.graph import ValueType
from ...model.path import quote
from ...model.values import Array, Map, Optional, Sequence, Value
from ..inputs import type_text

_FLOATS: Final = frozenset(("float", "double", "float16", "bfloat16"))
_NUMERAL: Final = re.compile("-?[0-9]{1,20}")  # int() reads more: other digits, blanks, signs, bars
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def read_json(path: Path, declared: ValueType | None) -> Value:
    """The value in a file. Raises ModelError when it is none of the declared type."""
    if declared is None:
        raise ModelError("the type of the input is not declared: give it in another format")
    try:
        data: Json = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"it is no JSON ({' '.join(str(error).split())[:200]})") from None
    try:
        return value_of(data, declared)
    except (ValueError, OverflowError, RecursionError) as error:  # half a pair of surrogates, 10^400, more than 64 axes
        said = " ".join(str(error).split())[:200]
        raise ModelError(f"it holds nothing that is {type_text(declared)} ({said})") from None


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object has a key twice")
    return made


def value_of(data: Json, declared: ValueType) -> Value:
    """The value of a type for parsed data. Raises ModelError when they are none."""
    inner = declared.inner or ValueType("tensor")
    plain = ValueType(inner.kind, inner.element, inner=inner.inner)
    match declared.kind, data:
        case "map", dict():
            pairs = {_key(key, declared): value_of(item, inner) for key, item in data.items()}
            if len(pairs) < len(data):
                raise ModelError("a map has a key twice, in two spellings")
            return Map(declared.element, plain, tuple(sorted(pairs.items(), key=lambda pair: pair[0])))
        case "sequence", list():
            return Sequence(plain, tuple(value_of(item, inner) for item in data))
        case "optional", None:
            return Optional(plain, None)
        case "optional", _:
            return Optional(plain, value_of(data, inner))
        case "tensor", _ if declared.element:
            return _tensor(data, declared)
        case _:
            raise ModelError(f"{quote(json.dumps(data)[:60])} is no {type_text(declared)}")


def _key(text: str, declared: ValueType) -> int | bytes:
    if declared.element == "string":
        return text.encode("utf-8", "surrogateescape")
    low, high = integer_range(dtype_of(declared.element))
    number = int(text) if _NUMERAL.fullmatch(text) else high + 1
    if not low <= number <= high:
        raise ModelError(f"the key {quote(text)} is no {declared.element}")
    return number


def _tensor(data: Json, declared: ValueType) -> Array:
    shape = _shape(data)
    entries = _flat(data)
    made = np.empty(len(entries), dtype_of(declared.element))
    with np.errstate(over="ignore"):  # a number beyond the type is infinite in it
        for position, entry in enumerate(entries):
            made[position] = _element(entry, declared.element)
    made = made.reshape(shape)
    made.flags.writeable = False
    return made


def _shape(data: Json) -> tuple[int, ...]:
    if not isinstance(data, list):
        return ()
    shapes = {_shape(item) for item in data}
    if len(shapes) > 1:
        raise ModelError("the lists of a tensor differ in length")
    return (len(data), *next(iter(shapes), ()))


def _flat(data: Json) -> list[Json]:
    return [entry for item in data for entry in _flat(item)] if isinstance(data, list) else [data]


def _element(entry: Json, element: str) -> bool | int | float | bytes:
    """An entry as NumPy takes it for an element of the type."""
    if element == "string" and isinstance(entry, str):
        return entry.encode("utf-8", "surrogateescape")
    if element == "bool" and isinstance(entry, bool):
        return entry
    if element in _FLOATS and isinstance(entry, int | float) and not isinstance(entry, bool):
        return float(entry)
    if isinstance(entry, int) and not isinstance(entry, bool) and is_integer(dtype_of(element)):
        low, high = integer_range(dtype_of(element))
        if low <= entry <= high:
            return entry
    raise ModelError(f"{quote(json.dumps(entry)[:60])} is no {element}")
