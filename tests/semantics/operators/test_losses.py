from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
X = np.array([[[1, 2], [2, 2], [3, 2]], [[0, 1], [2, 2], [1, 2]]], F)
T = np.array([[2, 1], [0, 2]], np.int64)
W = np.array([0.25, 0.5, 2], F)
NLL = ("NegativeLogLikelihoodLoss", 12), ("NegativeLogLikelihoodLoss", 13), ("NegativeLogLikelihoodLoss", 22)
SCE = ("SoftmaxCrossEntropyLoss", 12), ("SoftmaxCrossEntropyLoss", 13)


@pytest.mark.parametrize(("op_type", "version"), NLL)
def test_the_loss_is_the_negative_input_at_the_target(op_type: str, version: int, run: Run, same: Run) -> None:
    same(run(op_type, version, X, T, reduction="none"), np.array([[-3, -2], [-0.0, -2]], F))
    same(run(op_type, version, X, T, W, reduction="none"), np.array([[-6, -1], [-0.0, -4]], F))
    same(run(op_type, version, X, T.astype(np.int32), reduction="sum"), np.array(-7, F))
    same(run(op_type, version, X, T, W, reduction="sum"), np.array(-11, F))
    same(run(op_type, version, X, T), np.array(-1.75, F))
    same(run(op_type, version, X, T, W, reduction="mean"), np.array(F(-11) / F(4.75)))


@table(("op_type", "version"), NLL)
@table("ignored", [1, -7, 99])
def test_an_ignored_target_counts_neither_above_nor_below_the_line(
    op_type: str, version: int, ignored: int, run: Run, same: Run
) -> None:
    t = np.array([[2, ignored], [0, 2]], np.int64)
    attributes = {"ignore_index": ignored}
    same(run(op_type, version, X, t, reduction="none", **attributes), np.array([[-3, 0], [-0.0, -2]], F))
    same(run(op_type, version, X, t, W, reduction="none", **attributes), np.array([[-6, 0], [-0.0, -4]], F))
    same(run(op_type, version, X, t, **attributes), np.array(F(-5) / F(3)))
    same(run(op_type, version, X, t, W, **attributes), np.array(F(-10) / F(4.25)))
    same(run(op_type, version, X, t * 0 + ignored, reduction="sum", **attributes), np.array(0, F))
    same(run(op_type, version, X, t * 0 + ignored, **attributes), np.array(NAN))


@pytest.mark.parametrize(("op_type", "version"), [*NLL, *SCE])
def test_a_target_that_is_no_class_is_refused(op_type: str, version: int, refused: Run) -> None:
    for wrong in (3, -1):
        t = np.array([[2, wrong], [0, 2]], np.int64)
        assert "is a class" in refused(op_type, version, X, t)
        assert "is a class" in refused(op_type, version, X, t, ignore_index=5)
    assert "reduction" in refused(op_type, version, X, T, reduction="max")


@pytest.mark.parametrize(("op_type", "version"), [*NLL, *SCE])
def test_the_shapes_of_target_and_weights_fit_the_input(op_type: str, version: int, refused: Run) -> None:
    refused(op_type, version, X, T[:, :1])
    refused(op_type, version, X, T[:1])
    refused(op_type, version, X, T[0])
    refused(op_type, version, X, T, W[:2])


@pytest.mark.parametrize(("op_type", "version"), [*NLL, *SCE])
def test_the_loss_of_no_samples(op_type: str, version: int, run: Run, same: Run) -> None:
    x, t = np.zeros((0, 3), F), np.zeros((0,), np.int64)
    same(run(op_type, version, x, t, reduction="none"), np.zeros((0,), F))
    same(run(op_type, version, x, t, reduction="sum"), np.array(0, F))
    same(run(op_type, version, x, t), np.array(NAN))


@pytest.mark.parametrize(("op_type", "version"), [*NLL, *SCE])
def test_a_loss_without_further_axes_and_with_two(op_type: str, version: int, run: Run) -> None:
    assert run(op_type, version, np.ones((4, 3), F), np.zeros(4, np.int64), reduction="none").shape == (4,)
    x, t = np.ones((2, 3, 5, 7), F), np.zeros((2, 5, 7), np.int32)
    assert run(op_type, version, x, t, reduction="none").shape == (2, 5, 7)
    assert run(op_type, version, x, t).shape == ()


@pytest.mark.parametrize(("op_type", "version"), NLL)
def test_sums_of_losses_are_accumulated_in_row_major_order(op_type: str, version: int, run: Run, same: Run) -> None:
    x = np.array([[-1e8], [-1], [-1], [-1]], F)
    t = np.zeros(4, np.int64)
    same(run(op_type, version, x, t, reduction="sum"), np.array(1e8, F))
    same(run(op_type, version, x[::-1], t, reduction="sum"), np.array(F(3) + F(1e8)))


@table(("op_type", "version"), SCE)
@table("attributes", [{}, {"ignore_index": 1}, {"reduction": "sum"}, {"reduction": "none"}])
@table("weighted", [False, True])
def test_the_softmax_loss_is_the_other_of_the_logarithm_of_softmax(
    op_type: str, version: int, attributes: Any, weighted: bool, run: Run, same: Run
) -> None:
    weights = (W,) if weighted else ()
    loss, logarithm = run(op_type, version, X, T, *weights, count=2, **attributes)
    same(logarithm, run("LogSoftmax", 13, X, axis=1))
    same(loss, run("NegativeLogLikelihoodLoss", 13, logarithm, T, *weights, **attributes))
    same(run(op_type, version, X, T, *weights, **attributes), loss)


@pytest.mark.parametrize(("op_type", "version"), SCE)
def test_scores_may_be_large(op_type: str, version: int, run: Run, same: Run) -> None:
    x = np.array([[1000, 0], [0, 1000]], F)
    same(run(op_type, version, x, np.array([0, 0]), reduction="none"), np.array([-0.0, 1000], F))


def test_losses_of_bfloat16_come_with_the_newest_versions(run: Run, refused: Run) -> None:
    x = X.astype(ml_dtypes.bfloat16)
    assert run("NegativeLogLikelihoodLoss", 22, x, T).dtype == x.dtype
    assert run("SoftmaxCrossEntropyLoss", 13, x, T).dtype == x.dtype
    refused("NegativeLogLikelihoodLoss", 13, x, T)
    refused("SoftmaxCrossEntropyLoss", 12, x, T)
