"""The sign of a stored zero decides conditions, and -0.0 cannot be written as a numeral."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from sonnx.checker.equivalence.optimizing.optimizer import optimize
from sonnx.semantics.model.loader import load
from sonnx.spec.library import AddedTextError, extended, own_specification

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2, 3] x) => (float[2, 3] y) {{
  t = {applied}
  y = Exp(t)
}}"""
NOTHING = [("Add(x, z)", -0.0), ("Add(z, x)", -0.0), ("Sub(x, z)", 0.0)]
"""What changes no element."""
SOMETHING = [("Add(x, z)", 0.0), ("Add(z, x)", 0.0), ("Sub(x, z)", -0.0), ("Sub(z, x)", 0.0), ("Add(x, z)", np.nan)]
"""What makes 0.0 of -0.0, or more."""


def nodes(applied: str, zero: float, folder: Path) -> list[str]:
    proto = onnx.parser.parse_model(TEXT.format(applied=applied))
    proto.graph.initializer.append(numpy_helper.from_array(np.array(zero, np.float32), "z"))
    onnx.save(proto, folder / "model.onnx")
    return [it.op_type for it in optimize(load(folder / "model.onnx")).model.nodes if it.op_type]


@pytest.mark.parametrize(("applied", "zero"), NOTHING)
def test_a_zero_that_changes_nothing_goes(applied: str, zero: float, tmp_path: Path) -> None:
    assert nodes(applied, zero, tmp_path) == ["Exp"]


@pytest.mark.parametrize(("applied", "zero"), SOMETHING)
def test_a_zero_that_changes_signs_stays(applied: str, zero: float, tmp_path: Path) -> None:
    assert len(nodes(applied, zero, tmp_path)) == 2


@pytest.mark.parametrize("written", ["-0.0", "-0", "-0.00"])
def test_a_negative_zero_is_no_numeral(written: str) -> None:
    text = f"""rewrite Zero (X: T[d...], z!: T[]) -> Y: T "A rule." source "tests"
  from Y = Add@14(X, z)
  to Y = X
  when z[] = {written} "It is -0.0."
  exactly
"""
    with pytest.raises(AddedTextError, match="which has no sign; write -cast"):
        extended(own_specification(), {"x.sonnx": text})
