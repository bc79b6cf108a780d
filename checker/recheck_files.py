"""The rechecker's own reading of files: digests, external data, and the three notations of a model."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from sonnx.semantics.errors import ModelError

from . import recheck_listing

CHUNK = 1 << 20


def digest(path: Path, shown: str) -> str:
    """SHA-256 of the bytes of a regular file, read in pieces. Raises ModelError; `shown` names it in the message."""
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode):
            raise ModelError(f"{shown} is no regular file; give the file itself")
        found = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                found.update(chunk)
    except OSError as error:
        raise ModelError(f"{shown} cannot be read ({error.strerror})") from None
    return found.hexdigest()


def external_locations(proto: onnx.ModelProto) -> tuple[str, ...]:
    """The locations of external data that tensors of the model name, each once, in order of first use."""
    found: dict[str, None] = {}
    for tensor in _tensors(proto):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            for entry in tensor.external_data:
                if entry.key == "location":
                    found.setdefault(entry.value)
    return tuple(found)


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from _graph_tensors(proto.graph)
    for function in proto.functions:
        yield from _node_tensors(function.node)
        yield from _attribute_tensors(function.attribute_proto)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for node in nodes:
        if node.attribute:
            yield from _attribute_tensors(node.attribute)


def _attribute_tensors(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in attributes:
        yield from (attribute.t, *attribute.tensors)
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)
        for graph in (attribute.g, *attribute.graphs):
            yield from _graph_tensors(graph)


def inside(folder: Path, location: str) -> Path:
    """The path of an external file, which must lie in the model's folder, reached through no link."""
    parts = location.replace("\\", "/").split("/")
    if not location or location.startswith("/") or ".." in parts or "\0" in location or ":" in parts[0]:
        raise ModelError("external data lies outside the model's folder; recheck reads nothing there")
    path = folder
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise ModelError("external data is reached through a symbolic link; put the file itself into the folder")
    return path


def parse(data: bytes) -> tuple[str, onnx.ModelProto]:
    """The notation of a model file (protobuf, text, listing) and its content. Raises ModelError."""
    head = data[:4096].lstrip()
    if head.startswith(b"graph") and not head.startswith(b"graph\0"):
        return "listing", recheck_listing.parse(_decoded(data))
    if head.startswith((b"<", b"//", b"#")):
        return "text", _textual(_decoded(data))
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise ModelError("the model is neither ONNX protobuf nor text; give the file that was certified") from None
    return "protobuf", proto


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelError("the model's text is not UTF-8; give the file that was certified") from None


def _textual(text: str) -> onnx.ModelProto:
    try:
        return onnx.parser.parse_model(text)
    except (onnx.parser.ParseError, RuntimeError, ValueError):
        raise ModelError("the model's text is not in ONNX's syntax; give the file that was certified") from None


def content(path: Path) -> bytes:
    """The bytes of the model file. Raises ModelError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError("the model is no regular file; give the model file itself")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"the model cannot be read ({error.strerror})") from None
