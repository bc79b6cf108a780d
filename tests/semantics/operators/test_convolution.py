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
