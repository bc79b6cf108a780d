"""Opening a model file: files that are no models are named for what they are, and nothing is waited for."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import re
import socket
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.loader.source import open_source
from sonnx.semantics.model.loader.wire import MAX_BYTES


def zipped(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return out.getvalue()


def array() -> bytes:
    out = io.BytesIO()
    np.save(out, np.zeros(3))
    return out.getvalue()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 1234\n"
OTHERS = {
    "nothing": (b"", "is empty: fetch the model again"),
    "pointer": (POINTER, "is a git-LFS pointer, not the model itself: run git lfs pull"),
    "html": (b"\n<!DOCTYPE html>\n<html lang=en>", "is an HTML or XML page, not the file behind it: fetch the model"),
    "xml": (b"<?xml version='1.0'?><net/>", "is an HTML or XML page"),
    "torch": (zipped("model/data.pkl", "model/version"), "is a PyTorch checkpoint: export the model with torch.onnx"),
    "keras": (zipped("metadata.json", "config.json"), "is a Keras archive: convert it with tf2onnx"),
    "zip": (zipped("model.onnx"), "is a zip archive: unpack it and give the .onnx file inside"),
    "h5": (b"\x89HDF\r\n\x1a\n" + bytes(90), "is an HDF5 file (Keras): convert it with tf2onnx"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(90), "is a TensorFlow Lite model: convert it with tf2onnx"),
    "ort": (b"\x18\0\0\0ORTM" + bytes(90), "is a model in ONNX Runtime's own format: give the .onnx file"),
    "gzip": (b"\x1f\x8b\x08\0" + bytes(90), "is a gzip archive: unpack it"),
    "pickle": (pickle.dumps({"state": 1}, 2), "is a Python pickle (an old PyTorch checkpoint): export the model"),
    "npy": (array(), "is a NumPy array: give an .onnx file"),
    "json": (b'{"irVersion": "8", "graph": {}}', "is a JSON file: give the model as binary .onnx"),
    "textproto": (b'ir_version: 8\ngraph {\n  name: "g"\n}\n', "is protobuf's text format: give the model as binary"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_that_is_no_model_is_named_for_what_it_is(name: str, tmp_path: Path) -> None:
    content, message = OTHERS[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=re.escape(f'model.onnx" {message}')) as caught:
        open_source(path)
    assert str(caught.value).isprintable()


def test_a_missing_file_a_folder_and_a_name_that_the_system_refuses_are_told_apart(tmp_path: Path) -> None:
    for path, message in [
        (tmp_path / "none.onnx", "does not exist"),
        (tmp_path, "is a folder: give the .onnx file inside"),
        (tmp_path / ("n" * 5000), "cannot be read (File name too long)"),
        (tmp_path / "a\0b", "cannot be read"),
    ]:
        with pytest.raises(ModelError, match=re.escape(message)):
            open_source(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x08")
    path.chmod(0)
    with pytest.raises(ModelError, match="may not be read"):
        open_source(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_sockets_and_devices_are_refused_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for path in (tmp_path / "pipe", tmp_path / "socket", Path(os.devnull)):
            with pytest.raises(ModelError, match="is a pipe or device"):
                open_source(path)


def test_a_file_above_protobufs_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    with path.open("wb") as file:
        file.write(b"\x08\x08")
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(ModelError, match="protobuf's limit is 2147483647: save its weights as external data"):
        open_source(path)


@pytest.mark.parametrize("text", ["graph g (\n) {\n}\n", "<ir_version: 8>\ng (float[N] ä) => () {}", "x" + "ä" * 3000])
def test_text_is_told_from_binary(text: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text(text, encoding="utf-8")
    assert open_source(path).text
    path.write_bytes(b"\x08\x08" + text.encode())
    assert not open_source(path).text
    for rest in (b"", text.encode() * 300):
        path.write_bytes(b"x\xff" + rest)
        assert not open_source(path).text


def test_a_large_file_is_mapped_and_has_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    for size, kind in [(9000, bytes), (1 << 24, mmap.mmap)]:
        path.write_bytes(b"\x08\x08" + bytes(range(250)) * (size // 250 + 1))
        buffer = open_source(path).buffer
        assert type(buffer) is kind
        assert buffer[:] == path.read_bytes()


def test_a_name_is_shown_as_inert_ascii(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        open_source(tmp_path / "\n\x1b[31m<b>ä\udcff")
    assert r"\u000a\u001b[31m\u003cb\u003e\u00e4\udcff" in str(caught.value)
    assert str(caught.value).isascii()
