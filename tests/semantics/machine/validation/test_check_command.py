"""`sonnx replay --check` says its verdict in a few lines, or in one where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import onnx
import pytest
from command_calls import called
from forging import Forged, forged

Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def check(models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Called:
    """Runs the diamond with a trace, which `change` may change, and checks it."""
    onnx.save(models.diamond(), tmp_path / "m.onnx")

    def checked(*options: object, change: Callable[[Forged], object] = lambda it: None) -> tuple[int, str, str]:
        called(capsys, "run", tmp_path / "m.onnx", "--random", 1, "--trace", tmp_path / "t", *options)
        return called(capsys, "replay", forged(tmp_path / "t", change), tmp_path / "m.onnx", "--check")

    return checked


def test_a_run_that_is_valid_is_told_with_what_was_checked_and_what_not(check: Called) -> None:
    code, out, err = check()
    lines = out.splitlines()
    assert (code, err, lines[0]) == (0, "", "VALID: 4 steps, 40 bytes written, memory 384 bytes")
    assert [line.split()[0] for line in lines] == ["VALID:", "it", "checked:", "not", "chain"]


def test_a_run_that_is_not_complete_is_told_so_and_does_not_pass(check: Called) -> None:
    code, out, _ = check("--max-steps", 2)
    assert code == 1 and out.startswith("VALID, NOT COMPLETE: 2 steps")


def test_a_forgery_is_told_in_one_line_with_step_rule_node_and_premise(check: Called) -> None:
    code, out, err = check(change=lambda it: it.flip(it.lines[2]["writes"][0]))
    assert (code, err) == (1, "")
    assert out.startswith("REFUTED at step 2 (Step/fire, /1:Add): W in gives(n, M): byte 0 is ")
    assert out.count("\n") == 1 and 'the trace says byte 0 of the 8 of /"a" is ' in out


def test_what_cannot_be_checked_gets_one_line(
    check: Called, models: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check()
    text = (tmp_path / "t").read_text()
    (tmp_path / "t").write_text(text[:700])
    code, out, err = called(capsys, "replay", tmp_path / "t", tmp_path / "m.onnx", "--check")
    assert (code, out, err.count("\n")) == (2, "", 1) and "cut off" in err
    (tmp_path / "t").write_text(text)
    code, out, err = called(capsys, "replay", tmp_path / "t", tmp_path / "m.onnx", "--check", "--step", 1)
    assert (code, out) == (2, "") and "leave out --step" in err
    model = models.diamond()
    model.graph.node.append(models.node("Relu", ["x"], ["a"]))
    onnx.save(model, tmp_path / "m.onnx")
    code, out, err = called(capsys, "replay", tmp_path / "t", tmp_path / "m.onnx", "--check")
    assert (code, out, err.count("\n")) == (2, "", 1) and "the model has no run: SingleAssignment is broken" in err
