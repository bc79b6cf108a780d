from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from applications import Case
from fastpath_cases import computed, disagreements, every, unbroken, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.kernels.resize import KERNELS

F = np.float32
VERSIONS = [10, 11, 13, 18, 19]
WORDS = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
         "tf_half_pixel_for_nn", "tf_crop_and_resize"]  # fmt: skip
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def _words(version: int) -> list[str]:
    lacking = {19: "tf_half_pixel_for_nn"}.get(version, "half_pixel_symmetric")
    return [w for w in WORDS if w != lacking and (w != "tf_half_pixel_for_nn" or version == 11)]


def _case(version: int, x: Any, scales: Any = None, sizes: Any = None, roi: Any = None, **attributes: Any) -> Case:
    s = None if scales is None else np.array(scales, F)
    z = None if sizes is None else np.array(sizes, np.int64)
    if version == 10:
        return (x, s), {k: v for k, v in attributes.items() if k == "mode"}, 1
    r = None if roi is None else np.array(roi, F)
    if version == 11:
        r, s = (np.zeros(0, F) if v is None else v for v in (r, s))
    return (x, r, s, *([] if z is None else [z])), attributes, 1


def _cubic(version: int) -> list[str]:
    return ["linear"] if version == 10 else ["linear", "cubic"]


SCALES = [(1, 1, 2, 3), (1, 1, 0.5, 0.7), (1, 1, 1.3, 0.9), (1, 2, 1, 0.26), (1, 1, 1, 1), (1, 1, 0.1, 1)]
SIZES = [(1, 2, 3, 7), (1, 2, 1, 1), (2, 1, 4, 5), (1, 2, 9, 2)]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_nearest_elements_agree_with_the_definition(version: int) -> None:
    x = whole("x", (1, 2, 4, 5))
    cases = [_case(version, x, s, coordinate_transformation_mode=w, nearest_mode=n, roi=(0, 0, 0.1, 0.2, 1, 1, 0.8, 1))
             for s in SCALES for w in _words(version) for n in NEAREST]  # fmt: skip
    if version > 10:
        cases += [
            _case(version, x, sizes=s, coordinate_transformation_mode=w) for s in SIZES for w in _words(version)[:4]
        ]
    assert not disagreements(KERNELS, "Resize", version, cases)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_the_weighted_means_are_those_of_the_definition_bit_by_bit(version: int, mode: str) -> None:
    if mode not in _cubic(version):
        return
    x = np.random.default_rng(0).standard_normal((1, 1, 3, 4)).astype(F)
    cases = [_case(version, x, s, mode=mode, coordinate_transformation_mode=w, exclude_outside=e,
                   roi=(0, 0, 0.1, 0.2, 1, 1, 0.8, 1.3))
             for k, s in enumerate(SCALES) for w in _words(version) for e in [(k + len(w)) % 2]]  # fmt: skip
    if version > 10:
        cases += [_case(version, x, sizes=s, mode=mode) for s in SIZES]
    if version > 13:
        cases += [_case(version, x, s, mode=mode, antialias=1, exclude_outside=e) for e, s in enumerate(SCALES[:2])]
    assert not disagreements(KERNELS, "Resize", version, cases, signs=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_element_of_weight_0_is_no_part_of_the_mean(version: int) -> None:
    x = np.array([[1, np.inf, np.nan, 2, -np.inf, 3]], F)
    cases = [_case(version, x, (1, s), mode=m, coordinate_transformation_mode="asymmetric")
             for s in (2, 3, 0.5, 1.5) for m in _cubic(version)]  # fmt: skip
    assert not disagreements(KERNELS, "Resize", version, cases, signs=False)


@pytest.mark.parametrize("version", [13, 19])
def test_each_element_type_agrees_with_the_definition(version: int) -> None:
    cases: list[Case] = []
    for dtype in (
        F,
        np.float64,
        np.float16,
        ml_dtypes.bfloat16,
        np.int8,
        np.uint8,
        np.int32,
        np.int64,
        np.uint64,
        bool,
    ):
        x = whole("x", (2, 3, 4), dtype, 0, 100)
        cases += [_case(version, x, (1, 2, 1.5), mode=m) for m in ("nearest", "linear", "cubic")]
        crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 300.5}
        cases += [
            _case(version, x, (1, 2, 2), roi=(0, 0.2, -0.5, 1, 2, 1.5), mode=m, **crop) for m in ("nearest", "linear")
        ]
    text = np.array([b"a", b"", b"xyz"], object)
    cases += [_case(version, text, (2,)), _case(version, text, (2,), mode="linear")]
    extremes = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0], np.int64)
    cases.append(_case(version, extremes, (3,), mode="cubic"))
    assert not disagreements(KERNELS, "Resize", version, cases, signs=False)


@pytest.mark.parametrize("version", [18, 19])
def test_axes_and_aspect_ratios_agree_with_the_definition(version: int) -> None:
    x = whole("x", (2, 4, 6))
    policies = ["stretch", "not_larger", "not_smaller"]
    cases = [_case(version, x, sizes=s, axes=a, keep_aspect_ratio_policy=p, mode=m)
             for s in ((3, 9), (8, 7), (1, 1)) for a in ((1, 2), (2, 1), (-1, -2)) for p in policies
             for m in ("nearest", "linear")]  # fmt: skip
    cases += [_case(version, x, (2,), axes=(1,)), _case(version, x, sizes=(5,), axes=(-1,), antialias=1, mode="linear")]
    roi = {"coordinate_transformation_mode": "tf_crop_and_resize", "roi": (0.2, 0.9)}
    cases += [_case(version, x, (2,), axes=(2,), **roi), _case(version, x, sizes=(3,), axes=(2,), mode="linear", **roi)]
    assert not disagreements(KERNELS, "Resize", version, cases, signs=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_empty_data_and_empty_results_agree_with_the_definition(version: int) -> None:
    cases = [_case(version, whole("x", x), s) for x, s in (((0, 3), (2, 2)), ((2, 3), (0.3, 1)), ((3,), (0.2,)))]
    cases += [
        _case(version, whole("x", (0, 3)), (1, 2), mode="linear"),
        _case(version, whole("x", (0, 3)), sizes=(0, 3)),
    ]
    assert not disagreements(KERNELS, "Resize", version, [c for c in cases if c[0][1] is not None or version > 10])


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.data())
def test_small_data_agree_with_the_definition_or_both_refuse(data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(VERSIONS[1:]))
    shape = tuple(data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=2)))
    attributes: dict[str, Any] = {
        "mode": data.draw(st.sampled_from(["nearest", "linear", "cubic"])),
        "coordinate_transformation_mode": data.draw(st.sampled_from(WORDS)),
        "nearest_mode": data.draw(st.sampled_from(NEAREST)),
        "exclude_outside": data.draw(st.integers(0, 1)),
    }
    if version >= 18:
        attributes["antialias"] = data.draw(st.integers(0, 1))
    factors = st.floats(0.125, 4, width=32)
    scales = data.draw(st.none() | st.lists(factors, min_size=len(shape), max_size=len(shape)))
    sizes = data.draw(st.none() | st.lists(st.integers(0, 6), min_size=len(shape), max_size=len(shape)))
    bounds = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5]), min_size=2 * len(shape), max_size=2 * len(shape))
    case = _case(version, whole("x", shape), scales, sizes, data.draw(bounds), **attributes)
    assert not disagreements(KERNELS, "Resize", version, [case], signs=False)


X = np.ones((2, 3), F)
CROP = {"coordinate_transformation_mode": "tf_crop_and_resize"}


def _broken(version: int) -> list[Case]:
    one = (1, 1)
    text = np.array([[b"a"]], object)
    cases = [
        _case(version, X, one, mode="bilinear"), _case(version, X, one, coordinate_transformation_mode="middle"),
        _case(version, X, one, nearest_mode="up"), _case(version, text, one, mode="linear"),
        _case(version, X, one, keep_aspect_ratio_policy="some"), _case(version, X, one, antialias=1),
        _case(version, X, one, axes=(0, 2)), _case(version, X, one, axes=(0, -2)), _case(version, X, (1,)),
        _case(version, X, (1, 0)), _case(version, X, (1, -1)),
        _case(version, X, one, coordinate_transformation_mode="half_pixel_symmetric"),
        _case(version, X, one, coordinate_transformation_mode="tf_half_pixel_for_nn"),
    ]  # fmt: skip
    if version > 10:
        cases += [
            _case(version, X),
            _case(version, X, one, sizes=(2, 3)),
            _case(version, X, sizes=(2,)),
            _case(version, X, sizes=(2, 0)),
            _case(version, np.ones((0, 3), F), sizes=(2, 3)),
            _case(version, X, one, roi=(0, 0, 1), **CROP),
            _case(version, X, one, roi=(0, 0, -1, 1), **CROP),
            _case(version, X, one, **CROP),
            _case(version, X, (), sizes=()),
        ]
    return cases


@pytest.mark.parametrize(("op_type", "version"), every(KERNELS))
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    assert not unbroken(op_type, version, _broken(version))
    assert not disagreements(KERNELS, op_type, version, _broken(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_factor_that_is_no_number_is_refused(version: int) -> None:
    inputs, attributes, _ = _case(version, X, (1, np.nan))
    with pytest.raises(KernelError, match="finite"):
        computed(KERNELS, Application("Resize", version, inputs, attributes, (True,)))
