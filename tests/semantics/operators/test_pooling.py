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
MAX, AVERAGE = [1, 8, 10, 11, 12, 22], [7, 10, 11, 19, 22]
DILATED = {"MaxPool": [10, 11, 12, 22], "AveragePool": [19, 22]}
ROUNDED = {"MaxPool": [10, 11, 12, 22], "AveragePool": [10, 11, 19, 22]}
WORDS = ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]


def _geometry(
    d: tuple[int, ...], kernel: tuple[int, ...], a: dict[str, Any], rounding: int = 0
) -> tuple[list[int], list[int], list[int]]:
    """The positions, the padding in front and the padded sizes, from the formulas of the documentation."""
    word, strides = a.get("auto_pad", "NOTSET"), a.get("strides", (1,) * len(d))
    dilations, pads = a.get("dilations", (1,) * len(d)), a.get("pads", (0,) * (2 * len(d)))
    counts, before, padded = [], [], []
    for j, size in enumerate(d):
        extent = (kernel[j] - 1) * dilations[j] + 1
        if word.startswith("SAME"):
            total = max((math.ceil(size / strides[j]) - 1) * strides[j] + extent - size, 0)
            head = total // 2 if word == "SAME_UPPER" else total - total // 2
        else:
            head, total = pads[j], pads[j] + pads[len(d) + j]
        steps = (size + total - extent) / strides[j]
        count = (math.ceil(steps) if rounding else math.floor(steps)) + 1
        if rounding and (count - 1) * strides[j] >= size + head:
            count -= 1
        counts.append(count)
        before.append(head)
        padded.append(size + total)
    return counts, before, padded


def _windows(x: Any, kernel: tuple[int, ...], a: dict[str, Any], rounding: int = 0) -> Any:
    """For each position the places of its window that are data, and how many are data or padding."""
    d = x.shape[2:]
    counts, before, padded = _geometry(d, kernel, a, rounding)
    strides, dilations = a.get("strides", (1,) * len(d)), a.get("dilations", (1,) * len(d))
    for y in itertools.product(*map(range, counts)):
        places, inside = [], 0
        for k in itertools.product(*map(range, kernel)):
            at = tuple(y[j] * strides[j] + k[j] * dilations[j] for j in range(len(d)))
            inside += all(at[j] < padded[j] for j in range(len(d)))
            real = tuple(at[j] - before[j] for j in range(len(d)))
            if all(0 <= real[j] < d[j] for j in range(len(d))):
                places.append(real)
        yield y, places, inside


def _maximum(x: Any, kernel: tuple[int, ...], a: dict[str, Any], rounding: int = 0, order: int = 0) -> tuple[Any, Any]:
    n, c, *d = x.shape
    counts, _, _ = _geometry(tuple(d), kernel, a, rounding)
    best, indices = np.zeros((n, c, *counts), x.dtype), np.zeros((n, c, *counts), np.int64)
    for y, places, _ in _windows(x, kernel, a, rounding):
        for b, z in itertools.product(range(n), range(c)):
            at = max(places, key=lambda p: (np.isnan(x[(b, z, *p)]), x[(b, z, *p)]))
            best[(b, z, *y)] = x[(b, z, *at)]
            spatial = np.ravel_multi_index(at if not order else at[::-1], tuple(d) if not order else tuple(d[::-1]))
            indices[(b, z, *y)] = (b * c + z) * math.prod(d) + int(spatial)
    return best, indices


def _average(x: Any, kernel: tuple[int, ...], a: dict[str, Any], rounding: int = 0, include: int = 0) -> Any:
    n, c, *d = x.shape
    counts, _, _ = _geometry(tuple(d), kernel, a, rounding)
    result = np.zeros((n, c, *counts), x.dtype)
    for y, places, inside in _windows(x, kernel, a, rounding):
        for b, z in itertools.product(range(n), range(c)):
            terms = [x[(b, z, *p)] for p in places]
            result[(b, z, *y)] = np.asarray(sum(terms), x.dtype) / x.dtype.type(inside if include else len(terms))
    return result


def _whole(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(F)


SETTINGS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7), (3,), {}),
    ((2, 3, 7), (2,), {"strides": (3,), "pads": (1, 1)}),
    ((1, 2, 5, 7), (3, 2), {"strides": (2, 1), "pads": (1, 0, 2, 1)}),
    ((1, 2, 3, 5, 4), (2, 3, 1), {"strides": (1, 2, 3), "pads": (1, 1, 0, 0, 2, 0)}),
    ((2, 0, 5), (2,), {}),
]


@table("version", MAX)
@table(("shape", "kernel", "attributes"), SETTINGS)
def test_the_maximum_of_each_window(
    version: int, shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any], run: Run, same: Run
) -> None:
    x = _whole(*shape)
    best, indices = _maximum(x, kernel, attributes)
    same(run("MaxPool", version, x, kernel_shape=kernel, **attributes), best)
    if version > 1:
        found = run("MaxPool", version, x, count=2, kernel_shape=kernel, **attributes)
        same(found[0], best)
        same(found[1], indices)


@table("version", AVERAGE)
@table("include", [0, 1])
@table(("shape", "kernel", "attributes"), SETTINGS)
def test_the_mean_of_each_window(
    version: int, include: int, shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any],
    run: Run, same: Run
) -> None:  # fmt: skip
    x = _whole(*shape) + F(100)
    found = run("AveragePool", version, x, kernel_shape=kernel, count_include_pad=include, **attributes)
    same(found, _average(x, kernel, attributes, include=include))


@table("op_type", ["MaxPool", "AveragePool"])
@table("word", WORDS[1:])
def test_auto_pad_gives_the_sizes_of_its_formulas(op_type: str, word: str, run: Run, same: Run) -> None:
    x = _whole(1, 1, 5, 8) + F(20)
    for version in MAX if op_type == "MaxPool" else AVERAGE:
        a: dict[str, Any] = {"auto_pad": word, "strides": (2, 3)}
        found = run(op_type, version, x, kernel_shape=(2, 4), **a)
        same(found, _maximum(x, (2, 4), a)[0] if op_type == "MaxPool" else _average(x, (2, 4), a))
        assert found.shape[2:] == ((2, 2) if word == "VALID" else (3, 3))


@table(("op_type", "version"), [(o, v) for o in DILATED for v in DILATED[o]])
@table("word", WORDS)
def test_a_dilated_window_skips_elements(op_type: str, version: int, word: str, run: Run, same: Run) -> None:
    x = _whole(1, 2, 9, 8) + F(20)
    a: dict[str, Any] = {"auto_pad": word, "strides": (2, 1), "dilations": (3, 2)}
    found = run(op_type, version, x, kernel_shape=(2, 3), **a)
    same(found, _maximum(x, (2, 3), a)[0] if op_type == "MaxPool" else _average(x, (2, 3), a))


@table(("op_type", "version"), [(o, v) for o in ROUNDED for v in ROUNDED[o]])
def test_ceil_mode_adds_a_window_that_reaches_beyond_the_padding(
    op_type: str, version: int, run: Run, same: Run
) -> None:
    x = _whole(1, 2, 6, 7) + F(20)
    a: dict[str, Any] = {"strides": (2, 3), "pads": (1, 0, 1, 0)}
    found = run(op_type, version, x, kernel_shape=(3, 3), ceil_mode=1, **a)
    assert found.shape == (1, 2, 4, 3)
    if op_type == "MaxPool":
        same(found, _maximum(x, (3, 3), a, rounding=1)[0])
        return
    same(found, _average(x, (3, 3), a, rounding=1))
    found = run(op_type, version, x, kernel_shape=(3, 3), ceil_mode=1, count_include_pad=1, **a)
    same(found, _average(x, (3, 3), a, rounding=1, include=1))


def test_beyond_the_padded_data_nothing_counts(run: Run, same: Run) -> None:
    x = np.full((1, 1, 4), 6, F)
    a = {"strides": (3,), "pads": (0, 1), "ceil_mode": 1, "count_include_pad": 1}
    same(run("AveragePool", 22, x, kernel_shape=(3,), **a), np.array([[[6, 3]]], F))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
def test_a_window_in_the_padding_at_the_end_is_ignored_from_22_on(
    op_type: str, run: Run, refused: Run, same: Run
) -> None:
    x = np.array([[[1, 2, 3]]], F)
    a = {"kernel_shape": (2,), "strides": (3,), "pads": (0, 1), "ceil_mode": 1}
    assert run(op_type, 22, x, **a).shape == (1, 1, 1)
    for version in ROUNDED[op_type][:-1]:
        assert "starts in the padding" in refused(op_type, version, x, **a)


@table(("op_type", "version"), [(o, v) for o in ROUNDED for v in ROUNDED[o]])
def test_ceil_mode_with_valid_is_refused_where_it_could_matter(
    op_type: str, version: int, run: Run, refused: Run
) -> None:
    x = np.ones((1, 1, 5), F)
    a = {"kernel_shape": (2,), "auto_pad": "VALID", "ceil_mode": 1}
    assert "VALID" in refused(op_type, version, x, strides=(2,), **a)
    assert run(op_type, version, x, strides=(3,), **a).shape == (1, 1, 2)


@table("version", MAX)
def test_a_nan_is_the_maximum(version: int, run: Run, same: Run) -> None:
    x = np.array([[[1, NAN, 3, -INF, NAN, INF]]], F)
    same(run("MaxPool", version, x, kernel_shape=(2,), strides=(2,)), np.array([[[NAN, 3, NAN]]], F))
    if version > 1:
        many = np.array([[[0, NAN, 5, NAN]]], F)
        assert run("MaxPool", version, many, count=2, kernel_shape=(4,))[1].tolist() == [[[1]]]


@table("version", MAX)
def test_a_window_of_negative_infinities_gives_one(version: int, run: Run, same: Run) -> None:
    x = np.full((1, 1, 4), -INF, F)
    same(run("MaxPool", version, x, kernel_shape=(2,), strides=(2,), pads=(1, 1)), np.full((1, 1, 3), -INF, F))
    if version > 1:
        found = run("MaxPool", version, x, count=2, kernel_shape=(2,), strides=(2,), pads=(1, 1))
        assert found[1].tolist() == [[[0, 1, 3]]]


@table("version", MAX)
def test_of_equal_elements_the_first_is_taken(version: int, run: Run, same: Run) -> None:
    same(run("MaxPool", version, np.array([[[-0.0, 0.0, 0.0, -0.0]]], F), kernel_shape=(2,), strides=(2,)),
         np.array([[[-0.0, 0.0]]], F))  # fmt: skip
    if version > 1:
        x = np.array([[[[7, 7], [7, 7]]]], F)
        assert run("MaxPool", version, x, count=2, kernel_shape=(2, 2))[1].item() == 0


@pytest.mark.parametrize("version", MAX[1:])
def test_storage_order_1_reverses_the_spatial_axes(version: int, run: Run, same: Run) -> None:
    x = _whole(2, 2, 3, 4, 5)
    found = run("MaxPool", version, x, count=2, kernel_shape=(2, 2, 3), storage_order=1)
    best, indices = _maximum(x, (2, 2, 3), {}, order=1)
    same(found[0], best)
    same(found[1], indices)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint8, ml_dtypes.bfloat16])
def test_the_maximum_keeps_the_element_type(dtype: Any, run: Run, same: Run) -> None:
    x = np.array([[[3, 5, 4, 1]]]).astype(dtype)
    same(run("MaxPool", 22, x, kernel_shape=(2,)), np.array([[[5, 5, 4]]]).astype(dtype))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
def test_a_window_that_misses_the_data_is_refused(op_type: str, run: Run, refused: Run) -> None:
    for version in MAX if op_type == "MaxPool" else AVERAGE:
        x = np.ones((1, 1, 3), F)
        assert "meets the data" in refused(op_type, version, x, kernel_shape=(2,), pads=(2, 0))
        assert "meets the data" in refused(op_type, version, x, kernel_shape=(2,), pads=(0, 2))
        assert run(op_type, version, x, kernel_shape=(3,), pads=(2, 2)).shape == (1, 1, 5)
    for version in DILATED[op_type]:
        sparse = {"kernel_shape": (2,), "dilations": (5,), "pads": (2, 4)}
        assert "meets the data" in refused(op_type, version, np.ones((1, 1, 3), F), **sparse)
        assert "meets the data" in refused(op_type, version, np.ones((1, 1, 0), F), kernel_shape=(1,), pads=(1, 1))


def test_a_mean_of_padding_alone_is_0_where_padding_counts(run: Run, same: Run) -> None:
    for version in AVERAGE:
        found = run("AveragePool", version, np.ones((1, 1, 1), F), kernel_shape=(1,), pads=(1, 1), count_include_pad=1)
        same(found, np.array([[[0, 1, 0]]], F))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
def test_a_kernel_greater_than_the_padded_data_is_refused(op_type: str, refused: Run) -> None:
    for version in MAX if op_type == "MaxPool" else AVERAGE:
        assert "fits" in refused(op_type, version, np.ones((1, 1, 2), F), kernel_shape=(3,))


@table("op_type", ["MaxPool", "AveragePool"])
@table(
    ("attributes", "sentence"),
    [
        ({"kernel_shape": (2, 2)}, "a size for each"),
        ({"kernel_shape": (0,)}, "not empty"),
        ({"kernel_shape": (2,), "strides": (1, 1)}, "one stride"),
        ({"kernel_shape": (2,), "strides": (0,)}, "positive"),
        ({"kernel_shape": (2,), "pads": (1,)}, "two paddings"),
        ({"kernel_shape": (2,), "pads": (-1, 0)}, "not negative"),
        ({"kernel_shape": (2,), "pads": (1, 0), "auto_pad": "VALID"}, "NOTSET"),
        ({"kernel_shape": (2,), "auto_pad": "same"}, "four words"),
    ],
)
def test_unfit_windows_are_refused(op_type: str, attributes: dict[str, Any], sentence: str, refused: Run) -> None:
    for version in MAX if op_type == "MaxPool" else AVERAGE:
        assert sentence in refused(op_type, version, np.ones((1, 1, 4), F), **attributes)


def test_a_nan_or_an_infinity_of_the_window_is_in_the_mean(run: Run, same: Run) -> None:
    x = np.array([[[1, NAN, 3, INF, -INF, 2]]], F)
    for version in AVERAGE:
        same(run("AveragePool", version, x, kernel_shape=(2,), strides=(2,)), np.array([[[NAN, INF, -INF]]], F))


def test_the_sum_of_the_mean_is_rounded_step_by_step(run: Run, same: Run) -> None:
    x = np.array([[[2048, 1, 1, 1]]], np.float16)
    same(run("AveragePool", 22, x, kernel_shape=(4,)), np.array([[[512]]], np.float16))


@table("version", [1, 22])
@table("shape", [(2, 3, 4), (1, 2, 3, 5), (2, 1, 2, 2, 3)])
def test_the_global_mean_is_that_of_each_channel(version: int, shape: tuple[int, ...], run: Run, same: Run) -> None:
    x = _whole(*shape)
    axes = tuple(range(2, len(shape)))
    expected = x.sum(axis=axes, keepdims=True) / F(math.prod(shape[2:]))
    same(run("GlobalAveragePool", version, x), expected)


@pytest.mark.parametrize("version", [1, 22])
def test_the_global_mean_of_nothing_is_refused(version: int, refused: Run) -> None:
    assert "empty" in refused("GlobalAveragePool", version, np.ones((1, 2, 3, 0), F))
    assert "spatial" in refused("GlobalAveragePool", version, np.ones((1, 2), F))


@pytest.mark.parametrize("version", MAX)
@pytest.mark.parametrize(
    "a", [{"kernel_shape": (3,), "pads": (1, 0)}, {"kernel_shape": (3,), "strides": (2,), "auto_pad": "SAME_UPPER"}]
)
def test_a_single_window_that_meets_padding_has_a_maximum(version: int, a: dict[str, Any], run: Run, same: Run) -> None:
    same(run("MaxPool", version, np.array([[[1, 2]]], F), **a), np.array([[[2]]], F))
    same(run("MaxPool", version, np.array([[[NAN, 2]]], F), **a), np.array([[[NAN]]], F))


@pytest.mark.parametrize("version", [9, 11, 22])
def test_unpooling_puts_elements_back_where_they_were(version: int, run: Run, same: Run) -> None:
    x = np.random.default_rng(5).normal(size=(2, 2, 5, 6)).astype(np.float32)
    window = {"kernel_shape": (2, 2), "strides": (2, 2)}
    pooled, indices = run("MaxPool", 22, x, count=2, **window)
    expected = np.zeros_like(x)
    expected.reshape(-1)[indices.reshape(-1)] = pooled.reshape(-1)
    same(run("MaxUnpool", version, pooled, indices, np.array(x.shape), **window), expected)
    even, places = run("MaxPool", 22, x[:, :, :4], count=2, **window)
    back = run("MaxUnpool", version, even, places, **window)
    assert back.shape == (2, 2, 4, 6)
    same(run("MaxPool", 22, np.where(back == 0, np.float32(-9), back), **window), even)


def test_max_unpool_special_cases(run: Run, refused: Run, same: Run) -> None:
    x, places = np.array([[[1, 2]]], np.float32), np.array([[[1, 1]]])
    same(run("MaxUnpool", 22, x, places, kernel_shape=(2,), pads=(0, 1)), np.array([[[0, 2]]], np.float32))
    same(run("MaxUnpool", 9, x, places, kernel_shape=(1,)), np.array([[[0, 2]]], np.float32))

    def why(x: Any, places: Any, *shape: Any, **attributes: Any) -> str:
        return refused("MaxUnpool", 11, x, places, *shape, **{"kernel_shape": (2,)} | attributes)

    assert "shape of X" in why(x, places[..., :1])
    assert "spatial axis" in why(x[0], places[0], kernel_shape=())
    assert "size for each spatial" in why(x, places, kernel_shape=(2, 2))
    assert "one stride" in why(x, places, strides=(1, 1))
    assert "two paddings" in why(x, places, pads=(1,))
    assert "not negative" in why(x, places, pads=(-1, 0))
    assert "size for each axis" in why(x, places, np.array([1, 1]))
    assert "batch and the channels" in why(x, places, np.array([1, 2, 9]))
    assert "in the output" in why(x, places + 2)
