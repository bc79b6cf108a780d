from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from equations import EQUATIONS
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]


@table("version", [12, 28])
@table("case", EQUATIONS, ids=lambda case: case[0])
def test_the_equation_is_that_of_numpy(version: int, case: tuple[Any, ...], run: Run, same: Run) -> None:
    equation, *shapes = case
    rng = np.random.default_rng(len(equation))
    operands = [rng.integers(-5, 6, shape).astype(F) for shape in shapes]
    expected = np.einsum(equation.replace(" ", ""), *operands)
    same(run("Einsum", version, *operands, equation=equation), np.asarray(expected, F) + F(0))


def test_an_axis_of_size_1_is_repeated(run: Run, same: Run) -> None:
    x, y = np.array([[2], [3]], F), np.arange(12, dtype=F).reshape(3, 4)
    same(run("Einsum", 12, x, y, equation="ij,jk"), np.broadcast_to(x, (2, 3)) @ y)


def test_the_summed_labels_run_in_alphabetical_order(run: Run, same: Run) -> None:
    x = np.array([[1e8, 1], [-1e8, 1]], F)
    same(run("Einsum", 12, x, equation="ab->"), np.array(((F(1e8) + F(1)) + F(-1e8)) + F(1), F))
    same(run("Einsum", 12, x, equation="ba->"), np.array(((F(1e8) + F(-1e8)) + F(1)) + F(1), F))


def test_integers_wrap_and_a_nan_stays(run: Run, same: Run) -> None:
    x = np.array([100, 100], np.int8)
    same(run("Einsum", 12, x, equation="i->"), np.array(-56, np.int8))
    same(run("Einsum", 12, np.array([NAN, 1], F), np.array([0, INF], F), equation="i,i->i"), np.array([NAN, INF], F))
    half = np.ones(3, ml_dtypes.bfloat16)
    same(run("Einsum", 28, half, half, equation="i,i"), np.array(3, ml_dtypes.bfloat16))


def test_axes_of_different_sizes_with_one_label_are_refused(refused: Run) -> None:
    assert "same label" in refused("Einsum", 12, np.ones((2, 3), F), np.ones((2, 3), F), equation="ij,jk")
    assert "same label" in refused("Einsum", 12, np.ones((2, 3), F), equation="ii")


@table("equation", ["...j,...j->...", "j...,...j", "...,...->..."])
def test_dots_that_stand_for_different_numbers_of_axes_are_refused(equation: str, refused: Run) -> None:
    assert "fits the operands" in refused("Einsum", 12, np.ones((2, 2, 3), F), np.ones(3, F), equation=equation)


def test_axes_of_one_operand_are_not_broadcast(refused: Run, run: Run, same: Run) -> None:
    assert "one operand" in refused("Einsum", 12, np.ones((1, 3), F), equation="ii->i")
    same(run("Einsum", 12, np.ones((1, 1), F), np.ones(3, F), equation="ii,i->i"), np.ones(3, F))


def test_an_output_without_dots_sums_their_axes(run: Run, same: Run) -> None:
    x = np.arange(24, dtype=F).reshape(2, 3, 4)
    same(run("Einsum", 12, x, equation="...j->j"), x.sum((0, 1)))
    same(run("Einsum", 12, x, x, equation="i...,i...->i"), (x * x).sum((1, 2)))
