"""Tools that rewrite models, on the models of wrong rewrites: what each gives, held against the ledger.

`SONNX_TOOLS` names an interpreter that has onnxruntime, onnxoptimizer, onnxsim, onnxslim and onnxscript.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ledger_runtimes import free_elements, judge
from miscompilations import ALL
from sonnx.checker.runtimes.deviations.ledger import TOOLS, Outcome, ledger

CASES = {it.name: it for it in ledger() if it.rewrite}
NOTHING = "nothing"
SCRIPT = Path(__file__).parents[2] / "support" / "tool_outcomes.py"


def test_what_a_tool_leaves_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "onnxsim.npz", y=np.float32([1, 2]))
    found = _read(tmp_path, "onnxsim")
    assert found.outputs is not None and found.outputs["y"].tolist() == [1, 2]
    (tmp_path / "onnxslim.txt").write_text("Fail: session: why", encoding="utf-8")
    assert _read(tmp_path, "onnxslim") == Outcome(None, "Fail")


@pytest.mark.campaign
@pytest.mark.skipif(not os.environ.get("SONNX_TOOLS"), reason="SONNX_TOOLS names no interpreter that has the tools")
@pytest.mark.parametrize("tool", [NOTHING, "onnxruntime", *TOOLS])
def test_a_tool_does_what_the_ledger_says(tool: str, tmp_path: Path) -> None:
    folders = {name: tmp_path / str(at) for at, name in enumerate(CASES)}
    for name, folder in folders.items():
        folder.mkdir()
        (folder / "model.onnx").write_bytes(ALL[name].source)
        np.savez(folder / "feeds.npz", **{key: np.asarray(value) for key, value in ALL[name].feeds.items()})
    asked = [os.environ["SONNX_TOOLS"], str(SCRIPT), tool, *map(str, folders.values())]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    version = done.stdout.split()[-1]
    found = {name: _read(folder, tool) for name, folder in folders.items()}
    told = {name: judge(case, tool, version, found[name], free_elements(case)) for name, case in CASES.items()}
    other = {name: it for name, it in told.items() if it}
    sys.stdout.write(f"{tool} {version}: {other}\n")
    versions = {it for case in CASES.values() if (known := case.deviation(tool)) for it in known.versions}
    if tool != NOTHING and versions and version not in versions:
        pytest.skip(f"the ledger says nothing about {tool} {version}: {other}")
    assert other == {}


def _read(folder: Path, tool: str) -> Outcome:
    failure = folder / f"{tool}.txt"
    if failure.exists():
        return Outcome(None, failure.read_text(encoding="utf-8").partition(":")[0])
    with np.load(folder / f"{tool}.npz") as stored:
        return Outcome({name: stored[name] for name in stored.files})
