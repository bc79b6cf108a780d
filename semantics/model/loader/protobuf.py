"""A serialised model as G: scanned, parsed without its large tensors, built."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from mmap import mmap
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto

from ...errors import ModelError
from ...resources.process import paused
from ..graph import Model, ModelFile
from ..path import quote
from .build import build
from .external import open_external
from .source import digest
from .values import Payloads
from .wire import scan

Progress = Callable[[int, int], None]
"""Called with the number of bytes of external data read and of all."""


def from_bytes(
    buffer: bytes | mmap,
    source: str,
    *,
    folder: Path | None = None,
    files: tuple[ModelFile, ...] = (),
    content: bytes = b"",
    progress: Progress | None = None,
) -> Model:
    """G of a serialised ModelProto. folder: where its external data lie, None when it has no place.

    files: the model file; the external files that the model names are added, each once. content: see Model.
    Raises ModelError.
    """
    found = scan(buffer)
    try:
        proto = ModelProto.FromString(found.stripped)
    except (DecodeError, RecursionError) as error:
        raise ModelError(f"the file is no ONNX model ({error}): export it again") from None
    if not proto.HasField("graph"):
        raise ModelError("the file has no graph: it is no ONNX model, or was cut off; export it again")
    payloads = Payloads(found, folder, elides=source == "listing")
    with paused():
        model = build(proto, payloads, source, files, content)
    if folder is None or not payloads.files:
        return model
    return replace(model, files=(*files, *_external(folder, tuple(payloads.files), progress)))


def _external(folder: Path, names: tuple[str, ...], progress: Progress | None) -> Iterator[ModelFile]:
    opened: list[tuple[str, int]] = []
    try:
        opened.extend((name, open_external(folder, name)) for name in names)
        total = sum(os.fstat(fd).st_size for _, fd in opened)
        done = 0

        def tell(size: int) -> None:
            nonlocal done
            done += size
            if progress is not None:
                progress(done, total)

        for name, fd in opened:
            size, sha256 = digest(fd, tell)
            yield ModelFile(name, size, sha256)
    finally:
        for _, fd in opened:
            os.close(fd)


def in_file(path: Path, error: ModelError) -> ModelError:
    """The error with the file in front, unless it names it already."""
    text = str(error)
    name = quote(str(path))
    return error if text.startswith(name) else ModelError(f"{name}: {text}")
