from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from tables import table

F = np.float32
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(11)


def _full(x: Any, w: Any, strides: Any, dilations: Any, more: Any, group: int) -> Any:
    """Every element of x times the kernels of its channel, laid into the output."""
    n, c, *d = x.shape
    mg, *k = w.shape[1:]
    size = [(a - 1) * s + p + (e - 1) * t + 1 for a, s, p, e, t in zip(d, strides, more, k, dilations, strict=True)]
    y = np.zeros((n, mg * group, *size))
    for z, i, r, e in product(range(c), np.ndindex(*d), range(mg), np.ndindex(*k)):
        at = tuple(a * s + b * t for a, s, b, t in zip(i, strides, e, dilations, strict=True))
        y[(slice(None), z // (c // group) * mg + r, *at)] += x[(slice(None), z, *i)] * w[(z, r, *e)]
    return y


def _ints(*shape: int) -> Any:
    return RNG.integers(-4, 5, shape).astype(F)


@table("version", [1, 11, 22])
@table(
    ("d", "k", "strides", "dilations", "more", "group"),
    [
        ((5,), (3,), (1,), (1,), (0,), 1),
        ((5,), (2,), (3,), (1,), (2,), 2),
        ((3, 4), (3, 2), (2, 3), (1, 1), (1, 0), 1),
        ((3, 4), (2, 3), (1, 2), (3, 2), (2, 1), 2),
        ((2, 3, 2), (2, 1, 3), (2, 1, 1), (1, 1, 2), (0, 0, 0), 1),
    ],
)
def test_each_element_is_laid_into_the_output(
    version: int, d: Any, k: Any, strides: Any, dilations: Any, more: Any, group: int, run: Run, same: Check
) -> None:
    x, w, b = _ints(2, 4, *d), _ints(4, 3, *k), _ints(3 * group)
    full = _full(x, w, strides, dilations, more, group)
    named = {"strides": strides, "dilations": dilations, "output_padding": more, "group": group}
    same(run("ConvTranspose", version, x, w, **named), full.astype(F))
    found = run("ConvTranspose", version, x, w, b, kernel_shape=k, pads=(1,) * 2 * len(d), **named)
    cut = full[(..., *(slice(1, size - 1) for size in full.shape[2:]))]
    same(found, (cut + b.reshape(-1, *(1,) * len(d))).astype(F))


def test_version_11_and_version_1_halve_an_odd_padding_at_other_ends(run: Run, same: Check) -> None:
    x, w = _ints(1, 1, 4), _ints(1, 1, 3)
    full = _full(x, w, (2,), (1,), (0,), 1).astype(F)
    for auto_pad in ("NOTSET", "SAME_LOWER", "VALID"):
        same(run("ConvTranspose", 11, x, w, strides=(2,), output_shape=(8,), auto_pad=auto_pad), full[..., 1:])
    same(run("ConvTranspose", 11, x, w, strides=(2,), output_shape=(8,), auto_pad="SAME_UPPER"), full[..., :8])
    for auto_pad in ("NOTSET", "VALID"):
        same(run("ConvTranspose", 1, x, w, strides=(2,), output_shape=(8,), auto_pad=auto_pad), full[..., :8])


@pytest.mark.parametrize("version", [1, 11, 22])
def test_same_makes_the_output_a_multiple_of_the_input(version: int, run: Run, same: Check) -> None:
    x, w, even = _ints(1, 1, 4), _ints(1, 1, 3), _ints(1, 1, 2)
    full = _full(x, w, (2,), (1,), (0,), 1).astype(F)
    same(run("ConvTranspose", version, x, w, strides=(2,), auto_pad="SAME_UPPER"), full[..., :8])
    same(run("ConvTranspose", version, x, w, strides=(2,), auto_pad="SAME_LOWER"), full[..., 1:])
    full = _full(x, even, (1,), (1,), (0,), 1).astype(F)
    same(run("ConvTranspose", version, x, even, auto_pad="SAME_UPPER"), full[..., :4])
    same(run("ConvTranspose", version, x, even, auto_pad="SAME_LOWER"), full[..., 1:])


def test_an_output_greater_than_what_the_kernels_reach_has_the_bias_there(run: Run, same: Check) -> None:
    x, w, b = _ints(1, 1, 2), _ints(1, 1, 2), np.array([9], F)
    full = _full(x, w, (1,), (1,), (0,), 1).astype(F) + 9
    edge = np.full((1, 1, 1), 9, F)
    same(run("ConvTranspose", 11, x, w, b, output_shape=(4,)), np.concatenate([full, edge], -1))
    same(run("ConvTranspose", 11, x, w, b, output_shape=(5,)), np.concatenate([edge, full, edge], -1))
    same(run("ConvTranspose", 1, x, w, b, output_shape=(4,)), np.concatenate([edge, full], -1))
    same(run("ConvTranspose", 1, x, w, b, output_shape=(4,), auto_pad="SAME_UPPER"), np.concatenate([full, edge], -1))


def test_special_values_spread_where_their_kernels_reach(run: Run) -> None:
    x, w = np.array([[[0, np.nan, 0]]], F), np.ones((1, 1, 2), F)
    found = run("ConvTranspose", 22, x, w)
    assert np.isnan(found[0, 0]).tolist() == [False, True, True, False]


@pytest.mark.parametrize("version", [1, 11])
def test_empty_inputs_give_the_bias(version: int, run: Run, same: Check) -> None:
    b = np.array([2, 3], F)
    found = run("ConvTranspose", version, np.zeros((1, 0, 3), F), np.zeros((0, 2, 2), F), b)
    same(found, np.broadcast_to(b[:, None], (1, 2, 4)).copy())


@table("version", [1, 11, 22])
@table(
    ("attributes", "sentence"),
    [
        ({"group": 0}, "positive"),
        ({"group": 3}, "divide"),
        ({"kernel_shape": (2,)}, "kernel_shape"),
        ({"strides": (1, 1)}, "one stride"),
        ({"strides": (0,)}, "Strides"),
        ({"dilations": (0,)}, "Dilations"),
        ({"pads": (1,)}, "two paddings"),
        ({"pads": (-1, 0)}, "not negative"),
        ({"pads": (3, 3)}, "leave an output"),
        ({"pads": (1, 1), "auto_pad": "VALID"}, "NOTSET"),
        ({"auto_pad": "SAME"}, "four words"),
        ({"output_padding": (1,)}, "smaller than"),
        ({"output_shape": (1, 2, 3)}, "output_shape"),
    ],
)
def test_unfit_attributes_are_refused(version: int, attributes: Any, sentence: str, refused: Run) -> None:
    assert sentence in refused("ConvTranspose", version, _ints(1, 4, 3), _ints(4, 1, 3), **attributes)


@pytest.mark.parametrize("version", [1, 11, 22])
def test_an_output_of_one_element_is_summed_like_any_other(version: int, run: Run, same: Check) -> None:
    x, w, b = np.array([[[1, 2]]], F), np.array([[[1, 2]]], F), np.array([1], F)
    same(run("ConvTranspose", version, x, w, pads=(2, 0)), np.array([[[4]]], F))
    same(run("ConvTranspose", version, x, w, b, pads=(1, 1)), np.array([[[5]]], F))


# ---- Col2Im -------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [2, 3])
def test_blocks_add_up_to_an_image(axes: int, run: Run, same: Check) -> None:
    rng = np.random.default_rng(axes)
    sizes, block = (5, 4, 3)[:axes], (2, 3, 2)[:axes]
    strides, dilations, pads = (2, 1, 1)[:axes], (2, 1, 1)[:axes], ((1, 0, 1)[:axes], (0, 1, 0)[:axes])
    padded = [d + a + b for d, a, b in zip(sizes, *pads, strict=True)]
    counts = [(p - (k - 1) * t - 1) // s + 1 for p, k, t, s in zip(padded, block, dilations, strides, strict=True)]
    columns = rng.integers(-9, 9, size=(2, 3, *block, *counts)).astype(np.float32)
    image = np.zeros((2, 3, *padded), np.float32)
    for at in np.ndindex(*block, *counts):
        place = tuple(c * s + k * t for c, s, k, t in zip(at[axes:], strides, at[:axes], dilations, strict=True))
        image[(..., *place)] += columns[(..., *at)]
    cut = tuple(slice(a, a + d) for a, d in zip(pads[0], sizes, strict=True))
    flat = columns.reshape(2, 3 * int(np.prod(block)), -1)
    stated = {"strides": strides, "dilations": dilations, "pads": (*pads[0], *pads[1])}
    same(run("Col2Im", 18, flat, np.array(sizes), np.array(block), **stated), image[(..., *cut)])


def test_col2im_refuses_columns_that_are_no_blocks_of_the_image(run: Run, refused: Run) -> None:
    x, sizes, block = np.ones((1, 4, 2), np.float32), np.array([2, 3]), np.array([2, 2])
    assert run("Col2Im", 18, x, sizes, block).tolist() == [[[[1, 2, 1], [1, 2, 1]]]]

    def why(*inputs: Any, **attributes: Any) -> str:
        return refused("Col2Im", 18, *inputs, **attributes)

    assert "at least two" in why(x, sizes[:1], block[:1])
    assert "one stride" in why(x, sizes, block, strides=(1,))
    assert "one dilation" in why(x, sizes, block, dilations=(1,))
    assert "two paddings" in why(x, sizes, block, pads=(1, 1))
    assert "not negative" in why(x, sizes, block, pads=(0, 0, 0, -1))
    assert "added" in why(np.ones((1, 4, 2), np.bool_), sizes, block)
    assert "Strides" in why(x, sizes, block, strides=(0, 1))
    assert "Dilations" in why(x, sizes, block, dilations=(0, 1))
    assert "not empty" in why(x, sizes, block * 0)
    assert "fits" in why(x, sizes, block + 1)
    assert "whole blocks" in why(x[:, :3], sizes, block)
    assert "a column for each" in why(x[..., :1], sizes, block)
