"""The picture of a tensor: each element counts in one cell, and what is not finite is never lost in one."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from sonnx.semantics.debugger.tui.grid import (
    INF,
    LARGEST,
    MEAN,
    MINUS_INF,
    NAN,
    NOTHING,
    NUMBER,
    Grid,
    Slice,
    cell_text,
    element,
    elements,
    first_slice,
    grid,
)  # fmt: skip
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Sequence, Value


def made(value: np.ndarray, wanted: Slice | None, rows: int, columns: int) -> Grid:
    picture = grid(value, wanted, rows, columns)
    assert isinstance(picture, Grid)
    assert picture.cells.shape[0] <= rows and picture.cells.shape[1] <= columns
    return picture


def box(picture: Grid, row: int, column: int) -> tuple[slice, ...]:
    return tuple(slice(*it) for it in elements(picture, row, column))


@pytest.mark.parametrize("way", [LARGEST, MEAN])
@pytest.mark.parametrize("seed", range(4))
def test_a_cell_is_what_its_elements_are(seed: int, way: str) -> None:
    rng = np.random.default_rng(seed)
    for shape, (down, across), cells in product([(3, 5, 7), (1, 11, 13)], [(1, 2), (2, 0), (0, 1)], [(4, 3), (20, 20)]):
        value = rng.normal(size=shape).astype(np.float32)
        value[rng.random(shape) < 0.05] = np.nan
        value[rng.random(shape) < 0.05] = np.inf
        value[rng.random(shape) < 0.05] = -np.inf
        index = tuple(int(rng.integers(n)) for n in shape)
        picture = made(value, Slice(down, across, index, way), *cells)
        seen = np.zeros(shape, np.int64)
        for row, column in np.ndindex(picture.cells.shape):
            part = value[box(picture, row, column)].astype(np.float64)
            seen[box(picture, row, column)] += 1
            finite = part[np.isfinite(part)]
            worst = NAN if np.isnan(part).any() else INF if np.isposinf(part).any() else MINUS_INF
            assert picture.kinds[row, column] == (NUMBER if finite.size == part.size else worst)
            if finite.size:
                largest = finite[np.abs(finite).argmax()]
                wanted = finite.mean() if way == MEAN else largest
                assert np.isclose(picture.cells[row, column], wanted, rtol=1e-12, atol=0)
            at = element(picture, row, column)
            assert all(a <= i < b for (a, b), i in zip(elements(picture, row, column), at, strict=True))
            assert np.isfinite(value[at]) == (picture.kinds[row, column] == NUMBER)
        plane = value[tuple(slice(None) if i in (down, across) else at for i, at in enumerate(index))]
        assert seen.sum() == seen.max() * plane.size == plane.size
        assert picture.counts == (np.isnan(plane).sum(), np.isposinf(plane).sum(), np.isneginf(plane).sum())
        assert picture.least == plane[np.isfinite(plane)].min() and picture.greatest == plane[np.isfinite(plane)].max()


@pytest.mark.parametrize("size", [1, 4, 5, 10, 11, 100])
def test_one_axis_is_folded_into_rows_and_has_nothing_behind_its_end(size: int) -> None:
    value = np.arange(1, size + 1, dtype=np.int64)
    picture = made(value, None, 4, 5)
    for row, column in np.ndindex(picture.cells.shape):
        if picture.kinds[row, column] == NOTHING:
            assert not value[slice(*elements(picture, row, column)[0])].size
        else:
            assert element(picture, row, column)[0] + 1 == picture.cells[row, column]
    assert (picture.least, picture.greatest, picture.counts) == (1.0, float(size), (0, 0, 0))


def test_the_text_of_a_cell_is_its_element_to_the_last_bit_or_says_what_it_sums_up() -> None:
    third = np.array([[1 / 3, np.nan], [-np.inf, 2]], np.float32)
    picture = made(third, None, 2, 2)
    assert [cell_text(picture, *at) for at in np.ndindex(2, 2)] == ["0.33333334", "nan", "-inf", "2.0"]
    assert cell_text(made(third, None, 1, 1), 0, 0) == "1 nan, 1 -inf, largest magnitude 2"
    assert cell_text(made(third[:1, 1:], None, 1, 1), 0, 0) == "nan"
    assert elements(made(np.array(2.5), None, 3, 3), 0, 0) == element(made(np.array(2.5), None, 3, 3), 0, 0) == ()


def test_a_slice_that_a_tensor_does_not_have_is_its_first_one() -> None:
    value = np.zeros((2, 3, 4), ml_dtypes.bfloat16)
    for wanted in (None, Slice(0, 1, (0, 0)), Slice(1, 2, (2, 0, 0))):
        assert made(value, wanted, 9, 9).slice == first_slice(value.shape) == Slice(1, 2, (0, 0, 0))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (np.zeros((0, 3)), "no elements"),
        (np.array([b"a"], object), "elements of type string have no picture: print shows them"),
        (np.zeros(2, np.complex64), "elements of type complex64 have no picture: print shows them"),
        (Sequence(ValueType("tensor", "float"), ()), "a sequence, a map or an optional has no picture: print shows it"),
    ],
)
def test_what_has_no_picture_says_so(value: Value, why: str) -> None:
    assert grid(value, None, 4, 4) == why
