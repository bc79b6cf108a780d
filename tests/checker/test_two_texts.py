"""Two texts of one operator in one process, one after the other: each is run, judged and rechecked as it says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import own_operators as own
import pytest
from sonnx.checker import certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.semantics import load
from sonnx.semantics.machine.execution import run
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled import bound, exact
from sonnx.semantics.runtimes.fastpath import Session

X = np.array([[1, -2, 3]], np.float32)
TEXTS = {
    "as it is": (own.TEXT, 2.5, "CONFORMS"),
    "another equation": (own.TEXT.replace("= X[i] *", "= X[i] + X[i] *"), 3.5, "CONFORMS"),
    "another default": (own.TEXT.replace("= 2.5", "= 4.5"), 4.5, "CONFORMS"),
    "another requirement": (own.TEXT.replace("alpha > 0", "alpha > 3"), None, "VIOLATES"),
    "another function": (
        own.TEXT.replace("X[i] * cast(T, alpha)", "cast(T, thrice(alpha)) * X[i]")
        + '\ndefine thrice(x: Rational): Rational "Three times x."\n  = 3 * x\n',
        7.5,
        "CONFORMS",
    ),
    "a random one": (
        own.TEXT.replace("  Y[", "  let u = uniform([1])\n  Y[").replace("(T, alpha)", "(T, u[0])"),
        math.nan,
        "VIOLATES",
    ),
    "other types": (own.TEXT.replace("float, double", "double"), None, "VIOLATES"),
    "an attribute that is required": (
        own.TEXT.replace(" = 2.5", "").replace("alpha > 0", "len(d) > 0"),
        None,
        "VIOLATES",
    ),
    "more inputs": (own.TEXT.replace("X: T[d...], bias?", "X: T[d...], more: T[], bias?"), None, "VIOLATES"),
}
"""For each text the factor of the result, NaN where it is drawn, None where the node is refused; and the verdict."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    own.model(tmp_path)
    with own.nothing_added(tmp_path):
        yield tmp_path


def scale() -> Application:
    return Application(own.NAME, 1, (X, None), {}, (True,))


def test_a_text_after_another_is_what_its_model_is_run_and_judged_by() -> None:
    each_by_its_own(["as it is", "another requirement", "another default", "as it is"])


@pytest.mark.campaign
def test_every_text_is_what_its_model_is_run_and_judged_by_after_each_other_one() -> None:
    each_by_its_own([*TEXTS, *reversed(TEXTS)])


def each_by_its_own(texts: list[str]) -> None:
    for number, text in enumerate(texts):
        content, factor, verdict = TEXTS[text]
        file = Path(f"{number % 2}.sonnx")  # another one, and again one that was read before
        file.write_text(content)
        loaded = load("m.onnx", spec=file)
        done, exactly, allowed = run(loaded, {"x": X}), exact.apply(scale()), bound.apply(scale())
        assert (text, done.stuck is None) == (text, factor is not None)
        if factor is not None and not math.isnan(factor):
            expected = [[max(0.0, factor * float(x)) for x in X[0]]]
            assert (text, np.asarray(done.outputs["y"]).tolist()) == (text, expected)
            assert Session("m.onnx").run(None, {"x": X})[0].tolist() == expected
            assert isinstance(exactly, Outputs) and isinstance(allowed, bound.Bounds)
            assert [float(it) for it in np.ravel(exactly.values[0])] == [factor * float(x) for x in X[0]]
            (sets,) = allowed.values
            assert isinstance(sets, bound.Allowed) and sets.least.tolist() == [[factor * float(x) for x in X[0]]]
        report = certify(loaded, witnesses=True)
        assert (text, report.verdict.value) == (text, verdict)
        assert (text, recheck(seal(certificate(report)), "m.onnx").outcome.value) == (text, "CONFIRMED")
