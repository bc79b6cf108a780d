"""The rechecker's own reading of files: digests, external data, and the three notations of a model."""

from __future__ import annotations

import hashlib
import re
import stat
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError
from sonnx.semantics.errors import ModelError

from . import listing
from .listing import newest

CHUNK = 1 << 20
HEAD = 4096
NESTING = 200
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BRACKETS = re.compile(r'"(?:\\.|[^"\\])*"|[([{<]|[)\]}>]', re.DOTALL)
_HEADLESS = re.compile(r"\s*(?:#[^\n]*\s*)*[A-Za-z_]")


def digest(path: Path, shown: str) -> str:
    """SHA-256 of the bytes of a regular file, read in pieces. Raises ModelError; `shown` names it in the message."""
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode):
            raise ModelError(f"{shown} is no regular file; give the file itself")
        hashed = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                hashed.update(chunk)
    except OSError as error:
        raise ModelError(f"{shown} cannot be read ({error.strerror})") from None
    return hashed.hexdigest()


def inside(folder: Path, location: str) -> Path:
    """The path of an external file, which must lie in the model's folder, reached through no link."""
    parts = location.replace("\\", "/").split("/")
    if not location or location.startswith("/") or ".." in parts or "\0" in location or ":" in parts[0]:
        raise ModelError("external data lies outside the model's folder; recheck reads nothing there")
    path = folder
    for part in parts:
        path = path / part
        if _is_link(path):
            raise ModelError("external data is reached through a symbolic link; put the file itself into the folder")
    return path


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError as error:
        raise ModelError(f"external data cannot be read ({error.strerror})") from None


def parse(data: bytes) -> tuple[str, onnx.ModelProto]:
    """The notation of a model file (protobuf, text, listing) and its content. Raises ModelError, Unsupported."""
    head = data[:HEAD]
    if not _CONTROL.search(head) and _decodes(head):
        text = _decoded(data)
        if listing.looks_listed(text):
            return "listing", listing.parse(text)
        return "text", _textual(text)
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise ModelError("the model is neither ONNX protobuf nor text; give the file that was certified") from None
    return "protobuf", proto


def _decodes(head: bytes) -> bool:
    """The beginning of a file is UTF-8, a character that the beginning cuts aside."""
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(head) == HEAD and error.start >= HEAD - 3
    return True


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelError("the model's text is not UTF-8; give the file that was certified") from None


def _textual(text: str) -> onnx.ModelProto:
    """A model in ONNX's textual syntax; a graph without a header has the newest versions."""
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += (bracket in "([{<") - (bracket in ")]}>")
        if depth > NESTING:
            raise ModelError("the model's text nests brackets too deeply to be replayed")
    try:
        if not _HEADLESS.match(text):
            return onnx.parser.parse_model(text)
        graph = onnx.parser.parse_graph(text)
    except (onnx.parser.ParseError, DecodeError, EncodeError, LookupError, RuntimeError, ValueError):
        raise ModelError("the model's text is not in ONNX's syntax; give the file that was certified") from None
    return newest(graph)


def content(path: Path) -> bytes:
    """The bytes of the model file. Raises ModelError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError("the model is no regular file; give the model file itself")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"the model cannot be read ({error.strerror})") from None


def length(path: Path) -> int:
    """The number of bytes of a file. Raises ModelError."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise ModelError(f"external data cannot be read ({error.strerror})") from None
