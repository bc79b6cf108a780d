"""An adapter that listens, one client after the other, and models on disk."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from dap_adapters import COMMAND, connected, deadline
from dap_client import PATIENCE, Client, Json
from debugger_models import GIVEN, NESTED

STRANGE = """<ir_version: 10, opset_import: ["" : 18]>
strange (float[2, 3] x) => (float[2, 3] y) {
  big = Constant <value = float[1] {3e38}> ()
  ten = Constant <value = float[1] {10.0}> ()
  a = Mul (x, ten)
  b = Mul (big, ten)
  c = Sub (b, b)
  d = Add (a, c)
  y = Relu (d)
}"""
"""An overflow in `b`, a NaN in `c`."""

ENDLESS = """<ir_version: 10, opset_import: ["" : 18]>
endless (float[2] x) => (float[2] y) {
  n = Constant <value = int64 {1000000000}> ()
  y = Loop (n, , x) <body = body (int64 i, bool go, float[2] s) => (bool go2, float[2] s2) {
    go2 = Identity (go)
    s2 = Neg (s)
  }>
}"""


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    """The port of an adapter that listens."""
    with subprocess.Popen([*COMMAND, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            with deadline(process, PATIENCE):
                line = process.stdout.readline().decode() if process.stdout else ""
            found = re.search(r"127\.0\.0\.1:(\d+)", line)
            if found is None:
                raise RuntimeError(f"the adapter does not say where it listens: {line!r}")
            yield int(found[1])
        finally:
            process.kill()


@pytest.fixture
def client(port: int) -> Iterator[Client]:
    """A client of it that has said nothing yet; all that went over the wire is checked at the end."""
    with connected(port) as made:
        yield made


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models, their inputs and their listings."""
    folder = tmp_path_factory.mktemp("models")
    for name, text in (("nested", NESTED), ("strange", STRANGE), ("endless", ENDLESS)):
        proto = onnx.parser.parse_model(text)
        onnx.save(proto, folder / f"{name}.onnx")
    for name, value in GIVEN.items():
        np.save(folder / f"{name}.npy", value)
    return folder


@pytest.fixture
def nested(models: Path) -> Json:
    """A launch of calls, a branch and a Loop of three runs."""
    inputs = {name: str(models / f"{name}.npy") for name in GIVEN}
    return {"model": str(models / "nested.onnx"), "inputs": inputs, "stopOnEntry": True}


@pytest.fixture
def strange(models: Path) -> Json:
    """A launch of an overflow and a NaN."""
    return {"model": str(models / "strange.onnx"), "random": 1, "stopOnEntry": True}


@pytest.fixture
def endless(models: Path) -> Json:
    """A launch of a Loop that nobody waits for."""
    return {"model": str(models / "endless.onnx"), "random": 1, "stopOnEntry": True, "historyLimit": 100}
