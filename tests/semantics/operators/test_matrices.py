from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.operators.application import Application
from sonnx.semantics.operators.compiled import bound, exact
from sonnx.semantics.operators.compiled.elements.bounds.verdict import judge

F, D, H = np.float32, np.float64, np.float16
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(13)


def _determinant(a: Any) -> Fraction:
    """By cofactors of the first row, exact."""
    if not len(a):
        return Fraction(1)
    signed = ((-1) ** j * Fraction(float(x)) for j, x in enumerate(a[0]))
    return sum((x * _determinant(np.delete(a[1:], j, 1)) for j, x in enumerate(signed)), Fraction(0))


def _eliminated(a: Any, order: str) -> Any:
    """The determinant of a matrix in float, its factors made row by row, column by column, or in float with products
    in double."""
    a, sign, m = a.copy(), F(1), len(a)
    for k in range(m):
        p = k + int(np.argmax(np.abs(a[k:, k]))) if order != "left" else k
        if order == "left":  # column k is brought up to date only now
            for j in range(1, k + 1):
                a[j, k] -= F(sum((a[j, i] * a[i, k] for i in reversed(range(j))), F(0)))
            for i in range(k + 1, m):
                a[i, k] -= F(sum((a[i, j] * a[j, k] for j in reversed(range(k))), F(0)))
            p = k + int(np.argmax(np.abs(a[k:, k])))
        if p != k:
            a[[k, p]], sign = a[[p, k]], -sign
        if a[k, k] == 0:
            continue
        a[k + 1 :, k] /= a[k, k]
        if order == "right":
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        if order == "wide":
            products = np.outer(a[k + 1 :, k].astype(D), a[k, k + 1 :].astype(D))
            a[k + 1 :, k + 1 :] = (a[k + 1 :, k + 1 :] - products).astype(F)
    return sign * np.multiply.accumulate(np.diag(a))[-1]


def test_a_determinant_is_exact_in_the_exact_interpretation() -> None:
    for m in range(5):
        a = RNG.integers(-4, 5, (2, m, m)).astype(D)
        found = exact.apply(Application("Det", 22, (a,), {}, (True,)))
        assert list(found.values[0]) == [_determinant(x) for x in a]


def test_determinants_of_batches_by_elimination(run: Run, same: Check) -> None:
    x = RNG.normal(size=(2, 3, 4, 4))
    np.testing.assert_allclose(run("Det", 11, x), np.linalg.det(x), rtol=1e-12)
    same(run("Det", 11, np.array([[1, 2], [4, 2]], F)), np.array(-6, F))
    same(run("Det", 11, np.array([[0, 0], [0, 5]], F)), np.array(0, F))
    same(run("Det", 22, np.zeros((3, 0, 0), H)), np.ones(3, H))
    same(run("Det", 22, np.array([[3]], H)), np.array(3, H))
    assert np.isnan(run("Det", 22, np.array([[1, np.nan], [1, 1]], F)))


@pytest.mark.parametrize("order", ["right", "left", "wide"])
def test_the_bound_of_a_determinant_holds_for_each_order_of_the_elimination(order: str) -> None:
    judged = 0
    for m in range(1, 7):
        for x in RNG.normal(size=(12, m, m)).astype(F) * F(10) ** RNG.integers(-3, 4, (12, m, 1)).astype(F):
            try:
                allowed = bound.apply(Application("Det", 11, (x,), {}, (True,))).values[0]
            except Unsupported:
                continue
            judged += 1
            assert judge(allowed, np.asarray(_eliminated(x, order))).holds, x
            assert not judge(allowed, np.asarray(_eliminated(x, order) * F(1.01) + F(1e-30))).holds or m > 4, x
    assert judged > 60


def test_where_rounding_may_choose_another_pivot_there_is_no_bound() -> None:
    x = np.array([[3, 1, 0], [1, 2, 1], [1, 2, 5]], F)
    with pytest.raises(Unsupported):
        bound.apply(Application("Det", 11, (x,), {}, (True,)))


def test_det_refuses_what_is_no_matrix(refused: Run) -> None:
    assert "rows and columns" in refused("Det", 22, np.zeros(3, F))
    assert "square" in refused("Det", 22, np.zeros((2, 3), F))
