from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from command_calls import called
from onnx import helper, numpy_helper


@pytest.fixture
def net(models: ModuleType, tmp_path: Path) -> Path:
    """y = relu(x) w, z = a tensor with an odd name."""
    nodes = [models.node("Relu", ["x"], ["r"]), models.node("MatMul", ["r", "w"], ["/out\x1b[31m"])]
    inputs, outputs = [models.value("x", shape=["N", 2])], [models.value("/out\x1b[31m", shape=["N", 3])]
    graph = models.graph(nodes, inputs, outputs, [models.stored("w", np.ones((2, 3)))])
    onnx.save(models.proto(graph), tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", np.array([[1, -2], [3, 4]], np.float32))
    return tmp_path / "net.onnx"


def test_a_run_prints_a_table_of_outputs_and_the_memory_that_it_needed(
    net: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = called(capsys, "run", net, "--input", f"x={net.with_name('x.npy')}")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["output", "type", "shape", "content"]
    assert lines[1].split(maxsplit=4) == ["/out\\x1b[31m", "float", "[2,", "3]", "[[1, 1, 1], [7, 7, 7]]"]
    assert re.fullmatch(
        r"2 steps of the machine, schedule topological; memory 256 B \(simple\), at least \d+ B are needed", lines[2]
    )


def test_outputs_are_written_under_their_own_names(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = net.with_name("out.npz")
    given = f"x={net.with_name('x.npy')}"
    assert called(capsys, "run", net, "--input", given, "--output", target)[0] == 0
    with np.load(target) as found:
        (name,) = found.files
        assert found[name].tolist() == [[1, 1, 1], [7, 7, 7]]


@pytest.mark.parametrize("schedule", ["topological", "random:5", "demand"])
@pytest.mark.parametrize("allocation", ["simple", "arena"])
def test_schedules_and_allocations_give_the_same_table(
    net: Path, capsys: pytest.CaptureFixture[str], schedule: str, allocation: str
) -> None:
    options = ("--random", 3, "--schedule", schedule, "--allocation", allocation)
    code, out, _ = called(capsys, "run", net, *options)
    again = called(capsys, "run", net, "--random", 3)[1]
    assert code == 0
    assert out.splitlines()[:4] == again.splitlines()[:4]
    assert out.startswith('inputs drawn from seed 3: x\nsizes that the model leaves open, taken as 1: "N"\n')


def test_a_trace_is_replayed_step_by_step(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = net.with_name("t")
    code, out, _ = called(capsys, "run", net, "--random", 1, "--trace", trace)
    chain = json.loads(trace.read_text().splitlines()[-1])["chain"]
    assert code == 0 and f"chain {chain}" in out.splitlines()
    assert called(capsys, "replay", trace, net, "--step", 2) == (0, "step 2 (Step/fire, /1:MatMul) holds\n", "")
    assert called(capsys, "replay", trace, net) == (0, "2 of 2 steps hold\n", "")
    assert called(capsys, "replay", trace, net, "--step", 3)[0] == 2


def test_a_step_that_does_not_hold_is_a_finding(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = net.with_name("t")
    called(capsys, "run", net, "--random", 1, "--trace", trace)
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    lines[2]["writes"][0]["sha256"] = "0" * 64
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, _ = called(capsys, "replay", trace, net, "--step", 2)
    assert code == 1
    assert "the chain is broken: line 3" in out and "step 2 (Step/fire, /1:MatMul) does not hold" in out


def test_the_picture_is_well_formed(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = net.with_name("m.svg")
    assert called(capsys, "run", net, "--random", 1, "--picture", target, "--allocation", "arena")[0] == 0
    assert ElementTree.parse(target).getroot().tag.endswith("svg")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ((), 2, 'no value is given for the input "x": float[N, 2]: give one by name among the inputs, or a seed'),
        (("--input", "y=x.npy"), 2, "x.npy"),
        (("--input", "nonsense"), 2, "write NAME=FILE"),
        (("--input", "x=missing.npy"), 2, "missing.npy"),
        (("--random", "1", "--schedule", "sideways"), 2, "give topological, random:SEED or demand"),
        (("--random", "1", "--max-memory", "lots"), 2, "give a number of bytes"),
        (("--random", "1", "--output", "/nowhere/at/all.npz"), 2, "cannot write"),
        (("--random", "1", "--max-memory", "100"), 1, "the limit is 100"),
        (("--random", "1", "--max-steps", "1"), 1, "1 steps are taken, which is the limit; next would come /1:MatMul"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said_in_a_line_and_by_the_exit_code(
    net: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], code: int, words: str
) -> None:
    found, _, err = called(capsys, "run", net, *options)
    assert (found, words in " ".join(err.split())) == (code, True), err


def test_an_operator_without_meaning_is_exit_code_3(
    models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [helper.make_node("Odd\x1b[31m", ["x"], ["y"], domain="com.example")]
    model = models.proto(models.graph(nodes, [models.value("x")], [models.value("y")]))
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    onnx.save(model, tmp_path / "odd.onnx")
    code, _, err = called(capsys, "run", tmp_path / "odd.onnx", "--random", 1)
    assert code == 3 and "the specification gives no meaning to" in err and "com.example" in err


def test_a_stuck_operator_is_exit_code_1_with_rule_and_place(
    models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [models.node("MatMul", ["x", "x"], ["y"])]
    onnx.save(models.proto(models.graph(nodes, [models.value("x", shape=[2, 3])], [models.value("y", shape=None)])),
              tmp_path / "m.onnx")  # fmt: skip
    code, _, err = called(capsys, "run", tmp_path / "m.onnx", "--random", 1)
    assert code == 1 and err.startswith("stuck at /0:MatMul: ")


def test_outputs_that_contradict_their_declaration_are_neither_shown_nor_written(
    models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = models.graph(
        [models.node("Relu", ["x"], ["y"])], [models.value("x", shape=[2, 3])], [models.value("y", shape=[3, 2])]
    )
    onnx.save(models.proto(graph), tmp_path / "m.onnx")
    target = tmp_path / "y.npz"
    code, out, err = called(capsys, "run", tmp_path / "m.onnx", "--random", 1, "--output", target)
    assert code == 1 and not target.exists() and "[2, 3]" not in out
    words = 'the output "y" has size 2 along axis 0, expected 3: float[3, 2], computed [2, 3]'
    assert err.startswith(f"stuck: {words}")
    code, out, err = called(capsys, "run", tmp_path / "m.onnx", "--random", 1, "--output", target, "--engine", "numpy")
    assert code == 1 and not target.exists() and "[2, 3]" not in out and words in " ".join(err.split())


@pytest.mark.parametrize("count", [1 << 18, 1 << 36, 1 << 60])
def test_an_absurd_size_is_refused_before_anything_is_allocated(
    models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    nodes = [models.node("ConstantOfShape", ["s"], ["y"])]
    graph = models.graph(nodes, [models.value("s", models.INT64, [1])], [models.value("y", shape=None)])
    onnx.save(models.proto(graph), tmp_path / "m.onnx")
    np.save(tmp_path / "s.npy", np.array([count]))
    options = ("--input", f"s={tmp_path / 's.npy'}", "--max-memory", "1M")
    code, _, err = called(capsys, "run", tmp_path / "m.onnx", *options)
    assert (code, "limit is 1048576" in " ".join(err.split())) == (1, True), err


def test_inputs_come_from_npz_and_protobuf_too(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x: Any = np.load(net.with_name("x.npy"))
    folder = net.parent
    np.savez(folder / "all.npz", x=x)
    (folder / "x.pb").write_bytes(numpy_helper.from_array(x, "other").SerializeToString())
    expected = called(capsys, "run", net, "--input", f"x={folder / 'x.npy'}")[1]
    for given in (f"{folder / 'all.npz'}", f"x={folder / 'all.npz'}", f"x={folder / 'x.pb'}"):
        assert called(capsys, "run", net, "--input", given) == (0, expected, "")


def test_an_interrupted_run_is_exit_code_130(
    net: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sonnx.semantics.machine.execution as execution

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(execution, "run", interrupted)
    assert called(capsys, "run", net, "--random", 1)[0] == 130
