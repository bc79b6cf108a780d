"""The session that the README shows is what the debugger answers."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sonnx.spec import cli

README = Path(__file__).parents[3] / "README.md"


def test_the_session_of_the_readme_finds_the_origin_of_a_nan_as_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"^```console\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    (block,) = [it for it in blocks if "$ sonnx debug" in it]
    python, debug, *shown = block.splitlines()
    commands = [line.partition(") ")[2] for line in shown if line.startswith("(sonnx ")]
    assert "why-nan" in block and len(commands) < 10
    monkeypatch.chdir(tmp_path)
    assert cli.run(["examples", "examples"]) == 0
    words = shlex.split(python.removeprefix("$ "))
    assert words[:2] == ["python3", "-c"]
    subprocess.run([sys.executable, *words[1:]], check=True, timeout=60)
    capsys.readouterr()
    arguments = shlex.split(debug.removeprefix("$ sonnx "))
    code = cli.run([*arguments, "--batch", *[part for command in commands for part in ("-e", command)]])
    assert (code, capsys.readouterr().out.splitlines()) == (1, shown)
