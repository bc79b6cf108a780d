from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
VERSIONS = [1, 11, 22]


def _conv(x: Any, w: Any, bias: Any, a: dict[str, Any]) -> Any:
    """A loop over outputs, channels and the kernel in the order of the text."""
    n, _, *d = x.shape
    m, cg, *kernel = w.shape
    r, word = len(d), a.get("auto_pad", "NOTSET")
    strides, dilations = a.get("strides", (1,) * r), a.get("dilations", (1,) * r)
    extent = [(k - 1) * t + 1 for k, t in zip(kernel, dilations, strict=True)]
    pads = list(a.get("pads", (0,) * (2 * r)))
    if word.startswith("SAME"):
        for j in range(r):
            total = max((math.ceil(d[j] / strides[j]) - 1) * strides[j] + extent[j] - d[j], 0)
            pads[j] = total // 2 if word == "SAME_UPPER" else total - total // 2
            pads[r + j] = total - pads[j]
    data = np.pad(x, [(0, 0), (0, 0), *((pads[j], pads[r + j]) for j in range(r))])
    counts = [(data.shape[2 + j] - extent[j]) // strides[j] + 1 for j in range(r)]
    result = np.zeros((n, m, *counts), x.dtype)
    for b, o in itertools.product(range(n), range(m)):
        first = o // (m // a.get("group", 1)) * cg
        for y in itertools.product(*map(range, counts)):
            total = None
            for z, k in itertools.product(range(cg), itertools.product(*map(range, kernel))):
                at = tuple(y[j] * strides[j] + k[j] * dilations[j] for j in range(r))
                term = w[(o, z, *k)] * data[(b, first + z, *at)]
                total = term if total is None else total + term
            result[(b, o, *y)] = (x.dtype.type(0) if total is None else total) + (0 if bias is None else bias[o])
    return result


SETTINGS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7), (5, 3, 2), {}),
    ((1, 4, 6, 5), (6, 2, 3, 2), {"group": 2, "strides": (2, 1), "pads": (1, 0, 2, 1)}),
    ((1, 3, 5, 4), (3, 1, 2, 3), {"group": 3, "dilations": (3, 1), "pads": (0, 1, 0, 1)}),
    ((1, 2, 3, 4, 5), (2, 2, 1, 2, 3), {"strides": (1, 2, 2), "dilations": (1, 2, 1)}),
    ((1, 2, 7), (3, 2, 3), {"auto_pad": "VALID", "strides": (3,)}),
    ((0, 2, 7), (3, 2, 3), {}),
    ((2, 0, 7), (3, 0, 3), {}),
]


@table("version", VERSIONS)
@table("biased", [False, True])
@table(("shape", "kernels", "attributes"), SETTINGS)
def test_the_sum_runs_over_channels_and_the_kernel_in_the_written_order(
    version: int, biased: bool, shape: tuple[int, ...], kernels: tuple[int, ...], attributes: dict[str, Any],
    run: Run, same: Run
) -> None:  # fmt: skip
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=shape).astype(F), rng.normal(size=kernels).astype(F)
    inputs = (x, w, rng.normal(size=kernels[0]).astype(F)) if biased else (x, w)
    expected = _conv(x, w, inputs[2] if biased else None, attributes)
    same(run("Conv", version, *inputs, kernel_shape=kernels[2:], **attributes), expected)


@table("version", VERSIONS)
@table("word", ["SAME_UPPER", "SAME_LOWER"])
def test_same_pads_so_that_the_size_is_that_of_the_data(version: int, word: str, run: Run, same: Run) -> None:
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(1, 2, 5, 6)).astype(F), rng.normal(size=(3, 2, 2, 4)).astype(F)
    for a in ({}, {"dilations": (3, 1), "strides": (2, 3)}):
        found = run("Conv", version, x, w, auto_pad=word, **a)
        same(found, _conv(x, w, None, {"auto_pad": word, **a}))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16])
def test_each_step_is_rounded_to_the_element_type(dtype: Any, run: Run, same: Run) -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(1, 3, 6)).astype(dtype), rng.normal(size=(2, 3, 4)).astype(dtype)
    same(run("Conv", 22, x, w), _conv(x, w, None, {}))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_padding_is_0_also_beside_an_infinity(version: int, run: Run, same: Run) -> None:
    x, w = np.array([[[1, 2]]], F), np.array([[[INF, 1]]], F)
    same(run("Conv", version, x, w, pads=(1, 0)), np.array([[[NAN, INF]]], F))


@table("version", VERSIONS)
@table(
    ("attributes", "sentence"),
    [
        ({"group": 0}, "positive"),
        ({"group": 2}, "channels of its group"),
        ({"kernel_shape": (3,)}, "kernel_shape"),
        ({"strides": (0,)}, "positive"),
        ({"strides": (1, 1)}, "one stride"),
        ({"dilations": (0,)}, "positive"),
        ({"dilations": (9,)}, "fits"),
        ({"pads": (1,)}, "two paddings"),
        ({"pads": (-1, 0)}, "not negative"),
        ({"pads": (1, 1), "auto_pad": "VALID"}, "NOTSET"),
        ({"auto_pad": "same"}, "four words"),
    ],
)
def test_unfit_attributes_are_refused(version: int, attributes: dict[str, Any], sentence: str, refused: Run) -> None:
    assert sentence in refused("Conv", version, np.ones((1, 3, 5), F), np.ones((2, 3, 2), F), **attributes)


# ---- DeformConv ---------------------------------------------------------------------------------


def _hat(x: Any, place: Any) -> float:
    """The sum of all elements, each times the product of max(0, 1 - |i - place|), as in arxiv 1703.06211."""
    weights = [np.maximum(0, 1 - np.abs(np.arange(d) - v)) for d, v in zip(x.shape, place, strict=True)]
    return sum(x[i] * math.prod(w[j] for w, j in zip(weights, i, strict=True)) for i in np.ndindex(x.shape))


@pytest.mark.parametrize("version", [19, 22])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_deformed_kernels_read_what_lies_between_elements(axes: int, version: int, run: Run) -> None:
    """Small integers and halves: every order of summation gives the same bits."""
    rng = np.random.default_rng(axes)
    d, kernel, strides, dilations = (4, 3, 2)[:axes], (2, 1, 2)[:axes], (1, 2, 1)[:axes], (2, 1, 1)[:axes]
    begins, ends, r = (1, 0, 2)[:axes], (0, 1, 1)[:axes], axes
    sizes = zip(d, begins, ends, kernel, dilations, strides, strict=True)
    o = [(a + b + c - (k - 1) * t - 1) // s + 1 for a, b, c, k, t, s in sizes]
    x, w = rng.integers(-4, 5, (2, 4, *d)).astype(F), rng.integers(-2, 3, (2, 2, *kernel)).astype(F)
    moved = (rng.integers(-5, 6, (2, 2, *kernel, r, *o)) / 2).astype(F)
    mask = rng.integers(0, 3, (2, 2, *kernel, *o)).astype(F)
    bias = np.array([3, -5], F)
    stated = {"group": 2, "offset_group": 2, "strides": strides, "dilations": dilations, "pads": begins + ends}
    places, masks = moved.reshape(2, -1, *o), mask.reshape(2, -1, *o)
    found = run("DeformConv", version, x, w, places, bias, masks, **stated)
    expected = np.zeros((2, 2, *o), F)
    for b, m, *y in np.ndindex(expected.shape):
        total = float(bias[m])
        for z, *k in np.ndindex(2, *kernel):
            place = [y[a] * strides[a] + k[a] * dilations[a] - begins[a] + moved[b, m, *k, a, *y] for a in range(r)]
            total += w[m, z, *k] * mask[b, m, *k, *y] * _hat(x[b, 2 * m + z], place)
        expected[b, m, *y] = total
    np.testing.assert_array_equal(found, expected)
    plain = {key: value for key, value in stated.items() if key != "offset_group"}
    still = run("DeformConv", version, x, w, places * 0, **stated)
    np.testing.assert_array_equal(still, run("Conv", version if version == 22 else 11, x, w, **plain))
    half = run("DeformConv", version, *(it.astype(np.float16) for it in (x, w, places, bias, masks)), **stated)
    np.testing.assert_array_equal(half, expected.astype(np.float16))


def test_deform_conv_far_offsets_and_refusals(run: Run, refused: Callable[..., str]) -> None:
    x, w, o = np.ones((1, 2, 3, 3), F), np.ones((2, 2, 2, 2), F), np.zeros((1, 8, 2, 2), F)
    for far in (-1, 3, 1e9, -1e30):
        assert (run("DeformConv", 22, x[..., :1, :1], w[..., :1, :1], o[:, :2, :1, :1] + F(far)) == 0).all()

    def why(*inputs: Any, **attributes: Any) -> str:
        return refused("DeformConv", 22, *inputs, **attributes)

    assert "finite" in why(x, w, o + INF)
    assert "finite" in why(x, w, o * NAN)
    assert "offset has an entry" in why(x, w, o[:, :4])
    assert "offset has an entry" in why(x, w, o[..., :1])
    assert "mask has an entry" in why(x, w, o, None, o)
    assert "one bias" in why(x, w, o, np.ones(3, F))
    assert "groups divide" in why(x, w, o, group=2)
    assert "groups of offset" in why(x, w, o, offset_group=3)
    assert "groups are positive" in why(x, w, o, offset_group=0)
    assert "kernel_shape" in why(x, w, o, kernel_shape=(1, 2))
    assert "stride" in why(x, w, o, strides=(0, 1))
    assert "dilation" in why(x, w, o, dilations=(1,))
    assert "paddings" in why(x, w, o, pads=(1, -1, 0, 0))
    assert "fits" in why(x[..., :1], w, o)
    assert "spatial axis" in why(x[..., 0, 0], w[..., 0, 0], o[..., 0, 0])
