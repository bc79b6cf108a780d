"""Resize. Coordinates, weights and sizes are exact; weights are rounded to the element type, as are their products."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..functions import DOUBLE, DType, greatest, is_float, is_integer, narrow, saturated, to_odd
from ..kernel import Allocate, Array, Compute, Inputs, Kernel, Outputs, Site
from ..products import widened
from ..reading import integer, integers, number, optional, require, tensor, text
from ..windows import Sizes

HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Line:
    """One axis: d positions become o ones. scale: the factor. start, end: of the region of interest."""

    d: int
    o: int
    scale: Fraction
    start: Fraction = Fraction(0)
    end: Fraction = Fraction(1)

    @property
    def still(self) -> bool:
        """True where the axis stays as it is."""
        return self.scale == 1 and self.start == 0 and self.end == 1


@dataclass(frozen=True, slots=True)
class Taps:
    """For each tap and position: the place that is read, within the data; its weight, as a double that rounds as the
    exact weight does; whether the exact weight is other than 0. All have the shape taps, positions.
    """

    places: NDArray[np.int64]
    weights: NDArray[np.float64]
    counts: NDArray[np.bool_]


def coordinate(how: str, line: Line) -> Callable[[int], Fraction]:
    """The coordinate in the data for which a position of the resized axis stands."""
    d, o, scale, start, end = line.d, line.o, line.scale, line.start, line.end
    match how:
        case "half_pixel":
            return lambda x: (x + HALF) / scale - HALF
        case "half_pixel_symmetric":
            shift = (d - o / scale) / 2
            return lambda x: shift + (x + HALF) / scale - HALF
        case "pytorch_half_pixel":
            return lambda x: (x + HALF) / scale - HALF if o > 1 else Fraction(0)
        case "align_corners":
            return lambda x: Fraction(x * (d - 1), o - 1) if o > 1 else Fraction(0)
        case "tf_half_pixel_for_nn":
            return lambda x: (x + HALF) / scale
        case "tf_crop_and_resize":
            if o > 1:
                return lambda x: start * (d - 1) + x * (end - start) * (d - 1) / (o - 1)
            return lambda x: HALF * (start + end) * (d - 1)
        case _:
            return lambda x: x / scale


def affine(how: str, line: Line) -> tuple[list[int], int]:
    """The coordinates of all positions as numerators over one denominator."""
    at = coordinate(how, line)
    first = at(0)
    slope = at(1) - first
    below = math.lcm(first.denominator, slope.denominator)
    base, step = int(first * below), int(slope * below)
    return [base + step * x for x in range(line.o)], below


def nearest(how: str, nearest_mode: str, line: Line) -> NDArray[np.int64]:
    """The place that is nearest to each coordinate, within the data."""
    above, below = affine(how, line)
    match nearest_mode:
        case "round_prefer_floor":
            indices = [-((below - 2 * a) // (2 * below)) for a in above]
        case "round_prefer_ceil":
            indices = [(2 * a + below) // (2 * below) for a in above]
        case "floor":
            indices = [a // below for a in above]
        case _:
            indices = [-(-a // below) for a in above]
    return np.array([min(max(place, 0), line.d - 1) for place in indices], np.int64)


def inside(how: str, line: Line) -> NDArray[np.bool_]:
    """True where each coordinate lies within the data."""
    above, below = affine(how, line)
    return np.array([0 <= a <= (line.d - 1) * below for a in above], bool)


def falloff(mode: str, a: Fraction, u: Fraction) -> Fraction:
    """The weight at a distance; for cubic the kernel of Keys, IEEE ASSP 29 (1981), equation (4), with coefficient a."""
    u = abs(u)
    if mode == "linear":
        return max(1 - u, Fraction(0))
    if u <= 1:
        return ((a + 2) * u - (a + 3)) * u * u + 1
    return ((u - 5) * u + 8) * u * a - 4 * a if u < 2 else Fraction(0)


def taps(
    how: str, line: Line, mode: str, a: Fraction, *, exclude_outside: bool, antialias: bool, in_double: bool
) -> Taps:
    """Elements read for each position, and their weights. in_double: they are used as doubles, not rounded again."""
    above, below = affine(how, line)
    stretch = min(line.scale, Fraction(1)) if antialias else Fraction(1)
    reach = (2 if mode == "cubic" else 1) / stretch
    count = math.ceil(2 * reach)
    share = exclude_outside or stretch != 1
    places, weights = [], []
    for numerator in above:
        at = Fraction(numerator, below)
        first = math.floor(at - reach) + 1
        around = range(first, first + count)
        parts = [
            Fraction(0) if exclude_outside and not 0 <= place < line.d else falloff(mode, a, stretch * (place - at))
            for place in around
        ]
        whole = sum(parts) if share else 0
        near = min(max(first, -count), line.d)  # what lies further out is held at the same end
        places.append(range(near, near + count))
        weights.append([part / whole for part in parts] if whole else parts)
    rounded = float if in_double else to_odd
    source = np.array(places, np.int64).reshape(len(above), count)
    return Taps(
        np.clip(source, 0, max(line.d - 1, 0)).T,
        np.array([[rounded(w) for w in row] for row in weights], np.float64).reshape(len(above), count).T,
        np.array([[w != 0 for w in row] for row in weights], bool).reshape(len(above), count).T,
    )


Given = tuple[float, ...] | None
MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")
MORE_MODES: Mapping[int, tuple[str, ...]] = {11: ("tf_half_pixel_for_nn",), 19: ("half_pixel_symmetric",)}


@dataclass(frozen=True, slots=True)
class How:
    """The attributes of a node."""

    version: int
    mode: str
    coordinates: str
    nearest: str
    policy: str
    axes: Sizes | None
    coefficient: Fraction
    exclude_outside: bool
    antialias: bool
    extrapolation: float

    @property
    def crops(self) -> bool:
        """True where a region of interest is cut out."""
        return self.coordinates == "tf_crop_and_resize"


def _how(site: Site) -> How:
    old = site.version < 11
    return How(
        site.version,
        text(site, "mode", "nearest"),
        "asymmetric" if old else text(site, "coordinate_transformation_mode", "half_pixel"),
        "floor" if old else text(site, "nearest_mode", "round_prefer_floor"),
        text(site, "keep_aspect_ratio_policy", "stretch"),
        integers(site, "axes"),
        Fraction(number(site, "cubic_coeff_a", -0.75)),
        integer(site, "exclude_outside") != 0,
        integer(site, "antialias") != 0,
        number(site, "extrapolation_value"),
    )


def _require_words(how: How, dtype: DType) -> None:
    old = how.version < 11
    require(how.mode in (("nearest", "linear") if old else ("nearest", "linear", "cubic")), "mode is one of the words")
    words = (*MODES, *MORE_MODES.get(how.version, ()))
    require(how.coordinates in words, "coordinate_transformation_mode is one of the words")
    words = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    require(how.nearest in words, "nearest_mode is one of the four words")
    words = ("stretch", "not_larger", "not_smaller")
    require(how.policy in words, "keep_aspect_ratio_policy is one of the three words")
    numeric = dtype.kind not in "Ob"
    require((how.mode == "nearest" and not how.crops) or numeric, "numbers are averaged")
    require(not how.antialias or how.mode != "nearest", "antialias filters linear and cubic")


def _rationals(values: tuple[float, ...]) -> list[Fraction]:
    require(all(map(math.isfinite, values)), "factors and regions are finite")
    return [Fraction(v) for v in values]


def _lines(how: How, d: Sizes, roi: Given, scales: Given, sizes: Given) -> list[Line]:
    """The axes: how long they become, by which factor, and which part of them is sampled."""
    r = len(d)
    axes = tuple(range(r)) if how.axes is None else how.axes
    require(all(-r <= k < r for k in axes), "axes are axes of X")
    listed = [k % r for k in axes]
    require(len(set(listed)) == len(listed), "no axis is listed twice")
    by_factor, sized = bool(scales), bool(sizes)
    require(not (by_factor and sized), "either scales or sizes say how far")
    require(by_factor or sizes is not None or how.version < 11, "either scales or sizes say how far")
    by_size = not by_factor and how.version >= 11
    count = len(sizes or ()) if by_size else len(scales or ())
    require(count == len(listed), "there is a size or a factor for each axis")
    want = [int(n) for n in sizes or ()] if by_size else []
    factor = [] if by_size else _rationals(scales or ())
    require(all(f > 0 for f in factor), "factors are positive")
    require(all(n > 0 and d[k] > 0 for n, k in zip(want, listed, strict=False)), "sizes are positive, those of X too")
    region = [Fraction(0)] * len(listed) + [Fraction(1)] * len(listed)
    if how.crops:
        require(roi is not None and len(roi) == 2 * len(listed), "roi has a start and an end for each axis")
        region = _rationals(roi or ())
    ratio = [Fraction(n, d[k]) for n, k in zip(want, listed, strict=False)]
    if how.policy != "stretch" and ratio:
        ratio = [min(ratio) if how.policy == "not_larger" else max(ratio)] * len(ratio)
    lines = [Line(n, n, Fraction(1)) for n in d]
    for j, k in enumerate(listed):
        start, end = region[j], region[len(listed) + j]
        if not by_size:
            lines[k] = Line(d[k], math.floor(d[k] * (end - start) * factor[j]), factor[j], start, end)
        else:
            o = want[j] if how.policy == "stretch" else math.floor(ratio[j] * d[k] + HALF)
            lines[k] = Line(d[k], o, ratio[j], start, end)
    require(all(line.o >= 0 for line in lines), "the region of interest does not end before it starts")
    return lines


@dataclass(frozen=True, slots=True)
class ResizePlan:
    """shape: of the output. places: for nearest, by axis. taps: for the others, by axis. within: by axis, where the
    coordinates lie within the data. An axis that stays as it is has no entry.
    """

    shape: Sizes
    places: Mapping[int, Array]
    taps: Mapping[int, Taps]
    within: Mapping[int, Array]


def _plan(how: How, d: Sizes, roi: Given, scales: Given, sizes: Given, in_double: bool) -> ResizePlan:
    lines = _lines(how, d, roi, scales, sizes)
    shape = tuple(line.o for line in lines)
    moved = {k: line for k, line in enumerate(lines) if not line.still}
    if 0 in shape:
        return ResizePlan(shape, {}, {}, {})
    within = {k: inside(how.coordinates, line) for k, line in moved.items()} if how.crops else {}
    if how.mode == "nearest":
        old = how.version < 11
        words = {k: "ceil" if old and line.scale < 1 else how.nearest for k, line in moved.items()}
        return ResizePlan(shape, {k: nearest(how.coordinates, words[k], line) for k, line in moved.items()}, {}, within)
    ways = {
        k: taps(
            how.coordinates,
            line,
            how.mode,
            how.coefficient,
            exclude_outside=how.exclude_outside,
            antialias=how.antialias,
            in_double=in_double,
        )
        for k, line in moved.items()
    }
    return ResizePlan(shape, {}, ways, within)


def _resize(site: Site) -> Compute:
    how = _how(site)

    @lru_cache(maxsize=8)
    def plan(d: Sizes, roi: Given, scales: Given, sizes: Given, in_double: bool) -> ResizePlan:
        return _plan(how, d, roi, scales, sizes, in_double)

    def compute(inputs: Inputs, allocate: Allocate) -> Outputs:
        x = tensor(inputs, 0)
        _require_words(how, x.dtype)
        if how.version < 11:
            roi, scales, sizes = None, optional(inputs, 1), None
        else:
            roi, scales, sizes = optional(inputs, 1), optional(inputs, 2), optional(inputs, 3)
        require(how.version > 11 or scales is not None, "scales is given")
        given = [None if v is None else tuple(v.astype(np.float64).tolist()) for v in (roi, scales)]
        whole = None if sizes is None else tuple(sizes.tolist())
        require(all(v is None or v.ndim == 1 for v in (roi, scales, sizes)), "roi, scales and sizes have one axis")
        done = plan(x.shape, given[0] if how.crops else None, given[1], whole, is_integer(x.dtype) or x.dtype == DOUBLE)
        out = allocate(done.shape, x.dtype)
        if out.size == 0:
            return (out,)
        if how.mode == "nearest":
            _gather(x, done, out)
        elif is_integer(x.dtype):
            out[...] = saturated(_mean(x.astype(np.float64), done, allocate), x.dtype)
        else:
            out[...] = _mean(x, done, allocate)
        _fill_outside(out, done, how.extrapolation)
        return (out,)

    return compute


def _gather(x: Array, plan: ResizePlan, out: Array) -> None:
    """Takes the places of each axis, the last axis first."""
    order = sorted(plan.places, reverse=True)
    for k in order[:-1]:
        x = np.take(x, plan.places[k], axis=k)
    if order:
        np.take(x, plan.places[order[-1]], axis=order[-1], out=out, mode="clip")
    else:
        out[...] = x


def _fill_outside(out: Array, plan: ResizePlan, value: float) -> None:
    """Writes the extrapolation value where a coordinate lies beyond the data."""
    for k, within in plan.within.items():
        if not within.all():
            np.moveaxis(out, k, 0)[~within] = _limited(value, out.dtype)


def _limited(value: float, dtype: DType) -> Array:
    """A number as the nearest element within the finite range of the type."""
    exact = np.asarray(value, np.float64)
    if is_integer(dtype):
        return saturated(exact, dtype)
    limited = narrow(exact, dtype) if is_float(dtype) else exact.astype(dtype)
    if is_float(dtype) and np.isinf(limited):
        return narrow(np.asarray(math.copysign(greatest(dtype), value)), dtype)
    return limited


# ---- means ------------------------------------------------------------------------------------


def _mean(x: Array, plan: ResizePlan, allocate: Allocate) -> Array:
    """The sum of the weighted elements, row-major over the taps of all axes; taps of weight 0 are left out."""
    axes = sorted(plan.taps)
    kind = x.dtype
    if not axes:
        return x
    total = allocate(plan.shape, kind)
    begun = False
    for data, weight, counts in _combinations(x, plan, axes, None, None):
        term = np.multiply(weight, data)
        if bool(counts.all()):
            np.add(total, term, out=total) if begun else np.copyto(total, np.broadcast_to(term, total.shape))
        else:
            if not begun:
                total[...] = 0
            np.add(total, term, out=total, where=counts)
        begun = True
    return total


def _combinations(
    x: Array, plan: ResizePlan, axes: list[int], weight: Array | None, counts: Array | None
) -> Iterator[tuple[Array, Array, Array]]:
    """For each combination of taps, the first axis slowest: the elements, their weights, which of them count."""
    axis, rest = axes[0], axes[1:]
    taps = plan.taps[axis]
    beside = (-1, *(1,) * (x.ndim - 1 - axis))
    kind = DOUBLE if is_integer(x.dtype) else x.dtype
    weights = narrow(taps.weights, kind) if is_float(kind) else widened(taps.weights, kind)
    for tap in range(taps.places.shape[0]):
        own, mask = weights[tap].reshape(beside), taps.counts[tap].reshape(beside)
        if not mask.any():
            continue
        data = np.take(x, taps.places[tap], axis=axis)
        both = own if weight is None else np.multiply(weight, own)
        seen = mask if counts is None else counts & mask
        if rest:
            yield from _combinations(data, plan, rest, both, seen)
        else:
            yield data, both, seen


KERNELS: Mapping[str, tuple[Kernel, ...]] = {"Resize": (Kernel(10, 19, _resize),)}
