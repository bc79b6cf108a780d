from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from applications import Case
from equations import EQUATIONS
from fastpath_cases import agreement, computed, disagreements, every, stuck, unbroken, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernels.matrix import KERNELS
from tables import table

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
WHOLE = [np.int32, np.int64, np.uint32, np.uint64]
PAIRS = [
    ((3, 5), (5, 2)),
    ((5,), (5,)),
    ((5,), (5, 2)),
    ((3, 5), (5,)),
    ((2, 3, 5), (5, 2)),
    ((2, 1, 3, 5), (7, 5, 2)),
    ((7, 3, 5), (5,)),
    ((5,), (2, 5, 3)),
    ((0, 5), (5, 2)),
    ((3, 0), (0, 2)),
    ((2, 0, 3, 5), (5, 2)),
    ((2, 3, 0), (0, 2)),
    ((1, 5), (5, 1)),
    ((2, 3, 1), (2, 1, 4)),
]


@table("dtype", [*FLOATS, *WHOLE])
def test_matrices_of_each_type_agree_with_the_definition(dtype: Any) -> None:
    cases = [((whole("a", a, dtype, 0), whole("b", b, dtype, 0)), {}, 1) for a, b in PAIRS]
    assert not disagreements(KERNELS, "MatMul", 13, cases)


@table("dtype", FLOATS)
def test_a_sum_of_negative_zeros_is_one_of_them(dtype: Any) -> None:
    low, none = np.array([[-1, -0.0], [-1, 1], [0, 0]]).astype(dtype), np.zeros((2, 2), dtype)
    long = np.full((2, 40), -1).astype(dtype), np.zeros((40, 2), dtype)
    cases = [((low, none), {}, 1), ((none, -low[:2]), {}, 1), (long, {}, 1), ((long[0][0], long[1]), {}, 1)]
    assert not disagreements(KERNELS, "MatMul", 13, cases)
    assert not disagreements(KERNELS, "Gemm", 13, [cases[0], ((*cases[0][0], -none), {}, 1), (long, {}, 1)])
    assert not disagreements(
        KERNELS, "Einsum", 12, [((low[:, 0], low[:, 1] * low[:, 0] * dtype(0)), {"equation": "i,i->"}, 1)]
    )


@pytest.mark.parametrize("dtype", WHOLE)
def test_products_of_great_integers_wrap_around(dtype: Any) -> None:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    a, b = (np.array([[high, low, 3], [low, high, 2**24 + 1]], dtype) for _ in range(2))
    assert not disagreements(KERNELS, "MatMul", 13, [((a, b.T), {}, 1), ((a % 2**26, b.T % 2**26), {}, 1)])
    assert not disagreements(KERNELS, "Gemm", 13, [((a, b.T, a[:, :2]), {"alpha": -1.0, "beta": 3.0}, 1)])


def test_sums_of_integers_that_float_cannot_hold_are_exact() -> None:
    a, b = np.full((2, 3), 2**12 + 1, np.int64), np.full((3, 2), 2**12 + 3, np.int64)
    assert not disagreements(KERNELS, "MatMul", 13, [((a, b), {}, 1), ((a << 16, b << 16), {}, 1)])


def test_views_that_no_blas_takes_are_multiplied() -> None:
    x = whole("x", (4, 6, 10))
    for a, b in ((x[:, ::2, ::2], x[0, :5, :]), (x.transpose(2, 0, 1), x[:, :, 0].T), (x[::-1, ::-1, ::-1], x[0].T)):
        (found,) = computed(KERNELS, Application("MatMul", 13, (a, b), {}, (True,)))
        assert np.array_equal(found, np.ascontiguousarray(a) @ np.ascontiguousarray(b))


def test_an_infinity_and_a_nan_reach_the_sums_they_are_part_of() -> None:
    a = np.array([[np.inf, 1, 2], [0, np.nan, 1], [-np.inf, 2, 3]], np.float32)
    b = np.array([[1, 0, -1], [2, 3, 4], [-1, np.inf, 0]], np.float32)
    assert not disagreements(KERNELS, "MatMul", 13, [((a, b), {}, 1)])
    c = np.array([np.inf, np.nan, -np.inf], np.float32)
    assert not disagreements(KERNELS, "Gemm", 13, [((a, b, c), {"beta": 0.0}, 1)])


@pytest.mark.parametrize("version", [7, 9, 11, 13])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.uint64])
def test_each_gemm_agrees_with_the_definition(version: int, dtype: Any) -> None:
    cases: list[Case] = []
    for turned_a, turned_b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        a = whole("a", (5, 3) if turned_a else (3, 5), dtype, 0)
        b = whole("b", (2, 5) if turned_b else (5, 2), dtype, 0)
        for factors in ({}, {"alpha": 2.0, "beta": 0.5 if dtype in FLOATS else 3.0}):
            attributes = {"transA": turned_a, "transB": turned_b, **factors}
            cases += [((a, b, whole("c", c, dtype, 0)), attributes, 1) for c in ((), (2,), (1, 2), (3, 1), (3, 2))]
            cases.append(((a, b), attributes, 1))
    cases.append(((whole("a", (3, 0), dtype), whole("b", (0, 2), dtype), whole("c", (2,), dtype, 0)), {}, 1))
    assert not disagreements(KERNELS, "Gemm", version, cases)


def test_factors_are_rounded_to_the_element_type() -> None:
    for dtype in FLOATS:
        x = np.array([[1, 2], [4, 0.5]], np.float64).astype(dtype)
        case = ((x, x, x), {"alpha": float(np.float32(0.1)), "beta": float(np.float32(1 / 3))}, 1)
        assert not disagreements(KERNELS, "Gemm", 13, [case])


EVERY = [
    *EQUATIONS,
    ("ij,jk", (2, 1), (3, 4)),
    ("ij,ij->i", (0, 1), (1, 0)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 2)),
    ("ab,bc->", (2, 3), (3, 4)),
    ("...,...->...", (1, 2, 2), (3, 2, 1)),
    ("...i->i", (2, 3)),
    ("ij,ji->", (2, 3), (3, 2)),
    ("i,i->i", (3,), (3,)),
    ("i,i", (3,), (3,)),
    ("iij,jkk->ik", (2, 2, 3), (3, 4, 4)),
    ("ij,jk->ik", (2, 0), (0, 3)),
]
UNREADABLE = [
    ("ij", (2, 3), (3, 5)), ("ij,jk", (2, 2), (3, 4)), ("ii->ii", (2, 2)), ("ij->k", (2, 2)), ("i.j", (2, 2)),
    ("ij,k", (2, 2), (3, 3)), ("i1->i", (2, 2)), ("...i...->i", (2, 2, 2)), ("ij->i..j", (2, 2)), ("i", (2, 2)),
    ("ij->......", (2, 2)), ("ij...->i", (3,)), ("ii,i", (1, 3), (3,)), ("...,...->...", (2, 2), (3, 2, 2)),
]  # fmt: skip


@table("case", EVERY, ids=lambda case: case[0])
def test_each_equation_agrees_with_the_definition(case: tuple[Any, ...]) -> None:
    for dtype, version in [*((t, 12) for t in (np.float32, np.float16, np.int8, np.uint64)), (ml_dtypes.bfloat16, 28)]:
        operands = tuple(whole(k, shape, dtype, 0) for k, shape in enumerate(case[1:]))
        assert not disagreements(KERNELS, "Einsum", version, [(operands, {"equation": case[0]}, 1)])


@table("case", UNREADABLE, ids=lambda case: case[0])
def test_an_equation_that_does_not_fit_is_refused(case: tuple[Any, ...]) -> None:
    application = Application("Einsum", 12, tuple(map(np.ones, case[1:])), {"equation": case[0]}, (True,))
    assert stuck(application)
    assert not agreement(KERNELS, application)


def test_no_sum_is_taken_out_of_its_products() -> None:
    a, b = np.array([1, -2], np.float32), np.array([np.inf], np.float32)
    assert not disagreements(KERNELS, "Einsum", 12, [((a, b), {"equation": "i,j->j"}, 1)])


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.data())
def test_small_equations_agree_with_the_definition_or_both_refuse(data: st.DataObject) -> None:
    terms = data.draw(st.lists(st.text("abc", max_size=3), min_size=1, max_size=3))
    output = data.draw(st.none() | st.text("abc", max_size=3))
    equation = ",".join(terms) + ("" if output is None else f"->{output}")
    size = {label: data.draw(st.integers(0, 3)) for label in "abc"}
    odd = st.sampled_from([None, None, None, None, 1, 2])
    operands = tuple(whole(t, tuple(size[x] if (k := data.draw(odd)) is None else k for x in t)) for t in terms)
    assert not disagreements(KERNELS, "Einsum", 12, [(operands, {"equation": equation}, 1)])


def _bytes(a: tuple[int, ...], b: tuple[int, ...], *zeros: Any, a_type: Any = np.uint8, b_type: Any = np.uint8) -> Case:
    low = {np.uint8: (0, 255), np.int8: (-128, 127)}
    return (whole("a", a, a_type, *low[a_type]), whole("b", b, b_type, *low[b_type]), *zeros), {}, 1


def _zero(*shape: int, dtype: Any = np.uint8) -> Any:
    return whole("z", shape, dtype, 0, 100)


@pytest.mark.parametrize("a", [np.uint8, np.int8])
@pytest.mark.parametrize("b", [np.uint8, np.int8])
def test_bytes_less_their_zero_points_agree_with_the_definition(a: Any, b: Any) -> None:
    types = {"a_type": a, "b_type": b}
    cases = [_bytes(x, y, **types) for x, y in PAIRS]
    cases += [
        _bytes((3, 5), (5, 2), _zero(dtype=a), _zero(1, dtype=b), **types),
        _bytes((3, 5), (5, 2), _zero(3, dtype=a), _zero(2, dtype=b), **types),
        _bytes((3, 5), (5, 2), _zero(3, 1, dtype=a), _zero(1, 2, dtype=b), **types),
        _bytes((4, 3, 5), (5, 2), _zero(4, 3, 1, dtype=a), None, **types),
        _bytes((3, 5), (4, 5, 2), None, _zero(4, 1, 2, dtype=b), **types),
    ]
    assert not disagreements(KERNELS, "MatMulInteger", 10, cases)


def _floats(*shapes: tuple[int, ...]) -> Case:
    return tuple(whole(k, shape) for k, shape in enumerate(shapes)), {}, 1


BROKEN = {
    "MatMul": [_floats((), (2,)), _floats((2,), ()), _floats((2, 3), (2, 3)), _floats((2, 2, 3), (3, 3, 2))],
    "Gemm": [
        _floats((2, 3), (2, 3), ()),
        _floats((2, 3), (3, 2), (3,)),
        _floats((2, 3), (3, 2), (1, 1, 1)),
        _floats((2, 3), (3, 2), (3, 1)),
        (tuple(whole(k, (2, 2), np.int32) for k in range(3)), {"alpha": 0.5}, 1),
        (tuple(whole(k, (2, 2), np.int32) for k in range(3)), {"beta": 0.5}, 1),
        _floats((2,), (2, 2), ()),
    ],
    "Einsum": [(_floats((2, 2), (3, 4))[0], {"equation": "ij,jk"}, 1), (_floats((1, 3))[0], {"equation": "ii"}, 1)],
    "MatMulInteger": [
        _bytes((), (2,)),
        _bytes((2, 3), (2, 3)),
        _bytes((2, 2, 3), (3, 3, 2)),
        _bytes((2, 3), (3, 2), _zero(3)),
        _bytes((2, 3), (3, 4), _zero(), _zero(3)),
        _bytes((3,), (3, 2), _zero(3)),
    ],
}  # fmt: skip


@table(("op_type", "version"), every(KERNELS))
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    gemm_7 = {"For integers alpha and beta are integers."} if (op_type, version) == ("Gemm", 7) else set()
    assert unbroken(op_type, version, BROKEN[op_type]) == gemm_7, "version 7 has no integers"
    assert not disagreements(KERNELS, op_type, version, BROKEN[op_type])
