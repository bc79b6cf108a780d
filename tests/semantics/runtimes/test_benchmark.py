"""`sonnx bench` and the engines of `sonnx run` that are not the machine."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from command_calls import called
from machine_models import graph, node, proto, stored, value
from sonnx.semantics.runtimes import benchmark
from sonnx.semantics.runtimes.benchmark import measured


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """y = relu(x) w; texts is given back."""
    nodes = [node("Relu", ["x"], ["r"]), node("MatMul", ["r", "w"], ["y"])]
    made = graph(nodes, [value("x", shape=["N", 2])], [value("y", shape=["N", 3])], [stored("w", np.ones((2, 3)))])
    onnx.save(proto(made), tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", np.array([[1, -2], [3, 4]], np.float32))
    return tmp_path / "net.onnx"


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A model on which the machine and the fast path get stuck: 2 times 3 elements are not 4."""
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    made = graph(nodes, [value("x", shape=[2, 3])], [value("y", shape=None)], [stored("s", [4], np.int64)])
    onnx.save(proto(made), tmp_path / "odd.onnx")
    return tmp_path / "odd.onnx"


def there() -> bool:
    return bool(os.environ.get("SONNX_ONNXRUNTIME")) or find_spec("onnxruntime") is not None


# ---- sonnx bench ------------------------------------------------------------------------------


def test_a_benchmark_is_a_table_with_the_ratio_to_the_first_engine(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, "bench", net, "--engine", "numpy", "--engine", "machine", "--repeat", 3)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["engine", "median", "min", "loading", "peak", "memory", "ratio"]
    assert [line[0] for line in lines[1:3]] == ["numpy", "machine"]
    assert out.splitlines()[3:] == ["numpy: NumpyExecutionProvider, 2 nodes in 2 parts, tensors 20 B"]
    assert lines[1][-1] == "1.00" and float(lines[2][-1]) > 1


def test_a_benchmark_as_json_has_every_time(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = f"x={net.with_name('x.npy')}"
    code, out, _ = called(capsys, "bench", net, "--input", given, "--repeat", 4, "--threads", 1, "--format", "json")
    found = json.loads(out)
    assert (code, found["model"], found["threads"]) == (0, "net.onnx", 1)
    (row,) = found["engines"]
    assert len(row["seconds"]) == 4 and row["min_seconds"] == min(row["seconds"]) <= row["median_seconds"]
    assert row["engine"] == "numpy" and row["failure"] is None and row["ratio"] == 1 and row["peak_bytes"] > 1 << 20


def test_a_row_of_providers_says_what_each_runs_and_the_tensors_that_it_had(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--provider", "machine:only=Relu", "--size", "N=8", "--repeat", 1, "--format", "json")
    code, out, _ = called(capsys, "bench", net, *asked)
    (row,) = json.loads(out)["engines"]
    assert (code, row["engine"]) == (0, "machine:only=Relu + numpy")
    assert row["providers"] == [
        {"provider": "MachineExecutionProvider", "nodes": 1, "parts": 1, "tensor_bytes": 64, "process_bytes": 0},
        {"provider": "NumpyExecutionProvider", "nodes": 1, "parts": 1, "tensor_bytes": 96, "process_bytes": 0},
    ]
    code, _, err = called(capsys, "bench", net, "--provider", "machin")
    assert code == 2 and "did you mean MachineExecutionProvider?" in err


def test_an_engine_that_fails_has_no_figures_and_says_why(odd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = called(capsys, "bench", odd, "--engine", "machine")
    assert code == 1
    assert out.splitlines()[1].split() == ["machine", *"-----"]
    assert err.startswith("machine: RuntimeError: stuck: ") and len(err.splitlines()) == 1


def test_an_engine_whose_process_dies_is_a_failure(net: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("import os, sys; sys.stderr.write('so long'); sys.stderr.flush(); os._exit(7)")
    monkeypatch.setattr(benchmark, "WORKER", worker)
    assert measured("numpy", net, {}).failure == "its process died with code 7: so long"


def test_without_onnxruntime_one_sentence_names_the_extra(
    net: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SONNX_ONNXRUNTIME", raising=False)
    monkeypatch.setattr(benchmark, "find_spec", lambda name: None)
    code, _, err = called(capsys, "bench", net, "--engine", "onnxruntime")
    assert (code, err) == (1, "onnxruntime: onnxruntime is not installed: install sonnx[ort]\n")


@pytest.mark.skipif(not there(), reason="needs onnxruntime: SONNX_ONNXRUNTIME names a Python that has it")
def test_onnxruntime_is_measured_in_its_own_python(net: Path) -> None:
    x = {"x": np.ones((2, 2), np.float32)}
    for engine in ("onnxruntime", "onnxruntime-disabled"):
        found = measured(engine, net, x, repeat=2)
        assert not found.failure and len(found.runs) == 2
    assert "INVALID_ARGUMENT" in measured("onnxruntime", net, {"x": np.ones((2, 2))}).failure.upper()


def test_inputs_are_checked_before_anything_is_measured(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(net.with_name("x.npy"), np.zeros(3, np.float32))
    code, _, err = called(capsys, "bench", net, "--input", f"x={net.with_name('x.npy')}")
    assert code == 2 and 'the input "x" has 1 dimensions' in err


# ---- sonnx run --engine -----------------------------------------------------------------------


def test_the_fast_path_prints_and_writes_what_the_machine_does(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given, target = f"x={net.with_name('x.npy')}", net.with_name("y.npz")
    machine = called(capsys, "run", net, "--input", given)[1].splitlines()
    code, out, err = called(capsys, "run", net, "--input", given, "--engine", "numpy", "--output", target)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == machine[:2] and lines[2].startswith("run by numpy ")
    assert np.load(target)["y"].tolist() == [[1.0] * 3, [7.0] * 3]


def test_a_run_that_cannot_go_on_names_the_node_in_one_line(odd: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = called(capsys, "run", odd, "--engine", "numpy", "--random", 1)
    assert code == 1 and "y" not in out.split()
    assert err.startswith("numpy: outside the domain: /0:Reshape (Reshape-14): ") and len(err.splitlines()) == 1


def test_options_of_the_machine_are_refused_for_other_engines(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "run", net, "--engine", "numpy", "--schedule", "demand")
    assert code == 2 and "--schedule is an option of the machine, not of the engine numpy" in err


def test_an_unknown_engine_is_named_with_what_there_is(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "run", net, "--engine", "numpi")
    assert code == 2 and 'no engine "numpi": did you mean "numpy"?' in err


@pytest.mark.skipif(not there(), reason="needs onnxruntime: SONNX_ONNXRUNTIME names a Python that has it")
def test_onnxruntime_runs_a_model(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = f"x={net.with_name('x.npy')}"
    code, out, _ = called(capsys, "run", net, "--input", given, "--engine", "onnxruntime")
    assert code == 0 and "[[1, 1, 1], [7, 7, 7]]" in out


def test_the_worker_needs_nothing_of_the_package() -> None:
    text = benchmark.WORKER.read_text(encoding="utf-8")
    assert not [line for line in text.splitlines() if line.startswith(("from .", "import sonnx", "from sonnx"))]
    assert sys.executable == benchmark.python_of("numpy")
