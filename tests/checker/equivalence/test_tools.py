"""Tools that rewrite models, on the models of wrong rewrites: what each gives, held against the table.

`SONNX_TOOLS` names an interpreter that has onnxruntime, onnxoptimizer, onnxsim, onnxslim and onnxscript.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from miscompilations import OTHERS, ROWS, Miscompilation
from sonnx.checker.runtimes.bisection.trials import Answer, Criterion, Question, question
from sonnx.semantics.model.values import Array

TABLE = tomllib.loads((Path(__file__).parent / "rows.toml").read_text(encoding="utf-8"))
TOOLS = ("onnxruntime", "onnxoptimizer", "onnxsim", "onnxslim", "onnxscript")
OUTCOMES = ("right", "wrong value", "wrong shape", "tool fails", "session fails", "run fails", "crash", "open")
MODELS = {build.__name__: build for build in (*ROWS, *OTHERS)}
SCRIPT = Path(__file__).parents[2] / "support" / "tool_outcomes.py"


def test_each_model_has_an_outcome_of_each_tool() -> None:
    assert {it["model"]: it["row"] for it in TABLE["outcomes"]} == {n: b().row for n, b in MODELS.items()}
    assert set(TABLE["versions"]) == set(TOOLS)
    for it in TABLE["outcomes"]:
        assert {it[tool] for tool in TOOLS} <= set(OUTCOMES), it


def test_an_outcome_is_told_from_the_others() -> None:
    row = MODELS["reshaping_that_copies_a_size"]()
    asked = _question(row)
    right = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    assert said(asked, {"y": right}) == "right"
    assert said(asked, {"y": right[::-1].copy()}) == "wrong value"
    assert said(asked, {"y": right.reshape(2, 3)}) == "wrong shape"


@pytest.mark.campaign
@pytest.mark.skipif(not os.environ.get("SONNX_TOOLS"), reason="SONNX_TOOLS names no interpreter that has the tools")
def test_the_tools_do_what_the_table_says(tmp_path: Path) -> None:
    rows = {name: build() for name, build in MODELS.items()}
    for name, row in rows.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.onnx").write_bytes(row.source)
        np.savez(tmp_path / name / "feeds.npz", **row.feeds)
    questions = {name: _question(row) for name, row in rows.items()}
    versions, found = {}, {}
    for tool in ("nothing", *TOOLS):
        folders = [str(tmp_path / name) for name in rows]
        done = subprocess.run([os.environ["SONNX_TOOLS"], str(SCRIPT), tool, *folders], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        versions[tool] = done.stdout.split()[-1]
        for name in rows:
            found[name, tool] = _read(tmp_path / name, tool, questions[name])
    for name, row in rows.items():
        told = ", ".join(f"{tool}: {found[name, tool]}" for tool in TOOLS)
        sys.stdout.write(f"{row.row} {name}: {told}\n")
    sys.stdout.write(f"{versions}\n")
    assert {name for name in rows if found[name, "nothing"] != "right"} == set()
    known = {it["model"]: it for it in TABLE["outcomes"]}
    same = [tool for tool in TOOLS if versions[tool] == TABLE["versions"][tool]]
    other = {(name, tool): it for (name, tool), it in found.items() if tool in same and it != known[name][tool]}
    assert other == {}
    if len(same) < len(TOOLS):
        pytest.skip(f"of other versions than the table nothing is held: {versions}")


def _question(row: Miscompilation) -> Question:
    asked = question(row.source, row.feeds, Criterion.SPECIFICATION)
    assert isinstance(asked, Question)
    return asked


def said(asked: Question, outputs: Mapping[str, Array]) -> str:
    """How outputs stand to what the specification allows."""
    for name, wanted in asked.asked.outputs.items():
        if name not in outputs or outputs[name].shape != wanted.shape:
            return "wrong shape"
    answer = asked.judge(dict(outputs)).answer
    return {Answer.ALLOWED: "right", Answer.OUTSIDE: "wrong value"}.get(answer, "open")


def _read(folder: Path, tool: str, asked: Question) -> str:
    failure = folder / f"{tool}.txt"
    if failure.exists():
        stage, _, told = failure.read_text(encoding="utf-8").partition(": ")
        sys.stdout.write(f"{folder.name}, {tool}, {stage}: {told}\n")
        return stage if stage == "crash" else f"{stage} fails"
    with np.load(folder / f"{tool}.npz") as stored:
        return said(asked, {name: stored[name] for name in stored.files})
