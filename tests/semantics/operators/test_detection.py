from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

F, D, H = np.float32, np.float64, np.float16
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(11)

# ---- NonMaxSuppression --------------------------------------------------------------------------

BOXES = np.array([[[0, 0, 2, 2], [0, 0, 2, 1], [5, 5, 4, 4], [0, 1, 2, 3]]], F)
"""The second box is half of the first; the last one has a third of it and itself in common with the first."""
SCORES = np.array([[[0.5, 0.75, 0.25, 0.5]]], F)


def _selected(run: Run, *inputs: Any, version: int = 11, **attributes: Any) -> Any:
    found = run("NonMaxSuppression", version, *inputs, **attributes)
    assert found.dtype == np.int64
    assert found.shape[1:] == (3,)
    return found.tolist()


@pytest.mark.parametrize("version", [10, 11])
def test_boxes_are_selected_by_score_and_those_that_overlap_are_removed(version: int, run: Run) -> None:
    most = np.array([9])
    for bound, order in ((0, [1, 3, 2]), (0.25, [1, 3, 2]), (0.4, [1, 3, 2]), (0.5, [1, 0, 3, 2]), (1, [1, 0, 3, 2])):
        found = _selected(run, BOXES, SCORES, most, np.array(bound, F), version=version)
        assert found == [[0, 0, j] for j in order], bound


def test_a_quotient_equal_to_the_threshold_is_not_too_great(run: Run) -> None:
    boxes = BOXES[:, :2]
    assert _selected(run, boxes, SCORES[..., :2], np.array(9), np.array(0.5, F)) == [[0, 0, 1], [0, 0, 0]]
    below = np.nextafter(F(0.5), F(0))
    assert _selected(run, boxes, SCORES[..., :2], np.array(9), np.array(below)) == [[0, 0, 1]]


def test_a_score_equal_to_the_threshold_stays_and_of_equal_scores_the_first_is_selected(run: Run) -> None:
    one, half = np.array([1], F), np.array([0.5], F)
    assert _selected(run, BOXES, SCORES, np.array([9]), one, half) == [[0, 0, 1], [0, 0, 0], [0, 0, 3]]
    scores = np.array([[[0, np.nan, -0.0, -np.inf]]], F)
    assert [j for *_, j in _selected(run, BOXES, scores, np.array([9]), one)] == [1, 0, 2, 3]
    assert [j for *_, j in _selected(run, BOXES, scores, np.array([9]), one, one)] == [1]


def test_each_class_of_each_member_of_the_batch_is_for_itself(run: Run) -> None:
    boxes, scores = np.concatenate([BOXES, BOXES[:, ::-1]]), np.concatenate([SCORES, 1 - SCORES], 1).repeat(2, 0)
    found = _selected(run, boxes, scores, np.array([1]), np.array([0.5], F))
    assert found == [[0, 0, 1], [0, 1, 2], [1, 0, 1], [1, 1, 2]]


def test_as_many_are_selected_as_are_wanted(run: Run) -> None:
    one = np.array([1], F)
    assert [len(_selected(run, BOXES, SCORES, np.array(k), one)) for k in (-1, 0, 2, 4, 1 << 40)] == [0, 0, 2, 4, 4]
    assert _selected(run, BOXES, SCORES) == []
    assert _selected(run, BOXES[:, :0], SCORES[..., :0], np.array(3)) == []


def test_boxes_may_be_given_by_centre_and_size(run: Run) -> None:
    ordered = np.sort(BOXES.reshape(1, -1, 2, 2), 2)
    centred = np.concatenate([ordered.mean(2), ordered[:, :, 1] - ordered[:, :, 0]], -1)
    for bound in (0, 0.25, 0.4, 0.5):
        wanted = np.array(9), np.array(bound, F)
        assert _selected(run, centred, SCORES, *wanted, center_point_box=1) == _selected(run, BOXES, SCORES, *wanted)


def test_non_max_suppression_refuses_what_has_no_meaning(refused: Run) -> None:
    def why(*inputs: Any, **attributes: Any) -> str:
        return refused("NonMaxSuppression", 11, *inputs, **attributes)

    two, one = np.array([2]), np.array([1], F)
    assert "four numbers" in why(BOXES[..., :3], SCORES, two)
    assert "a score for each class" in why(BOXES, SCORES[..., :3], two)
    assert "max_output_boxes_per_class is one" in why(BOXES, SCORES, two.repeat(2))
    assert "iou_threshold is one" in why(BOXES, SCORES, two, one.repeat(2))
    assert "score_threshold is one" in why(BOXES, SCORES, two, one, one.repeat(2))
    assert "0 .. 1" in why(BOXES, SCORES, two, one + 1)
    assert "center_point_box" in why(BOXES, SCORES, two, center_point_box=2)


# ---- AffineGrid ---------------------------------------------------------------------------------


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("sizes", [(2, 3), (4, 2, 5)])
def test_an_affine_grid_moves_the_places_of_an_image(sizes: tuple[int, ...], align: int, run: Run) -> None:
    theta = RNG.normal(size=(2, len(sizes), len(sizes) + 1))
    lines = [np.linspace(-1, 1, k) if align else (2 * np.arange(k) + 1) / k - 1 for k in sizes]
    axes = reversed(np.meshgrid(*lines, indexing="ij"))
    places = np.stack([*axes, np.ones(sizes)], -1)
    found = run("AffineGrid", 20, theta, np.array([2, 7, *sizes]), align_corners=align)
    assert found.shape == (2, *sizes, len(sizes))
    expected = np.stack([places @ one.T for one in theta])
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
    half = run("AffineGrid", 20, theta.astype(H), np.array([2, 7, *sizes]), align_corners=align)
    assert half.dtype == H


def test_an_affine_grid_of_what_is_no_image_is_refused(refused: Run) -> None:
    theta = np.zeros((1, 2, 3), F)

    def why(theta: Any, *size: int, **attributes: Any) -> str:
        return refused("AffineGrid", 20, theta, np.array(size), **attributes)

    assert "two or three axes" in why(theta, 1, 1, 2, 2, 2)
    assert "two or three axes" in why(theta[..., :2], 1, 1, 2, 2)
    assert "batch" in why(theta, 2, 1, 2, 2)
    assert "positive" in why(theta, 1, 1, 0, 2)
    assert "first and the last element differ" in why(theta, 1, 1, 2, 1, align_corners=1)


# ---- RoiAlign -----------------------------------------------------------------------------------


def _pooled(x: Any, region: Any, bins: tuple[int, int], samples: int, shift: float, least: float, pool: Any) -> Any:
    """The bins of a region of a plane, in double."""
    (x1, y1, x2, y2), (h, w) = region - shift, x.shape
    starts, sizes = (y1, x1), (max(y2 - y1, least), max(x2 - x1, least))
    counts = [samples or max(int(np.ceil(size / k)), 0) for size, k in zip(sizes, bins, strict=True)]

    def sample(y: float, x_: float) -> float:
        if not (-1 <= y <= h and -1 <= x_ <= w):
            return 0.0
        y, x_ = min(max(y, 0), h - 1), min(max(x_, 0), w - 1)
        i, j = int(y), int(x_)
        rows, columns = x[[i, min(i + 1, h - 1)]], [j, min(j + 1, w - 1)]
        return float(np.array([1 - y + i, y - i]) @ rows[:, columns] @ np.array([1 - x_ + j, x_ - j]))

    def place(axis: int, p: int, k: int) -> float:
        return float(starts[axis] + (p + (k + 0.5) / counts[axis]) * sizes[axis] / bins[axis])

    return [
        [
            pool([sample(place(0, p, i), place(1, q, j)) for i in range(counts[0]) for j in range(counts[1])] or [0])
            for q in range(bins[1])
        ]
        for p in range(bins[0])
    ]


@pytest.mark.parametrize("version", [10, 16, 22])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_are_sampled_and_pooled(version: int, mode: str, run: Run) -> None:
    x = RNG.normal(size=(2, 2, 5, 6))
    regions = np.array([[0, 0, 4, 4], [1.5, -3, 9, 3], [2, 2, 2.25, 2.25], [3, 3, 1, 1], [4, 4, 30, 30]])
    members = np.array([0, 1, 1, 0, 1])
    pool = np.mean if mode == "avg" else np.max
    for samples in (0, 2):
        for moved in ("half_pixel", "output_half_pixel") if version > 10 else ("output_half_pixel",):
            shift, least = (0.5, -99.0) if moved == "half_pixel" else (0.0, 1.0)
            stated = {"coordinate_transformation_mode": moved} if version > 10 else {}
            stated |= {
                "mode": mode,
                "output_height": 2,
                "output_width": 3,
                "sampling_ratio": samples,
                "spatial_scale": 0.5,
            }
            found = run("RoiAlign", version, x, regions, members, **stated)
            for b, (region, member) in enumerate(zip(regions, members, strict=True)):
                for z in range(2):
                    expected = _pooled(x[member, z], region * 0.5, (2, 3), samples, shift, least, pool)
                    np.testing.assert_allclose(found[b, z], expected, rtol=1e-9, atol=1e-9)


def test_roi_align_special_cases(run: Run, refused: Run) -> None:
    x, region, first = np.ones((1, 1, 2, 2), F), np.array([[0, 0, 1, 1]], F), np.array([0])
    assert run("RoiAlign", 16, x, region[:0], first[:0]).shape == (0, 1, 1, 1)
    assert run("RoiAlign", 16, x.astype(H), region.astype(H), first).dtype == H

    def why(*inputs: Any, **attributes: Any) -> str:
        return refused("RoiAlign", 16, *inputs, **attributes)

    assert "four numbers" in why(x, region[:, :3], first)
    assert "has a member" in why(x, region, first[:0])
    assert "members of the batch" in why(x, region, first + 1)
    assert "members of the batch" in why(x, region, first - 1)
    assert "mode is" in why(x, region, first, mode="sum")
    assert "coordinate_transformation_mode" in why(x, region, first, coordinate_transformation_mode="none")
    assert "bins" in why(x, region, first, output_width=0)
    assert "rows and columns" in why(x[:, :, :0], region, first)
    assert "sampling_ratio" in why(x, region, first, sampling_ratio=-1)
    assert "finite" in why(x, region + F(np.inf), first)


# ---- MaxRoiPool ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 22])
def test_each_bin_of_a_region_has_its_greatest_element(version: int, run: Run, same: Check) -> None:
    x = RNG.normal(size=(2, 2, 5, 6)).astype(F)
    regions = np.array([[0, 0, 0, 5, 4], [1, 2.5, 1, 3.4, 30], [1, -9, -9, -7, 2], [0, 3, 3, 1, 1]], F)
    corners = [(0, 0, 5, 4), (3, 1, 3, 30), (-9, -9, -7, 2), (3, 3, 3, 3)]
    found = run("MaxRoiPool", version, x, regions, pooled_shape=(2, 3))
    for b, (x1, y1, x2, y2) in enumerate(corners):
        for p in range(2):
            for q in range(3):
                h, w = y2 - y1 + 1, x2 - x1 + 1
                rows = slice(max(y1 + p * h // 2, 0), max(y1 - (-(p + 1) * h // 2), 0))
                columns = slice(max(x1 + q * w // 3, 0), max(x1 - (-(q + 1) * w // 3), 0))
                part = x[int(regions[b, 0]), :, rows, columns].reshape(2, -1)
                same(found[b, :, p, q], part.max(1) if part.size else np.zeros(2, F))


def test_max_roi_pool_refuses_what_has_no_meaning(refused: Run) -> None:
    x, region = np.ones((1, 1, 2, 2), F), np.array([[0, 0, 0, 1, 1]], F)

    def why(x: Any, region: Any, shape: tuple[int, ...] = (1, 1)) -> str:
        return refused("MaxRoiPool", 22, x, region, pooled_shape=shape)

    assert "four numbers" in why(x, region[:, :4])
    assert "bins" in why(x, region, (1,))
    assert "bins" in why(x, region, (1, 0))
    assert "member of the batch" in why(x, region + 1)
    assert "member of the batch" in why(x, region + F(0.5))
    assert "not far" in why(x, np.array([[0, 0, 0, np.nan, 1]], F))
