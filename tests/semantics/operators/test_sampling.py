from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from math import floor, prod
from typing import Any

import numpy as np
import pytest

F, D, H = np.float32, np.float64, np.float16
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(12)

# ---- GridSample ---------------------------------------------------------------------------------


def _mirrored(i: float, low: float, high: float) -> float:
    """A place, mirrored at both edges again and again."""
    while high > low and not low <= i <= high:
        i = 2 * low - i if i < low else 2 * high - i
    return i if high > low else 0


def _element(x: Any, at: Iterable[int], padding: str, corners: int) -> float:
    index = []
    for i, d in zip(at, x.shape, strict=True):
        if padding == "zeros" and not 0 <= i < d:
            return 0.0
        edge = 0 if corners else 0.5
        index.append(min(max(i, 0), d - 1) if padding != "reflection" else int(_mirrored(i, -edge, d - 1 + edge)))
    return float(x[tuple(index)])


def _weights(how: str, t: float) -> dict[int, float]:
    if how == "linear":
        return {0: 1 - t, 1: t}
    a = -0.75
    near, far = (lambda u: (a + 2) * u**3 - (a + 3) * u**2 + 1), (lambda u: a * (u**3 - 5 * u**2 + 8 * u - 4))
    return {-1: far(1 + t), 0: near(t), 1: near(1 - t), 2: far(2 - t)}


def _sample(x: Any, place: Any, how: str, padding: str, corners: int) -> float:
    """The sample of data at a place, in double."""
    pairs = list(zip(reversed(place), x.shape, strict=True))
    at = [(v + 1) / 2 * (d - 1) if corners else ((v + 1) * d - 1) / 2 for v, d in pairs]
    if how == "nearest":
        return _element(x, [round(i) for i in at], padding, corners)
    edge = 0 if corners else 0.5
    if padding == "reflection":
        at = [_mirrored(i, -edge, d - 1 + edge) for i, d in zip(at, x.shape, strict=True)]
    taps = [[(floor(i) + k, w) for k, w in _weights(how, i - floor(i)).items()] for i in at]
    return sum(
        prod(w for _, w in chosen) * _element(x, [i for i, _ in chosen], padding, corners) for chosen in product(*taps)
    )


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("how", ["linear", "nearest", "cubic"])
def test_data_are_sampled_at_the_places_of_a_grid(how: str, padding: str, corners: int, run: Run) -> None:
    for sizes, places in (((5,), (4,)), ((4, 5), (2, 3)), ((3, 1, 2), (2, 1, 2))):
        x = RNG.normal(size=(2, 1, *sizes))
        grid = RNG.uniform(-2.2, 2.2, (2, *places, len(sizes)))
        grid[0] = RNG.integers(-5, 6, grid[0].shape) / 4
        stated = {"mode": how, "padding_mode": padding, "align_corners": corners}
        found = run("GridSample", 22, x, grid, **stated)
        assert found.shape == (2, 1, *places)
        for b, at in product(range(2), np.ndindex(*places)):
            expected = _sample(x[b, 0], grid[b][at], how, padding, corners)
            assert found[b, 0][at] == pytest.approx(expected, rel=1e-12, abs=1e-12), (sizes, grid[b][at])
        if len(sizes) == 2:
            earlier = {"linear": "bilinear", "cubic": "bicubic"}.get(how, how)
            np.testing.assert_array_equal(run("GridSample", 16, x, grid, **stated | {"mode": earlier}), found)
            np.testing.assert_array_equal(run("GridSample", 20, x, grid, **stated), found)


def test_grid_sample_special_cases(run: Run, refused: Run, same: Check) -> None:
    x, grid = np.array([[[1, 2, 4]]], F), np.array([[[-1], [1 / 3], [9]]], F)
    same(run("GridSample", 20, x, grid, padding_mode="border"), np.array([[[1, 3, 4]]], F))
    same(run("GridSample", 20, x.astype(np.uint8), grid, padding_mode="border"), np.array([[[1, 3, 4]]], np.uint8))
    same(run("GridSample", 20, x > 1, grid, mode="nearest"), np.array([[[False, True, False]]]))
    same(run("GridSample", 20, x.astype(H), grid.astype(H), padding_mode="border"), np.array([[[1, 3, 4]]], H))
    mean = run("GridSample", 20, np.array([[[1 + 2j, 3 + 6j]]], np.complex64), grid[:, :1] * F(0))
    same(mean, np.array([[[2 + 4j]]], np.complex64))
    assert run("GridSample", 20, x, grid[:, :0]).shape == (1, 1, 0)

    def why(x: Any, grid: Any, version: int = 20, **attributes: Any) -> str:
        return refused("GridSample", version, x, grid, **attributes)

    assert "batch" in why(x, grid.repeat(2, 0))
    assert "coordinate" in why(x, grid.repeat(2, 2))
    assert "mode is" in why(x, grid, mode="bilinear")
    assert "mode is" in why(x[None], np.zeros((1, 1, 1, 2), F), 16, mode="linear")
    assert "two coordinates" in why(x[None], np.zeros((1, 1, 1, 1), F), 16)
    assert "padding_mode" in why(x, grid, padding_mode="edge")
    assert "averaged" in why(x > 1, grid)
    assert "not empty" in why(x[..., :0], grid)
    assert "spatial axis" in why(x[0], grid[:, 0])
    assert "finite" in why(x, grid * F(np.inf))
