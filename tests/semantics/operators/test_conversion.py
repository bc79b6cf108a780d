from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
TYPES = [np.float16, np.float64, ml_dtypes.bfloat16, np.int8, np.uint64, np.bool_]
CODES = {np.float16: 10, np.float64: 11, ml_dtypes.bfloat16: 16, np.int8: 3, np.uint64: 13, np.bool_: 9}


def f(*values: float) -> Any:
    return np.array(values, F)


# ---- CastLike ---------------------------------------------------------------------------------


@table(("version", "cast"), [(15, 13), (19, 19), (21, 21), (23, 23), (24, 24), (25, 25)])
@table("dtype", TYPES)
def test_castlike_is_cast_to_the_type_of_the_other_tensor(
    version: int, cast: int, dtype: Any, run: Run, free: Run, same: Run
) -> None:
    x = f(0.1, -0.0, 2.7, -3.9, 300, 1e6, NAN, INF)
    like = np.zeros((0, 2), dtype)
    same(run("CastLike", version, x, like), run("Cast", cast, x, to=CODES[dtype]))
    assert (free("CastLike", version, x, like) == free("Cast", cast, x, to=CODES[dtype])).all()


@pytest.mark.parametrize("version", [19, 24])
@pytest.mark.parametrize("saturate", [0, 1])
def test_the_limits_of_float8_are_those_of_cast(version: int, saturate: int, run: Run, same: Run) -> None:
    x = f(1, 1e6, -INF, NAN)
    for code, dtype in ((18, ml_dtypes.float8_e4m3fnuz), (19, ml_dtypes.float8_e5m2)):
        like = np.zeros((), dtype)
        same(run("CastLike", version, x, like, saturate=saturate), run("Cast", version, x, to=code, saturate=saturate))


def test_an_infinity_becomes_the_greatest_number_of_the_fnuz_types_from_24_on(run: Run) -> None:
    like = np.zeros((), ml_dtypes.float8_e4m3fnuz)
    assert np.isnan(run("CastLike", 19, f(INF), like).astype(F)).all()
    assert run("CastLike", 24, f(INF), like).astype(F).tolist() == [240]


@pytest.mark.parametrize(("mode", "expected"), [("up", 2), ("down", 1), ("nearest", 2)])
def test_castlike_rounds_to_float8e8m0_as_round_mode_says(mode: str, expected: float, run: Run) -> None:
    like = np.zeros((), ml_dtypes.float8_e8m0fnu)
    assert run("CastLike", 25, f(1.5), like, round_mode=mode).astype(F).tolist() == [expected]


@pytest.mark.parametrize("version", [15, 19, 25])
def test_castlike_takes_strings_as_cast_does(version: int, run: Run, refused: Run, same: Run) -> None:
    texts, like = np.array([b"1.5", b"-INF"], object), np.array([b"x"], object)
    same(run("CastLike", version, texts, like), texts)
    same(run("CastLike", version, texts, f(0)), f(1.5, -INF))
    same(run("CastLike", version, f(1.5, -INF), like), texts)
    assert "spell a number" in refused("CastLike", version, like, f(1))


# ---- Size -------------------------------------------------------------------------------------


@table("version", [1, 13, 19, 21, 23, 24, 25])
def test_size_is_the_number_of_elements(version: int, run: Run, same: Run) -> None:
    for shape, count in (((), 1), ((0,), 0), ((2, 0, 3), 0), ((2, 3, 5), 30)):
        same(run("Size", version, np.zeros(shape, F)), np.array(count, np.int64))
    same(run("Size", version, np.array([b"a", b"b"], object)), np.array(2, np.int64))


# ---- Range ------------------------------------------------------------------------------------


def sequence(run: Run, version: int, dtype: Any, *numbers: float, **attributes: Any) -> Any:
    return run("Range", version, *(np.array(v, dtype) for v in numbers), **attributes)


@table("version", [11, 27])
@table("dtype", [np.int16, np.int32, np.int64, F, np.float64])
def test_a_range_stops_before_its_limit(version: int, dtype: Any, run: Run, same: Run) -> None:
    same(sequence(run, version, dtype, 3, 9, 3), np.array([3, 6], dtype))
    same(sequence(run, version, dtype, 3, 10, 3), np.array([3, 6, 9], dtype))
    same(run("Range", version, *(np.array([v], dtype) for v in (3, 9, 3))), np.array([3, 6], dtype))
    same(sequence(run, version, dtype, 10, 4, -2), np.array([10, 8, 6], dtype))
    same(sequence(run, version, dtype, 10, 3, -2), np.array([10, 8, 6, 4], dtype))


@table("version", [11, 27])
@table("numbers", [(5, 5, 1), (5, 4, 1), (4, 5, -1), (0, -100, 7)])
def test_a_range_may_be_empty(version: int, numbers: Any, run: Run, same: Run) -> None:
    same(sequence(run, version, np.int32, *numbers), np.zeros(0, np.int32))
    same(sequence(run, version, F, *numbers), np.zeros(0, F))


def test_the_number_of_elements_is_that_of_the_exact_quotient(run: Run) -> None:
    assert 3 * float(F(0.1)) < float(F(0.3))
    assert F(0.3) / F(0.1) == 3
    assert sequence(run, 11, F, 0, 0.3, 0.1).shape == (4,)
    assert 3 * Fraction(0.1) > Fraction(0.3)
    assert sequence(run, 11, np.float64, 0, 0.3, 0.1).shape == (3,)
    assert sequence(run, 11, F, 1, 2, np.nextafter(F(1), F(0))).shape == (2,)
    assert sequence(run, 11, F, 0, 1, 1 / 3).shape == (3,)


def test_an_element_is_start_plus_a_product(run: Run, same: Run) -> None:
    found = sequence(run, 11, F, 1, 8, 0.1)
    same(found, F(1) + np.arange(len(found)).astype(F) * F(0.1))
    assert found[50] != np.add.accumulate(np.full(51, 0.1, F))[50] + F(0.9)


def test_integers_of_a_long_range_do_not_leave_their_type(run: Run, same: Run) -> None:
    found = sequence(run, 11, np.int16, -30000, 30000, 1)
    same(found, np.arange(-30000, 30000).astype(np.int16))
    same(sequence(run, 11, np.int16, 30000, -30000, -20000), np.array([30000, 10000, -10000], np.int16))


def test_a_range_of_small_floats_is_computed_in_the_type_of_stash_type(run: Run, same: Run) -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        start, delta = dtype(1), dtype(0.1)
        steps = np.arange(sequence(run, 27, dtype, 1, 40, 0.1).size)
        same(sequence(run, 27, dtype, 1, 40, 0.1), (F(start) + steps.astype(F) * F(delta)).astype(dtype))
    half = np.float16(1) + steps.astype(np.float16) * np.float16(0.1)
    found = sequence(run, 27, np.float16, 1, 40, 0.1, stash_type=10)
    same(found[:50], half[:50])
    assert (found != sequence(run, 27, np.float16, 1, 40, 0.1)).any()


@pytest.mark.parametrize("version", [11, 27])
def test_a_range_refuses_what_gives_no_number_of_elements(version: int, refused: Run) -> None:
    zero, one = np.array(0, F), np.array(1, F)
    assert "delta is not 0" in refused("Range", version, zero, one, zero)
    assert "delta is not 0" in refused("Range", version, *(np.array(v) for v in (0, 1, 0)))
    for strange in (NAN, INF, -INF):
        for position in range(3):
            numbers = [zero, one, one]
            numbers[position] = np.array(strange, F)
            assert "numbers, no infinities" in refused("Range", version, *numbers)
    assert "scalars" in refused("Range", version, f(0, 1), one, one)


def test_stash_type_is_a_floating_point_type(refused: Run) -> None:
    zero, one = np.array(0, np.float16), np.array(1, np.float16)
    assert "stash_type" in refused("Range", 27, zero, one, one, stash_type=7)


# ---- Expand -----------------------------------------------------------------------------------


@table("version", [8, 13])
@table(
    ("shape", "given", "expected"),
    [
        ((3, 1), (2, 1, 6), (2, 3, 6)), ((3, 1), (3, 4), (3, 4)), ((3, 2), (1,), (3, 2)), ((3, 2), (), (3, 2)),
        ((), (2, 0), (2, 0)), ((1,), (0,), (0,)), ((2, 1), (1, 1), (2, 1)), ((0, 1), (1, 5), (0, 5)),
    ],
)  # fmt: skip
def test_expand_broadcasts_with_a_shape(
    version: int, shape: Any, given: Any, expected: Any, run: Run, same: Run
) -> None:
    x = np.arange(int(np.prod(shape)), dtype=F).reshape(shape)
    same(run("Expand", version, x, np.array(given, np.int64)), np.broadcast_to(x, expected))


@pytest.mark.parametrize("version", [8, 13])
def test_expand_refuses_shapes_that_do_not_broadcast_and_negative_sizes(version: int, refused: Run) -> None:
    assert "The shapes broadcast." in refused("Expand", version, np.zeros((3, 2), F), np.array([3]))
    assert "No size is negative" in refused("Expand", version, np.zeros((3, 1), F), np.array([3, -1]))
