"""Two texts of one operator in one process, one after the other: each is run, judged and rechecked as it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import own_operators as own
import pytest
from sonnx.checker import certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.semantics import load, load_proto
from sonnx.semantics.debugger.session.opening import opened_model
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.execution import run
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled import bound, exact
from sonnx.semantics.runtimes.engines.own import MACHINE
from sonnx.semantics.runtimes.engines.protocol import Failure, Values
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


def test_a_model_whose_text_is_not_in_force_any_more_is_refused() -> None:
    Path("a.sonnx").write_text(TEXTS["as it is"][0])
    Path("b.sonnx").write_text(TEXTS["another default"][0])
    first = load("m.onnx", spec="a.sonnx")
    session = Session(first)
    load("m.onnx", spec="b.sonnx")
    calls: dict[str, Callable[[], object]] = {
        "run": lambda: run(first, {"x": X}),
        "certify": lambda: certify(first),
        "debug": lambda: opened_model(first, {"x": X}),
        "session": lambda: Session(first),
        "session that was opened": lambda: session.run(None, {"x": X}),
    }
    for name, call in calls.items():
        with pytest.raises(ModelError, match=r'loaded under the text "a.sonnx" .* in force: "b.sonnx"') as refused:
            call()
        assert "\n" not in str(refused.value), name
    load("m.onnx", spec=["a.sonnx"])
    by_engine = [limited(spec) for spec in ("a.sonnx", "b.sonnx")]
    assert [np.asarray(it["y"]).tolist() for it in by_engine] == [[[2.5, 0.0, 7.5]], [[4.5, 0.0, 13.5]]]
    load("m.onnx", spec="a.sonnx")
    assert run(first, {"x": X}).stuck is None and session.run(None, {"x": X})[0].tolist() == [[2.5, 0.0, 7.5]]


def limited(spec: str) -> Values:
    """The outputs of the machine as an engine, which keeps models that were read, under a text."""
    load("m.onnx", spec=spec)
    opened = MACHINE.open(Path("m.onnx").read_bytes())
    assert not isinstance(opened, Failure)
    done = opened.run({"x": X})
    assert not isinstance(done, Failure)
    return done


def test_a_model_that_needed_no_text_is_run_whatever_is_added() -> None:
    relu = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1,3] x) => (float[1,3] y) { y = Relu(x) }'
    )
    loaded = load_proto(relu)
    Path("a.sonnx").write_text(TEXTS["as it is"][0])
    load("m.onnx", spec="a.sonnx")
    assert run(loaded, {"x": X}).stuck is None


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
