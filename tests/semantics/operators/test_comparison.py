from __future__ import annotations

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
RELATIONS = {
    "Equal": ((7, 11, 13, 19), np.equal), "Less": ((7, 9, 13), np.less), "Greater": ((7, 9, 13), np.greater),
    "LessOrEqual": ((12, 16), np.less_equal), "GreaterOrEqual": ((12, 16), np.greater_equal),
}  # fmt: skip
CASES = [(name, version) for name, (versions, _) in RELATIONS.items() for version in versions]
LOGICAL = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}


def f(*values: float) -> Any:
    return np.array(values, F)


@table(("op_type", "version"), CASES)
def test_a_nan_stands_in_no_relation_and_zeros_are_equal(op_type: str, version: int, run: Run, same: Run) -> None:
    a, b = f(NAN, NAN, 1, 0, -0.0, -INF, INF), f(NAN, 1, NAN, -0.0, 0, INF, INF)
    expected = {
        "Equal": [False, False, False, True, True, False, True],
        "Less": [False, False, False, False, False, True, False],
        "Greater": [False] * 7,
        "LessOrEqual": [False, False, False, True, True, True, True],
        "GreaterOrEqual": [False, False, False, True, True, False, True],
    }[op_type]
    for dtype in (F, np.float16, np.float64, ml_dtypes.bfloat16):
        if admits(op_type, version, dtype):
            same(run(op_type, version, a.astype(dtype), b.astype(dtype)), np.array(expected))


@table(("op_type", "version"), CASES)
@table("dtype", [np.int8, np.int64, np.uint8, np.uint64])
def test_integers_are_compared_exactly(op_type: str, version: int, dtype: Any, run: Run, same: Run) -> None:
    if not admits(op_type, version, dtype):
        return
    info = np.iinfo(dtype)
    values = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype)
    same(run(op_type, version, values[:, None], values), RELATIONS[op_type][1](values[:, None], values))


@table("op_type", [*RELATIONS, *LOGICAL])
@table("shapes", [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (3, 0)), ((5, 1, 7), (2, 1)), ((1,), ())])
def test_shapes_broadcast(op_type: str, shapes: Any, run: Run, refused: Run, same: Run) -> None:
    rng = np.random.default_rng(1)
    dtype = np.bool_ if op_type in LOGICAL else np.int32
    a, b = (rng.integers(0, 2, size=shape).astype(dtype) for shape in shapes)
    version = 7 if op_type in LOGICAL else RELATIONS[op_type][0][-1]
    function = LOGICAL[op_type] if op_type in LOGICAL else RELATIONS[op_type][1]
    same(run(op_type, version, a, b), function(a, b))
    wrong = refused(op_type, version, np.zeros((2, 3), dtype), np.zeros((2,), dtype))
    assert "The shapes broadcast." in wrong


@pytest.mark.parametrize("version", [7, 11, 13, 19])
def test_truth_values_can_be_equal(version: int, run: Run, same: Run) -> None:
    a, b = np.array([True, True, False]), np.array([True, False, False])
    same(run("Equal", version, a, b), np.array([True, False, True]))


def test_texts_are_equal_when_their_bytes_are(run: Run, same: Run) -> None:
    a = np.array([b"a", b"", "ä".encode()], object)
    b = np.array([b"a", b" ", b"a"], object)
    same(run("Equal", 19, a, b), np.array([True, False, False]))


@pytest.mark.parametrize("op_type", LOGICAL)
def test_truth_tables(op_type: str, run: Run, same: Run) -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    same(run(op_type, 7, a, b), LOGICAL[op_type](a, b))


def test_not_negates(run: Run, same: Run) -> None:
    same(run("Not", 1, np.array([[True], [False]])), np.array([[False], [True]]))
    same(run("Not", 1, np.array(True)), np.array(False))
    same(run("Not", 1, np.zeros((0, 2), bool)), np.zeros((0, 2), bool))


@pytest.mark.parametrize("version", [9, 16])
def test_where_takes_elements_as_they_are(version: int, run: Run, same: Run) -> None:
    c = np.array([True, False, True, False])
    same(run("Where", version, c, f(-0.0, NAN, NAN, 1), f(1, -0.0, 2, NAN)), f(-0.0, -0.0, NAN, NAN))
    texts = np.array([b"a", b"b", b"", b"d"], object)
    same(run("Where", version, c, texts, np.array([b"x"], object)), np.array([b"a", b"x", b"", b"x"], object))
    z = np.array([1 + 2j, 0, 3j, 4], np.complex64)
    same(run("Where", version, c, z, np.zeros((), np.complex64)), np.array([1 + 2j, 0, 3j, 0], np.complex64))
    same(run("Where", version, c, c, ~c), np.array([True, True, True, True]))


@pytest.mark.parametrize(
    "shapes", [((2, 1), (3,), ()), ((), (2, 1), (3,)), ((5, 1, 1), (2, 1), (3,)), ((1,), (0,), (1, 1)), ((), (), ())]
)
def test_where_broadcasts_three_shapes(shapes: Any, run: Run, same: Run) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=shape).astype(F) for shape in shapes[1:])
    c = np.asarray(rng.normal(size=shapes[0]) > 0)
    same(run("Where", 16, c, x, y), np.where(c, x, y))


def test_where_refuses_shapes_that_do_not_broadcast(refused: Run) -> None:
    two, three = np.ones(2, F), np.ones(3, F)
    assert "The shapes broadcast." in refused("Where", 16, np.ones(2, bool), two, three)
    assert "The shapes broadcast." in refused("Where", 16, np.ones(3, bool), two, two)
