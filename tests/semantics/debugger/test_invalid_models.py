"""Models that break rules are debugged or refused with a sentence: none ends the debugger by a defect."""

from __future__ import annotations

from pathlib import Path

import pytest
from sampling import sampled
from sonnx.spec import cli

MODELS = Path(__file__).parents[3] / ".." / "shared" / "models" / "invalid"
SCRIPT = ("list all", "continue", "info tensors", "info inputs", "where", "memory")
FILES = [it for it in sorted(MODELS.rglob("*")) if it.suffix in (".onnx", ".pb") and it.stat().st_size < 1 << 20]


def debugged(model: Path, capsys: pytest.CaptureFixture[str]) -> int:
    """The exit code of a script on a model; 4 and others that no command has are defects."""
    lines = [part for line in SCRIPT for part in ("-e", line)]
    code = cli.run(["debug", str(model), "--random", "1", "--batch", *lines])
    shown = capsys.readouterr()
    assert code in (0, 1, 2, 3) and "internal error" not in shown.err and "Traceback" not in shown.err, shown.err
    assert code or not shown.err
    return code


@pytest.mark.skipif(not FILES, reason="the shared models are not at ../shared/models")
@pytest.mark.parametrize("model", sampled(FILES, 6) or [None], ids=lambda it: getattr(it, "name", None))
def test_no_invalid_model_ends_the_debugger(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    debugged(model, capsys)


@pytest.mark.parametrize("name", sampled(("extra-output", "too-many-inputs", "missing-branch", "cycle"), 2))
def test_no_example_ends_the_debugger(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cli.run(["examples", "made"])
    capsys.readouterr()
    debugged(Path("made") / f"{name}.onnx", capsys)


def test_an_output_that_the_operator_does_not_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cli.run(["examples", "made"])
    assert debugged(Path("made/extra-output.onnx"), capsys) == 2
