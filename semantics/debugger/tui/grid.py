"""A picture of a tensor as data: two of its axes, summed up to so many cells, with what is not finite marked apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...model.elements import element_of
from ...model.values import Array, Value
from ..display.texts import element_text

NUMBER, NAN, INF, MINUS_INF, NOTHING = range(5)
"""What a cell is: a number; the worst that one of its elements is; outside of the tensor."""
LARGEST, MEAN = "largest magnitude", "mean"
WAYS: Final = (LARGEST, MEAN)
"""What stands for several elements: the finite one of the largest magnitude, or the mean of the finite ones."""


@dataclass(frozen=True, slots=True)
class Slice:
    """down, across: the axes that are shown, equal for a tensor of one axis, which is folded into rows. index: the
    positions on all axes, of which those of the two are not minded. way: one of WAYS."""

    down: int
    across: int
    index: tuple[int, ...]
    way: str = LARGEST


def first_slice(shape: tuple[int, ...]) -> Slice:
    """The last two axes, at the first position of the others."""
    rank = len(shape)
    return Slice(max(rank - 2, 0), max(rank - 1, 0), (0,) * rank)


@dataclass(frozen=True, slots=True)
class Grid:
    """shape: of the tensor. plane: the elements. cells, kinds: one for each cell. block: how many elements of the plane
    a cell has, down and across. folded: elements in a row where a tensor of one axis is folded, else 0. least,
    greatest: of the finite elements of the plane; None where there are none. counts: how many are NaN, infinite and
    minus infinite."""

    shape: tuple[int, ...]
    slice: Slice
    plane: Array
    cells: NDArray[np.float64]
    kinds: NDArray[np.uint8]
    block: tuple[int, int]
    folded: int
    least: float | None
    greatest: float | None
    counts: tuple[int, int, int]


def grid(value: Value, wanted: Slice | None, rows: int, columns: int) -> Grid | str:
    """The picture of a slice in at most so many cells down and across, or why there is none. Where no slice is wanted,
    or the tensor has none like that, the first one."""
    if not isinstance(value, np.ndarray):
        return "a sequence, a map or an optional has no picture: print shows it"
    if value.dtype == object or value.dtype.kind == "c":
        return f"elements of type {element_of(value.dtype)} have no picture: print shows them"
    if not value.size:
        return "no elements"
    if wanted is None or len(wanted.index) != value.ndim or any(map(int.__ge__, wanted.index, value.shape)):
        wanted = first_slice(value.shape)
    rows, columns = max(rows, 1), max(columns, 1)
    if value.ndim < 2:
        folded = min(columns, value.size)
        lines = -(-value.size // folded)
        padded = np.zeros((lines * folded,), value.dtype)
        padded[: value.size] = value.reshape(-1)
        plane, outside = np.asarray(padded.reshape(lines, folded)), lines * folded - value.size
    else:
        folded = outside = 0
        keep = {wanted.down, wanted.across}
        plane = value[tuple(slice(None) if i in keep else at for i, at in enumerate(wanted.index))]
        plane = plane if wanted.down < wanted.across else plane.T
    height, width = plane.shape[0], plane.shape[1]
    down, across = -(-height // rows), -(-width // columns)
    starts = np.arange(0, width, across)
    cells = np.zeros((-(-height // down), len(starts)))
    kinds = np.zeros(cells.shape, np.uint8)
    least, greatest = np.inf, -np.inf
    counts = np.zeros(3, np.int64)
    for i, top in enumerate(range(0, height, down)):
        part = plane[top : top + down].astype(np.float64)
        there = np.ones(part.shape, np.bool_)
        if outside and top + down >= height:
            there[-1, width - outside :] = False
        cells[i], kinds[i], ends, wild = _row(part, there, starts, wanted.way)
        least, greatest, counts = min(least, ends[0]), max(greatest, ends[1]), counts + wild
    finite = bool(least <= greatest)
    return Grid(
        value.shape, wanted, plane, cells, kinds, (down, across), folded,
        float(least) if finite else None, float(greatest) if finite else None,
        (int(counts[0]), int(counts[1]), int(counts[2])),
    )  # fmt: skip


def _row(
    part: NDArray[np.float64], there: NDArray[np.bool_], starts: NDArray[np.int64], way: str
) -> tuple[NDArray[np.float64], NDArray[np.uint8], tuple[float, float], NDArray[np.int64]]:
    """The cells of one row, their kinds, the least and the greatest element, and the counts."""
    finite = np.isfinite(part) & there
    high = np.maximum.reduceat(np.where(finite, part, -np.inf).max(axis=0), starts)
    low = np.minimum.reduceat(np.where(finite, part, np.inf).min(axis=0), starts)
    count = np.add.reduceat(finite.sum(axis=0), starts)
    if way == MEAN:
        cells = np.add.reduceat(np.where(finite, part, 0.0).sum(axis=0), starts) / np.maximum(count, 1)
    else:
        cells = np.where(high >= -low, high, low)
    kinds = np.full(cells.shape, NUMBER, np.uint8)
    kinds[np.add.reduceat(there.sum(axis=0), starts) == 0] = NOTHING
    wild = [np.isneginf(part) & there, np.isposinf(part) & there, np.isnan(part) & there]
    for kind, mask in zip((MINUS_INF, INF, NAN), wild, strict=True):
        kinds[np.logical_or.reduceat(mask.any(axis=0), starts)] = kind
    totals = np.array([int(mask.sum()) for mask in reversed(wild)], np.int64)
    return np.where(count > 0, cells, 0.0), kinds, (float(low.min()), float(high.max())), totals


def elements(picture: Grid, row: int, column: int) -> tuple[tuple[int, int], ...]:
    """For each axis of the tensor the first position of a cell and the one behind its last. A folded tensor has one
    axis, and a cell of several rows reaches from its first element to its last; a scalar has none."""
    (down, across), height, width = picture.block, picture.plane.shape[0], picture.plane.shape[1]
    top, left = row * down, column * across
    bottom, right = min(top + down, height), min(left + across, width)
    if not picture.slice.index:
        return ()
    if picture.folded:
        return ((top * picture.folded + left, (bottom - 1) * picture.folded + right),)
    wanted = picture.slice
    shown = {wanted.down: (top, bottom), wanted.across: (left, right)}
    return tuple(shown.get(i, (at, at + 1)) for i, at in enumerate(wanted.index))


def element(picture: Grid, row: int, column: int) -> tuple[int, ...]:
    """The position of the element that a cell is coloured for: of its kind, or of the largest magnitude, the first."""
    (down, across), width = picture.block, picture.plane.shape[1]
    top, left = row * down, column * across
    part = picture.plane[top : top + down, left : left + across].astype(np.float64)
    kind = int(picture.kinds[row, column])
    like = {NAN: np.isnan(part), INF: np.isposinf(part), MINUS_INF: np.isneginf(part)}.get(kind)
    ranked = np.where(np.isfinite(part), np.abs(part), 0.0) if like is None else like
    i, j = divmod(int(ranked.argmax()), part.shape[1])
    if not picture.slice.index:
        return ()
    if picture.folded:
        return ((top + i) * width + left + j,)
    shown = {picture.slice.down: top + i, picture.slice.across: left + j}
    return tuple(shown.get(axis, at) for axis, at in enumerate(picture.slice.index))


def cell_text(picture: Grid, row: int, column: int) -> str:
    """The value of a cell: the element, or what the elements have in common with the picture."""
    kind = picture.kinds[row, column]
    if kind == NOTHING:
        return ""
    if picture.block == (1, 1):
        return element_text(np.asarray(picture.plane[row, column], picture.plane.dtype))
    (down, across) = picture.block
    part = picture.plane[row * down : (row + 1) * down, column * across : (column + 1) * across].astype(np.float64)
    wild = [
        f"{count} {name}"
        for name, count in (
            ("nan", int(np.isnan(part).sum())),
            ("inf", int(np.isposinf(part).sum())),
            ("-inf", int(np.isneginf(part).sum())),
        )
        if count
    ]
    finite = [f"{picture.slice.way} {picture.cells[row, column]:.6g}"] if np.isfinite(part).any() else []
    return ", ".join([*wild, *finite])
