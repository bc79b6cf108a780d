from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from admitted import admits
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
VERSIONS = {
    "LeakyRelu": (6, 16), "PRelu": (7, 9, 16), "ThresholdedRelu": (10, 22), "Elu": (6, 22), "Selu": (6, 22),
    "HardSigmoid": (6, 22), "HardSwish": (14, 22), "Gelu": (20,), "Softplus": (1, 22), "Softsign": (1, 22),
    "Celu": (12, 28), "Mish": (18, 22), "Shrink": (9,),
}  # fmt: skip
SPECIAL = {
    "LeakyRelu": ({"alpha": 0.5}, f := [NAN, -0.0, INF, -INF, -2, 3], [NAN, -0.0, INF, -INF, -1, 3]),
    "ThresholdedRelu": ({"alpha": 2.0}, [NAN, INF, -INF, 2, 3, -0.0], [0, INF, 0, 0, 3, 0]),
    "Elu": ({"alpha": 2.0}, f, [NAN, -0.0, INF, -2, None, 3]),
    "Selu": ({"alpha": 2.0, "gamma": 0.5}, [NAN, INF, -INF, 3], [NAN, INF, -1, 1.5]),
    "HardSigmoid": ({"alpha": 0.5, "beta": 0.25}, f, [NAN, 0.25, 1, 0, 0, 1]),
    "HardSwish": ({}, [NAN, -0.0, INF, -INF, -3, 3], [NAN, -0.0, INF, NAN, -0.0, 3]),
    "Gelu": ({}, [NAN, -0.0, INF, -INF], [NAN, -0.0, INF, NAN]),
    "Softplus": ({}, [NAN, -0.0, INF, -INF, 200, -200], [NAN, math.log(2), INF, 0, 200, 0]),
    "Celu": ({"alpha": 2.0}, [NAN, INF, -INF, 3], [NAN, INF, -2, 3]),
    "Mish": ({}, [NAN, -0.0, INF, -INF, 200], [NAN, -0.0, INF, NAN, 200]),
    "Shrink": ({"lambd": 1.0, "bias": 0.5}, [NAN, -0.0, INF, -INF, 1, 2, -2], [0, 0.0, INF, -INF, 0, 1.5, -1.5]),
    "Softsign": ({}, [NAN, -0.0, INF, 1, -3], [NAN, -0.0, NAN, 0.5, -0.75]),
}
"""Attributes, elements, results; None where the result is looked at elsewhere."""


@table("dtype", [F, np.float64, np.float16, ml_dtypes.bfloat16])
@table("op_type", SPECIAL)
def test_special_values(op_type: str, dtype: Any, run: Run, same: Run) -> None:
    attributes, x, y = SPECIAL[op_type]
    kept = [k for k, value in enumerate(y) if value is not None]
    for version in [v for v in VERSIONS[op_type] if admits(op_type, v, dtype)]:
        found = run(op_type, version, np.array(x, dtype), **attributes)
        same(found[kept], np.array([y[k] for k in kept], dtype))


@table("op_type", [name for name in VERSIONS if name != "PRelu"])
def test_the_shape_stays_also_of_scalars_and_without_elements(op_type: str, run: Run) -> None:
    for shape in ((), (0, 3), (2, 1, 3)):
        assert run(op_type, VERSIONS[op_type][-1], np.ones(shape, F)).shape == shape


def near(found: Any, exact: list[float], ulps: int) -> None:
    expected = np.array(exact, F)
    assert (np.abs(found - expected) <= ulps * np.spacing(np.abs(expected))).all(), (found, expected)


X = np.array([-5.5, -2.0, -0.5, 0.25, 1.0, 4.0], F)


def test_values_are_near_the_exact_ones(run: Run) -> None:
    xs = [float(v) for v in X]
    near(run("Elu", 22, X, alpha=1.5), [v if v > 0 else 1.5 * math.expm1(v) for v in xs], 2)
    near(run("Gelu", 20, X)[2:], [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in xs[2:]], 4)
    inner = [math.sqrt(2 / math.pi) * (v + 0.044715 * v**3) for v in xs[2:]]
    tanh = [v * (1 + math.tanh(w)) / 2 for v, w in zip(xs[2:], inner, strict=True)]
    near(run("Gelu", 20, X, approximate="tanh")[2:], tanh, 4)
    alpha, gamma = 1.67326319217681884765625, 1.05070102214813232421875
    near(run("Selu", 6, X), [gamma * v if v > 0 else gamma * alpha * math.expm1(v) for v in xs], 4)
    near(run("HardSwish", 14, X)[1:], [v * min(1, max(0, v / 6 + 0.5)) for v in xs[1:]], 4)


def test_softplus_loses_no_more_than_the_rounding_of_1_plus_exp(run: Run) -> None:
    exact = np.array([math.log1p(math.exp(v)) for v in X.tolist()])
    assert (np.abs(run("Softplus", 22, X) - exact) <= 2.0**-23 * np.maximum(exact, 1)).all()


def test_each_operation_of_gelu_is_rounded_from_left_to_right(run: Run, same: Run) -> None:
    erf = np.array([math.erf(float(v)) for v in X / np.sqrt(F(2))], np.float64).astype(F)
    same(run("Gelu", 20, X), F(0.5) * X * (F(1) + erf))


def test_gelu_knows_two_words(refused: Run) -> None:
    assert "none or tanh" in refused("Gelu", 20, X, approximate="sigmoid")


def test_alpha_is_rounded_to_the_element_type(run: Run, same: Run) -> None:
    x = np.array([-1, -3], ml_dtypes.bfloat16)
    same(run("LeakyRelu", 16, x), ml_dtypes.bfloat16(0.01) * x)
    same(run("LeakyRelu", 6, np.array([-1], np.float64)), np.array([-float(F(0.01))]))


def test_the_sixth_of_hard_swish_is_rounded_to_the_element_type(run: Run, same: Run) -> None:
    same(run("HardSwish", 22, np.array([1.0])), np.array([1 / 6 * 1.0 + 0.5]))


def test_softplus_does_not_overflow(run: Run, same: Run) -> None:
    same(run("Softplus", 1, np.array([100, 3e38], F)), np.array([100, 3e38], F))
    same(run("Softplus", 22, np.array([700.0, 800.0])), np.array([700.0, 800.0]))


@pytest.mark.parametrize("version", [6, 22])
def test_selu_of_negative_zero_is_either_zero(version: int, free: Run) -> None:
    assert free("Selu", version, np.array([-0.0, 1], F)).tolist() == [True, False]


@pytest.mark.parametrize("version", [7, 9, 16])
def test_the_slope_of_prelu_broadcasts_to_the_data_and_not_the_data_to_it(
    version: int, run: Run, refused: Run, same: Run
) -> None:
    x = np.array([[-1, -0.0, NAN], [-2, 4, -INF]], F)
    same(run("PRelu", version, x, np.array([[2], [3]], F)), np.array([[-2, -0.0, NAN], [-6, 4, -INF]], F))
    same(run("PRelu", version, x, np.array(0.5, F)), np.array([[-0.5, -0.0, NAN], [-1, 4, -INF]], F))
    assert "slope broadcasts" in refused("PRelu", version, np.ones(3, F), np.ones((2, 3), F))
    assert "slope broadcasts" in refused("PRelu", version, np.ones((2, 1), F), np.ones(3, F))


@pytest.mark.parametrize("version", [9, 16])
def test_integer_products_of_prelu_wrap_around(version: int, run: Run, same: Run) -> None:
    x = np.array([-(2**31), -3, 3], np.int32)
    same(run("PRelu", version, x, np.array([3], np.int32)), np.array([-(2**31), -9, 3], np.int32))


def test_a_negative_slope_leaves_zeros_as_they_are(run: Run, same: Run) -> None:
    x = np.array([-0.0, 0.0, -1.0], F)
    same(run("LeakyRelu", 16, x, alpha=-2.0), np.array([-0.0, 0.0, 2.0], F))
    same(run("PRelu", 16, x, np.array(-2, F)), np.array([-0.0, 0.0, 2.0], F))
    same(run("Elu", 22, x[:2], alpha=-2.0), x[:2])
