"""The trace of a run as lines of JSON, chained by SHA-256, with the bytes of its values in a file beside it.

The first line is the head (model, inputs, schedule), then one line for each step, then the end. Every line has the key
`chain`: the SHA-256 of the chain of the line before, a line break, and this line as canonical JSON without `chain`.
A value is referred to by its type, its SHA-256, its length, its address in M (at) and its place among the bytes
(offset); a stored one lies in the model and has no such place.

    head   sonnx: trace, version, model (files with SHA-256), inputs, stored (the initializers of all graphs), schedule,
           allocation, alignment (of the addresses); where a node may draw random numbers also draws (their seed)
    step   step (from 1), rule, node, reads and writes (tensor and value), freed (addresses of the regions that are free
           after the step); where a run of a body ends also run (how the paths in it begin), runs (how many there will
           be, null: not known) and kept (what the runs before gave)
    end    end (the number of steps), memory (N, the bytes of M), outputs, stuck (rule, premise, message, path of the
           node, budget of bytes; null when the run ended well); where the run was judged and is consistent (part 6)
           also consistent (how many equations hold)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...errors import ModelError
from ...model.graph import Model, ValueType

VERSION: Final = 2
SUFFIX: Final = ".values"
"""The ending of the name of the file with the bytes, behind that of the trace."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A value of a trace: its type, SHA-256 and length of its bytes, their address in M, and their offset in the file;
    None for an initializer."""

    type: ValueType
    sha256: str
    length: int
    at: int
    offset: int | None

    def to_json(self) -> dict[str, Json]:
        """The reference as a line holds it."""
        place: dict[str, Json] = {"stored": True} if self.offset is None else {"offset": self.offset}
        return {
            "type": type_to_json(self.type),
            "sha256": self.sha256,
            "length": self.length,
            "at": self.at,
            **place,
        }


def canonical(line: Mapping[str, Json]) -> str:
    """JSON of one spelling: keys sorted, no blanks, ASCII."""
    return json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def chained(before: str, line: Mapping[str, Json]) -> str:
    """The chain of a line, which has no key `chain` yet."""
    return hashlib.sha256(f"{before}\n{canonical(line)}".encode()).hexdigest()


def model_digest(model: Model) -> Json:
    """The files of a model with their digests, or the digest of one given in memory."""
    if not model.files:
        return [{"name": "", "sha256": hashlib.sha256(model.content).hexdigest()}]
    return [{"name": file.name, "sha256": file.sha256} for file in model.files]


def type_to_json(type_: ValueType) -> Json:
    """A type: [kind, element, shape, inner]."""
    shape: Json = None if type_.shape is None else list(type_.shape)
    return [type_.kind, type_.element, shape, None if type_.inner is None else type_to_json(type_.inner)]


def type_from_json(data: Json) -> ValueType:
    """The inverse. Raises ModelError for anything else."""
    match data:
        case [str() as kind, str() as element, None | list() as shape, inner] if len(str(data)) < 100_000:
            return ValueType(kind, element, _shape(shape), None if inner is None else type_from_json(inner))
        case _:
            raise ModelError("the trace has a type that cannot be read: make it again")


def _shape(data: list[Json] | None) -> tuple[int | str | None, ...] | None:
    if data is None:
        return None
    sizes: list[int | str | None] = []
    for size in data:
        if not (size is None or isinstance(size, str) or (isinstance(size, int) and not isinstance(size, bool))):
            raise ModelError("the trace has a shape that cannot be read: make it again")
        sizes.append(size)
    return tuple(sizes)


def reference_from_json(data: Json) -> Reference:
    """The inverse of `Reference.to_json`. Raises ModelError for anything else."""
    match data:
        case {"type": type_, "sha256": str() as sha256, "length": int() as length, "at": int() as at, **rest} if (
            length >= 0
        ):
            offset = rest.get("offset")
            if (isinstance(offset, int) and offset >= 0) or (offset is None and rest.get("stored") is True):
                return Reference(type_from_json(type_), sha256, length, at, offset)
    raise ModelError("the trace refers to a value in a way that cannot be read: make it again")
