"""Sizes that a model leaves open are said for inputs that are drawn, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from sonnx.spec import cli

TEXT = """<ir_version: 10, opset_import: ["" : 18]>
g (float[N, M] x, float[M] w) => (float[N, M] y) { y = Mul (x, w) }"""


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(TEXT), "net.onnx")
    np.save("w.npy", np.ones(4, np.float32))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("run", "--random", "1", "--size", "N=3", "--size", "M=4"), "[3, 4]"),
        (("run", "--random", "1", "--size", "M=2"), 'taken as 1: "N"'),
        (("run", "--random", "1", "--size", "N=0"), "[0, 1]"),
        (("run", "--random", "1", "--size", "N=2", "--engine", "numpy"), "[2, 1]"),
        (("debug", "--random", "1", "--size", "N=3", "--batch", "-e", "whatis x"), "float[3, 1]"),
        (("bench", "--size", "N=3", "--engine", "numpy", "--repeat", "1", "--warm", "0"), "numpy"),
    ],
)
def test_inputs_are_drawn_in_the_sizes_that_are_said(
    net: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], said: str
) -> None:
    assert cli.run([command[0], "net.onnx", *command[1:]]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--random", "1", "--size", "K=3"), "no input that is drawn has a size"),
        (("--random", "1", "--size", "N"), "NAME=N"),
        (("--random", "1", "--size", "N=-1"), "NAME=N"),
        (("--random", "1", "--size", "N=2", "--size", "N=3"), "given twice"),
        (("--input", "w=w.npy", "--size", "N=2"), "give --random SEED"),
        (("--input", "w=w.npy", "--random", "1", "--size", "M=5"), "M"),
    ],
)
def test_sizes_that_no_input_can_have_are_refused(
    net: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    for command in ("run", "debug"):
        assert cli.run([command, "net.onnx", *arguments]) == 2
        assert said in capsys.readouterr().err
