"""The machine as a provider, and nodes that a provider is asked about alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from command_calls import called
from machine_models import graph, node, proto, stored, value
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.values import identical
from sonnx.semantics.runtimes.fastpath import Session
from tables import table
from toy_providers import MAIN, layers

MACHINE = "MachineExecutionProvider"
X = np.array([[0.1, 0.2], [-0.3, 0.7]], np.float32)


def long_sums() -> onnx.ModelProto:
    """Sums of 300 products and a Softmax, which NumPy's kernels round in another order."""
    weights = np.random.default_rng(1).standard_normal((2, 300)).astype(np.float32)
    nodes = [
        node("MatMul", ["x", "w"], ["a"], name="up"),
        node("MatMul", ["a", "v"], ["b"], name="down"),
        node("Softmax", ["b"], ["y"], axis=-1),
    ]
    ends = [value("x", shape=["N", 2])], [value("y", shape=["N", 2]), value("b", shape=["N", 2])]
    return proto(graph(nodes, *ends, [stored("w", weights), stored("v", weights.T)]))


def test_the_machine_takes_every_node_and_gives_the_bits_of_a_run() -> None:
    made = long_sums()
    session = Session(made, ["machine"])
    assert {it.provider for it in session.partitioning.assignments} == {MACHINE}
    expected = run(load_proto(made), {"x": X}).outputs
    for _ in range(2):
        y, b = session.run(None, {"x": X})
        assert identical(y, expected["y"]) and identical(b, expected["b"])  # type: ignore[arg-type]
    plain = Session(made).run(["b"], {"x": X})[0]
    assert not identical(plain, expected["b"])  # type: ignore[arg-type] - what exact nodes are for


@table(
    ("only", "nodes"),
    [
        ("/1:MatMul", [1]),
        ('/1:MatMul("down")', [1]),
        ("up", [0]),
        ("MatMul", [0, 1]),
        ("up,only=Softmax", [0, 2]),
    ],
)
def test_a_provider_is_asked_about_the_nodes_that_are_named(only: str, nodes: list[int]) -> None:
    session = Session(long_sums(), [f"machine:only={only}"])
    assert sorted(n for it in session.partitioning.assignments if it.provider == MACHINE for n in it.nodes) == nodes
    assert session.get_providers() == [MACHINE, MAIN]


def test_the_default_provider_still_comes_last_where_it_is_asked_about_some_nodes_first() -> None:
    session = Session(long_sums(), ["numpy:only=Softmax", "machine"])
    assert [it.provider for it in session.partitioning.assignments] == [MACHINE, MACHINE, MAIN]
    assert session.get_providers() == [MAIN, MACHINE, MAIN]


@table(
    ("wanted", "said"),
    [
        ("machine:only=/1:MatMol", 'is to run "/1:MatMol", and the model has no such node: did you mean /2:MatMul'),
        ("machine:only=7", 'is to run "7", and the model has no such node: name a path, a name or an operator'),
        ("machine:only=", 'the options of MachineExecutionProvider are written KEY=VALUE,...; "only=" is none'),
        ("machine:level=all", 'MachineExecutionProvider has no option "level": it has only'),
        ("machin", 'no execution provider "machin" is installed: did you mean MachineExecutionProvider?'),
        ("cudo", 'no execution provider "cudo" is installed: there are '),
    ],
)
def test_what_a_provider_cannot_be_asked_for_is_named(wanted: str, said: str) -> None:
    with pytest.raises(ModelError) as failed:
        Session(layers(), [wanted])
    assert said in str(failed.value)


def test_a_command_runs_a_model_by_providers_and_says_who_ran_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, x, y = tmp_path / "net.onnx", tmp_path / "x.npy", tmp_path / "y.npz"
    onnx.save(long_sums(), model)
    np.save(x, X)
    only = ("--provider", "machine:only=MatMul")
    code, out, err = called(capsys, "run", model, "--input", f"x={x}", *only, "--output", y)
    assert (code, err) == (0, "")
    assert out.splitlines()[-2:] == [f"{MACHINE}: 2 nodes in 2 parts", f"{MAIN}: 1 node"]
    assert identical(np.load(y)["b"], run(load_proto(long_sums()), {"x": X}).outputs["b"])  # type: ignore[arg-type]
    code, _, err = called(capsys, "run", model, "--input", f"x={x}", *only, "--engine", "numpy")
    assert code == 2 and "--provider is of the fast path: leave --engine out" in err
    code, _, err = called(capsys, "run", model, "--input", f"x={x}", *only, "--schedule", "demand")
    assert code == 2 and "--schedule is an option of the machine, not of the engine numpy" in err
    code, out, _ = called(capsys, "compare", model, "--input", f"x={x}", "--engine", "provider:machine")
    assert code == 0 and "bit-identical" in out
