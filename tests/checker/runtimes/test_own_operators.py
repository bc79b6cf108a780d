"""Operators of users in everything that runs, examines and shows operators, and their kernels held against the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import own_operators as own
import pytest
from command_calls import called
from sonnx.checker.runtimes.differential.comparison import Verdict, compare
from sonnx.semantics import load
from sonnx.semantics.errors import ModelError
from sonnx.semantics.runtimes.engines.own import MACHINE, Numpy
from sonnx.semantics.runtimes.fastpath import NumpyExecutionProvider, Session, kernels_with
from sonnx.semantics.runtimes.fastpath import own_kernels as module
from sonnx.spec.library import AddedTextError, specification

X = np.array([[1, -2, 3]], np.float32)
KERNELS = """import numpy as np

def scale(x, bias=None, *, alpha):
    return x * np.float32(alpha){}

KERNELS = {{"com.example::Scale": scale}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """The current folder, with the text, an input and a model."""
    own.files(tmp_path)
    with own.nothing_added(tmp_path):
        yield tmp_path


def scale(x: np.ndarray, bias: np.ndarray | None = None, *, alpha: float) -> np.ndarray:
    return x * np.float32(alpha) + (0 if bias is None else bias)


def test_a_program_names_the_file_when_it_loads_the_model() -> None:
    assert load("m.onnx").nodes[0].version is None
    assert load("m.onnx", spec="own.sonnx").nodes[0].version == 1
    assert [name for name, _ in specification().added] == ["own.sonnx"]
    (y,) = Session("m.onnx").run(None, {"x": X})
    assert np.array_equal(y, [[2.5, 0, 7.5]])


def test_a_mistake_in_the_file_that_a_program_names_is_raised_at_once(folder: Path) -> None:
    (folder / "wrong.sonnx").write_text(own.TEXT.replace("X[i] *", "Z[i] *"))
    with pytest.raises(AddedTextError, match=r"^wrong\.sonnx:7:17: name error: Z is not bound here$"):
        load("m.onnx", spec=["wrong.sonnx"])


WRONG: dict[str, Callable[..., object]] = {
    "another value": lambda x, bias=None, *, alpha: scale(x, bias, alpha=alpha) + np.float32(1e-3),
    "another type": lambda x, bias=None, *, alpha: scale(x, bias, alpha=alpha).astype(np.float64),
    "another shape": lambda x, bias=None, *, alpha: scale(x, bias, alpha=alpha)[:, :2],
}


@pytest.mark.parametrize("case", WRONG)
def test_compare_finds_a_wrong_kernel_at_its_node(case: str) -> None:
    load("m.onnx", spec="own.sonnx")
    (right,) = compare(Path("m.onnx"), (MACHINE, Numpy(kernels={own.NAME: scale})), [("x", {"x": X})])
    (wrong,) = compare(Path("m.onnx"), (MACHINE, Numpy(kernels={own.NAME: WRONG[case]})), [("x", {"x": X})])
    assert (right.verdict, wrong.verdict) == (Verdict.AGREE, Verdict.DIVERGE)
    assert "(com.example::Scale-1)" in wrong.reason


def test_a_kernel_is_run_from_a_file_and_from_an_entry_point(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "right.py").write_text(KERNELS.format(""))
    (folder / "wrong.py").write_text(KERNELS.format(" + np.float32(1)"))
    arguments = ("--spec", "own.sonnx", "compare", "m.onnx", "--input", "x=x.npy", "--engine")
    assert called(capsys, *arguments, "numpy:right.py")[0] == 0
    code, shown, _ = called(capsys, *arguments, "numpy:wrong.py")
    assert code == 1
    assert "tensor 'a': 3 of 3 elements are outside the bound" in shown

    class Point:
        value = "example:KERNELS"

        def load(self) -> object:
            return {own.NAME: lambda x, bias=None, *, alpha: x}

    monkeypatch.setattr(module, "entry_points", lambda group: [Point()] if group == module.GROUP else [])
    module.installed_kernels.cache_clear()
    try:
        (y,) = Session("m.onnx", [NumpyExecutionProvider(module.installed_kernels())]).run(None, {"x": X})
        with pytest.raises(ModelError, match=r'the table: "com.example::Scale" has a kernel already'):
            kernels_with({own.NAME: scale})
    finally:
        module.installed_kernels.cache_clear()
    assert np.array_equal(y, [[1, 0, 3]])


TABLES = {
    "": "has no table KERNELS",
    "KERNELS = 3": "maps names of operators, such as com.example::Scale, to functions",
    "KERNELS = {'Relu': abs}": '"Relu" has a kernel already',
    "KERNELS = {'Attention': abs}": '"Attention" is an operator of ONNX\'s own domain',
    "import nothing_of_that_name": "ModuleNotFoundError",
}


@pytest.mark.parametrize("text", TABLES)
def test_a_mistake_in_a_table_of_kernels_is_one_line(
    text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "k.py").write_text(text)
    code, _, error = called(
        capsys, "--spec", "own.sonnx", "run", "m.onnx", "--input", "x=x.npy", "--engine", "numpy:k.py"
    )
    assert code != 0
    assert TABLES[text] in error and error.count("\n") == 1


def test_every_command_takes_the_operator_from_its_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*arguments: str) -> str:
        code, out, error = called(capsys, "--spec", "own.sonnx", *arguments)
        assert code == 0, (arguments, out, error)
        return out

    assert "com.example::Scale-1             proved" in shown("definedness", own.NAME)
    assert "8 vectors" in shown("vectors", "V", "--filter", "com.example*")
    assert {it.name for it in (folder / "V").iterdir()} >= {"com.example::Scale-1-0", "com.example::Scale-1-double.0"}
    assert "6 pass" in shown("fuzz", "--engine", "numpy", "--operator", own.NAME, "--cases", "6")
    explained = shown("debug", "m.onnx", "--input", "x=x.npy", "-e", "run", "-e", "explain a[0,2]", "--batch")
    assert '"x"[0, 2] * 2.5  3.0 * 2.5 = 7.5' in explained
    assert "by com.example::Scale-1 at step 1, own.sonnx:1:1" in explained
    code, _, error = called(capsys, "definedness", "Scale")
    assert (code, "did you mean com.example::Scale?" in error) == (2, True)
