"""Attributes that are no exact numbers, NaN, infinities and -0.0, mean what IEEE 754 says, in each interpretation."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from onnx import helper
from sonnx.checker import certify
from sonnx.semantics import load_proto
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model.values import Array
from sonnx.semantics.operators.application import Application, AttributeData, Outputs, Stuck
from sonnx.semantics.operators.compiled import bound, exact, ieee
from sonnx.semantics.operators.compiled.bound import Allowed
from sonnx.semantics.operators.compiled.elements.bounds import verdict as bound_verdict
from sonnx.semantics.operators.compiled.statements import attribute_value
from sonnx.semantics.operators.compiled.terms import NOTHING, add, divide, multiply, to_floor
from sonnx.semantics.operators.symbolic.footprint import footprint
from tables import table

SPECIAL = (math.nan, math.inf, -math.inf, -0.0)
X = np.array([[[[-2.0]], [[3.0]], [[-0.0]]]], np.float32)


def application(op_type: str, version: int, *inputs: Array, **attributes: AttributeData) -> Application:
    return Application(op_type, version, inputs, attributes, (True,))


def value(done: Outputs | Stuck) -> Array:
    assert isinstance(done, Outputs)
    assert isinstance(done.values[0], np.ndarray)
    return done.values[0]


@table(("a", "b"), [*product(SPECIAL, (*SPECIAL, 0.0, 5.0, -0.5)), *product((0.0, 5.0), SPECIAL)])
def test_arithmetic_with_a_special_number_is_that_of_ieee(a: float, b: float) -> None:
    one, other = attribute_value(a), attribute_value(b)
    assert isinstance(one, (int, float))
    with np.errstate(all="ignore"):
        expected = {
            "add": np.add(a, b),
            "sub": np.subtract(a, b),
            "mul": np.multiply(a, b),
            "quotient": np.divide(a, b) if b else math.nan,
        }
    found = {
        "add": add(one, other, NOTHING),  # type: ignore[arg-type]
        "sub": add(one, other, NOTHING, -1),  # type: ignore[arg-type]
        "mul": multiply(one, other, NOTHING),  # type: ignore[arg-type]
        "quotient": divide(one, other, NOTHING) if b else math.nan,  # type: ignore[arg-type]
    }
    for name, wanted in expected.items():
        same = float(found[name])  # type: ignore[arg-type]
        assert np.array_equal(same, wanted, equal_nan=True), name
        assert math.isnan(wanted) or math.copysign(1, same) == math.copysign(1, wanted), name


def test_a_special_number_is_no_integer() -> None:
    assert to_floor(-0.0) == 0
    found = to_floor(math.inf)
    assert found != found
    done = ieee.apply(application("Gemm", 13, *(np.ones((1, 1), np.int32),) * 2, alpha=math.inf))
    assert isinstance(done, Stuck)


@pytest.mark.parametrize("number", SPECIAL)
def test_an_element_is_computed_with_it_and_allowed_and_has_a_footprint(number: float) -> None:
    with np.errstate(all="ignore"):
        expected = np.where(X < 0, np.float32(number) * X, X)
    it = application("LeakyRelu", 16, X, alpha=number)
    assert value(ieee.apply(it)).tobytes() == expected.tobytes() or math.isnan(number)
    (allowed,) = bound.apply(it).values  # type: ignore[union-attr]
    assert isinstance(allowed, Allowed)
    assert bound_verdict.judge(allowed, expected, expected).allowed.all()
    assert footprint(it, 0, (0, 0, 0, 0)).data == {0: {(0, 0, 0, 0)}}


@table("number", SPECIAL)
@table(
    ("op_type", "version", "name"),
    [("LRN", 13, "alpha"), ("Clip", 6, "max"), ("ThresholdedRelu", 10, "alpha"), ("HardSigmoid", 6, "beta")],
)
def test_no_interpretation_stumbles(op_type: str, version: int, name: str, number: float) -> None:
    it = application(op_type, version, X, **{name: number}, **({"size": 3} if op_type == "LRN" else {}))
    assert value(ieee.apply(it)).shape == X.shape
    assert not isinstance(bound.apply(it), Stuck)
    found = footprint(it, 0, (0, 1, 0, 0))
    assert found.data or found.control


@pytest.mark.parametrize("version", [12, 25])
def test_a_constant_is_the_number_with_its_sign(version: int) -> None:
    found = value(ieee.apply(application("Constant", version, value_floats=(*SPECIAL, 0.5))))
    assert np.array_equal(found, np.array([*SPECIAL, 0.5], np.float32), equal_nan=True)
    assert np.signbit(found[3])
    assert value(exact.apply(application("Constant", version, value_float=-0.0))) == 0
    with pytest.raises(Unsupported):
        exact.apply(application("Constant", version, value_float=math.nan))
    assert footprint(application("Constant", version, value_float=-0.0), 0, ()).data == {}


def test_a_model_with_a_nan_in_an_attribute_is_judged() -> None:
    node = helper.make_node("Constant", [], ["y"], value_floats=[math.nan, -0.0])
    result = helper.make_tensor_value_info("y", 1, [2])
    proto = helper.make_model(helper.make_graph([node], "g", [], [result]), opset_imports=[helper.make_opsetid("", 13)])
    report = certify(load_proto(proto), rules=("domain",))
    assert report.verdict.value == "CONFORMS"
