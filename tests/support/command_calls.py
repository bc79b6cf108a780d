"""Commands called within the process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sonnx.spec import cli

ENGINES = pytest.mark.parametrize("engine", ["numpy", "onnxruntime"])
"""A test for each engine that `agrees` may be asked of."""


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of `sonnx ARGUMENTS`; no control sequence reaches a pipe."""
    code = cli.run([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    return code, shown.out, shown.err


def agrees(engine: str, model: Path, *arguments: object) -> bool:
    """True if `sonnx compare` finds nothing that the text does not allow; the test is skipped without the engine."""
    if engine != "numpy":
        pytest.importorskip(engine)
    return cli.run(["compare", str(model), "--engine", engine, *map(str, arguments)]) == 0


def owed(capsys: pytest.CaptureFixture[str], model: Path, certificate: Path) -> list[str]:
    """The requirements that data decide of a model that conforms, and whose certificate is confirmed."""
    code, report, _ = called(capsys, "certify", model, "--certificate", certificate, "--format", "json")
    assert (code, json.loads(report)["verdict"]) == (0, "CONFORMS")
    code, confirmed, _ = called(capsys, "recheck", certificate, model)
    assert code == 0 and confirmed.startswith("CONFIRMED")
    return [it["id"] for it in json.loads(report)["rules"] if it["verdict"] == "obligation"]
