"""Loading: from a model file, in any of its forms, to G.

Binary protobuf, ONNX's textual syntax, and the listing of `onnx.helper.printable_graph` are told apart by content.
`load` takes a path, `load_proto` a message; weights are not read: a Constant holds small tensors, of others it says
where they lie. It must not know what operators mean, nor judge a model: it refuses only what has no G.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sonnx.spec.library import specification
from sonnx.spec.project import use

from ...errors import ModelError
from ..graph import Model, ModelFile
from .build import Progress, from_bytes, in_file
from .source import Source, digest, open_source

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["load", "load_all", "load_proto"]


def load(
    path: Path | str,
    *,
    spec: str | PathLike[str] | Iterable[str | PathLike[str]] = (),
    progress: Progress | None = None,
) -> Model:
    """The model in a file; external data are looked for in the file's folder and digested, nothing else is opened.

    spec: files with operators, rules and rule sets of one's own, which are added to the specification, as `sonnx
    --spec` does, until a call names others. A model keeps the digests of the texts that it was loaded under; once they
    are not in force it is refused, not run or judged by others: load it again. progress is called with the number of
    bytes of external data read and of all.
    Raises ModelError, one line that names the file, when the file cannot be read or represented as a model, and
    AdditionError or AddedTextError for a file of `spec` that cannot be read or holds a mistake.
    """
    files_added = [spec] if isinstance(spec, str | PathLike) else list(spec)
    if files_added:
        use(files_added)
        specification()
    source = open_source(Path(path))
    return _read(source, lambda: digest(source.buffer), progress)


def load_all(paths: Iterable[Path | str], meanwhile: Callable[[], object]) -> tuple[Model, ...]:
    """The models in files, as `load` reads them, all digested at once. meanwhile: is called while that goes on."""
    sources = [open_source(Path(path)) for path in paths]
    with ThreadPoolExecutor() as pool:
        digests = [pool.submit(digest, source.buffer) for source in sources]
        meanwhile()
        return tuple(_read(source, it.result, None) for source, it in zip(sources, digests, strict=True))


def _read(source: Source, digested: Callable[[], tuple[int, str]], progress: Progress | None) -> Model:
    where = source.path
    try:
        files = (ModelFile(where.name, *digested()),)
        if source.text:
            from .text import from_text

            return from_text(bytes(source.buffer), files)
        return from_bytes(source.buffer, "protobuf", folder=where.parent, files=files, progress=progress)
    except ModelError as error:
        raise in_file(where, error) from None


def load_proto(proto: ModelProto) -> Model:
    """The model in a protobuf message. It has no folder: external data are refused with a ModelError."""
    content = proto.SerializeToString(deterministic=True)
    return from_bytes(content, "protobuf", content=content)
