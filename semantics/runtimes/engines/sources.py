"""A model as the engines take it, and as G."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from ...errors import ModelError
from ...model.graph import Model
from ...model.loader import load
from ...model.loader.build import from_bytes
from ...model.loader.source import texts_in_force
from .protocol import Source

_SMALL: Final = 1 << 18
"""Bytes of a model that is kept when it was read; engines ask for the same one after the other."""


def source_of(model: Model, path: Path | None = None) -> Source:
    """The input of an engine that runs this model. path: the file it was loaded from, None for one in memory.

    Raises ModelError for a model that only a listing elides.
    """
    if not model.runnable:
        raise ModelError("the model elides a value: give the .onnx file")
    if model.content:
        return model.content
    if path is None:
        raise ModelError("the model has neither content nor a file")
    return path.absolute()


def model_of(source: Source) -> Model:
    """G of what an engine is given. Raises ModelError."""
    if isinstance(source, Path):
        return load(source)
    return _kept(source, texts_in_force()) if len(source) <= _SMALL else _read(source)


def _read(source: bytes) -> Model:
    return from_bytes(source, "protobuf", content=source)


@lru_cache(maxsize=8)
def _kept(source: bytes, _texts: tuple[tuple[str, str], ...]) -> Model:
    return _read(source)  # under the texts that are in force: another one under others
