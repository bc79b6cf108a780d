"""Versions that are in force before opset 7 only; what tells them from others is in version_cases_earlier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

F = np.float32
Run = Callable[..., Any]
A = np.arange(24, dtype=F).reshape(2, 3, 4)
FIT = "The shape of B fits that of A."


@pytest.mark.parametrize(
    ("shape", "axis", "as_if"),
    [((), None, ()), ((1, 1), None, (1, 1)), ((4,), None, (4,)), ((3, 4), None, (3, 4)), ((2, 3), 0, (2, 3, 1)),
     ((3,), 1, (3, 1)), ((2,), 0, (2, 1, 1)), ((2, 3, 4), None, (2, 3, 4))],
)  # fmt: skip
def test_the_second_operand_spans_consecutive_axes(shape: Any, axis: int | None, as_if: Any, run: Run) -> None:
    b = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=F).reshape(shape)
    stated = {} if axis is None else {"axis": axis}
    assert (run("Sub", 6, A, b, broadcast=1, **stated) == A - b.reshape(as_if)).all()
    assert (run("Greater", 1, A, b, broadcast=1, **stated) == (b.reshape(as_if) < A)).all()


@pytest.mark.parametrize(
    ("shape", "axis"), [((3,), None), ((1, 4), None), ((3, 1), 1), ((1, 1, 1, 1), None), ((4,), 3)]
)
def test_other_shapes_do_not_fit(shape: Any, axis: int | None, refused: Run) -> None:
    stated = {} if axis is None else {"axis": axis}
    assert refused("Add", 6, A, np.ones(shape, F), broadcast=1, **stated) == FIT


def test_without_broadcast_one_element_does_not_fit(refused: Run) -> None:
    assert refused("Add", 1, A, np.ones((), F)) == FIT
    assert refused("Add", 6, A, A, broadcast=2) == "broadcast is 0 or 1."


def test_integers_are_not_divided_by_zero(refused: Run) -> None:
    a, b = np.array([-(2**31)], np.int32), np.array([-1], np.int32)
    assert refused("Div", 6, a, b * 0) == "No integer is divided by 0."
    assert refused("Div", 6, a, b) == "The least integer of a signed type is not divided by -1."


@pytest.mark.parametrize(("op_type", "version"), [("Dropout", 6), ("BatchNormalization", 6)])
def test_nothing_is_trained(op_type: str, version: int, refused: Run) -> None:
    inputs = (np.ones((1, 2, 1, 1), F), *[np.ones(2, F)] * (4 if op_type == "BatchNormalization" else 0))
    assert refused(op_type, version, *inputs) == "is_test is not 0."


def test_a_bound_that_is_absent_is_the_end_of_the_finite_range(run: Run) -> None:
    x = np.array([-np.inf, 1, np.inf], np.float16)
    assert run("Clip", 1, x, max=0.5).tolist() == [-65504, 0.5, 0.5]


def test_a_type_is_named_by_a_word(run: Run, refused: Run) -> None:
    assert run("Cast", 1, np.array([1.5, 0]), to="BOOL").tolist() == [True, False]
    assert refused("Cast", 1, np.array([1.5]), to="float") == "to is the name of a type."


def test_the_default_direction_of_gru_1_is_forward(run: Run) -> None:
    inputs = (np.ones((2, 1, 1), F), np.ones((1, 3, 1), F), np.ones((1, 3, 1), F))
    first, seventh = run("GRU", 1, *inputs), run("GRU", 7, *inputs)
    assert (first == seventh).all()
    assert (run("GRU", 1, *inputs, direction="forward") == first).all()


def test_numbers_of_tile_1_are_integers_of_a_floating_point_type(run: Run, refused: Run) -> None:
    x = np.array([[1, 2]], F)
    assert run("Tile", 1, x, np.array(2, F), np.array(0, F)).tolist() == [[1, 2], [1, 2]]
    assert refused("Tile", 1, x, np.array(1.5, F), np.array(0, F)).startswith("tiles and axis are integers")
    assert refused("Tile", 1, x, np.array(np.nan, F), np.array(0, F)) == "tiles and axis are numbers."
    assert refused("Tile", 1, x, np.array(2, F), np.array(2, F)) == "axis is an axis of the input."
