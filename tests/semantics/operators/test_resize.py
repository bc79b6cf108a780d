from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
NEW = [11, 13, 18, 19]
COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
               "tf_crop_and_resize", "half_pixel_symmetric"]  # fmt: skip
ROUNDINGS: dict[str, Callable[[Fraction], int]] = {
    "round_prefer_floor": lambda c: math.ceil(c - Fraction(1, 2)),
    "round_prefer_ceil": lambda c: math.floor(c + Fraction(1, 2)),
    "floor": math.floor,
    "ceil": math.ceil,
}


def _knows(version: int, how: str) -> bool:
    return {"tf_half_pixel_for_nn": version < 13, "half_pixel_symmetric": version == 19}.get(how, True)


def _coordinate(how: str, x: int, d: int, o: int, s: Fraction, roi: tuple[Fraction, Fraction]) -> Fraction:
    half = Fraction(1, 2)
    match how:
        case "half_pixel":
            return (x + half) / s - half
        case "pytorch_half_pixel":
            return (x + half) / s - half if o > 1 else Fraction(0)
        case "align_corners":
            return Fraction(x * (d - 1), o - 1) if o > 1 else Fraction(0)
        case "asymmetric":
            return x / s
        case "tf_half_pixel_for_nn":
            return (x + half) / s
        case "half_pixel_symmetric":
            return Fraction(d, 2) * (1 - o / (s * d)) + (x + half) / s - half
    start, end = roi
    return start * (d - 1) + x * (end - start) * Fraction(d - 1, o - 1) if o > 1 else half * (start + end) * (d - 1)


def _kernel(mode: str, a: Fraction, u: Fraction) -> Fraction:
    u = abs(u)
    if mode == "linear":
        return max(1 - u, Fraction(0))
    if u <= 1:
        return (a + 2) * u**3 - (a + 3) * u**2 + 1
    return a * u**3 - 5 * a * u**2 + 8 * a * u - 4 * a if u < 2 else Fraction(0)


def _resize(
    x: Any, sizes: list[int], scales: list[Fraction], mode: str, how: str, a: dict[str, Any],
    roi: list[tuple[Fraction, Fraction]] | None = None
) -> Any:  # fmt: skip
    """Axis after axis in fractions: sums over all positions, however far, and lists of fractions."""
    result = np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(x) if x.size else x.astype(object)
    outside = np.zeros(tuple(sizes), bool)
    for k, (o, s) in enumerate(zip(sizes, scales, strict=True)):
        d, region = x.shape[k], (roi or [(Fraction(0), Fraction(1))] * x.ndim)[k]
        if s == 1 and region == (0, 1):
            continue
        matrix = np.full((o, d), Fraction(0), object)
        for y in range(o):
            c = _coordinate(how, y, d, o, s, region)
            if how == "tf_crop_and_resize" and not 0 <= c <= d - 1:
                outside[tuple(y if j == k else slice(None) for j in range(x.ndim))] = True
            if mode == "nearest":
                matrix[y, min(max(ROUNDINGS[a.get("nearest_mode", "round_prefer_floor")](c), 0), d - 1)] = Fraction(1)
                continue
            shrunk = min(s, Fraction(1)) if a.get("antialias") else Fraction(1)
            reach = math.ceil((2 if mode == "cubic" else 1) / shrunk) + 1
            places = range(math.floor(c) - reach, math.floor(c) + reach + 2)
            coefficient = Fraction(float(F(a.get("cubic_coeff_a", -0.75))))
            weights = {t: _kernel(mode, coefficient, shrunk * (t - c)) for t in places}
            if a.get("exclude_outside"):
                weights = {t: w for t, w in weights.items() if 0 <= t < d}
            total = sum(weights.values())
            for t, w in weights.items():
                matrix[y, min(max(t, 0), d - 1)] += w / total
        result = np.moveaxis(np.tensordot(matrix, result, axes=(1, k)), 0, k)
    values = np.array([float(v) for v in result.reshape(-1)]).reshape(result.shape)
    return np.where(outside, F(a.get("extrapolation_value", 0.0)), values)


def _call(
    run: Run, version: int, x: Any, scales: Any = None, sizes: Any = None, roi: Any = None, **attributes: Any
) -> Any:
    nothing = np.zeros(0, F) if version == 11 else None
    region = nothing if roi is None else np.array(roi, F)
    factors = nothing if scales is None else np.array(scales, F)
    return run("Resize", version, x, region, factors, None if sizes is None else np.array(sizes, np.int64),
               **attributes)  # fmt: skip


def _exact(scales: Any) -> list[Fraction]:
    return [Fraction(float(F(s))) for s in scales]


def _sizes(x: Any, scales: Any) -> list[int]:
    return [math.floor(d * s) for d, s in zip(x.shape, _exact(scales), strict=True)]


def _data(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).integers(-50, 51, shape).astype(F)


def _close(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-5, atol=2e-4)


@pytest.mark.parametrize("version", NEW)
@pytest.mark.parametrize("how", COORDINATES[:5] + COORDINATES[6:])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_means_are_weighted_as_the_coordinates_say(version: int, how: str, mode: str, run: Run) -> None:
    if not _knows(version, how):
        return
    x = _data(1, 2, 5, 4)
    for scales in ([1, 1, 2, 1.5], [1, 1, 0.6, 0.75], [1, 2, 0.3, 3.3]):
        found = _call(run, version, x, scales, mode=mode, coordinate_transformation_mode=how)
        _close(found, _resize(x, _sizes(x, scales), _exact(scales), mode, how, {}))


@table("version", NEW)
@table("how", COORDINATES[:5] + COORDINATES[6:])
@table("rounding", ROUNDINGS)
def test_nearest_takes_the_element_that_is_nearest(version: int, how: str, rounding: str, run: Run, same: Run) -> None:
    if not _knows(version, how):
        return
    x = _data(1, 5, 7)
    for scales in ([1, 2, 0.5], [1, 0.6, 2.7], [3, 1, 0.3]):
        a = {"nearest_mode": rounding}
        found = _call(run, version, x, scales, coordinate_transformation_mode=how, **a)
        same(found, _resize(x, _sizes(x, scales), _exact(scales), "nearest", how, a).astype(F))


@pytest.mark.parametrize("version", NEW)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_sizes_say_how_far_where_scales_do_not(version: int, mode: str, run: Run) -> None:
    x = _data(2, 3, 5, 4)
    sizes = [2, 3, 7, 3]
    scales = [Fraction(o, d) for o, d in zip(sizes, x.shape, strict=True)]
    for how in ("half_pixel", "align_corners"):
        found = _call(run, version, x, None, sizes, mode=mode, coordinate_transformation_mode=how)
        _close(found, _resize(x, sizes, scales, mode, how, {}))


@pytest.mark.parametrize("version", NEW)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_region_of_interest_is_cut_out(version: int, mode: str, run: Run) -> None:
    x = _data(1, 1, 5, 6)
    for box in ([0, 0, 0.25, 0.125, 1, 1, 0.75, 1], [0, 0, -0.5, 0.5, 1, 1, 0.5, 1.5]):
        roi = [(Fraction(box[k]), Fraction(box[4 + k])) for k in range(4)]
        a = {"extrapolation_value": 7.5}
        how = "tf_crop_and_resize"
        sizes = [1, 1, 4, 1]
        scales = [Fraction(o, d) for o, d in zip(sizes, x.shape, strict=True)]
        found = _call(run, version, x, None, sizes, box, mode=mode, coordinate_transformation_mode=how, **a)
        _close(found, _resize(x, sizes, scales, mode, how, a, roi))
        factors = [1, 1, 2, 1.5]
        sizes = [math.floor(d * s * (e - b)) for d, s, (b, e) in zip(x.shape, _exact(factors), roi, strict=True)]
        found = _call(run, version, x, factors, None, box, mode=mode, coordinate_transformation_mode=how, **a)
        _close(found, _resize(x, sizes, _exact(factors), mode, how, a, roi))


@pytest.mark.parametrize("version", NEW)
@pytest.mark.parametrize("coefficient", [-0.75, -0.5])
def test_what_is_outside_can_be_left_out(version: int, coefficient: float, run: Run) -> None:
    x = _data(1, 4, 5)
    for mode, scales in itertools.product(["linear", "cubic"], [[1, 2, 3], [1, 0.8, 1.7]]):
        a = {"exclude_outside": 1, "cubic_coeff_a": coefficient}
        found = _call(run, version, x, scales, mode=mode, **a)
        _close(found, _resize(x, _sizes(x, scales), _exact(scales), mode, "half_pixel", a))


@pytest.mark.parametrize("version", NEW[2:])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_stretches_the_weights_where_an_axis_shrinks(version: int, exclude: int, mode: str, run: Run) -> None:
    x = _data(1, 9, 7)
    for how, scales in itertools.product(("half_pixel", "align_corners"), [[1, 0.5, 0.3], [1, 0.6, 2.5]]):
        a = {"antialias": 1, "exclude_outside": exclude}
        found = _call(run, version, x, scales, mode=mode, coordinate_transformation_mode=how, **a)
        _close(found, _resize(x, _sizes(x, scales), _exact(scales), mode, how, a))


@pytest.mark.parametrize("version", NEW[2:])
def test_axes_that_are_not_listed_stay(version: int, run: Run, same: Run) -> None:
    x = _data(2, 3, 5, 4)
    for axes in ((3, 1), (-1, -3)):
        found = _call(run, version, x, [2, 1.5], axes=axes, mode="linear")
        same(found, _call(run, version, x, [1, 1.5, 1, 2], mode="linear"))
        found = _call(run, version, x, None, [8, 2], axes=axes, mode="linear")
        same(found, _call(run, version, x, None, [2, 2, 5, 8], mode="linear"))


@pytest.mark.parametrize("version", NEW[2:])
def test_the_aspect_ratio_can_be_kept(version: int, run: Run) -> None:
    x = _data(1, 1, 3, 4)
    for policy, shape in (("not_larger", (6, 8)), ("not_smaller", (8, 10)), ("stretch", (6, 10))):
        found = _call(run, version, x, None, [6, 10], axes=(2, 3), keep_aspect_ratio_policy=policy, mode="linear")
        assert found.shape == (1, 1, *shape)
        if policy == "not_smaller":
            factor = [Fraction(1), Fraction(1), Fraction(5, 2), Fraction(5, 2)]
            _close(found, _resize(x, [1, 1, 8, 10], factor, "linear", "half_pixel", {}))


@pytest.mark.parametrize("version", [10, *NEW])
def test_sizes_are_exact_products_rounded_down(version: int, run: Run) -> None:
    x = np.zeros((10, 5), F)
    scales = np.array([0.7, 1.4], F)
    found = run("Resize", 10, x, scales) if version == 10 else _call(run, version, x, scales)
    assert found.shape == (6, 6)


def test_version_10_rounds_down_and_up_where_an_axis_shrinks(run: Run, same: Run) -> None:
    x = np.arange(7, dtype=F)
    for scale in (0.6, 0.4, 1.7, 2.0, 3.3):
        s, o = Fraction(float(F(scale))), math.floor(7 * Fraction(float(F(scale))))
        places = [math.ceil(y / s) if scale < 1 else math.floor(y / s) for y in range(o)]
        same(run("Resize", 10, x, np.array([scale], F)), x[np.minimum(places, 6)])
        found = run("Resize", 10, x, np.array([scale], F), mode="linear")
        _close(found, np.array([min(float(y / s), 6.0) for y in range(o)]))


@pytest.mark.parametrize("version", [10, *NEW])
def test_an_element_of_weight_0_has_no_influence(version: int, run: Run, same: Run) -> None:
    x = np.array([1, INF, 3, NAN], F)
    a = {} if version == 10 else {"coordinate_transformation_mode": "asymmetric"}
    call = (lambda *b, **c: run("Resize", 10, *b, **c)) if version == 10 else (
        lambda x, s, **c: _call(run, version, x, s, **c))  # fmt: skip
    found = call(x, np.array([2], F), mode="linear", **a)
    same(found, np.array([1, INF, INF, INF, 3, NAN, NAN, NAN], F))


@pytest.mark.parametrize("version", [10, *NEW])
def test_the_mean_of_integers_is_one_of_its_neighbours(version: int, run: Run, free: Run) -> None:
    x = np.array([0, 1, 3, 250], np.uint8)
    a = {} if version == 10 else {"coordinate_transformation_mode": "asymmetric"}
    inputs = (x, np.array([2], F)) if version == 10 else (x, np.zeros(0, F), np.array([2], F))
    assert run("Resize", version, *inputs, mode="linear", **a).tolist() == [0, 0, 1, 2, 3, 126, 250, 250]
    assert free("Resize", version, *inputs, mode="linear", **a).tolist() == [False, True, *[False] * 3, True, False,
                                                                             False]  # fmt: skip
    if version > 10:
        found = run("Resize", version, np.array([0, 255, 255, 0], np.uint8), *inputs[1:], mode="cubic")
        assert found.max() == 255


@pytest.mark.parametrize("version", NEW)
def test_nearest_copies_elements_of_any_type(version: int, run: Run, same: Run) -> None:
    text = np.array([b"a", b""], object)
    same(_call(run, version, text, [2]), np.array([b"a", b"a", b"", b""], object))
    same(_call(run, version, np.array([True, False]), [2]), np.array([True, True, False, False]))
    for dtype in (np.int64, np.float16, np.uint8):
        same(_call(run, version, np.array([1, 2], dtype), [2]), np.array([1, 1, 2, 2], dtype))
    if version > 11:
        half = np.array([1, 2], ml_dtypes.bfloat16)
        same(_call(run, version, half, [2], mode="linear"), np.array([1, 1.25, 1.75, 2], ml_dtypes.bfloat16))
    found = _call(run, version, np.array([1j, 4], np.complex64), [2], mode="linear")
    assert found.tolist() == [1j, 1 + 0.75j, 3 + 0.25j, 4]


@pytest.mark.parametrize("version", NEW)
def test_unfit_inputs_and_attributes_are_refused(version: int, refused: Run) -> None:
    x = np.ones((2, 3), F)
    assert "words" in _call(refused, version, x, [1, 2], mode="area")
    assert "words" in _call(refused, version, x, [1, 2], coordinate_transformation_mode="half")
    assert "words" in _call(refused, version, x, [1, 2], nearest_mode="round")
    assert "Either" in _call(refused, version, x)
    assert "Either" in _call(refused, version, x, [1, 2], [2, 6])
    assert "a factor for each" in _call(refused, version, x, [2])
    assert "a size for each" in _call(refused, version, x, None, [2])
    assert "positive" in _call(refused, version, x, [1, 0])
    assert "positive" in _call(refused, version, x, None, [2, 0])
    assert "roi" in _call(refused, version, x, [1, 2], coordinate_transformation_mode="tf_crop_and_resize")
    assert "Numbers" in _call(refused, version, np.array([True]), [2], mode="linear")
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    assert "before it starts" in _call(refused, version, x, [1, 2], None, [0, 1, 1, 0], **crop)
    for how in COORDINATES:
        if not _knows(version, how):
            assert "words" in _call(refused, version, x, [1, 2], coordinate_transformation_mode=how)
    if version >= 18:
        assert "twice" in _call(refused, version, x, [1, 2], axes=(0, -2))
        assert "axes of X" in _call(refused, version, x, [1, 2], axes=(0, 2))
        assert "antialias" in _call(refused, version, x, [1, 2], antialias=1)
        assert "words" in _call(refused, version, x, [1, 2], keep_aspect_ratio_policy="keep")


@pytest.mark.parametrize("version", NEW)
def test_empty_axes_stay_empty(version: int, run: Run) -> None:
    assert _call(run, version, np.zeros((0, 3), F), [1, 2]).shape == (0, 6)
    assert _call(run, version, np.zeros((2, 3), F), [0.25, 2]).shape == (0, 6)


def test_a_scalar_stays_as_it_is(run: Run, same: Run) -> None:
    for mode in ("nearest", "linear"):
        same(run("Resize", 10, np.array(3, F), np.zeros(0, F), mode=mode), np.array(3, F))
