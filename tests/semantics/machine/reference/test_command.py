"""`sonnx run --reference`: the outputs and the refusals are those of the machine."""

from __future__ import annotations

from pathlib import Path

import machine_models as models
import numpy as np
import onnx
import pytest
from command_calls import called


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    """A Loop that counts up to four, and its inputs."""
    onnx.save(models.loop(), tmp_path / "loop.onnx")
    given = {"x": np.array(30, np.float32), "v0": np.array(0, np.float32), "m": np.array(4), "c0": np.array(True)}
    np.savez(tmp_path / "given.npz", **given)
    np.savez(tmp_path / "odd.npz", **{**given, "m": np.array([1, 2])})
    return tmp_path / "loop.onnx"


def inputs(loop: Path, name: str = "given") -> tuple[str, str]:
    return "--input", str(loop.with_name(f"{name}.npz"))


def test_the_outputs_are_those_of_the_machine(loop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = loop.with_name("out.npz")
    code, out, err = called(capsys, "run", loop, *inputs(loop), "--reference", "--output", target)
    machine = called(capsys, "run", loop, *inputs(loop))[1]
    assert (code, err) == (0, "")
    assert out.splitlines()[:-1] == machine.splitlines()[:-1]
    steps = machine.splitlines()[-1].split()[0]
    assert out.splitlines()[-1] == f"{steps} steps by the rules of part 3, the first node that may take one taking it"
    with np.load(target) as found:
        assert "last" in found.files


def test_what_is_stuck_names_rule_and_premise_as_the_machine_does(
    loop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = onnx.load(loop)
    for value in model.graph.input:
        if value.name == "m":
            value.type.tensor_type.ClearField("shape")
    onnx.save(model, loop)
    code, _, err = called(capsys, "run", loop, *inputs(loop, "odd"), "--reference")
    machine = called(capsys, "run", loop, *inputs(loop, "odd"))[2]
    assert code == 1
    assert err.splitlines()[1] == machine.splitlines()[1]
    assert "rule Step/loop (3-execution.sonnx" in err and "loop_decided(n, M)" in err


def test_the_number_of_steps_may_be_limited(loop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = called(capsys, "run", loop, *inputs(loop), "--reference", "--max-steps", 3)
    assert code == 1 and "3 steps are taken, which is the limit" in err


@pytest.mark.parametrize(
    "option", [("--schedule", "demand"), ("--allocation", "arena"), ("--check-consistency",), ("--engine", "numpy")]
)
def test_options_of_the_fast_machine_are_refused(
    loop: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    code, _, err = called(capsys, "run", loop, *inputs(loop), "--reference", *option)
    assert code == 2 and option[0] in err.replace("engine numpy", "--engine")
