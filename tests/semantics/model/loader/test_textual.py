"""ONNX's textual syntax: read by content, errors with line and column."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from onnx import parser, printer
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.loader import load, load_proto
from sonnx.semantics.model.schemas import newest_ir_version, newest_opset

TEXT = '<ir_version: 9, opset_import: ["": 17]>\ng (float[2] x) => (float[2] y) {\n  h = Relu (x)\n  y = Neg (h)\n}\n'


def write(folder: Path, text: str | bytes, name: str = "m.onnxtxt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", ["m.onnxtxt", "m.txt", "m.onnx", "m"])
def test_the_form_is_told_by_content_not_by_name(tmp_path: Path, name: str) -> None:
    model = load(write(tmp_path, TEXT, name))
    assert (model.source, model.ir_version, model.opsets) == ("text", 9, (("", 17),))
    assert [node.path for node in model.nodes] == ["/0:Relu", "/1:Neg"]
    assert binary(tmp_path).source == "protobuf"


def binary(folder: Path) -> object:
    path = folder / "binary.txt"
    path.write_bytes(parser.parse_model(TEXT).SerializeToString())
    return load(path)


def test_a_text_is_the_model_that_it_spells(tmp_path: Path) -> None:
    proto = parser.parse_model(TEXT)
    found, expected = load(write(tmp_path, printer.to_text(proto))), load_proto(proto)
    assert (found.graphs, found.nodes, found.tensors) == (expected.graphs, expected.nodes, expected.tensors)


def test_the_digest_is_that_of_the_text(tmp_path: Path) -> None:
    file = load(write(tmp_path, TEXT)).files[0]
    assert (file.name, file.size, file.sha256) == ("m.onnxtxt", len(TEXT), hashlib.sha256(TEXT.encode()).hexdigest())


def test_a_graph_alone_is_of_the_newest_versions(tmp_path: Path) -> None:
    model = load(write(tmp_path, TEXT.partition("\n")[2]))
    assert (model.ir_version, model.opsets) == (newest_ir_version(), (("", newest_opset()),))


def test_large_tensors_lie_in_the_content_of_the_model(tmp_path: Path) -> None:
    values = ", ".join(["1"] * 2000)
    text = f'<ir_version: 9, opset_import: ["": 17]> g () => (float y) <float[2000] w = {{{values}}}> {{ y = A (w) }}'
    model = load(write(tmp_path, text))
    storage = model.graphs[0].initializers[0][1].storage
    assert storage is not None
    assert model.content[storage.offset :][:4] == b"\x00\x00\x80\x3f"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("(x)", "(x"), r"line 4, column 3: "),
        (TEXT[:-3], r"line \d+, column \d+: "),
        ("<ir_version: 9> g", r"line 1, column \d+: "),
        ("g (float[2] x => (float y) { }", r"line 1, column \d+: "),
        ("Lorem ipsum", "neither"),
        ('<ir_version: 9, opset_import: ["": 17]> g (flaot x) => (float y) { y = A (x) }', r"line 1, column \d+: "),
        (b"<ir_version: 9>\n\n" + b" " * 5000 + b"\xff", "line 3: the text is not UTF-8"),
    ],
)
def test_an_error_says_where(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message) as error:
        load(write(tmp_path, text))
    assert "\n" not in str(error.value)


def test_what_an_error_quotes_is_inert(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as error:
        load(write(tmp_path, "g (float x) => (float y) { y = <script>\x1b[31m</script> }" + "." * 5000))
    assert all(" " <= char <= "~" for char in str(error.value))


def test_nesting_without_measure_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    body = "y = If (c) <a = g () => () {" * 100_000
    with pytest.raises(ModelError, match="deep"):
        load(write(tmp_path, "g (bool c) => (float y) {" + body))


def test_brackets_in_strings_do_not_nest(tmp_path: Path) -> None:
    text = f'g (float x) => (float y) {{ y = A <s = "{"(" * 500}"> (x) }}'
    assert load(write(tmp_path, text)).nodes[0].attributes["s"].value == b"(" * 500
