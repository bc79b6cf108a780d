"""No command writes over what it reads, external data included, nor two things into one file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from sonnx.spec import cli

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
DRAWN = ("--random", "1")
OPTIMIZING = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
COMMANDS = {
    "run --output": ("run", "m.onnx", *DRAWN, "--output", "FILE"),
    "run --reference --output": ("run", "m.onnx", *DRAWN, "--reference", "--output", "FILE"),
    "run --engine --output": ("run", "m.onnx", *DRAWN, "--engine", "numpy", "--output", "FILE"),
    "run --trace": ("run", "m.onnx", *DRAWN, "--trace", "FILE"),
    "run --output and --trace": ("run", "m.onnx", *DRAWN, "--trace", "FILE", "--output", "new.npz"),
    "partition --output": ("partition", "m.onnx", "--output", "FILE"),
    "certify --output": ("certify", "m.onnx", "--output", "FILE"),
    "certify --certificate": ("certify", "m.onnx", "--certificate", "FILE"),
    "certify several --output": ("certify", "m.onnx", "n.onnx", "--output", "FILE"),
    "compare --output": ("compare", "m.onnx", "--engine", "numpy", *DRAWN, "--output", "FILE"),
    "compare --graph": ("compare", "m.onnx", "--engine", "numpy", *DRAWN, "--graph", "FILE"),
    "optimize --output": ("optimize", "m.onnx", "-o", "FILE"),
    "optimize --report": ("optimize", "m.onnx", "-o", "new.onnx", "--report", "FILE"),
    "optimize --certificate": ("optimize", "m.onnx", "-o", "new.onnx", "--certificate", "FILE"),
    "equiv --output": ("equiv", "n.onnx", "m.onnx", "--output", "FILE"),
    "equiv --certificate": ("equiv", "m.onnx", "n.onnx", "--certificate", "FILE"),
    "equiv --html": ("equiv", "m.onnx", "n.onnx", "--html", "FILE"),
    "bisect --report": ("bisect", "m.onnx", "--engine", "onnxruntime", *DRAWN, "--report", "FILE"),
}
READ = ("m.onnx", "w.bin", "link.onnx")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, its external data, a link to the model, and another model."""
    monkeypatch.chdir(tmp_path)
    proto = onnx.parser.parse_model(HEAD + "g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    onnx.save(proto, "n.onnx")
    onnx.save(proto, "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    Path("link.onnx").symlink_to("m.onnx")
    return tmp_path


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=OPTIMIZING) if name.startswith("bisect") else name for name in COMMANDS]
)
def test_no_file_that_is_read_is_written_over(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    before = {it: it.read_bytes() for it in folder.iterdir()}
    for file in READ:
        code = cli.run([file if part == "FILE" else part for part in COMMANDS[name]])
        assert code == 2 and "is read, or written already" in capsys.readouterr().err, file
        assert {it: it.read_bytes() for it in folder.iterdir()} == before, file


def test_no_values_that_are_read_are_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.ones(2, np.float32))
    np.savez("x.npz", x=np.ones(2, np.float32))
    before = {it: it.read_bytes() for it in folder.iterdir()}
    for name in (
        "run --output",
        "run --reference --output",
        "run --engine --output",
        "compare --output",
        "equiv --html",
    ):
        rest = [part for part in COMMANDS[name] if part not in DRAWN]
        for file, given in (("x.npy", "x=x.npy"), ("x.npz", "x.npz")):
            code = cli.run([*(file if part == "FILE" else part for part in rest), "--input", given])
            assert code == 2 and "is read, or written already" in capsys.readouterr().err, name
            assert {it: it.read_bytes() for it in folder.iterdir()} == before, name


OWN = """operator own::Same @ 1 (X: T[d...]) -> Y: T "X itself."
  source "a test"
  types T = float
  Y[i... < d] = X[i]
"""


@pytest.mark.usefixtures("folder")
def test_no_text_that_is_added_is_written_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("own.sonnx").write_text(OWN, encoding="utf-8")
    monkeypatch.setenv("SONNX_SPEC", "own.sonnx")
    for name in ("run --output", "equiv --html", "certify --output"):
        code = cli.run(["own.sonnx" if part == "FILE" else part for part in COMMANDS[name]])
        assert code == 2 and "is read, or written already" in capsys.readouterr().err, name
        assert Path("own.sonnx").read_text(encoding="utf-8") == OWN


@pytest.mark.usefixtures("folder")
def test_two_things_are_not_written_to_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    for rest in (
        ("optimize", "m.onnx", "-o", "new", "--report", "new"),
        ("run", "m.onnx", *DRAWN, "--trace", "new", "--output", "new"),
        ("certify", "m.onnx", "--output", "new", "--certificate", "new"),
        ("compare", "m.onnx", "--engine", "numpy", *DRAWN, "--output", "new", "--graph", "new"),
        ("equiv", "m.onnx", "n.onnx", "--output", "new", "--html", "new"),
    ):
        assert cli.run(list(rest)) == 2 and "is read, or written already" in capsys.readouterr().err, rest
        assert not Path("new").exists(), rest
