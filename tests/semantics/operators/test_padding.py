from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
NAN, INF = F("nan"), F("inf")
Run = Callable[..., Any]
INPUT = [11, 13, 18, 19, 21, 23, 24, 25]
WRAP = INPUT[3:]
MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def _padded(x: Any, pads: tuple[int, ...], mode: str, value: Any = 0) -> Any:
    """numpy.pad after the removal of what negative pads remove."""
    r = x.ndim
    kept = x[tuple(slice(max(-pads[k], 0), x.shape[k] - max(-pads[r + k], 0)) for k in range(r))]
    width = [(max(pads[k], 0), max(pads[r + k], 0)) for k in range(r)]
    options = {"constant_values": value} if mode == "constant" else {}
    return np.pad(kept, width, mode=mode, **options)  # type: ignore[call-overload]


def _run(run: Run, version: int, x: Any, pads: tuple[int, ...], mode: str, value: Any = None) -> Any:
    if version == 2:
        attributes = {} if value is None else {"value": float(value)}
        return run("Pad", 2, x, pads=pads, mode=mode, **attributes)
    constant = () if value is None else (np.array(value, x.dtype),)
    return run("Pad", version, x, np.array(pads, np.int64), *constant, mode=mode)


@table("version", [2, *INPUT])
@table("mode", MODES)
@table("pads", [(1, 2, 0, 1), (0, 0, 0, 0), (-1, 1, 1, -2), (1, -1, -1, 2), (0, -3, 2, 0)])
def test_padding_is_that_of_numpy_after_removal(
    version: int, mode: str, pads: tuple[int, ...], run: Run, same: Run
) -> None:
    if mode == "wrap" and version not in WRAP:
        return
    x = np.arange(1, 16, dtype=F).reshape(3, 5)
    same(_run(run, version, x, pads, mode), _padded(x, pads, mode))


@pytest.mark.parametrize("version", WRAP)
def test_wrap_goes_round_more_than_once(version: int, run: Run, same: Run) -> None:
    x = np.array([1, 2, 3], F)
    same(_run(run, version, x, (7, 5), "wrap"), np.pad(x, (7, 5), mode="wrap"))


@table("version", [2, *INPUT])
def test_the_constant_is_the_one_that_is_given(version: int, run: Run, same: Run) -> None:
    x = np.array([[1, -0.0], [NAN, INF]], F)
    same(_run(run, version, x, (0, 1, 1, 0), "constant", 0.1), _padded(x, (0, 1, 1, 0), "constant", F(0.1)))
    same(_run(run, version, x, (0, 1, 1, 0), "constant"), _padded(x, (0, 1, 1, 0), "constant", 0))
    if version > 2:
        nan = _run(run, version, x, (0, 1, 1, 0), "constant", NAN)
        assert np.isnan(nan[:, 0]).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, np.float64])
def test_other_types_of_numbers(dtype: Any, run: Run, same: Run) -> None:
    x = np.array([3, 1, 2]).astype(dtype)
    for mode in MODES:
        same(_run(run, 19, x, (1, 2), mode), _padded(x, (1, 2), mode))


def test_what_is_no_number_is_filled_with_what_is_blank(run: Run, same: Run) -> None:
    pads = np.array([1, 1])
    same(run("Pad", 13, np.array([True, True]), pads), np.array([False, True, True, False]))
    same(run("Pad", 25, np.array([b"a"], object), pads), np.array([b"", b"a", b""], object))
    same(run("Pad", 13, np.array([b"a"], object), pads, np.array(b"z", object)), np.array([b"z", b"a", b"z"], object))
    assert run("Pad", 13, np.array([1j], np.complex64), pads).tolist() == [0, 1j, 0]
    for dtype in (
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.int4,
        ml_dtypes.float4_e2m1fn,
        ml_dtypes.uint2,
    ):
        assert run("Pad", 25, np.ones(1, dtype), pads).astype(F).tolist() == [0, 1, 0]


@table("version", INPUT[2:])
@table("kind", [np.int32, np.int64])
def test_pads_stand_in_the_order_of_axes(version: int, kind: Any, run: Run, same: Run) -> None:
    x = np.arange(24, dtype=F).reshape(2, 3, 4)
    for axes in ([2, 0], [-1, 0], [1], [0, 1, 2], []):
        begin, end = list(range(1, len(axes) + 1)), [0] * len(axes)
        pads = [0] * 6
        for axis, b, e in zip(axes, begin, end, strict=True):
            pads[axis % 3], pads[3 + axis % 3] = b, e
        found = run("Pad", version, x, np.array(begin + end, np.int64), None, np.array(axes, kind), mode="edge")
        same(found, _padded(x, tuple(pads), "edge"))


@table("version", [2, *INPUT])
def test_an_empty_axis_is_filled_by_a_constant_alone(version: int, run: Run, refused: Run, same: Run) -> None:
    x = np.zeros((0, 2), F)
    same(_run(run, version, x, (1, 0, 1, 0), "constant"), np.zeros((2, 2), F))
    for mode in ("reflect", "edge", "wrap") if version in WRAP else ("reflect", "edge"):
        same(_run(run, version, x, (0, 1, 0, 0), mode), np.zeros((0, 3), F))
        assert "keeps one" in _run(refused, version, x, (1, 0, 0, 0), mode)


@table("version", [2, *INPUT])
def test_reflect_needs_more_elements_than_it_adds(version: int, run: Run, refused: Run, same: Run) -> None:
    x = np.array([1, 2, 3], F)
    same(_run(run, version, x, (2, 2), "reflect"), np.array([3, 2, 1, 2, 3, 2, 1], F))
    for pads in ((3, 0), (0, 3), (-1, 2)):
        assert "fewer elements" in _run(refused, version, x, pads, "reflect")
    same(_run(run, version, np.array([5], F), (0, 0), "reflect"), np.array([5], F))


@table("version", [2, *INPUT])
def test_an_axis_cannot_lose_more_than_it_has(version: int, run: Run, refused: Run, same: Run) -> None:
    same(_run(run, version, np.ones(3, F), (-1, -2), "constant"), np.zeros(0, F))
    for pads in ((-4, 0), (-2, -2), (-4, 5)):
        assert "loses more" in _run(refused, version, np.ones(3, F), pads, "constant")


@table("version", [2, *INPUT])
def test_pads_of_the_wrong_number_and_unknown_modes_are_refused(version: int, refused: Run) -> None:
    assert "two pads" in _run(refused, version, np.ones(3, F), (1,), "constant")
    assert "words" in _run(refused, version, np.ones(3, F), (1, 1), "symmetric")
    if version not in WRAP:
        assert "three words" in _run(refused, version, np.ones(3, F), (1, 1), "wrap")
    if version > 2:
        many = np.ones(2, F)
        assert "one element" in refused("Pad", version, np.ones(3, F), np.array([1, 1]), many)


@table("version", INPUT[2:])
def test_axes_out_of_range_or_listed_twice_are_refused(version: int, refused: Run) -> None:
    x = np.ones((2, 2), F)
    for axes, sentence in (([2], "axes of the data"), ([-3], "axes of the data")):
        assert sentence in refused("Pad", version, x, np.array([1, 1]), None, np.array(axes))
    assert "twice" in refused("Pad", version, x, np.array([1, 1, 1, 1]), None, np.array([1, -1]))


def test_a_scalar_has_nothing_to_pad(run: Run, same: Run) -> None:
    for version in INPUT:
        same(run("Pad", version, np.array(3, F), np.zeros(0, np.int64)), np.array(3, F))


def test_many_axes_pad_independently(run: Run, same: Run) -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 2, 4)).astype(F)
    for mode, pads in itertools.product(MODES, [(1, 2, 0, 3, 0, 1, 1, 2), (0, -1, 0, 0, 1, 1, -1, 3)]):
        same(_run(run, 25, x, pads, mode), _padded(x, pads, mode))
