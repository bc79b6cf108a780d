"""Verdicts on results: whether each element is one of those that are allowed, and how near the edge it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .....errors import InternalError
from .....model.elements import DType, is_float
from ...bound import Allowed
from ...terms import Array
from ..ieee import narrow


@dataclass(frozen=True, slots=True)
class Verdict:
    """By element: whether it is allowed; whether it is, bit for bit, the declared result (None where none was given);
    its distance from the middle of what is allowed, counted in numbers of the type (`ulp`) and as a part of the radius
    (`ratio`: at most 1 for what is allowed, 0 in the middle; infinite where one value is allowed and it is another).
    """

    allowed: NDArray[np.bool_]
    declared: NDArray[np.bool_] | None
    ulp: NDArray[np.float64]
    ratio: NDArray[np.float64]

    @property
    def holds(self) -> bool:
        """True if every element is allowed."""
        return bool(self.allowed.all())

    @property
    def worst(self) -> tuple[int, ...] | None:
        """The index of the element with the greatest ratio, one that is not allowed if there is any; None for none."""
        if not self.ratio.size:
            return None
        rank = np.where(self.allowed, np.minimum(self.ratio, 1.0), np.maximum(self.ratio, 1.0) + 1.0)
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(rank)), rank.shape))


def judge(allowed: Allowed, value: Array, declared: Array | None = None) -> Verdict:
    """The verdict on a tensor. declared: the result in the order of summation that the definition declares.

    Raises InternalError where the shape or the element type is another: that is no matter of bounds.
    """
    if value.dtype != allowed.type or value.shape != allowed.least.shape:
        raise InternalError(f"bounds of {allowed.type} and shape {allowed.least.shape} for {value.dtype} {value.shape}")
    same = None if declared is None else identical_elements(value, declared)
    if not is_float(allowed.type):
        return _integers(allowed, value, same)
    x = value.astype(np.float64)
    strange = np.isnan(x)
    inside = (x >= allowed.least) & (x <= allowed.most)
    zero = x == 0
    if zero.any():
        minus = np.signbit(x)
        below = (allowed.least < 0) | ((allowed.least == 0) & np.signbit(allowed.least))
        above = (allowed.most > 0) | ((allowed.most == 0) & ~np.signbit(allowed.most))
        inside &= ~zero | np.where(minus, below, above)
    fits = np.where(strange, allowed.maybe_nan, inside & ~allowed.nan)
    with np.errstate(all="ignore"):
        return Verdict(np.asarray(fits), same, *_distances(allowed, value, x, fits))


def _distances(
    allowed: Allowed, value: Array, x: NDArray[np.float64], fits: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distances from the middle: in numbers of the type, and as a part of the radius."""
    centre = allowed.least + (allowed.most - allowed.least) / 2
    radius = allowed.most - centre
    ratio = np.abs(x - centre) / radius
    ratio = np.where((x == centre) | ~np.isfinite(ratio), np.where(fits, 0.0, np.inf), ratio)
    ratio = np.where(fits, np.minimum(ratio, 1.0), np.maximum(ratio, np.nextafter(1.0, 2.0)))
    middle = np.asarray(narrow(np.where(np.isfinite(centre), centre, x), allowed.type))
    steps = np.abs(ordered(value) - ordered(middle))
    strange = np.isnan(x) | ~np.isfinite(centre)
    return np.where(strange, np.where(fits, 0.0, np.inf), steps), ratio


def _integers(allowed: Allowed, value: Array, same: NDArray[np.bool_] | None) -> Verdict:
    least, most = (
        z.astype(object) if z.dtype.itemsize == 8 else z.astype(np.int64) for z in (allowed.least, allowed.most)
    )
    x = value.astype(allowed.least.dtype)
    x = x.astype(object) if x.dtype.itemsize == 8 else x.astype(np.int64)
    fits = np.asarray((x >= least) & (x <= most)).astype(bool)
    centre = (least + most) / 2
    away = np.abs(np.asarray(x - centre)).astype(np.float64)
    radius = np.asarray((most - least) / 2).astype(np.float64)
    with np.errstate(all="ignore"):
        ratio = np.where(away == 0, 0.0, away / radius)
    return Verdict(fits, same, away, np.asarray(ratio))


def ordered(x: Array) -> NDArray[np.float64]:
    """The position of floating-point numbers among those of their type, 0 for zero: neighbours differ by 1.

    Doubles of very different size may lose the last digits of the distance.
    """
    dtype: DType = x.dtype
    size = dtype.itemsize
    code = np.ascontiguousarray(x).view(f"u{size}").reshape(x.shape).astype(np.uint64)
    top = np.uint64(1 << (8 * size - 1)) if dtype.name != "float8_e8m0fnu" else np.uint64(0)
    if not top:
        return code.astype(np.float64)
    magnitude = (code & (top - np.uint64(1))).astype(np.int64)
    return np.where(code & top, -magnitude, magnitude).astype(np.float64)


def identical_elements(a: Array, b: Array) -> NDArray[np.bool_]:
    """True if elements agree in every bit; one NaN is another."""
    if a.dtype != b.dtype or a.shape != b.shape:
        raise InternalError(f"{a.dtype} {a.shape} beside {b.dtype} {b.shape}")
    if not is_float(a.dtype):
        return np.asarray(a == b).astype(bool)
    x, y = a.astype(np.float64), b.astype(np.float64)
    return np.asarray(((x == y) & (np.signbit(x) == np.signbit(y))) | (np.isnan(x) & np.isnan(y)))


def summary(verdict: Verdict) -> tuple[float, float]:
    """The greatest distance in numbers of the type, and the greatest ratio; 0 for no element."""
    if not verdict.ratio.size:
        return 0.0, 0.0
    return float(verdict.ulp.max()), float(np.nan_to_num(verdict.ratio.max(), posinf=math.inf))
