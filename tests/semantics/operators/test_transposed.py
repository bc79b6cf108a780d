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
