"""A model as the engines take it, and as G."""

from __future__ import annotations

from pathlib import Path

from ..errors import ModelError
from ..graph import Model
from ..loader import load
from ..loader.protobuf import from_bytes
from .protocol import Source


def source_of(model: Model, path: Path | None = None) -> Source:
    """What to give to an engine so that it runs this model. path: the file it was loaded from, None for one in memory.

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
    return load(source) if isinstance(source, Path) else from_bytes(source, "protobuf", content=source)
