"""The operators of com.microsoft: their texts against onnxruntime, their authority, and whole models of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from microsoft_cases import CASES, cases, given, verdict
from sampling import CAMPAIGN
from sonnx.checker.runtimes.differential.judging import Standing
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled.ieee import apply
from sonnx.spec.cli import run
from sonnx.spec.library import specification

QUANTIZED = Path(__file__).parents[3] / ".." / "shared" / "models" / "quantized" / "micro_kws"
REFUSED = {
    "QLinearAveragePool": "RuntimeException",
    "QLinearGlobalAveragePool": "RuntimeException",
}
"""What onnxruntime refuses: a mean whose scale is 256 or more; the texts say it."""


@cache
def outcomes(count: int) -> Mapping[str, Counter[str]]:
    """How onnxruntime stands to the text in the first cases of each operator, counted."""
    every = [(operator, case) for operator in CASES for case in cases(operator, count)]
    counted: dict[str, Counter[str]] = {operator: Counter() for operator in CASES}
    for (operator, case), outcome in zip(every, given(every), strict=True):
        found = verdict(operator, case, outcome)
        counted[operator].update([found] if isinstance(found, str) else (it.standing.name for it in found))
    return counted


@pytest.mark.parametrize("operator", CASES)
@pytest.mark.parametrize("count", [pytest.param(3, id="sample"), pytest.param(300, id="all", marks=CAMPAIGN)])
def test_onnxruntime_gives_what_the_text_allows(operator: str, count: int) -> None:
    pytest.importorskip("onnxruntime")
    known = {Standing.EXACT.name, Standing.WITHIN.name, Standing.FREE.name, f"onnxruntime: {REFUSED.get(operator)}"}
    counted = outcomes(count)[operator]
    assert set(counted) <= known, counted
    assert counted[Standing.EXACT.name] + counted[Standing.WITHIN.name] > 0


def test_every_operator_of_the_domain_is_held_against_onnxruntime() -> None:
    defined = {name.partition("::")[2] for name in specification().operators if name.startswith("com.microsoft::")}
    assert set(CASES) == defined


def test_the_zero_point_of_a_sum_and_of_a_product_is_added_before_a_tie_is_rounded() -> None:
    one, zero = np.array(1, np.uint8), np.array(0, np.uint8)
    half, whole = np.array(0.5, np.float32), np.array(1, np.float32)
    x, y = (np.array([1], np.uint8), half, zero), (whole, one)
    for operator, inputs, expected in (
        ("QLinearAdd", (*x, np.array([0], np.uint8), whole, zero, *y), 2),
        ("QLinearMul", (*x, np.array([1], np.uint8), whole, zero, *y), 2),
        ("QLinearLeakyRelu", (*x, *y), 1),
    ):
        done = apply(Application(f"com.microsoft::{operator}", 1, inputs, {}, (True,)))
        assert isinstance(done, Outputs)
        assert np.asarray(done.values[0]).tolist() == [expected], operator


# ---- Whole models -------------------------------------------------------------------------------


@pytest.mark.skipif(not QUANTIZED.is_dir(), reason="the shared models are not at ../shared/models")
def test_a_quantized_network_of_these_operators_conforms_and_its_certificate_is_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, certificate = QUANTIZED / "micro_kws_m_static_qoperator.onnx", tmp_path / "c.json"
    assert run(["certify", str(path), "--certificate", str(certificate), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "CONFORMS"
    assert run(["recheck", str(certificate), str(path)]) == 0
    assert capsys.readouterr().out.startswith("CONFIRMED")


@pytest.mark.skipif(not QUANTIZED.is_dir(), reason="the shared models are not at ../shared/models")
@pytest.mark.parametrize("engine", ["numpy", "onnxruntime"])
def test_a_quantized_network_runs_as_the_text_allows(engine: str) -> None:
    if engine == "onnxruntime":
        pytest.importorskip("onnxruntime")
    path = str(QUANTIZED / "micro_kws_m_static_qoperator.onnx")
    assert run(["compare", path, "--engine", engine, "--random", "1"]) == 0
