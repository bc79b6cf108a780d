"""Losses give what the definition gives: in every bit where each sum has one or two terms or is exact."""

from __future__ import annotations

import numpy as np
import pytest
from fastpath_cases import agrees, application, computed, stuck
from fastpath_values import admitted, provoking, widest
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.kernels import softmax
from tables import table

TABLE = softmax.KERNELS
LIKELIHOOD, ENTROPY = "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"
REDUCTIONS = ("none", "sum", "mean")


def test_single_losses_agree_on_provoking_values_of_each_type() -> None:
    """Two classes, so that the sum of the exponentials has two terms."""
    for version in widest(LIKELIHOOD):
        for element in admitted(LIKELIHOOD, version, 0):
            x = provoking(element, 120, version).reshape(4, 2, 3, 5)
            weight = provoking(element, 2, 5)
            target = np.random.default_rng(version).integers(0, 2, (4, 3, 5))
            for given in ((x, target), (x, target.astype(np.int32), weight)):
                for ignored in ({}, {"ignore_index": 1}, {"ignore_index": -5}):
                    agrees(LIKELIHOOD, version, *given, reduction="none", **ignored)
                    if element in admitted(ENTROPY, 13, 0):
                        agrees(ENTROPY, 13, *given, outputs=2, reduction="none", **ignored)


def test_sums_and_means_are_exact_on_integers() -> None:
    rng = np.random.default_rng(3)
    for element in admitted(LIKELIHOOD, 22, 0):
        dtype = DTYPES[element]
        x, weight = rng.integers(-3, 4, (4, 5, 2)).astype(dtype), np.array([1, 2, 0.5, 1, 4], np.float32).astype(dtype)
        target = rng.integers(0, 5, (4, 2))
        target[0, 0] = 7
        for reduction in REDUCTIONS:
            agrees(LIKELIHOOD, 22, x, target, reduction=reduction, ignore_index=7)
            agrees(LIKELIHOOD, 22, x, target, weight, reduction=reduction, ignore_index=7)


def test_losses_of_one_or_two_scores_agree() -> None:
    x = np.array([[0.3, -2.0], [1.5, 7.25]], np.float32)
    for reduction in REDUCTIONS:
        for classes in ([0, 1], [1, 9], [9, 9]):
            agrees(ENTROPY, 13, x, np.array(classes), outputs=2, reduction=reduction, ignore_index=9)


def test_all_targets_ignored_and_no_targets_give_a_mean_that_is_nan() -> None:
    x = np.ones((2, 3), np.float32)
    for op_type in (LIKELIHOOD, ENTROPY):
        for reduction in REDUCTIONS:
            agrees(op_type, 13, x, np.array([5, 5]), reduction=reduction, ignore_index=5)
            agrees(op_type, 13, x[:0], np.zeros(0, np.int64), reduction=reduction)
            agrees(op_type, 13, x[:, :0], np.array([5, 5]), reduction=reduction, ignore_index=5)


def refusals() -> list[Application]:
    x, t = np.ones((2, 3), np.float32), np.array([0, 1])
    return [
        given
        for op_type in (LIKELIHOOD, ENTROPY)
        for given in (
            application(op_type, 13, x, t + 2),
            application(op_type, 13, x, t - 1),
            application(op_type, 13, x, t, reduction="product"),
            application(op_type, 13, x, t[:1]),
            application(op_type, 13, x, t[:, None]),
            application(op_type, 13, x[0], t),
            application(op_type, 13, x, t, np.ones(2, np.float32)),
        )
    ]


@table("given", [pytest.param(it, id=f"{it.op_type}-{k}") for k, it in enumerate(refusals())])
def test_what_the_definition_refuses_is_refused(given: Application) -> None:
    assert stuck(given)
    with pytest.raises(KernelError):
        computed(TABLE, given)
