"""What is known to be wrong with onnx.reference is found by our own vectors; refusals are told from wrong results.

The faults are those of onnx 1.23.2; a later version may have mended some.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import onnx
import pytest
from onnx import parser
from sonnx.checker.runtimes.conformance import running
from sonnx.checker.runtimes.conformance.records import Record
from sonnx.checker.runtimes.conformance.reports import summarized
from sonnx.checker.runtimes.conformance.running import conform
from sonnx.checker.runtimes.conformance.suites import Reference, references
from sonnx.checker.runtimes.conformance.vectors import names
from sonnx.semantics.runtimes.engines.protocol import Failure, Kind
from sonnx.semantics.runtimes.engines.registry import engine

needs_onnxruntime = pytest.mark.skipif(
    not os.environ.get("SONNX_ONNXRUNTIME") and find_spec("onnxruntime") is None, reason="onnxruntime is not installed"
)
needs_version = pytest.mark.skipif(
    onnx.__version__ != "1.23.2", reason=f"the faults of onnx {onnx.__version__} are not known"
)
WRONG = {
    "BatchNormalization-9": "float.0",
    "LRN-13": "float.1",
    "MaxPool-12": "double.0",  # a NaN that is not the first of its window
    "Relu-14": "float.1",  # -0.0
    "Softmax-11": "double.1",  # the rule of version 13
}
"""The vectors that show it are tried first; which of an operator's do, depends on the numbers that a solver names."""
RAISES = {
    "BatchNormalization-7": "1",
    "DequantizeLinear-13": "0",
    "MaxPool-22": "int8.0",
    "ReduceLogSum-13": "int32.0",
    "Resize-10": "0",
}
OPEN = {
    "Div-7/outside.1": ("No integer is divided by 0.", ""),
    "Pow-13/outside.1": ("The power of an integer is not negative.", "error"),
}
"""What ONNX leaves open: it says neither what an integer divided by 0 is, nor what 2 to the power -1 is as an integer.
The specification demands that neither happens, so that no result is wrong: the cases are outside the domain, and it is
told whether the reference gives something all the same (""), or raises. Besides: of 0.0 and -0.0 either may be the
greater in Max, and where a NaN stands in TopK, is decided as the reference has it.
"""
NEWER = '<ir_version: 14, opset_import: ["" : 26]>'
NOW = '<ir_version: 10, opset_import: ["" : 21]>'


def judged(operator: str, first: str) -> Iterator[Record]:
    """What the reference does on the vectors of an operator, the one that is known first."""
    every = [name for name in names() if name.startswith(f"{operator}/")]
    assert f"{operator}/{first}" in every
    for name in sorted(every, key=lambda it: it != f"{operator}/{first}"):
        yield from conform([Reference("vectors", name, name)], ["reference"])


@needs_version
@pytest.mark.parametrize("operator", WRONG)
def test_a_vector_finds_what_the_reference_computes_wrongly(operator: str) -> None:
    found = next((it for it in judged(operator, WRONG[operator]) if it.outcome == "mismatch"), None)
    assert found is not None
    assert found.operator == operator
    assert found.outside
    assert found.worst


@needs_version
@pytest.mark.parametrize("operator", RAISES)
def test_a_vector_finds_what_the_reference_has_no_result_for(operator: str) -> None:
    found = next((it for it in judged(operator, RAISES[operator]) if it.outcome == "refused"), None)
    assert found is not None
    assert found.kind in ("error", "invalid", "unsupported")


@needs_version
@pytest.mark.parametrize("vector", OPEN)
def test_a_vector_shows_what_the_reference_does_where_the_standard_is_silent(vector: str) -> None:
    sentence, kind = OPEN[vector]
    (found,) = conform([Reference("vectors", vector, vector)], ["reference"])
    assert (found.outcome, found.kind) == ("outside the domain", kind)
    assert sentence in found.why


def suite(folder: Path) -> tuple[Reference, ...]:
    """A model whose inputs the Python interface of onnxruntime has no arrays for, a plain one, one that is newer than
    any runtime."""
    texts = {
        "binding": f"{NOW} g (bfloat16[2] x) => (bfloat16[2] y) {{ y = Identity(x) }}",
        "fine": f"{NOW} g (float[2] x) => (float[2] y) {{ y = Neg(x) }}",
        "skew": f"{NEWER} g (float[2] x) => (float[2] y) {{ y = Neg(x) }}",
    }
    for name, text in texts.items():
        (folder / f"{name}.onnx").write_bytes(parser.parse_model(text).SerializeToString())
    return references(str(folder))


@needs_onnxruntime
def test_version_skew_is_told_from_wrong_results_and_no_array_is_no_reason_to_refuse(tmp_path: Path) -> None:
    if tuple(map(int, engine("onnxruntime").version.split(".")[:2])) >= (1, 32):
        pytest.skip("this onnxruntime reads the newest operator set")
    records = conform(suite(tmp_path), ["onnxruntime"])
    found = [(it.case, it.outcome, it.kind) for it in records]
    assert found == [
        ("binding.onnx", "pass", ""),
        ("fine.onnx", "pass", ""),
        ("skew.onnx", "refused", "version skew"),
    ]


def test_each_way_to_give_no_result_is_counted_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Says:
        version = "1"

        def __init__(self, kind: str) -> None:
            self.name = kind

        def open(self, source: object) -> Failure:
            return Failure(Kind(self.name), "because")

    monkeypatch.setattr(running, "_engine", Says)
    kinds = tuple(it.value for it in Kind)
    for it in summarized(conform(suite(tmp_path)[1:2], kinds), kinds):
        outcome = "crash" if it.engine in ("crash", "timeout") else "refused"
        assert dict(it.kinds) == {(outcome, it.engine): 1}
        assert {name: count for name, count in it.classes.items() if count} == {outcome: 1}
