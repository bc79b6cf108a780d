"""A command loads the files that it needs, and few: each one is read and run before the first line of output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
from sonnx.spec.cli import run
code = run(sys.argv[1:])
files = {getattr(module, "__file__", None) for name, module in sys.modules.items() if name.startswith("sonnx.")}
print(json.dumps([code, sorted(file for file in files if file)]))
"""
LIMITS = {"run": 70, "certify": 90}
"""The most files of the package that a command on a small model may load."""


@pytest.mark.parametrize("command", LIMITS)
def test_a_command_on_a_small_model_loads_few_files_of_the_package(command: str, tmp_path: Path) -> None:
    def sonnx(*arguments: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        code, files = json.loads(done.stdout.splitlines()[-1])
        assert code == 0, done.stderr
        assert isinstance(files, list)
        return files

    sonnx("examples", "examples")
    options = {"run": ["--random", "1"], "certify": []}
    files = sonnx(command, "examples/conforming.onnx", *options[command])
    stale = [file for file in files if file.endswith("language/parse.py")]
    assert not stale, "what the texts parse to is out of date: run python -m sonnx.spec.parsed"
    assert 20 < len(files) <= LIMITS[command], files
