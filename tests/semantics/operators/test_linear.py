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
GEMM = [7, 9, 11, 13]


def _integral(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = F) -> Any:
    """Small integers, for which every order of summation gives the same bits."""
    return rng.integers(-4, 5, shape).astype(dtype)


@table("version", [1, 9, 13])
@table(
    ("a", "b"),
    [((2, 3), (3, 5)), ((3,), (3, 5)), ((2, 3), (3,)), ((3,), (3,)), ((7, 1, 2, 3), (5, 3, 2)), ((2, 0), (0, 3)),
     ((4, 2, 3), (3,)), ((3,), (4, 3, 2)), ((0, 3), (3, 2)), ((1, 2, 3), (0, 3, 2))],
)  # fmt: skip
def test_matmul_is_numpy_matmul(version: int, a: Any, b: Any, run: Run, same: Run) -> None:
    rng = np.random.default_rng(1)
    x, y = _integral(rng, a), _integral(rng, b)
    same(run("MatMul", version, x, y), np.matmul(x, y))


def test_matmul_refuses_scalars_and_shapes_that_do_not_fit(refused: Run) -> None:
    assert "scalar" in refused("MatMul", 13, np.array(1, F), np.ones(3, F))
    assert "inner dimensions" in refused("MatMul", 13, np.ones((2, 3), F), np.ones((2, 3), F))
    assert "The axes before the matrices broadcast." in refused(
        "MatMul", 13, np.ones((2, 2, 3), F), np.ones((3, 3, 2), F)
    )


def test_matmul_accumulates_from_the_first_term_upwards(run: Run, same: Run) -> None:
    row = np.array([[1e30, -1e30, 1.0]], F)
    same(run("MatMul", 13, row, np.ones((3, 1), F)), np.array([[1]], F))
    same(run("MatMul", 13, row[:, ::-1].copy(), np.ones((3, 1), F)), np.array([[0]], F))
    same(run("MatMul", 13, np.array([-0.0], F), np.array([1], F)), np.array(-0.0, F))


def test_matmul_of_integers_wraps_around(run: Run, same: Run) -> None:
    x = np.array([[2**31 - 1, 2]], np.int32)
    same(run("MatMul", 9, x, x.T.copy()), np.array([[((2**31 - 1) ** 2 + 4 + 2**31) % 2**32 - 2**31]], np.int32))


@table("version", GEMM)
@table("transA", [0, 1, 2])
@table("transB", [0, 1])
@table("c", [(), (1,), (5,), (2, 1), (1, 5), (2, 5), (1, 1)])
def test_gemm_is_alpha_times_product_plus_beta_times_c(
    version: int, transA: int, transB: int, c: Any, run: Run, same: Run
) -> None:
    rng = np.random.default_rng(2)
    a, b, z = _integral(rng, (2, 3)), _integral(rng, (3, 5)), _integral(rng, c)
    x, y = (a.T.copy() if transA else a), (b.T.copy() if transB else b)
    found = run("Gemm", version, x, y, z, alpha=0.5, beta=-2.0, transA=transA, transB=transB)
    same(found, F(0.5) * (a @ b) + F(-2) * z)


@pytest.mark.parametrize("version", [11, 13])
def test_gemm_without_c_adds_0(version: int, run: Run, same: Run) -> None:
    a = np.array([[-0.0]], F)
    same(run("Gemm", version, a, np.ones((1, 2), F)), np.array([[0.0, 0.0]], F))
    same(run("Gemm", version, np.ones((2, 3), F), np.ones((3, 1), F), alpha=2.0), np.full((2, 1), 6, F))


@pytest.mark.parametrize("version", GEMM)
def test_gemm_reads_c_even_where_beta_is_0(version: int, run: Run) -> None:
    one = np.ones((1, 1), F)
    assert np.isnan(run("Gemm", version, one, one, np.array([NAN], F), beta=0.0)).all()


@pytest.mark.parametrize("version", GEMM)
def test_gemm_without_terms_is_beta_times_c(version: int, run: Run, same: Run) -> None:
    found = run("Gemm", version, np.ones((2, 0), F), np.ones((0, 3), F), np.ones((3,), F), beta=3.0)
    same(found, np.full((2, 3), 3, F))


@pytest.mark.parametrize("version", GEMM)
def test_gemm_refuses_shapes_that_do_not_fit(version: int, refused: Run) -> None:
    a, b = np.ones((2, 3), F), np.ones((3, 5), F)
    assert "inner dimensions" in refused("Gemm", version, a, b, np.ones((1,), F), transA=1)
    assert "C broadcasts" in refused("Gemm", version, a, b, np.ones((2,), F))
    assert "C broadcasts" in refused("Gemm", version, a, b, np.ones((1, 2, 5), F))
    assert "C broadcasts" in refused("Gemm", version, np.ones((1, 3), F), b, np.ones((2, 5), F))


@pytest.mark.parametrize("version", [9, 11, 13])
def test_gemm_of_integers_takes_integers_alpha_and_beta_only(version: int, run: Run, refused: Run, same: Run) -> None:
    a = np.array([[3, 4]], np.int64)
    c = np.array([10], np.int64)
    same(run("Gemm", version, a, a, c, transB=1, alpha=-2.0, beta=3.0), np.array([[-20]], np.int64))
    assert "integers" in refused("Gemm", version, a, a, c, transB=1, alpha=0.5)


def test_gemm_of_bfloat16_rounds_each_operation(run: Run, same: Run) -> None:
    t = ml_dtypes.bfloat16
    a = np.array([[1, 2**-8, 2**-8]], t)
    same(run("Gemm", 13, a, np.ones((3, 1), t), alpha=1.0), np.array([[1]], t))
