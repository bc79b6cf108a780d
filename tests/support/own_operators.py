"""A file with an operator of a user, a model that applies it, and the calls of commands on them within the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from sonnx.spec import project

TEXT = """operator com.example::Scale @ 1 (X: T[d...], bias?: T[]) -> Y: T
  "X times alpha, plus the bias."
  source "a test"
  types T = float, double
  attribute alpha: float = 2.5
  require positive: alpha > 0 "alpha is positive." demanded SONNX
  Y[i... < d] = X[i] * cast(T, alpha) + (if given bias then bias[] else 0)
"""
NAME = "com.example::Scale"


@contextmanager
def nothing_added(folder: Path) -> Iterator[None]:
    """In the folder, with no file added at the beginning and again at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv(project.VARIABLE, "")
        project.texts.cache_clear()
        yield
    project.texts.cache_clear()


def model(folder: Path, name: str = "m.onnx", declared: bool = True, **attributes: object) -> str:
    """The name of a file with the model: Scale, then Relu. declared: the result of Scale has a type."""
    value = lambda it: helper.make_tensor_value_info(it, TensorProto.FLOAT, ["N", 3])  # noqa: E731
    nodes = [
        helper.make_node("Scale", ["x"], ["a"], "s", domain="com.example", **attributes),
        helper.make_node("Relu", ["a"], ["y"], "r"),
    ]
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], value_info=[value("a")] if declared else [])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), folder / name)
    return name


def files(folder: Path) -> None:
    """Writes the text, an input and the model."""
    (folder / "own.sonnx").write_text(TEXT)
    np.save(folder / "x.npy", np.array([[1, -2, 3]], np.float32))
    model(folder)
