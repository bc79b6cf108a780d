"""Users' texts that are wrong: each is a mistake with its place in one line, or a run that is refused or gets stuck."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from own_operators import nothing_added
from sampling import sampled
from sonnx.spec.cli import run as sonnx

HEAD = """operator com.example::{name} @ 1 (X: T[d...]) -> Y: T
  "A text."
  source "a test"
  types T = float, double
"""
MISTAKEN = {
    "a double times a float": "Y[i... < d] = cast(double, X[i]) * cast(float, X[i])",
    "the other type of a variable": "Y[i... < d] = cast(double, X[i])",
    "a view of another type": "view v[i... < d] = cast(double, X[i])\n  Y[i... < d] = X[i] + v[i]",
    "a let of another type": "let a = cast(double, 1)\n  Y[i... < d] = X[i] * a",
    "a local function": "let f(e: Element) = e * cast(int64, 2)\n  Y[i... < d] = f(X[i])",
    "a choice that types decide": "Y[i... < d] = if T = float then cast(double, X[i]) else X[i]",
    "a fold": "Y[i... < d] = sum(k < 3 from cast(int64, 0)) (X[i] * cast(T, k))",
    "a comparison": "Y[i... < d] = if X[i] < cast(int64, 2) then X[i] else -X[i]",
    "maximum": "Y[i... < d] = maximum(X[i], cast(int64, 1))",
    "oneof": 'Y[i... < d] = oneof(X[i], cast(string, "a"))',
    "a sum of strings": 'Y[i... < d] = cast(T, cast(string, "1") + cast(string, "2"))',
    "a product of strings": 'Y[i... < d] = cast(T, cast(string, "a") * 2)',
    "a sign of a string": 'Y[i... < d] = cast(T, -cast(string, "1"))',
    "pieces of numbers": "Y[i... < d] = cast(T, integer(pieces(X[i], X[i], cast(int64, 1))))",
    "a pattern for numbers": 'Y[i... < d] = if truth(matches(X[i], cast(string, "a"))) then X[i] else -X[i]',
    "truth of a number": "Y[i... < d] = if truth(X[i]) then X[i] else -X[i]",
    "digits of floats": "Y[i... < d] = bit_and(X[i], X[i])",
    "exp of an integer": "Y[i... < d] = cast(T, exp(cast(int64, 3)))",
    "the least string": "Y[i... < d] = X[i] * cast(T, lowest(string))",
    "bits of a string": "Y[i... < d] = X[i] * cast(T, bits(string))",
    "values of floats": "Y[i... < d] = X[i] * cast(T, values(X)[0])",
    "too few indices": "Y[i... < d] = X[0]",
    "an unknown function": "Y[i... < d] = frob(X[i])",
    "an unknown operator": "Y = Nothing@1(X)",
    "a tensor as a number": "Y[i... < d] = X[i] * X",
    "itself": "Y = com.example::{name}@1(X)",
}
"""Texts with a mistake that is found when they are read."""
REFUSED = {
    "a power of a string": 'Y[i... < d] = power(X[i], cast(string, "a"))',
    "a string of an index": "Y[i... < d] = cast(T, cast(string, i[0]))",
    "a truth value as a string": "Y[i... < d] = cast(T, cast(string, X[i] < 0))",
    "a string as a truth value": 'Y[i... < d] = if truth(cast(bool, cast(string, "1"))) then X[i] else -X[i]',
    "a NaN of integers": "Y[i... < d] = X[i] * cast(T, nan(int64))",
    "an infinite string": "Y[i... < d] = X[i] * cast(T, infinity(string))",
    "more digits": "Y[i... < d] = X[i] * reinterpret(T, cast(int8, 1))",
    "no element type": "Y[i... < d] = cast(T, cast(data_type(99), X[i]))",
    "a division by 0": "Y[i... < d] = X[i] * cast(T, 1 div 0)",
    "an index beyond": "Y[i... < d] = X[[99 for k < len(d)]]",
    "a rank below 0": "Y[i... < repeat(2, -1)] = X[i]",
    "a size below 0": "Y[i... < [-5 for k < len(d)]] = X[i]",
    "a size without memory": "Y[i... < [4611686018427387904 for k < len(d)]] = X[i * 0]",
    "an order along no axis": "let p = order(X, 7, true)\n  Y[i... < d] = X[i] * cast(T, p[i])",
    "a NaN as a number": "Y[i... < d] = X[i] * cast(T, rationals(X)[0])",
    "no arm": 'attribute m: string = "c"\n  Y[i... < d] = case m { "a": X[i]; "b": -X[i] }',
    "a string limited": "Y[i... < d] = cast(T, saturate(string, X[i]))",
    "no pattern": 'Y[i... < d] = if truth(matches(cast(string, "a"), cast(string, "["))) then X[i] else -X[i]',
    "types by another operator": "view v[i... < d] = cast(int64, X[i])\n  Y = Add@14(X, v)",
}
"""Texts of which only a run shows that they have no result."""


@pytest.fixture
def asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Runs a model with an operator of this text, of this name; the exit code, and the lines of the message."""

    def ask(name: str, text: str) -> tuple[int, list[str]]:
        with nothing_added(tmp_path):
            Path("own.sonnx").write_text((HEAD + f"  {text}\n").replace("{name}", name))
            np.save("x.npy", np.array([[np.nan, -2, 1.5], [3, 0, 7]], np.float32))
            ports = [helper.make_tensor_value_info(it, TensorProto.FLOAT, None) for it in "xy"]
            ports[0] = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
            node = helper.make_node(name, ["x"], ["y"], domain="com.example")
            imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
            graph = helper.make_graph([node], "g", ports[:1], ports[1:])
            onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), "m.onnx")
            code = sonnx(["--spec", "own.sonnx", "run", "m.onnx", "--input", "x=x.npy"])
            return code, capfd.readouterr().err.strip().splitlines()

    return ask


@pytest.mark.parametrize("what", sampled(MISTAKEN, 10))
def test_a_mistake_is_one_line_with_its_place(what: str, asked) -> None:  # type: ignore[no-untyped-def]
    code, lines = asked(f"M{list(MISTAKEN).index(what)}", MISTAKEN[what])
    assert (code, len(lines)) == (2, 1), lines
    assert re.match(r"error: own\.sonnx:\d+:\d+: \w+ error: ", lines[0]), lines


@pytest.mark.parametrize("what", sampled(REFUSED, 6))
def test_what_a_run_shows_is_refused_or_stuck_and_no_defect(what: str, asked) -> None:  # type: ignore[no-untyped-def]
    code, lines = asked(f"R{list(REFUSED).index(what)}", REFUSED[what])
    assert code in (1, 3), lines
    assert lines and "internal" not in lines[0], lines
