from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled import ieee
from sonnx.spec.library import specification
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
INTEGERS = [*SIGNED, np.uint8, np.uint16, np.uint32, np.uint64]
FUNCTIONS = {
    "Exp": (6, 13, math.exp), "Log": (6, 13, math.log), "Sqrt": (6, 13, math.sqrt), "Sin": (7, 22, math.sin),
    "Cos": (7, 22, math.cos), "Tan": (7, 22, math.tan), "Asin": (7, 22, math.asin), "Acos": (7, 22, math.acos),
    "Atan": (7, 22, math.atan), "Erf": (9, 13, math.erf),
}  # fmt: skip


def f(*values: float) -> Any:
    return np.array(values, F)


@table("op_type", FUNCTIONS)
@table("dtype", [np.float16, F, ml_dtypes.bfloat16])
def test_a_function_is_the_exact_value_rounded_once(op_type: str, dtype: Any, run: Run, same: Run) -> None:
    first, last, function = FUNCTIONS[op_type]
    x = np.array([0.25, 0.5, 0.875, 1.0, 0.0078125], dtype)
    expected = np.array([function(float(v)) for v in x]).astype(F).astype(dtype)
    same(run(op_type, last, x), expected)
    if dtype is not ml_dtypes.bfloat16:
        same(run(op_type, first, x), expected)


@table(
    ("op_type", "x", "y"),
    [
        ("Exp", f(-0.0, INF, -INF, NAN, 89, -104), f(1, INF, 0, NAN, INF, 0)),
        ("Log", f(-0.0, 0, 1, INF, -1, -INF, NAN), f(-INF, -INF, 0, INF, NAN, NAN, NAN)),
        ("Sqrt", f(-0.0, 0, 4, INF, -1, -INF, NAN), f(-0.0, 0, 2, INF, NAN, NAN, NAN)),
        ("Sin", f(-0.0, INF, -INF, NAN), f(-0.0, NAN, NAN, NAN)),
        ("Cos", f(-0.0, INF, -INF, NAN), f(1, NAN, NAN, NAN)),
        ("Tan", f(-0.0, INF, -INF, NAN), f(-0.0, NAN, NAN, NAN)),
        ("Asin", f(-0.0, 1.5, -2, INF, NAN), f(-0.0, NAN, NAN, NAN, NAN)),
        ("Acos", f(1, 1.5, -2, INF, NAN), f(0, NAN, NAN, NAN, NAN)),
        ("Atan", f(-0.0, INF, -INF, NAN), f(-0.0, math.pi / 2, -math.pi / 2, NAN)),
        ("Erf", f(-0.0, INF, -INF, NAN), f(-0.0, 1, -1, NAN)),
        ("Abs", f(-0.0, -INF, NAN, -2), f(0, INF, NAN, 2)),
        ("Neg", f(-0.0, 0, -INF, NAN, -2), f(0, -0.0, INF, NAN, 2)),
        ("Ceil", f(-0.0, -0.5, 0.5, -1.5, INF, NAN), f(-0.0, -0.0, 1, -1, INF, NAN)),
        ("Floor", f(-0.0, 0.5, -0.5, -1.5, -INF, NAN), f(-0.0, 0, -1, -2, -INF, NAN)),
        ("Round", f(0.5, 1.5, 2.5, -0.5, -1.5, -0.0, INF, NAN), f(0, 2, 2, -0.0, -2, -0.0, INF, NAN)),
        ("Sign", f(-0.0, 0, 3, -INF, NAN), f(0, 0, 1, -1, NAN)),
        ("Reciprocal", f(-0.0, 0, -INF, 4, NAN), f(-INF, INF, -0.0, 0.25, NAN)),
    ],
)
def test_special_values_of_functions_of_one_number(op_type: str, x: Any, y: Any, run: Run, same: Run) -> None:
    version = {"Sin": 22, "Cos": 22, "Tan": 22, "Asin": 22, "Acos": 22, "Atan": 22, "Round": 22}.get(op_type, 13)
    same(run(op_type, version, x), y)
    same(run(op_type, version, x.astype(ml_dtypes.bfloat16)), y.astype(ml_dtypes.bfloat16))


@table("op_type", ["Abs", "Neg", "Sqrt", "Sin", "Floor", "Reciprocal"])
def test_the_shape_stays_also_of_scalars_and_without_elements(op_type: str, run: Run) -> None:
    for shape in ((), (0, 3), (2, 1, 3)):
        assert run(op_type, 7 if op_type == "Sin" else 13, np.ones(shape, F)).shape == shape


@table("dtype", SIGNED)
@table("version", [6, 13])
def test_the_least_integer_has_no_absolute_value_and_no_negative(dtype: Any, version: int, run: Run, same: Run) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([low, low + 1, -1, 0, high], dtype)
    same(run("Abs", version, x), np.array([low, high, 1, 0, high], dtype))
    same(run("Neg", version, x), np.array([low, high, 1, 0, -high], dtype))


@table("dtype", INTEGERS)
def test_the_sign_of_an_integer(dtype: Any, run: Run, same: Run) -> None:
    x = np.array([0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
    same(run("Sign", 13, x), np.sign(x))


def test_erf_of_an_integer_may_be_rounded_or_cut_off_in_version_9(run: Run, free: Run, same: Run) -> None:
    x = np.array([0, 1, -2], np.int32)
    same(run("Erf", 9, x), np.array([0, 0, 0], np.int32))
    assert free("Erf", 9, x).tolist() == [False, True, True]
    same(run("Erf", 9, f(0.5)), run("Erf", 13, f(0.5)))


# ---- Pow --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [7, 12, 13, 15])
def test_powers_have_the_special_values_of_ieee_754(version: int, run: Run, same: Run) -> None:
    x = f(NAN, 1, -8, 0, -0.0, 0, -INF, 2, -1, INF, -0.0)
    y = f(0, NAN, 1 / 3, -1, -1, 0, 3, NAN, INF, -0.0, -3)
    same(run("Pow", version, x, y), f(1, 1, NAN, INF, -INF, 1, -INF, NAN, 1, 1, -INF))


@pytest.mark.parametrize("version", [7, 15])
def test_powers_broadcast(version: int, run: Run, refused: Run, same: Run) -> None:
    same(run("Pow", version, np.array([[2], [3]], F), f(1, 2)), np.array([[2, 4], [3, 9]], F))
    assert "The shapes broadcast." in refused("Pow", version, f(1, 2), f(1, 2, 3))


@table("exponent", INTEGERS)
@table("base", [np.int32, np.int64])
def test_integer_powers_wrap_around_in_the_type_of_the_base(base: Any, exponent: Any, run: Run, same: Run) -> None:
    bits = np.iinfo(base).bits
    x, y = np.array([3, -3, 2, -1, 0], base), np.array([45, 45, 70, 3, 0], exponent)
    exact = [int(a) ** int(b) for a, b in zip(x, y, strict=True)]
    wrapped = [(v + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for v in exact]
    same(run("Pow", 15, x, y), np.array(wrapped, base))


def test_an_exponent_is_not_converted_to_the_type_of_the_base(run: Run, same: Run) -> None:
    same(run("Pow", 15, np.array([3], np.int32), np.array([2**40 + 1], np.int64)), _power(3, 2**40 + 1))
    same(run("Pow", 15, np.array([3], np.int32), np.array([2**63 + 1], np.uint64)), _power(3, 2**63 + 1))
    same(run("Pow", 15, f(-1), np.array([2**24 + 1], np.int32)), f(-1))
    same(run("Pow", 15, f(2), np.array([0.5], np.float64)), f(math.sqrt(2)))
    same(run("Pow", 15, np.array([16, 2], np.int32), f(0.5, 0.5)), np.array([4, 1], np.int32))


def _power(base: int, exponent: int) -> Any:
    return np.array([(pow(base, exponent, 2**32) + 2**31) % 2**32 - 2**31], np.int64).astype(np.int32)


def test_any_value_is_allowed_where_a_power_is_no_integer_of_the_type(free: Run) -> None:
    x, y = np.array([-2, 10, 2, 10], np.int32), f(0.5, 12, 3, 2)
    assert free("Pow", 15, x, y).tolist() == [True, True, False, False]


def test_a_negative_power_of_an_integer_is_refused(run: Run, refused: Run, same: Run) -> None:
    assert "not negative" in refused("Pow", 13, np.array([2], np.int32), np.array([-1], np.int64))
    same(run("Pow", 13, f(2), np.array([-1], np.int64)), f(0.5))


def test_the_exponent_may_have_another_type_from_version_12_on(run: Run, same: Run) -> None:
    same(run("Pow", 12, f(2), np.array([3], np.uint8)), f(8))
    assert _types("Pow", 12) - _types("Pow", 7) == {"T1"}


def _types(op_type: str, version: int) -> set[str]:
    definition = next(d for d in specification().operators[op_type] if d.first <= version <= d.last)
    return {port.type for port in definition.inputs}


# ---- Mod --------------------------------------------------------------------------------------


@table("version", [10, 13, 28])
@table("dtype", SIGNED)
def test_the_remainder_of_integers_has_the_sign_that_fmod_says(version: int, dtype: Any, run: Run, same: Run) -> None:
    x, y = np.array([5, -5, 5, -5, 6, -6, 0], dtype), np.array([3, 3, -3, -3, 3, 3, -3], dtype)
    same(run("Mod", version, x, y), np.array([2, 1, -1, -2, 0, 0, 0], dtype))
    same(run("Mod", version, x, y, fmod=1), np.array([2, -2, 2, -2, 0, 0, 0], dtype))


@table("dtype", [np.int8, np.int32, np.int64])
@table("fmod", [0, 1])
def test_the_remainder_of_the_least_integer_by_minus_1_is_0(dtype: Any, fmod: int, run: Run, same: Run) -> None:
    x = np.array([np.iinfo(dtype).min], dtype)
    same(run("Mod", 13, x, np.array([-1], dtype), fmod=fmod), np.array([0], dtype))


@table("version", [10, 13, 28])
@table("fmod", [0, 1])
def test_the_remainder_of_an_integer_by_0_is_refused(version: int, fmod: int, refused: Run) -> None:
    assert "divided by 0" in refused("Mod", version, np.array([1, 2]), np.array([1, 0]), fmod=fmod)


@pytest.mark.parametrize("version", [10, 13, 28])
def test_fmod_of_floats_is_exact_and_has_the_sign_of_the_dividend(version: int, run: Run, same: Run) -> None:
    x = f(5, -5, 5.5, -0.0, INF, 3, 3, -3, NAN, 1e30, 0)
    y = f(3, 3, -2, -3, 2, 0, INF, -INF, 1, 3, 5)
    expected = f(2, -2, 1.5, -0.0, NAN, NAN, 3, -3, NAN, math.fmod(F(1e30), 3), 0)
    same(run("Mod", version, x, y, fmod=1), expected)


@pytest.mark.parametrize("version", [10, 13, 28])
def test_either_zero_is_allowed_for_the_remainder_of_negative_zero(version: int, free: Run) -> None:
    x, y = f(-0.0, -0.0, 0.0, -3.0), f(2, -2, 2, 3)
    assert free("Mod", version, x, y, fmod=1).tolist() == [True, False, False, False]


@pytest.mark.parametrize("version", [10, 13])
def test_the_remainder_of_floats_needs_fmod_before_version_28(version: int, refused: Run) -> None:
    assert "fmod is 1" in refused("Mod", version, f(1), f(2))


def test_the_remainder_of_floats_has_the_sign_of_the_divisor_in_version_28(run: Run, same: Run) -> None:
    x = f(5, -5, 5, -5, 0, -0.0, 0, 6, 1, -1, 1, INF, 1, NAN, -1e-20)
    y = f(3, 3, -3, -3, -2, 2, 2, -3, INF, INF, -INF, 2, 0, 1, 1)
    same(run("Mod", 28, x, y), f(2, 1, -1, -2, -0.0, 0, 0, -0.0, 1, INF, -INF, NAN, NAN, NAN, 1))


def test_fmod_is_0_or_1(refused: Run) -> None:
    assert "fmod is 0 or 1" in refused("Mod", 13, np.array([1]), np.array([1]), fmod=2)


# ---- Max, Min, Mean ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", [6, 8, 12, 13])
def test_a_nan_wins_over_every_number(version: int, run: Run, same: Run) -> None:
    a, b = f(NAN, 1, -INF, 2), f(1, NAN, INF, 3)
    same(run("Max", version, a, b), f(NAN, NAN, INF, 3))
    same(run("Min", version, a, b), f(NAN, NAN, -INF, 2))


@table("version", [6, 8, 13])
@table("op_type", ["Max", "Min"])
def test_of_two_zeros_that_differ_in_sign_either_is_allowed(
    op_type: str, version: int, run: Run, free: Run, same: Run
) -> None:
    a, b, c = f(0, -0.0, 0, -0.0), f(-0.0, 0, 0, -0.0), f(-0.0, -0.0, 0, -0.0)
    assert free(op_type, version, a, b).tolist() == [True, True, False, False]
    assert free(op_type, version, a, b, c).tolist() == [True, True, False, False]
    same(run(op_type, version, a, b)[2:], f(0, -0.0))
    assert not free(op_type, version, f(0.0, -0.0), f(1, 1) if op_type == "Max" else f(-1, -1)).any()


@table("dtype", INTEGERS)
def test_the_greatest_and_the_least_of_integers(dtype: Any, run: Run, same: Run) -> None:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b, c = np.array([low, 0, high], dtype), np.array([high, 1, low], dtype), np.array([3, 0, 3], dtype)
    same(run("Max", 13, a, b, c), np.array([high, 1, high], dtype))
    same(run("Min", 12, a, b, c), np.array([low, 0, low], dtype))


@pytest.mark.parametrize("op_type", ["Max", "Min", "Mean"])
def test_shapes_broadcast_from_version_8_on(op_type: str, run: Run, refused: Run) -> None:
    a, b, c = np.ones((2, 1), F), np.ones((3,), F), np.array(1, F)
    assert run(op_type, 8, a, b, c).shape == (2, 3)
    assert run(op_type, 13, c, b, a).shape == (2, 3)
    assert run(op_type, 13, np.ones((1, 0), F), np.ones((4, 1), F)).shape == (4, 0)
    assert "same shape" in refused(op_type, 6, a, b)
    assert "The shapes broadcast." in refused(op_type, 13, a, b, np.ones((2,), F))


@table("op_type", ["Max", "Min", "Mean"])
@table("version", [6, 8, 13])
def test_of_one_tensor_it_is_that_tensor(op_type: str, version: int, run: Run, same: Run) -> None:
    same(run(op_type, version, f(-0.0, NAN, 3)), f(-0.0, NAN, 3))


@pytest.mark.parametrize("version", [6, 8, 13])
def test_the_mean_accumulates_in_the_order_of_the_inputs(version: int, run: Run, same: Run) -> None:
    a, b, c = f(1e30), f(-1e30), f(3)
    same(run("Mean", version, a, b, c), f(1))
    same(run("Mean", version, c, a, b), f(0))


@pytest.mark.parametrize("exponents", [np.float32(0.5), np.full(4, 0.5, np.float32)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_power_of_one_half_is_no_square_root(dtype: type[np.generic], exponents: np.ndarray) -> None:
    """IEEE 754, 9.2.1: pow(-0, 0.5) is +0 and pow(-inf, 0.5) is +inf; NumPy's shortcut gives -0 and NaN."""
    base = np.array([-0.0, -np.inf, 4, 0], dtype)
    done = ieee.apply(Application("Pow", 13, (base, np.asarray(exponents)), {}, (True,)))
    assert isinstance(done, Outputs) and isinstance(done.values[0], np.ndarray)
    assert done.values[0].tobytes() == np.array([0, np.inf, 2, 0], dtype).tobytes()
