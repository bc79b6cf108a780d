"""Opening a model file: its bytes, their SHA-256, what kind of file it is, and the texts of users it is read under.

A file that is no model is named for what it is.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sonnx.spec import project
from sonnx.spec.parsed import sha256

from ...errors import ModelError
from ..graph import Model
from ..path import quote
from .wire import MAX_BYTES

_BLOCK: Final = 1 << 22


def digest(source: int | Path | bytes | mmap.mmap, progress: Callable[[int], None] | None = None) -> tuple[int, str]:
    """The size in bytes and the SHA-256, in hexadecimal, of all bytes of `source`.

    source: an open file descriptor, which stays open and is read from its start, a regular file, or the bytes.
    progress is called with the number of bytes of each block. Raises ModelError when reading fails.
    """
    blocks = _blocks(source)
    total = hashlib.sha256()
    size = 0
    try:
        for block in blocks:
            total.update(block)
            size += len(block)
            if progress is not None:
                progress(len(block))
    except OSError as error:
        raise ModelError(f"the file cannot be read to its end ({error.strerror}): try again") from None
    return size, total.hexdigest()


def _blocks(source: int | Path | bytes | mmap.mmap) -> Iterator[bytes | memoryview]:
    if isinstance(source, int):
        offset = 0
        while block := os.pread(source, _BLOCK, offset):
            offset += len(block)
            yield block
    elif isinstance(source, Path):
        with source.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
    else:
        with memoryview(source) as view:
            for offset in range(0, len(view), _BLOCK):
                yield view[offset : offset + _BLOCK]


_MAP_FROM: Final = 1 << 24  # smaller files are read: a mapping can vanish under its reader
_HEAD: Final = 4096
_EXPORT: Final = "export the model to ONNX and give that file"
_FETCH: Final = "fetch the model again"

# (offset, first bytes, what the file is, what to do)
_OTHERS: Final = (
    (0, b"version https://git-lfs.github.com/spec/", "a git-LFS pointer, not the model itself", "run git lfs pull"),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file (Keras)", "convert it with tf2onnx"),
    (4, b"TFL3", "a TensorFlow Lite model", "convert it with tf2onnx"),
    (4, b"ORTM", "a model in ONNX Runtime's own format", "give the .onnx file that it was made from"),
    (0, b"\x1f\x8b", "a gzip archive", "unpack it and give the .onnx file inside"),
    (0, b"\x93NUMPY", "a NumPy array", "give an .onnx file"),
    (0, b"\x7fELF", "a program", "give an .onnx file"),
)
_MARKUP: Final = re.compile(rb"\s*<(?:!doctype|!--|html|head|body|\?xml)", re.IGNORECASE)
_TEXT_PROTO: Final = re.compile(
    rb"\s*(?:(?:ir_version|producer_name|producer_version|model_version|domain|doc_string)\s*:|(?:graph|opset_import)\s*\{)"
)
_JSON: Final = re.compile(rb"\s*[\[{]")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Source:
    """A model file. text: it is one of the textual forms. buffer: all its bytes, mapped when it is large."""

    path: Path
    text: bool
    buffer: bytes | mmap.mmap


def open_source(path: Path) -> Source:
    """Open a model file for reading. It never waits: pipes and devices are refused before they are opened.

    Raises ModelError when the file cannot be read, is empty, is too large for protobuf, or is plainly something else.
    """
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise ModelError(f"{quote(str(path))} is a folder: give the .onnx file inside")
        if not stat.S_ISREG(kind):
            raise ModelError(f"{quote(str(path))} is a pipe or device: save the model as a file and give that")
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise ModelError(f"{quote(str(path))} changed while it was opened: try again")
            head = file.read(_HEAD)
            text = _is_text(path, head)
            if status.st_size > MAX_BYTES:
                raise ModelError(
                    f"{quote(str(path))} has {status.st_size} bytes, protobuf's limit is {MAX_BYTES}: "
                    "save its weights as external data"
                )
            if status.st_size >= _MAP_FROM and not text:
                return Source(path, text, mmap.mmap(fd, 0, access=mmap.ACCESS_READ))
            return Source(path, text, head + file.read())
    except FileNotFoundError:
        raise ModelError(f"{quote(str(path))} does not exist: give the path of an .onnx file") from None
    except PermissionError:
        raise ModelError(f"{quote(str(path))} may not be read: ask for permission to read it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{quote(str(path))} cannot be read ({reason}): give the path of an .onnx file") from None


def _is_text(path: Path, head: bytes) -> bool:
    """True where a file with this beginning is text; ModelError when it is plainly no model."""
    other = _other(head)
    if other is not None:
        raise ModelError(f"{quote(str(path))} is {other[0]}: {other[1]}")
    if _CONTROL.search(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= _HEAD - 3  # the last character may be cut
    return True


def _other(head: bytes) -> tuple[str, str] | None:
    """The kind of a file with this beginning, and advice, when it is plainly no model."""
    if not head:
        return "empty", _FETCH
    for offset, magic, what, advice in _OTHERS:
        if head.startswith(magic, offset):
            return what, advice
    if head.startswith(b"PK\x03\x04"):
        if b"/data.pkl" in head or b"/version" in head:
            return "a PyTorch checkpoint", "export the model with torch.onnx.export and give that file"
        if b"config.json" in head or b"metadata.json" in head:
            return "a Keras archive", "convert it with tf2onnx"
        return "a zip archive", "unpack it and give the .onnx file inside"
    if head[0] == 0x80 and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a Python pickle (an old PyTorch checkpoint)", _EXPORT
    if _CONTROL.search(head):
        return None
    if _MARKUP.match(head):
        return "an HTML or XML page, not the file behind it", _FETCH
    if _JSON.match(head):
        return "a JSON file", "give the model as binary .onnx"
    if _TEXT_PROTO.match(head):
        return "protobuf's text format", "give the model as binary .onnx"
    return None


# ---- Texts of users -----------------------------------------------------------------------------


def texts_in_force() -> tuple[tuple[str, str], ...]:
    """The files that are added now, by name and digest. Raises AdditionError for one that cannot be read."""
    return tuple((name, sha256(text)) for name, text in project.texts().items())


def check_texts(model: Model) -> None:
    """Raises ModelError where a text that a model was loaded under is not in force any more: its operators would mean
    something else now, or nothing."""
    if not model.added:
        return
    now = texts_in_force()
    digests = {digest for _, digest in now}
    for name, digest in model.added:
        if digest not in digests:
            shown = ", ".join(f"{quote(other)} ({known[:12]})" for other, known in now) or "none"
            raise ModelError(
                f"the model was loaded under the text {quote(name)} ({digest[:12]}), which is not in force any more;"
                f" in force: {shown}. Load it again, with spec={quote(name)}"
            )
